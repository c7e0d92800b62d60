//! Unix sockets: connections, their listeners, and datagrams.

use std::future::Future;
use std::io;
use std::os::fd::BorrowedFd;
use std::panic::Location;
use std::path::Path;

use rustix::net::{AddressFamily, SocketType, connect, listen, sendto, socketpair};
use traps::internal::sleep_from;

use crate::datagram_socket::DatagramSocket;
use crate::family::Unix;
use crate::limits::BACK_OFF_FIRST;
use crate::listener::{Listener, Options};
use crate::record::{self, Handle};
use crate::resolve::failed;
use crate::socket::bound;
use crate::stream_socket::StreamSocket;
use crate::system::{self, address, prepared};
use crate::try_io::{try_io, until_done};

/// A Unix connection. In every path here, a first byte of zero marks an abstract name, which is not
/// in the file system.
///
/// Dropping it closes the connection, as for a [`TcpStream`](crate::TcpStream). The system has no
/// reset for it: after a [`reset`](crate::Stream::reset) the peer reads a plain end.
pub type UnixStream = StreamSocket<Unix>;

/// A socket that accepts Unix connections.
pub type UnixListener = Listener<Unix>;

/// A Unix datagram socket. A send waits while the receiver's queue is full, so no datagram is lost.
pub type UnixDatagram = DatagramSocket<Unix>;

impl StreamSocket<Unix> {
    /// Connects to the listener at `path`. Blocks the task while the listener's backlog is full.
    /// Tries again every 5 ms, because the system does not report room in a backlog.
    ///
    /// # Errors
    ///
    /// Returns the system's error, with the same kind and with the path in its text, and the
    /// interrupt that ended the wait.
    #[track_caller]
    pub fn connect<P: AsRef<Path>>(
        path: P,
    ) -> impl Future<Output = io::Result<UnixStream>> + use<P> {
        let site = Location::caller();
        async move {
            let named = |error: io::Error| named("connect to", path.as_ref(), error);
            let address = address(path.as_ref()).map_err(|error| named(error.into()))?;
            let socket = socket(SocketType::STREAM).map_err(named)?;
            let wait = || sleep_from(BACK_OFF_FIRST, site);
            let connect = || try_io(|| connect(socket.get()?, &address));
            let connect = || record::try_io("connect", connect);
            until_done(false, site, wait, connect).await.map_err(named)?;
            Ok(StreamSocket::from_socket(socket))
        }
    }

    /// Makes a connection, and returns its two ends.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let (a, b) = pair(SocketType::STREAM)?;
        Ok((StreamSocket::from_socket(a), StreamSocket::from_socket(b)))
    }
}

impl Listener<Unix> {
    /// Listens at `path`, which must not exist yet. The file stays when the listener is dropped:
    /// remove it before the next bind. Never blocks.
    ///
    /// # Errors
    ///
    /// Returns the system's error, with the same kind and with the path in its text: `AddrInUse` if
    /// the path exists.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixListener> {
        let (path, backlog) = (path.as_ref(), Options::default().backlog);
        let listening = || {
            let fd = bound(SocketType::STREAM, &address(path)?)?;
            listen(&fd, backlog.cast_signed())?;
            Ok(fd.into())
        };
        let socket = record::call("listen", listening);
        let socket = socket.map_err(|error| named("listen on", path, error))?;
        Ok(Listener::from_socket(socket, backlog))
    }
}

impl DatagramSocket<Unix> {
    /// Makes a socket that receives at `path`, which must not exist yet. The file stays when the
    /// socket is dropped.
    ///
    /// # Errors
    ///
    /// Returns the system's error, with the same kind and with the path in its text: `AddrInUse` if
    /// the path exists.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixDatagram> {
        let path = path.as_ref();
        let bound = || Ok(bound(SocketType::DGRAM, &address(path)?)?.into());
        let socket = record::call("bind", bound);
        socket.map(DatagramSocket::from_socket).map_err(|error| named("bind", path, error))
    }

    /// Makes a socket without an address. It can send, but no receiver can answer it. (Only the two
    /// sockets of [`UnixDatagram::pair`] can answer each other without addresses.)
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn unbound() -> io::Result<UnixDatagram> {
        Ok(DatagramSocket::from_socket(socket(SocketType::DGRAM)?))
    }

    /// Makes two sockets that are connected to each other.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn pair() -> io::Result<(UnixDatagram, UnixDatagram)> {
        let (a, b) = pair(SocketType::DGRAM)?;
        Ok((DatagramSocket::from_socket(a), DatagramSocket::from_socket(b)))
    }

    /// Connects the socket to `path`: from now on [`send`](DatagramSocket::send) sends to `path`.
    /// Never blocks.
    ///
    /// # Errors
    ///
    /// Returns the system's error, with the same kind and with the path in its text.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let connect = || Ok(connect(self.io.get()?, &address(path)?)?);
        let connected = record::call("connect", connect);
        connected.map_err(|error| named("connect to", path, error))
    }

    /// Sends a datagram to `path`. Blocks while the receiver has no room for it. Returns the number
    /// of bytes sent, which is all of them.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`DatagramSocket::send`].
    #[track_caller]
    pub fn send_to<P: AsRef<Path>>(
        &self,
        buf: &[u8],
        path: P,
    ) -> impl Future<Output = io::Result<usize>> {
        let (address, site) = (address(path.as_ref()), Location::caller());
        let send = move |fd: BorrowedFd<'_>| sendto(fd, buf, system::SEND, &address.clone()?);
        self.send_by(buf, send, site)
    }
}

/// Makes a socket of this type.
fn socket<const KIND: char>(kind: SocketType) -> io::Result<Handle<KIND>> {
    record::call("socket", || Ok(system::socket(AddressFamily::UNIX, kind)?.into()))
}

/// Makes two sockets that are connected with each other.
fn pair<const KIND: char>(kind: SocketType) -> io::Result<(Handle<KIND>, Handle<KIND>)> {
    record::call("pair", || {
        let (a, b) = socketpair(AddressFamily::UNIX, kind, system::SOCKET, None)?;
        Ok((prepared(a)?.into(), prepared(b)?.into()))
    })
}

/// Wraps an error in another error, which names the failed action and the path.
fn named(what: &str, path: &Path, error: impl Into<io::Error>) -> io::Error {
    failed(format!("{what} {}", path.display()), error.into())
}
