//! Operations under the deadline that is in force around them: not begun once it has passed.
//!
//! Every blocking trap heeds the deadline already. This adds the moment before: an operation whose
//! time is over is not begun at all, and says so by an error of its own.

use std::panic::Location;

use crate::core::gate;
use crate::core::pending::InForce;
use crate::error::Error;
use crate::verbs::in_force;

/// Runs `operation` under the deadline in force here, unless that has passed: then the operation
/// is not begun, its future is never polled, and the error is [`Error::NotStarted`].
///
/// That is not an [`Interrupt`](crate::Interrupt), which ends an operation that was begun: after
/// it, nothing was done and nothing is half done. A scope that closes passes it on.
///
/// It sets no limit of its own: with [`timeout_after`](crate::timeout_after) inside, the sooner of
/// the two holds, as everywhere. A shield hides the deadlines outside it. Without a deadline in
/// force this is the operation itself. Costs one reading of the clock where
/// there is a deadline; no trap, no scope, no timer, no allocation.
///
/// # Errors
///
/// Those of `operation`, or [`Error::NotStarted`] as an error of its type.
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
