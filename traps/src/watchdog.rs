//! A deadline that interrupts nobody: it calls back while nothing happens.
//!
//! Made of a race and a connection deadline; the kernel knows nothing of it.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt;
use std::future::{Future, pending};
use std::panic::Location;
use std::time::Duration;

use crate::combine::{Either, race};
use crate::deadline::{ConnectionDeadline, connection_deadline};
use crate::interrupt::{Interrupt, Kind};
use crate::protocol::Site;
use crate::time::Time;
use crate::verbs::sleep_from;

/// Calls back each time that a span has passed without a [`touch`](IdleWatchdog::touch), while a
/// future runs.
///
/// For what is to be done about a peer that has become silent, such as sending it a ping: the
/// future itself is not interrupted. Idle for long, it calls once a span; active, never.
/// Bound to the task that made it, as its deadline is.
///
/// ```
/// # use std::time::Duration;
/// # use traps::{Interrupt, idle_watchdog, sleep};
/// # async fn example() -> Result<(), Interrupt> {
/// let watchdog = idle_watchdog(Duration::from_secs(5), || eprintln!("nothing heard")).await;
/// let talk = async {
///     loop {
///         sleep(Duration::from_secs(1)).await?; // stands for a read
///         watchdog.touch();
///     }
/// };
/// watchdog.watch(talk).await
/// # }
/// ```
pub struct IdleWatchdog<C> {
    deadline: ConnectionDeadline,
    span: Duration,
    /// Borrowed while a future is watched.
    on_idle: RefCell<C>,
}

/// Makes a watchdog that calls `on_idle`. *Answers*; one trap. A span of zero, or one without an
/// end, never calls.
#[track_caller]
pub fn idle_watchdog<C: FnMut()>(
    span: Duration,
    on_idle: C,
) -> impl Future<Output = IdleWatchdog<C>> {
    let deadline = connection_deadline();
    async move { IdleWatchdog { deadline: deadline.await, span, on_idle: RefCell::new(on_idle) } }
}

impl<C> fmt::Debug for IdleWatchdog<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleWatchdog").field("span", &self.span).finish_non_exhaustive()
    }
}

impl<C: FnMut()> IdleWatchdog<C> {
    /// Something happened: the span begins anew. Nothing where nothing is watched.
    ///
    /// Costs what [`ConnectionDeadline::arm`] does: no trap, no allocation. Any task of the kernel
    /// may call it.
    #[inline]
    pub fn touch(&self) {
        if self.on_idle.try_borrow_mut().is_err() {
            self.deadline.arm(self.span);
        }
    }

    /// Runs `future`, and calls back beside it. The span begins with the first poll.
    ///
    /// The next span begins before the call, so a call that is slow, or that touches, does not
    /// change the pace for the worse. A callback that panics is a panic of this future, at the
    /// place where it is awaited; the watchdog can then watch another. An interrupt from further
    /// out reaches `future` as always, and ends the watching: there are no calls while what is
    /// inside comes to its end.
    ///
    /// # Panics
    ///
    /// Where it watches already.
    #[track_caller]
    pub fn watch<F: Future>(&self, future: F) -> impl Future<Output = F::Output> {
        let keep = self.deadline.guard(self.span, self.keep(Location::caller()));
        let never = async {
            let Err(_from_further_out) = keep.await;
            pending::<Infallible>().await
        };
        let race = race(future, never);
        async move {
            match race.await {
                Either::Left(output) => output,
                Either::Right(never) => match never {},
            }
        }
    }

    /// Calls back whenever the guard around it fires; ends with any other interrupt.
    #[expect(
        clippy::await_holding_refcell_ref,
        reason = "whoever holds it is the one that watches"
    )]
    async fn keep(&self, site: Site) -> Result<Infallible, Interrupt> {
        let rule = "rule: a watchdog watches one future at a time";
        let mut on_idle = self.on_idle.try_borrow_mut().expect(rule);
        let never_fires = self.span.is_zero() || Time::ZERO + self.span == Time::NEVER;
        loop {
            let Err(interrupt) = sleep_from(Duration::MAX, site).await else { continue };
            // Without a deadline of its own it is the next one further out that bears this name.
            if interrupt.kind() != Kind::TaskTimeout || never_fires {
                return Err(interrupt);
            }
            // Before the call, which may panic, take long, or touch.
            self.deadline.arm(self.span);
            on_idle();
        }
    }
}
