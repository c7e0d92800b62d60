//! The shutdown of a kernel as its tasks see it: whether it has begun, and which work it waits for.
//!
//! A shutdown has phases. *Close*: the kernel sets a flag and wakes the tasks that wait for it.
//! *Drain*: the kernel runs until every [`Hold`] is dropped, or the time for this is over. If the
//! main task itself has asked about the shutdown by a function of this module, the drain also waits
//! for the end of main. Then the kernel cancels the remaining tasks, waits for them, and drops
//! those that are left.
//!
//! A well-behaved server ends its accept loop by [`until_begun`], and each of its connections takes
//! a [`hold`]. The wait for the next request ends when the shutdown begins: either by
//! [`until_begun`], or because the server fires the [deadline](crate::ConnectionDeadline::fire) of
//! that wait.
//!
//! This module decides nothing: the kernel runs the phases.

use std::cell::Cell;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::core::gate;
use crate::core::table::Site;
use crate::interrupts::interrupt::Interrupt;
use crate::sync::WaitInQueue;

/// Returns whether the shutdown of the running kernel has begun. Returns `false` outside a kernel.
/// Does not trap. It takes only a few instructions, so it can be called for each request.
/// If main calls it, the drain of a later shutdown waits for main.
///
/// ```
/// assert!(!traps::shutdown::has_begun()); // no kernel runs here
/// ```
#[inline]
#[must_use]
pub fn has_begun() -> bool {
    gate::ask_shutdown(false)
}

/// Waits until the shutdown begins. *Blocks*, unless the shutdown has begun.
///
/// # Errors
///
/// Returns the interrupt that ended the wait.
///
/// ```
/// # use std::time::Duration;
/// use kernel::{Kernel, Options, Sim};
/// use traps::{Signal, Time, clock, shutdown};
///
/// let second = Duration::from_secs(1);
/// let sim = Sim::new().signal_at(Time::ZERO + second, Signal::Terminate);
/// let options = Options::new().shutdown_on(&[Signal::Terminate]);
/// let mut kernel = Kernel::with_options(sim, options);
/// let ended = kernel.run(async {
///     shutdown::begun().await.unwrap();
///     clock().await
/// });
/// assert_eq!(ended.unwrap(), Time::ZERO + second);
/// ```
#[track_caller]
pub fn begun() -> impl Future<Output = Result<(), Interrupt>> {
    begun_from(Location::caller())
}

async fn begun_from(site: Site) -> Result<(), Interrupt> {
    let Some(kernel) = gate::shared() else { gate::refuse_outside_a_task(site) };
    if gate::ask_shutdown(false) {
        return Ok(());
    }
    WaitInQueue::new(kernel.until_closing.clone(), false, site).await
}

/// Makes a *hold*: work that should finish before the kernel cancels its tasks. The drain lasts
/// until every hold is dropped, but no longer than the kernel's option for it allows. Does not
/// trap. A hold can also be taken after the shutdown has begun. Outside a kernel it has no effect.
///
/// ```
/// # use std::time::Duration;
/// use kernel::{Kernel, Sim};
/// use traps::{Time, shutdown, sleep, spawn};
///
/// let second = Duration::from_secs(1);
/// let sim = Sim::new();
/// let clock = sim.clock();
/// let mut kernel = Kernel::new(sim);
/// let main = kernel.run(async {
///     let transfer = async move {
///         let _hold = shutdown::hold();
///         sleep(3 * second).await
///     };
///     spawn("transfer", transfer).detached().await;
///     sleep(second).await
/// });
/// assert_eq!(main.unwrap().unwrap(), Time::ZERO + second);
/// kernel.shutdown().unwrap(); // waits until the transfer is over
/// assert_eq!(clock.now(), Time::ZERO + 3 * second);
/// ```
#[must_use = "a hold that is dropped holds nothing"]
pub fn hold() -> Hold {
    let all = gate::with_shared(|kernel| kernel.holds.clone());
    if let Some(all) = &all {
        all.set(all.get() + 1);
    }
    Hold { all }
}

/// Runs `wait` until the shutdown begins. Returns the value of `wait`, or `None` if the shutdown
/// begins first. Adds no error of its own. Outside a kernel, runs `wait` alone.
///
/// If the shutdown has already begun, `wait` is polled once. If it is then ready, its value is
/// returned, because it must not be lost. So a loop over a source that is always ready, such as a
/// full queue, goes through the whole queue after the shutdown has begun. To stop earlier, the loop
/// must ask [`has_begun`] before each wait.
///
/// This makes no trap. It is for waits that are repeated often, such as the wait for the next
/// request. When the shutdown begins, every task that ever used it is polled once.
///
/// ```
/// # use std::time::Duration;
/// # use kernel::{Kernel, Options, Sim};
/// # use traps::{Signal, Time};
/// use traps::{shutdown, sleep};
///
/// let second = Duration::from_secs(1);
/// let sim = Sim::new().signal_at(Time::ZERO + 150 * second, Signal::Terminate);
/// let options = Options::new().shutdown_on(&[Signal::Terminate]);
/// # let mut kernel = Kernel::with_options(sim, options);
/// # let main = kernel.run(async {
/// // One round a minute, until the shutdown begins.
/// let mut rounds = 0;
/// while shutdown::until_begun(sleep(60 * second)).await.transpose()?.is_some() {
///     rounds += 1;
/// }
/// assert_eq!(rounds, 2);
/// # Ok::<(), traps::Interrupt>(())
/// # });
/// # main.unwrap().unwrap();
/// ```
pub fn until_begun<F: Future>(wait: F) -> UntilBegun<F> {
    UntilBegun { wait }
}

/// A guard that keeps the drain of a shutdown waiting, made by [`hold`]. Belongs to its thread. The
/// default holds nothing, for a field that gets its hold later.
#[derive(Debug, Default)]
#[must_use = "a hold that is dropped holds nothing"]
pub struct Hold {
    /// The number of holds in the kernel.
    all: Option<Rc<Cell<u64>>>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(all) = &self.all {
            all.set(all.get() - 1);
        }
    }
}

pin_project! {
    /// The future of [`until_begun`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct UntilBegun<F> {
        #[pin]
        wait: F,
    }
}

impl<F: Future> Future for UntilBegun<F> {
    type Output = Option<F::Output>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        match self.project().wait.poll(cx) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            // Ask after the poll: a value that is there when the shutdown begins must not be lost.
            Poll::Pending if gate::ask_shutdown(true) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}
