//! The small verbs: time, the current task and its pending interrupt, and giving way.

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use crate::core::call::{Call, call};
use crate::core::gate;
use crate::core::interrupt::Interrupt;
use crate::core::names::{Site, TaskId};
use crate::core::pending::InForce;
use crate::core::protocol::{Reply, Trap};
use crate::time::{Time, micros};

/// Reads the kernel clock. *Answers.* Costs one reading of the machine's clock.
#[track_caller]
pub fn clock() -> impl Future<Output = Time> {
    call(
        || Trap::Clock,
        Location::caller(),
        |reply| match reply {
            Reply::Time(time) => time,
            other => other.wrong(),
        },
    )
}

/// Reads the time of day. Never used for deadlines. Does not trap.
///
/// # Panics
///
/// Outside a kernel.
#[must_use]
pub fn wall_clock() -> SystemTime {
    gate::with_shared(|kernel| (kernel.wall)()).expect("rule: a kernel tells the time of day")
}

/// The number of the task that asks. Does not trap.
///
/// # Panics
///
/// Outside a task.
#[track_caller]
pub fn current_task() -> TaskId {
    gate::task_id(Location::caller())
}

/// The nearest deadline in force here, or `None`. A shield hides the deadlines outside it. Does
/// not trap.
///
/// # Panics
///
/// Outside a task.
#[track_caller]
pub fn current_deadline() -> Option<Time> {
    in_force(Location::caller()).map(|found| found.deadline)
}

/// The nearest deadline in force here, and the scope that set it.
pub(crate) fn in_force(site: Site) -> Option<InForce> {
    gate::with_records(site, |records, scope, kernel| records.in_force(scope, &kernel.deadlines))
}

/// Takes the interrupt that is pending here, as a blocking trap would. *Answers.*
///
/// It is for code that computes for a long time and should be cancellable, because it costs no
/// turn. A cancellation comes before a timeout, and of several timeouts the one that fired first
/// comes first. The kernel checks deadlines and runs other tasks only between two runs of this
/// task, so code that never parks sees nothing new. [`yield_now`] gives way, and can be interrupted
/// too.
///
/// Inside a shield it shows the interrupt that the shield holds back and does not take it: shielded
/// code can end early, and the interrupt is still delivered behind the shield.
///
/// # Errors
///
/// The interrupt. One that was pending is delivered by this call, so it comes only once.
#[track_caller]
pub fn check_cancellation() -> impl Future<Output = Result<(), Interrupt>> {
    call(
        || Trap::Check,
        Location::caller(),
        |reply| match reply {
            Reply::Held(interrupt) => Err(interrupt),
            other => other.done(),
        },
    )
}

/// As [`check_cancellation`], for a wrapper that knows its own caller's place in the source; passes
/// over what a shield holds back.
pub fn take_pending_from(site: Site) -> impl Future<Output = Result<(), Interrupt>> {
    call(|| Trap::Check, site, Reply::done)
}

/// The time left until the nearest deadline in force, or `None` if there is none. Reads the clock.
/// Does not trap.
///
/// # Panics
///
/// Outside a task.
#[track_caller]
pub fn remaining() -> Option<Duration> {
    let deadline = current_deadline()?;
    Some(deadline.since(gate::now().unwrap_or_default()))
}

/// Waits until `span` has passed on the kernel clock, and returns the reading of the clock.
/// *Blocks.*
///
/// The span counts from the first poll and is rounded up to a microsecond. The sleep never ends
/// early. A span of zero gives way for one turn, and completes though a deadline passes meanwhile.
/// A span of [`Duration::MAX`] never ends.
///
/// # Errors
///
/// The interrupt that ended the sleep.
#[track_caller]
pub fn sleep(span: Duration) -> Sleep {
    sleep_from(span, Location::caller())
}

/// [`sleep`], for a wrapper that passes the place of its caller in the source.
pub fn sleep_from(span: Duration, site: Site) -> Sleep {
    Sleep { span: micros(span), until: Time::NEVER, call: Call::from(site) }
}

/// The future of [`sleep`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct Sleep {
    /// In microseconds.
    span: u64,
    /// Set by the first poll, and kept if another task polls the future.
    until: Time,
    call: Call,
}

impl Future for Sleep {
    type Output = Result<Time, Interrupt>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Sleep { span, until, call } = &mut *self;
        let request = || {
            if *until == Time::NEVER {
                *until = gate::now().unwrap_or_default() + Duration::from_micros(*span);
            }
            Trap::Sleep { span: *span, until: *until }
        };
        call.poll(cx, request).map(|reply| match reply {
            Reply::Time(time) => Ok(time),
            Reply::Interrupt(interrupt) => Err(interrupt),
            other => other.wrong(),
        })
    }
}

/// Gives way until every task that is ready now has run once. *Blocks.*
///
/// # Errors
///
/// The interrupt that was pending.
#[track_caller]
pub fn yield_now() -> impl Future<Output = Result<(), Interrupt>> {
    call(|| Trap::Yield { spent: false }, Location::caller(), Reply::done)
}

/// Takes one operation from the task's budget, which is renewed when the task parks. When the
/// budget is spent, the task gives way for one turn. Await this before a system call that may
/// succeed without end.
///
/// # Errors
///
/// The interrupt that was pending when the task gave way.
#[track_caller]
pub fn budget() -> Budget {
    budget_from(Location::caller())
}

/// [`budget`], for a wrapper that passes the place of its caller in the source.
pub fn budget_from(site: Site) -> Budget {
    Budget { call: Call::from(site) }
}

/// Takes one operation from the budget. True if there was one: then [`budget`] need not be awaited.
/// Does not trap.
#[inline]
#[must_use]
pub fn take_budget() -> bool {
    gate::spend()
}

/// Takes up to this many more operations from the budget, for a call that counts as several. Does
/// not trap.
pub fn spend_budget(operations: u32) {
    gate::spend_more(operations);
}

/// The future of [`budget`].
#[derive(Debug)]
#[must_use = "a budget that is not awaited is not taken from"]
pub struct Budget {
    call: Call,
}

impl Future for Budget {
    type Output = Result<(), Interrupt>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.call.ticket().is_none() && gate::spend() {
            return Poll::Ready(Ok(()));
        }
        let yielded = ready!(self.call.poll(cx, || Trap::Yield { spent: true })).done();
        // The operation that made the task give way is the first of the new budget.
        gate::spend();
        Poll::Ready(yielded)
    }
}
