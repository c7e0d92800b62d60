//! Listening for connections of either family.

use std::ffi::c_int;
use std::fmt;
use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::net::{self, SocketAddr};
use std::os::fd::OwnedFd;
use std::panic::Location;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{accept_with, acceptfrom_with};
use traps::connection_deadline;
use traps::core::names::Site;
use traps::io::{Direction, Io};
use traps::shutdown::until_begun;

use crate::attempt::{attempt, is_any, now, until_done};
use crate::back_off::{BackOff, Trouble};
use crate::family::{Family, Inet, local_addr};
use crate::limits::{BACK_OFF_FIRST, LAST_TRIES};
use crate::resolve::{failed, ip_address};
use crate::socket::{FLAGS, tcp_socket};
use crate::stream_socket::StreamSocket;

/// How to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many connections may wait to be accepted; the system caps it (`somaxconn`).
    pub backlog: u32,
    /// Whether to take a port that has old connections of an earlier listener.
    pub reuse_address: bool,
    /// Whether other listeners of the same user may share the port.
    pub reuse_port: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { backlog: 4096, reuse_address: true, reuse_port: false }
    }
}

/// A socket that accepts connections of a family: a [`TcpListener`] or a
/// [`UnixListener`](crate::UnixListener).
pub struct Listener<F> {
    /// Of either family, whatever the name of the type.
    io: Io<net::TcpListener>,
    backlog: u32,
    back_off: BackOff,
    family: PhantomData<F>,
}

/// A socket that accepts TCP connections.
pub type TcpListener = Listener<Inet>;

impl<F: Family> fmt::Debug for Listener<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("io", &self.io).finish_non_exhaustive()
    }
}

impl Listener<Inet> {
    /// Listens on an IP address and port with the default [`Options`]; port 0 lets the system
    /// choose. Never blocks, so it looks up no names.
    ///
    /// # Errors
    ///
    /// The system's, with its kind kept and the address named: `AddrInUse`, `PermissionDenied`.
    /// `InvalidInput` for a name.
    pub fn bind(address: impl ToString) -> io::Result<TcpListener> {
        TcpListener::bind_with(address, Options::default())
    }

    /// Like [`Listener::bind`], with options.
    ///
    /// # Errors
    ///
    /// As for [`Listener::bind`].
    pub fn bind_with(address: impl ToString, options: Options) -> io::Result<TcpListener> {
        let address = address.to_string();
        let socket = ip_address(&address).and_then(|known| listen(known, options));
        let socket = socket.map_err(|error| failed(format!("listen on {address}"), error))?;
        Ok(Listener::from_socket(socket, options.backlog))
    }
}

impl<F: Family> Listener<F> {
    /// Takes a socket in non-blocking mode that listens, with the backlog that was asked for.
    pub(crate) fn from_socket(socket: impl Into<OwnedFd>, backlog: u32) -> Listener<F> {
        let backlog = backlog.min(most_backlog().unwrap_or(u32::MAX));
        let io = Io::new(socket.into().into());
        Listener { io, backlog, back_off: BackOff::default(), family: PhantomData }
    }

    /// How many connections may wait to be accepted: what was asked for, or the system's
    /// `net.core.somaxconn` as it was at the time, which cuts it silently. What was asked for an
    /// inherited listener is not known: then it is the system's.
    #[must_use]
    pub fn backlog(&self) -> u32 {
        self.backlog
    }

    /// Has `make_room` called whenever descriptors or memory have run out, before it backs off.
    pub(crate) fn on_exhausted(&mut self, make_room: impl Fn() + 'static) {
        self.back_off.make_room = Some(Box::new(make_room));
    }

    /// The address that it listens on.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn local_addr(&self) -> io::Result<F::Address> {
        local_addr::<F>(&*self.io)
    }

    /// Accepts one connection, with the address of its peer; blocks while none is there. One
    /// system call for each connection that waits already, one more when none is left.
    ///
    /// A connection that failed before it was accepted is skipped. When descriptors or memory run
    /// out it backs off, from 5 ms doubling to 1 s, and tries again until some are free; the log
    /// has a `warn` line when that starts, and one when it was over for ten seconds.
    ///
    /// # Errors
    ///
    /// `ResourceBusy` if another task accepts already; the interrupt that ended the wait: no
    /// connection was accepted then. Any other error of the system means that it does not listen.
    #[track_caller]
    pub fn accept(&mut self) -> impl Future<Output = io::Result<(StreamSocket<F>, F::Address)>> {
        self.accept_by(accept_from, Location::caller())
    }

    /// Like [`Listener::accept`] for who does not need the address of each peer, which the
    /// system then does not copy ([`StreamSocket::peer_addr`] asks for it).
    ///
    /// # Errors
    ///
    /// As for [`Listener::accept`].
    #[track_caller]
    pub fn accept_stream(&mut self) -> impl Future<Output = io::Result<StreamSocket<F>>> {
        self.accept_by(accept_stream, Location::caller())
    }

    async fn accept_by<T>(
        &mut self,
        accept: impl Fn(&Io<net::TcpListener>) -> Result<T, Errno>,
        site: Site,
    ) -> io::Result<T> {
        loop {
            let io = &self.io;
            let wait = || io.ready(Direction::Read, site);
            match until_done(false, site, wait, || attempt(|| accept_one(io, &accept))).await {
                Ok(accepted) => {
                    self.back_off.accepted();
                    return Ok(accepted);
                }
                Err(error) => self.meet(error).await?,
            }
        }
    }

    /// Skips a connection that failed, and backs off where something has run out.
    async fn meet(&mut self, error: io::Error) -> io::Result<()> {
        match Trouble::of(&error) {
            Some(Trouble::Connection) => {}
            Some(Trouble::Exhausted(what)) => {
                let clock = connection_deadline().await;
                traps::sleep(self.back_off.next(what, clock)).await?;
            }
            None => return Err(error),
        }
        Ok(())
    }

    /// Like [`Listener::accept_stream`] until the kernel shuts down; then gives, one after the
    /// other, the connections that wait in the backlog already, and at last `None`; also if
    /// descriptors have run out and none is free after three short back-offs. Drop the listener
    /// then: whom the system has let in since that last look is reset, and nobody else gets in.
    ///
    /// # Errors
    ///
    /// As for [`Listener::accept`].
    #[track_caller]
    pub fn accept_until_shutdown(
        &mut self,
    ) -> impl Future<Output = io::Result<Option<StreamSocket<F>>>> {
        let site = Location::caller();
        async move {
            match until_begun(self.accept_by(accept_stream, site)).await {
                Some(accepted) => accepted.map(Some),
                None => self.accept_waiting(site).await,
            }
        }
    }

    /// One that waits in the backlog, if one does.
    async fn accept_waiting(&mut self, site: Site) -> io::Result<Option<StreamSocket<F>>> {
        // Those who wait must not hold up the end of those who are served for long.
        for tries in 0..=LAST_TRIES {
            // Also at first: nothing was tried before if the budget was spent.
            traps::sleep(BACK_OFF_FIRST * tries).await?;
            self.back_off.row = 0;
            if let Some(accepted) = now(|| self.accept_by(accept_stream, site)).await {
                return accepted.map(Some);
            }
            if self.back_off.row == 0 {
                self.back_off.end();
                break;
            }
        }
        Ok(None)
    }
}

/// Whether one could listen on an IP address and port: binds a socket and lets go of it. Gives the
/// address, with a port that the system chose for port 0. It never listens, so nobody can connect.
/// For a server that then listens several times with [`Options::reuse_port`].
///
/// # Errors
///
/// The system's, with its kind kept and the address named: `AddrInUse`.
pub fn probe(address: SocketAddr) -> io::Result<SocketAddr> {
    let bound = || {
        let socket = tcp_socket(address)?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.local_addr()
    };
    let bound = bound().map_err(|error| failed(format!("listen on {address}"), error))?;
    Ok(bound.as_socket().expect("a TCP socket has an IP address"))
}

/// Accepted connections inherit that it is without delay, which saves a system call for each.
fn listen(address: SocketAddr, options: Options) -> io::Result<socket2::Socket> {
    let socket = tcp_socket(address)?;
    socket.set_reuse_address(options.reuse_address)?;
    socket.set_reuse_port(options.reuse_port)?;
    socket.bind(&address.into())?;
    socket.listen(c_int::try_from(options.backlog).unwrap_or(c_int::MAX))?;
    Ok(socket)
}

/// What the system cuts a backlog to, where it can be read.
fn most_backlog() -> Option<u32> {
    std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?.trim().parse().ok()
}

/// Accepts a connection. Without a descriptor for it the system fails before it looks whether
/// there is one, so that is asked for then.
fn accept_one<T>(
    io: &Io<net::TcpListener>,
    accept: impl Fn(&Io<net::TcpListener>) -> Result<T, Errno>,
) -> Result<T, Errno> {
    match accept(io) {
        Err(Errno::MFILE | Errno::NFILE) if !is_any(&**io, PollFlags::IN)? => Err(Errno::AGAIN),
        accepted => accepted,
    }
}

/// Accepts a connection in non-blocking mode, by one system call.
#[inline]
fn accept_stream<F: Family>(io: &Io<net::TcpListener>) -> Result<StreamSocket<F>, Errno> {
    Ok(StreamSocket::from_socket(accept_with(&**io, FLAGS)?).accepted_by(io))
}

/// Accepts a connection, with the address of its peer.
fn accept_from<F: Family>(
    io: &Io<net::TcpListener>,
) -> Result<(StreamSocket<F>, F::Address), Errno> {
    let (stream, peer) = acceptfrom_with(&**io, FLAGS)?;
    let stream = StreamSocket::from_socket(stream).accepted_by(io);
    Ok((stream, F::address(peer).expect("a peer is of the listener's family")))
}
