//! Datagrams, independent of the transport: the interface [`Datagrams`], and a network in memory.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::panic::Location;
use std::rc::Rc;

use traps::{Site, WaitQueue};

use crate::datagram_socket::UdpSocket;
use crate::try_io::until_done;

/// The number of datagrams that wait in a [`MemorySocket`]. The next ones are lost.
const QUEUED: usize = 256;

/// The first port that a [`Network`] chooses for port 0, and on Linux the system too.
const FIRST_PORT: u16 = 32_768;

/// A socket that exchanges datagrams with any peer: a [`UdpSocket`], or a [`MemorySocket`] in the
/// tests of a program.
///
/// ```
/// use std::io;
/// use std::net::SocketAddr;
/// use std::time::Duration;
/// use net::datagrams::{Datagrams, Network};
/// use traps::{ignore_after, join};
///
/// /// Asks a server, up to three times, and waits a second for each reply.
/// async fn ask(socket: &impl Datagrams, server: SocketAddr) -> io::Result<Option<u8>> {
///     for _ in 0..3 {
///         socket.send_to(b"?", server).await?;
///         let mut reply = [0];
///         let received = ignore_after(Duration::from_secs(1), socket.recv_from(&mut reply));
///         if received.await?.is_some() {
///             return Ok(Some(reply[0]));
///         }
///     }
///     Ok(None)
/// }
///
/// let ran = testing::run(async {
///     let network = Network::new();
///     let server = network.bind("10.0.0.1:53".parse().unwrap())?;
///     let client = network.bind("10.0.0.2:0".parse().unwrap())?;
///     network.lose_next(1); // the first question
///     let serve = async {
///         let (_, peer) = server.recv_from(&mut [0]).await?;
///         server.send_to(b"!", peer).await
///     };
///     let (reply, _) = join(ask(&client, server.local_addr()?), serve).await;
///     reply
/// });
/// assert_eq!(ran.output.unwrap(), Some(b'!'));
/// assert_eq!(ran.took, Duration::from_secs(1));
/// ```
pub trait Datagrams {
    /// Sends a datagram to `address`. Blocks while there is no room for it. Returns the number of
    /// bytes sent, which is all of them.
    ///
    /// # Errors
    ///
    /// Returns the system's error, and the interrupt that ended the wait. An address to which
    /// nothing can be sent is an error of this datagram only, which need not end a server.
    fn send_to(&self, buf: &[u8], address: SocketAddr) -> impl Future<Output = io::Result<usize>>;

    /// Receives a datagram into `buf`, and the address of its sender. Blocks while there is none.
    /// The part that does not fit is lost.
    ///
    /// # Errors
    ///
    /// Returns the system's error, and the interrupt that ended the wait.
    fn recv_from(&self, buf: &mut [u8]) -> impl Future<Output = io::Result<(usize, SocketAddr)>>;

    /// Returns the local address of the socket.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

impl Datagrams for UdpSocket {
    #[track_caller]
    fn send_to(&self, buf: &[u8], address: SocketAddr) -> impl Future<Output = io::Result<usize>> {
        UdpSocket::send_to(self, buf, address)
    }

    #[track_caller]
    fn recv_from(&self, buf: &mut [u8]) -> impl Future<Output = io::Result<(usize, SocketAddr)>> {
        UdpSocket::recv_from(self, buf)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        UdpSocket::local_addr(self)
    }
}

/// A network in memory, for programs on the virtual clock. Clones are the same network.
///
/// A datagram arrives at once and in order, unless it is lost. It is lost if no socket has its
/// address, if 256 datagrams already wait in that socket, or if it is one of those of
/// [`Network::lose_next`]. As with UDP, the sender gets no error.
#[derive(Clone, Debug, Default)]
pub struct Network(Rc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    sockets: RefCell<BTreeMap<SocketAddr, Rc<Inbox>>>,
    to_lose: Cell<usize>,
    lost: Cell<usize>,
}

/// The datagrams that wait in a socket, each with its sender.
#[derive(Debug)]
struct Inbox {
    datagrams: RefCell<VecDeque<(Vec<u8>, SocketAddr)>>,
    receivers: WaitQueue,
}

impl Network {
    /// Makes a network without sockets.
    #[must_use]
    pub fn new() -> Network {
        Network::default()
    }

    /// Makes a socket with an address, which can be any. For port 0 the network chooses the first
    /// free port from 32768 on. Dropping the socket frees its address.
    ///
    /// # Errors
    ///
    /// Returns `AddrInUse` if a socket of this network has the address, or all ports are in use.
    pub fn bind(&self, mut address: SocketAddr) -> io::Result<MemorySocket> {
        let mut sockets = self.0.sockets.borrow_mut();
        if address.port() == 0 {
            let is_free = |port: &u16| !sockets.contains_key(&SocketAddr::new(address.ip(), *port));
            let port = (FIRST_PORT..=u16::MAX).find(is_free).ok_or(ErrorKind::AddrInUse)?;
            address.set_port(port);
        }
        if sockets.contains_key(&address) {
            return Err(ErrorKind::AddrInUse.into());
        }
        let receivers = WaitQueue::new().described("datagrams", address.to_string());
        let inbox = Rc::new(Inbox { datagrams: RefCell::default(), receivers });
        sockets.insert(address, inbox.clone());
        Ok(MemorySocket { network: self.clone(), address, inbox })
    }

    /// Loses the next `n` datagrams of all senders together.
    pub fn lose_next(&self, n: usize) {
        self.0.to_lose.set(n);
    }

    /// Returns the number of datagrams that were lost so far.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.0.lost.get()
    }

    fn deliver(&self, buf: &[u8], (from, to): (SocketAddr, SocketAddr)) {
        let Shared { sockets, to_lose, lost } = &*self.0;
        let is_chosen = to_lose.get() > 0;
        to_lose.set(to_lose.get().saturating_sub(1));
        let sockets = sockets.borrow();
        match sockets.get(&to) {
            Some(inbox) if !is_chosen && inbox.datagrams.borrow().len() < QUEUED => {
                inbox.datagrams.borrow_mut().push_back((buf.to_vec(), from));
                inbox.receivers.wake(u64::MAX);
            }
            _ => lost.set(lost.get() + 1),
        }
    }
}

/// A socket of a [`Network`].
#[derive(Debug)]
pub struct MemorySocket {
    network: Network,
    address: SocketAddr,
    inbox: Rc<Inbox>,
}

impl MemorySocket {
    fn receive(&self, buf: &mut [u8]) -> Option<io::Result<(usize, SocketAddr)>> {
        let (datagram, from) = self.inbox.datagrams.borrow_mut().pop_front()?;
        let n = datagram.len().min(buf.len());
        buf[..n].copy_from_slice(&datagram[..n]);
        Some(Ok((n, from)))
    }

    async fn send(&self, buf: &[u8], to: SocketAddr, site: Site) -> io::Result<usize> {
        let send = || {
            self.network.deliver(buf, (self.address, to));
            Some(Ok(buf.len()))
        };
        until_done(false, site, || self.inbox.receivers.wait_from(site), send).await
    }
}

impl Datagrams for MemorySocket {
    /// Sends a datagram. Never waits for room, because a datagram without room is lost.
    #[track_caller]
    fn send_to(&self, buf: &[u8], address: SocketAddr) -> impl Future<Output = io::Result<usize>> {
        self.send(buf, address, Location::caller())
    }

    #[track_caller]
    fn recv_from(&self, buf: &mut [u8]) -> impl Future<Output = io::Result<(usize, SocketAddr)>> {
        let (site, receivers) = (Location::caller(), &self.inbox.receivers);
        until_done(false, site, || receivers.wait_from(site), || self.receive(buf))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl Drop for MemorySocket {
    fn drop(&mut self) {
        self.network.0.sockets.borrow_mut().remove(&self.address);
    }
}
