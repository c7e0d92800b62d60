//! The tool that reads traces.

mod command;
mod debugger;
mod select;
mod step;
mod tool;
