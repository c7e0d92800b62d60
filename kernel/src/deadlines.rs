//! Connection deadlines: how they are made, set and dropped, and what happens when one fires.
//!
//! What a store in the deadline table does alone never comes here.

use std::collections::BTreeMap;

use traps::Time;
use traps::protocol::{DeadlineName, ROOT, ScopeId, ScopeKind, Site};

use crate::emit::{KERNEL, emit, emit_for};
use crate::kernel::Kernel;
use crate::log;
use crate::machine::Machine;
use crate::owner::{Owner, Whose};
use crate::pending::Source;
use crate::scope::Timing;
use crate::timers::{Due, TimerId};
use crate::trace::{Event, Op, Outcome, Seq, Timer};

/// Where in a task a connection deadline is due in this turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiring {
    /// In scopes of it, which say so themselves.
    InScopes,
    /// In the whole of it, and perhaps in scopes too.
    InAll,
}

/// What the kernel keeps of all of them together.
#[derive(Default)]
pub(crate) struct Deadlines {
    /// The `arm` line of each that is set, by slot, and its number; kept while somebody listens.
    lines: BTreeMap<u32, (u32, Seq)>,
}

impl Deadlines {
    /// The line that armed the deadline of that number. Where nobody listened, that of another one,
    /// which had the slot before, may have been left there.
    fn line(&self, slot: u32, number: u32) -> Seq {
        let line = self.lines.get(&slot).filter(|(of, _)| *of == number);
        line.map_or(1, |(_, seq)| *seq)
    }
}

impl<M: Machine> Kernel<M> {
    /// A task has made one: it counts as a trap, with its line.
    pub(crate) fn tell_deadline(&mut self, deadline: DeadlineName, site: Site) {
        let Some(task) = self.acting() else { return };
        self.counts.traps += 1;
        if self.counts.traps >= self.inject.from {
            self.before_trap(task, site, &Op::ConnectionDeadline);
        }
        emit!(self, task, {
            let outcome = Outcome::Deadline(u64::from(deadline.number));
            Event::Trap { op: Op::ConnectionDeadline, outcome, cause: None, at: None }
        });
    }

    /// Arms or disarms one.
    pub(crate) fn set_deadline(
        &mut self,
        deadline: DeadlineName,
        until: Time,
        owner: u32,
        site: Site,
    ) {
        self.timers.table().heed();
        let timer = TimerId(deadline.slot);
        if self.timers.has_fired(timer) {
            self.forget_firing(timer);
            // Without a line: it is not armed.
            self.timers.rearm(timer, Time::NEVER, self.log.now, deadline.number);
        }
        self.move_deadline(deadline, until, Some(site));
        if !self.is_guards(timer) {
            self.timers.set_owner(timer, Owner(owner));
        }
    }

    /// Whether a guard has that connection deadline, perhaps one that does not know its scope yet.
    fn is_guards(&self, timer: TimerId) -> bool {
        let Whose::Guard(index) = self.timers.owner(timer).whose() else { return false };
        let scope = self.scopes.try_get(index);
        scope.is_some_and(|scope| scope.timing == Timing::Guard && scope.timer() == Some(timer))
    }

    /// The outermost guard of one ends: it is disarmed, and its scope is left open but empty.
    pub(crate) fn leave_guard(
        &mut self,
        deadline: DeadlineName,
        scope: Option<ScopeId>,
        owner: u32,
    ) {
        self.timers.table().heed();
        let timer = TimerId(deadline.slot);
        if let Some(index) = scope.and_then(|scope| self.scopes.find(scope)) {
            self.leave_scope(index);
            self.scopes.get_mut(index).reset();
            self.empty_scope(index);
        }
        if !self.timers.has_fired(timer) {
            self.move_deadline(deadline, Time::NEVER, None);
        } else if scope.is_none() {
            // It fired in the whole of the task, and what is left of that is for nobody.
            self.forget_firing(timer);
        }
        self.timers.set_owner(timer, Owner(owner));
    }

    /// One is gone.
    pub(crate) fn drop_deadline(&mut self, deadline: DeadlineName) {
        let timer = TimerId(deadline.slot);
        if self.timers.has_fired(timer) {
            self.forget_firing(timer);
        }
        self.move_deadline(deadline, Time::NEVER, None);
        self.let_go_of(timer);
        self.timers.table().count_gone();
        self.timers.disarm(timer);
    }

    /// The scope of a guard that was leaked outlives its deadline, whose slot is another's soon.
    fn let_go_of(&mut self, timer: TimerId) {
        let Whose::Guard(index) = self.timers.owner(timer).whose() else { return };
        if self.scopes.try_get(index).is_some_and(|scope| scope.timer() == Some(timer)) {
            self.scopes.get_mut(index).set_timer(None);
        }
    }

    /// Whom a connection deadline that is due interrupts: the scope of a guard, or a task. Neither,
    /// if what it was bound to has ended; its place may be another's by now.
    fn bound_to(&self, due: Due) -> Option<(u32, u32)> {
        match due.owner.whose() {
            Whose::Guard(index) => {
                let scope = self.scopes.try_get(index)?;
                let its = scope.timing == Timing::Guard && scope.timer() == Some(TimerId(due.slot));
                its.then_some((scope.task, index))
            }
            Whose::Bare(index) => {
                let task = self.tasks.try_get(index)?;
                let made = self.timers.table().made_so_far();
                let its = may_have_made(task.deadlines_before, due.rank.seq, made);
                (its && !task.is_ended()).then_some((index, ROOT))
            }
            Whose::Sleep(_) | Whose::Scope(_) | Whose::Phase | Whose::Retry => None,
        }
    }

    /// Sets the time, with its line.
    fn move_deadline(&mut self, deadline: DeadlineName, until: Time, site: Option<Site>) {
        let timer = TimerId(deadline.slot);
        let was = self.timers.due_at(timer);
        if until == was && until == Time::NEVER {
            return;
        }
        self.timers.rearm(timer, until, self.log.now, deadline.number);
        let shown = Timer::Deadline(u64::from(deadline.number));
        let event = match until {
            Time::NEVER => Event::Disarm { timer: shown },
            until => Event::Arm { timer: shown, until, at: site.map(log::site) },
        };
        let seq =
            emit_for!(self, self.acting().map_or(KERNEL, |task| self.tasks.label(task)), event);
        if until == Time::NEVER {
            self.deadlines.lines.remove(&deadline.slot);
        } else if self.log.is_listening() {
            self.deadlines.lines.insert(deadline.slot, (deadline.number, seq));
        }
    }

    /// What is left of its last firing ends: it is armed anew, or gone.
    fn forget_firing(&mut self, timer: TimerId) {
        let Whose::Guard(index) = self.timers.owner(timer).whose() else { return };
        let scope = self.scopes.try_get(index).filter(|scope| scope.timer() == Some(timer));
        let Some(scope) = scope else { return };
        let (bare, task) = (scope.timing == Timing::Bare, scope.task);
        self.scopes.get_mut(index).reset();
        self.scopes.drop_pending(&mut self.tasks, task, |p| p.source == Source::Scope(index));
        if bare {
            self.forget_delivered(task, index);
            self.scopes.close(&mut self.tasks, index);
        }
    }

    /// The task ends in which a connection deadline fired.
    pub(crate) fn close_bare(&mut self, index: u32) {
        let slot = self.scopes.get(index).timer().expect("it stands for a connection deadline");
        self.forget_firing(slot);
        self.timers.set_owner(slot, Owner::NOBODY);
    }

    /// Before anything that came in this turn is looked at: marks the tasks whose connection
    /// deadlines are due, since those win against it (X1).
    pub(crate) fn mark_expiring(&mut self) {
        for place in 0..self.scratch.due.len() {
            let due = self.scratch.due[place];
            let Some((task, from)) = self.guarded(due) else { continue };
            let expiring = &mut self.tasks.get_mut(task).expiring;
            if from == ROOT {
                *expiring = Some(Expiring::InAll);
                continue;
            }
            expiring.get_or_insert(Expiring::InScopes);
            let scope = self.scopes.get_mut(from);
            scope.expiring = true;
            if scope.timing == Timing::Guard {
                scope.deadline = due.at;
            }
        }
    }

    /// What a timer that is due guards, if it is a connection deadline or a guard inside one: the
    /// task, and the scope or [`ROOT`].
    fn guarded(&self, due: Due) -> Option<(u32, u32)> {
        match due.owner.whose() {
            Whose::Scope(index) => {
                let scope = self.scopes.try_get(index)?;
                (scope.kind == ScopeKind::Guard).then_some((scope.task, index))
            }
            _ => self.bound_to(due),
        }
    }

    /// All that was due has acted.
    pub(crate) fn forget_due(&mut self) {
        for place in 0..self.scratch.due.len() {
            // One that fired in the whole of its task is a scope of that task now.
            let due = self.scratch.due[place];
            let task = match due.owner.whose() {
                Whose::Guard(index) | Whose::Scope(index) => {
                    self.scopes.try_get_mut(index).map(|scope| {
                        scope.expiring = false;
                        scope.task
                    })
                }
                Whose::Bare(task) => Some(task),
                Whose::Sleep(_) | Whose::Phase | Whose::Retry => None,
            };
            let task = task.filter(|task| self.tasks.try_get(*task).is_some());
            if let Some(task) = task {
                self.tasks.get_mut(task).expiring = None;
            }
        }
        self.scratch.due.clear();
    }

    /// Whether a connection deadline that is due will end that wait in this turn, so that nothing
    /// else may; with a line, as something else was about to.
    #[inline]
    pub(crate) fn is_doomed(&mut self, ticket: u32) -> bool {
        !self.scratch.due.is_empty() && self.is_expiring(ticket)
    }

    #[inline(never)]
    fn is_expiring(&mut self, ticket: u32) -> bool {
        let Some(entry) = self.waits.get(ticket) else { return false };
        let task = entry.task;
        let Some(expiring) = self.tasks.get(task).expiring else { return false };
        let mut from = self.scope_at(entry);
        while from != ROOT && !self.scopes.get(from).expiring {
            if self.scopes.holds(from) {
                return false;
            }
            from = self.scopes.get(from).parent;
        }
        if from == ROOT && expiring != Expiring::InAll {
            return false;
        }
        let scope = if from == ROOT { 0 } else { self.scopes.get(from).serial.get() };
        let (winner, loser) = ("timeout".into(), "value".into());
        emit!(self, task, Event::Race { winner, loser, scope });
        true
    }

    /// A timeout is about to fire: those around it that are due at the same point go first, also
    /// one that was opened later and into which this one has moved.
    pub(crate) fn fire_around(&mut self, index: u32, deadline: Time) {
        let mut at = self.scopes.get(index).parent;
        let mut around = Vec::new();
        while at != ROOT {
            let scope = self.scopes.get(at);
            let due = self.scopes.own_deadline(at, &self.timers) == deadline;
            if due && scope.fired().is_none() {
                around.push(at);
            }
            at = scope.parent;
        }
        for outer in around.into_iter().rev() {
            self.fire_scope(outer, deadline);
        }
    }

    /// A connection deadline fires: in its guard, or in the whole of its task.
    pub(crate) fn fire_deadline(&mut self, due: Due) {
        let slot = TimerId(due.slot);
        let index = match self.bound_to(due) {
            Some((task, ROOT)) => {
                let number = due.rank.seq;
                let index = self.scopes.open_bare(&mut self.tasks, task, due.at, number, slot);
                self.timers.set_owner(slot, Owner::guard(index));
                index
            }
            Some((_, index)) => index,
            None => {
                let timer = Timer::Deadline(due.rank.seq);
                let cause = self.deadlines.line(due.slot, due.rank.seq as u32);
                let event = Event::Fire { timer, deadline: due.at, cause };
                emit_for!(self, KERNEL, event, log::late(due.at, self.log.now));
                return self.timers.set_owner(slot, Owner::NOBODY);
            }
        };
        self.fire_around(index, due.at);
        if self.scopes.get(index).fired().is_none() {
            self.fire_scope(index, due.at);
        }
    }

    /// Which timer a scope's firing is the firing of, and the line that set it.
    fn timer_of(&self, index: u32) -> (Timer, Seq) {
        let scope = self.scopes.get(index);
        match (scope.timing, scope.timer()) {
            (Timing::Guard | Timing::Bare, Some(TimerId(slot))) => {
                let number = self.timers.table().columns().number(slot);
                (Timer::Deadline(u64::from(number)), self.deadlines.line(slot, number))
            }
            _ => (Timer::Scope(scope.serial.get()), scope.seq),
        }
    }

    /// For the trace: when a deadline fires, and how late.
    pub(crate) fn emit_fire(&mut self, index: u32, deadline: Time) -> Seq {
        let (timer, cause) = self.timer_of(index);
        let event = Event::Fire { timer, deadline, cause };
        emit_for!(self, KERNEL, event, log::late(deadline, self.log.now))
    }
}

/// Whether a task that began when so many connection deadlines had been made may be the one that
/// made number `number`, now that `made` have been. Numbers begin anew after 2^31: then there are
/// fewer than at the task's beginning, and any may be its own.
fn may_have_made(before: u32, number: u64, made: u32) -> bool {
    number > u64::from(before) || before > made
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use traps::connection_deadline;

    use super::may_have_made;
    use crate::{Kernel, Sim};

    #[test]
    fn d1_a_task_is_known_as_the_maker_also_where_the_numbers_begin_anew() {
        assert!(may_have_made(0, 1, 1));
        assert!(may_have_made(7, 8, 9));
        assert!(!may_have_made(7, 7, 9), "it was made before that task");
        let last = (1 << 31) - 2;
        assert!(may_have_made(last - 1, u64::from(last), last));
        assert!(may_have_made(last - 1, 1, 1), "the next but one");
        assert!(!may_have_made(1, 1, 1), "the same, and a task that began after it");
    }

    #[test]
    fn d1_a_deadline_that_is_gone_leaves_no_slot_behind() {
        let mut kernel = Kernel::new(Sim::new());
        let ran = kernel.run(async {
            for span in [Duration::from_micros(1), Duration::from_secs(9)] {
                let deadline = connection_deadline().await;
                deadline.arm(span);
            }
            drop(connection_deadline().await);
        });
        ran.unwrap();
        assert!(kernel.timers.table().columns().is_empty());
    }
}
