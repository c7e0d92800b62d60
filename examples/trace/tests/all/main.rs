//! The tool that reads traces.

mod command;
mod select;
mod step;
mod tool;
