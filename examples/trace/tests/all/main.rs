//! The tool that reads traces.

mod command;
mod step;
mod tool;
