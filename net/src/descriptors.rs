//! Descriptors: the conversion of sockets from and to the standard library, and the descriptor of a
//! socket for other libraries.
//!
//! In a replayed run a socket has no descriptor. There, other libraries get a *placeholder*.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net as unix;
use std::sync::OnceLock;

use rustix::net::{AddressFamily, SocketType, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use traps::internal::tape;

use crate::datagram_socket::DatagramSocket;
use crate::family::{Family, Inet, Unix};
use crate::listener::Listener;
use crate::record::{self, Handle};
use crate::serve::Connection;
use crate::stream_socket::StreamSocket;

/// Raises the soft limit of open files to the hard limit, which any process is allowed to do.
/// Returns the limit now in force, or `u64::MAX` if there is none. Child processes inherit the
/// limit.
///
/// # Errors
///
/// Returns the system's error. Then the limit is unchanged.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(maximum.unwrap_or(u64::MAX))
}

/// Returns the descriptor of a socket. For a replayed socket, returns the placeholder: an
/// unconnected socket of the same type, shared by all replayed sockets of the process. So options
/// can be set there too.
fn lend<const KIND: char>(handle: &Handle<KIND>, kind: SocketType) -> BorrowedFd<'_> {
    static STAND_INS: [OnceLock<OwnedFd>; 2] = [OnceLock::new(), OnceLock::new()];
    let make = || {
        let make = |family| socket(family, kind, None);
        // A socket of IPv6 has the options of IPv4 as well.
        let made = make(AddressFamily::INET6).or_else(|_| make(AddressFamily::INET));
        made.expect("rule: a replayed socket has a placeholder as its descriptor")
    };
    let stand_in = || STAND_INS[usize::from(kind == SocketType::DGRAM)].get_or_init(make).as_fd();
    handle.get().unwrap_or_else(|_| stand_in())
}

/// The descriptor of the connection, for other libraries: `socket2::SockRef` has the options that
/// have no method here. Do not close it, and leave it in non-blocking mode. After the first call,
/// closing the connection costs one more system call, because a duplicate may exist.
///
/// In a [replayed](traps::is_replaying) run there is no connection, and this is the descriptor of
/// an unconnected socket. Options can be set. Results that the program reads through this
/// descriptor are not in the record, so the program must not depend on them.
///
/// ```
/// use std::io;
/// use std::time::Duration;
///
/// use net::TcpStream;
/// use socket2::{SockRef, TcpKeepalive};
///
/// /// Asks a silent peer after a minute whether it is still there.
/// fn keep_alive(stream: &TcpStream) -> io::Result<()> {
///     let options = TcpKeepalive::new().with_time(Duration::from_secs(60));
///     SockRef::from(stream).set_tcp_keepalive(&options)
/// }
/// # let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let stream = std::net::TcpStream::connect(listener.local_addr()?)?;
/// # let stream = TcpStream::try_from(stream)?;
/// # keep_alive(&stream)?;
/// # assert!(SockRef::from(&stream).keepalive()?);
/// # io::Result::Ok(())
/// ```
impl<F: Family> AsFd for StreamSocket<F> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.lent();
        lend(&self.io.fd, SocketType::STREAM)
    }
}

/// The descriptor of the listener, like that of a [`StreamSocket`].
impl<F: Family> AsFd for Listener<F> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        lend(&self.io, SocketType::STREAM)
    }
}

/// The descriptor of the socket, like that of a [`StreamSocket`].
impl<F: Family> AsFd for DatagramSocket<F> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        lend(&self.io, SocketType::DGRAM)
    }
}

/// The descriptor of the stream.
impl<S: AsFd> AsFd for Connection<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }
}

macro_rules! conversions {
    ($($ours:ident<$family:ident>, $std:ty, $make:expr;)*) => {$(
        impl TryFrom<$std> for $ours<$family> {
            type Error = io::Error;

            /// Takes over a socket of the standard library, and puts it into non-blocking mode. Its
            /// other options do not change. For example, `TCP_NODELAY` is not set.
            fn try_from(socket: $std) -> io::Result<$ours<$family>> {
                let taken = record::call("std", || {
                    socket.set_nonblocking(true)?;
                    Ok(Handle::from(socket))
                });
                taken.map($make)
            }
        }

        impl $ours<$family> {
            /// Returns the socket as one of the standard library. It stays in non-blocking mode.
            /// Bytes and connections that have arrived are not lost.
            ///
            /// # Errors
            ///
            /// Returns the system's error, and `Unsupported` in a replayed run. After an error the
            /// socket is closed.
            pub fn into_std(self) -> io::Result<$std> {
                if tape::answers() {
                    return Err(ErrorKind::Unsupported.into());
                }
                // The kernel closes the original once it has unregistered it.
                Ok(self.as_fd().try_clone_to_owned()?.into())
            }
        }

        impl AsRawFd for $ours<$family> {
            fn as_raw_fd(&self) -> RawFd {
                self.as_fd().as_raw_fd()
            }
        }
    )*};
}

conversions! {
    StreamSocket<Inet>, std::net::TcpStream, StreamSocket::from_std;
    StreamSocket<Unix>, unix::UnixStream, StreamSocket::from_std;
    Listener<Inet>, std::net::TcpListener, |socket| Listener::from_socket(socket, u32::MAX);
    Listener<Unix>, unix::UnixListener, |socket| Listener::from_socket(socket, u32::MAX);
    DatagramSocket<Inet>, std::net::UdpSocket, DatagramSocket::from_socket;
    DatagramSocket<Unix>, unix::UnixDatagram, DatagramSocket::from_socket;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let limit = raise_descriptor_limit().unwrap();
        assert_eq!(raise_descriptor_limit().unwrap(), limit);
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
    }
}
