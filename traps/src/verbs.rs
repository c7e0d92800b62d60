//! The small verbs: time, what the task is and what is pending in it, giving way, and notes for
//! the log.

use std::borrow::Cow;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use crate::call::{Call, Reply, trap};
use crate::gate;
use crate::interrupt::Interrupt;
use crate::protocol::{Answer, InForce, Owned, Post, Request, Site};
use crate::task::TaskId;
use crate::time::{Time, micros};

/// Reads the kernel clock. *Answers.* Costs one reading of the machine's clock.
#[track_caller]
pub fn clock() -> impl Future<Output = Time> {
    trap(Request::Clock, Location::caller(), |reply| match reply.open() {
        Ok(Answer::Time(time)) => time,
        _ => reply.wrong(),
    })
}

/// Reads the time of day. *Answers.* Never used for deadlines.
#[track_caller]
pub fn wall_clock() -> impl Future<Output = SystemTime> {
    trap(Request::WallClock, Location::caller(), |reply| match reply.open() {
        Ok(Answer::Wall(time)) => time,
        _ => reply.wrong(),
    })
}

/// The number of the task that asks. *Answers.*
#[track_caller]
pub fn current_task() -> impl Future<Output = TaskId> {
    trap(Request::CurrentTask, Location::caller(), |reply| match reply.open() {
        Ok(Answer::Id(id)) => id,
        _ => reply.wrong(),
    })
}

/// The nearest deadline in force here, or `None`. *Answers.* A shield hides those outside it.
#[track_caller]
pub fn current_deadline() -> impl Future<Output = Option<Time>> {
    let in_force = in_force(Location::caller());
    async move { in_force.await.map(|found| found.deadline) }
}

/// The nearest deadline in force here, and whose it is.
pub(crate) fn in_force(site: Site) -> impl Future<Output = Option<InForce>> + Unpin {
    trap(Request::Deadline, site, |reply| match reply.open() {
        Err(Owned::InForce(found)) => found,
        _ => reply.wrong(),
    })
}

/// What a shield holds back here, or what is pending, without taking it; `None` if nothing is.
/// *Answers.*
///
/// With it, shielded code can learn that it should end early. The interrupt still comes. Of
/// several, this is the one that would come first. A deadline is found to have passed only between
/// two runs of a task, so code that never parks sees nothing new.
#[track_caller]
pub fn held_interrupt() -> impl Future<Output = Option<Interrupt>> {
    trap(Request::HeldInterrupt, Location::caller(), |reply| match reply.open() {
        Err(Owned::Held(interrupt)) => interrupt,
        _ => reply.wrong(),
    })
}

/// Takes the interrupt that is pending here, as a blocking trap would get it. *Answers.*
///
/// For code that computes for long and is to be cancellable: it costs no turn. It does not give
/// what a shield around it holds back. A cancellation comes before a timeout, and of timeouts the
/// one that fired first. A deadline is found to have passed, and other tasks run, only between two
/// runs of this one: code that never parks sees nothing new. [`yield_now`] gives way, and can be
/// interrupted too.
///
/// # Errors
///
/// The interrupt that was pending. It is delivered by this: it comes once.
#[track_caller]
pub fn check_interrupt() -> impl Future<Output = Result<(), Interrupt>> {
    check_interrupt_from(Location::caller())
}

/// [`check_interrupt`], for a wrapper that knows its own caller's place in the source.
pub fn check_interrupt_from(site: Site) -> impl Future<Output = Result<(), Interrupt>> {
    trap(Request::CheckInterrupt, site, Reply::done)
}

/// The time left until the nearest deadline in force, or `None` if there is none. *Answers.*
#[track_caller]
pub fn remaining() -> impl Future<Output = Option<Duration>> {
    let (deadline, now) = (in_force(Location::caller()), clock());
    async move {
        match deadline.await {
            Some(found) => Some(found.deadline.since(now.await)),
            None => None,
        }
    }
}

/// Waits until `span` has passed on the kernel clock; gives the clock's reading. *Blocks.*
///
/// The span counts from the first poll and is rounded up to a microsecond: it never ends early.
/// Zero gives way for one turn and completes even under a deadline that has passed.
/// [`Duration::MAX`] never ends.
///
/// # Errors
///
/// The interrupt that ended it.
#[track_caller]
pub fn sleep(span: Duration) -> Sleep {
    sleep_from(span, Location::caller())
}

/// [`sleep`], for a wrapper that knows its own caller's place in the source.
pub fn sleep_from(span: Duration, site: Site) -> Sleep {
    Sleep { span: micros(span), until: Time::NEVER, call: Call::from(site) }
}

/// The future of [`sleep`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct Sleep {
    /// In microseconds.
    span: u64,
    /// Set by the first poll, and kept if another task polls it.
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
            Request::Sleep { span: *span, until: *until }
        };
        call.poll(cx, request).map(|reply| match reply.plain()? {
            Answer::Time(time) => Ok(time),
            _ => reply.wrong(),
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
    trap(Request::Yield { spent: false }, Location::caller(), Reply::done)
}

/// Takes one operation from the budget that a task has until it next parks. When the budget is
/// spent, the task gives way for one turn. For I/O whose system call may succeed for ever: await
/// it before the call.
///
/// # Errors
///
/// The interrupt that was pending when it gave way.
#[track_caller]
pub fn budget() -> Budget {
    budget_from(Location::caller())
}

/// [`budget`], for a wrapper that knows its own caller's place in the source.
pub fn budget_from(site: Site) -> Budget {
    Budget { call: Call::from(site) }
}

/// Takes one operation from the budget, and says whether there was one: if so, [`budget`] need not
/// be awaited. Does not trap.
#[inline]
#[must_use]
pub fn take_budget() -> bool {
    gate::spend()
}

/// Takes more operations from the budget, as far as there are any, for one that is worth several.
/// Does not trap.
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
        if !self.call.is_filed() && gate::spend() {
            return Poll::Ready(Ok(()));
        }
        let yielded = ready!(self.call.poll(cx, || Request::Yield { spent: true })).done();
        // The operation that it gave way before is the first of the new budget.
        gate::spend();
        Poll::Ready(yielded)
    }
}

/// A line that code outside the kernel puts into the log.
pub enum Note {
    /// Something a user should know.
    Warning(Cow<'static, str>),
    /// A limit was hit.
    Cap(Cow<'static, str>),
}

/// Puts a `warn` line into the log of the kernel that runs on this thread. Does nothing if none
/// runs. Does not trap.
pub fn note_warning(text: impl Into<Cow<'static, str>>) {
    note(Note::Warning(text.into()));
}

/// Puts a `cap` line into the log of the kernel that runs on this thread: a limit was hit. Does
/// nothing if none runs. Does not trap.
pub fn note_cap(text: impl Into<Cow<'static, str>>) {
    note(Note::Cap(text.into()));
}

/// Whether somebody gets every event of the kernel that runs on this thread: then a name is worth
/// making that only the log shows.
#[inline]
#[must_use]
pub fn is_traced() -> bool {
    gate::is_listening()
}

fn note(note: Note) {
    if gate::epoch() != 0 {
        gate::post(Post::Note(note));
    }
}
