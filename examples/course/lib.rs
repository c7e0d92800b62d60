//! The course without its commands: starting, building and grading the labs, the pages and the logs
//! of the steps, the exercises and the slides.
//!
//! The tool `course`, the programs of the labs, the book and the tests use it. The tool is also the
//! guard of each program that [`program`] runs, so it must be built before grading.

pub mod checks;
mod code;
mod draw;
mod early;
pub mod exercises;
pub mod grade;
pub mod labs;
pub mod limits;
mod list;
pub mod markup;
mod own_tests;
pub mod pages;
mod panics;
pub mod program;
pub mod slides;
pub mod states;
pub mod student;
pub mod work;
