//! A connection's socket, of either family: its state, and the operations on it.

use std::cell::Cell;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::event::PollFlags;
use rustix::io::{Errno, writev};
use rustix::net::addr::SocketAddrArg;
use rustix::net::{RecvFlags, SocketType, bind, recv, send};
use socket2::SockRef;
use traps::Site;
use traps::internal::{budget_from, take_budget, tape};
use traps::io::{Descriptor, Direction, Io, Ready, Source};
use traps::{Budget, is_traced};

use crate::record::{self, Handle, TryIo, read as read_by};
use crate::system;
use crate::try_io::{for_one_call, is_any, try_io, until_done};

/// A socket, and what is known about its buffers. The socket has no duplicate unless it was
/// [lent](Socket::lent). One part of the program reads the socket and another part writes it;
/// each uses its own half of the state.
pub(crate) struct Socket {
    pub(crate) fd: Handle<'c'>,
    /// The number of written bytes that the system has taken so far. The top bit is [`LENT`].
    written: Cell<u64>,
    /// Whether the socket is known to be empty, so that the next read waits without trying: the
    /// last read was short, or a try found nothing.
    ///
    /// Readiness comes as edges, and the kernel remembers an edge that arrives while no task waits.
    /// A short read took all the bytes that had arrived. So the bytes for the next read make an
    /// edge later, or have made it since the short read:
    ///
    /// - Bytes or an end that arrive after the short read make a new edge.
    /// - Bytes that arrive between the event and the read are taken by the read. Their edge is
    ///   remembered, and the next wait ends without bytes. This costs one extra try, and loses
    ///   nothing.
    /// - **An end that arrived together with the bytes** makes no separate edge: one event reports
    ///   both, and the wait for the bytes has consumed it. This is safe only because the event has
    ///   the flag `EPOLLRDHUP`, and once the kernel has seen the peer's end on a handle, it ends
    ///   every later wait on it at once.
    /// - The first wait on a socket registers it, and registering reports the present state, an end
    ///   included.
    ///
    /// A wait clears this flag when it begins. If the wait is interrupted or dropped, its edge may
    /// be lost with it, so the next read must try. A read of a Unix socket stops short before bytes
    /// that came with descriptors, so its next read always tries ([`StreamSocket::reader`]).
    ///
    /// [`StreamSocket::reader`]: crate::stream_socket::StreamSocket::reader
    pub(crate) drained: Cell<bool>,
    /// Whether an event reported TCP urgent data (`EPOLLPRI`). A read stops in front of urgent
    /// data, so no short read proves the socket empty until a try finds nothing.
    urgent: Cell<bool>,
    /// Whether the last write filled the socket, so that the next write waits without trying. The
    /// system makes an edge only after it has refused bytes, and a short write means that the rest
    /// was refused. A wait clears this flag when it begins.
    pub(crate) full: Cell<bool>,
    /// Always true. Because this field is not a `Cell`, an `Option` of a socket is as small as a
    /// socket.
    _is_here: bool,
}

/// The bit of [`Socket::written`] that is set once other code has had the descriptor, so that the
/// socket may have a duplicate. The bit takes no extra memory, and the hot paths never test it.
const LENT: u64 = 1 << 63;

impl Socket {
    /// Records that other code gets the descriptor, or had it before.
    pub(crate) fn lent(&self) {
        self.written.set(self.written.get() | LENT);
    }

    /// Returns the number of written bytes that the system has taken so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.get() & !LENT
    }

    pub(crate) fn new(fd: Handle<'c'>) -> Socket {
        let [drained, urgent, full] = [const { Cell::new(false) }; 3];
        Socket { fd, written: Cell::new(0), drained, urgent, full, _is_here: true }
    }
}

impl Source for Socket {
    fn descriptor(&self) -> Descriptor {
        self.fd.descriptor()
    }
    fn kind(&self) -> char {
        'c'
    }
    fn into_owner(self) -> Option<OwnedFd> {
        self.fd.into_owner()
    }
    fn is_sole(&self) -> bool {
        self.written.get() & LENT == 0
    }
    fn note_urgent(&self) {
        self.urgent.set(true);
    }
}

/// Makes a TCP socket in non-blocking mode, with `TCP_NODELAY`.
pub(crate) fn tcp_socket(address: SocketAddr) -> io::Result<socket2::Socket> {
    let family = address.as_any().address_family();
    let socket = socket2::Socket::from(system::socket(family, SocketType::STREAM)?);
    socket.set_tcp_nodelay(true)?;
    Ok(socket)
}

/// Makes a socket bound to `address`.
pub(crate) fn bound(kind: SocketType, address: &impl SocketAddrArg) -> Result<OwnedFd, Errno> {
    let fd = system::socket(address.as_any().address_family(), kind)?;
    bind(&fd, address)?;
    Ok(fd)
}

// ---- Reading ------------------------------------------------------------------------------------

/// Reads the bytes that have arrived. Returns `None` if there are none.
///
/// Calls recv(2) inline, which saves three nested calls of the standard library: about 15
/// instructions per request. The same holds for `send`.
#[inline(always)]
pub(crate) fn receive(
    io: &Io<Socket>,
    buf: &mut [u8],
    site: Option<Site>,
) -> Option<io::Result<usize>> {
    if buf.is_empty() {
        // Do not ask the system: with no data there, recv(2) fails with EAGAIN even for an empty
        // buffer.
        return Some(Ok(0));
    }
    let Socket { fd, drained, urgent, .. } = &**io;
    let live =
        |buf: &mut [u8]| try_io(|| recv(fd.get()?, &mut *buf, RecvFlags::empty()).map(|(n, _)| n));
    // A tape or the log is on.
    let done = if is_traced() {
        told(io, Direction::Read, site, || read_by(buf, live))
    } else {
        live(buf)
    };
    drained.set(match &done {
        Some(Ok(n)) => 0 < *n && *n < buf.len() && !urgent.get(),
        Some(Err(_)) => false,
        None => {
            urgent.set(false);
            true
        }
    });
    done
}

/// Transfers bytes on behalf of a call site, if it is known, and logs how many.
#[cold]
fn told(
    io: &Io<Socket>,
    direction: Direction,
    site: Option<Site>,
    operation: impl FnOnce() -> TryIo<usize>,
) -> TryIo<usize> {
    site.into_iter().for_each(tape::at);
    let done = operation();
    if let Some(Ok(n)) = done {
        io.note(direction, n);
    }
    done
}

/// Reads the bytes that have arrived into `buf`, and waits until there are some.
pub(crate) fn read(
    io: &Io<Socket>,
    buf: &mut [u8],
    site: Site,
) -> impl Future<Output = io::Result<usize>> {
    // A read into an empty buffer must not wait.
    let waits_first = !buf.is_empty() && io.drained.get();
    until_done(
        waits_first,
        site,
        move || ready_to_read(io, site),
        move || receive(io, buf, Some(site)),
    )
}

#[inline]
fn ready_to_read(io: &Io<Socket>, site: Site) -> Ready<'_, Socket> {
    io.drained.set(false);
    io.ready(Direction::Read, site)
}

/// The future of a wait for bytes to read. It is kept small, because many connections wait at the
/// same time.
pub(crate) enum Readable<'a> {
    /// The state before the first try.
    New(&'a Io<Socket>, Site),
    /// The state after the budget was spent. The future ends when the budget is renewed, without a
    /// try, so a read may still wait.
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

    /// Checks whether the socket has bytes, and begins to wait if it has none.
    #[cold]
    fn look(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        *self = match self {
            Readable::New(io, site) if take_budget() => {
                let peek = || recv(io.fd.get()?, &mut [0], RecvFlags::PEEK).map(drop);
                if let Some(looked) = record::try_io("peek", || try_io(peek)) {
                    return Poll::Ready(looked);
                }
                Readable::Wait(ready_to_read(io, site))
            }
            Readable::New(_, site) => Readable::Spent(budget_from(site)),
            Readable::Spent(budget) => return Pin::new(budget).poll(cx).map_err(io::Error::from),
            Readable::Wait(_) => unreachable!("rule: `look` is not called while waiting"),
        };
        Pin::new(self).poll(cx)
    }
}

impl Future for Readable<'_> {
    type Output = io::Result<()>;

    // Inlined into the guard that polls it, because a call would cost as much as its work.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Readable::Wait(wait) => Pin::new(wait).poll(cx).map_err(io::Error::from),
            new => new.look(cx),
        }
    }
}

// ---- Writing ------------------------------------------------------------------------------------

/// Writes as many bytes as there is room for. Returns `None` if there is no room.
#[inline(always)]
pub(crate) fn transmit(
    io: &Io<Socket>,
    bytes: &[u8],
    site: Option<Site>,
) -> Option<io::Result<usize>> {
    let send = |socket: &Handle<'c'>| send(socket.get()?, bytes, system::SEND);
    transmit_by(io, &[IoSlice::new(bytes)], site, send)
}

/// Writes some bytes of the slices with `operation`, and counts them. Returns `None` if there is no
/// room.
#[inline(always)]
fn transmit_by(
    io: &Io<Socket>,
    slices: &[IoSlice<'_>],
    site: Option<Site>,
    operation: impl Fn(&Handle<'c'>) -> Result<usize, Errno>,
) -> Option<io::Result<usize>> {
    let Socket { fd, written, full, .. } = &**io;
    let live = || try_io(|| operation(fd));
    let done = match is_traced() {
        true => told(io, Direction::Write, site, || record::sent(slices, live)),
        false => live(),
    };
    if let Some(Ok(n)) = done {
        full.set(n < size(slices));
        written.set(written.get() + n as u64);
    }
    done
}

#[inline(always)]
fn size(slices: &[IoSlice<'_>]) -> usize {
    slices.iter().map(|slice| slice.len()).sum()
}

#[inline]
fn room_to_write(io: &Io<Socket>, site: Site) -> Ready<'_, Socket> {
    io.full.set(false);
    io.ready(Direction::Write, site)
}

/// Writes all of `bytes`, and waits when there is no room.
pub(crate) fn write_all(
    io: &Io<Socket>,
    mut bytes: &[u8],
    site: Site,
) -> impl Future<Output = io::Result<()>> {
    let waits_first = io.full.get() && !bytes.is_empty();
    let try_io = move || {
        if bytes.is_empty() {
            return Some(Ok(()));
        }
        match transmit(io, bytes, Some(site))? {
            Ok(0) => Some(Err(ErrorKind::WriteZero.into())),
            Ok(n) => {
                // A short write filled the socket, so an attempt to write the rest would fail.
                bytes = &bytes[n..];
                bytes.is_empty().then_some(Ok(()))
            }
            Err(error) => Some(Err(error)),
        }
    };
    until_done(waits_first, site, move || room_to_write(io, site), try_io)
}

/// Writes some of the slices, in order, with one system call, and waits until there is room.
pub(crate) async fn write(
    io: &Io<Socket>,
    slices: &[IoSlice<'_>],
    site: Site,
) -> io::Result<usize> {
    let slices = for_one_call(slices);
    let try_io = || transmit_by(io, slices, Some(site), |socket| writev(socket.get()?, slices));
    until_done(0 < size(slices) && io.full.get(), site, || room_to_write(io, site), try_io).await
}

/// The means of a socket to send a file without reading it. See
/// [`Stream::file_sender`](crate::Stream::file_sender).
///
/// sendfile(2) waits for the disk, so it is called on another thread, with a duplicate of the
/// socket. The socket stays in this thread, and no task may write to it in the meantime.
#[derive(Debug)]
pub struct FileSender<'s>(pub(crate) &'s Io<Socket>);

impl FileSender<'_> {
    /// Writes some of `bytes`, and lets the system wait for those of the file, so that both can be
    /// in one packet. Returns `None` if there is no room.
    pub(crate) fn send_before(&self, bytes: &[u8]) -> TryIo<usize> {
        let flags = system::SEND.union(system::MORE);
        let send = |socket: &Handle<'c'>| send(socket.get()?, bytes, flags);
        if self.0.full.get() {
            None
        } else {
            transmit_by(self.0, &[IoSlice::new(bytes)], None, send)
        }
    }

    /// Returns a duplicate of the socket, for one [`send_file`].
    pub(crate) fn duplicate(&self) -> io::Result<Handle<'c'>> {
        self.0.lent();
        record::call("duplicate", || Ok(self.0.fd.get()?.try_clone_to_owned()?.into()))
    }

    /// Records the result of a [`send_file`] of `asked` bytes from `at`.
    pub(crate) fn sent(
        &self,
        (at, asked): (u64, usize),
        sent: io::Result<usize>,
    ) -> io::Result<usize> {
        let n = record::sent_file((at, asked), || sent)?;
        // If the file was too short instead, the read of its next piece reports it.
        self.0.full.set(n < asked);
        self.0.written.set(self.0.written.get() + n as u64);
        if is_traced() {
            self.0.note(Direction::Write, n);
        }
        Ok(n)
    }
}

/// Sends at most `most` bytes of `file` from `at`, until the socket has no room or the file ends.
/// Blocks while the system reads the file, but not for the peer.
///
/// # Errors
///
/// Returns the system's error if nothing was sent.
pub(crate) fn send_file(
    socket: &Handle<'c'>,
    file: &Handle,
    mut at: u64,
    most: usize,
) -> io::Result<usize> {
    let mut sent = 0;
    // A call can also stop short at a signal. Only EAGAIN says that there will be an event.
    while sent < most {
        match system::sendfile(socket.get()?, file.get()?, Some(&mut at), most - sent) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(n) => sent += n,
            Err(Errno::INTR) => {}
            Err(error) if sent == 0 => return Err(error.into()),
            // The next call, read or write fails with it.
            Err(_) => break,
        }
    }
    Ok(sent)
}

// ---- The ends -----------------------------------------------------------------------------------

/// Shuts one direction or both down.
pub(crate) fn shutdown(io: &Io<Socket>, how: Shutdown) -> io::Result<()> {
    io.drained.set(false);
    io.full.set(false);
    record::call("shutdown", || SockRef::from(&io.fd.get()?).shutdown(how))
}

/// Waits until the peer has closed its side, or the connection has failed.
pub(crate) async fn closed(io: &Io<Socket>, site: Site) -> io::Result<()> {
    loop {
        // Wait first, to save the system call while nothing arrives.
        ready_to_read(io, site).await?;
        if is_any(&io.fd, system::CLOSED)? {
            return Ok(());
        }
    }
}

/// Returns whether the connection has failed, or both its directions have ended.
pub(crate) fn has_failed(io: &Io<Socket>) -> bool {
    // poll(2) reports an error or a hang-up even if no flags are asked for.
    is_any(&io.fd, PollFlags::empty()).unwrap_or(true)
}

/// Waits until all written bytes have been sent.
pub(crate) async fn sent(io: &Io<Socket>, site: Site) -> io::Result<()> {
    // From now on the system reports room only when every written byte has been sent.
    match record::call("notsent", || system::report_room_when_sent(io.fd.get()?)) {
        // Not TCP, so written bytes reach the peer at once; or the system cannot tell.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::OPNOTSUPP) => return Ok(()),
        set => set?,
    }
    io.full.set(false);
    while !is_any(&io.fd, PollFlags::OUT)? {
        room_to_write(io, site).await?;
    }
    Ok(())
}
