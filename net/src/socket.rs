//! What a connection knows about its socket, and the futures that move bytes.

use std::cell::Cell;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use traps::core::names::Site;
use traps::io::{Descriptor, Direction, Io, Ready, Source};
use traps::{Budget, Interrupt, budget_from, take_budget};

use crate::attempt::{Attempt, First};

/// A socket of which no duplicate exists, nothing here hands out its descriptor; and what is known
/// about it, where it takes no room.
pub(crate) struct Socket(pub(crate) std::net::TcpStream, pub(crate) Known);

impl Source for Socket {
    fn descriptor(&self) -> Descriptor {
        Descriptor::Real(self.0.as_raw_fd())
    }
    fn kind(&self) -> char {
        'c'
    }
    fn into_owner(self) -> Option<OwnedFd> {
        Some(self.0.into())
    }
    fn is_sole(&self) -> bool {
        true
    }
}

impl Socket {
    /// Reads what is there. The system is called in place, where the standard library takes three
    /// calls to get there: some 15 instructions of a request, and as many for `send`.
    #[inline(always)]
    fn receive(&self, buf: &mut [u8]) -> Result<usize, Errno> {
        // Where nothing is there, the system would say so of this too.
        if buf.is_empty() {
            return Ok(0);
        }
        recv(&self.0, buf, RecvFlags::empty()).map(|(n, _)| n)
    }

    /// Writes what there is room for.
    #[inline(always)]
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        send(&self.0, bytes, SendFlags::NOSIGNAL)
    }
}

/// The known state of a socket. One reads it, one writes it: each of them has its own half.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The last read emptied the socket, or a try found nothing, so the next read waits without
    /// trying.
    ///
    /// Readiness comes as edges, and the kernel remembers one that arrives while nobody waits. A
    /// short read took all that was there, so whatever the next read is to find has yet to make
    /// its edge, or has made it since:
    ///
    /// - Bytes or an end that arrive after the short read make a new edge.
    /// - Bytes that arrive between the event and the read are taken by the read; their edge is
    ///   remembered, and the next wait ends for nothing: one try too many, never one too few.
    /// - **An end that came together with the bytes** makes no edge of its own: one event tells of
    ///   both, and the wait for the bytes has used it up. That is safe only because the event says
    ///   so (`EPOLLRDHUP`) and the kernel answers every later wait on a handle that has seen its
    ///   peer's end at once.
    /// - A socket that was never waited for is registered by the first wait, and registering
    ///   reports the state as it is, an end included.
    ///
    /// A wait that was begun clears this, also when it is interrupted or dropped: then its edge
    /// may be lost with it, and the next read must try. One case is left: a read stops short at
    /// TCP urgent data, and what follows the mark is then found when more arrives.
    pub(crate) drained: Cell<bool>,
    /// The last write filled the socket, so the next one waits without trying: the system makes an
    /// edge for whoever was refused room, and a short write was refused the rest.
    pub(crate) full: Cell<bool>,
}

/// Reads what is there; `None` where nothing is, or the budget is spent.
#[inline(always)]
pub(crate) fn try_read(io: &Io<Socket>, buf: &mut [u8]) -> Option<io::Result<usize>> {
    if !take_budget() {
        return None;
    }
    let socket: &Socket = io;
    let done = retried(|| socket.receive(buf));
    if let Some(Ok(n)) = done {
        io.note(Direction::Read, n);
    }
    // Nothing waited, so no edge is lost.
    socket.1.drained.set(match &done {
        Some(Ok(n)) => 0 < *n && *n < buf.len(),
        Some(Err(_)) => false,
        None => true,
    });
    done
}

/// What an operation comes to; `None` where it would block.
#[inline(always)]
fn retried(mut operation: impl FnMut() -> Result<usize, Errno>) -> Option<io::Result<usize>> {
    loop {
        match operation() {
            Err(Errno::AGAIN) => return None,
            Err(Errno::INTR) => {}
            done => return Some(done.map_err(io::Error::from)),
        }
    }
}

/// Writes what there is room for, and counts it; `None` where there is none, or the budget is
/// spent.
#[inline(always)]
pub(crate) fn try_write(
    io: &Io<Socket>,
    written: &mut u64,
    buf: &[u8],
) -> Option<io::Result<usize>> {
    let socket: &Socket = io;
    if socket.1.full.take() && !buf.is_empty() || !take_budget() {
        return None;
    }
    let done = retried(|| socket.send(buf));
    if let Some(Ok(n)) = &done {
        socket.1.full.set(*n < buf.len());
        *written += *n as u64;
        io.note(Direction::Write, *n);
    }
    done
}

/// The future of a read.
pub(crate) struct Read<'a, 'b> {
    attempt: Attempt<Ready<'a, Socket>>,
    io: &'a Io<Socket>,
    buf: &'b mut [u8],
}

impl<'a, 'b> Read<'a, 'b> {
    #[inline]
    pub(crate) fn new(io: &'a Io<Socket>, buf: &'b mut [u8], site: Site) -> Read<'a, 'b> {
        // Nothing to read into: there is nothing to wait for.
        let first = if buf.is_empty() { First::Try } else { First::after(&io.1.drained) };
        let attempt = Attempt::new(first, site, io.ready(Direction::Read, site));
        Read { attempt, io, buf }
    }
}

impl Future for Read<'_, '_> {
    type Output = io::Result<usize>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Read { attempt, io, buf } = &mut *self;
        let socket: &Socket = io;
        let n = ready!(attempt.poll(cx, || Ok(socket.receive(buf)?)))?;
        socket.1.drained.set(0 < n && n < buf.len());
        io.note(Direction::Read, n);
        Poll::Ready(Ok(n))
    }
}

/// The future of a wait for something to read. Small, for there are many that wait.
pub(crate) enum Readable<'a> {
    /// To look into the socket first.
    New {
        io: &'a Io<Socket>,
        site: Site,
    },
    /// It waits for its budget. In a box, because few waits do.
    Spent {
        io: &'a Io<Socket>,
        site: Site,
        budget: Box<Budget>,
    },
    Wait(Ready<'a, Socket>),
}

impl<'a> Readable<'a> {
    #[inline]
    pub(crate) fn new(io: &'a Io<Socket>, site: Site) -> Readable<'a> {
        match First::after(&io.1.drained) {
            First::Try => Readable::New { io, site },
            First::Wait => Readable::Wait(io.ready(Direction::Read, site)),
        }
    }

    /// Looks into the socket, and begins to wait if nothing is there.
    #[cold]
    fn look(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Readable::New { io, site } = *self
            && !take_budget()
        {
            *self = Readable::Spent { io, site, budget: Box::new(budget_from(site)) };
        }
        let (io, site) = match self {
            Readable::New { io, site } => (*io, *site),
            Readable::Spent { io, site, budget } => {
                ready!(Pin::new(&mut **budget).poll(cx))
                    .map_err(<io::Error as From<Interrupt>>::from)?;
                (*io, *site)
            }
            Readable::Wait(_) => unreachable!("who waits has looked"),
        };
        if is_ready(io)? {
            return Poll::Ready(Ok(()));
        }
        *self = Readable::Wait(io.ready(Direction::Read, site));
        Pin::new(self).poll(cx)
    }
}

impl Future for Readable<'_> {
    type Output = io::Result<()>;

    // Where a guard polls it: a call costs as much as what it does.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Readable::Wait(wait) => Pin::new(wait).poll(cx).map_err(io::Error::from),
            new => new.look(cx),
        }
    }
}

/// Whether there is something to read, or the end.
fn is_ready(io: &Io<Socket>) -> io::Result<bool> {
    loop {
        match io.0.peek(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            looked => return looked.map(|_| true),
        }
    }
}

/// How many slices the system takes at once: Linux's `UIO_MAXIOV`. The standard library offers no
/// more.
const MOST_SLICES: usize = 1024;

/// Those that are offered at once: after the empty ones in front, of which the system might take
/// nothing but them.
fn taken<'a, 'b>(slices: &'a [IoSlice<'b>]) -> &'a [IoSlice<'b>] {
    let from = slices.iter().position(|slice| !slice.is_empty()).unwrap_or(slices.len());
    let rest = &slices[from..];
    &rest[..rest.len().min(MOST_SLICES)]
}

/// Bytes to write: one slice or several.
pub(crate) trait Bytes {
    /// How many.
    fn size(&self) -> usize;
    /// Offers them to the system.
    fn offer(&self, socket: &Socket) -> io::Result<usize>;
    /// How many of them that offers: of some thousand slices not all.
    fn offered(&self) -> usize {
        self.size()
    }
}

impl Bytes for &[u8] {
    fn size(&self) -> usize {
        self.len()
    }
    fn offer(&self, socket: &Socket) -> io::Result<usize> {
        Ok(socket.send(self)?)
    }
}

impl Bytes for &[IoSlice<'_>] {
    fn size(&self) -> usize {
        self.iter().map(|slice| slice.len()).sum()
    }
    fn offer(&self, socket: &Socket) -> io::Result<usize> {
        (&socket.0).write_vectored(taken(self))
    }
    fn offered(&self) -> usize {
        taken(self).iter().map(|slice| slice.len()).sum()
    }
}

/// The future of a write.
pub(crate) struct Write<'a, B> {
    attempt: Attempt<Ready<'a, Socket>>,
    io: &'a Io<Socket>,
    written: &'a mut u64,
    bytes: B,
}

impl<'a, B: Bytes> Write<'a, B> {
    #[inline]
    pub(crate) fn new(
        io: &'a Io<Socket>,
        written: &'a mut u64,
        bytes: B,
        site: Site,
    ) -> Write<'a, B> {
        let nothing = bytes.size() == 0;
        let first = if nothing { First::Try } else { First::after(&io.1.full) };
        let attempt = Attempt::new(first, site, io.ready(Direction::Write, site));
        Write { attempt, io, written, bytes }
    }

    #[inline]
    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Write { attempt, io, written, bytes } = self;
        let socket: &Socket = io;
        let n = ready!(attempt.poll(cx, || bytes.offer(socket)))?;
        socket.1.full.set(n < bytes.offered());
        **written += n as u64;
        io.note(Direction::Write, n);
        Poll::Ready(Ok(n))
    }
}

impl<B: Bytes + Unpin> Future for Write<'_, B> {
    type Output = io::Result<usize>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.poll_once(cx)
    }
}

/// The future of a write that goes on until nothing is left.
pub(crate) struct WriteAll<'a>(pub(crate) Write<'a, &'a [u8]>);

impl Future for WriteAll<'_> {
    type Output = io::Result<()>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let write = &mut self.0;
        while !write.bytes.is_empty() {
            let n = ready!(write.poll_once(cx))?;
            if n == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
            write.bytes = &write.bytes[n..];
            write.attempt.begin(First::after(&write.io.1.full));
        }
        Poll::Ready(Ok(()))
    }
}
