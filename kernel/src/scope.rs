//! One scope, as the kernel keeps it: a connection that waits has one, so it is small.
//!
//! Plain data; the tree is in `scopes.rs`.

use std::num::NonZeroU64;

use traps::Time;
use traps::protocol::{Limit, ScopeKind, Site};

use crate::shields::Hold;
use crate::task::NONE;
use crate::timers::TimerId;
use crate::trace::Seq;

/// Where a scope has its deadline from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// It was opened with it.
    Own,
    /// It is for the guards of a connection deadline, whose slot is its timer.
    Guard,
    /// It stands for a connection deadline that fired without a guard; it encloses the whole task.
    Bare,
}

pub(crate) struct Scope {
    pub(crate) serial: NonZeroU64,
    pub(crate) task: u32,
    /// Another scope, or [`ROOT`].
    pub(crate) parent: u32,
    pub(crate) kind: ScopeKind,
    pub(crate) deadline: Time,
    pub(crate) timing: Timing,
    /// The slot of its timer, or [`NONE`].
    timer: u32,
    mark: Mark,
    /// What goes with the mark.
    at: Time,
    /// It is a guard whose deadline is due in this turn.
    pub(crate) expiring: bool,
    /// Traps that its interrupt reached and at which it was not dropped unread.
    pub(crate) delivered: u32,
    pub(crate) site: Site,
    /// The line that opened it or armed its grace; once it fired, its `fire` line.
    pub(crate) seq: Seq,
    pub(crate) before: u32,
    pub(crate) after: u32,
    /// How many scopes have it for a parent.
    pub(crate) children: u32,
}

/// What has come of a scope. One that is a shield does not fire: each connection that waits has a
/// scope, so what only few of them have lies in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Nothing,
    Fired,
    /// [`Hold::Shut`], and it was given no grace.
    Shut,
    /// The same, with one: so many microseconds.
    ShutFor,
    Until,
}

impl Scope {
    /// Its number in the log; 0: it has none there.
    pub(crate) fn shown(&self) -> u64 {
        if self.timing == Timing::Bare { 0 } else { self.serial.get() }
    }

    /// One that opens, in that task and below that parent, and is in no list yet.
    pub(crate) fn new(
        serial: NonZeroU64,
        (task, parent): (u32, u32),
        kind: ScopeKind,
        deadline: Time,
        site: Site,
    ) -> Scope {
        Scope {
            serial,
            task,
            parent,
            kind,
            deadline,
            timing: Timing::Own,
            timer: NONE,
            mark: Mark::Nothing,
            at: Time::ZERO,
            expiring: false,
            delivered: 0,
            site,
            seq: 0,
            before: NONE,
            after: NONE,
            children: 0,
        }
    }

    /// Its deadline has never fired, as far as anybody is concerned.
    pub(crate) fn reset(&mut self) {
        (self.mark, self.delivered, self.deadline) = (Mark::Nothing, 0, Time::NEVER);
    }

    /// When its deadline was found to have passed.
    #[inline]
    pub(crate) fn fired(&self) -> Option<Time> {
        (self.mark == Mark::Fired).then_some(self.at)
    }

    /// Its deadline is found to have passed.
    pub(crate) fn fire(&mut self, now: Time) {
        (self.mark, self.at) = (Mark::Fired, now);
    }

    /// Whether it is a shield in force.
    #[inline]
    pub(crate) fn holds(&self) -> bool {
        matches!(self.mark, Mark::Shut | Mark::ShutFor | Mark::Until)
    }

    /// What it holds back.
    pub(crate) fn hold(&self) -> Hold {
        match self.mark {
            Mark::Nothing | Mark::Fired => Hold::Nothing,
            Mark::Shut => Hold::Shut(Limit::Never),
            Mark::ShutFor => Hold::Shut(Limit::After(self.at.since(Time::ZERO))),
            Mark::Until => Hold::Until(self.at),
        }
    }

    pub(crate) fn set_hold(&mut self, hold: Hold) {
        (self.mark, self.at) = match hold {
            Hold::Nothing => (Mark::Nothing, Time::ZERO),
            Hold::Shut(Limit::After(span)) => (Mark::ShutFor, Time::ZERO + span),
            Hold::Shut(_) => (Mark::Shut, Time::ZERO),
            Hold::Until(end) => (Mark::Until, end),
        };
    }

    /// The timer of its deadline, or of its grace.
    #[inline]
    pub(crate) fn timer(&self) -> Option<TimerId> {
        (self.timer != NONE).then_some(TimerId(self.timer))
    }

    #[inline]
    pub(crate) fn set_timer(&mut self, timer: Option<TimerId>) {
        self.timer = timer.map_or(NONE, |timer| timer.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_scope_does_not_grow() {
        assert_eq!(size_of::<Option<Scope>>(), 72);
    }
}
