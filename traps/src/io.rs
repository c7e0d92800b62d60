//! Waiting for descriptors. Reading and writing them is up to whoever owns them.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::ops::Deref;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::core::call::Call;
use crate::core::filing;
use crate::core::gate;
use crate::core::names::{HandleId, Site};
use crate::core::posting;
use crate::core::protocol::{Note, Post, Trap};
use crate::error::Error;

pub use crate::core::names::{Descriptor, Direction};

/// What an [`Io`] can own: something with a descriptor in non-blocking mode.
pub trait Source: 'static {
    /// The descriptor that the kernel waits for.
    fn descriptor(&self) -> Descriptor;

    /// The letter of its alias in the log: `l` listener, `c` connection, `p` pipe, `f` any other.
    fn kind(&self) -> char {
        'f'
    }

    /// Gives the descriptor up, to be closed once the kernel has let go of it.
    fn into_owner(self) -> Option<OwnedFd>;

    /// Whether no duplicate of the descriptor exists, so that closing it ends its registration and
    /// saves a system call. `false` is always safe.
    fn is_sole(&self) -> bool {
        false
    }
}

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

source! {
    OwnedFd, 'f';
    std::fs::File, 'f';
    std::net::TcpListener, 'l';
    std::net::TcpStream, 'c';
    std::net::UdpSocket, 'f';
    std::os::unix::net::UnixStream, 'p';
    std::io::PipeReader, 'p';
}

/// A descriptor that exists only in the script of a simulated machine.
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
/// The kernel knows it by a name that is never used twice, not by its number, so a number that the
/// system gives out again cannot be taken for the old one. Dropping it closes the descriptor when
/// the kernel has let go of it; a task that still waits for it gets [`Error::Closed`].
pub struct Io<S: Source> {
    source: Option<S>,
    /// Its name in the kernel in which it was last waited for, and the number of that kernel.
    handle: Cell<Option<(HandleId, u32)>>,
    closed: Cell<bool>,
    local: PhantomData<Rc<()>>,
}

impl<S: Source> Io<S> {
    /// Takes ownership. Nothing is registered before the first wait.
    pub fn new(source: S) -> Io<S> {
        Io {
            source: Some(source),
            handle: Cell::new(None),
            closed: Cell::new(false),
            local: PhantomData,
        }
    }

    /// Waits until it looks ready for reading. *Blocks.* Readiness is edge-triggered: wait only
    /// after an operation said that it would block, or read less of a stream than it was offered.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    #[track_caller]
    pub fn readable(&self) -> Ready<'_, S> {
        self.ready(Direction::Read, Location::caller())
    }

    /// Waits until it looks ready for writing. *Blocks.*
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    #[track_caller]
    pub fn writable(&self) -> Ready<'_, S> {
        self.ready(Direction::Write, Location::caller())
    }

    /// Readiness in one direction, for a wrapper that knows its caller's place in the source.
    pub fn ready(&self, direction: Direction, site: Site) -> Ready<'_, S> {
        Ready { io: self, direction, call: Call::from(site) }
    }

    /// Ends all waits: who waits now gets [`Error::Closed`], and so does who waits later. The
    /// descriptor itself is closed when this is dropped, so that its number cannot be given out
    /// again while somebody holds it.
    pub fn close(&self) {
        if !self.closed.replace(true)
            && let Some((handle, _)) = self.handle.get()
        {
            posting::post(Post::Close(handle));
        }
    }

    /// Tells the log, if somebody listens, that so many bytes went in that direction.
    #[inline]
    pub fn note(&self, direction: Direction, bytes: usize) {
        if gate::is_listening() {
            self.note_handle(|handle| Note::Moved(handle, direction, bytes));
        }
    }

    /// Tells the log, if somebody listens, that this listener accepted a connection from `peer`.
    #[inline]
    pub fn note_accept<T: Source>(
        &self,
        connection: &Io<T>,
        peer: impl FnOnce() -> Option<SocketAddr>,
    ) {
        if gate::is_listening() {
            let peer = peer().map(Box::new);
            self.note_handle(|handle| Note::Accepted(handle, connection.handle(), peer));
        }
    }

    /// Nobody hears of what happens outside a kernel.
    #[cold]
    fn note_handle(&self, note: impl FnOnce(HandleId) -> Note) {
        if gate::epoch() != 0 {
            posting::post(Post::Note(note(self.handle())));
        }
    }

    /// Its name in the kernel that runs.
    #[inline]
    fn handle(&self) -> HandleId {
        match self.handle.get() {
            Some((handle, epoch)) if epoch == gate::epoch() => handle,
            earlier => self.register(earlier),
        }
    }

    #[cold]
    fn register(&self, earlier: Option<(HandleId, u32)>) -> HandleId {
        let epoch = gate::epoch();
        assert!(epoch != 0, "rule: a descriptor is waited for inside a kernel");
        if let Some((handle, _)) = earlier {
            posting::post(Post::Release { handle, owner: None, sole: false });
        }
        let handle = gate::new_handle();
        let (descriptor, kind) = (self.descriptor(), self.kind());
        posting::post(Post::Register { handle, descriptor, kind });
        self.handle.set(Some((handle, epoch)));
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

impl<S: Source + AsRawFd> AsRawFd for Io<S> {
    fn as_raw_fd(&self) -> RawFd {
        (**self).as_raw_fd()
    }
}

impl<S: Source> Drop for Io<S> {
    fn drop(&mut self) {
        let Some(source) = self.source.take() else { return };
        if let Some((handle, _)) = self.handle.get() {
            let sole = source.is_sole();
            posting::post(Post::Release { handle, owner: source.into_owner(), sole });
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

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Ready { io, direction, call } = &mut *self;
        // A task that waited when it was closed is told by the kernel.
        if io.closed.get() && !call.ticket().is_some_and(filing::is_here) {
            return Poll::Ready(Err(Error::Closed));
        }
        let trap = || Trap::Io { handle: io.handle(), direction: *direction };
        call.poll(cx, trap).map(Error::of)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use super::*;

    #[test]
    #[should_panic(expected = "rule: a descriptor is waited for inside a kernel")]
    fn a_wait_outside_a_kernel_names_the_rule_that_it_breaks() {
        let io = Io::new(Scripted(1));
        let _ = pin!(io.readable()).poll(&mut Context::from_waker(Waker::noop()));
    }
}
