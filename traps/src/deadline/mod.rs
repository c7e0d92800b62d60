//! The connection deadline: one deadline that is armed again and again, phase by phase.
//!
//! Arming and disarming are a store in the deadline table, which the kernel scans.

use crate::core::opening;
use crate::core::posting;
use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

use crate::core::deadlines::Was;
use crate::core::gate::{self, Shared};
use crate::core::interrupt::Interruptible;
use crate::core::names::{ScopeId, Site};
use crate::core::protocol::{DeadlineEvent, Left, Note, Post, ScopeKind};
use crate::core::scope::Limit;
use crate::time::Time;

mod guard;

pub use guard::{Guard, TaskGuard};

/// One deadline for a whole connection, bound to the task that made it, armed anew for each phase.
///
/// There are two ways to use it, which mix. [`guard`](ConnectionDeadline::guard) runs a future
/// under it: what blocks inside is interrupted, and the guard returns the timeout. Or
/// [`arm`](ConnectionDeadline::arm) it between the steps of straight code: when it fires, the task
/// that made it is interrupted in its trap, or in the next.
///
/// Never early; late by the kernel's tick at most, since the kernel looks at all such deadlines
/// once a tick. **In the turn in which it fires it wins** against a value that came for the task in
/// the same turn (a [`timeout_after`](crate::timeout_after) loses there), and nothing is lost by
/// that: the trap did nothing, the bytes are still in the socket. A value of an earlier turn
/// stands. A cancellation wins against both.
///
/// To arm costs one reading of the clock and a store: no trap, no allocation, no timer.
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
pub struct ConnectionDeadline {
    kernel: Rc<Shared>,
    slot: u32,
    number: u32,
    /// The scope around the task that made it.
    scope: ScopeId,
    /// The scope of the guard that runs on the slot.
    guarding: Cell<Option<ScopeId>>,
    /// What it was armed to last.
    until: Cell<Time>,
    /// A guard runs on the slot.
    guards: Cell<bool>,
    /// What it limits, for the log.
    phase: Cell<&'static str>,
}

/// Makes a connection deadline, disarmed. Does not wait.
#[track_caller]
pub fn connection_deadline() -> impl Future<Output = ConnectionDeadline> {
    let site = Location::caller();
    async move { ConnectionDeadline::new(site) }
}

impl ConnectionDeadline {
    fn new(site: Site) -> ConnectionDeadline {
        let (Some(kernel), Some(task)) = (gate::shared(), gate::task()) else {
            gate::refuse_outside_a_task(site)
        };
        let (slot, number) = kernel.deadlines.make();
        let scope = opening::open_around(task, ScopeKind::Deadline(slot), site);
        let scope = scope.expect("the task that is being polled has a scope");
        kernel.deadlines.set_scope(slot, scope);
        let (until, guards, guarding) = (Cell::new(Time::NEVER), Cell::new(false), Cell::new(None));
        let phase = Cell::new("");
        let deadline =
            ConnectionDeadline { kernel, slot, number, scope, guarding, until, guards, phase };
        deadline.note(DeadlineEvent::Made, site);
        deadline
    }

    /// A future that it guards belongs to its kernel.
    #[inline]
    fn assert_here(&self) {
        let rule = "rule: a connection deadline is used in the kernel that made it";
        assert!(self.kernel.epoch == gate::epoch(), "{rule}");
    }

    /// Its number in its kernel, from 1: `d1` in the log.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Says what it limits from now on: one word, `phase=` in the `arm` lines that follow. To say
    /// it costs a store.
    #[inline]
    pub fn phase(&self, word: &'static str) {
        self.phase.set(word);
    }

    /// Sets it to a span from now or to a point of kernel time, in place of what was set before,
    /// sooner or later, and forgets that it fired. Inside a guard it moves that guard's deadline.
    /// A point that has passed fires when the kernel next looks. A span of zero, a span that never
    /// ends, [`Time::NEVER`] and [`Limit::Never`] disarm it.
    ///
    /// Does not trap. A span is rounded up to a microsecond. Outside a guard it is not among those
    /// that [`current_deadline`](crate::current_deadline()) tells of.
    #[inline]
    #[track_caller]
    pub fn arm(&self, limit: impl Into<Limit>) {
        self.set(self.point_of(limit.into()), Location::caller());
    }

    /// Fires it when the kernel next looks at the machine, and not up to a tick later, whatever it
    /// was armed to: for whoever ends the wait of another task. Does not trap.
    #[track_caller]
    pub fn fire(&self) {
        self.set(self.now(), Location::caller());
        self.kernel.deadlines.hurry();
    }

    /// The point in time of a limit that begins now. A span of zero is no limit here.
    #[inline]
    fn point_of(&self, limit: Limit) -> Time {
        match limit {
            Limit::Never | Limit::After(Duration::ZERO) => Time::NEVER,
            Limit::After(span) => self.now() + span,
            Limit::At(point) => point,
        }
    }

    #[inline]
    fn set(&self, until: Time, site: Site) {
        self.until.set(until);
        let was = self.kernel.deadlines.set(self.slot, until);
        if was == Was::Fired {
            self.forget_interrupt();
        }
        if until != Time::NEVER {
            self.note(DeadlineEvent::Armed(until, self.phase.get()), site);
        } else if was == Was::Armed {
            self.note(DeadlineEvent::Disarmed, site);
        }
    }

    /// It fired: an interrupt of it that has ended no trap yet is for nobody.
    #[cold]
    fn forget_interrupt(&self) {
        opening::forget(self.scope);
        self.guarding.get().into_iter().for_each(opening::forget);
    }

    /// Tells the log, if anybody listens.
    #[inline]
    fn note(&self, what: DeadlineEvent, site: Site) {
        if gate::is_listening() {
            let note = Note::Deadline(self.number, what, site);
            posting::post_to(self.kernel.epoch, Post::Note(note));
        }
    }

    /// Reads the kernel clock. Does not trap.
    #[must_use]
    pub fn now(&self) -> Time {
        (self.kernel.clock)()
    }

    /// What it was armed to last, also if that has passed or its guard has ended; [`Time::NEVER`]
    /// before, and after it was disarmed.
    #[must_use]
    pub fn until(&self) -> Time {
        self.until.get()
    }

    /// Takes it back; harmless if it is not armed. Does not trap. That it fired is not forgotten;
    /// an interrupt of it that has ended no trap yet is.
    #[track_caller]
    pub fn disarm(&self) {
        self.until.set(Time::NEVER);
        if self.clear(Location::caller()) == Was::Fired {
            self.forget_interrupt();
        }
    }

    fn clear(&self, site: Site) -> Was {
        let was = self.kernel.deadlines.clear(self.slot);
        if was == Was::Armed {
            self.note(DeadlineEvent::Disarmed, site);
        }
        was
    }

    /// Whether it has fired since it was armed last.
    #[must_use]
    pub fn fired(&self) -> bool {
        self.kernel.deadlines.has_fired(self.slot)
    }

    /// Runs `future` under this deadline, armed with the first poll, and disarms it on every way
    /// out. The limit is a span from the first poll or a point of kernel time, such as the
    /// [`until`](ConnectionDeadline::until) of an earlier guard: several waits under one limit. A
    /// span of zero, [`Time::NEVER`] and [`Limit::Never`] run it without a limit.
    ///
    /// No guard, the first included, is a trap of its own: it is filed together with the first trap
    /// inside that blocks, and one whose future is ready at its first poll files nothing.
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
    /// If it is polled in another kernel than the one that made the deadline.
    #[track_caller]
    pub fn guard<F, T, E>(&self, limit: impl Into<Limit>, future: F) -> Guard<'_, F>
    where
        F: Future<Output = Result<T, E>>,
        E: Interruptible,
    {
        let limit = match limit.into() {
            Limit::After(Duration::ZERO) | Limit::At(Time::NEVER) => Limit::Never,
            limit => limit,
        };
        Guard::new(self, limit, Location::caller(), future)
    }

    /// Runs `future` under this deadline, armed now, and disarms it on every way out, as
    /// [`guard`](ConnectionDeadline::guard) does, but without a scope: it costs what
    /// [`arm`](ConnectionDeadline::arm) does.
    ///
    /// When it fires, the whole task that made the deadline is interrupted. So this is for a future
    /// in that task, beside which the task waits for nothing: no branch of a combinator, and
    /// nothing that is handed to another task. The interrupt is one from outside all scopes: a
    /// shield holds it back, and in a timeout it is a
    /// [`TimeoutCancellation`](crate::Kind::TimeoutCancellation).
    ///
    /// # Errors
    ///
    /// Those of `future`, with the interrupts in them.
    ///
    /// # Panics
    ///
    /// Inside a guard of the same deadline.
    #[track_caller]
    pub fn guard_task<F, T, E>(&self, limit: impl Into<Limit>, future: F) -> TaskGuard<'_, F>
    where
        F: Future<Output = Result<T, E>>,
        E: Interruptible,
    {
        let rule = "rule: a task's guard is not inside another guard of the same deadline";
        assert!(!self.guards.get(), "{rule}");
        self.set(self.point_of(limit.into()), Location::caller());
        TaskGuard::new(self, future)
    }
}

impl fmt::Debug for ConnectionDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.until.get();
        write!(f, "ConnectionDeadline(d{} until {until})", self.number)
    }
}

impl Drop for ConnectionDeadline {
    fn drop(&mut self) {
        // A guard that was leaked still names the slot.
        if !self.guards.get() {
            self.disarm();
            self.kernel.deadlines.release(self.slot);
        }
        opening::close_scope(self.scope, Left::Other);
    }
}
