//! The record of a scope, and the facts that it gets when it fires and becomes a *source* of
//! interrupts.
//!
//! A *scope* is a region of a task whose waits can be interrupted together: a timeout, a guard, a
//! branch of a combinator, a shield, or the whole task. Most scopes close without having fired, so
//! the facts about a source are in a box.

use std::collections::BTreeMap;

use crate::core::table::{ScopeId, Site, TaskId, TaskIndex};
use crate::time::Time;

/// The kind of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeKind {
    /// The scope around a whole task that was cancelled. The cancellation opens and fires it.
    Task,
    /// A connection deadline that has fired outside a guard. The scope is around the whole task,
    /// and has the deadline's slot in the deadline table.
    Deadline(u32),
    /// A timeout, with or without a deadline.
    Timeout,
    /// The scope of a guard: a timeout that wins against a value of the same turn. If it has a
    /// slot, its deadline is in that slot of the deadline table.
    Guard {
        /// The slot in the deadline table.
        slot: Option<u32>,
        /// The number of the connection deadline, as the log shows it.
        number: u32,
    },
    /// One branch of a combinator.
    Branch,
    /// A shield, which holds back interrupts from scopes outside it.
    Shield,
    /// A closed scope that still contains waits or scopes. It has no effect.
    Closed,
}

impl ScopeKind {
    /// Returns whether the scope relabels the interrupts that leave it. A connection deadline
    /// around a whole task does not: no code is outside of it.
    #[must_use]
    pub fn relabels(self) -> bool {
        matches!(self, ScopeKind::Timeout | ScopeKind::Guard { .. })
    }
}

/// A scope: a region of a task whose waits can be interrupted together.
#[derive(Debug)]
pub struct Scope {
    /// The kind of the scope.
    pub kind: ScopeKind,
    /// Whether the deadline is in the kernel's timer heap.
    pub has_timer: bool,
    /// False for a scope around a whole task: a cancellation, a connection deadline, or a timeout
    /// that a test injects.
    pub is_inner: bool,
    /// The number of the scope, from 1 in the order of opening, or 0 for a scope without a number.
    pub number: u64,
    /// The task of the scope, which outlives it.
    pub task: TaskIndex,
    /// The scope, or the task, that polled this scope last. For a scope around a whole task: the
    /// next one out, or [`ScopeId::NONE`].
    pub parent: ScopeId,
    /// The rank that the last source of interrupts had when this scope was opened. A source with a
    /// larger rank fired after that.
    pub(crate) order: u64,
    /// The number of waits and scopes in this scope, without those in inner scopes.
    pub(crate) inside: u32,
    /// The index of the wait and of the scope that came in last. Either may be gone, and another
    /// row have its index, so a reader checks. They save most timeouts a search for their one wait.
    pub(crate) newest_wait: u32,
    pub(crate) newest_scope: u32,
    /// The deadline of the scope. That of a guard with a slot is in the deadline table until it
    /// fires.
    pub deadline: Time,
    /// The call site that opened the scope.
    pub site: Site,
    /// The number of the log line that reports the opening.
    pub line: u64,
    /// The facts about the scope as a source of interrupts, if the scope has fired.
    pub fired: Option<Box<Fired>>,
}

/// A source of interrupts: the facts about a scope that has fired.
#[derive(Debug, Default)]
pub struct Fired {
    /// The rank among all sources of this thread. A cancellation has the rank that it took when it
    /// was asked for, because a poll may open branches between that and the kernel's answer.
    pub order: u64,
    /// The number of the `fire` or `cancel` line in the log.
    pub line: u64,
    /// The number of the task that asked for the cancellation.
    pub by: Option<TaskId>,
    /// The reason of the cancellation.
    pub reason: &'static str,
    /// The places where something has happened: a wait took the source, or it became pending again.
    pub(crate) places: BTreeMap<ScopeId, Place>,
}

/// What has happened at a place since the source fired. A place is the scope itself, or a branch
/// inside it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) is_pending: bool,
    /// A closing timeout has made the source pending here, and the post `RependNow` of the same
    /// poll is not served yet. A trap that this poll filed earlier must not take it.
    pub(crate) waits_for_post: bool,
    /// The number of waits that have taken the source, here or further in, and have not given it
    /// back.
    pub(crate) taken: u32,
}

impl Fired {
    /// Makes the source of a deadline that has passed, with its rank and the number of its `fire`
    /// line in the log.
    #[must_use]
    pub fn by_deadline(order: u64, line: u64) -> Fired {
        Fired { order, line, ..Fired::default() }
    }

    /// Makes the source of a cancellation, with its rank, its reason, and the task that cancelled,
    /// if there is one.
    #[must_use]
    pub fn by_cancel(order: u64, by: Option<TaskId>, reason: &'static str) -> Fired {
        Fired { order, by, reason, ..Fired::default() }
    }

    pub(super) fn place(&mut self, at: ScopeId) -> &mut Place {
        self.places.entry(at).or_insert(Place { is_pending: true, waits_for_post: false, taken: 0 })
    }

    pub(super) fn is_pending(&self, at: ScopeId) -> bool {
        self.places.get(&at).is_none_or(|place| place.is_pending)
    }

    pub(super) fn is_open_to_traps(&self, at: ScopeId) -> bool {
        self.places.get(&at).is_none_or(|place| place.is_pending && !place.waits_for_post)
    }
}
