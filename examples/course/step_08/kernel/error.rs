//! Given: errors. A wait has ended early, or the system has failed.

use std::fmt;
use std::io;

use super::*;

#[derive(Debug)]
pub enum Error {
    Interrupt(Interrupt),
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Interrupt(interrupt) => interrupt.fmt(f),
            Error::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

impl From<Interrupt> for Error {
    fn from(interrupt: Interrupt) -> Error {
        Error::Interrupt(interrupt)
    }
}

impl Interruptible for Error {
    fn interrupt(&mut self) -> Option<&mut Interrupt> {
        match self {
            Error::Interrupt(interrupt) => Some(interrupt),
            Error::Io(_) => None,
        }
    }
}

/// Returns the text of an error for the log.
pub(super) fn said(error: &io::Error) -> String {
    error.kind().to_string()
}
