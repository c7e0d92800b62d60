//! TCP connections.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::panic::Location;
use std::task::Context;
use std::time::Duration;

use rustix::io::Errno;
use socket2::SockRef;
use traps::core::names::Site;
use traps::io::{Direction, Io, Source};
use traps::{Interruptible, take_budget};

use crate::resolve::{failed, resolve};
use crate::socket::{self, Readable, Socket};
use crate::stream::Stream;

/// A TCP connection: a [`Stream`]. The two methods that a small program needs are here as well.
///
/// Dropping it closes it: the kernel does, as soon as it has let go of the descriptor. Bytes that
/// were written still go out, unless there are unread ones: then the system resets the connection.
#[derive(Debug)]
pub struct TcpStream {
    io: Io<Socket>,
}

impl TcpStream {
    /// Connects to an address, or to `name:port`: to each address behind the name in turn until
    /// one answers. Blocks the task. Small writes go out at once (`TCP_NODELAY`).
    ///
    /// # Errors
    ///
    /// Those of [`resolve`]; else the last address's error, with its kind kept and the address
    /// named; the interrupt that ended the wait, which closes the half-made connection.
    #[track_caller]
    pub fn connect<A: ToString>(
        address: A,
    ) -> impl Future<Output = io::Result<TcpStream>> + use<A> {
        let site = Location::caller();
        let name = address.to_string();
        let lookup = resolve(name.clone());
        async move {
            let mut last = None;
            for candidate in lookup.await? {
                let is_named = name.parse() != Ok(candidate);
                let behind = if is_named { format!(" ({candidate})") } else { String::new() };
                let connected = connect_one(candidate, site).await;
                match connected.map_err(|e| failed(format!("connect to {name}{behind}"), e)) {
                    Err(error) if error.interrupt().is_none() => last = Some(Err(error)),
                    done => return done,
                }
            }
            last.expect("a look-up finds an address or fails")
        }
    }

    /// Takes a connected socket in non-blocking mode of which no duplicate exists.
    pub(crate) fn from_socket(socket: impl Into<std::net::TcpStream>) -> TcpStream {
        TcpStream { io: Io::new(Socket::new(socket.into())) }
    }

    /// The log introduces it as what that listener accepted.
    #[inline]
    pub(crate) fn accepted_by<L: Source>(self, listener: &Io<L>) -> TcpStream {
        listener.note_accept(&self.io, || self.peer_addr().ok());
        self
    }

    /// Reads what is there into `buf`; blocks while nothing is. Zero: the peer has finished
    /// writing (or `buf` is empty).
    ///
    /// # Errors
    ///
    /// The system's, for example `ConnectionReset`; `ResourceBusy` if another task reads already;
    /// the interrupt that ended the wait: nothing was read then.
    #[track_caller]
    pub fn read(&mut self, buf: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        socket::read(&self.io, buf, Location::caller())
    }

    /// Writes all of `buf`, blocking whenever there is no room.
    ///
    /// # Errors
    ///
    /// The system's, for example `BrokenPipe`; `ResourceBusy` if another task writes already; the
    /// interrupt that ended the wait. Some of `buf` may be written then; how much is the difference
    /// in [`TcpStream::written`].
    #[track_caller]
    pub fn write_all(&mut self, buf: &[u8]) -> impl Future<Output = io::Result<()>> {
        socket::write_all(&self.io, buf, Location::caller())
    }

    /// How many bytes the system has taken in all: how far a `write_all` came before its error.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.io.written.get()
    }

    /// Two halves, for two tasks or two branches of a join: one reads while the other writes.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        (ReadHalf(&self.io), WriteHalf(&self.io))
    }

    /// Ends one direction or both. The peer reads the end of the stream after what was written.
    ///
    /// # Errors
    ///
    /// The system's, for example `NotConnected`.
    pub fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.io.drained.set(false);
        self.io.full.set(false);
        self.io.stream.shutdown(how)
    }

    /// The address of the other end.
    ///
    /// # Errors
    ///
    /// The system's: `NotConnected` when the connection was reset.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.stream.peer_addr()
    }

    /// The address of this end.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.stream.local_addr()
    }

    /// Whether small writes go out at once (the default here) or are gathered while an answer is
    /// outstanding.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.io.stream.set_nodelay(nodelay)
    }

    /// Asks the system for buffers of so many bytes for receiving and for sending.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn set_buffer_sizes(&self, receive: usize, send: usize) -> io::Result<()> {
        let socket = SockRef::from(&self.io.stream);
        socket.set_recv_buffer_size(receive)?;
        socket.set_send_buffer_size(send)
    }
}

/// The reading half of a [`TcpStream`].
#[derive(Debug)]
pub struct ReadHalf<'s>(pub(crate) &'s Io<Socket>);

impl ReadHalf<'_> {
    /// [`TcpStream::read`].
    #[track_caller]
    pub fn read(&mut self, buf: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        socket::read(self.0, buf, Location::caller())
    }
}

/// The writing half of a [`TcpStream`].
#[derive(Debug)]
pub struct WriteHalf<'s>(pub(crate) &'s Io<Socket>);

impl WriteHalf<'_> {
    /// [`TcpStream::write_all`].
    #[track_caller]
    pub fn write_all(&mut self, buf: &[u8]) -> impl Future<Output = io::Result<()>> {
        socket::write_all(self.0, buf, Location::caller())
    }

    /// Ends this direction: the peer reads the end of the stream after what was written.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn shutdown(&mut self) -> io::Result<()> {
        self.0.full.set(false);
        self.0.stream.shutdown(Shutdown::Write)
    }
}

impl Stream for TcpStream {
    fn read_from(&mut self, buf: &mut [u8], site: Site) -> impl Future<Output = io::Result<usize>> {
        socket::read(&self.io, buf, site)
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
        socket::write(&self.io, bufs, site).await
    }

    #[track_caller]
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        Readable::new(&self.io, Location::caller())
    }

    #[inline(always)]
    fn try_read(&mut self, buf: &mut [u8], _: &mut Context<'_>) -> Option<io::Result<usize>> {
        if take_budget() { socket::receive(&self.io, buf) } else { None }
    }

    #[inline(always)]
    fn try_write(&mut self, buf: &[u8], _: &mut Context<'_>) -> Option<io::Result<usize>> {
        if self.io.full.take() && !buf.is_empty() || !take_budget() {
            return None;
        }
        socket::transmit(&self.io, buf)
    }

    fn shutdown(&mut self) -> io::Result<()> {
        TcpStream::shutdown(self, Shutdown::Write)
    }

    fn reset(&mut self) -> io::Result<()> {
        // A close that lingers for no time throws away what is unsent, and resets.
        SockRef::from(&self.io.stream).set_linger(Some(Duration::ZERO))
    }

    #[track_caller]
    fn closed(&mut self) -> impl Future<Output = io::Result<()>> {
        socket::closed(&self.io, Location::caller())
    }

    #[track_caller]
    fn sent(&mut self) -> impl Future<Output = io::Result<()>> {
        socket::sent(&self.io, Location::caller())
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        self.io.stream.peer_addr().ok()
    }
}

/// Begins a connection, waits until the system has decided, and asks how.
async fn connect_one(address: SocketAddr, site: Site) -> io::Result<TcpStream> {
    let socket = socket::tcp_socket(address)?;
    let begun = socket.connect(&address.into());
    let stream = TcpStream::from_socket(socket);
    match begun.as_ref().map_err(Errno::from_io_error) {
        Err(Some(Errno::INPROGRESS | Errno::INTR)) => {}
        _ => return begun.map(|()| stream),
    }
    loop {
        stream.io.ready(Direction::Write, site).await?;
        if let Some(error) = stream.io.stream.take_error()? {
            return Err(error);
        }
        // Readiness may be spurious; only a connected socket has a peer.
        match stream.peer_addr() {
            Err(error) if error.kind() == ErrorKind::NotConnected => traps::budget().await?,
            peer => return peer.map(|_| stream),
        }
    }
}
