//! Timeouts, operations that do not start late, and interruptible waits for foreign futures.
//!
//! A timeout is a scope with a limit around a future. Its own expiry is an error
//! ([`timeout_after`]) or `None` ([`ignore_after`]). `interrupts/scope.rs` opens and closes the
//! scopes.
//!
//! Every blocking trap ends when the deadline in force passes. [`cancellable`] adds the moment
//! before: if the deadline has already passed, it does not start the operation, and returns an
//! error of its own.
//!
//! A *foreign future* is one that waits on a waker alone and makes no traps. [`foreign`] makes such
//! a wait interruptible.

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::core::gate;
use crate::core::protocol::{ParkedOn, Reply, ScopeKind, Trap};
use crate::core::table::Site;
use crate::core::wait::Call;
use crate::error::Error;
use crate::interrupts::interrupt::{Interrupt, Interruptible};
use crate::interrupts::pending::InForce;
use crate::interrupts::scope::{Limit, Scoped, left, relabel};
use crate::time::Time;
use crate::verbs::in_force;

/// Polls a timeout. Returns the inner output with its interrupt relabelled, and whether this scope
/// timed out. The two timeouts differ only in what they make of that.
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
    let (result, own) = relabel(inner, open.scope, open.deadline, site);
    scoped.finish(left(&result));
    Poll::Ready((result, own))
}

fn limit(span: Option<Duration>) -> Limit {
    span.map_or(Limit::Never, Limit::After)
}

fn point(deadline: Option<Time>) -> Limit {
    deadline.map_or(Limit::Never, Limit::At)
}

/// Runs `future` under a deadline. The deadline is `span` after the first poll; `None` sets none.
///
/// If other deadlines are in force around it, the soonest of all counts. A deadline that has passed
/// ends the first trap inside that parks. A zero `span` has passed at once, but a first
/// `sleep(ZERO)` inside still completes.
///
/// A timeout that was delivered stays. If the task is then cancelled before it runs, it gets the
/// timeout, and its next blocking trap gets the cancellation.
///
/// `future` is polled at once; opening a timeout does not wait. A timeout costs one reading of the
/// clock and an entry in the timer heap, but no system call and no allocation.
///
/// If another task polls this future, the timeout closes in the old task and opens in the new one,
/// with the same deadline. An interrupt that was read before keeps its kind.
///
/// The error type can be any type that carries the interrupt. If nothing else fixes the type, write
/// it out:
///
/// ```
/// # use std::time::Duration;
/// use traps::{Interrupt, Kind, sleep, timeout_after};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// let steps = || async move {
///     sleep(1 * second).await?;
///     sleep(2 * second).await?;
///     Ok::<_, Interrupt>("both")
/// };
/// assert_eq!(timeout_after(5 * second, steps()).await, Ok("both"));
///
/// let interrupt = timeout_after(2 * second, steps()).await.unwrap_err();
/// assert_eq!(interrupt.kind(), Kind::TaskTimeout);
/// # });
/// ```
///
/// # Errors
///
/// Returns the errors of `future`. If such an error carries the interrupt of a timeout, its kind
/// says which deadline passed: [`TaskTimeout`] for this one, [`TimeoutCancellation`] for one
/// further out, and [`UncaughtTimeout`] for one further in that was not handled there. If this
/// deadline had also passed when the interrupt of an inner timeout was delivered, that interrupt
/// serves both, and it is a [`TaskTimeout`] here.
///
/// The kind tells this within one task. If the future joins other tasks, an error that comes out of
/// a join can be the timeout of that task, and it is a [`TaskTimeout`] too. [`ignore_after`]
/// separates the two: only for its own deadline does it return `None`.
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

/// Runs `future` under a deadline at a point of kernel time, which can be in the past. In all other
/// respects it works like [`timeout_after`]. Several calls with one point share one limit.
///
/// ```
/// # use std::time::Duration;
/// use traps::{clock, sleep, timeout_at};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// let deadline = clock().await + 5 * second;
/// // Three steps of two seconds have five seconds together.
/// let mut done = 0;
/// while timeout_at(deadline, sleep(2 * second)).await.is_ok() {
///     done += 1;
/// }
/// assert_eq!((done, clock().await), (2, deadline));
/// # });
/// ```
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

/// Runs `future` like [`timeout_after`], but returns `Ok(None)` if its own deadline passes.
///
/// # Errors
///
/// Returns the errors of `future`, except an interrupt by this deadline.
///
/// ```
/// # use std::time::Duration;
/// use traps::{ignore_after, sleep};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// assert!(ignore_after(2 * second, sleep(second)).await?.is_some());
/// assert!(ignore_after(2 * second, sleep(9 * second)).await?.is_none());
///
/// // A deadline around it still ends the task's work here.
/// let outer = traps::timeout_after(second, ignore_after(2 * second, sleep(9 * second)));
/// assert!(outer.await.is_err());
/// # Ok::<(), traps::Interrupt>(())
/// # }).output.unwrap();
/// ```
#[track_caller]
pub fn ignore_after<F, T, E>(span: impl Into<Option<Duration>>, future: F) -> IgnoreAfter<F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    IgnoreAfter::new(limit(span.into()), Location::caller(), future)
}

/// Runs `future` like [`timeout_at`], but returns `Ok(None)` if its own deadline passes.
///
/// # Errors
///
/// Returns the errors of `future`, except an interrupt by this deadline.
///
/// ```
/// # use std::time::Duration;
/// use traps::{Time, ignore_at, sleep};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// let mut rounds = 0;
/// // As many rounds as fit into the first ten seconds of the kernel.
/// while ignore_at(Time::ZERO + 10 * second, sleep(3 * second)).await?.is_some() {
///     rounds += 1;
/// }
/// assert_eq!(rounds, 3);
/// # Ok::<(), traps::Interrupt>(())
/// # }).output.unwrap();
/// ```
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

/// Runs `operation` under the deadline in force here, unless the deadline has already passed. If it
/// has, the future of the operation is never polled, and the error is [`Error::NotStarted`].
///
/// `NotStarted` means that nothing was done and nothing is half done. An
/// [`Interrupt`](crate::Interrupt), in contrast, ends an operation that had started. A closing
/// scope passes `NotStarted` on unchanged.
///
/// This function sets no limit of its own. With a [`timeout_after`](crate::timeout_after) inside,
/// the sooner of the two deadlines counts, as everywhere. A shield hides the deadlines outside it.
/// With no deadline in force, `operation` just runs. The function costs one reading of the clock if
/// there is a deadline. It makes no trap, scope, timer or allocation.
///
/// # Errors
///
/// Returns the errors of `operation`, or [`Error::NotStarted`] converted to its error type.
///
/// ```
/// # use std::{io, time::Duration};
/// use traps::{Error, cancellable, sleep, timeout_after};
///
/// async fn charge() -> io::Result<()> {
///     sleep(Duration::from_secs(3)).await?;
///     Ok(())
/// }
///
/// async fn order() -> io::Result<()> {
///     timeout_after(Duration::from_secs(5), async {
///         cancellable(charge()).await?;
///         // Starts with two seconds left, and is interrupted after them.
///         let half_done = cancellable(charge()).await;
///         assert!(matches!(half_done.unwrap_err().into(), Error::Interrupt(_)));
///         // The five seconds are over, so this charge does not start.
///         cancellable(charge()).await
///     })
///     .await
/// }
/// # testing::run(async {
/// assert!(matches!(order().await.unwrap_err().into(), Error::NotStarted { .. }));
/// # });
/// ```
#[track_caller]
pub fn cancellable<F, T, E>(operation: F) -> impl Future<Output = Result<T, E>>
where
    F: Future<Output = Result<T, E>>,
    E: From<Error>,
{
    let site = Location::caller();
    async move {
        if let Some(InForce { deadline, scope, set_at }) = in_force(site) {
            let reading = gate::now().unwrap_or_default();
            if deadline <= reading {
                return Err(E::from(Error::NotStarted { deadline, reading, scope, set_at }));
            }
        }
        operation.await
    }
}

/// Awaits a foreign future: a future that waits on a waker alone, such as a channel of another
/// library.
///
/// A foreign future that is awaited directly has no trap that could return an interrupt. A timeout
/// around it drops it when the deadline passes, and a cancellation does not reach it. This function
/// files a trap next to the wait, so both end the wait in place. *Blocks* while the future is
/// pending.
///
/// # Errors
///
/// Returns the interrupt that ended the wait. The future is then dropped with this one, unless the
/// caller has only lent it.
///
/// ```
/// # use std::time::Duration;
/// use std::future::pending;
/// use traps::{foreign, sleep, spawn};
///
/// # testing::run(async {
/// let mut stuck = spawn("stuck", foreign(pending::<()>())).await;
/// sleep(Duration::from_secs(1)).await?;
/// stuck.cancel().await?; // without `foreign`, this would wait forever
/// assert!(stuck.join().await?.is_err());
/// # Ok::<(), traps::Error>(())
/// # }).output.unwrap();
/// ```
#[track_caller]
pub fn foreign<F: Future>(future: F) -> Foreign<F> {
    Foreign { future, external: false, call: Call::here() }
}

pin_project! {
    /// The future of [`foreign`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Foreign<F> {
        #[pin]
        future: F,
        external: bool,
        call: Call,
    }
}

impl<F> Foreign<F> {
    /// States that something outside the kernel will wake the future. A virtual clock stands still
    /// until then.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use std::future::poll_fn;
    /// use std::sync::mpsc;
    /// use std::task::Poll;
    /// use std::thread;
    /// use traps::{foreign, timeout_after};
    ///
    /// # testing::run(async {
    /// let (sender, result) = mpsc::channel();
    /// let mut sender = Some(sender);
    /// let value = poll_fn(|cx| {
    ///     if let Some(sender) = sender.take() {
    ///         let waker = cx.waker().clone();
    ///         thread::spawn(move || {
    ///             sender.send(42).unwrap();
    ///             waker.wake();
    ///         });
    ///     }
    ///     result.try_recv().map_or(Poll::Pending, Poll::Ready)
    /// });
    /// // Without `external`, the clock would jump to the deadline before the thread is done.
    /// let value = timeout_after(Duration::from_secs(1), foreign(value).external()).await;
    /// assert_eq!(value, Ok(42));
    /// # });
    /// ```
    pub fn external(mut self) -> Foreign<F> {
        self.external = true;
        self
    }
}

impl<F: Future> Future for Foreign<F> {
    type Output = Result<F::Output, Interrupt>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // Poll the future first: a value that is there wins against an interrupt of the same turn.
        // Then the interrupt was not read, and is still due at the next trap.
        if let Poll::Ready(value) = this.future.poll(cx) {
            this.call.abandon();
            return Poll::Ready(Ok(value));
        }
        let external = *this.external;
        let trap = || Trap::Park { what: ParkedOn::Foreign, external };
        this.call.poll(cx, trap).map(|reply| match reply {
            Reply::Interrupt(interrupt) => Err(interrupt),
            other => other.wrong(),
        })
    }
}
