//! Unix sockets: connections, their listeners, and datagrams.

use std::future::Future;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::panic::Location;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketType, connect, listen, sendto, socket_with,
    socketpair,
};
use traps::sleep_from;

use crate::attempt::{attempt, until_done};
use crate::datagram_socket::DatagramSocket;
use crate::family::Unix;
use crate::limits::BACK_OFF_FIRST;
use crate::listener::{Listener, Options};
use crate::resolve::failed;
use crate::socket::{FLAGS, bound};
use crate::stream_socket::StreamSocket;

/// A Unix connection. Wherever a path is taken, one that begins with a zero byte is an abstract
/// name, which is in no file system.
///
/// Dropping it closes it, as dropping a [`TcpStream`](crate::TcpStream) does. The system knows no
/// reset of it: after a [`reset`](crate::Stream::reset) the peer reads a plain end.
pub type UnixStream = StreamSocket<Unix>;

/// A socket that accepts Unix connections.
pub type UnixListener = Listener<Unix>;

/// A Unix socket of datagrams. A send waits while the queue of the receiver is full, so that none
/// is lost.
pub type UnixDatagram = DatagramSocket<Unix>;

impl StreamSocket<Unix> {
    /// Connects to the listener at that path. Blocks the task while its backlog is full: it tries
    /// again every 5 ms, for the system does not tell when there is room.
    ///
    /// # Errors
    ///
    /// The system's, with its kind kept and the path named; the interrupt that ended the wait.
    #[track_caller]
    pub fn connect<P: AsRef<Path>>(
        path: P,
    ) -> impl Future<Output = io::Result<UnixStream>> + use<P> {
        let site = Location::caller();
        async move {
            let named = |error: io::Error| named("connect to", path.as_ref(), error);
            let address = address(path.as_ref()).map_err(|error| named(error.into()))?;
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None);
            let socket = socket.map_err(|error| named(error.into()))?;
            let wait = || sleep_from(BACK_OFF_FIRST, site);
            let connect = || attempt(|| connect(&socket, &address));
            until_done(false, site, wait, connect).await.map_err(named)?;
            Ok(StreamSocket::from_socket(socket))
        }
    }

    /// Two ends of one connection.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
        Ok((StreamSocket::from_socket(a), StreamSocket::from_socket(b)))
    }
}

impl Listener<Unix> {
    /// Listens at that path, which is not to exist. The file stays when the listener is dropped:
    /// remove it before the next one is bound. Never blocks.
    ///
    /// # Errors
    ///
    /// The system's, with its kind kept and the path named: `AddrInUse` if the path exists.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixListener> {
        let (path, backlog) = (path.as_ref(), Options::default().backlog);
        let socket = address(path).and_then(|address| bound(SocketType::STREAM, &address));
        let listening = socket.and_then(|fd| listen(&fd, backlog.cast_signed()).map(|()| fd));
        let socket = listening.map_err(|error| named("listen on", path, error))?;
        Ok(Listener::from_socket(socket, backlog))
    }
}

impl DatagramSocket<Unix> {
    /// Receives at that path, which is not to exist. The file stays when the socket is dropped.
    ///
    /// # Errors
    ///
    /// The system's, with its kind kept and the path named: `AddrInUse` if the path exists.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixDatagram> {
        let path = path.as_ref();
        let socket = address(path).and_then(|address| bound(SocketType::DGRAM, &address));
        socket.map(DatagramSocket::from_socket).map_err(|error| named("bind", path, error))
    }

    /// A socket without an address: it sends, and nobody can answer unless it is connected by
    /// [`UnixDatagram::pair`].
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn unbound() -> io::Result<UnixDatagram> {
        Ok(DatagramSocket::from_socket(socket_with(
            AddressFamily::UNIX,
            SocketType::DGRAM,
            FLAGS,
            None,
        )?))
    }

    /// Two sockets that are connected to each other.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn pair() -> io::Result<(UnixDatagram, UnixDatagram)> {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, FLAGS, None)?;
        Ok((DatagramSocket::from_socket(a), DatagramSocket::from_socket(b)))
    }

    /// From now on [`send`](DatagramSocket::send) sends to that path. Never blocks.
    ///
    /// # Errors
    ///
    /// The system's, with its kind kept and the path named.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let connected = address(path).and_then(|address| connect(&*self.io, &address));
        connected.map_err(|error| named("connect to", path, error))
    }

    /// Sends a datagram to that path, blocking while its receiver has no room for it. Returns how
    /// many bytes the system took: all of them.
    ///
    /// # Errors
    ///
    /// As for [`DatagramSocket::send`].
    #[track_caller]
    pub fn send_to<P: AsRef<Path>>(
        &self,
        buf: &[u8],
        path: P,
    ) -> impl Future<Output = io::Result<usize>> {
        let (address, site) = (address(path.as_ref()), Location::caller());
        let send = move |io: &_| sendto(io, buf, SendFlags::NOSIGNAL, &address.clone()?);
        self.send_by(send, site)
    }
}

/// The address that a path stands for.
fn address(path: &Path) -> Result<SocketAddrUnix, Errno> {
    match path.as_os_str().as_bytes() {
        // The system would choose a name.
        [] => Err(Errno::INVAL),
        [0, name @ ..] => SocketAddrUnix::new_abstract_name(name),
        path => SocketAddrUnix::new(path),
    }
}

/// The error, saying what could not be done to that path.
fn named(what: &str, path: &Path, error: impl Into<io::Error>) -> io::Error {
    failed(format!("{what} {}", path.display()), error.into())
}
