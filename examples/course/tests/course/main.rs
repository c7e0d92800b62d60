//! The course: its steps, its labs, its tool, and what its pages show.

mod class;
mod guarded;
mod lectures;
mod logs;
mod solutions;
mod steps;
mod tool;
mod work;
