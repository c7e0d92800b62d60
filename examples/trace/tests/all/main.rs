//! The tool that reads traces.

mod command;
mod debugger;
mod dump;
mod replay;
mod select;
mod step;
mod tool;
