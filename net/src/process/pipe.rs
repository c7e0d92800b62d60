//! Our end of a pipe to a process: a stream in one direction.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::OwnedFd;
use std::panic::Location;

use rustix::event::PollFlags;
use rustix::io::{ioctl_fionbio, read, writev};
use traps::Site;
use traps::io::{Direction, Io};

use crate::pipe::PipeEnd;
use crate::record::{self, Handle, TryIo};
use crate::stream::Stream;
use crate::try_io::{for_one_call, is_any, note_site, try_io, until_done};

/// Our end of a pipe that a process reads or writes: a [`Stream`] in one direction. In the other
/// direction, the system fails with EBADF.
///
/// A read finds the end once every writer has closed the pipe. A child that the process left behind
/// has the pipe open too. Dropping the writing end, or its `shutdown`, ends the input of the
/// process.
#[derive(Debug)]
pub struct Pipe(pub(crate) End);

#[derive(Debug)]
pub(crate) enum End {
    System(Io<Handle<'p'>>),
    /// The pipe of a process in memory.
    Memory(PipeEnd),
    Closed,
}

impl Pipe {
    /// Takes ownership of either end of a pipe.
    ///
    /// # Errors
    ///
    /// Returns the system's error, if it refuses non-blocking mode.
    pub fn new(descriptor: impl Into<OwnedFd>) -> io::Result<Pipe> {
        Pipe::from_handle(Handle::from(descriptor))
    }

    pub(super) fn from_handle(handle: Handle<'p'>) -> io::Result<Pipe> {
        // This sets the mode of our end only. The end of the process stays as it is.
        record::call("nonblocking", || Ok(ioctl_fionbio(handle.get()?, true)?))?;
        Ok(Pipe(End::System(Io::new(handle))))
    }
}

/// Repeats `try_io` until it does not return `None`.
async fn system(
    io: &Io<Handle<'p'>>,
    direction: Direction,
    site: Site,
    mut try_io: impl FnMut(&Handle<'p'>) -> TryIo<usize>,
) -> io::Result<usize> {
    note_site(site);
    until_done(false, site, || io.ready(direction, site), || try_io(io)).await
}

impl Stream for Pipe {
    async fn read_from(&mut self, buf: &mut [u8], site: Site) -> io::Result<usize> {
        match &mut self.0 {
            End::System(io) => {
                let n = system(io, Direction::Read, site, |pipe| read_from(pipe, buf)).await?;
                io.note(Direction::Read, n);
                Ok(n)
            }
            End::Memory(end) => end.read_from(buf, site).await,
            End::Closed => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
        match &mut self.0 {
            End::System(io) => {
                let bufs = for_one_call(bufs);
                let n = system(io, Direction::Write, site, |pipe| write_to(pipe, bufs)).await?;
                io.note(Direction::Write, n);
                Ok(n)
            }
            End::Memory(end) => end.write_from(bufs, site).await,
            End::Closed => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    #[track_caller]
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        let look = |pipe: &_| match is_any(pipe, PollFlags::IN) {
            Ok(is) => is.then_some(Ok(0)),
            Err(error) => Some(Err(error)),
        };
        let site = Location::caller();
        async move {
            match &mut self.0 {
                End::System(io) => system(io, Direction::Read, site, look).await.map(drop),
                End::Memory(end) => end.readable_from(site).await,
                End::Closed => Err(ErrorKind::BrokenPipe.into()),
            }
        }
    }

    fn shutdown(&mut self) -> io::Result<()> {
        self.0 = End::Closed;
        Ok(())
    }
}

/// Reads the bytes that have arrived. Returns `None` if there are none.
pub(crate) fn read_from(pipe: &Handle<'p'>, buf: &mut [u8]) -> TryIo<usize> {
    record::read(buf, |buf| try_io(|| read(pipe.get()?, &mut *buf)))
}

/// Writes as many bytes as there is room for. Returns `None` if there is no room.
pub(crate) fn write_to(pipe: &Handle<'p'>, bufs: &[IoSlice<'_>]) -> TryIo<usize> {
    record::sent(bufs, || try_io(|| writev(pipe.get()?, bufs)))
}
