//! Delivery: how an interrupt reaches the waits inside its source.

use traps::protocol::{Owned, ROOT, ScopeKind, Ticket};
use traps::{Delivery, Interrupt};

use crate::interrupts::{Fired, NO_SCOPE, Source};
use crate::kernel::Kernel;
use crate::log::{self, emit};
use crate::machine::Machine;
use crate::task::State;
use crate::trace::{Event, Seq, WakeOp};
use crate::waits::{On, Wait};

impl<M: Machine> Kernel<M> {
    /// The parked waits that a source reaches, in the order in which they were filed, and where
    /// each delivery counts (its branch, or the root of the source).
    pub(crate) fn reached(&self, task: u32, source: Source) -> Vec<(Ticket, u32)> {
        let reached = self.tasks[task].parked().filter_map(|wait| {
            let key = self.delivery_key_now(task, source, wait.scope)?;
            Some((Ticket { task, serial: wait.serial }, key))
        });
        let mut reached: Vec<_> = reached.collect();
        reached.sort_unstable_by_key(|(ticket, _)| ticket.serial);
        reached
    }

    /// Delivers an interrupt to all waits inside its source.
    pub(crate) fn spread(&mut self, task: u32, source: Source, cause: Seq) {
        let was_ready = self.tasks[task].state == State::Ready;
        let winner = was_ready.then(|| self.winner(task));
        let reached = self.reached(task, source);
        let mut hit = reached.len();
        for (ticket, key) in reached {
            self.deliver(ticket, source, key, cause);
        }
        if source == Source::Cancel {
            hit += self.replace_timeouts(task);
        }
        if hit == 0
            && self.tasks[task].state == State::Parked
            && self.waits_for_a_waker(task, source)
        {
            let scope = match source {
                Source::Scope(index) => self.scopes[index].number,
                Source::Cancel | Source::Deadline(_) => 0,
            };
            let op = WakeOp::Scope { scope };
            let seq = emit!(self, task, Event::Wake { op, ticket: None, cause });
            self.make_ready(task, seq);
        } else if hit == 0 {
            self.log_pending(task, source, winner);
        }
    }

    /// What a ready task will get in its next run.
    fn winner(&self, task: u32) -> &'static str {
        let record = &self.tasks[task];
        let interrupts = record.waits().filter_map(|wait| record.interrupt(wait));
        interrupts
            .map(Interrupt::is_cancelled)
            .max()
            .map_or("value", |cancelled| if cancelled { "cancel" } else { "timeout" })
    }

    /// Whether a task waits only for foreign wakers inside `source`: it is parked in no trap and in
    /// no shield there.
    fn waits_for_a_waker(&self, task: u32, source: Source) -> bool {
        let is_inside = |scope: u32| self.scopes.is_within(source.root(), scope);
        let mut shields =
            self.scopes.of(&self.tasks, task).filter(|(_, it)| it.kind == ScopeKind::Shield);
        !self.tasks[task].parked().any(|wait| is_inside(wait.scope))
            && !shields.any(|(index, _)| is_inside(index))
    }

    /// Logs why a timeout has ended no trap: something else came first, or there was no trap to
    /// end. (A cancellation has its own line, which says so.)
    fn log_pending(&mut self, task: u32, source: Source, winner: Option<&'static str>) {
        let scope = match source {
            Source::Scope(index) => self.scopes[index].number,
            Source::Deadline(_) => 0,
            Source::Cancel => return,
        };
        emit!(self, task, {
            match winner {
                Some(winner) => {
                    Event::Race { winner: winner.into(), loser: "timeout".into(), scope }
                }
                None => {
                    let from = source.root();
                    let outcome = log::interrupt(&self.interrupt(task, source, from, from));
                    Event::Cleanup { scope, outcome }
                }
            }
        });
    }

    /// Ends a parked wait with an interrupt.
    fn deliver(&mut self, ticket: Ticket, source: Source, key: u32, cause: Seq) {
        let task = ticket.task;
        let Some(wait) = self.tasks[task].wait_mut(ticket.serial) else { return };
        let from = wait.scope;
        let interrupt = self.interrupt(task, source, from, key);
        if let Some(fired) = self.fired_mut(task, source) {
            fired.delivered_to.push(key);
        }
        let outcome = self.log.listening.then(|| log::interrupt(&interrupt));
        let Some(wait) = self.tasks[task].wait_mut(ticket.serial) else { return };
        let was = wait.on;
        self.tasks[task].complete(ticket.serial, On::Interrupted);
        let number = self.log.number_of(&self.tasks[task], ticket.serial).0;
        let seq = emit!(self, task, {
            let outcome = outcome.clone().expect("somebody listens");
            Event::Deliver { ticket: number, outcome, cause }
        });
        if let Some(outcome) = outcome {
            self.note_answer(ticket, outcome);
        }
        if let (On::Io(index, direction), Source::Scope(scope)) = (was, source)
            && matches!(self.scopes[scope].kind, ScopeKind::Guard { .. })
        {
            self.guarded.push((index, direction, task, self.scopes[scope].number));
        }
        self.undo(ticket, was);
        self.tasks[task].own(ticket.serial, Owned::Interrupt(interrupt));
        self.make_ready(task, seq);
        self.call_waker(ticket);
    }

    /// Whether a timeout was delivered to the task and not read.
    pub(crate) fn unread_timeouts(&self, task: u32) -> bool {
        let record = &self.tasks[task];
        let mut interrupts = record.waits().filter_map(|wait| record.interrupt(wait));
        interrupts.any(|interrupt| !interrupt.is_cancelled())
    }

    /// Replaces a timeout that was delivered and not read with the cancellation. The timeout is
    /// pending again.
    fn replace_timeouts(&mut self, task: u32) -> usize {
        if !self.unread_timeouts(task) {
            return 0;
        }
        let waits: Vec<Wait> = self.tasks[task].waits().copied().collect();
        let mut replaced = 0;
        for Wait { serial, scope, .. } in waits {
            let Some(key) = self.delivery_key_now(task, Source::Cancel, scope) else { continue };
            let timeout = match self.tasks[task].owned(serial) {
                Some(Owned::Interrupt(timeout)) if !timeout.is_cancelled() => timeout.clone(),
                _ => continue,
            };
            let cancelled = self.interrupt(task, Source::Cancel, scope, key);
            let outcome = self.log.listening.then(|| log::interrupt(&cancelled));
            self.tasks[task].own(serial, Owned::Interrupt(cancelled));
            replaced += 1;
            let (winner, loser) = ("cancel".into(), "timeout".into());
            let lost = timeout.scope().unwrap_or(0);
            emit!(self, task, Event::Race { winner, loser, scope: lost });
            self.take_back_delivery(task, &timeout);
            self.fired_mut(task, Source::Cancel).expect("it was cancelled").delivered_to.push(key);
            if let Some(outcome) = outcome {
                self.note_answer(Ticket { task, serial }, outcome);
            }
        }
        replaced
    }

    /// Undoes a delivery. False if its source has ended since.
    fn take_back_delivery(&mut self, task: u32, interrupt: &Interrupt) -> bool {
        let Delivery { source, delivered_in, .. } = *interrupt.delivery();
        let source = match source.index {
            ROOT => Source::Cancel,
            NO_SCOPE => Source::Deadline(source.number as u32),
            _ => match self.scopes.find(source) {
                Some(index) => Source::Scope(index),
                None => return false,
            },
        };
        let Some(fired) = self.fired_mut(task, source) else { return false };
        let place = fired.delivered_to.iter().position(|key| *key == delivered_in);
        place.map(|place| fired.delivered_to.swap_remove(place)).is_some()
    }

    /// An interrupt was delivered and its future was dropped unread: it is pending again.
    pub(crate) fn unread(&mut self, task: u32, interrupt: &Interrupt) {
        if self.take_back_delivery(task, interrupt) {
            let scope = interrupt.scope().unwrap_or(0);
            let outcome = log::interrupt(interrupt);
            emit!(self, task, Event::Cleanup { scope, outcome });
        }
    }

    /// How many sources of interrupts have fired and were delivered nowhere.
    pub(crate) fn pending_sources(&self) -> usize {
        let scopes = self.scopes.iter().filter_map(|scope| scope.fired.as_deref());
        let rares = self.tasks.iter().filter(|task| !task.is_ended());
        let rares = rares.filter_map(|task| task.rare.as_deref());
        let of_tasks = rares.flat_map(|rare| {
            let cancel = rare.cancel.as_ref().map(|cancel| &cancel.fired);
            cancel.into_iter().chain(rare.deadlines.iter().map(|deadline| &deadline.fired))
        });
        scopes.chain(of_tasks).filter(|fired| fired.delivered_to.is_empty()).count()
    }

    /// After a timeout has ended: enclosing deadlines that have passed are pending again in its
    /// branch.
    pub(crate) fn make_pending_again(&mut self, task: u32, parent: u32) {
        let around = self.scopes.around(parent);
        let around = around.take_while(|(_, scope)| scope.kind != ScopeKind::Shield);
        let fired = around.filter(|(_, scope)| scope.fired.is_some()).map(|(index, _)| index);
        for index in fired.collect::<Vec<u32>>() {
            let source = Source::Scope(index);
            if let Some(key) = self.delivery_key_now(task, source, parent)
                && let Some(fired) = self.fired_mut(task, source)
            {
                fired.delivered_to.retain(|it| *it != key);
            }
        }
    }

    /// Lets pending timeouts of a task end the foreign waits inside them during the next poll.
    #[cold]
    pub(crate) fn offer_timeouts(&self, task: u32) {
        for (index, scope) in self.scopes.of(&self.tasks, task) {
            let source = Source::Scope(index);
            if let Some(fired) = &scope.fired
                && self.is_pending_somewhere(task, index, fired)
                && self.waits_for_a_waker(task, source)
            {
                let name = self.scopes.name_of(&self.tasks, task, index);
                self.gate.offer(name, self.interrupt(task, source, index, index));
            }
        }
    }

    /// Whether a scope that fired was delivered nowhere yet, or not to some open branch.
    fn is_pending_somewhere(&self, task: u32, index: u32, fired: &Fired) -> bool {
        let branches = self.scopes.of(&self.tasks, task);
        let mut branches = branches.filter(|(_, scope)| scope.kind == ScopeKind::Branch);
        let reaches = |from| {
            self.scopes.delivery_key((fired, &fired.delivered_to), index, from, false).is_some()
        };
        fired.delivered_to.is_empty() || branches.any(|(branch, _)| reaches(branch))
    }
}
