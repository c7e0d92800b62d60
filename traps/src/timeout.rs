//! Timeouts: a deadline around a future, as an error or as an option.
//!
//! Each is a scope with a limit; how scopes open and close is in `scope.rs`.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::call::Call;
use crate::interrupt::Interruptible;
use crate::protocol::{Limit, ScopeKind};
use crate::scope::{Scoped, left, relabel};
use crate::time::Time;

/// Polls a timeout: `Ok` with the inner output, relabelled, and whether this scope timed out.
fn poll_timeout<F, T, E>(
    mut scoped: Pin<&mut Scoped<F>>,
    cx: &mut Context<'_>,
) -> Poll<(Result<T, E>, bool)>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    let (open, inner) = ready!(scoped.as_mut().poll_inner(cx));
    let site = scoped.opener.call.site();
    let (result, own) = relabel(inner, open.scope, open.deadline, site);
    scoped.finish(left(&result));
    Poll::Ready((result, own))
}

fn limit(span: Option<Duration>) -> Limit {
    span.map_or(Limit::Never, Limit::After)
}

/// Runs `future` under a deadline `span` from the first poll; `None` sets no limit of its own.
///
/// The sooner of this deadline and those around it is in force. A deadline that has passed ends
/// the first trap inside that parks; a span of zero has passed at once, yet a first
/// `sleep(ZERO)` completes.
///
/// Opens without a trap: `future` is polled at once. Costs no system call and no allocation; one
/// whose `future` is ready at its first poll costs a place in a table for so long, and two readings
/// of a clock. That is the coarse one for spans of 100 ms and more. Their deadline counts from the
/// end of that poll, but from two ticks of that clock (of 4 ms on most machines) after its
/// beginning at most; on a simulated machine, from its beginning.
///
/// Polled by another task, it goes on there with its deadline, as long as the task that began it
/// lives. That task's end closes its scopes: what is polled on after it has no limit of this kind.
///
/// The error type is whichever carries the interrupt; where nothing else says which, write it:
///
/// ```no_run
/// # use std::time::Duration;
/// # use traps::{Interrupt, sleep, timeout_after};
/// # async fn example() -> Result<(), Interrupt> {
/// let steps = async {
///     sleep(Duration::from_secs(1)).await?;
///     sleep(Duration::from_secs(2)).await?;
///     Ok::<_, Interrupt>("both")
/// };
/// assert_eq!(timeout_after(Duration::from_secs(5), steps).await?, "both");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of `future`. The interrupt in them is a [`TaskTimeout`] if this deadline passed, a
/// [`TimeoutCancellation`] if one further out did, and an [`UncaughtTimeout`] if one further in did
/// and was not handled there.
///
/// [`TaskTimeout`]: crate::Kind::TaskTimeout
/// [`TimeoutCancellation`]: crate::Kind::TimeoutCancellation
/// [`UncaughtTimeout`]: crate::Kind::UncaughtTimeout
#[track_caller]
pub fn timeout_after<F, T, E>(span: impl Into<Option<Duration>>, future: F) -> TimeoutAfter<F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    TimeoutAfter::new(Call::here(), limit(span.into()), future)
}

/// Runs `future` under a deadline at a point of kernel time, which may have passed; else like
/// [`timeout_after`].
#[track_caller]
pub fn timeout_at<F, T, E>(deadline: impl Into<Option<Time>>, future: F) -> TimeoutAfter<F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    TimeoutAfter::new(Call::here(), deadline.into().map_or(Limit::Never, Limit::At), future)
}

pin_project! {
    /// The future of [`timeout_after`] and [`timeout_at`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct TimeoutAfter<F> {
        #[pin]
        scoped: Scoped<F>,
    }
}

impl<F: Future> TimeoutAfter<F> {
    pub(crate) fn new(call: Call, limit: Limit, future: F) -> TimeoutAfter<F> {
        TimeoutAfter { scoped: Scoped::new(call, limit, ScopeKind::Timeout, future) }
    }
}

impl<F, T, E> Future for TimeoutAfter<F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    type Output = Result<T, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        poll_timeout(self.project().scoped, cx).map(|(result, _)| result)
    }
}

/// Like [`timeout_after`], but its own timeout is not an error: `Ok(None)`.
///
/// # Errors
///
/// Those of `future`, but for an interrupt by this deadline.
#[track_caller]
pub fn ignore_after<F, T, E>(span: impl Into<Option<Duration>>, future: F) -> IgnoreAfter<F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    IgnoreAfter::new(Call::here(), limit(span.into()), future)
}

/// Like [`timeout_at`], but its own timeout is not an error: `Ok(None)`.
///
/// # Errors
///
/// Those of `future`, but for an interrupt by this deadline.
#[track_caller]
pub fn ignore_at<F, T, E>(deadline: impl Into<Option<Time>>, future: F) -> IgnoreAfter<F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    let limit = deadline.into().map_or(Limit::Never, Limit::At);
    IgnoreAfter::new(Call::here(), limit, future)
}

pin_project! {
    /// The future of [`ignore_after`] and [`ignore_at`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct IgnoreAfter<F> {
        #[pin]
        timeout: TimeoutAfter<F>,
    }
}

impl<F: Future> IgnoreAfter<F> {
    pub(crate) fn new(call: Call, limit: Limit, future: F) -> IgnoreAfter<F> {
        IgnoreAfter { timeout: TimeoutAfter::new(call, limit, future) }
    }
}

impl<F, T, E> Future for IgnoreAfter<F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    type Output = Result<Option<T>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let scoped = self.project().timeout.project().scoped;
        poll_timeout(scoped, cx).map(|(result, own)| match result {
            Ok(value) => Ok(Some(value)),
            Err(_) if own => Ok(None),
            Err(error) => Err(error),
        })
    }
}
