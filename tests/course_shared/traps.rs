//! The kernel of the course, under the name of the crate `traps`.

#[allow(dead_code)]
#[path = "STEP/kernel/mod.rs"]
mod course;

pub use course::{Error, Interrupt, Kernel, Kind, Machine, Real, Sim, Time};
pub use course::{sleep, spawn, timeout_after};

pub mod io {
    pub use super::course::{Direction, Io, Scripted, Source};
}

impl From<Interrupt> for std::io::Error {
    fn from(interrupt: Interrupt) -> std::io::Error {
        std::io::Error::other(interrupt)
    }
}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> std::io::Error {
        std::io::Error::other(error)
    }
}
