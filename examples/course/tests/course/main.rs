//! The course: its steps, its labs, its tool, and the facts on its pages.

mod class;
mod guarded;
mod lectures;
mod logs;
mod solutions;
mod steps;
mod tool;
mod work;
