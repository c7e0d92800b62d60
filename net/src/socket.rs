//! What a connection knows about its socket, and what is done with it, of whatever family it is.

use std::cell::Cell;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::event::PollFlags;
use rustix::io::{Errno, writev};
use rustix::net::addr::SocketAddrArg;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with};
use socket2::{Domain, Protocol, SockRef, Type};
use traps::core::names::Site;
use traps::io::{Descriptor, Direction, Io, Ready, Source};
use traps::{Budget, budget_from, take_budget};

use crate::attempt::{attempt, is_any, until_done};

/// A socket of which no duplicate exists, nothing here hands out its descriptor; and what is known
/// about it, where it takes no room. One reads it, one writes it: each of them has its own half.
pub(crate) struct Socket {
    pub(crate) fd: OwnedFd,
    /// Bytes that the system has taken.
    pub(crate) written: Cell<u64>,
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
    /// TCP urgent data, and what follows is then found when more arrives. A read of a Unix socket
    /// stops short where descriptors were sent, so its next read tries ([`StreamSocket::reader`]).
    ///
    /// [`StreamSocket::reader`]: crate::stream_socket::StreamSocket::reader
    pub(crate) drained: Cell<bool>,
    /// The last write filled the socket, so the next one waits without trying: the system makes an
    /// edge for whoever was refused room, and a short write was refused the rest. A wait that was
    /// begun clears this, too.
    pub(crate) full: Cell<bool>,
}

impl Socket {
    pub(crate) fn new(fd: OwnedFd) -> Socket {
        let (drained, full) = (Cell::new(false), Cell::new(false));
        Socket { fd, written: Cell::new(0), drained, full }
    }
}

impl Source for Socket {
    fn descriptor(&self) -> Descriptor {
        Descriptor::Real(self.fd.as_raw_fd())
    }
    fn kind(&self) -> char {
        'c'
    }
    fn into_owner(self) -> Option<OwnedFd> {
        Some(self.fd)
    }
    fn is_sole(&self) -> bool {
        true
    }
}

/// A new TCP socket in non-blocking mode, without delay.
pub(crate) fn tcp_socket(address: SocketAddr) -> io::Result<socket2::Socket> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = socket2::Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket)
}

/// How every socket is made.
pub(crate) const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A new socket that has this address.
pub(crate) fn bound(kind: SocketType, address: &impl SocketAddrArg) -> Result<OwnedFd, Errno> {
    let fd = socket_with(address.as_any().address_family(), kind, FLAGS, None)?;
    bind(&fd, address)?;
    Ok(fd)
}

// ---- Reading ------------------------------------------------------------------------------------

/// Reads what is there; `None` where nothing is.
///
/// The system is called in place, where the standard library takes three calls to get there: some
/// 15 instructions of a request, and as many for `send`.
#[inline(always)]
pub(crate) fn receive(io: &Io<Socket>, buf: &mut [u8]) -> Option<io::Result<usize>> {
    if buf.is_empty() {
        // Where nothing is there, the system would say so of this too.
        return Some(Ok(0));
    }
    let Socket { fd, drained, .. } = &**io;
    let done = attempt(|| recv(fd, &mut *buf, RecvFlags::empty()).map(|(n, _)| n));
    if let Some(Ok(n)) = done {
        io.note(Direction::Read, n);
    }
    drained.set(match &done {
        Some(Ok(n)) => 0 < *n && *n < buf.len(),
        Some(Err(_)) => false,
        None => true,
    });
    done
}

/// Reads what is there into `buf`, waiting until something is.
pub(crate) fn read(
    io: &Io<Socket>,
    buf: &mut [u8],
    site: Site,
) -> impl Future<Output = io::Result<usize>> {
    // Nothing to read into: there is nothing to wait for.
    let waits_first = !buf.is_empty() && io.drained.get();
    until_done(waits_first, site, move || ready_to_read(io, site), move || receive(io, buf))
}

#[inline]
fn ready_to_read(io: &Io<Socket>, site: Site) -> Ready<'_, Socket> {
    io.drained.set(false);
    io.ready(Direction::Read, site)
}

/// The future of a wait for something to read. Small, for there are many that wait.
pub(crate) enum Readable<'a> {
    /// To look into the socket first.
    New(&'a Io<Socket>, Site),
    /// The budget was spent. It ends with the next one and does not look: a read may still wait.
    Spent(Budget),
    Wait(Ready<'a, Socket>),
}

impl<'a> Readable<'a> {
    #[inline]
    pub(crate) fn new(io: &'a Io<Socket>, site: Site) -> Readable<'a> {
        match io.drained.get() {
            true => Readable::Wait(ready_to_read(io, site)),
            false => Readable::New(io, site),
        }
    }

    /// Looks into the socket, and begins to wait if nothing is there.
    #[cold]
    fn look(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        *self = match self {
            Readable::New(io, site) if take_budget() => {
                if let Some(looked) = attempt(|| recv(&io.fd, &mut [0], RecvFlags::PEEK)) {
                    return Poll::Ready(looked.map(drop));
                }
                Readable::Wait(ready_to_read(io, site))
            }
            Readable::New(_, site) => Readable::Spent(budget_from(site)),
            Readable::Spent(budget) => return Pin::new(budget).poll(cx).map_err(io::Error::from),
            Readable::Wait(_) => unreachable!("who waits has looked"),
        };
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

// ---- Writing ------------------------------------------------------------------------------------

/// Writes what there is room for; `None` where there is none.
#[inline(always)]
pub(crate) fn transmit(io: &Io<Socket>, bytes: &[u8]) -> Option<io::Result<usize>> {
    transmit_by(io, bytes.len(), |socket| send(socket, bytes, SendFlags::NOSIGNAL))
}

/// Writes some of so many bytes by `operation`, and counts it; `None` where there is no room.
#[inline(always)]
fn transmit_by(
    io: &Io<Socket>,
    offered: usize,
    operation: impl Fn(&OwnedFd) -> Result<usize, Errno>,
) -> Option<io::Result<usize>> {
    let Socket { fd, written, full, .. } = &**io;
    let done = attempt(|| operation(fd));
    if let Some(Ok(n)) = done {
        full.set(n < offered);
        written.set(written.get() + n as u64);
        io.note(Direction::Write, n);
    }
    done
}

#[inline]
fn room_to_write(io: &Io<Socket>, site: Site) -> Ready<'_, Socket> {
    io.full.set(false);
    io.ready(Direction::Write, site)
}

/// Writes all of `bytes`, waiting whenever there is no room.
#[allow(clippy::manual_async_fn, reason = "an async fn has its arguments twice")]
pub(crate) fn write_all(
    io: &Io<Socket>,
    mut bytes: &[u8],
    site: Site,
) -> impl Future<Output = io::Result<()>> {
    async move {
        while !bytes.is_empty() {
            let wait = || room_to_write(io, site);
            match until_done(io.full.get(), site, wait, || transmit(io, bytes)).await? {
                0 => return Err(ErrorKind::WriteZero.into()),
                n => bytes = &bytes[n..],
            }
        }
        Ok(())
    }
}

/// How many slices the system takes at once: Linux's `UIO_MAXIOV`. The standard library offers no
/// more.
const MOST_SLICES: usize = 1024;

/// Writes some of the slices, in order, by one system call, waiting until there is room.
pub(crate) async fn write(
    io: &Io<Socket>,
    slices: &[IoSlice<'_>],
    site: Site,
) -> io::Result<usize> {
    // Of empty ones in front the system might take nothing but them.
    let from = slices.iter().position(|slice| !slice.is_empty()).unwrap_or(slices.len());
    let slices = &slices[from..slices.len().min(from + MOST_SLICES)];
    let size = slices.iter().map(|slice| slice.len()).sum();
    let attempt = || transmit_by(io, size, |socket| writev(socket, slices));
    until_done(0 < size && io.full.get(), site, || room_to_write(io, site), attempt).await
}

// ---- The ends -----------------------------------------------------------------------------------

/// Ends one direction or both.
pub(crate) fn shutdown(io: &Io<Socket>, how: Shutdown) -> io::Result<()> {
    io.drained.set(false);
    io.full.set(false);
    SockRef::from(&io.fd).shutdown(how)
}

/// Waits until the peer has closed its side, or the connection has failed.
pub(crate) async fn closed(io: &Io<Socket>, site: Site) -> io::Result<()> {
    loop {
        // First: no system call is made where nothing arrives.
        ready_to_read(io, site).await?;
        if is_any(&io.fd, PollFlags::RDHUP)? {
            return Ok(());
        }
    }
}

/// Waits until nothing that was written is unsent.
pub(crate) async fn sent(io: &Io<Socket>, site: Site) -> io::Result<()> {
    // From now on the system says that there is room where nothing is unsent, and only there.
    match SockRef::from(&io.fd).set_tcp_notsent_lowat(1) {
        // Not TCP: what is written is the peer's at once.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::OPNOTSUPP) => return Ok(()),
        set => set?,
    }
    io.full.set(false);
    while !is_any(&io.fd, PollFlags::OUT)? {
        room_to_write(io, site).await?;
    }
    Ok(())
}
