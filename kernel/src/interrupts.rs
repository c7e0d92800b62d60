//! How interrupts reach the waits of a task: a scope fires, a task is cancelled, an interrupt goes
//! back. The rule that says which wait takes an interrupt is at the head of `traps/src/interrupts`.
//!
//! | method | when | effect |
//! |---|---|---|
//! | [`Core::fire`], [`Core::cancel`] | a deadline has passed; a task is cancelled | the scope is a source, and ends the parked waits that the rule names |
//! | [`Core::pending_for`] | a trap is dispatched | the trap is answered with an interrupt that is pending for it |
//! | [`Core::wake_bare`] | a source has ended no trap, because the task waits for foreign wakers alone | the task is polled, and the future of the timeout takes the interrupt itself; after a cancellation, the task can file another trap |
//! | [`Core::repend`] | an interrupt was not read, or had no effect | its source is pending again, and ends the parked waits that the rule names |
//!
//! An interrupt that was delivered stays with its wait: a later cancellation does not replace it,
//! but ends the waits of other branches, and the next blocking trap. An interrupt belongs to its
//! task, also if another task polls or drops the wait.
//!
//! An interrupted wait leaves its queue or list first
//! ([`Sched::undo_park`](crate::core::sched::Sched::undo_park)), before anything can panic, because
//! the queue may outlive the kernel. Its log line follows, and then the end of its registration. A
//! combinator's waker is called last, because it may run any code.

use std::cmp::Reverse;
use std::mem;

use traps::internal::interrupt::Places;
use traps::internal::protocol::{Left, Reply, ScopeEvent, ScopeKind, ScopePost, Trap};
use traps::internal::source::{Fired, Scope};
use traps::internal::table::{ScopeId, Site, TaskIndex, Ticket};
use traps::{Interrupt, Time};

use crate::core::Core;
use crate::core::tasks::TaskState;
use crate::core::waits::call_waker;
use crate::log::lines::{emit, emit_for};
use crate::log::{KERNEL, words};
use crate::machine::Machine;
use crate::parts::sweep::Injected;
use crate::trace::{Effect, Event, Op, Timer};

impl<M: Machine> Core<M> {
    /// Takes the interrupt that is pending for a trap, if the trap can be interrupted. Called only
    /// while some scope has fired, because most traps meet none.
    #[cold]
    pub(crate) fn pending_for(&mut self, ticket: Ticket, trap: &Trap) -> Option<Interrupt> {
        let mut records = self.sched.gate.records();
        // What cannot block cannot be interrupted.
        let can_be = match trap {
            Trap::Clock => false,
            // If the event has already happened, the trap does not block, so it is not interrupted.
            // The clean-up of a group, for example, joins members that have ended, and leaves a
            // pending timeout to the code after it.
            Trap::Join { task, .. } => records.tasks.get(*task).is_some(),
            Trap::Wait { queue, .. } => !queue.has_happened(),
            Trap::Io { handle, direction } => !self.handles.is_ready(*handle, *direction),
            _ => true,
        };
        let wait = records.waits.get(ticket).filter(|_| can_be)?;
        let from = wait.scope;
        records.take_interrupt(from, self.sched.now)
    }

    /// Returns the interrupt that a shield holds back from a trap.
    pub(crate) fn held(&self, ticket: Ticket) -> Option<Interrupt> {
        let records = self.sched.gate.records();
        let from = records.waits.get(ticket)?.scope;
        let (source, places) = records.pending(from, true)?;
        Some(records.interrupt(source, places, from, self.sched.now))
    }

    /// Fires a scope whose deadline has passed, and interrupts the waits that the rule names. The
    /// lines of these have the `fire` line as their cause.
    pub(crate) fn fire(&mut self, source: ScopeId) {
        let mut records = self.sched.gate.records();
        let Some(scope) = records.scopes.get(source) else { return };
        let task = scope.task;
        // For the log: a ready task already has a result, and the timeout has lost against it.
        let Some(was_ready) = self.sched.tasks.state(task).map(|state| state == TaskState::Ready)
        else {
            return;
        };
        let fired = Fired::by_deadline(records.next_rank(), self.sched.log.cause);
        let targets = records.fire(source, fired);
        drop(records);
        let winner = (was_ready && self.sched.log.listening).then(|| self.sched.winner(task));
        // All parked waits were named before the first takes the interrupt. So two waits in one
        // scope both get it.
        let hits = !targets.is_empty();
        self.deliver_all(source, task, targets);
        if !hits && !self.wake_bare(source, task) {
            self.sched.log_pending(source, task, winner);
        }
    }

    fn deliver_all(&mut self, source: ScopeId, task: TaskIndex, targets: Vec<(Ticket, Places)>) {
        for (ticket, places) in targets {
            self.deliver(source, task, ticket, places);
        }
    }

    /// Ends a parked wait with an interrupt.
    fn deliver(&mut self, source: ScopeId, task: TaskIndex, ticket: Ticket, places: Places) {
        let mut records = self.sched.gate.records();
        let Some(wait) = records.waits.get(ticket) else { return };
        let from = wait.scope;
        // The waker of an earlier wait may have dropped the scope, or armed its guard again.
        if records.scopes.get(source).is_none_or(|scope| scope.fired.is_none()) {
            return;
        }
        debug_assert!(wait.is_parked(), "a parked wait is ended");
        let interrupt = records.take(source, places, from, self.sched.now);
        drop(records);
        let reply = Reply::Interrupt(interrupt);
        let Some((_, waker)) = self.sched.write_reply(ticket, reply) else { return };
        let (trap, _) = self.sched.trap_of(ticket);
        // Before the `deliver` line: its observer may panic, and the queue may outlive the kernel.
        self.sched.undo_park(ticket, &trap);
        self.sched.make_ready(task);
        if self.sched.log.listening {
            let (outcome, cause) = (self.sched.outcome_of(ticket), self.sched.log.cause);
            let number = self.sched.note_answer(task, ticket, outcome.clone());
            emit!(self.sched, task, Event::Deliver { ticket: number, outcome, cause });
        }
        if let Trap::Io { handle, direction } = trap {
            let records = self.sched.gate.records();
            let scope = &records.scopes[source.index];
            if let ScopeKind::Guard { .. } = scope.kind {
                self.handles.guarded.push((handle, direction, task, scope.number));
            }
            drop(records);
            self.handles.stop_waiting(&mut self.sched, handle, direction);
        }
        call_waker(waker);
    }

    /// Wakes a task that waits only for foreign wakers inside the scope `source`. Returns `false`
    /// if the task is not parked, or waits in another way.
    fn wake_bare(&mut self, source: ScopeId, task: TaskIndex) -> bool {
        let records = self.sched.gate.records();
        let is_bare = self.sched.tasks[task].state == TaskState::Parked && records.is_bare(source);
        let scope = &records.scopes[source.index];
        let scope = if scope.kind.relabels() { scope.number } else { 0 };
        drop(records);
        if is_bare {
            let cause = self.sched.log.cause;
            self.sched.make_ready(task);
            emit!(self.sched, task, Event::Wake { op: Op::Scope { scope }, ticket: None, cause });
        }
        is_bare
    }

    // ---- Connection deadlines --------------------------------------------------------------

    /// Scans the table of connection deadlines if a scan is due, and fires the due deadlines.
    #[inline]
    pub(crate) fn fire_deadlines(&mut self) {
        if self.scans.is_due(&self.sched) {
            self.scan_deadlines();
        }
    }

    #[cold]
    pub(crate) fn scan_deadlines(&mut self) {
        let mut due = self.scans.scan(&mut self.sched);
        for due in due.drain(..) {
            if let Some(scope) = self.scans.scope_to_fire(&mut self.sched, due) {
                self.fire(scope);
            }
        }
        self.scans.reuse(due);
        self.between_events();
    }

    // ---- Scopes that are left ---------------------------------------------------------------

    /// Closes the scopes that an ended task still has.
    pub(crate) fn close_scopes_of(&mut self, index: TaskIndex) {
        let records = self.sched.gate.records();
        let mut scopes = Vec::new();
        // Without this count, each task that ends would look through all scopes of the thread.
        if records.tasks[index.0].open > 0 {
            let left = records.scopes.iter().filter(|(_, scope)| scope.task == index);
            let left = left.filter(|(_, it)| it.is_inner && it.kind != ScopeKind::Closed);
            scopes.extend(left.map(|(id, it)| (Reverse(it.number), id)));
        }
        drop(records);
        // From the inside out, as a destructor would close them.
        scopes.sort_unstable();
        let task = self.sched.tasks.key(index);
        for (Reverse(number), scope) in scopes {
            let Some(closed) = self.sched.gate.records().close(scope) else { continue };
            let Scope { kind, deadline, .. } = closed;
            let event = ScopeEvent::Closed(Left::Other);
            self.sched.log_scope(&ScopePost { task, number, kind, deadline, event });
        }
    }

    // ---- Cancellation ----------------------------------------------------------------------

    /// Cancels a task: opens a scope around it, and fires that. A task is cancelled once. A pending
    /// cancellation comes before any pending timeout. An interrupt that was delivered before the
    /// cancellation stays.
    pub(crate) fn cancel(&mut self, index: TaskIndex, fired: Fired) {
        let (by, reason, cause) = (fired.by.map(|task| task.0), fired.reason, self.sched.log.cause);
        let event = |effect| Event::Cancel { by, reason: reason.into(), cause, effect };
        if self.is_cancelled(index) {
            // A second cancellation must not interrupt the clean-up that the first has begun.
            emit!(self.sched, index, event(Effect::Again));
            return;
        }
        debug_assert!(fired.order > 0, "a cancellation has its rank");
        let site = self.sched.tasks.site(index);
        let mut records = self.sched.gate.records();
        let source = records.open_around(index, ScopeKind::Task, 0, site);
        let targets = records.fire(source, fired);
        drop(records);
        // Fire first, because the line says whether a wait ends.
        let hits = !targets.is_empty();
        let effect = if hits { Effect::Delivered } else { Effect::Pending };
        let line = emit!(self.sched, index, event(effect));
        if let Some(fired) = &mut self.sched.gate.records().scopes[source.index].fired {
            fired.line = line;
        }
        self.deliver_all(source, index, targets);
        if !hits {
            self.wake_bare(source, index);
        }
    }

    /// Cancels a task on behalf of the kernel, another thread or a test.
    pub(crate) fn cancel_now(&mut self, index: TaskIndex, reason: &'static str) {
        let order = self.sched.gate.records().next_rank();
        self.cancel(index, Fired::by_cancel(order, None, reason));
    }

    /// Returns whether a task was cancelled.
    pub(crate) fn is_cancelled(&self, index: TaskIndex) -> bool {
        let key = self.sched.tasks.key(index);
        self.sched.gate.records().scope_around(key, ScopeKind::Task).is_some()
    }

    /// Makes an interrupt that was not read, or changed nothing, pending again in its task. It ends
    /// the parked waits that the rule names.
    pub(crate) fn repend(&mut self, interrupt: &Interrupt) {
        let source = interrupt.delivery().source;
        let mut records = self.sched.gate.records();
        let places = records.repend(interrupt);
        if places.is_empty() {
            return;
        }
        let number_of_branch = |at: ScopeId| (at != source).then(|| records.number_of(at));
        let places: Vec<Option<u64>> = places.into_iter().map(number_of_branch).collect();
        let scope = &records.scopes[source.index];
        let (task, line) = (scope.task, scope.fired.as_ref().map_or(0, |fired| fired.line));
        let targets = records.targets(source);
        let is_bare = records.is_bare(source);
        drop(records);
        for place in places {
            emit!(self.sched, task, {
                let scope = interrupt.scope().unwrap_or(0);
                Event::Cleanup { scope, place, outcome: words::interrupt(interrupt) }
            });
        }
        let hits = !targets.is_empty();
        // Whatever ends now ends because of the old `fire` or `cancel`, not because of the drop.
        let cause = mem::replace(&mut self.sched.log.cause, line);
        self.deliver_all(source, task, targets);
        if self.sched.run.task == Some(task) {
            // The task is running, and its next trap will take it. If it waits for foreign wakers
            // alone, there is no next trap.
            self.sched.run.again |= is_bare;
        } else if !hits {
            self.wake_bare(source, task);
        }
        // The caller's next line, the end of a task for example, has the caller's cause.
        self.sched.log.cause = cause;
    }

    // ---- The hook for tests ------------------------------------------------------------------

    /// Calls the hook for tests with a trap that is about to be dispatched. The wait is not marked
    /// as parked yet, so a scope that the hook fires does not end it, and is pending for it.
    #[cold]
    pub(crate) fn before_dispatch(&mut self, task: TaskIndex, ticket: Ticket) {
        if self.sched.gate.records().waits.get(ticket).is_some() {
            let (trap, site) = self.sched.trap_of(ticket);
            let mut holders = Vec::new();
            let op = self.sched.op(&trap, &mut holders);
            self.before_trap(task, site, &op);
        }
    }

    /// Calls the hook for tests if the post is the opening of a scope that counts as a trap.
    pub(crate) fn before_scope(&mut self, post: &ScopePost) {
        let ScopePost { task, kind, deadline, event, .. } = *post;
        if let ScopeEvent::Opened { now, site, .. } = event
            && self.hook.is_set()
            && !matches!(kind, ScopeKind::Guard { slot: Some(_), .. })
            && let Some(task) = self.sched.find(task)
        {
            let now = if now == Time::ZERO { self.sched.now } else { now };
            self.before_trap(task, site, &words::opening(kind, deadline, now));
        }
    }

    /// Calls the hook for a trap that is about to be dispatched, and interrupts the task if the
    /// hook asks for it.
    #[cold]
    pub(crate) fn before_trap(&mut self, task: TaskIndex, site: Site, op: &Op<'_>) {
        let Some(what) = self.hook.ask(&self.sched, task, site, op) else { return };
        self.sched.now = self.sched.machine.now();
        let cause = self.sched.log.cause;
        match what {
            Injected::Cancellation => self.cancel_now(task, "injected"),
            Injected::Timeout => self.time_out(task),
        }
        self.sched.log.cause = cause;
    }

    /// Opens a scope around the whole task, and fires its deadline.
    fn time_out(&mut self, task: TaskIndex) {
        let site = self.sched.tasks.site(task);
        self.sched.shared.scopes.set(self.sched.shared.scopes.get() + 1);
        let number = self.sched.shared.scopes.get();
        let kind = ScopeKind::Timeout;
        let scope = self.sched.gate.records().open_around(task, kind, number, site);
        let (timer, until) = (Timer::Scope(number), self.sched.now);
        let armed =
            emit_for!(self.sched, KERNEL, Event::Arm { timer, until, phase: "".into(), at: None });
        self.sched.log_fire(timer, until, armed);
        self.sched.gate.records().scopes[scope.index].deadline = until;
        self.fire(scope);
    }
}
