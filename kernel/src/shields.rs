//! Shields: what they hold back, for how long, and what happens when one lapses.
//!
//! A shield that holds an interrupt back keeps a note of it, a pending entry *at* the shield. The
//! entry outside is for whoever comes first there; the note is the shield's own, as each branch
//! has its own, and only a lapse makes something of it.

use traps::Time;
use traps::protocol::{Limit, ROOT};

use crate::emit::{KERNEL, emit, emit_for};
use crate::kernel::Kernel;
use crate::log;
use crate::machine::Machine;
use crate::owner::Owner;
use crate::pending::{Pending, Source};
use crate::scopes::Scopes;
use crate::tasks::Tasks;
use crate::timers::{Class, Rank};
use crate::trace::{Event, Timer};

/// What a scope holds back from the traps inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Nothing: it is no shield, or one that has lapsed.
    Nothing,
    /// What comes from outside, and nothing has come yet. Then for so long, or until it closes.
    Shut(Limit),
    /// What comes from outside, until then: the grace runs. `NEVER` if only its close ends it.
    Until(Time),
}

impl Scopes {
    /// Whether a scope is a shield in force.
    #[inline]
    pub(crate) fn holds(&self, index: u32) -> bool {
        index != ROOT && self.get(index).holds()
    }

    /// The shields in force of a task, newest first.
    pub(crate) fn shields(&self, tasks: &Tasks, task: u32) -> Vec<u32> {
        self.each_of(tasks, task).filter(|scope| self.holds(*scope)).collect()
    }

    /// The shields that an interrupt which spreads from `source` meets, oldest first.
    pub(crate) fn shields_met(&self, tasks: &Tasks, task: u32, source: u32) -> Vec<u32> {
        if !self.has_inner(source) {
            return Vec::new();
        }
        let mut found = self.shields(tasks, task);
        found.retain(|shield| *shield != source && self.reaches(source, self.get(*shield).parent));
        found.reverse();
        found
    }

    /// Whether a shield holds this entry back: its own note, or what a trap inside would get if it
    /// were not for the shield.
    fn is_held_at(&self, pending: &Pending, shield: u32) -> bool {
        let parent = self.get(shield).parent;
        pending.at == shield
            || !self.holds(pending.at)
                && self.reaches(pending.at, parent)
                && !self.is_barred(pending, shield)
    }

    /// Whether a shield holds anything back now.
    fn holds_any(&self, shield: u32) -> bool {
        let task = self.get(shield).task;
        self.pending_in(task).any(|p| self.is_held_at(p, shield))
    }

    /// Ends a shield and takes what it held back, first who comes first.
    fn unhold(&mut self, tasks: &mut Tasks, index: u32) -> Vec<Source> {
        let task = self.get(index).task;
        let held = |p: &&Pending| self.is_held_at(p, index);
        let taken = self.pending_in(task).filter(held).map(|p| (p.at, p.source));
        let taken: Vec<(u32, Source)> = taken.collect();
        self.drop_these(tasks, task, &taken);
        self.get_mut(index).set_hold(Hold::Nothing);
        let mut sources: Vec<Source> = Vec::new();
        for (_, source) in taken {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources.sort_by_key(|source| self.precedence(*source));
        sources
    }

    /// A scope hangs elsewhere from now on: the shields in it forget what came from outside.
    pub(crate) fn drop_notes(&mut self, tasks: &mut Tasks, moved: u32) {
        let is_note = |p: &Pending| {
            let inside = self.holds(p.at) && self.is_within(moved, p.at);
            inside && !matches!(p.source, Source::Scope(from) if self.is_within(moved, from))
        };
        let task = self.get(moved).task;
        let notes = self.pending_in(task).filter(|p| is_note(p)).map(|p| (p.at, p.source));
        let notes: Vec<(u32, Source)> = notes.collect();
        self.drop_these(tasks, task, &notes);
    }

    fn drop_these(&mut self, tasks: &mut Tasks, task: u32, these: &[(u32, Source)]) {
        self.drop_pending(tasks, task, |p| these.contains(&(p.at, p.source)));
    }

    /// What a trap in `from` would get, now or once the shields around it are gone.
    pub(crate) fn held_for(&self, task: u32, from: u32) -> Option<Source> {
        let comes = |p: &&Pending| self.is_within(p.at, from) && !self.is_barred(p, from);
        let all = self.pending_in(task).filter(comes).map(|p| p.source);
        all.min_by_key(|source| self.precedence(*source))
    }
}

impl<M: Machine> Kernel<M> {
    /// Starts the grace of each shield of a task that now holds something back.
    pub(crate) fn start_graces(&mut self, task: u32) {
        if self.tasks.get(task).pending == 0 {
            return;
        }
        for index in self.scopes.shields(&self.tasks, task).into_iter().rev() {
            let Hold::Shut(limit) = self.scopes.get(index).hold() else { continue };
            if !self.scopes.holds_any(index) {
                continue;
            }
            let until = self.point(limit);
            let scope = self.scopes.get_mut(index);
            scope.set_hold(Hold::Until(until));
            if until == Time::NEVER {
                continue;
            }
            let number = scope.serial.get();
            let timer = Timer::Scope(number);
            let seq = emit!(self, task, Event::Arm { timer, until, at: None });
            let rank = || Rank { class: Class::Timeout, seq: number };
            let timer = self.timers.arm(until, Owner::scope(index), self.log.now, rank);
            let scope = self.scopes.get_mut(index);
            scope.seq = seq;
            scope.set_timer(Some(timer));
        }
    }

    /// The grace of a shield is over: what it held back is delivered inside it, as if it had never
    /// been there.
    pub(crate) fn lapse(&mut self, index: u32, deadline: Time) {
        let scope = self.scopes.get(index);
        let (task, number, cause) = (scope.task, scope.serial.get(), scope.seq);
        let event = Event::Fire { timer: Timer::Scope(number), deadline, cause };
        let seq = emit_for!(self, KERNEL, event, log::late(deadline, self.log.now));
        self.scopes.get_mut(index).seq = seq;
        for source in self.scopes.unhold(&mut self.tasks, index) {
            self.interrupt_scope(task, source, index, seq);
        }
    }
}
