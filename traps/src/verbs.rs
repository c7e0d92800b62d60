//! The small verbs: time, what the task is and what is pending in it, giving way, and notes for the
//! log.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use crate::call::{Call, only_done};
use crate::error::{never_fails, only_interrupt, wrong_answer};
use crate::gate;
use crate::interrupt::Interrupt;
use crate::protocol::{Answer, Request, Site};
use crate::task::TaskId;
use crate::time::Time;

/// An answering verb: one request, one kind of answer, never interrupted.
macro_rules! answering {
    (
        $(#[$doc:meta])* $verb:ident, $future:ident, $output:ty, $request:expr,
        $answer:pat => $value:expr
    ) => {
        $(#[$doc])*
        #[track_caller]
        pub fn $verb() -> $future {
            $future { call: Call::here() }
        }

        #[doc = concat!("The future of [`", stringify!($verb), "`].")]
        #[derive(Debug)]
        #[must_use = "a trap that is not awaited is never made"]
        pub struct $future {
            call: Call,
        }

        impl Future for $future {
            type Output = $output;

            #[inline]
            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<$output> {
                self.call.poll(cx, || $request).map(|result| match result {
                    Ok($answer) => $value,
                    Ok(other) => wrong_answer(&other),
                    Err(failure) => never_fails(&failure),
                })
            }
        }
    };
}

answering! {
    /// Reads the kernel clock. *Answers.* Costs one reading of the machine's clock.
    clock, Clock, Time, Request::Clock, Answer::Time(time) => time
}

answering! {
    /// Reads the time of day. *Answers.* Never used for deadlines.
    wall_clock, WallClock, SystemTime, Request::WallClock, Answer::Wall(time) => time
}

answering! {
    /// The number of the task that asks. *Answers.*
    current_task, CurrentTask, TaskId, Request::CurrentTask, Answer::Task(task) => task.id()
}

answering! {
    /// The nearest deadline in force here, or `None`. *Answers.* A shield hides those outside it;
    /// the end of its own grace counts, once that runs.
    current_deadline, CurrentDeadline, Option<Time>, Request::Deadline,
    Answer::Deadline(found) => found.map(|found| found.deadline)
}

answering! {
    /// What a shield holds back here, or what is pending, without taking it; `None` if nothing is.
    /// *Answers.*
    ///
    /// With it, shielded code can learn that it should end early; the interrupt comes all the
    /// same. Of several, the one that would come first. A deadline is found to have passed only
    /// between two runs of a task, so code that never parks sees none. Curio's C9.
    held_interrupt, HeldInterrupt, Option<Interrupt>, Request::HeldInterrupt,
    Answer::Held(interrupt) => interrupt
}

/// Takes the interrupt that is pending here, as a blocking trap would get it. *Answers.*
///
/// For code that computes for long and is to be cancellable: it costs no turn. What a shield
/// around it holds back is not given. A cancellation comes before a timeout, and of timeouts the
/// one that fired first. A deadline is found to have passed, and other tasks run, only between two
/// runs of this one: code that never parks sees nothing new. [`yield_now`] gives way, and is hit
/// too. Curio's C9.
///
/// # Errors
///
/// The interrupt that was pending. It is delivered by this: it comes once.
#[track_caller]
pub fn check_interrupt() -> CheckInterrupt {
    CheckInterrupt { call: Call::here() }
}

/// [`check_interrupt`], for a wrapper that knows its own caller's place in the source.
pub fn check_interrupt_at(site: Site) -> CheckInterrupt {
    CheckInterrupt { call: Call::at(site) }
}

/// The future of [`check_interrupt`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct CheckInterrupt {
    call: Call,
}

impl Future for CheckInterrupt {
    type Output = Result<(), Interrupt>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.call.poll_done(cx, || Request::CheckInterrupt).map_err(only_interrupt)
    }
}

/// The time left until the nearest deadline in force, or `None` if there is none. *Answers.*
#[track_caller]
pub fn remaining() -> impl Future<Output = Option<Duration>> {
    let (deadline, now) = (current_deadline(), clock());
    async move {
        match deadline.await {
            Some(deadline) => Some(deadline.since(now.await)),
            None => None,
        }
    }
}

/// Waits until `span` has passed on the kernel clock; gives the clock's reading. *Blocks.*
///
/// The span counts from the first poll and is rounded up to a microsecond: it never ends early.
/// Zero gives way for one turn and completes even under a deadline that has passed; more than 584
/// years are for ever.
///
/// # Errors
///
/// The interrupt that ended it.
#[track_caller]
pub fn sleep(span: Duration) -> Sleep {
    Sleep { span: Nanoseconds::of(span), call: Call::here() }
}

/// [`sleep`], for a wrapper that knows its own caller's place in the source.
pub fn sleep_at(span: Duration, site: Site) -> Sleep {
    Sleep { span: Nanoseconds::of(span), call: Call::at(site) }
}

/// A span in half the room that a [`Duration`] takes; the longest is for ever.
#[derive(Clone, Copy, Debug)]
struct Nanoseconds(u64);

impl Nanoseconds {
    #[inline]
    fn of(span: Duration) -> Nanoseconds {
        Nanoseconds(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }

    #[inline]
    fn get(self) -> Duration {
        if self.0 == u64::MAX { Duration::MAX } else { Duration::from_nanos(self.0) }
    }
}

/// The future of [`sleep`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct Sleep {
    span: Nanoseconds,
    call: Call,
}

impl Future for Sleep {
    type Output = Result<Time, Interrupt>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Sleep { span, call } = &mut *self;
        let span = *span;
        call.poll(cx, || Request::Sleep { span: span.get() }).map(|result| match result {
            Ok(Answer::Time(time)) => Ok(time),
            Ok(other) => wrong_answer(&other),
            Err(failure) => Err(only_interrupt(failure)),
        })
    }
}

/// Gives way until every task that is ready now has run once. *Blocks.*
///
/// # Errors
///
/// The interrupt that was pending.
#[track_caller]
pub fn yield_now() -> Yield {
    Yield { call: Call::here() }
}

/// The future of [`yield_now`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct Yield {
    call: Call,
}

impl Future for Yield {
    type Output = Result<(), Interrupt>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll_yield(&mut self.call, cx, false)
    }
}

#[inline]
fn poll_yield(call: &mut Call, cx: &mut Context<'_>, spent: bool) -> Poll<Result<(), Interrupt>> {
    match call.take_done() {
        true => Poll::Ready(Ok(())),
        false => poll_yield_undone(call, cx, spent),
    }
}

/// Files the request, or looks why it is not done.
fn poll_yield_undone(
    call: &mut Call,
    cx: &mut Context<'_>,
    spent: bool,
) -> Poll<Result<(), Interrupt>> {
    call.poll(cx, || Request::Yield { spent })
        .map(|result| only_done(result).map_err(only_interrupt))
}

/// Takes one operation from the budget that a task has until it next parks; gives way for one
/// turn when it is spent. For I/O whose system call may succeed for ever: await it before the call.
///
/// # Errors
///
/// The interrupt that was pending when it gave way.
#[track_caller]
pub fn budget() -> Budget {
    Budget { call: Call::here() }
}

/// The same for a wrapper that knows its own caller's place in the source.
pub fn budget_at(site: Site) -> Budget {
    Budget { call: Call::at(site) }
}

/// Takes one operation from the budget, and says whether there was one: if so, [`budget`] need not
/// be awaited. Does not trap.
#[inline]
#[must_use]
pub fn take_budget() -> bool {
    gate::spend()
}

/// Takes so many operations more from the budget, as far as there are any, for one that is worth
/// several. Does not trap.
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
        let yielded = ready!(poll_yield(&mut self.call, cx, true));
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

/// Puts a `warn` line into the log of the kernel that runs on this thread; where none does, nothing
/// happens. Does not trap.
pub fn note_warning(text: impl Into<Cow<'static, str>>) {
    gate::note(Note::Warning(text.into()));
}

/// Puts a `cap` line into the log of the kernel that runs on this thread: a limit was hit. Where
/// none does, nothing happens. Does not trap.
pub fn note_cap(text: impl Into<Cow<'static, str>>) {
    gate::note(Note::Cap(text.into()));
}
