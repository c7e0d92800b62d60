//! Waiting to be woken from outside the task: the one trap that any thread may end.
//!
//! The types shared between tasks and threads are built on it, as [`universal`](crate::universal)
//! is.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::combine::Either;
use crate::core::call::Call;
use crate::core::gate::{self, Outside};
use crate::core::interrupt::Interrupt;
use crate::core::names::{Site, Ticket};
use crate::core::protocol::{Parked, Trap};

/// Wakes one wait, from any thread, and no other: it names the ticket with its serial number, so
/// one that comes too late, or twice, wakes nobody.
///
/// Cheap to clone: a reference count. On the kernel's own thread a wake needs no lock.
#[derive(Clone)]
pub struct OutsideWaker {
    ticket: Ticket,
    outside: Arc<dyn Outside>,
}

impl OutsideWaker {
    /// Ends the wait, if that has not ended yet. Never blocks for the kernel, never fails.
    pub fn wake(&self) {
        self.outside.unpark(self.ticket);
    }
}

impl fmt::Debug for OutsideWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutsideWaker").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// Waits until it is woken through an [`OutsideWaker`], from any thread. *Blocks*. Can be
/// interrupted, and a wake that comes after that is for nobody.
///
/// `register` gets the waker, in the poll in which the wait is filed and before the task leaves
/// the CPU: it puts the waker where it will be found, and says whether to wait. It looks at the
/// condition under the same lock as it puts the waker there, so that no wake is missed; if the
/// condition has come true meanwhile it says no, and the wait ends at once and was never filed. It
/// is called again, with a new waker, where the future goes on in another kernel.
///
/// `what` is one word for the log.
///
/// # Errors
///
/// The interrupt that ended the wait.
///
/// ```no_run
/// # async fn example() -> Result<(), traps::Interrupt> {
/// traps::outside("a_thread", |waker| {
///     std::thread::spawn(move || waker.wake());
///     true
/// })
/// .await
/// # }
/// ```
#[track_caller]
pub fn outside<R>(what: &'static str, register: R) -> WaitOutside<R>
where
    R: FnMut(OutsideWaker) -> bool,
{
    WaitOutside { wait: Wait::here(Parked::Outside(what)), register }
}

/// The future of [`outside()`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct WaitOutside<R> {
    wait: Wait,
    register: R,
}

impl<R> WaitOutside<R> {
    /// Something outside the kernel will wake it: a virtual clock stands still until it does.
    /// Without this a simulated kernel with nothing else to wait for calls it a hang.
    pub fn external(mut self) -> WaitOutside<R> {
        self.wait.external = true;
        self
    }
}

impl<R> Unpin for WaitOutside<R> {}

impl<R> Future for WaitOutside<R>
where
    R: FnMut(OutsideWaker) -> bool,
{
    type Output = Result<(), Interrupt>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let WaitOutside { wait, register } = &mut *self;
        let refuses = |waker| if register(waker) { None } else { Some(()) };
        wait.poll(cx, refuses).map(|ended| match ended {
            Either::Left(()) => Ok(()),
            Either::Right(ended) => ended,
        })
    }
}

/// The trap below every wait for something outside.
#[derive(Debug)]
pub(crate) struct Wait {
    call: Call,
    pub(crate) what: Parked,
    /// Whether a virtual clock stands still meanwhile.
    pub(crate) external: bool,
    /// The wait whose waker was registered.
    known: Option<Ticket>,
}

impl Wait {
    #[track_caller]
    pub(crate) fn here(what: Parked) -> Wait {
        Wait::from(what, Location::caller())
    }

    pub(crate) fn from(what: Parked, site: Site) -> Wait {
        Wait { call: Call::from(site), what, external: false, known: None }
    }

    /// Files the trap and hands its waker to `register`, which gives a value if there is nothing
    /// to wait for any more: that comes on the left, and the end of the trap on the right.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        register: impl FnOnce(OutsideWaker) -> Option<T>,
    ) -> Poll<Either<T, Result<(), Interrupt>>> {
        let Wait { call, what, external, known } = self;
        let trap = || Trap::Park { what: *what, external: *external };
        if let Poll::Ready(reply) = call.poll(cx, trap) {
            *known = None;
            return Poll::Ready(Either::Right(reply.done()));
        }
        let ticket = call.ticket().expect("a call that pends is filed");
        if *known != Some(ticket) {
            *known = Some(ticket);
            let kernel = gate::shared().expect("who polls a task is a kernel");
            let waker = OutsideWaker { ticket, outside: kernel.outside.clone() };
            if let Some(value) = register(waker) {
                self.abandon();
                return Poll::Ready(Either::Left(value));
            }
        }
        Poll::Pending
    }

    /// Gives the trap up, whatever came of it.
    pub(crate) fn abandon(&mut self) {
        self.known = None;
        self.call.abandon();
    }
}
