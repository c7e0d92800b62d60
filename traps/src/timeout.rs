//! Timeouts: a deadline around a future, as an error or as an option.
//!
//! Each is a scope with a limit. How scopes open and close is in `scope.rs`.

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::core::interrupt::Interruptible;
use crate::core::names::Site;
use crate::core::protocol::ScopeKind;
use crate::core::scope::{Limit, Scoped, left, relabel};
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
    let site = scoped.opener.site;
    let (result, own) = relabel(inner, open, open.deadline, site);
    scoped.finish(left(&result));
    Poll::Ready((result, own))
}

fn limit(span: Option<Duration>) -> Limit {
    span.map_or(Limit::Never, Limit::After)
}

fn point(deadline: Option<Time>) -> Limit {
    deadline.map_or(Limit::Never, Limit::At)
}

/// Runs `future` under a deadline `span` from the first poll; `None` sets no limit of its own.
///
/// The sooner of this deadline and those around it is in force. A deadline that has passed ends
/// the first trap inside that parks; a span of zero has passed at once, yet a first
/// `sleep(ZERO)` completes.
///
/// Opens without waiting: `future` is polled at once. Costs one reading of the clock and a place in
/// the timer heap; no system call and no allocation.
///
/// If another task polls it, the timeout ends in the old task and opens in the new one, with the
/// same deadline.
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
/// and was not handled there. If this deadline had passed too when an inner timeout was delivered,
/// that interrupt serves both: it is a [`TaskTimeout`] here.
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
    TimeoutAfter::new(limit(span.into()), Location::caller(), future)
}

/// Runs `future` under a deadline at a point of kernel time, which may have passed; else like
/// [`timeout_after`].
#[track_caller]
pub fn timeout_at<F, T, E>(deadline: impl Into<Option<Time>>, future: F) -> TimeoutAfter<F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    TimeoutAfter::new(point(deadline.into()), Location::caller(), future)
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
    pub(crate) fn new(limit: Limit, site: Site, future: F) -> TimeoutAfter<F> {
        TimeoutAfter { scoped: Scoped::new(limit, ScopeKind::Timeout, site, future) }
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
    IgnoreAfter::new(limit(span.into()), Location::caller(), future)
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
    IgnoreAfter::new(point(deadline.into()), Location::caller(), future)
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
    pub(crate) fn new(limit: Limit, site: Site, future: F) -> IgnoreAfter<F> {
        IgnoreAfter { timeout: TimeoutAfter::new(limit, site, future) }
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
