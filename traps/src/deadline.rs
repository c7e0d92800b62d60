//! The connection deadline: one deadline that is armed again and again, once per phase of a
//! connection.
//!
//! A deadline is a slot of the deadline table, which the kernel scans once a tick. So arming and
//! disarming are one store each. A [`Guard`] runs a future under the deadline: it opens a scope,
//! and the slot names that scope while the guard runs. With no guard, the slot names the task, and
//! the kernel opens a scope around the whole task when the deadline fires. A guard inside another
//! guard of the same deadline cannot have the slot, so it gets a timer of its own.

use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::core::gate;
use crate::core::gate::Shared;
use crate::core::protocol::{DeadlineEvent, Left, Note, Post, ScopeKind};
use crate::core::table::{ScopeId, Site, TaskRef};
use crate::interrupts::interrupt::Interruptible;
use crate::interrupts::scope;
use crate::interrupts::scope::{Limit, Opener, left, poll_inside, relabel};
use crate::parts::deadlines::Was;
use crate::time::Time;

/// One deadline for a whole connection. It is bound to the task that made it, and armed again for
/// each phase.
///
/// There are two ways to use it, and they can be mixed. [`guard`](ConnectionDeadline::guard) runs a
/// future under the deadline: blocking traps inside are interrupted, and the guard returns the
/// timeout. [`arm`](ConnectionDeadline::arm) sets the deadline between the steps of straight code:
/// when it fires, the task that made it is interrupted in its current or its next trap.
///
/// The deadline never fires early. It is at most one tick of the kernel late, because the kernel
/// checks all connection deadlines once a tick. **In the turn in which it fires, it wins** against
/// a value that arrives for the task in the same turn. (A [`timeout_after`](crate::timeout_after)
/// loses there.) Nothing is lost by that: the trap has had no effect, and the bytes are still in
/// the socket. A value of an earlier turn stays, and so does a cancellation that was delivered
/// before. A cancellation that comes later is pending behind the timeout.
///
/// Arming costs one reading of the clock and one store: no trap, no allocation, no timer.
///
/// ```
/// # use std::time::Duration;
/// use traps::{connection_deadline, sleep};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// let deadline = connection_deadline().await;
/// // The header section of a request has come in time, but not its body.
/// deadline.guard(10 * second, sleep(second)).await?;
/// deadline.guard(5 * second, sleep(9 * second)).await.unwrap_err();
/// assert!(deadline.fired());
/// # Ok::<(), traps::Interrupt>(())
/// # }).output.unwrap();
/// ```
pub struct ConnectionDeadline {
    kernel: Rc<Shared>,
    /// The slot in the table. It has the number of the deadline, and what the deadline fires.
    slot: u32,
    /// The task that made the deadline.
    task: TaskRef,
    /// The point to which the deadline was last armed.
    until: Cell<Time>,
    /// Whether a guard uses the deadline now, so that an inner guard needs a timer of its own.
    guards: Cell<bool>,
    /// The word for the limited phase, for the log.
    phase: Cell<&'static str>,
}

/// Makes a connection deadline, disarmed. Does not wait. Costs a slot of the kernel's table, so
/// make one for each connection, not one for each request.
///
/// ```
/// # testing::run(async {
/// let deadline = traps::connection_deadline().await;
/// assert_eq!((deadline.number(), deadline.until()), (1, traps::Time::NEVER));
/// # });
/// ```
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
        let (slot, _) = kernel.deadlines.make(ScopeId::of(task));
        let (until, guards, phase) = (Cell::new(Time::NEVER), Cell::new(false), Cell::new(""));
        let deadline = ConnectionDeadline { kernel, slot, task, until, guards, phase };
        deadline.note(DeadlineEvent::Made);
        deadline
    }

    /// Checks that the deadline is used in its own kernel, and not in a later kernel of the thread.
    #[inline]
    fn assert_here(&self) {
        let rule = "rule: a connection deadline is used in the kernel that made it";
        assert!(gate::epoch() != 0 && self.is_here(), "{rule}");
    }

    /// Returns whether the kernel of the deadline is still the kernel of this thread.
    fn is_here(&self) -> bool {
        gate::is_of_this_kernel(self.task)
    }

    /// Returns the number of the deadline in its kernel, counted from 1. The log shows number 1 as
    /// `d1`.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.kernel.deadlines.owner(self.slot).1
    }

    /// Names the phase that the deadline limits from now on. `word` is the `phase=` of the
    /// following `arm` lines in the log. The call costs one store.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let ran = testing::run(async {
    ///     let deadline = traps::connection_deadline().await;
    ///     deadline.phase("head");
    ///     deadline.arm(Duration::from_secs(5));
    /// });
    /// assert!(ran.trace.contains("phase=head"));
    /// ```
    #[inline]
    pub fn phase(&self, word: &'static str) {
        self.phase.set(word);
    }

    /// Sets the deadline to a duration from now or to a point of kernel time. The new limit
    /// replaces the old one, whether it is sooner or later. The deadline also forgets that it
    /// fired. Inside a guard, this moves the deadline of the guard. A point in the past fires when
    /// the kernel next checks. A zero duration, a duration that never ends, [`Time::NEVER`] and
    /// [`Limit::Never`] disarm the deadline.
    ///
    /// Does not trap. A duration is rounded up to a microsecond. Outside a guard,
    /// [`current_deadline`](crate::current_deadline()) does not count this deadline.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{connection_deadline, sleep};
    ///
    /// # testing::run(async {
    /// let second = Duration::from_secs(1);
    /// let deadline = connection_deadline().await;
    /// deadline.arm(5 * second);
    /// sleep(4 * second).await?; // the client has sent something in time ...
    /// deadline.arm(5 * second); // ... so it has five seconds again
    /// assert!(sleep(9 * second).await.is_err());
    /// # Ok::<(), traps::Interrupt>(())
    /// # }).output.unwrap();
    /// ```
    #[inline]
    #[track_caller]
    pub fn arm(&self, limit: impl Into<Limit>) {
        self.set(self.point_of(limit.into()), Location::caller());
    }

    /// Fires the deadline in the kernel's next turn, instead of up to a tick later.
    /// This is for code that ends the wait of another task. Does not trap.
    ///
    /// ```
    /// # use std::{rc::Rc, time::Duration};
    /// use traps::{Time, clock, connection_deadline, sleep, spawn};
    ///
    /// # testing::run(async {
    /// let second = Duration::from_secs(1);
    /// let deadline = Rc::new(connection_deadline().await);
    /// let theirs = deadline.clone();
    /// let closer = async move {
    ///     sleep(second).await.unwrap();
    ///     theirs.fire();
    /// };
    /// spawn("closer", closer).detached().await;
    /// // An idle connection, until the server needs its memory for another client.
    /// let idle = deadline.guard(60 * second, sleep(Duration::MAX)).await;
    /// assert!(idle.is_err());
    /// assert_eq!(clock().await, Time::ZERO + second);
    /// # });
    /// ```
    #[track_caller]
    pub fn fire(&self) {
        self.set(self.now(), Location::caller());
        self.kernel.deadlines.hurry();
    }

    /// Returns the point in time of a limit that begins now. A zero duration means no limit.
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
        // A fired deadline is not armed any more. So it gets a `disarm` line only if this call has
        // withdrawn its interrupt.
        if was == Was::Fired && self.forget_interrupt() && until == Time::NEVER {
            return self.note(DeadlineEvent::Disarmed);
        }
        if until != Time::NEVER {
            self.note(DeadlineEvent::Armed(until, self.phase.get(), site));
        } else if was == Was::Armed {
            self.note(DeadlineEvent::Disarmed);
        }
    }

    /// Withdraws the interrupts of a fired deadline that have not ended a trap yet. Returns whether
    /// the scope of a guard had fired.
    #[cold]
    fn forget_interrupt(&self) -> bool {
        if let Some(around) = scope::deadline_around(self.task, self.slot) {
            scope::forget(around);
        }
        scope::forget(self.kernel.deadlines.owner(self.slot).0)
    }

    /// Logs an event of the deadline, if the log is on.
    #[inline]
    fn note(&self, what: DeadlineEvent) {
        if gate::is_listening() && self.is_here() {
            gate::post(Post::Note(Note::Deadline(self.slot, self.number(), what)));
        }
    }

    /// Reads the kernel clock. Does not trap.
    #[must_use]
    pub fn now(&self) -> Time {
        (self.kernel.clock)()
    }

    /// Returns the point to which the deadline was last armed, even if this point has passed or the
    /// guard has ended. Returns [`Time::NEVER`] if the deadline was never armed, or was disarmed.
    #[must_use]
    pub fn until(&self) -> Time {
        self.until.get()
    }

    /// Disarms the deadline. Does nothing if it is not armed. Does not trap, so it can be called
    /// between any two steps of a connection.
    /// [`fired`](ConnectionDeadline::fired) keeps its value, but an interrupt that has ended no
    /// trap yet is withdrawn.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{connection_deadline, sleep};
    ///
    /// # testing::run(async {
    /// let second = Duration::from_secs(1);
    /// let deadline = connection_deadline().await;
    /// deadline.arm(5 * second);
    /// sleep(second).await?; // the request has come in time
    /// deadline.disarm();
    /// sleep(60 * second).await?; // the handler may take as long as it likes
    /// assert!(!deadline.fired());
    /// # Ok::<(), traps::Interrupt>(())
    /// # }).output.unwrap();
    /// ```
    pub fn disarm(&self) {
        self.until.set(Time::NEVER);
        if self.clear() == Was::Fired && self.forget_interrupt() {
            self.note(DeadlineEvent::Disarmed);
        }
    }

    fn clear(&self) -> Was {
        let was = self.kernel.deadlines.clear(self.slot);
        if was == Was::Armed {
            self.note(DeadlineEvent::Disarmed);
        }
        was
    }

    /// Returns whether the deadline has fired since it was last armed.
    #[must_use]
    pub fn fired(&self) -> bool {
        self.kernel.deadlines.has_fired(self.slot)
    }

    /// Runs `future` under this deadline. The first poll arms the deadline, and every way out
    /// disarms it. The limit is a duration from the first poll, or a point of kernel time. If the
    /// point is the [`until`](ConnectionDeadline::until) of an earlier guard, several waits share
    /// one limit. With a zero duration, [`Time::NEVER`] or [`Limit::Never`] the future runs without
    /// a limit.
    ///
    /// A guard makes no trap of its own. It is filed together with the first blocking trap inside.
    /// If `future` is ready at its first poll, the guard files nothing.
    ///
    /// If `future` handles the timeout itself, the guard returns the result of `future`.
    /// [`fired`](ConnectionDeadline::fired) then shows that the deadline passed.
    ///
    /// A guard may run inside another guard of the same deadline. Both limits are then in force,
    /// and [`arm`](ConnectionDeadline::arm) moves the outer one. Guards and timeouts nest like
    /// timeouts, see [`timeout_after`](crate::timeout_after).
    ///
    /// # Errors
    ///
    /// Returns the errors of `future`. Interrupts in them get the same kinds as in `timeout_after`.
    ///
    /// # Panics
    ///
    /// Panics if the kernel that made the deadline was dropped, and a later one polls the guard.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{clock, connection_deadline, sleep};
    ///
    /// # testing::run(async {
    /// let second = Duration::from_secs(1);
    /// let deadline = connection_deadline().await;
    /// // Two waits under one limit: the second guard uses the point of the first.
    /// deadline.guard(5 * second, sleep(3 * second)).await?;
    /// let until = clock().await + 2 * second;
    /// assert!(deadline.guard(until, sleep(3 * second)).await.is_err());
    /// # Ok::<(), traps::Interrupt>(())
    /// # }).output.unwrap();
    /// ```
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

    /// Runs `future` under this deadline, like [`guard`](ConnectionDeadline::guard), but without a
    /// scope. The call arms the deadline at once, and every way out disarms it. The cost is that of
    /// [`arm`](ConnectionDeadline::arm).
    ///
    /// When the deadline fires, it interrupts the whole task that made it. So use this only in that
    /// task, and only if the task waits for nothing else at the same time: not in a branch of a
    /// combinator, and not for a future that is handed to another task. The interrupt comes from
    /// outside all scopes: a shield holds it back, and inside a timeout it is a
    /// [`TimeoutCancellation`](crate::Kind::TimeoutCancellation).
    ///
    /// # Errors
    ///
    /// Returns the errors of `future`, with their interrupts unchanged.
    ///
    /// # Panics
    ///
    /// Panics inside a guard of the same deadline.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{connection_deadline, sleep};
    ///
    /// # testing::run(async {
    /// let second = Duration::from_secs(1);
    /// let deadline = connection_deadline().await;
    /// let read = deadline.guard_task(5 * second, sleep(9 * second)).await;
    /// assert!(read.is_err() && deadline.fired());
    /// # });
    /// ```
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
        write!(f, "ConnectionDeadline(d{} until {until})", self.number())
    }
}

impl Drop for ConnectionDeadline {
    fn drop(&mut self) {
        // A guard borrows the deadline, so it has ended, unless it was leaked by `mem::forget`. A
        // leaked guard still uses the slot, so the slot must not be released.
        if !self.guards.get() {
            self.disarm();
            self.kernel.deadlines.release(self.slot);
        }
        if let Some(around) = scope::deadline_around(self.task, self.slot) {
            scope::close_scope(around, Left::Other);
        }
    }
}

pin_project! {
    /// The future of [`ConnectionDeadline::guard`]. The inner future is dropped before the guard
    /// ends.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Guard<'a, F> {
        #[pin]
        inner: Option<F>,
        state: GuardState<'a>,
    }
}

/// The state of a guard. A guard does nothing before its first poll, because the limit is a
/// duration from that poll.
#[derive(Debug)]
enum GuardState<'a> {
    /// The guard was not polled yet.
    New { deadline: &'a ConnectionDeadline, limit: Limit, site: Site },
    /// The guard has no limit.
    Free,
    /// The guard uses the slot of its deadline.
    OnSlot(OnSlot<'a>),
    /// The guard is inside another guard of the same deadline, so it has a scope with its own
    /// timer.
    Nested(Opener),
}

/// The scope of a guard that uses the slot of its deadline. Dropping it closes the scope.
#[derive(Debug)]
struct OnSlot<'a> {
    deadline: &'a ConnectionDeadline,
    opener: Opener,
}

impl GuardState<'_> {
    /// Begins the guard at its first poll. Arms the deadline, unless an outer guard uses the slot.
    fn begin(&mut self) {
        let GuardState::New { deadline, limit, site } = *self else { return };
        deadline.assert_here();
        let is_nested = deadline.guards.get();
        *self = match limit {
            Limit::Never => {
                if !is_nested {
                    deadline.set(Time::NEVER, site);
                }
                GuardState::Free
            }
            _ if is_nested => {
                let kind = ScopeKind::Guard { slot: None, number: deadline.number() };
                GuardState::Nested(Opener::new(limit, kind, site))
            }
            _ => GuardState::OnSlot(OnSlot::begin(deadline, limit, site)),
        };
    }
}

impl<'a> OnSlot<'a> {
    fn begin(deadline: &'a ConnectionDeadline, limit: Limit, site: Site) -> OnSlot<'a> {
        deadline.guards.set(true);
        let until = match limit {
            Limit::Never => Time::NEVER,
            Limit::After(span) => deadline.now() + span,
            Limit::At(until) => until,
        };
        deadline.set(until, site);
        let kind = ScopeKind::Guard { slot: Some(deadline.slot), number: deadline.number() };
        OnSlot { deadline, opener: Opener::new(Limit::Never, kind, site) }
    }

    fn end(&mut self, left: Left) {
        let ConnectionDeadline { kernel, slot, task, guards, .. } = self.deadline;
        if guards.replace(false) {
            kernel.deadlines.set_scope(*slot, ScopeId::of(*task));
            self.opener.close(left);
            self.deadline.clear();
        }
    }
}

impl Drop for OnSlot<'_> {
    fn drop(&mut self) {
        self.end(Left::Other);
    }
}

impl<'a, F: Future> Guard<'a, F> {
    pub(super) fn new(
        deadline: &'a ConnectionDeadline,
        limit: Limit,
        site: Site,
        future: F,
    ) -> Guard<'a, F> {
        Guard { inner: Some(future), state: GuardState::New { deadline, limit, site } }
    }
}

impl<F, T, E> Future for Guard<'_, F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        let mut this = self.project();
        this.state.begin();
        let (open, site) = match this.state {
            GuardState::OnSlot(OnSlot { deadline, opener }) => {
                deadline.assert_here();
                let mut open = opener.open();
                // The future has moved here from another task, where the deadline fired in a scope
                // that is closed now. Without this line, the guard would wait forever: a fired slot
                // fires no second time.
                if deadline.kernel.deadlines.set_scope(deadline.slot, open.scope) {
                    deadline.set(deadline.until(), opener.site);
                }
                open.deadline = deadline.until();
                (open, opener.site)
            }
            GuardState::Nested(opener) => (opener.open(), opener.site),
            GuardState::Free | GuardState::New { .. } => {
                let rule = "rule: a future is not polled after it was ready";
                return this.inner.as_pin_mut().expect(rule).poll(cx);
            }
        };
        let polled = poll_inside(this.inner.as_mut(), open.scope, cx);
        if let (Poll::Pending, GuardState::Nested(opener)) = (&polled, &mut *this.state) {
            opener.pends();
        }
        let inner = ready!(polled);
        // The future inside may have armed the deadline again. So read it now: the interrupt shows
        // the limit that has passed, not that of the first poll.
        let until = match this.state {
            GuardState::OnSlot(OnSlot { deadline, .. }) => deadline.until(),
            _ => open.deadline,
        };
        let (result, _) = relabel(inner, open.scope, until, site);
        // Drop the future while its scope is open. Its clean-up posts belong to that scope.
        this.inner.set(None);
        match this.state {
            GuardState::OnSlot(on_slot) => on_slot.end(left(&result)),
            GuardState::Nested(opener) => opener.close(left(&result)),
            GuardState::Free | GuardState::New { .. } => {}
        }
        Poll::Ready(result)
    }
}

pin_project! {
    /// The future of [`ConnectionDeadline::guard_task`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct TaskGuard<'a, F> {
        #[pin]
        inner: F,
        armed: Armed<'a>,
    }
}

/// The armed deadline of a task guard. The end of the guard, or a drop, disarms it.
#[derive(Debug)]
struct Armed<'a>(Option<&'a ConnectionDeadline>);

impl Armed<'_> {
    fn end(&mut self) {
        if let Some(deadline) = self.0.take()
            && deadline.clear() == Was::Fired
        {
            deadline.forget_interrupt();
        }
    }
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<'a, F> TaskGuard<'a, F> {
    pub(super) fn new(deadline: &'a ConnectionDeadline, inner: F) -> TaskGuard<'a, F> {
        TaskGuard { inner, armed: Armed(Some(deadline)) }
    }
}

impl<F: Future> Future for TaskGuard<'_, F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(cx));
        this.armed.end();
        Poll::Ready(result)
    }
}
