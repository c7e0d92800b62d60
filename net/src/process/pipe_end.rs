//! Our end of a pipe to a process: bytes in one direction.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::panic::Location;

use rustix::io::{Errno, ioctl_fionbio, read, write};
use traps::core::names::Site;
use traps::io::{Direction, Io, Source};

use crate::attempt::{attempt, until_done};
use crate::limits::PROCESS_PIECE;

/// Takes one end of a pipe in non-blocking mode. The process has the other end, which stays as it
/// is.
fn take<S: Source + From<OwnedFd>>(descriptor: impl Into<OwnedFd>) -> io::Result<Io<S>> {
    let descriptor = descriptor.into();
    ioctl_fionbio(&descriptor, true)?;
    Ok(Io::new(descriptor.into()))
}

/// Moves bytes by `operation`, waiting until some can be moved.
fn move_by<S: Source>(
    io: &Io<S>,
    direction: Direction,
    site: Site,
    mut operation: impl FnMut(&S) -> Result<usize, Errno>,
) -> impl Future<Output = io::Result<usize>> {
    until_done(
        false,
        site,
        move || io.ready(direction, site),
        move || attempt(|| operation(io).inspect(|n| io.note(direction, *n))),
    )
}

/// What a process writes: its standard output or standard error.
#[derive(Debug)]
pub struct PipeReader {
    io: Io<io::PipeReader>,
    /// Something was more than whoever read had room for.
    has_lost: bool,
}

/// What a process reads: its standard input. Dropping it is the end of that input.
#[derive(Debug)]
pub struct PipeWriter(Io<io::PipeWriter>);

impl PipeReader {
    /// Takes the reading end of a pipe.
    ///
    /// # Errors
    ///
    /// The system's, if it refuses non-blocking mode.
    pub fn new(descriptor: impl Into<OwnedFd>) -> io::Result<PipeReader> {
        Ok(PipeReader { io: take(descriptor)?, has_lost: false })
    }

    /// Reads what is there into `buf`; blocks while nothing is. Zero: every writer has closed the
    /// pipe (or `buf` is empty). A process that left a child of its own behind has left it the
    /// pipe too.
    ///
    /// # Errors
    ///
    /// The system's; the interrupt that ended the wait: nothing was read then.
    #[track_caller]
    pub fn read(&mut self, buf: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        move_by(&self.io, Direction::Read, Location::caller(), |pipe| read(pipe, &mut *buf))
    }

    /// Appends all that comes until the end to `into`, which is to hold `limit` bytes at most.
    /// Blocks whenever nothing is there.
    ///
    /// # Errors
    ///
    /// Those of [`PipeReader::read`]; what came before is in `into`, and a second call goes on.
    /// [`FileTooLarge`](ErrorKind::FileTooLarge) when more than `limit` came; `into` is full then,
    /// and what came beyond it is lost: a call with a larger limit would leave a gap, so each is
    /// that error from then on.
    #[track_caller]
    pub fn read_to_end(
        &mut self,
        into: &mut Vec<u8>,
        limit: usize,
    ) -> impl Future<Output = io::Result<()>> {
        self.read_to_end_from(into, limit, Location::caller())
    }

    /// Reads to the end, for a wrapper that knows its caller's place in the source.
    pub(super) async fn read_to_end_from(
        &mut self,
        into: &mut Vec<u8>,
        limit: usize,
        site: Site,
    ) -> io::Result<()> {
        let mut piece = vec![0; PROCESS_PIECE];
        while !self.has_lost {
            let read_piece = |pipe: &_| read(pipe, &mut piece[..]);
            let n = move_by(&self.io, Direction::Read, site, read_piece).await?;
            if n == 0 {
                return Ok(());
            }
            let taken = n.min(limit.saturating_sub(into.len()));
            into.extend_from_slice(&piece[..taken]);
            self.has_lost = taken < n;
        }
        let text = format!("the process wrote more than {limit} bytes");
        Err(io::Error::new(ErrorKind::FileTooLarge, text))
    }
}

impl PipeWriter {
    /// Takes the writing end of a pipe.
    ///
    /// # Errors
    ///
    /// The system's, if it refuses non-blocking mode.
    pub fn new(descriptor: impl Into<OwnedFd>) -> io::Result<PipeWriter> {
        take(descriptor).map(PipeWriter)
    }

    /// Writes some of `buf`; blocks while the pipe is full. Returns how much.
    ///
    /// # Errors
    ///
    /// The system's: `BrokenPipe` if nobody has the other end; the interrupt that ended the wait:
    /// nothing was written then.
    #[track_caller]
    pub fn write(&mut self, buf: &[u8]) -> impl Future<Output = io::Result<usize>> {
        move_by(&self.0, Direction::Write, Location::caller(), |pipe| write(pipe, buf))
    }

    /// Writes all of `bytes`, which shrinks to what is left; blocks whenever the pipe is full.
    ///
    /// # Errors
    ///
    /// Those of [`PipeWriter::write`]; `bytes` is then what was not written.
    #[track_caller]
    pub fn write_all(&mut self, bytes: &mut &[u8]) -> impl Future<Output = io::Result<()>> {
        self.write_all_from(bytes, Location::caller())
    }

    /// Writes all, for a wrapper that knows its caller's place in the source.
    pub(super) async fn write_all_from(&mut self, bytes: &mut &[u8], site: Site) -> io::Result<()> {
        while !bytes.is_empty() {
            let n = move_by(&self.0, Direction::Write, site, |pipe| write(pipe, bytes)).await?;
            *bytes = &bytes[n..];
        }
        Ok(())
    }
}
