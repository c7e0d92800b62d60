//! Waits that any thread can end. The types shared between tasks and threads are built on this
//! trap, for example those of [`universal`](crate::universal).

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::combine::Either;
use crate::core::gate::{self, Outside};
use crate::core::protocol::{ParkedOn, Trap};
use crate::core::table::{Site, Ticket};
use crate::core::wait::Call;
use crate::interrupts::interrupt::Interrupt;

/// A waker for one wait, for use from any thread. It names the wait by its ticket, and no two waits
/// have the same ticket. So a wake-up that is late or repeated wakes no other wait.
///
/// A clone costs one change of a reference count. On the kernel's own thread, a wake-up takes no
/// lock.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use traps::{OutsideWaker, outside};
///
/// # testing::run(async {
/// let slot: Arc<Mutex<Option<OutsideWaker>>> = Arc::default();
/// let theirs = slot.clone();
/// let wait = outside("slot", |waker| theirs.lock().unwrap().replace(waker).is_none());
/// let wake = async { slot.lock().unwrap().take().unwrap().wake() };
/// traps::join(wait, wake).await.0.unwrap();
/// # });
/// ```
#[derive(Clone)]
pub struct OutsideWaker {
    ticket: Ticket,
    outside: Arc<dyn Outside>,
}

impl OutsideWaker {
    /// Ends the wait, unless it has already ended. Never waits for the kernel, and never fails.
    ///
    /// ```
    /// # testing::run(async {
    /// let wait = traps::outside("thread", |waker| {
    ///     std::thread::spawn(move || waker.wake());
    ///     true
    /// });
    /// wait.external().await.unwrap();
    /// # });
    /// ```
    pub fn wake(&self) {
        self.outside.unpark(self.ticket);
    }
}

impl fmt::Debug for OutsideWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutsideWaker").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// Waits until a thread calls [`OutsideWaker::wake`] for this wait. *Blocks.* Can be interrupted; a
/// wake-up after the interrupt has no effect.
///
/// `register` gets the waker in the poll that files the wait, before the task leaves the CPU. It
/// stores the waker where the other thread will find it, and returns whether to wait. It must check
/// the condition and store the waker under the same lock; otherwise a wake-up can be missed. If the
/// condition already holds, it returns `false`: the wait is withdrawn and ends at once. If the
/// future continues in another kernel, `register` is called again with a new waker.
///
/// `what` is one word for the log.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use traps::{OutsideWaker, outside};
///
/// /// A result that a thread computes, and the waker of the task that waits for it.
/// #[derive(Default)]
/// struct Slot {
///     result: Option<u32>,
///     waker: Option<OutsideWaker>,
/// }
///
/// # testing::run(async {
/// let slot = Arc::new(Mutex::new(Slot::default()));
/// let theirs = slot.clone();
/// std::thread::spawn(move || {
///     let mut slot = theirs.lock().unwrap();
///     slot.result = Some(7);
///     slot.waker.take().inspect(OutsideWaker::wake);
/// });
/// let wait = outside("slot", |waker| {
///     let mut slot = slot.lock().unwrap();
///     slot.waker = Some(waker);
///     slot.result.is_none()
/// });
/// wait.external().await.unwrap();
/// assert_eq!(slot.lock().unwrap().result, Some(7));
/// # });
/// ```
///
/// # Errors
///
/// Returns the interrupt that ended the wait.
#[track_caller]
pub fn outside<R>(what: &'static str, register: R) -> WaitOutside<R>
where
    R: FnMut(OutsideWaker) -> bool,
{
    WaitOutside { wait: OutsideCall::here(ParkedOn::Outside(what)), register }
}

/// The future of [`outside()`].
///
/// ```
/// use traps::{WaitOutside, outside};
///
/// # testing::run(async {
/// let wait: WaitOutside<_> = outside("nothing", |_waker| false);
/// wait.await.unwrap(); // there was no reason to wait
/// # });
/// ```
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct WaitOutside<R> {
    wait: OutsideCall,
    register: R,
}

impl<R> WaitOutside<R> {
    /// States that something outside the kernel will wake the task. A virtual clock stands still
    /// until then. Without this, a simulated kernel with nothing else to wait for reports a hang.
    ///
    /// ```
    /// use std::thread;
    /// use traps::{clock, outside};
    ///
    /// # testing::run(async {
    /// let wait = outside("thread", |waker| {
    ///     thread::spawn(move || waker.wake());
    ///     true
    /// });
    /// wait.external().await.unwrap();
    /// assert_eq!(clock().await.as_micros(), 0); // the virtual clock stood still
    /// # });
    /// ```
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

/// The trap below every wait for something outside the kernel.
#[derive(Debug)]
pub(crate) struct OutsideCall {
    call: Call,
    pub(crate) what: ParkedOn,
    /// Whether a virtual clock stands still during the wait.
    pub(crate) external: bool,
    /// The wait whose waker was registered. A wait that was filed again, because another task polls
    /// it, has another ticket and needs another waker.
    known: Option<Ticket>,
}

impl OutsideCall {
    #[track_caller]
    pub(crate) fn here(what: ParkedOn) -> OutsideCall {
        OutsideCall::from(what, Location::caller())
    }

    pub(crate) fn from(what: ParkedOn, site: Site) -> OutsideCall {
        OutsideCall { call: Call::from(site), what, external: false, known: None }
    }

    /// Files the trap and hands its waker to `register`. If there is no reason to wait any more,
    /// `register` returns a value. The result is `Left` with that value, or `Right` with the result
    /// of the trap.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        register: impl FnOnce(OutsideWaker) -> Option<T>,
    ) -> Poll<Either<T, Result<(), Interrupt>>> {
        let OutsideCall { call, what, external, known } = self;
        let trap = || Trap::Park { what: *what, external: *external };
        if let Poll::Ready(reply) = call.poll(cx, trap) {
            *known = None;
            return Poll::Ready(Either::Right(reply.done()));
        }
        let ticket = call.ticket().expect("a call that pends is filed");
        if *known != Some(ticket) {
            let kernel = gate::shared().expect("a filed trap has a kernel");
            let waker = OutsideWaker { ticket, outside: kernel.outside.clone() };
            if let Some(value) = register(waker) {
                self.abandon();
                return Poll::Ready(Either::Left(value));
            }
            *known = Some(ticket);
        }
        Poll::Pending
    }

    /// Withdraws the trap, whether it is filed, parked or answered.
    pub(crate) fn abandon(&mut self) {
        self.known = None;
        self.call.abandon();
    }
}
