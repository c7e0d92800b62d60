//! The two directions of a stream, as two streams.

use crate::family::Family;
use crate::stream::Stream;
use crate::stream_socket::StreamSocket;

/// A stream that two branches of a task can use at the same time, one for each direction.
pub trait Split {
    /// Returns a stream to read from, and a stream to write to.
    fn split(&mut self) -> (impl Stream, impl Stream);
}

impl<F: Family> Split for StreamSocket<F> {
    fn split(&mut self) -> (impl Stream, impl Stream) {
        StreamSocket::split(self)
    }
}
