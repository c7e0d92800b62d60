//! TCP connections.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::panic::Location;

use rustix::io::Errno;
use socket2::SockRef;
use traps::Site;
use traps::io::Direction;

use crate::family::Inet;
use crate::happy_eyeballs::first;
use crate::record;
use crate::resolve::{ToAddress, failed, resolve};
use crate::socket::tcp_socket;
use crate::stream_socket::StreamSocket;

/// A TCP connection.
///
/// Dropping it closes the connection, as soon as the kernel has released the descriptor. Written
/// bytes are still sent, unless there are bytes left to read. In that case the system resets the
/// connection.
pub type TcpStream = StreamSocket<Inet>;

impl StreamSocket<Inet> {
    /// Connects to an address, or to `name:port`. Blocks the task. Small writes go out at once
    /// (`TCP_NODELAY`).
    ///
    /// If a name has several addresses, takes the first one that accepts the connection (RFC 8305,
    /// "happy eyeballs"). The IP versions take turns, starting with the version of the first
    /// address. The next address is tried when an attempt has failed, or 250 ms after the last
    /// attempt began; earlier attempts continue. Once an attempt succeeds, the other attempts are
    /// closed.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`resolve`]. If all addresses fail, returns the last error, with the
    /// same kind, and with the address and the number of addresses in its text. Returns the
    /// interrupt that ended the wait; then all attempts are closed.
    #[track_caller]
    pub fn connect<A: ToAddress>(
        address: A,
    ) -> impl Future<Output = io::Result<TcpStream>> + use<A> {
        let site = Location::caller();
        let name = address.to_address();
        let lookup = resolve(name.clone());
        async move {
            let found = lookup.await?;
            let count = found.len();
            let try_one = async |at| {
                // Only the last of the errors is reported.
                let behind = format!(" ({at}, the last of {count})");
                let behind = if name.parse() == Ok(at) { "" } else { &behind };
                let connected = connect_one(at, site).await;
                connected.map_err(|error| failed(format!("connect to {name}{behind}"), error))
            };
            first(found, site, try_one).await
        }
    }

    /// Sets whether small writes go out at once (the default here), or are gathered while sent
    /// bytes are not acknowledged.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        record::call("nodelay", || SockRef::from(&self.io.fd.get()?).set_tcp_nodelay(nodelay))
    }
}

/// Begins to connect, waits until the system has decided, and returns the result.
async fn connect_one(address: SocketAddr, site: Site) -> io::Result<TcpStream> {
    let stream =
        TcpStream::from_socket(record::call("socket", || Ok(tcp_socket(address)?.into()))?);
    let connect = || SockRef::from(&stream.io.fd.get()?).connect(&address.into());
    let begun = record::call("connect", connect);
    match begun.as_ref().map_err(Errno::from_io_error) {
        Err(Some(Errno::INPROGRESS | Errno::INTR)) => {}
        _ => return begun.map(|()| stream),
    }
    loop {
        stream.io.ready(Direction::Write, site).await?;
        // The result is the error of the connection, so that the record stores it as an error.
        record::call("connected", || {
            SockRef::from(&stream.io.fd.get()?).take_error()?.map_or(Ok(()), Err)
        })?;
        // Readiness can be spurious. Only a connected socket has a peer address.
        match stream.peer_addr() {
            Err(error) if error.kind() == ErrorKind::NotConnected => traps::budget().await?,
            peer => return peer.map(|_| stream),
        }
    }
}
