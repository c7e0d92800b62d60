//! What the requests and posts about scopes say: its limit, its kind, and what came out of it.
//!
//! Plain data, a part of the vocabulary in `protocol.rs`.

use std::time::Duration;

use crate::interrupt::Kind;
use crate::protocol::{ScopeId, Site};
use crate::task::TaskId;
use crate::time::Time;

/// The limit of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// None of its own.
    Never,
    /// From its opening; a grace, from where it begins to run.
    After(Duration),
    /// At a point, which may have passed.
    At(Time),
    /// That of a connection deadline, by its slot and its number.
    Deadline {
        /// In the deadline table.
        slot: u32,
        /// As the log shows it.
        number: u32,
    },
}

impl Limit {
    /// The point that it comes to when it is set at `now`.
    #[inline]
    #[must_use]
    pub fn from(self, now: Time) -> Time {
        match self {
            Limit::Never | Limit::Deadline { .. } => Time::NEVER,
            Limit::After(span) => now + span,
            Limit::At(point) => point,
        }
    }
}

/// What the clock said when a timeout was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nobody asked: it does not matter.
    None,
    /// That.
    Exact(Time),
    /// At most that, by the coarse clock.
    Bound(Time),
}

/// A timeout that a task opened, without a trap: nothing is asked.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Named at the scope table.
    pub scope: ScopeId,
    /// The scope around it.
    pub parent: ScopeId,
    /// What was asked for.
    pub limit: Limit,
    /// What that counts from.
    pub reading: Reading,
    /// Where it was asked for.
    pub site: Site,
}

/// What came out of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// A value: then lateness is worth a line.
    Value {
        /// It was there at this point or before, by the coarse clock.
        by: Time,
    },
    /// An interrupt, as it is named there.
    Interrupt {
        /// Its name.
        kind: Kind,
        /// The number of the scope that fired, if one did.
        scope: Option<u64>,
        /// Who cancelled.
        by: Option<TaskId>,
    },
    /// Something else, or it was dropped before its end.
    Other,
}

/// What a scope is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeKind {
    /// A timeout, perhaps without a limit.
    Timeout,
    /// A timeout that wins against a value of the same turn.
    Guard,
    /// One branch of a combinator.
    Branch,
    /// Holds back interrupts from scopes outside it.
    Shield,
}

/// A connection deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineName {
    /// Its slot in the deadline table.
    pub slot: u32,
    /// As the log shows it, from 1.
    pub number: u32,
    /// Number of its kernel, of all in the process.
    pub epoch: u32,
    /// The place of the task that made it.
    pub task: u32,
}
