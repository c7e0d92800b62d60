//! Given: the things that have a descriptor, and the two directions of a descriptor.

use std::fmt;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Direction::Read { "read" } else { "write" })
    }
}

/// A type that has a descriptor in non-blocking mode.
pub trait Source: 'static {
    fn descriptor(&self) -> RawFd;
    /// Returns the first letter of its name in the log.
    fn kind(&self) -> char;
}

macro_rules! sources {
    ($($source:ty, $kind:literal;)+) => {$(
        impl Source for $source {
            fn descriptor(&self) -> RawFd {
                self.as_raw_fd()
            }
            fn kind(&self) -> char {
                $kind
            }
        }
    )+};
}

sources!(TcpListener, 'l'; TcpStream, 'c'; UnixStream, 'p';);

/// A descriptor that becomes ready by the script of a [`Sim`](super::Sim).
pub struct Scripted(pub u32);

impl Source for Scripted {
    fn descriptor(&self) -> RawFd {
        self.0 as RawFd
    }
    fn kind(&self) -> char {
        'f'
    }
}
