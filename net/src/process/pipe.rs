//! Our end of a pipe to a process: bytes in one direction.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::OwnedFd;
use std::panic::Location;

use rustix::event::PollFlags;
use rustix::io::{Errno, ioctl_fionbio, read, writev};
use traps::core::names::Site;
use traps::io::{Direction, Io};

use crate::attempt::{attempt, is_any, until_done};
use crate::stream::Stream;

/// What a process reads or writes: a [`Stream`] in one direction. Of the other the system says that
/// it is no such descriptor.
///
/// A read finds the end when every writer has closed the pipe. A process that left a child of its
/// own behind has left it the pipe too. Dropping the writing end, or its `shutdown`, is the end of
/// what the process reads.
///
/// What it owns is either end, whatever the name of the type.
#[derive(Debug)]
pub struct Pipe(pub(crate) Option<Io<io::PipeReader>>);

impl Pipe {
    /// Takes either end of a pipe.
    ///
    /// # Errors
    ///
    /// The system's, if it refuses non-blocking mode.
    pub fn new(descriptor: impl Into<OwnedFd>) -> io::Result<Pipe> {
        let descriptor = descriptor.into();
        // Of our end alone: the process's stays as it is.
        ioctl_fionbio(&descriptor, true)?;
        Ok(Pipe(Some(Io::new(descriptor.into()))))
    }

    /// Makes attempts at `operation` until one comes to something.
    async fn until_done(
        &self,
        direction: Direction,
        site: Site,
        mut operation: impl FnMut(&io::PipeReader) -> Result<usize, Errno>,
    ) -> io::Result<usize> {
        let io = self.0.as_ref().ok_or(ErrorKind::BrokenPipe)?;
        until_done(false, site, || io.ready(direction, site), || attempt(|| operation(io))).await
    }

    /// Tells the log of bytes that went in that direction.
    fn note(&self, direction: Direction, bytes: usize) {
        self.0.iter().for_each(|io| io.note(direction, bytes));
    }
}

impl Stream for Pipe {
    async fn read_from(&mut self, buf: &mut [u8], site: Site) -> io::Result<usize> {
        let n = self.until_done(Direction::Read, site, |pipe| read(pipe, &mut *buf)).await?;
        self.note(Direction::Read, n);
        Ok(n)
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
        let n = self.until_done(Direction::Write, site, |pipe| writev(pipe, bufs)).await?;
        self.note(Direction::Write, n);
        Ok(n)
    }

    #[track_caller]
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        let look = |pipe: &_| if is_any(pipe, PollFlags::IN)? { Ok(0) } else { Err(Errno::AGAIN) };
        let looked = self.until_done(Direction::Read, Location::caller(), look);
        async { looked.await.map(drop) }
    }

    fn shutdown(&mut self) -> io::Result<()> {
        self.0 = None;
        Ok(())
    }
}
