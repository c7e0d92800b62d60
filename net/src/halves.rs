//! The two directions of a stream, each a stream of its own.

use crate::family::Family;
use crate::stream::Stream;
use crate::stream_socket::StreamSocket;

/// A stream whose two directions can be used at the same time, by two branches of a task.
pub trait Split {
    /// A stream to read from, and one to write to.
    fn split(&mut self) -> (impl Stream, impl Stream);
}

impl<F: Family> Split for StreamSocket<F> {
    fn split(&mut self) -> (impl Stream, impl Stream) {
        StreamSocket::split(self)
    }
}
