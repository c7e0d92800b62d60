//! Waiting for descriptors. The owner of a descriptor reads and writes it; this module only waits.
//!
//! Try first, and wait only after `WouldBlock`:
//!
//! ```
//! use std::io::{ErrorKind, Read, Write};
//! use std::os::unix::net::UnixStream;
//! use traps::io::Io;
//! # use kernel::{Kernel, Real};
//!
//! # fn main() -> std::io::Result<()> {
//! # let mut kernel = Kernel::new(Real::new()?);
//! let (reader, mut writer) = UnixStream::pair()?;
//! reader.set_nonblocking(true)?;
//! # let read = kernel.run(async {
//! let reader = Io::new(reader);
//! writer.write_all(b"hello")?;
//! let mut bytes = [0; 16];
//! let length = loop {
//!     match (&*reader).read(&mut bytes) {
//!         Err(error) if error.kind() == ErrorKind::WouldBlock => reader.readable().await?,
//!         result => break result?,
//!     }
//! };
//! assert_eq!(&bytes[..length], b"hello");
//! # Ok::<(), std::io::Error>(())
//! # });
//! # read.unwrap()
//! # }
//! ```

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::ops::Deref;
#[cfg(unix)]
use std::os::fd::{AsRawFd, RawFd};
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::core::gate;
use crate::core::protocol::{Note, Post, Reply, Trap};
use crate::core::table::{HandleId, Site};
use crate::core::wait::{self, Call};
use crate::error::Error;
use crate::parts::fd::OwnedFd;

pub use crate::core::table::{Descriptor, Direction};

/// A type that an [`Io`] can own. It has a descriptor in non-blocking mode. On Unix, files, pipes
/// and sockets of the standard library implement it. Elsewhere only [`Scripted`] does.
///
/// ```
/// use std::os::fd::{AsRawFd, OwnedFd};
/// use traps::io::{Descriptor, Io, Source};
///
/// /// A socket that counts the bytes that it has sent.
/// struct Counted {
///     socket: OwnedFd,
///     sent: u64,
/// }
///
/// impl Source for Counted {
///     fn descriptor(&self) -> Descriptor {
///         Descriptor::Real(self.socket.as_raw_fd())
///     }
///
///     fn into_owner(self) -> Option<OwnedFd> {
///         Some(self.socket)
///     }
/// }
///
/// let (one, _other) = std::os::unix::net::UnixStream::pair()?;
/// let socket = Io::new(Counted { socket: one.into(), sent: 0 });
/// assert_eq!(socket.sent, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Source: 'static {
    /// Returns the descriptor that the kernel waits for.
    fn descriptor(&self) -> Descriptor;

    /// Returns the first letter of the descriptor's alias in the log: `l` for a listener, `c` for a
    /// connection, `p` for a pipe, `f` for any other file.
    fn kind(&self) -> char {
        'f'
    }

    /// Gives up the descriptor, and returns it if the operating system has it. It is closed once
    /// the kernel has let go of it.
    fn into_owner(self) -> Option<OwnedFd>;

    /// Returns whether no duplicate of the descriptor exists. If so, closing it also ends its epoll
    /// registration, which saves a system call. Returning `false` is always safe.
    fn is_sole(&self) -> bool {
        false
    }

    /// Records that an event reported urgent data. A read stops in front of urgent data. So a short
    /// read does not prove that the socket is empty, until a read finds no data. Called before the
    /// wait ends.
    fn note_urgent(&self) {}
}

#[cfg(unix)]
macro_rules! source {
    ($($source:ty, $kind:literal;)*) => {$(
        impl Source for $source {
            fn descriptor(&self) -> Descriptor {
                Descriptor::Real(self.as_raw_fd())
            }
            fn kind(&self) -> char {
                $kind
            }
            fn into_owner(self) -> Option<OwnedFd> {
                Some(self.into())
            }
        }
    )*};
}

#[cfg(unix)]
source! {
    OwnedFd, 'f';
    std::fs::File, 'f';
    std::net::TcpListener, 'l';
    std::net::TcpStream, 'c';
    std::net::UdpSocket, 'f';
    std::os::unix::net::UnixStream, 'p';
    std::io::PipeReader, 'p';
}

/// A descriptor that exists only in the script of a simulated machine. It has no bytes: the script
/// says when it looks ready.
///
/// ```
/// # use std::time::Duration;
/// use kernel::Sim;
/// use traps::Time;
/// use traps::io::{Direction, Io, Scripted};
///
/// let at = Time::ZERO + Duration::from_secs(5);
/// let sim = Sim::new().ready_at(at, 7, Direction::Read);
/// # testing::Setup::new().sim(sim).run(async {
/// let socket = Io::new(Scripted(7));
/// socket.readable().await?;
/// assert_eq!(traps::clock().await, at);
/// # Ok::<(), traps::Error>(())
/// # }).output.unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scripted(pub u32);

impl Source for Scripted {
    fn descriptor(&self) -> Descriptor {
        Descriptor::Scripted(self.0)
    }
    fn into_owner(self) -> Option<OwnedFd> {
        None
    }
}

/// An owned descriptor that tasks wait for.
///
/// The kernel identifies it by a name that is never used twice. So if the system reuses the number
/// of a closed descriptor, the kernel does not mix the two up. Dropping the `Io` closes the
/// descriptor once the kernel has let go of it. A task that is still waiting for it gets
/// [`Error::Closed`].
///
/// An `Io` dereferences to its source, so it can be read and written like the source itself.
///
/// ```
/// use std::net::TcpListener;
/// use traps::io::Io;
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// listener.set_nonblocking(true)?; // an `Io` must never block its thread
/// let listener = Io::new(listener);
/// assert!(listener.local_addr()?.ip().is_loopback());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Io<S: Source> {
    source: Option<S>,
    /// The name of the descriptor, in the kernel in which it was used last.
    handle: Cell<Option<HandleId>>,
    closed: Cell<bool>,
    local: PhantomData<Rc<()>>,
}

impl<S: Source> Io<S> {
    /// Wraps a descriptor and takes ownership of it. Registers nothing with the system before the
    /// first wait.
    pub fn new(source: S) -> Io<S> {
        Io {
            source: Some(source),
            handle: Cell::new(None),
            closed: Cell::new(false),
            local: PhantomData,
        }
    }

    /// Waits until the descriptor looks ready for reading. *Blocks.* Readiness is edge-triggered.
    /// So wait only after a read failed with `WouldBlock`, or after a read of a stream returned
    /// less than it had room for and no [urgent data](Source::note_urgent) was noted.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Interrupt`] if the wait ended early, [`Error::Busy`] if another task waits
    /// for this direction, [`Error::Closed`] after [`close`](Io::close), and [`Error::Io`] if the
    /// system cannot watch the descriptor.
    #[track_caller]
    pub fn readable(&self) -> Ready<'_, S> {
        self.ready(Direction::Read, Location::caller())
    }

    /// Waits until the descriptor looks ready for writing. *Blocks.* Readiness is edge-triggered:
    /// wait only after a write failed with `WouldBlock`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`readable`](Io::readable).
    ///
    /// ```
    /// # use std::time::Duration;
    /// use kernel::Sim;
    /// use traps::io::{Direction, Io, Scripted};
    /// use traps::{Error, Time, clock, timeout_after};
    ///
    /// let second = Duration::from_secs(1);
    /// let sim = Sim::new().ready_at(Time::ZERO + second, 7, Direction::Write);
    /// # testing::Setup::new().sim(sim).run(async {
    /// let socket = Io::new(Scripted(7));
    /// timeout_after(5 * second, socket.writable()).await?;
    /// assert_eq!(clock().await, Time::ZERO + second);
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    pub fn writable(&self) -> Ready<'_, S> {
        self.ready(Direction::Write, Location::caller())
    }

    /// Waits for readiness in one direction. This is for a wrapper: it passes the location of its
    /// own caller, which the log then shows as `at=`.
    ///
    /// ```
    /// use std::io::{ErrorKind, Read, Write};
    /// use std::os::unix::net::UnixStream;
    /// use std::panic::Location;
    /// use traps::Error;
    /// use traps::io::{Direction, Io};
    ///
    /// /// Reads some bytes. The log has the site of this call, and the number of bytes.
    /// #[track_caller]
    /// fn read(
    ///     socket: &Io<UnixStream>,
    ///     buffer: &mut [u8],
    /// ) -> impl Future<Output = Result<usize, Error>> {
    ///     let site = Location::caller();
    ///     async move {
    ///         loop {
    ///             match (&mut &**socket).read(buffer) {
    ///                 Ok(bytes) => {
    ///                     socket.note(Direction::Read, bytes);
    ///                     return Ok(bytes);
    ///                 }
    ///                 Err(error) if error.kind() == ErrorKind::WouldBlock => {
    ///                     socket.ready(Direction::Read, site).await?;
    ///                 }
    ///                 Err(error) => return Err(error.into()),
    ///             }
    ///         }
    ///     }
    /// }
    ///
    /// let (ours, mut theirs) = UnixStream::pair()?;
    /// ours.set_nonblocking(true)?;
    /// theirs.write_all(b"hello")?;
    /// let (socket, mut buffer) = (Io::new(ours), [0; 16]);
    /// assert_eq!(kernel::run(read(&socket, &mut buffer))??, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ready(&self, direction: Direction, site: Site) -> Ready<'_, S> {
        Ready { io: self, direction, call: Call::from(site) }
    }

    /// Ends all present and future waits with [`Error::Closed`]. The descriptor itself is closed
    /// when the `Io` is dropped. Until then, the system cannot reuse its number while code still
    /// holds it.
    ///
    /// ```
    /// # use std::{rc::Rc, time::Duration};
    /// use traps::io::{Io, Scripted};
    /// use traps::{Error, sleep, spawn};
    ///
    /// # testing::run(async {
    /// let socket = Rc::new(Io::new(Scripted(7)));
    /// let waits = socket.clone();
    /// let mut reader = spawn("reader", async move { waits.readable().await }).await;
    /// sleep(Duration::from_secs(1)).await?;
    /// socket.close();
    /// assert_eq!(reader.join().await?, Err(Error::Closed));
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    pub fn close(&self) {
        if !self.closed.replace(true)
            && let Some(handle) = self.handle.get()
        {
            gate::post(Post::Close(handle));
        }
    }

    /// Logs that `bytes` bytes were moved in this direction, if the log is on.
    #[inline]
    pub fn note(&self, direction: Direction, bytes: usize) {
        if gate::is_listening() {
            self.note_handle(|handle| Note::Moved(handle, direction, bytes));
        }
    }

    /// Logs that this listener accepted a connection from `peer`, if the log is on.
    #[inline]
    pub fn note_accept<T: Source>(
        &self,
        connection: &Io<T>,
        peer: impl FnOnce() -> Option<SocketAddr>,
    ) {
        if gate::is_listening() {
            let peer = peer().map(Box::new);
            self.note_handle(|handle| {
                Note::Accepted(handle, connection.handle(Location::caller()), peer)
            });
        }
    }

    /// Posts a note about this descriptor. Does nothing outside a kernel, where there is no log.
    #[cold]
    fn note_handle(&self, note: impl FnOnce(HandleId) -> Note) {
        if gate::epoch() != 0 {
            gate::post(Post::Note(note(self.handle(Location::caller()))));
        }
    }

    /// Returns the name of the descriptor in the running kernel. Registers it there if needed.
    #[inline]
    fn handle(&self, site: Site) -> HandleId {
        match self.handle.get() {
            Some(handle) if gate::is_of_this_kernel(handle) => handle,
            _ => self.register(site),
        }
    }

    #[cold]
    fn register(&self, site: Site) -> HandleId {
        if gate::epoch() == 0 {
            gate::refuse_outside_a_task(site);
        }
        let handle = gate::new_handle();
        let (descriptor, kind) = (self.descriptor(), self.kind());
        gate::post(Post::Register { handle, descriptor, kind });
        self.handle.set(Some(handle));
        handle
    }
}

impl<S: Source> Deref for Io<S> {
    type Target = S;
    fn deref(&self) -> &S {
        self.source.as_ref().expect("an Io owns its source until it is dropped")
    }
}

impl<S: Source> fmt::Debug for Io<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source.as_ref().map(Source::descriptor) {
            Some(Descriptor::Real(fd)) => write!(f, "Io(fd {fd})"),
            Some(Descriptor::Scripted(n)) => write!(f, "Io(scripted {n})"),
            None => f.write_str("Io(closed)"),
        }
    }
}

#[cfg(unix)]
impl<S: Source + AsRawFd> AsRawFd for Io<S> {
    fn as_raw_fd(&self) -> RawFd {
        (**self).as_raw_fd()
    }
}

impl<S: Source> Drop for Io<S> {
    fn drop(&mut self) {
        let Some(source) = self.source.take() else { return };
        if let Some(handle) = self.handle.get() {
            let sole = source.is_sole();
            // The kernel closes the descriptor after it has ended the registration. That call names
            // the descriptor by its number, and after a close here the number could already belong
            // to a new descriptor.
            gate::post(Post::Release { handle, owner: source.into_owner(), sole });
        }
    }
}

/// The future of [`Io::readable`] and [`Io::writable`].
#[must_use = "a trap that is not awaited is never made"]
pub struct Ready<'a, S: Source> {
    io: &'a Io<S>,
    direction: Direction,
    call: Call,
}

impl<S: Source> fmt::Debug for Ready<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready").field("io", self.io).field("direction", &self.direction).finish()
    }
}

impl<S: Source> Future for Ready<'_, S> {
    type Output = Result<(), Error>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Ready { io, direction, call } = &mut *self;
        // This is for a wait that begins after the close. If a task was already waiting, the kernel
        // ends its wait, and the reply must be read below.
        if io.closed.get() && !call.ticket().is_some_and(wait::is_here) {
            return Poll::Ready(Err(Error::Closed));
        }
        let site = call.site();
        let trap = || Trap::Io { handle: io.handle(site), direction: *direction };
        call.poll(cx, trap).map(|reply| match reply {
            Reply::Ready(urgent) => {
                if urgent {
                    io.note_urgent();
                }
                Ok(())
            }
            other => Err(Error::of(other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use super::*;

    #[test]
    #[should_panic(expected = "was polled outside a kernel")]
    fn a_wait_outside_a_kernel_names_the_rule_that_it_breaks() {
        let io = Io::new(Scripted(1));
        let _ = pin!(io.readable()).poll(&mut Context::from_waker(Waker::noop()));
    }
}
