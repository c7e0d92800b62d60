//! The tool that reads traces.

mod command;
mod debugger;
mod dump;
mod select;
mod step;
mod tool;
