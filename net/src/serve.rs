//! A server of any protocol: a task for each connection, a limit, and an end.

use std::fmt::Display;
use std::io;
use std::ops::{Deref, DerefMut};

use traps::shutdown::{Hold, has_begun, hold};
use traps::sync::{Permit, Semaphore};
use traps::{note, spawn};

/// Accepts connections and serves each in a task of its own, `limit` at most at a time: while all
/// slots are taken it does not accept, and clients wait in the backlog. *Blocks* until `accept`
/// gives `None`. The connections that are left then go on, and each holds the
/// [shutdown](traps::shutdown) up until it has ended.
///
/// `accept` gives the next stream, or `None` when no more is to be served, as
/// [`accept_until_shutdown`](crate::TcpListener::accept_until_shutdown) does when the shutdown
/// begins. If it gives streams all the same, as many are served as there are slots. It also decides
/// which errors end the server: a [`TcpListener`] waits and tries again when descriptors run out,
/// and skips connections that have failed.
///
/// A connection that fails ends alone and frees its slot; its error is a `note` in the log. Its
/// task is `conn-1` and so on.
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
///     serve(async || listener.accept_until_shutdown().await, 1000, echo).await
/// }
/// ```
///
/// # Errors
///
/// Those of `accept`; the interrupt that ended the wait for a slot. The connections go on.
///
/// # Panics
///
/// If `limit` is zero.
///
/// [`TcpListener`]: crate::TcpListener
pub async fn serve<S, F, E>(
    mut accept: impl AsyncFnMut() -> io::Result<Option<S>>,
    limit: u32,
    mut handle: impl FnMut(Connection<S>) -> F,
) -> io::Result<()>
where
    F: Future<Output = Result<(), E>> + 'static,
    E: Display + 'static,
{
    assert!(limit > 0, "rule: a server has one slot at least");
    // Of those in the backlog as many are served as there are slots, before the drain ends.
    let _hold = hold();
    let (slots, mut accepted, mut late) = (Semaphore::new(limit), 0_u64, limit);
    while late > 0 {
        let permit = slots.acquire().await?;
        let Some(stream) = accept().await? else { break };
        accepted += 1;
        late -= u32::from(has_begun());
        let slot = Slot { _permit: permit, _hold: hold() };
        let connection = handle(Connection { stream, slot });
        let noted = async move {
            if let Err(error) = connection.await {
                note(error);
            }
        };
        spawn(format!("conn-{accepted}"), noted).detached().await;
    }
    Ok(())
}

/// A connection that is [served](serve): its stream, and its slot.
#[derive(Debug)]
pub struct Connection<S> {
    // Dropped first: the next one may need its descriptor.
    stream: S,
    slot: Slot,
}

/// A slot in a [server](serve), and a [hold](traps::shutdown::hold) of the shutdown; both are given
/// up when it is dropped.
#[derive(Debug)]
#[must_use = "a slot that is dropped is given up at once"]
pub struct Slot {
    _permit: Permit,
    _hold: Hold,
}

impl<S> Connection<S> {
    /// The stream, and the slot, which is to live as long.
    pub fn into_parts(self) -> (S, Slot) {
        (self.stream, self.slot)
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
