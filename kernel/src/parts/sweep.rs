//! The hook for tests. It is called before each trap, and can interrupt the task that makes the
//! trap.

use traps::Site;
use traps::internal::table::TaskIndex;

use crate::core::sched::Sched;
use crate::machine::Machine;
use crate::trace::Op;

/// A trap that is about to be dispatched, for the hook of
/// [`Kernel::before_each_trap`](crate::Kernel::before_each_trap).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TrapSeen<'a> {
    /// The number of the trap, from 1, in the order of dispatch.
    pub number: u64,
    /// The number of the task that makes the trap.
    pub task: u64,
    /// The name of the task that makes the trap.
    pub name: &'a str,
    /// The operation of the trap. Its text is that of the log.
    pub op: &'a Op<'a>,
    /// The location of the trap.
    pub site: Site,
}

/// An interrupt that the hook injects into the task that makes a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injected {
    /// A cancellation of the task.
    Cancellation,
    /// The end of a deadline around the whole task. It arrives as a
    /// [`TaskTimeout`](traps::Kind::TaskTimeout), or inside a timeout of the task's own, as a
    /// [`TimeoutCancellation`](traps::Kind::TimeoutCancellation).
    Timeout,
}

/// The type of the hook, which sees a trap before its dispatch, and returns the interrupt to
/// inject.
pub(crate) type BeforeTrap = Box<dyn FnMut(&TrapSeen<'_>) -> Option<Injected>>;

/// The hook, and the number of traps, scopes and spawns that it has seen.
#[derive(Default)]
pub(crate) struct TrapHook {
    pub(crate) before: Option<BeforeTrap>,
    pub(crate) seen: u64,
}

impl TrapHook {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.before.is_some()
    }

    /// Calls the hook for a trap that is about to be dispatched.
    pub(crate) fn ask(
        &mut self,
        sched: &Sched<impl Machine>,
        task: TaskIndex,
        site: Site,
        op: &Op<'_>,
    ) -> Option<Injected> {
        let before = self.before.as_mut()?;
        self.seen += 1;
        let (id, name) = sched.tasks.label(task);
        before(&TrapSeen { number: self.seen, task: id, name, op, site })
    }
}
