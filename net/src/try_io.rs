//! Try first, and trap only if the operation would block: the loop behind every operation of this
//! crate.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::task::{Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use traps::Site;
use traps::internal::{budget_from, take_budget, tape};
use traps::is_traced;

use crate::record::{self, Handle};

/// Runs `operation`, again after each `EINTR`. Returns `None` if `operation` would block
/// (`EAGAIN`).
#[inline(always)]
pub(crate) fn try_io<T>(mut operation: impl FnMut() -> Result<T, Errno>) -> Option<io::Result<T>> {
    loop {
        match operation() {
            Err(Errno::AGAIN) => return None,
            Err(Errno::INTR) => {}
            done => return Some(done.map_err(io::Error::from)),
        }
    }
}

/// The largest number of slices that one system call takes: Linux's `UIO_MAXIOV`. The standard
/// library does not export this number.
const MOST_SLICES: usize = 1024;

/// Returns the slices for one system call, from the first slice that is not empty. If the system
/// were given empty slices only, it would write nothing, and the stream would look as if it took no
/// bytes.
pub(crate) fn for_one_call<'a, 'b>(slices: &'a [IoSlice<'b>]) -> &'a [IoSlice<'b>] {
    let from = slices.iter().position(|slice| !slice.is_empty()).unwrap_or(slices.len());
    &slices[from..slices.len().min(from + MOST_SLICES)]
}

/// Returns whether one of `flags` holds for the descriptor now, or the descriptor has failed.
pub(crate) fn is_any<const KIND: char>(
    handle: &Handle<KIND>,
    flags: PollFlags,
) -> io::Result<bool> {
    record::call("poll", || Ok(polls(handle.get()?, flags)?))
}

/// Polls a descriptor as [`is_any`] does, within another recorded system call.
pub(crate) fn polls(descriptor: impl AsFd, flags: PollFlags) -> Result<bool, Errno> {
    Ok(poll(&mut [PollFd::new(&descriptor, flags)], Some(&Timespec::default()))? > 0)
}

/// Notes the call site of an operation on the tape, for the report of a divergence.
pub(crate) fn note_site(site: Site) {
    if is_traced() {
        tape::at(site);
    }
}

/// Repeats `try_io` until it does not return `None`, and waits before each retry. If `waits_first`
/// is set, the caller knows that the first attempt would find nothing, so the function waits first.
/// Takes one operation from the budget.
///
/// No state survives a wait that was interrupted or dropped. The next operation tries first, so it
/// finds the bytes whose readiness the lost wait announced.
///
/// This is a `poll_fn`, because an async block would take more instructions per operation.
#[inline]
pub(crate) fn until_done<T, W, U, E>(
    waits_first: bool,
    site: Site,
    mut wait: impl FnMut() -> W,
    mut try_io: impl FnMut() -> Option<io::Result<T>>,
) -> impl Future<Output = io::Result<T>>
where
    W: Future<Output = Result<U, E>> + Unpin,
    io::Error: From<E>,
{
    let (mut is_paid, mut waits) = (false, waits_first);
    let (mut budget, mut waiting) = (None, None);
    poll_fn(move |cx| {
        if !is_paid {
            if budget.is_some() || !take_budget() {
                let budget = budget.get_or_insert_with(|| budget_from(site));
                ready!(Pin::new(budget).poll(cx))?;
            }
            is_paid = true;
        }
        loop {
            if waits {
                ready!(Pin::new(waiting.get_or_insert_with(&mut wait)).poll(cx))?;
                waiting = None;
            }
            if let Some(done) = try_io() {
                return Poll::Ready(done);
            }
            waits = true;
        }
    })
}

/// Makes a future with `make`, and polls it once. Returns its output, or `None` if the future would
/// wait. A future that would wait is dropped and its requests are withdrawn, as if it had never
/// been made. The future stays on the stack.
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
