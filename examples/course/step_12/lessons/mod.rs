//! Given: three lessons of the real kernel, on the kernel of the course.
//!
//! A lesson names the crates `kernel`, `traps` and `common`; in this program these names are the
//! program itself, and `main.rs` imports the items of the crates.

pub mod common;
#[path = "../../../hello.rs"]
mod hello;
#[path = "../../../linger.rs"]
mod linger;
#[path = "../../../nested.rs"]
mod nested;

use std::process::ExitCode;
use std::str::FromStr;

use super::mini;

/// Runs a lesson on the virtual clock, and prints its log.
pub fn run(name: &str) -> std::io::Result<()> {
    let ended = match name {
        "hello" => hello::main(),
        "linger" => linger::main(),
        "nested" => nested::main(),
        _ => return Err(std::io::Error::other("expected hello, linger or nested")),
    };
    if ended == ExitCode::SUCCESS { Ok(()) } else { Err(std::io::Error::other("it has failed")) }
}

/// The time at which a descriptor is unregistered. The course has one policy.
#[derive(Clone, Copy, Debug)]
pub struct Policy;

/// The module `io` of the crate `traps`.
pub mod io {
    pub use super::mini::{Direction, Io, Scripted, Source};
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        if text == "lazy" { Ok(Policy) } else { Err("expected lazy".to_owned()) }
    }
}

impl From<mini::Interrupt> for std::io::Error {
    fn from(interrupt: mini::Interrupt) -> std::io::Error {
        std::io::Error::other(interrupt)
    }
}

impl From<mini::Error> for std::io::Error {
    fn from(error: mini::Error) -> std::io::Error {
        std::io::Error::other(error)
    }
}
