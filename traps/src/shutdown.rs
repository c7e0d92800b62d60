//! The end of a kernel as its tasks see it: whether it has begun, and who is not done yet.
//!
//! A shutdown goes through phases. *Close*: the flag is set and who waits for it is woken. *Drain*:
//! until every [`Hold`] is dropped, or too long. Then all that is left is cancelled, awaited and
//! dropped. A server that ends well ends its accept loop by [`until_begun`]. Each of its
//! connections takes a [`hold`]. The wait for its next request ends when the shutdown begins: by
//! [`until_begun`] too, or because the server fires the
//! [deadline](crate::ConnectionDeadline::fire) of that wait.
//!
//! Decides nothing: the phases are the kernel's.

use std::cell::Cell;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::core::gate;
use crate::core::interrupt::Interrupt;
use crate::core::names::Site;
use crate::sync::Wait;

/// Whether the shutdown of the kernel that runs here has begun; false outside a kernel. Does not
/// trap. A few instructions: it may be asked for each request.
#[inline]
#[must_use]
pub fn has_begun() -> bool {
    gate::with_shared(|kernel| kernel.closing.get()).unwrap_or(false)
}

/// Waits until the shutdown begins. *Blocks*; ready at once if it has begun.
///
/// # Errors
///
/// The interrupt that ended the wait.
#[track_caller]
pub fn begun() -> impl Future<Output = Result<(), Interrupt>> {
    begun_from(Location::caller())
}

async fn begun_from(site: Site) -> Result<(), Interrupt> {
    let Some(kernel) = gate::shared() else { gate::refuse_outside_a_task(site) };
    if kernel.closing.get() {
        return Ok(());
    }
    Wait::new(kernel.until_closing.clone(), false, site).await
}

/// Says that something is to be finished before the kernel cancels its tasks: the drain lasts
/// until every hold is dropped, but no longer than the kernel's option for it says. Does not trap;
/// may be taken after the shutdown has begun. Outside a kernel it holds nothing.
#[must_use = "a hold that is dropped holds nothing"]
pub fn hold() -> Hold {
    let all = gate::with_shared(|kernel| kernel.holds.clone());
    if let Some(all) = &all {
        all.set(all.get() + 1);
    }
    Hold { all }
}

/// Runs `wait`, but no longer than until the shutdown begins: then `None`, and `wait` is given up.
/// A value that is there wins. Once the shutdown has begun, `wait` is polled once. Has no error of
/// its own. Outside a kernel it is just `wait`.
///
/// Costs no trap: it is for waits that are made again and again, such as that for the next request.
/// A task that has ever used it is polled once when the shutdown begins.
///
/// ```no_run
/// # async fn example() -> Result<(), traps::Interrupt> {
/// use std::time::Duration;
/// use traps::{shutdown, sleep};
///
/// // Every minute until the kernel ends.
/// while shutdown::until_begun(sleep(Duration::from_secs(60))).await.transpose()?.is_some() {
///     println!("a minute");
/// }
/// # Ok(())
/// # }
/// ```
pub fn until_begun<F: Future>(wait: F) -> UntilBegun<F> {
    UntilBegun { wait }
}

/// Keeps the drain of a shutdown going; see [`hold`]. Belongs to its thread.
#[derive(Debug)]
#[must_use = "a hold that is dropped holds nothing"]
pub struct Hold {
    /// How many there are in the kernel.
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
            Poll::Pending if has_begun() => Poll::Ready(None),
            Poll::Pending => {
                gate::watch_shutdown();
                Poll::Pending
            }
        }
    }
}
