//! Sockets of datagrams of either family, and UDP.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::panic::Location;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketType, connect, recvfrom, send, sendto};
use traps::core::names::Site;
use traps::ignore_after;
use traps::io::{Direction, Io};

use crate::attempt::{attempt, until_done};
use crate::family::{Family, Inet, local_addr};
use crate::limits::BACK_OFF_FIRST;
use crate::resolve::{failed, ip_address};
use crate::socket::bound;

/// A socket of datagrams of a family: a [`UdpSocket`] or a [`UnixDatagram`](crate::UnixDatagram).
///
/// All its methods take `&self`: one task may send while another receives, with the socket in an
/// `Rc`. A datagram is sent and received whole, so an operation that was interrupted has sent or
/// received none.
#[derive(Debug)]
pub struct DatagramSocket<F> {
    pub(crate) io: Io<OwnedFd>,
    /// Bytes of the datagram that was received last.
    len: Cell<usize>,
    family: PhantomData<F>,
}

/// A UDP socket.
///
/// ```
/// use std::io;
/// use net::UdpSocket;
/// use traps::Interruptible;
///
/// /// Sends each datagram back to where it came from.
/// async fn echo(socket: UdpSocket) -> io::Result<()> {
///     let mut buf = [0; 1500];
///     loop {
///         let (n, peer) = socket.recv_from(&mut buf).await?;
///         // Whoever sends may name an address to which nothing can be sent.
///         if let Err(error) = socket.send_to(&buf[..n], peer).await
///             && error.interrupt().is_some()
///         {
///             return Err(error);
///         }
///     }
/// }
/// ```
pub type UdpSocket = DatagramSocket<Inet>;

impl DatagramSocket<Inet> {
    /// Takes an IP address and port; port 0 lets the system choose. Never blocks, so it looks up no
    /// names.
    ///
    /// # Errors
    ///
    /// The system's, with its kind kept and the address named: `AddrInUse`, `PermissionDenied`.
    /// `InvalidInput` for a name.
    pub fn bind(address: impl ToString) -> io::Result<UdpSocket> {
        let address = address.to_string();
        let socket = ip_address(&address).and_then(|ip| Ok(bound(SocketType::DGRAM, &ip)?));
        let socket = socket.map_err(|error| failed(format!("bind {address}"), error))?;
        Ok(DatagramSocket::from_socket(socket))
    }

    /// From now on [`send`](DatagramSocket::send) sends to that address, and datagrams are received
    /// from there only. Never blocks.
    ///
    /// # Errors
    ///
    /// The system's, with its kind kept and the address named.
    pub fn connect(&self, address: SocketAddr) -> io::Result<()> {
        let connected = connect(&*self.io, &address);
        connected.map_err(|error| failed(format!("connect to {address}"), error.into()))
    }

    /// Sends a datagram to that address, blocking while the system has no room for it. Returns how
    /// many bytes it took: all of them.
    ///
    /// # Errors
    ///
    /// As for [`DatagramSocket::send`].
    #[track_caller]
    pub fn send_to(
        &self,
        buf: &[u8],
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<usize>> {
        let send = move |io: &_| sendto(io, buf, SendFlags::NOSIGNAL, &address);
        self.send_by(send, Location::caller())
    }
}

impl<F: Family> DatagramSocket<F> {
    /// Takes a socket in non-blocking mode.
    pub(crate) fn from_socket(socket: impl Into<OwnedFd>) -> DatagramSocket<F> {
        DatagramSocket { io: Io::new(socket.into()), len: Cell::new(0), family: PhantomData }
    }

    /// Makes attempts to send until one comes to something. While there is no room it looks again
    /// every 5 ms as well: the system does not tell when another socket has room, unless this one
    /// is connected to it.
    pub(crate) async fn send_by(
        &self,
        send: impl Fn(&OwnedFd) -> Result<usize, Errno>,
        site: Site,
    ) -> io::Result<usize> {
        let wait = || ignore_after(BACK_OFF_FIRST, self.io.ready(Direction::Write, site));
        let n = until_done(false, site, wait, || attempt(|| send(&self.io))).await?;
        self.io.note(Direction::Write, n);
        Ok(n)
    }

    /// Sends a datagram to the address that the socket is connected to, blocking while there is no
    /// room for it. Returns how many bytes the system took: all of them.
    ///
    /// # Errors
    ///
    /// The system's, for example that it is not connected, or `ConnectionRefused` for an earlier
    /// datagram; `ResourceBusy` if another task waits to send already; the interrupt that ended the
    /// wait: nothing was sent then.
    #[track_caller]
    pub fn send(&self, buf: &[u8]) -> impl Future<Output = io::Result<usize>> {
        self.send_by(|io| send(io, buf, SendFlags::NOSIGNAL), Location::caller())
    }

    /// Receives a datagram into `buf`; blocks while there is none. Returns how many bytes of `buf`
    /// it has filled. What does not fit is lost, and [`DatagramSocket::last_len`] tells so.
    ///
    /// # Errors
    ///
    /// The system's, for example `ConnectionRefused` for an earlier datagram of ours;
    /// `ResourceBusy` if another task waits to receive already; the interrupt that ended the wait:
    /// nothing was received then.
    #[track_caller]
    pub fn recv(&self, buf: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        let received = self.receive(buf, Location::caller());
        async { Ok(received.await?.0) }
    }

    /// Like [`DatagramSocket::recv`], with the address that the datagram came from.
    ///
    /// # Errors
    ///
    /// As for [`DatagramSocket::recv`].
    #[track_caller]
    pub fn recv_from(
        &self,
        buf: &mut [u8],
    ) -> impl Future<Output = io::Result<(usize, F::Address)>> {
        self.receive(buf, Location::caller())
    }

    async fn receive(&self, buf: &mut [u8], site: Site) -> io::Result<(usize, F::Address)> {
        let io = &self.io;
        let receive = || attempt(|| recvfrom(&**io, &mut *buf, RecvFlags::TRUNC));
        let received = until_done(false, site, || io.ready(Direction::Read, site), receive);
        let (n, len, from) = received.await?;
        self.len.set(len);
        io.note(Direction::Read, n);
        Ok((n, F::address(from).expect("a datagram comes from the socket's family")))
    }

    /// How many bytes the datagram had that was received last. If they are more than were given,
    /// its rest is lost.
    #[must_use]
    pub fn last_len(&self) -> usize {
        self.len.get()
    }

    /// The address of this end.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn local_addr(&self) -> io::Result<F::Address> {
        local_addr::<F>(&*self.io)
    }
}
