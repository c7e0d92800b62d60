//! TCP connections.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::panic::Location;

use rustix::io::Errno;
use socket2::SockRef;
use traps::core::names::Site;
use traps::io::Direction;

use crate::family::Inet;
use crate::happy_eyeballs::first;
use crate::resolve::{failed, resolve};
use crate::socket::tcp_socket;
use crate::stream_socket::StreamSocket;

/// A TCP connection.
///
/// Dropping it closes it: the kernel does, as soon as it has let go of the descriptor. Bytes that
/// were written still go out, unless there are unread ones: then the system resets the connection.
pub type TcpStream = StreamSocket<Inet>;

impl StreamSocket<Inet> {
    /// Connects to an address, or to `name:port`. Blocks the task. Small writes go out at once
    /// (`TCP_NODELAY`).
    ///
    /// Of a name with several addresses the first that answers is taken (RFC 8305, "happy
    /// eyeballs"). The versions of IP take turns, IPv6 first. The next address is tried when one
    /// has failed, or 250 ms after the last try began, which goes on meanwhile. What is half made
    /// when one answers is closed.
    ///
    /// # Errors
    ///
    /// Those of [`resolve`]; else the error of the address that failed last, with its kind kept,
    /// the address named, and how many there were; the interrupt that ended the wait, which closes
    /// all that is half made.
    #[track_caller]
    pub fn connect<A: ToString>(
        address: A,
    ) -> impl Future<Output = io::Result<TcpStream>> + use<A> {
        let site = Location::caller();
        let name = address.to_string();
        let lookup = resolve(name.clone());
        async move {
            let found = lookup.await?;
            let count = found.len();
            let try_one = async |at| {
                // Of the errors only the last is seen.
                let behind = format!(" ({at}, the last of {count})");
                let behind = if name.parse() == Ok(at) { "" } else { &behind };
                let connected = connect_one(at, site).await;
                connected.map_err(|error| failed(format!("connect to {name}{behind}"), error))
            };
            first(found, site, try_one).await
        }
    }

    /// Whether small writes go out at once (the default here) or are gathered while an answer is
    /// outstanding.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        SockRef::from(&self.io.fd).set_tcp_nodelay(nodelay)
    }
}

/// Begins a connection, waits until the system has decided, and asks how.
async fn connect_one(address: SocketAddr, site: Site) -> io::Result<TcpStream> {
    let socket = tcp_socket(address)?;
    let begun = socket.connect(&address.into());
    let stream = TcpStream::from_socket(socket);
    match begun.as_ref().map_err(Errno::from_io_error) {
        Err(Some(Errno::INPROGRESS | Errno::INTR)) => {}
        _ => return begun.map(|()| stream),
    }
    loop {
        stream.io.ready(Direction::Write, site).await?;
        if let Some(error) = SockRef::from(&stream.io.fd).take_error()? {
            return Err(error);
        }
        // Readiness may be spurious; only a connected socket has a peer.
        match stream.peer_addr() {
            Err(error) if error.kind() == ErrorKind::NotConnected => traps::budget().await?,
            peer => return peer.map(|_| stream),
        }
    }
}
