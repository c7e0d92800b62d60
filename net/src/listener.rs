//! Listeners: sockets that accept connections of either family.

use std::ffi::c_int;
use std::fmt;
use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::panic::Location;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{accept_with, acceptfrom_with};
use socket2::SockRef;
use traps::Site;
use traps::connection_deadline;
use traps::io::{Direction, Io};
use traps::shutdown::until_begun;

use crate::back_off::{BackOff, Trouble};
use crate::family::{Family, Inet, local_addr};
use crate::limits::{BACK_OFF_FIRST, LAST_TRIES};
use crate::record::{self, Handle, TryIo};
use crate::resolve::{ToAddress, failed, ip_address};
use crate::socket::tcp_socket;
use crate::stream_socket::StreamSocket;
use crate::system::{self, prepared};
use crate::try_io::{note_site, now, polls, try_io, until_done};

/// Options of a new listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The largest number of connections that wait to be accepted. The system caps this number at
    /// `somaxconn`.
    pub backlog: u32,
    /// Whether to take a port that still has old connections of an earlier listener.
    pub reuse_address: bool,
    /// Whether to share the port with other listeners of the same user that set this option too. In
    /// a server with several workers, only the later workers set this option: the first worker
    /// takes the port alone, and then [shares](Listener::share_port) it.
    pub reuse_port: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { backlog: 4096, reuse_address: true, reuse_port: false }
    }
}

/// A socket that accepts connections of an address family: a [`TcpListener`] or a
/// [`UnixListener`](crate::UnixListener).
pub struct Listener<F> {
    pub(crate) io: Io<Handle<'l'>>,
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

/// A connection, and the address of its peer if the caller wants it.
type Known<F> = (StreamSocket<F>, Option<<F as Family>::Address>);

impl Listener<Inet> {
    /// Listens on an IP address and port with the default [`Options`]. With port 0 the system
    /// chooses a port. Never blocks, so it looks up no names.
    ///
    /// # Errors
    ///
    /// Returns the system's error, with the same kind and with the address in its text:
    /// `AddrInUse`, `PermissionDenied`. Returns `InvalidInput` if `address` is a name.
    pub fn bind(address: impl ToAddress) -> io::Result<TcpListener> {
        TcpListener::bind_with(address, Options::default())
    }

    /// Listens like [`Listener::bind`], with the given options.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Listener::bind`].
    pub fn bind_with(address: impl ToAddress, options: Options) -> io::Result<TcpListener> {
        let address = address.to_address();
        let listening = |known| record::call("listen", || Ok(listen(known, options)?.into()));
        let socket = ip_address(&address).and_then(listening);
        let socket = socket.map_err(|error| failed(format!("listen on {address}"), error))?;
        Ok(Listener::from_socket(socket, options.backlog))
    }

    /// Lets later listeners of the same user share the port, if they set [`Options::reuse_port`].
    /// The system spreads the connections over all of them.
    ///
    /// A listener bound without this option has the port alone until it calls this function. So if
    /// two servers start at the same time, one of them fails with `AddrInUse`. If both had set the
    /// option from the start, they would share the port unnoticed.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn share_port(&self) -> io::Result<()> {
        record::call("reuseport", || SockRef::from(&self.io.get()?).set_reuse_port(true))
    }
}

impl<F: Family> Listener<F> {
    /// Takes ownership of a listening socket in non-blocking mode. `backlog` is the requested
    /// backlog.
    pub(crate) fn from_socket(socket: Handle<'l'>, backlog: u32) -> Listener<F> {
        let backlog = backlog.min(most_backlog().unwrap_or(u32::MAX));
        let io = Io::new(socket);
        Listener { io, backlog, back_off: BackOff::default(), family: PhantomData }
    }

    /// Returns the largest number of connections that the backlog can hold: the requested number,
    /// or `net.core.somaxconn` if this cap was smaller when the listener was made. The system
    /// applies this cap silently. For an inherited listener and for one of `std`, the requested
    /// number is not known, so this returns the system's cap.
    #[must_use]
    pub fn backlog(&self) -> u32 {
        self.backlog
    }

    /// Sets a function to call before each back-off, when descriptors or memory have run out.
    pub(crate) fn on_exhausted(&mut self, make_room: impl Fn() + 'static) {
        self.back_off.make_room = Some(Box::new(make_room));
    }

    /// Returns the address of the listener.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn local_addr(&self) -> io::Result<F::Address> {
        local_addr::<F, _>(&self.io)
    }

    /// Accepts one connection, and returns it with the address of its peer. Blocks while there is
    /// none. Costs one system call per connection in the backlog, and one more if the backlog is
    /// empty.
    ///
    /// Skips a connection that failed before it was accepted. If descriptors or memory run out,
    /// backs off and tries again until some are free. The back-offs double from 5 ms to 1 s. The
    /// log has a `warn` line when an episode of back-offs begins, and one when it ends. A new
    /// episode within ten seconds of such a line is not logged.
    ///
    /// # Errors
    ///
    /// Returns `ResourceBusy` if another task is accepting, and the interrupt that ended the wait;
    /// then no connection was accepted. Any other error of the system means that the socket does
    /// not listen.
    #[track_caller]
    pub fn accept(&mut self) -> impl Future<Output = io::Result<(StreamSocket<F>, F::Address)>> {
        self.accept_by(accept_from, Location::caller())
    }

    /// Accepts like [`Listener::accept`], without the peer's address. So the system need not copy
    /// the address ([`StreamSocket::peer_addr`] asks for it later).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Listener::accept`].
    #[track_caller]
    pub fn accept_stream(&mut self) -> impl Future<Output = io::Result<StreamSocket<F>>> {
        self.accept_by(accept_stream, Location::caller())
    }

    async fn accept_by<T>(
        &mut self,
        accept: impl Fn(&Io<Handle<'l'>>) -> TryIo<T>,
        site: Site,
    ) -> io::Result<T> {
        loop {
            let io = &self.io;
            let wait = || io.ready(Direction::Read, site);
            note_site(site);
            match until_done(false, site, wait, || accept(io)).await {
                Ok(accepted) => {
                    self.back_off.accepted();
                    return Ok(accepted);
                }
                Err(error) => self.meet(error).await?,
            }
        }
    }

    /// Handles a failed accept: skips a failed connection, and backs off if a resource has run out.
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

    /// Accepts like [`Listener::accept_stream`] until the kernel shuts down. After that, returns
    /// the connections still in the backlog, one per call, and then `None`. Also returns `None` if
    /// descriptors have run out and none is free after three short back-offs. Drop the listener
    /// after the `None`: the system resets connections that arrived after the last look, and
    /// refuses new ones.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Listener::accept`].
    #[track_caller]
    pub fn accept_until_shutdown(
        &mut self,
    ) -> impl Future<Output = io::Result<Option<StreamSocket<F>>>> {
        self.accept_late(accept_stream, Location::caller())
    }

    /// Accepts like [`Listener::accept_until_shutdown`], and returns the address of the peer too.
    /// With that of a `TcpListener`, [`serve`](crate::serve()) names the peer of a connection that
    /// failed.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Listener::accept`].
    #[track_caller]
    pub fn accept_peer_until_shutdown(
        &mut self,
    ) -> impl Future<Output = io::Result<Option<(StreamSocket<F>, F::Address)>>> {
        self.accept_late(accept_from, Location::caller())
    }

    /// Accepts like [`Listener::accept_until_shutdown`], with the peer's address if it `is_wanted`.
    /// If a connection was reset in the backlog, its address cannot be asked for later.
    #[track_caller]
    pub(crate) fn accept_known(
        &mut self,
        is_wanted: bool,
    ) -> impl Future<Output = io::Result<Option<Known<F>>>> {
        let accept = move |io: &_| match is_wanted {
            true => accept_from(io).map(|it| it.map(|(stream, peer)| (stream, Some(peer)))),
            false => accept_stream(io).map(|it| it.map(|stream| (stream, None))),
        };
        self.accept_late(accept, Location::caller())
    }

    async fn accept_late<T>(
        &mut self,
        accept: impl Fn(&Io<Handle<'l'>>) -> TryIo<T>,
        site: Site,
    ) -> io::Result<Option<T>> {
        match until_begun(self.accept_by(&accept, site)).await {
            Some(accepted) => accepted.map(Some),
            None => self.accept_waiting(accept, site).await,
        }
    }

    /// Accepts a connection from the backlog. Returns `None` if the backlog is empty.
    async fn accept_waiting<T>(
        &mut self,
        accept: impl Fn(&Io<Handle<'l'>>) -> TryIo<T>,
        site: Site,
    ) -> io::Result<Option<T>> {
        // Retry only a few times: connections in the backlog must not delay the shutdown for long.
        for tries in 0..=LAST_TRIES {
            // Sleep (for no time) before the first try too. It renews the budget: with a spent one,
            // `accept_by` tries nothing.
            traps::sleep(BACK_OFF_FIRST * tries).await?;
            self.back_off.row = 0;
            if let Some(accepted) = now(|| self.accept_by(&accept, site)).await {
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

/// Makes a listening socket. Accepted connections inherit its `TCP_NODELAY`, which saves one system
/// call per connection.
fn listen(address: SocketAddr, options: Options) -> io::Result<socket2::Socket> {
    let socket = tcp_socket(address)?;
    socket.set_reuse_address(options.reuse_address)?;
    socket.set_reuse_port(options.reuse_port)?;
    socket.bind(&address.into())?;
    socket.listen(c_int::try_from(options.backlog).unwrap_or(c_int::MAX))?;
    Ok(socket)
}

/// Returns the system's cap on a backlog, or `None` if it cannot be read.
fn most_backlog() -> Option<u32> {
    let read = || std::fs::read_to_string("/proc/sys/net/core/somaxconn");
    let most = || read()?.trim().parse().map_err(io::Error::other);
    record::call("somaxconn", most).ok().and_then(|most: u64| most.try_into().ok())
}

/// Accepts a connection. If the process has no free descriptor, accept(2) fails before it looks at
/// the backlog. So look whether the backlog is empty, and return `EAGAIN` if it is.
fn accept_one<T>(
    io: &Io<Handle<'l'>>,
    accept: impl Fn(BorrowedFd<'_>) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let fd = io.get()?;
    match accept(fd) {
        Err(Errno::MFILE | Errno::NFILE) if !polls(fd, PollFlags::IN)? => Err(Errno::AGAIN),
        accepted => accepted,
    }
}

/// Accepts a connection in non-blocking mode, with one system call.
#[inline]
fn accept_stream<F: Family>(io: &Io<Handle<'l'>>) -> TryIo<StreamSocket<F>> {
    let accept = || try_io(|| accept_one(io, |fd| prepared(accept_with(fd, system::SOCKET)?)));
    let accepted = record::try_io("accept", || Some(accept()?.map(Handle::from)))?;
    Some(accepted.map(|socket| StreamSocket::from_socket(socket).accepted_by(io)))
}

/// Accepts a connection, and returns it with the address of its peer.
fn accept_from<F: Family>(io: &Io<Handle<'l'>>) -> TryIo<(StreamSocket<F>, F::Address)> {
    let accept = |fd: BorrowedFd<'_>| {
        let (socket, peer) = acceptfrom_with(fd, system::SOCKET)?;
        Ok((prepared(socket)?, peer))
    };
    let accept = || try_io(|| accept_one(io, accept));
    let known = |(socket, peer)| (Handle::from(socket), peer);
    let accepted = record::try_io("accept", || Some(accept()?.map(known)))?;
    Some(accepted.map(|(socket, peer)| {
        let stream = StreamSocket::from_socket(socket).accepted_by(io);
        (stream, F::address(peer).expect("a peer is of the listener's family"))
    }))
}
