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
    /// The parked waits that a source reaches, in the order of their filing, and where each hears
    /// of it.
    pub(crate) fn reached(&self, task: u32, source: Source) -> Vec<(Ticket, u32)> {
        let reached = self.tasks[task].parked().filter_map(|wait| {
            let key = self.hears_now(task, source, wait.scope)?;
            Some((Ticket { task, serial: wait.serial }, key))
        });
        let mut reached: Vec<_> = reached.collect();
        reached.sort_unstable_by_key(|(ticket, _)| ticket.serial);
        reached
    }

    /// An interrupt comes to all that is inside its source.
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
            self.tell_pending(task, source, winner);
        }
    }

    /// What a task that is ready will run for.
    fn winner(&self, task: u32) -> &'static str {
        let record = &self.tasks[task];
        let interrupts = record.waits().filter_map(|wait| record.interrupt(wait));
        interrupts
            .map(Interrupt::is_cancelled)
            .max()
            .map_or("value", |cancelled| if cancelled { "cancel" } else { "timeout" })
    }

    /// Whether a task waits for foreign wakers alone inside `source`: it is parked in no trap
    /// there, and in no shield.
    fn waits_for_a_waker(&self, task: u32, source: Source) -> bool {
        let is_inside = |scope: u32| self.scopes.is_within(source.root(), scope);
        let mut shields =
            self.scopes.of(&self.tasks, task).filter(|(_, it)| it.kind == ScopeKind::Shield);
        !self.tasks[task].parked().any(|wait| is_inside(wait.scope))
            && !shields.any(|(index, _)| is_inside(index))
    }

    /// Says why a timeout has ended no trap: something else came first in this turn, or there is no
    /// trap for it to end. (Of a cancellation its own line says so.)
    fn tell_pending(&mut self, task: u32, source: Source, winner: Option<&'static str>) {
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
            fired.heard.push(key);
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

    /// A timeout that was delivered and not read gives way to the cancellation, and is pending
    /// again.
    fn replace_timeouts(&mut self, task: u32) -> usize {
        if !self.unread_timeouts(task) {
            return 0;
        }
        let waits: Vec<Wait> = self.tasks[task].waits().copied().collect();
        let mut replaced = 0;
        for Wait { serial, scope, .. } in waits {
            let Some(key) = self.hears_now(task, Source::Cancel, scope) else { continue };
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
            self.unhear(task, &timeout);
            self.fired_mut(task, Source::Cancel).expect("it was cancelled").heard.push(key);
            if let Some(outcome) = outcome {
                self.note_answer(Ticket { task, serial }, outcome);
            }
        }
        replaced
    }

    /// Takes a delivery back. False if its source has ended since.
    fn unhear(&mut self, task: u32, interrupt: &Interrupt) -> bool {
        let Delivery { source, heard_in, .. } = *interrupt.delivery();
        let source = match source.index {
            ROOT => Source::Cancel,
            NO_SCOPE => Source::Deadline(source.number as u32),
            _ => match self.scopes.find(source) {
                Some(index) => Source::Scope(index),
                None => return false,
            },
        };
        let Some(fired) = self.fired_mut(task, source) else { return false };
        let place = fired.heard.iter().position(|key| *key == heard_in);
        place.map(|place| fired.heard.swap_remove(place)).is_some()
    }

    /// An interrupt was delivered and its future was dropped unread: it is pending again.
    pub(crate) fn unread(&mut self, task: u32, interrupt: &Interrupt) {
        if self.unhear(task, interrupt) {
            let scope = interrupt.scope().unwrap_or(0);
            let outcome = log::interrupt(interrupt);
            emit!(self, task, Event::Cleanup { scope, outcome });
        }
    }

    /// How many sources of interrupts have fired that nobody has heard of.
    pub(crate) fn pending_sources(&self) -> usize {
        let scopes = self.scopes.iter().filter_map(|scope| scope.fired.as_deref());
        let rares = self.tasks.iter().filter(|task| !task.is_ended());
        let rares = rares.filter_map(|task| task.rare.as_deref());
        let of_tasks = rares.flat_map(|rare| {
            let cancel = rare.cancel.as_ref().map(|cancel| &cancel.fired);
            cancel.into_iter().chain(rare.deadlines.iter().map(|deadline| &deadline.fired))
        });
        scopes.chain(of_tasks).filter(|fired| fired.heard.is_empty()).count()
    }

    /// A timeout ends: enclosing deadlines that have passed are pending again in its branch.
    pub(crate) fn renew_around(&mut self, task: u32, parent: u32) {
        let around = self.scopes.around(parent);
        let around = around.take_while(|(_, scope)| scope.kind != ScopeKind::Shield);
        let fired = around.filter(|(_, scope)| scope.fired.is_some()).map(|(index, _)| index);
        for index in fired.collect::<Vec<u32>>() {
            let source = Source::Scope(index);
            if let Some(key) = self.hears_now(task, source, parent)
                && let Some(fired) = self.fired_mut(task, source)
            {
                fired.heard.retain(|heard| *heard != key);
            }
        }
    }

    /// Lets the timeouts of a task that are pending end the foreign waits inside them, in the poll
    /// to come.
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

    /// Whether nobody has heard of a scope that fired, or an open branch has not.
    fn is_pending_somewhere(&self, task: u32, index: u32, fired: &Fired) -> bool {
        let branches = self.scopes.of(&self.tasks, task);
        let mut branches = branches.filter(|(_, scope)| scope.kind == ScopeKind::Branch);
        let hears = |from| self.scopes.hears((fired, &fired.heard), index, from, false).is_some();
        fired.heard.is_empty() || branches.any(|(branch, _)| hears(branch))
    }
}
