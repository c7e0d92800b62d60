//! The hook for tests: it is called before each trap, and can interrupt the task that makes it.

use traps::core::names::Site;

use crate::trace::Op;

/// A trap that is about to be dispatched, as the hook of
/// [`Kernel::before_each_trap`](crate::Kernel::before_each_trap) sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Trap<'a> {
    /// From 1, in the order of their dispatch.
    pub number: u64,
    /// The number of the task that makes it.
    pub task: u64,
    /// The name of that task.
    pub name: &'a str,
    /// What it asks for; its text is that of the log.
    pub op: &'a Op<'a>,
    /// Where it was made.
    pub site: Site,
}

/// What a hook does to the task that makes a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injected {
    /// It is cancelled.
    Cancellation,
    /// A deadline around all of it passes: a [`TaskTimeout`](traps::Kind::TaskTimeout), but a
    /// [`TimeoutCancellation`](traps::Kind::TimeoutCancellation) where it meets the task inside a
    /// timeout of its own.
    Timeout,
}

/// Sees a trap before it is dispatched, and says what its task meets there.
pub(crate) type BeforeTrap = Box<dyn FnMut(&Trap<'_>) -> Option<Injected>>;

/// The hook, and how many traps, scopes and spawns it has seen.
#[derive(Default)]
pub(crate) struct Hook {
    pub(crate) before: Option<BeforeTrap>,
    pub(super) seen: u64,
}

impl Hook {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.before.is_some()
    }
}
