//! Connection deadlines: how they are made, set and dropped, and what happens when one fires.
//!
//! What a store in the deadline table does alone never comes here.

use std::collections::BTreeMap;

use traps::Time;
use traps::deadline::DeadlineSlot;
use traps::protocol::{Answer, DeadlineName, ROOT, ScopeId, ScopeKind};

use crate::emit::{emit, emit_for};
use crate::kernel::Kernel;
use crate::log;
use crate::machine::Machine;
use crate::pending::Source;
use crate::scopes::Timing;
use crate::table::At;
use crate::tasks::State;
use crate::timers::{Due, Owner, TimerId};
use crate::trace::{Event, Op, Seq, Timer};
use crate::turn::Fired;

/// Where in a task a connection deadline is due in this turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiring {
    /// In this scope, or [`ROOT`].
    In(u32),
    InSeveral,
}

/// What the kernel keeps of all of them together.
#[derive(Default)]
pub(crate) struct Deadlines {
    numbers: u32,
    pub(crate) alive: usize,
    /// The `arm` line of each that is set, by slot; kept while somebody listens.
    lines: BTreeMap<u32, Seq>,
}

impl<M: Machine> Kernel<M> {
    /// Gives a task a connection deadline.
    pub(crate) fn new_deadline(&mut self, at: At) {
        let At { task, ticket, site, .. } = at;
        // 31 bits, and not 0: it shares its place with a mark.
        self.deadlines.numbers = self.deadlines.numbers % ((1 << 31) - 2) + 1;
        self.deadlines.alive += 1;
        self.tasks.get_mut(task).deadlines += 1;
        let number = self.deadlines.numbers;
        let TimerId(slot) = self.timers.claim(Fired::bare(task), number);
        let name = DeadlineName { slot, number, epoch: self.epoch, task: self.tasks.name_of(task) };
        let answer = DeadlineSlot::new(self.timers.table().clone(), name);
        let answer = Ok(Answer::ConnectionDeadline(answer));
        self.answer(task, ticket, answer, Op::ConnectionDeadline, site);
    }

    /// Arms or disarms one.
    pub(crate) fn set_deadline(&mut self, deadline: DeadlineName, until: Time, owner: u32) {
        let timer = TimerId(deadline.slot);
        if self.timers.has_fired(timer) {
            self.forget_firing(timer);
        }
        self.move_deadline(deadline, until);
        self.own_deadline(deadline, owner);
    }

    /// Gives one another owner. Its task may have ended.
    fn own_deadline(&mut self, deadline: DeadlineName, owner: u32) {
        let owner = match Fired::of(Owner(owner)) {
            Fired::Bare(_) if self.maker(deadline).is_none() => Fired::NOBODY,
            _ => Owner(owner),
        };
        self.timers.set_owner(TimerId(deadline.slot), owner);
    }

    /// The task that one is bound to, unless it has ended.
    fn maker(&self, deadline: DeadlineName) -> Option<u32> {
        let task = self.tasks.find(deadline.task)?;
        (self.tasks.get(task).state != State::Ended).then_some(task)
    }

    /// The outermost guard of one ends: it is disarmed, and its scope is left open but empty.
    pub(crate) fn leave_guard(
        &mut self,
        deadline: DeadlineName,
        scope: Option<ScopeId>,
        owner: u32,
    ) {
        let timer = TimerId(deadline.slot);
        if let Some(index) = scope.and_then(|scope| self.scopes.find(scope)) {
            self.leave_scope(index);
            self.forget_fired(index);
        }
        if !self.timers.has_fired(timer) {
            self.move_deadline(deadline, Time::NEVER);
        }
        self.own_deadline(deadline, owner);
    }

    /// One is gone.
    pub(crate) fn drop_deadline(&mut self, deadline: DeadlineName) {
        let timer = TimerId(deadline.slot);
        if self.timers.has_fired(timer) {
            self.forget_firing(timer);
        }
        self.move_deadline(deadline, Time::NEVER);
        if let Some(task) = self.maker(deadline) {
            self.tasks.get_mut(task).deadlines -= 1;
        }
        self.deadlines.alive -= 1;
        self.timers.disarm(timer);
    }

    /// The owner of connection deadlines has ended: those that outlive it interrupt nobody.
    pub(crate) fn orphan_deadlines(&mut self, task: u32) {
        if self.tasks.get(task).deadlines == 0 {
            return;
        }
        let mut columns = self.timers.table().columns();
        let slots: Vec<u32> = columns.slots().collect();
        for slot in slots {
            if columns.owner(slot) == Fired::bare(task).0 {
                columns.set_owner(slot, Fired::NOBODY.0);
            }
        }
    }

    /// Sets the time, with its line.
    fn move_deadline(&mut self, deadline: DeadlineName, until: Time) {
        let timer = TimerId(deadline.slot);
        let was = self.timers.due_at(timer);
        if until == was && until == Time::NEVER {
            // It may have fired, which is no line of its own to take back.
            self.timers.rearm(timer, until, self.log.now, deadline.number);
            return;
        }
        self.timers.rearm(timer, until, self.log.now, deadline.number);
        let shown = Timer::Deadline(u64::from(deadline.number));
        let event = match until {
            Time::NEVER => Event::Disarm { timer: shown },
            until => Event::Arm { timer: shown, until },
        };
        let seq = match self.acting() {
            Some(task) => emit!(self, task, event),
            None => emit_for!(self, 0, "kernel", event),
        };
        if until == Time::NEVER {
            self.deadlines.lines.remove(&deadline.slot);
        } else if self.log.listening {
            self.deadlines.lines.insert(deadline.slot, seq);
        }
    }

    /// What is left of its last firing ends: it is armed anew, or gone.
    fn forget_firing(&mut self, timer: TimerId) {
        let Fired::Guard(index) = Fired::of(self.timers.owner(timer)) else { return };
        self.forget_fired(index);
        let scope = self.scopes.get(index);
        let (bare, task) = (scope.timing == Timing::Bare, scope.task);
        self.scopes.drop_pending(&mut self.tasks, |p| p.source == Source::Scope(index));
        if bare {
            self.forget_delivered(task, index);
            self.scopes.close(&mut self.tasks, index);
        }
    }

    /// The scope of one is as before its firing, for the next guard or the next arm.
    fn forget_fired(&mut self, index: u32) {
        let scope = self.scopes.get_mut(index);
        scope.fired = None;
        scope.delivered = 0;
        scope.deadline = Time::NEVER;
    }

    /// Before anything that came in this turn is looked at: marks the tasks whose connection
    /// deadlines are due, since those win against it (X1).
    pub(crate) fn mark_expiring(&mut self) {
        for place in 0..self.scratch.due.len() {
            let due = self.scratch.due[place];
            let (task, from) = match Fired::of(due.owner) {
                Fired::Guard(index) => {
                    self.scopes.get_mut(index).deadline = due.at;
                    (self.scopes.get(index).task, index)
                }
                Fired::Scope(index) if self.scopes.get(index).kind == ScopeKind::Guard => {
                    (self.scopes.get(index).task, index)
                }
                Fired::Bare(task) if due.owner != Fired::NOBODY => (task, ROOT),
                Fired::Bare(_) | Fired::Scope(_) | Fired::Sleep(_) | Fired::Grace => continue,
            };
            let expiring = &mut self.tasks.get_mut(task).expiring;
            *expiring = match *expiring {
                None => Some(Expiring::In(from)),
                Some(_) => Some(Expiring::InSeveral),
            };
        }
    }

    /// All that was due has acted.
    pub(crate) fn forget_due(&mut self) {
        while let Some(due) = self.scratch.due.pop() {
            let task = match Fired::of(due.owner) {
                Fired::Guard(index) | Fired::Scope(index) => self.scopes.get(index).task,
                Fired::Bare(task) if due.owner != Fired::NOBODY => task,
                Fired::Bare(_) | Fired::Sleep(_) | Fired::Grace => continue,
            };
            self.tasks.get_mut(task).expiring = None;
        }
    }

    /// Whether a connection deadline that is due will end that wait in this turn, so that nothing
    /// else may; with a line, as something else was about to.
    pub(crate) fn is_doomed(&mut self, ticket: u32) -> bool {
        let Some(entry) = self.waits.get(ticket) else { return false };
        let task = entry.task;
        let Some(expiring) = self.tasks.get(task).expiring else { return false };
        let at = self.scopes.find(entry.scope).unwrap_or(ROOT);
        let reaches = |from: u32| self.scopes.reaches(from, at).then_some(from);
        let from = match expiring {
            Expiring::In(from) => reaches(from),
            Expiring::InSeveral => {
                self.scratch.due.iter().find_map(|due| match Fired::of(due.owner) {
                    Fired::Guard(index) => reaches(index),
                    Fired::Scope(index) if self.scopes.get(index).kind == ScopeKind::Guard => {
                        reaches(index)
                    }
                    Fired::Bare(index) if index == task => reaches(ROOT),
                    _ => None,
                })
            }
        };
        let Some(from) = from else { return false };
        let scope = if from == ROOT { 0 } else { self.scopes.get(from).serial.get() };
        let (winner, loser) = ("timeout".into(), "value".into());
        emit!(self, task, Event::Race { winner, loser, scope });
        true
    }

    /// A timeout is about to fire: guards around it that are due at the same point go first.
    pub(crate) fn fire_guards_around(&mut self, index: u32, deadline: Time) {
        let mut at = self.scopes.get(index).parent;
        let mut around = Vec::new();
        while at != ROOT {
            let scope = self.scopes.get(at);
            if scope.timing == Timing::Guard && scope.deadline == deadline && scope.fired.is_none()
            {
                around.push(at);
            }
            at = scope.parent;
        }
        for guard in around.into_iter().rev() {
            self.fire_scope(guard, deadline);
        }
    }

    /// A connection deadline fires that no guard is under: it interrupts its task.
    pub(crate) fn fire_bare(&mut self, task: u32, due: Due) {
        let site = std::panic::Location::caller();
        let kind = ScopeKind::Guard;
        let index = self.scopes.open(&mut self.tasks, task, ROOT, kind, due.at, site);
        let scope = self.scopes.get_mut(index);
        scope.timing = Timing::Bare;
        scope.timer = Some(TimerId(due.slot));
        self.timers.set_owner(TimerId(due.slot), Fired::guard(index));
        self.fire_scope(index, due.at);
    }

    /// Which timer a scope's firing is the firing of, and the line that set it.
    pub(crate) fn timer_of(&self, index: u32) -> (Timer, Seq) {
        let scope = self.scopes.get(index);
        match (scope.timing, scope.timer) {
            (Timing::Guard | Timing::Bare, Some(TimerId(slot))) => {
                let number = u64::from(self.timers.table().columns().number(slot));
                let line = self.deadlines.lines.get(&slot);
                (Timer::Deadline(number), line.copied().unwrap_or(1))
            }
            _ => (Timer::Scope(scope.serial.get()), scope.seq),
        }
    }

    /// For the trace: when a deadline fires, and how late.
    pub(crate) fn emit_fire(&mut self, index: u32, deadline: Time) -> Seq {
        let (timer, cause) = self.timer_of(index);
        let event = Event::Fire { timer, deadline, cause };
        emit_for!(self, 0, "kernel", event, log::late(deadline, self.log.now))
    }
}
