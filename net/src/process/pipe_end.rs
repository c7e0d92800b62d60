//! Our end of a pipe to a process: bytes in one direction.

use std::fs::File;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::Location;
use std::task::{Poll, ready};

use rustix::io::ioctl_fionbio;
use traps::core::names::Site;
use traps::io::{Descriptor, Direction, Io, Source};

use crate::attempt::{Attempt, First};
use crate::limits::PROCESS_PIECE;

/// A pipe's descriptor in non-blocking mode. The process has the other end, which stays as it is.
struct End(File);

impl End {
    fn new(descriptor: impl Into<OwnedFd>) -> io::Result<Io<End>> {
        let descriptor = descriptor.into();
        ioctl_fionbio(&descriptor, true)?;
        Ok(Io::new(End(descriptor.into())))
    }
}

impl Source for End {
    fn descriptor(&self) -> Descriptor {
        Descriptor::Real(self.0.as_raw_fd())
    }
    fn kind(&self) -> char {
        'p'
    }
    fn into_owner(self) -> Option<OwnedFd> {
        Some(self.0.into())
    }
}

/// What a process writes: its standard output or standard error.
pub struct PipeReader {
    io: Io<End>,
    /// Something was more than whoever read had room for.
    has_lost: bool,
}

/// What a process reads: its standard input. Dropping it is the end of that input.
pub struct PipeWriter(Io<End>);

impl PipeReader {
    /// Takes the reading end of a pipe.
    ///
    /// # Errors
    ///
    /// The system's, if it refuses non-blocking mode.
    pub fn new(descriptor: impl Into<OwnedFd>) -> io::Result<PipeReader> {
        Ok(PipeReader { io: End::new(descriptor)?, has_lost: false })
    }

    /// Reads what is there into `buf`; blocks while nothing is. Zero: every writer has closed the
    /// pipe (or `buf` is empty). A process that left a child of its own behind has left it the
    /// pipe too.
    ///
    /// # Errors
    ///
    /// The system's; the interrupt that ended the wait: nothing was read then.
    #[track_caller]
    pub fn read<'a>(
        &'a mut self,
        buf: &'a mut [u8],
    ) -> impl Future<Output = io::Result<usize>> + use<'a> {
        let io = &self.io;
        let site = Location::caller();
        let mut attempt = Attempt::new(First::Try, site, io.ready(Direction::Read, site));
        poll_fn(move |cx| {
            attempt.poll(cx, || (&io.0).read(buf).inspect(|n| io.note(Direction::Read, *n)))
        })
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
    pub fn read_to_end<'a>(
        &'a mut self,
        into: &'a mut Vec<u8>,
        limit: usize,
    ) -> impl Future<Output = io::Result<()>> + use<'a> {
        self.read_to_end_from(into, limit, Location::caller())
    }

    /// Reads to the end, for a wrapper that knows its caller's place in the source.
    #[track_caller]
    pub(super) fn read_to_end_from<'a>(
        &'a mut self,
        into: &'a mut Vec<u8>,
        limit: usize,
        site: Site,
    ) -> impl Future<Output = io::Result<()>> + use<'a> {
        let PipeReader { io, has_lost } = self;
        let io = &*io;
        let mut attempt = Attempt::new(First::Try, site, io.ready(Direction::Read, site));
        let mut piece = Vec::new();
        let too_much = move || {
            let text = format!("the process wrote more than {limit} bytes");
            Poll::Ready(Err(io::Error::new(ErrorKind::FileTooLarge, text)))
        };
        poll_fn(move |cx| {
            if *has_lost {
                return too_much();
            }
            piece.resize(PROCESS_PIECE, 0);
            loop {
                let n = ready!(attempt.poll(cx, || {
                    (&io.0).read(&mut piece).inspect(|n| io.note(Direction::Read, *n))
                }))?;
                if n == 0 {
                    return Poll::Ready(Ok(()));
                }
                let taken = n.min(limit.saturating_sub(into.len()));
                into.extend_from_slice(&piece[..taken]);
                if taken < n {
                    *has_lost = true;
                    return too_much();
                }
            }
        })
    }
}

impl PipeWriter {
    /// Takes the writing end of a pipe.
    ///
    /// # Errors
    ///
    /// The system's, if it refuses non-blocking mode.
    pub fn new(descriptor: impl Into<OwnedFd>) -> io::Result<PipeWriter> {
        End::new(descriptor).map(PipeWriter)
    }

    /// Writes some of `buf`; blocks while the pipe is full. Returns how much.
    ///
    /// # Errors
    ///
    /// The system's: `BrokenPipe` if nobody has the other end; the interrupt that ended the wait:
    /// nothing was written then.
    #[track_caller]
    pub fn write<'a>(
        &'a mut self,
        buf: &'a [u8],
    ) -> impl Future<Output = io::Result<usize>> + use<'a> {
        let io = &self.0;
        let site = Location::caller();
        let mut attempt = Attempt::new(First::Try, site, io.ready(Direction::Write, site));
        poll_fn(move |cx| {
            attempt.poll(cx, || (&io.0).write(buf).inspect(|n| io.note(Direction::Write, *n)))
        })
    }

    /// Writes all of `bytes`, which shrinks to what is left; blocks whenever the pipe is full.
    ///
    /// # Errors
    ///
    /// Those of [`PipeWriter::write`]; `bytes` is then what was not written.
    #[track_caller]
    pub fn write_all<'a, 'b>(
        &'a mut self,
        bytes: &'a mut &'b [u8],
    ) -> impl Future<Output = io::Result<()>> + use<'a, 'b> {
        self.write_all_from(bytes, Location::caller())
    }

    /// Writes all, for a wrapper that knows its caller's place in the source.
    #[track_caller]
    pub(super) fn write_all_from<'a, 'b>(
        &'a mut self,
        bytes: &'a mut &'b [u8],
        site: Site,
    ) -> impl Future<Output = io::Result<()>> + use<'a, 'b> {
        let io = &self.0;
        let mut attempt = Attempt::new(First::Try, site, io.ready(Direction::Write, site));
        poll_fn(move |cx| {
            while !bytes.is_empty() {
                let n = ready!(attempt.poll(cx, || {
                    (&io.0).write(bytes).inspect(|n| io.note(Direction::Write, *n))
                }))?;
                *bytes = &bytes[n..];
            }
            Poll::Ready(Ok(()))
        })
    }
}

impl std::fmt::Debug for PipeReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PipeReader").field(&self.io.0).finish()
    }
}

impl std::fmt::Debug for PipeWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PipeWriter").field(&self.0).finish()
    }
}
