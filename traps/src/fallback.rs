//! Timeouts with something in place of the error: a fallback, and a default span.

use std::time::Duration;

use crate::interrupt::Interruptible;
use crate::timeout::{TimeoutAfter, ignore_after, timeout_after};

/// Runs `primary` under a deadline `span` from the first poll, and if *that* deadline ends it, runs
/// what `fallback` makes. `None` sets no limit: the fallback then never runs.
///
/// The fallback runs outside the scope that timed out, under what is in force around: it may take
/// longer than `span` did. `primary` is dropped before it begins. Costs what
/// [`timeout_after`](crate::timeout_after) does.
///
/// # Errors
///
/// Those of `primary`, a timeout further out and a cancellation among them: only its own timeout
/// leads to the fallback. A [`NotStarted`](crate::NotStarted) is not a timeout. Then those of the
/// fallback.
///
/// ```no_run
/// # use std::time::Duration;
/// use traps::{Interrupt, fallback_after, sleep};
///
/// # async fn example() -> Result<(), Interrupt> {
/// let fetch = async { sleep(Duration::from_secs(60)).await.map(|_| "fresh") };
/// let cached = || async { Ok("from the cache") };
/// let page = fallback_after(Duration::from_secs(2), fetch, cached).await?;
/// assert_eq!(page, "from the cache");
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn fallback_after<F, G, H, T, E>(
    span: impl Into<Option<Duration>>,
    primary: F,
    fallback: G,
) -> impl Future<Output = Result<T, E>>
where
    F: Future<Output = Result<T, E>>,
    G: FnOnce() -> H,
    H: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    let primary = ignore_after(span, primary);
    async move {
        let value = primary.await?;
        match value {
            Some(value) => Ok(value),
            None => fallback().await,
        }
    }
}

/// A span for an operation's timeout that each call may override.
///
/// ```no_run
/// # use std::time::Duration;
/// use traps::{DefaultTimeout, Interrupt, sleep};
///
/// const FETCH: DefaultTimeout = DefaultTimeout::new(Duration::from_secs(10));
///
/// async fn fetch(limit: Option<Duration>) -> Result<(), Interrupt> {
///     FETCH.run(limit, async { sleep(Duration::from_secs(7)).await.map(drop) }).await
/// }
///
/// # async fn example() {
/// assert!(fetch(None).await.is_ok());
/// assert!(fetch(Some(Duration::from_secs(5))).await.is_err());
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultTimeout(Duration);

impl DefaultTimeout {
    /// `span` where a call gives none.
    #[must_use]
    pub const fn new(span: Duration) -> DefaultTimeout {
        DefaultTimeout(span)
    }

    /// The default.
    #[must_use]
    pub const fn span(self) -> Duration {
        self.0
    }

    /// Runs `future` under a deadline `span` from the first poll, else the default; the log shows
    /// which, at the place of this call. `None` means the default here and nowhere else;
    /// [`Duration::MAX`] is no limit of its own. Costs what
    /// [`timeout_after`](crate::timeout_after) does.
    ///
    /// # Errors
    ///
    /// Those of [`timeout_after`](crate::timeout_after).
    #[track_caller]
    pub fn run<F, T, E>(self, span: impl Into<Option<Duration>>, future: F) -> TimeoutAfter<F>
    where
        F: Future<Output = Result<T, E>>,
        E: Interruptible,
    {
        timeout_after(span.into().unwrap_or(self.0), future)
    }
}
