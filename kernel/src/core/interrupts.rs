//! Interrupts: which waits a deadline or a cancellation ends, and what stays pending.
//!
//! A source is a scope that fired: a timeout, a connection deadline, or the scope around a task
//! that was cancelled. **A scope that fires is pending at itself and at every branch open inside
//! it. A wait takes it at the first such place on its way out, unless a shield is on that way.
//! Taking it removes it from the way. Unread, it goes back.** It goes back to the place where it
//! was taken, and to each place further out unless another wait inside that has it. When a timeout
//! closes, enclosing deadlines that have passed are pending again. Of several sources a
//! cancellation comes first, then the one that fired first.
//!
//! The tree is in the crate `traps`, `core/tree.rs`; this rule is in `core/pending.rs` there.

use traps::core::names::{ScopeId, TaskRef, Ticket};
use traps::core::protocol::{Reply, ScopeKind, Trap};
use traps::core::records::{Fired, On, WaitState};
use traps::{Delivery, Interrupt, TaskId};

use super::Core;
use super::tasks::State;
use super::waits::call;
use crate::log::{self, emit};
use crate::machine::Machine;
use crate::trace::{Effect, Event, Seq, WakeOp};

impl<M: Machine> Core<M> {
    /// Takes the interrupt that is pending for a trap, if that can be interrupted, with the line
    /// of its cause.
    #[inline]
    pub(super) fn pending_for(&mut self, ticket: Ticket, trap: &Trap) -> Option<(Interrupt, Seq)> {
        let mut records = self.gate.records();
        if records.fired == 0 {
            return None;
        }
        let can_be = match trap {
            Trap::Clock => false,
            // A join of a task that has ended does not block.
            Trap::Wait { queue, .. } => !queue.over.get(),
            _ => true,
        };
        let from = records.waits.get(ticket).filter(|_| can_be)?.scope;
        records.take_interrupt(from, self.now)
    }

    /// The interrupt that a shield holds back from a trap.
    pub(super) fn held(&self, ticket: Ticket) -> Option<Interrupt> {
        let records = self.gate.records();
        let from = records.waits.get(ticket)?.scope;
        let source = records.pending(from, true)?;
        let place = records.place(source, from, true)?;
        Some(records.interrupt(source, place, from, self.now))
    }

    /// A scope fires.
    pub(crate) fn fire(&mut self, source: ScopeId, fired: Fired) {
        let mut records = self.gate.records();
        let Some(scope) = records.scopes.get(source) else { return };
        let task = records.scopes[scope.root].task;
        let Some(was_ready) = self.tasks.state(task).map(|state| state == State::Ready) else {
            return;
        };
        let line = fired.line;
        let reached = records.fire(source, fired);
        drop(records);
        let winner = (was_ready && self.log.listening).then(|| self.winner(task));
        self.spread(source, task, &reached, line);
        if reached.is_empty() && !self.wake_bare(source, task, line) {
            self.log_pending(source, task, winner);
        }
    }

    fn spread(&mut self, source: ScopeId, task: u32, reached: &[(Ticket, ScopeId)], cause: Seq) {
        for (ticket, place) in reached {
            self.deliver(source, task, *ticket, *place, cause);
        }
    }

    /// Ends a parked wait with an interrupt.
    fn deliver(&mut self, source: ScopeId, task: u32, ticket: Ticket, place: ScopeId, cause: Seq) {
        let mut records = self.gate.records();
        let Some(from) = records.waits.get(ticket).map(|wait| wait.scope) else { return };
        // The waker of an earlier wait may have dropped the scope.
        if records.scopes.get(source).is_none() {
            return;
        }
        let interrupt = records.interrupt(source, place, from, self.now);
        records.take_pending(source, from);
        drop(records);
        let shown = self.log.listening.then(|| log::interrupt(&interrupt));
        let reply = Reply::Interrupt(interrupt);
        let outcome = self.log.listening.then(|| log::outcome(&reply));
        let Some((_, on, waker)) = self.settle(ticket, reply, |_| "interrupt") else { return };
        // An observer of the next line may panic.
        if !matches!(on, On::Io(..)) {
            self.undo(ticket, &on);
        }
        let mut seq = 0;
        if let (Some(outcome), Some(shown)) = (outcome, shown) {
            let ticket = self.note_answer(task, ticket, outcome);
            seq = emit!(self, task, Event::Deliver { ticket, outcome: shown, cause });
        }
        if let On::Io(handle, direction) = on {
            let records = self.gate.records();
            let scope = &records.scopes[source.index];
            if let ScopeKind::Guard { .. } = scope.kind {
                self.guarded.push((handle, direction, task, scope.number));
            }
            drop(records);
            self.undo(ticket, &on);
        }
        drop(on);
        self.make_ready(task, seq);
        call(waker);
    }

    /// Wakes a task that waits for foreign wakers alone inside `source`. False if it does not.
    fn wake_bare(&mut self, source: ScopeId, task: u32, cause: Seq) -> bool {
        let records = self.gate.records();
        let is_bare = self.tasks[task].state == State::Parked && records.is_bare(source.index);
        let scope = &records.scopes[source.index];
        let scope = if scope.kind.is_timeout() { scope.number } else { 0 };
        drop(records);
        if is_bare {
            let event = Event::Wake { op: WakeOp::Scope { scope }, ticket: None, cause };
            let seq = emit!(self, task, event);
            self.make_ready(task, seq);
        }
        is_bare
    }

    /// The interrupts that a task has not read, and their waits.
    fn unread(&self, task: u32) -> Vec<(Ticket, Interrupt)> {
        let records = self.gate.records();
        let waits = records.waits_inside(self.tasks[task].root.index);
        let unread = waits
            .into_iter()
            .filter_map(|ticket| Some((ticket, records.waits[ticket.index].interrupt()?.clone())));
        unread.collect()
    }

    /// What a ready task will get in its next run.
    fn winner(&self, task: u32) -> &'static str {
        let unread = self.unread(task);
        let cancelled = unread.iter().map(|(_, interrupt)| interrupt.is_cancelled()).max();
        cancelled.map_or("value", |cancelled| if cancelled { "cancel" } else { "timeout" })
    }

    /// Logs why a timeout has ended no trap: something else came first, or there was no trap to
    /// end. (A cancellation has its own line, which says so.)
    fn log_pending(&mut self, source: ScopeId, task: u32, winner: Option<&'static str>) {
        if !self.log.listening {
            return;
        }
        let records = self.gate.records();
        let scope = &records.scopes[source.index];
        if scope.kind == ScopeKind::Task {
            return;
        }
        let number = if scope.kind.is_timeout() { scope.number } else { 0 };
        let interrupt = records.interrupt(source, source, source.index, self.now);
        drop(records);
        emit!(self, task, {
            match winner {
                Some(winner) => {
                    Event::Race { winner: winner.into(), loser: "timeout".into(), scope: number }
                }
                None => Event::Cleanup { scope: number, outcome: log::interrupt(&interrupt) },
            }
        });
    }

    // ---- Cancellation ----------------------------------------------------------------------

    /// Cancels a task: the scope around it fires. A task is cancelled once, and a cancellation
    /// comes before any timeout.
    pub(crate) fn cancel(
        &mut self,
        index: u32,
        by: Option<TaskId>,
        reason: &'static str,
        cause: Seq,
    ) {
        let by_number = by.map(|task| task.0);
        let event = |effect| Event::Cancel { by: by_number, reason: reason.into(), cause, effect };
        if self.is_cancelled(index) {
            emit!(self, index, event(Effect::Again));
            return;
        }
        let root = self.tasks[index].root;
        let timeouts = self.unread(index);
        let fired = Fired { by, reason, ..Fired::default() };
        let reached = self.gate.records().fire(root, fired);
        let timeouts = self.replaceable(root, timeouts);
        let hits = !reached.is_empty() || !timeouts.is_empty();
        let effect = if hits { Effect::Delivered } else { Effect::Pending };
        let seq = emit!(self, index, event(effect));
        if let Some(fired) = self.gate.records().scopes[root.index].fired_mut() {
            fired.line = seq;
        }
        self.spread(root, index, &reached, seq);
        for (ticket, timeout, place) in timeouts {
            self.replace(root, index, ticket, &timeout, place);
        }
        if !hits {
            self.wake_bare(root, index, seq);
        }
    }

    /// Whether a task was cancelled.
    pub(crate) fn is_cancelled(&self, index: u32) -> bool {
        self.gate.records().scopes[self.tasks[index].root.index].fired().is_some()
    }

    /// The unread timeouts that a cancellation takes the place of, and where it is pending for
    /// each.
    fn replaceable(
        &self,
        root: TaskRef,
        unread: Vec<(Ticket, Interrupt)>,
    ) -> Vec<(Ticket, Interrupt, ScopeId)> {
        let records = self.gate.records();
        let timeouts = unread.into_iter().filter(|(_, interrupt)| !interrupt.is_cancelled());
        let timeouts = timeouts.filter_map(|(ticket, timeout)| {
            let from = records.waits.get(ticket)?.scope;
            Some((ticket, timeout, records.place(root, from, false)?))
        });
        timeouts.collect()
    }

    /// Replaces a timeout that was delivered and not read with the cancellation. The timeout is
    /// pending again.
    fn replace(
        &mut self,
        root: TaskRef,
        task: u32,
        ticket: Ticket,
        timeout: &Interrupt,
        place: ScopeId,
    ) {
        let mut records = self.gate.records();
        let Some(from) = records.waits.get(ticket).map(|wait| wait.scope) else { return };
        let cancelled = records.interrupt(root, place, from, self.now);
        let outcome = log::without_place(log::interrupt(&cancelled));
        records.take_pending(root, from);
        let Delivery { source, place, order, .. } = *timeout.delivery();
        records.put_back(source, place, order);
        let reply = WaitState::Done(Reply::Interrupt(cancelled));
        let wait = records.waits.get_mut(ticket).expect("found above");
        let before = std::mem::replace(&mut wait.state, reply);
        let (number, _) = self.log.number_of(ticket);
        drop(records);
        drop(before);
        let scope = timeout.scope().unwrap_or(0);
        emit!(self, task, {
            Event::Race { winner: "cancel".into(), loser: "timeout".into(), scope }
        });
        let rare = self.tasks[task].rare.as_mut();
        let answered = rare.into_iter().flat_map(|rare| &mut rare.answered);
        answered.filter(|it| it.ticket == number).for_each(|it| it.outcome = outcome.clone());
    }

    /// A task has ended with an interrupt that it did not read: that is pending again.
    pub(super) fn put_back(&mut self, task: u32, interrupt: &Interrupt) {
        let Delivery { source, place, order, .. } = *interrupt.delivery();
        if self.gate.records().put_back(source, place, order) {
            self.log_put_back(task, interrupt);
        }
    }

    /// Logs that an interrupt is pending again.
    pub(super) fn log_put_back(&mut self, task: u32, interrupt: &Interrupt) {
        let scope = interrupt.scope().unwrap_or(0);
        emit!(self, task, { Event::Cleanup { scope, outcome: log::interrupt(interrupt) } });
    }
}
