//! The connection deadline: one deadline that is armed again and again, phase by phase.
//!
//! Arming and disarming is a store in the deadline table, which is shared with the kernel, and an
//! arm's is put off until its run ends; only what takes more is a post. Opens a scope once, for the
//! first guard; fires nothing itself.

use std::cell::{Cell, OnceCell};
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::deadline_table::{BARE, END, GUARD};
use crate::gate;
use crate::interrupt::Interruptible;
use crate::protocol::{Left, Post, ScopeId, Site};
use crate::time::{Time, micros};

mod guard;
mod kept;
mod slot;
mod task_guard;

pub use guard::Guard;
use guard::Stage;
use kept::Kept;
pub(crate) use slot::DeadlineSlot;
pub use task_guard::TaskGuard;

/// In place of what a deadline is set to: the table knows.
const IN_TABLE: Time = Time::from_micros(u64::MAX - 1);

/// One deadline for a whole connection, bound to the task that made it, armed anew for each phase.
///
/// Two ways to use it, which mix. [`guard`](ConnectionDeadline::guard) runs a future under it: what
/// blocks inside is interrupted, and the guard returns the timeout. Or
/// [`arm`](ConnectionDeadline::arm) it between the steps of straight code: when it fires, the task
/// that made it, unless it has ended, is interrupted in its trap, or in the next.
///
/// Exact: never early; late by two ticks of the coarse clock at most (of 4 ms on most machines) and
/// by what is left of the run that armed it, and not at all on a simulated machine. (Where that
/// clock is further behind than it says, as on a virtual machine whose processors others use, it is
/// early by as much the first time; from then on the clock is trusted less, up to eight ticks
/// more.) **In the turn in which it fires it wins** against a value that came for the task in the
/// same turn (rows D7, X1; a [`timeout_after`](crate::timeout_after) loses there), and nothing is
/// lost by that: the trap did nothing, the bytes are still in the socket. A value of an earlier
/// turn stands. A cancellation wins against both (row D29).
///
/// Costs 16 bytes in the deadline table, and one scope once it guards. To arm is to note the span:
/// the end of the run, which reads the coarse clock anyway, makes one store of it. A guard reads
/// that clock and stores. No trap (but for guards of a task that waits for more than eight things
/// besides), no allocation, no system call where Linux reads its clock without one, and no heap
/// operation for a tick or more (rows D2 to D5, D19), else one push.
///
/// ```no_run
/// # use std::time::Duration;
/// # use traps::{Interrupt, connection_deadline, sleep};
/// # async fn example() -> Result<(), Interrupt> {
/// let deadline = connection_deadline().await;
/// deadline.guard(Duration::from_secs(10), sleep(Duration::from_secs(1))).await?; // the head
/// deadline.guard(Duration::from_secs(5), sleep(Duration::from_secs(9))).await.unwrap_err();
/// assert!(deadline.fired());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ConnectionDeadline {
    slot: DeadlineSlot,
    /// What was armed last, for the labels of its interrupts, or `IN_TABLE`.
    until: Cell<Time>,
    /// What its guards need.
    kept: OnceCell<Box<Kept>>,
}

/// Makes a connection deadline, disarmed. *Answers*, and counts as a trap; the kernel hears of it
/// after the poll, where somebody listens or sweeps.
#[track_caller]
pub fn connection_deadline() -> NewConnectionDeadline {
    NewConnectionDeadline { site: Location::caller(), local: PhantomData }
}

/// The future of [`connection_deadline`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct NewConnectionDeadline {
    site: Site,
    local: PhantomData<Rc<()>>,
}

impl Future for NewConnectionDeadline {
    type Output = ConnectionDeadline;

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<ConnectionDeadline> {
        Poll::Ready(ConnectionDeadline::new(gate::make_deadline(self.site)))
    }
}

impl ConnectionDeadline {
    fn new(slot: DeadlineSlot) -> ConnectionDeadline {
        ConnectionDeadline { slot, until: Cell::new(Time::NEVER), kept: OnceCell::new() }
    }

    /// Its number in its kernel, from 1: `d1` in the log.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.slot.name.number
    }

    /// Sets it to `span` from now, in place of what was set before, sooner or later, and forgets
    /// that it fired. Zero disarms it (row D3). Inside a guard it moves that guard's deadline.
    ///
    /// On a real machine `now` is the end of the task's present run, where the clock is read for
    /// all; or this call, outside of a run and within a tick; or in between, where the run arms
    /// others by the dozen.
    ///
    /// Does not trap. Rounded up to a microsecond; a span that never ends disarms it. Outside a
    /// guard it is not among those that [`current_deadline`](crate::current_deadline) tells of.
    #[inline(always)]
    #[track_caller]
    pub fn arm(&self, span: Duration) {
        // All of it in the caller: a span that is known there costs nothing to convert.
        let DeadlineSlot { table, name } = &self.slot;
        let span = micros(span);
        if table.hold_again(name.slot, span) {
            self.until.set(IN_TABLE);
        } else {
            self.arm_first(span, Location::caller());
        }
    }

    /// The same where another one was armed last in this run, or where it is outside of any.
    #[inline(never)]
    fn arm_first(&self, span: u64, site: Site) {
        let DeadlineSlot { table, name } = &self.slot;
        let runs = gate::task().is_some_and(|task| task.epoch == name.epoch);
        if runs && table.can_hold_now(span) && table.hold(name.slot, span, || self.owner()) {
            self.until.set(IN_TABLE);
        } else {
            self.arm_slowly(span, runs, site);
        }
    }

    /// The same where there is no more room, the clock is exact, or it takes more than a store.
    #[inline(never)]
    fn arm_slowly(&self, span: u64, runs: bool, site: Site) {
        let DeadlineSlot { table, name } = &self.slot;
        if runs && table.hold_anyhow(name.slot, span, || self.owner()) {
            self.until.set(IN_TABLE);
        } else {
            self.arm_anyhow(span, site);
        }
    }

    /// The same with a span in microseconds, from the start.
    #[inline(always)]
    fn arm_from(&self, span: u64, owner: u32, site: Site) {
        let DeadlineSlot { table, name } = &self.slot;
        self.keep_until();
        let now = table.now();
        match table.begin(name.slot, span, now, owner) {
            Some(until) => self.until.set(until),
            None => self.arm_anyhow(span, site),
        }
    }

    /// The same where it is more than a store.
    #[inline(never)]
    fn arm_anyhow(&self, span: u64, site: Site) {
        let now = self.now();
        let until = Time::from_micros(now.as_micros().saturating_add(span));
        self.set(if span == 0 { Time::NEVER } else { until }, now, site);
    }

    /// The same to a point of kernel time, which may have passed: then it fires at the next trap
    /// that parks. [`Time::NEVER`] disarms it.
    #[inline]
    #[track_caller]
    pub fn arm_at(&self, until: Time) {
        self.arm_until(until, Location::caller());
    }

    #[inline]
    fn arm_until(&self, until: Time, site: Site) {
        // When it fires does not hang on this reading, but whether it is near does.
        self.set(until, self.slot.table.now(), site);
    }

    #[inline]
    fn set(&self, until: Time, now: Time, site: Site) {
        self.keep_until();
        if until >= END {
            if !self.fired() {
                return self.disarm();
            }
            self.until.set(Time::NEVER);
            let number = self.post(Time::NEVER, site);
            self.kept().arm.set(number);
            return;
        }
        self.until.set(until);
        let DeadlineSlot { table, name } = &self.slot;
        if !table.set(name.slot, until, now, self.owner()) {
            let number = self.post(until, site);
            self.kept().arm.set(number);
        }
    }

    /// A reading of the clock for arms, which is never early. Does not trap.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Time {
        self.slot.table.now()
    }

    /// What it was armed to last, also if that has passed or its guard has ended; [`Time::NEVER`]
    /// before, and after it was disarmed. Asked in the run of an [`arm`](ConnectionDeadline::arm),
    /// this has it count from here.
    #[must_use]
    pub fn until(&self) -> Time {
        self.keep_until();
        self.until.get()
    }

    /// Learns what it is set to, if only the table knows: before that is set or cleared in another
    /// way.
    #[inline(always)]
    fn keep_until(&self) {
        if self.until.get() == IN_TABLE {
            self.learn_until();
        }
    }

    #[cold]
    fn learn_until(&self) {
        self.until.set(self.slot.table.set_to(self.slot.name.slot));
    }

    /// Takes it back; harmless where it is not armed (row D4). Does not trap. That it fired is not
    /// forgotten; an interrupt of it that has ended no trap yet is.
    #[inline]
    #[track_caller]
    pub fn disarm(&self) {
        self.keep_until();
        self.until.set(Time::NEVER);
        let owner = self.owner();
        if !self.slot.table.clear(self.slot.name.slot, owner) {
            self.disarm_anyhow(owner, Location::caller());
        }
    }

    /// The same where it is more than a store.
    #[cold]
    fn disarm_anyhow(&self, owner: u32, site: Site) {
        if self.fired() {
            self.post_leave(None, owner);
        } else {
            self.post(Time::NEVER, site);
        }
    }

    /// Whether it has fired since it was armed last.
    #[inline]
    #[must_use]
    pub fn fired(&self) -> bool {
        let DeadlineSlot { table, name } = &self.slot;
        table.has_fired(name.slot)
            && !self.kept.get().is_some_and(|kept| table.is_in_flight(kept.arm.get()))
    }

    /// Runs `future` under this deadline, armed for `span` from the first poll, and disarms it on
    /// every way out (row D5). Zero runs it without a limit.
    ///
    /// If `future` handles the timeout itself, what it makes of it stands;
    /// [`fired`](ConnectionDeadline::fired) tells.
    ///
    /// A guard may be used inside a guard of the same deadline: both limits are in force, and
    /// [`arm`](ConnectionDeadline::arm) moves the outer one. Guards and timeouts nest as timeouts
    /// do, see [`timeout_after`](crate::timeout_after).
    ///
    /// # Errors
    ///
    /// Those of `future`, with the interrupts in them named as `timeout_after` names them.
    ///
    /// # Panics
    ///
    /// Where it is polled in another kernel than the one that made the deadline.
    #[track_caller]
    pub fn guard<F, T, E>(&self, span: Duration, future: F) -> Guard<'_, F>
    where
        F: Future<Output = Result<T, E>>,
        E: Interruptible,
    {
        Guard::new(self, Stage::After(micros(span)), Location::caller(), future)
    }

    /// The same up to a point of kernel time, such as the [`until`](ConnectionDeadline::until) of
    /// an earlier guard: several waits under one limit. `Time::NEVER` sets none.
    ///
    /// # Errors
    ///
    /// As [`guard`](ConnectionDeadline::guard); so are its panics.
    #[track_caller]
    pub fn guard_at<F, T, E>(&self, until: Time, future: F) -> Guard<'_, F>
    where
        F: Future<Output = Result<T, E>>,
        E: Interruptible,
    {
        Guard::new(self, Stage::Until(until), Location::caller(), future)
    }

    /// Asks the kernel to set it.
    #[cold]
    fn post(&self, until: Time, site: Site) -> u64 {
        let number = self.slot.table.post();
        let (deadline, owner) = (self.slot.name, self.owner());
        gate::post(Post::SetDeadline { deadline, until, owner, site });
        number
    }

    /// Tells the kernel that a guard ends, of which it knows that scope, or that what fired without
    /// one is to be heard no more.
    #[cold]
    fn post_leave(&self, scope: Option<ScopeId>, owner: u32) {
        self.slot.table.post();
        gate::post(Post::LeaveGuard { deadline: self.slot.name, scope, owner });
    }

    /// Who is interrupted: the task, or the scope of the guard that is running.
    #[inline]
    fn owner(&self) -> u32 {
        match self.scope() {
            Some(scope) if self.has_guard() => GUARD | scope.index,
            _ => BARE | self.slot.name.task,
        }
    }

    /// The scope of its guards, once it is open.
    #[inline]
    fn scope(&self) -> Option<ScopeId> {
        self.kept.get()?.scope(self.slot.name.epoch)
    }

    /// The same, if it hangs where this is called.
    #[inline]
    fn scope_here(&self) -> Option<ScopeId> {
        self.kept.get()?.scope_here(self.slot.name.epoch)
    }

    /// What its guards need, from now on.
    #[inline]
    fn kept(&self) -> &Kept {
        match self.kept.get() {
            Some(kept) => kept,
            None => self.keep(),
        }
    }

    #[cold]
    fn keep(&self) -> &Kept {
        self.kept.get_or_init(Box::default)
    }

    /// Whether a guard with a scope runs.
    #[inline]
    fn has_guard(&self) -> bool {
        self.kept.get().is_some_and(|kept| kept.guards.get())
    }

    #[cold]
    fn close(&self) {
        let scope = self.kept.get().and_then(|kept| kept.take(self.slot.name.epoch));
        if let Some(scope) = scope {
            gate::post(Post::CloseScope { scope, left: Left::Other });
        }
    }
}

impl Drop for ConnectionDeadline {
    #[inline]
    fn drop(&mut self) {
        // The scope of a guard that was leaked is leaked with it; the slot is not.
        if self.has_guard() {
            return;
        }
        let asked = self.kept.get().is_some_and(|kept| kept.asked.get());
        if self.scope().is_some() {
            // Before the slot, on which it hangs.
            self.close();
        }
        if !asked {
            self.slot.give_back();
        }
    }
}
