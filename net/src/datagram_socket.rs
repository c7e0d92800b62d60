//! Datagram sockets of either address family, and the functions of UDP.

use std::cell::Cell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::panic::Location;

use rustix::io::Errno;
use rustix::net::{SocketType, connect, recvfrom, send, sendto};
use socket2::SockRef;
use traps::Site;
use traps::ignore_after;
use traps::io::{Direction, Io};

use crate::family::{Family, Inet, local_addr};
use crate::limits::BACK_OFF_FIRST;
use crate::record::{self, Handle};
use crate::resolve::{ToAddress, failed, ip_address};
use crate::socket::bound;
use crate::system;
use crate::try_io::{note_site, try_io, until_done};

/// A datagram socket of an address family: a [`UdpSocket`] or a
/// [`UnixDatagram`](crate::UnixDatagram).
///
/// All methods take `&self`. If the socket is in an `Rc`, one task can send while another receives.
/// A datagram is sent or received as a whole, so an interrupted operation has sent or received
/// nothing.
#[derive(Debug)]
pub struct DatagramSocket<F> {
    pub(crate) io: Io<Handle>,
    /// The full length of the last received datagram, in bytes.
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
/// /// Sends each datagram back to its sender.
/// async fn echo(socket: UdpSocket) -> io::Result<()> {
///     let mut buf = [0; 1500];
///     loop {
///         let (n, peer) = socket.recv_from(&mut buf).await?;
///         // A sender can give an address to which the system cannot send.
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
    /// Makes a socket with the given IP address and port. With port 0 the system chooses a port.
    /// Never blocks, so it looks up no names.
    ///
    /// # Errors
    ///
    /// Returns the system's error, with the same kind and with the address in its text:
    /// `AddrInUse`, `PermissionDenied`. Returns `InvalidInput` if `address` is a name.
    pub fn bind(address: impl ToAddress) -> io::Result<UdpSocket> {
        let address = address.to_address();
        let bound = |ip| record::call("bind", || Ok(bound(SocketType::DGRAM, &ip)?.into()));
        let socket = ip_address(&address).and_then(bound);
        let socket = socket.map_err(|error| failed(format!("bind {address}"), error))?;
        Ok(DatagramSocket::from_socket(socket))
    }

    /// Connects the socket to an address. From now on [`send`](DatagramSocket::send) sends to this
    /// address, and the socket receives only datagrams from it. Never blocks, so it looks up no
    /// names.
    ///
    /// # Errors
    ///
    /// Returns the system's error, with the same kind and with the address in its text. Returns
    /// `InvalidInput` if `address` is a name.
    pub fn connect(&self, address: impl ToAddress) -> io::Result<()> {
        let address = address.to_address();
        let connect = |ip| record::call("connect", || Ok(connect(self.io.get()?, &ip)?));
        ip_address(&address)
            .and_then(connect)
            .map_err(|error| failed(format!("connect to {address}"), error))
    }

    /// Sends a datagram to `address`. Blocks while the system has no room for it. Returns the
    /// number of bytes sent, which is all of them.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`DatagramSocket::send`].
    #[track_caller]
    pub fn send_to(
        &self,
        buf: &[u8],
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<usize>> {
        let send = move |fd: BorrowedFd<'_>| sendto(fd, buf, system::SEND, &address);
        self.send_by(buf, send, Location::caller())
    }

    /// Sets whether the socket may send to a broadcast address. Without this, such a send fails
    /// with `PermissionDenied`.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        self.set("broadcast", |socket| socket.set_broadcast(broadcast))
    }

    /// Joins a multicast group at the interface with this address, or at one that the system
    /// chooses if the address is unspecified. From now on the socket receives the datagrams that
    /// are sent to the group and to its port. (`socket2::SockRef` has the other options of
    /// multicast.)
    ///
    /// # Errors
    ///
    /// Returns the system's error: `AddrInUse` if the socket has joined the group before.
    pub fn join_multicast_v4(&self, group: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()> {
        self.set("join", |socket| socket.join_multicast_v4(group, interface))
    }

    /// Joins a multicast group, as [`join_multicast_v4`](DatagramSocket::join_multicast_v4) does,
    /// at the interface with this index, or at one that the system chooses for index zero.
    ///
    /// # Errors
    ///
    /// Returns the system's error: `AddrInUse` if the socket has joined the group before.
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.set("join", |socket| socket.join_multicast_v6(group, interface))
    }

    /// Leaves a multicast group at an interface, both as they were joined.
    ///
    /// # Errors
    ///
    /// Returns the system's error: `AddrNotAvailable` if the socket is not in the group.
    pub fn leave_multicast_v4(&self, group: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()> {
        self.set("leave", |socket| socket.leave_multicast_v4(group, interface))
    }

    /// Leaves a multicast group at an interface, both as they were joined.
    ///
    /// # Errors
    ///
    /// Returns the system's error: `AddrNotAvailable` if the socket is not in the group.
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.set("leave", |socket| socket.leave_multicast_v6(group, interface))
    }

    fn set(
        &self,
        option: &'static str,
        set: impl FnOnce(SockRef<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        record::call(option, || set(SockRef::from(&self.io.get()?)))
    }
}

impl<F: Family> DatagramSocket<F> {
    /// Takes ownership of a socket in non-blocking mode.
    pub(crate) fn from_socket(socket: Handle) -> DatagramSocket<F> {
        DatagramSocket { io: Io::new(socket), len: Cell::new(0), family: PhantomData }
    }

    /// Repeats `send` until it does not fail with `EAGAIN`. While there is no room, also tries
    /// again every 5 ms, because the system reports room in the receiver's queue only if this
    /// socket is connected to the receiver.
    pub(crate) async fn send_by(
        &self,
        buf: &[u8],
        send: impl Fn(BorrowedFd<'_>) -> Result<usize, Errno>,
        site: Site,
    ) -> io::Result<usize> {
        note_site(site);
        let wait = || ignore_after(BACK_OFF_FIRST, self.io.ready(Direction::Write, site));
        let send = || try_io(|| send(self.io.get()?));
        let send = || record::sent(&[IoSlice::new(buf)], send);
        let n = until_done(false, site, wait, send).await?;
        self.io.note(Direction::Write, n);
        Ok(n)
    }

    /// Sends a datagram to the connected address. Blocks while there is no room for it. Returns the
    /// number of bytes sent, which is all of them.
    ///
    /// # Errors
    ///
    /// Returns the system's error, for example if the socket is not connected, or
    /// `ConnectionRefused` for an earlier datagram. Returns `ResourceBusy` if another task is
    /// waiting to send, and the interrupt that ended the wait. After an error nothing was sent.
    #[track_caller]
    pub fn send(&self, buf: &[u8]) -> impl Future<Output = io::Result<usize>> {
        self.send_by(buf, |fd| send(fd, buf, system::SEND), Location::caller())
    }

    /// Receives a datagram into `buf`. Blocks while there is none. Returns the number of bytes
    /// written to `buf`. The part that does not fit is lost; [`DatagramSocket::last_len`] returns
    /// the full length.
    ///
    /// # Errors
    ///
    /// Returns the system's error, for example `ConnectionRefused` for a datagram that this socket
    /// sent. Returns `ResourceBusy` if another task is waiting to receive, and the interrupt that
    /// ended the wait. After an error nothing was received.
    #[track_caller]
    pub fn recv(&self, buf: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        let received = self.receive(buf, Location::caller());
        async { Ok(received.await?.0) }
    }

    /// Receives like [`DatagramSocket::recv`], and also returns the address of the sender.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`DatagramSocket::recv`].
    #[track_caller]
    pub fn recv_from(
        &self,
        buf: &mut [u8],
    ) -> impl Future<Output = io::Result<(usize, F::Address)>> {
        self.receive(buf, Location::caller())
    }

    async fn receive(&self, buf: &mut [u8], site: Site) -> io::Result<(usize, F::Address)> {
        note_site(site);
        let io = &self.io;
        let receive = |buf: &mut [u8]| {
            let received = try_io(|| recvfrom(io.get()?, &mut *buf, system::DATAGRAM));
            received.map(|it| it.map(|(n, len, from)| (n, (len as u64, from))))
        };
        let receive = || record::received("receive", buf, receive);
        let received = until_done(false, site, || io.ready(Direction::Read, site), receive);
        let (n, (len, from)) = received.await?;
        self.len.set(usize::try_from(len).unwrap_or(usize::MAX));
        io.note(Direction::Read, n);
        Ok((n, F::address(from).expect("a datagram comes from the socket's family")))
    }

    /// Returns the full length of the last received datagram. If it is longer than the buffer was,
    /// the rest is lost. macOS reports no more than the length of the buffer.
    #[must_use]
    pub fn last_len(&self) -> usize {
        self.len.get()
    }

    /// Returns the local address of the socket.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn local_addr(&self) -> io::Result<F::Address> {
        local_addr::<F, _>(&self.io)
    }
}
