//! Try first, trap on "not yet": the one loop behind every operation of this crate.

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::AsFd;
use std::pin::pin;
use std::task::Poll;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use traps::core::names::Site;
use traps::{budget_from, take_budget};

/// What an operation of the system comes to, tried once; `None` where it would block.
#[inline(always)]
pub(crate) fn attempt<T>(mut operation: impl FnMut() -> Result<T, Errno>) -> Option<io::Result<T>> {
    loop {
        match operation() {
            Err(Errno::AGAIN) => return None,
            Err(Errno::INTR) => {}
            done => return Some(done.map_err(io::Error::from)),
        }
    }
}

/// Whether one of those is so now, or the descriptor has failed.
pub(crate) fn is_any(descriptor: impl AsFd, flags: PollFlags) -> Result<bool, Errno> {
    Ok(poll(&mut [PollFd::new(&descriptor, flags)], Some(&Timespec::default()))? > 0)
}

/// Makes attempts until one comes to something, and waits before each but the first; before that
/// too if it is known to find nothing. Takes one operation from the budget.
///
/// Nothing is held over from a wait that was interrupted or dropped: the next operation tries
/// first, so readiness that went to a wait which nobody finished is found by the try.
#[allow(clippy::manual_async_fn, reason = "an async fn has its arguments twice")]
#[inline]
pub(crate) fn until_done<T, W, U, E>(
    waits_first: bool,
    site: Site,
    mut wait: impl FnMut() -> W,
    mut attempt: impl FnMut() -> Option<io::Result<T>>,
) -> impl Future<Output = io::Result<T>>
where
    W: Future<Output = Result<U, E>>,
    io::Error: From<E>,
{
    async move {
        if !take_budget() {
            budget_from(site).await?;
        }
        let mut waits = waits_first;
        loop {
            if waits {
                wait().await?;
            }
            if let Some(done) = attempt() {
                return done;
            }
            waits = true;
        }
    }
}

/// What the future that `make` gives comes to without waiting. Else it is dropped and its requests
/// are withdrawn: they never happened. It is nowhere but on the stack.
pub(crate) async fn now<F: Future>(make: impl FnOnce() -> F) -> Option<F::Output> {
    let mut make = Some(make);
    poll_fn(|cx| {
        let make = make.take().expect("a future that was ready is not polled again");
        match pin!(make()).poll(cx) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending => Poll::Ready(None),
        }
    })
    .await
}
