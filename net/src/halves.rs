//! The two directions of a stream, each a stream of its own.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::panic::Location;

use traps::core::names::Site;

use crate::socket::{self, Readable};
use crate::stream::Stream;
use crate::tcp::{ReadHalf, TcpStream, WriteHalf};

/// A stream whose two directions can be used at the same time, by two branches of a task.
pub trait Split {
    /// A stream to read from, and one to write to.
    fn split(&mut self) -> (impl Stream, impl Stream);
}

impl Split for TcpStream {
    fn split(&mut self) -> (impl Stream, impl Stream) {
        TcpStream::split(self)
    }
}

/// To write is an error: `Unsupported`.
impl Stream for ReadHalf<'_> {
    fn read_from(&mut self, buf: &mut [u8], site: Site) -> impl Future<Output = io::Result<usize>> {
        socket::read(self.0, buf, site)
    }

    #[track_caller]
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        Readable::new(self.0, Location::caller())
    }

    async fn write_from(&mut self, _: &[IoSlice<'_>], _: Site) -> io::Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }

    fn shutdown(&mut self) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }
}

/// To read is an error: `Unsupported`.
impl Stream for WriteHalf<'_> {
    async fn read_from(&mut self, _: &mut [u8], _: Site) -> io::Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }

    async fn readable(&mut self) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
        socket::write(self.0, bufs, site).await
    }

    fn shutdown(&mut self) -> io::Result<()> {
        WriteHalf::shutdown(self)
    }

    #[track_caller]
    fn sent(&mut self) -> impl Future<Output = io::Result<()>> {
        socket::sent(self.0, Location::caller())
    }
}
