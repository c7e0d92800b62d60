//! Handlers that come to nothing.

use std::fmt;
use std::io;

/// Why a handler came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Panicked,
    /// It took longer than its deadline.
    Late,
    /// Its client has left.
    Left,
}

impl Gone {
    /// What this error of a handler tells, if it is one of these.
    pub(crate) fn of(error: &io::Error) -> Option<Gone> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Gone::Panicked => "a handler panicked",
            Gone::Late => "the answer took too long",
            Gone::Left => "the client has left",
        })
    }
}

impl std::error::Error for Gone {}
