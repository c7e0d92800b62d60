//! A server for any protocol: one task per connection, a connection limit, and a clean end.

use std::fmt::Display;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::task::Context;

use traps::Site;
use traps::shutdown::{Hold, has_begun, hold};
use traps::sync::{Permit, Semaphore};
use traps::{Either, clock, spawn};

use crate::family::Family;
use crate::halves::Split;
use crate::stream::{Stream, forward};
use crate::stream_socket::{OwnedReadHalf, OwnedWriteHalf, StreamSocket};
use crate::throttle::Warnings;

/// Accepts connections, and serves each one in its own task. Serves at most `limit` connections at
/// a time. While all slots are taken it does not accept, so clients wait in the backlog. *Blocks*
/// until `accept` returns `None`. The remaining connections then continue, and each one holds up
/// the [shutdown](traps::shutdown) until it has ended.
///
/// `accept` returns the next stream, or `None` to end the server, as
/// [`accept_until_shutdown`](crate::TcpListener::accept_until_shutdown) does once the shutdown has
/// begun. If `accept` still returns streams after that, the server serves at most `limit` more.
/// `accept` also decides which errors end the server: a [`TcpListener`] waits and tries again if
/// descriptors run out, and skips failed connections.
///
/// If a connection fails, its slot is freed, and the others continue. Its error becomes a `warn`
/// line in the log, with the address of the peer if `accept` returns it too, as
/// [`accept_peer_until_shutdown`](crate::TcpListener::accept_peer_until_shutdown) does. Because
/// clients can cause failures at will, there is at most one line a second, which counts the
/// failures since the previous line. The tasks are named `conn-1` and so on.
///
/// ```no_run
/// use std::io;
///
/// use net::{Connection, TcpListener, TcpStream, serve};
/// use traps::shutdown::until_begun;
///
/// async fn echo(mut stream: Connection<TcpStream>) -> io::Result<()> {
///     let mut buf = vec![0; 1024];
///     while let Some(n) = until_begun(stream.read(&mut buf)).await.transpose()? {
///         if n == 0 {
///             break;
///         }
///         stream.write_all(&buf[..n]).await?;
///     }
///     Ok(())
/// }
///
/// async fn server() -> io::Result<()> {
///     let mut listener = TcpListener::bind("127.0.0.1:8080")?;
///     serve(async || listener.accept_peer_until_shutdown().await, 1000, echo).await
/// }
/// ```
///
/// # Errors
///
/// Returns an error if `accept` fails, and the interrupt that ended the wait for a slot. The
/// connections continue.
///
/// # Panics
///
/// Panics if `limit` is zero.
///
/// [`TcpListener`]: crate::TcpListener
pub async fn serve<A, F, E>(
    mut accept: impl AsyncFnMut() -> io::Result<Option<A>>,
    limit: u32,
    mut handle: impl FnMut(Connection<A::Stream>) -> F,
) -> io::Result<()>
where
    A: Accepted,
    F: Future<Output = Result<(), E>> + 'static,
    E: Display + 'static,
{
    assert!(limit > 0, "rule: a server has one slot at least");
    // Hold the shutdown, so that up to `limit` connections from the backlog are still served.
    let _hold = hold();
    let (slots, mut accepted, mut late) = (Semaphore::new(limit), 0_u64, limit);
    let failures = Failures::default();
    while late > 0 {
        let permit = slots.acquire().await?;
        let Some((stream, peer)) = accept().await?.map(A::into_parts) else { break };
        if failures.0.owes() {
            failures.0.sum_up(Some(clock().await));
        }
        accepted += 1;
        late -= u32::from(has_begun());
        let slot = Either::Left(Slot { _permit: permit, _hold: hold() });
        let connection = handle(Connection { stream, slot });
        let failures = failures.clone();
        let noted = async move {
            if let Err(error) = connection.await {
                failures.note(error, peer).await;
            }
        };
        spawn(format!("conn-{accepted}"), noted).detached().await;
    }
    Ok(())
}

/// A stream that a server has accepted, alone or with the address of its peer.
pub trait Accepted {
    /// The type of the stream.
    type Stream: Stream;

    /// Returns the stream, and the address of its peer if it is known.
    fn into_parts(self) -> (Self::Stream, Option<SocketAddr>);
}

impl<S: Stream> Accepted for S {
    type Stream = S;

    fn into_parts(self) -> (S, Option<SocketAddr>) {
        (self, None)
    }
}

impl<S: Stream> Accepted for (S, SocketAddr) {
    type Stream = S;

    fn into_parts(self) -> (S, Option<SocketAddr>) {
        (self.0, Some(self.1))
    }
}

/// The messages about failed connections of a server, which its connections share.
#[derive(Clone, Default)]
struct Failures(Rc<Warnings>);

impl Failures {
    async fn note(&self, error: impl Display, peer: Option<SocketAddr>) {
        let of = peer.map(|peer| format!("{peer}: ")).unwrap_or_default();
        self.0.warn(format_args!("{of}{error}"), clock().await);
    }
}

impl Drop for Failures {
    fn drop(&mut self) {
        // The server and its other connections have ended.
        if Rc::strong_count(&self.0) == 1 {
            self.0.sum_up(None);
        }
    }
}

/// A [served](serve) connection, or a half of one. It is a [`Stream`], and derefs to its stream for
/// the methods that only this kind of stream has.
///
/// It owns a slot of the server and a [hold](traps::shutdown::hold) of the shutdown. Both are
/// released when it is dropped, so a task that keeps the stream keeps the slot too.
#[derive(Debug)]
pub struct Connection<S> {
    // Dropped first, because the next connection may need its descriptor.
    stream: S,
    /// The slot, which two halves share. A whole connection needs no allocation for it.
    slot: Either<Slot, Rc<Slot>>,
}

/// A slot in a server, and a hold of the shutdown.
#[derive(Debug)]
struct Slot {
    _permit: Permit,
    _hold: Hold,
}

impl<F: Family> Connection<StreamSocket<F>> {
    /// Splits the connection into two halves for two tasks, as
    /// [`StreamSocket::into_split`] does. The slot is released when both are dropped.
    #[must_use]
    pub fn into_split(self) -> (Connection<OwnedReadHalf<F>>, Connection<OwnedWriteHalf<F>>) {
        let slot = match self.slot {
            Either::Left(slot) => Rc::new(slot),
            Either::Right(slot) => slot,
        };
        let (reader, writer) = self.stream.into_split();
        let half = Either::Right(slot.clone());
        (
            Connection { stream: reader, slot: half },
            Connection { stream: writer, slot: Either::Right(slot) },
        )
    }
}

impl<S: Stream> Stream for Connection<S> {
    forward!(self, self.stream);
}

impl<S: Split> Split for Connection<S> {
    fn split(&mut self) -> (impl Stream, impl Stream) {
        self.stream.split()
    }
}

impl<S> Deref for Connection<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.stream
    }
}

impl<S> DerefMut for Connection<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.stream
    }
}
