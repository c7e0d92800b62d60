//! Interrupts: who gets one when a deadline fires or a task is cancelled, and what stays pending.

use traps::gate::Completion;
use traps::protocol::{Failure, ROOT};
use traps::{Interrupt, Kind, TaskId, Time};

use crate::emit::{emit, quietly};
use crate::kernel::Kernel;
use crate::log;
use crate::longrun::Came;
use crate::machine::Machine;
use crate::pending::{Pending, Source};
use crate::scope::Timing;
use crate::task::{Cancellation, News, State, Unread};
use crate::trace::{Effect, Event, Outcome, Seq, WakeOp};
use crate::waits::Over;

impl<M: Machine> Kernel<M> {
    /// The interrupt of `source` as a trap filed in `from` sees it.
    pub(crate) fn interrupt(&self, task: u32, source: Source, from: u32) -> Interrupt {
        let position = self.scopes.timeout_at(from);
        let position = self.scopes.name_of(&self.tasks, task, position);
        let delivered_in = self.scopes.name_of(&self.tasks, task, from);
        match source {
            Source::Cancel => {
                let cancel = self.tasks.get(task).cancel().expect("it was cancelled");
                let (by, reason) = (cancel.by, cancel.reason);
                let root = self.tasks.name_of(task).root();
                Interrupt::cancelled(root, position, delivered_in, self.log.now, by, reason)
            }
            Source::Scope(index) => {
                let scope = self.scopes.get(index);
                let bare = scope.timing == Timing::Bare;
                let nearest = self.scopes.limit_at(from, &self.timers);
                let nearest = nearest == if bare { ROOT } else { index };
                let kind = if nearest { Kind::TaskTimeout } else { Kind::TimeoutCancellation };
                let reading = scope.fired().unwrap_or(self.log.now);
                let name = self.scopes.name_of(&self.tasks, task, index);
                Interrupt::timeout(
                    kind,
                    name,
                    position,
                    delivered_in,
                    scope.deadline,
                    reading,
                    // A guard names its own place on the way out; until then its `arm` line tells.
                    Some(scope.site).filter(|_| scope.timing == Timing::Own),
                )
            }
        }
    }

    fn deliveries(&mut self, task: u32, source: Source) -> &mut u32 {
        match source {
            Source::Cancel => {
                let cancel = self.tasks.get_mut(task).cancel_mut();
                &mut cancel.expect("a cancelled task has a cancellation").delivered
            }
            Source::Scope(index) => &mut self.scopes.get_mut(index).delivered,
        }
    }

    pub(crate) fn count_delivery(&mut self, task: u32, source: Source) {
        *self.deliveries(task, source) += 1;
        if self.tasks.get(task).pending > 0 {
            self.scopes.hear(task, source);
        }
    }

    /// Takes a delivery back that nobody read; true if nobody else has the interrupt either.
    pub(crate) fn uncount_delivery(&mut self, task: u32, source: Source) -> bool {
        let deliveries = self.deliveries(task, source);
        *deliveries = deliveries.saturating_sub(1);
        *deliveries == 0
    }

    /// The deadline of a scope has passed, or the grace of a shield.
    pub(crate) fn fire_scope(&mut self, index: u32, deadline: Time) {
        if self.scopes.holds(index) {
            return self.lapse(index, deadline);
        }
        let now = self.log.now;
        let scope = self.scopes.get_mut(index);
        scope.fire(now);
        let task = scope.task;
        let seq = self.emit_fire(index, deadline);
        self.scopes.get_mut(index).seq = seq;
        self.tasks.get_mut(task).troubled = true;
        let source = Source::Scope(index);
        self.interrupt_scope(task, source, self.scopes.origin(source), seq);
    }

    /// An interrupt comes to all that is in `from`: the scope that fired, or a shield that lapsed.
    pub(crate) fn interrupt_scope(&mut self, task: u32, source: Source, from: u32, cause: Seq) {
        let before = self.tasks.get(task);
        let pending_before = before.pending;
        let winner = (before.state == State::Ready).then(|| {
            let cancelled = before.cancel().is_some_and(|c| c.delivered > 0);
            match (before.interrupted, cancelled) {
                (true, true) => "cancel",
                (true, false) => "timeout",
                (false, _) => "value",
            }
        });
        let mut hit = self.spread(task, source, from, cause);
        match source {
            Source::Cancel => {
                hit += self.replace_timeouts(task, from);
                self.wake_cancelled(task, hit, cause);
            }
            Source::Scope(_) if hit == 0 => self.hit_bare_wait(task),
            Source::Scope(_) => {}
        }
        let after = self.tasks.get(task);
        let woken = hit == 0 && winner.is_none() && after.state == State::Ready;
        // Of a cancellation that has ended a trap, its `deliver` or `race` line tells.
        let told = woken || hit > 0 && source == Source::Cancel;
        if after.pending > pending_before && !told {
            self.tell_of_pending(task, source, from, winner);
        }
        self.start_graces(task);
    }

    /// Says why an interrupt has not ended a trap in every branch: something else came first in
    /// this turn, or there is no trap for it to end.
    fn tell_of_pending(
        &mut self,
        task: u32,
        source: Source,
        from: u32,
        winner: Option<&'static str>,
    ) {
        let scope = if from == ROOT { 0 } else { self.scopes.get(from).serial.get() };
        let shields = self.scopes.shields(&self.tasks, task);
        let shielded = shields.into_iter().any(|inner| self.scopes.is_within(from, inner));
        let loser = if source == Source::Cancel { "cancel" } else { "timeout" };
        // A timeout in another branch is no rival of a cancellation.
        match winner.filter(|winner| !shielded && (loser == "timeout" || *winner == "value")) {
            Some(winner) => {
                let (winner, loser) = (winner.into(), loser.into());
                emit!(self, task, Event::Race { winner, loser, scope });
            }
            None => {
                let outcome = log::interrupt(&self.interrupt(task, source, from));
                emit!(self, task, Event::Cleanup { scope, outcome });
            }
        }
    }

    /// The `cancel` or `fire` line behind an interrupt.
    pub(crate) fn behind(&self, task: u32, source: Source) -> Seq {
        match source {
            Source::Cancel => self.tasks.get(task).cancel().map_or(0, |cancel| cancel.seq),
            Source::Scope(index) => self.scopes.get(index).seq,
        }
    }

    /// A ticket came into another task or scope: what is pending there reaches it.
    pub(crate) fn deliver_pending(&mut self, ticket: u32) {
        let Some(entry) = self.waits.get(ticket) else { return };
        let task = entry.task;
        let at = self.scope_at(entry);
        // One whose future is gone has nothing to hear.
        if self.tasks.get(task).pending == 0 || self.gate.is_withdrawn(ticket, self.epoch) {
            return;
        }
        let Some(source) = self.scopes.take_pending(&mut self.tasks, task, at) else { return };
        let cause = self.behind(task, source);
        if !self.deliver(ticket, source, at, cause) {
            self.scopes.pend(&mut self.tasks, Pending::new(task, at, source));
        }
    }

    /// Delivers an interrupt to every trap that it reaches in `from`; in a branch that is in no
    /// trap, and at a shield, it is pending. Gives how many traps it ended.
    fn spread(&mut self, task: u32, source: Source, from: u32, cause: Seq) -> usize {
        let branches = self.scopes.branches(&self.tasks, task, from, &self.timers);
        let mut hit = 0;
        let mut reached = Vec::new();
        for ticket in self.waits.of(&self.tasks, task) {
            let Some(entry) = self.waits.get(ticket) else { continue };
            let scope = self.scope_at(entry);
            if self.scopes.reaches(from, scope) && self.deliver(ticket, source, scope, cause) {
                reached.push(scope);
                hit += 1;
            }
        }
        // A task may have thousands of branches.
        reached.sort_unstable();
        for at in branches {
            if reached.binary_search(&at).is_err() {
                let mut pending = Pending::new(task, at, source);
                // Neither here nor, where it lapses with a shield, outside of that.
                pending.unheard = *self.deliveries(task, source) == 0;
                self.scopes.pend(&mut self.tasks, pending);
            }
        }
        for at in self.scopes.shields_met(&self.tasks, task, from) {
            self.scopes.pend(&mut self.tasks, Pending::new(task, at, source));
        }
        hit
    }

    /// Ends the wait of a ticket with an interrupt. False if its future was gone.
    fn deliver(&mut self, index: u32, source: Source, scope: u32, cause: Seq) -> bool {
        let Some(entry) = self.waits.remove(&mut self.tasks, index) else { return false };
        self.undo(index, &entry);
        let over = Over::of(index, &entry);
        // Before it is read, perhaps in the call of a waker.
        let ticket = self.gate.ticket_at(index, self.epoch);
        let interrupt = self.interrupt(entry.task, source, scope);
        let within = interrupt.delivered_in();
        let outcome = self.log.is_listening().then(|| log::interrupt(&interrupt));
        match self.gate.complete(index, self.epoch, Err(Failure::Interrupt(interrupt))) {
            Completion::Ready(waker) => {
                let number = entry.number;
                let shown = outcome.clone().unwrap_or(Outcome::Ok);
                let event = Event::Deliver { ticket: number, outcome: shown, cause };
                let seq = emit!(self, entry.task, event);
                if let Some(outcome) = outcome {
                    self.note_answer(entry.task, number, outcome);
                }
                self.count_delivery(entry.task, source);
                let news = &mut self.tasks.get_mut(entry.task).rare().news;
                news.delivered.extend(ticket.map(|ticket| Unread {
                    ticket,
                    number,
                    source,
                    within,
                }));
                let came = self.waited(&entry);
                self.make_ready(entry.task, seq, came);
                // One that runs reads it in this run.
                let task = self.tasks.get_mut(entry.task);
                task.interrupted |= task.state == State::Ready;
                if let Some(waker) = waker {
                    quietly(|| waker.wake());
                }
                true
            }
            Completion::Withdrawn(result) => {
                self.drop_unheard(over, result);
                false
            }
        }
    }

    /// Cancels a task: once in its life, and before any timeout.
    pub(crate) fn cancel_task(
        &mut self,
        index: u32,
        by: Option<TaskId>,
        reason: &'static str,
        cause: Seq,
    ) {
        let task = self.tasks.get_mut(index);
        let by_number = by.map(|task| task.0);
        let event = |effect| Event::Cancel { by: by_number, reason: reason.into(), cause, effect };
        if task.is_ended() {
            emit!(self, index, event(Effect::Ended));
            return;
        }
        if task.cancel().is_some() {
            emit!(self, index, event(Effect::Again));
            return;
        }
        task.rare().cancel = Some(Cancellation { by, reason, delivered: 0, seq: 0 });
        let has_traps = self.can_be_hit(index);
        let effect = if has_traps { Effect::Delivered } else { Effect::Pending };
        let seq = emit!(self, index, event(effect));
        self.tasks.get_mut(index).cancel_mut().expect("set above").seq = seq;
        let hit =
            self.spread(index, Source::Cancel, ROOT, seq) + self.replace_timeouts(index, ROOT);
        self.wake_cancelled(index, hit, seq);
        self.start_graces(index);
    }

    /// A cancelled task that is parked on bare wakers may look at itself once; the grace of a
    /// shutdown ends it else.
    fn wake_cancelled(&mut self, index: u32, hit: usize, cause: Seq) {
        let task = self.tasks.get(index);
        if hit == 0 && task.state == State::Parked && task.waits == 0 {
            let op = WakeOp::Scope { scope: 0 };
            let seq = emit!(self, index, Event::Wake { op, ticket: None, cause });
            self.make_ready(index, seq, Came::Scope(0));
        }
    }

    /// Whether a cancellation finds a trap to end, or an undelivered timeout to replace.
    fn can_be_hit(&self, index: u32) -> bool {
        let reached = self.waits.of(&self.tasks, index).into_iter().any(|ticket| {
            let entry = self.waits.get(ticket).expect("a list holds parked tickets");
            let scope = self.scope_at(entry);
            // Its future may be gone, in this very poll.
            self.scopes.reaches(ROOT, scope) && !self.gate.is_withdrawn(ticket, self.epoch)
        });
        let timeout =
            |unread: &Unread| unread.source != Source::Cancel && self.gate.has(unread.ticket);
        let news = self.tasks.get(index).news();
        reached || news.is_some_and(|news| news.delivered.iter().any(timeout))
    }

    /// A timeout that was delivered in `from` and not read yet gives way to the cancellation, and
    /// is pending again.
    fn replace_timeouts(&mut self, task: u32, from: u32) -> usize {
        let mut replaced = 0;
        if self.tasks.get(task).news().is_none_or(|news| news.delivered.is_empty()) {
            return 0;
        }
        let mut news = std::mem::take(&mut self.tasks.get_mut(task).rare().news);
        let mut unread = std::mem::take(&mut news.delivered);
        for unread in &mut unread {
            let Unread { ticket, number, source, within } = *unread;
            let Source::Scope(timeout) = source else { continue };
            // The scope of the trap may have closed since.
            let scope = self.scopes.find(within).unwrap_or_else(|| self.scopes.origin(source));
            if !self.scopes.reaches(from, scope) {
                continue;
            }
            let interrupt = self.interrupt(task, Source::Cancel, scope);
            let failure = Err(Failure::Interrupt(interrupt));
            if self.gate.replace(ticket, failure).is_ok() {
                replaced += 1;
                let loser = self.scopes.get(timeout).shown();
                emit!(
                    self,
                    task,
                    Event::Race { winner: "cancel".into(), loser: "timeout".into(), scope: loser }
                );
                unread.source = Source::Cancel;
                self.count_delivery(task, Source::Cancel);
                self.uncount_delivery(task, source);
                self.scopes.drop_pending(&mut self.tasks, task, |p| {
                    p.at == scope && p.source == Source::Cancel
                });
                // Its future may be polled in another task by now, which this is no matter of.
                let at = if self.is_in(scope, task) { scope } else { self.scopes.origin(source) };
                // That of a guard which was armed anew is forgotten.
                if self.scopes.get(timeout).fired().is_some() {
                    self.scopes.pend(&mut self.tasks, Pending::new(task, at, source));
                }
                self.relabel_answer(&mut news, number, task, scope);
            }
        }
        news.delivered = unread;
        self.tasks.get_mut(task).rare().news = news;
        replaced
    }

    /// The `run` line to come shows the cancellation, not the timeout that it replaced.
    fn relabel_answer(&self, news: &mut News, number: u64, task: u32, scope: u32) {
        if let Some(found) = news.answered.iter_mut().find(|found| found.ticket == number) {
            let shown = log::interrupt(&self.interrupt(task, Source::Cancel, scope));
            found.outcome = log::without_place(shown);
        }
    }

    /// Whether a scope is one of that task; its root is.
    pub(crate) fn is_in(&self, scope: u32, task: u32) -> bool {
        scope == ROOT || self.scopes.get(scope).task == task
    }
}
