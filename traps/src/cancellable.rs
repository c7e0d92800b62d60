//! Operations under the deadline that is in force around them: not begun once it has passed.
//!
//! Every blocking trap heeds the deadline already. This adds the moment before: an operation whose
//! time is over is not begun at all, and says so by an error of its own.

use std::fmt;
use std::io;
use std::panic::Location;

use crate::protocol::{InForce, Site};
use crate::time::Time;
use crate::verbs::{clock, in_force};

/// An operation was not begun: the deadline in force had passed.
///
/// Not an [`Interrupt`](crate::Interrupt), which ends an operation that was begun: after this
/// error, nothing was done and nothing is half done. A scope that closes does not take it
/// for its own timeout and passes it on.
///
/// ```no_run
/// # use std::time::Duration;
/// use traps::{Error, cancellable, timeout_after};
///
/// # async fn send() -> Result<(), Error> { Ok(()) }
/// # async fn example() {
/// match timeout_after(Duration::from_secs(5), cancellable(send())).await {
///     Ok(()) => {}
///     Err(Error::NotStarted(why)) => eprintln!("safe to send again: {why}"),
///     Err(Error::Interrupt(why)) => eprintln!("perhaps half sent: {why}"),
///     Err(other) => eprintln!("{other}"),
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotStarted {
    in_force: InForce,
    reading: Time,
}

impl NotStarted {
    /// The deadline that had passed.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.in_force.deadline
    }

    /// The kernel clock when the operation was about to begin.
    #[must_use]
    pub fn reading(&self) -> Time {
        self.reading
    }

    /// The number of the scope whose deadline it was, as the log shows it.
    #[must_use]
    pub fn scope(&self) -> u64 {
        self.in_force.scope
    }

    /// Where that deadline was set; `None` for a connection deadline, armed in many places.
    #[must_use]
    pub fn set_at(&self) -> Option<Site> {
        self.in_force.set_at
    }
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotStarted { in_force: InForce { deadline, scope, set_at }, reading } = self;
        write!(f, "not started at {reading}: deadline {deadline} of s{scope} had passed")?;
        match set_at {
            Some(site) => write!(f, ", set at {}:{}", site.file(), site.line()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for NotStarted {}

/// Becomes kind `TimedOut`, like a timeout; the two are told apart by what is inside.
impl From<NotStarted> for io::Error {
    fn from(error: NotStarted) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, error)
    }
}

/// Runs `operation` under the deadline in force here, unless that has passed: then the operation
/// is not begun, its future is never polled, and the error is [`NotStarted`].
///
/// It sets no limit of its own: with [`timeout_after`](crate::timeout_after) inside, the sooner of
/// the two holds, as everywhere. A shield hides the deadlines outside it. Without a deadline in
/// force this is the operation itself. Costs one answering trap, and a second that reads
/// the clock where there is a deadline; no scope, no timer, no allocation. *Answers*, then does
/// what the operation does.
///
/// # Errors
///
/// Those of `operation`, or [`NotStarted`] as an error of its type.
///
/// ```no_run
/// # use std::{io, time::Duration};
/// use traps::{cancellable, sleep, timeout_after};
///
/// async fn charge() -> io::Result<()> {
///     sleep(Duration::from_secs(3)).await?;
///     Ok(())
/// }
///
/// async fn order() -> io::Result<()> {
///     timeout_after(Duration::from_secs(5), async {
///         cancellable(charge()).await?;
///         // Begun with two seconds left, and ended when they are over.
///         cancellable(charge()).await
///     })
///     .await
/// }
/// ```
#[track_caller]
pub fn cancellable<F, T, E>(operation: F) -> impl Future<Output = Result<T, E>>
where
    F: Future<Output = Result<T, E>>,
    E: From<NotStarted>,
{
    let (deadline, now) = (in_force(Location::caller()), clock());
    async move {
        if let Some(in_force) = deadline.await {
            let reading = now.await;
            if in_force.deadline <= reading {
                return Err(E::from(NotStarted { in_force, reading }));
            }
        }
        operation.await
    }
}
