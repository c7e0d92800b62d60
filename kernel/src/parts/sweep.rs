//! The hook for tests. It is called before each trap, and can interrupt the task that makes the
//! trap.

use traps::Site;
use traps::internal::protocol::ScopeKind;

use crate::core::Core;
use crate::log::{KERNEL, emit_for};
use crate::machine::Machine;
use crate::trace::{Event, Op, Timer};

/// A trap that is about to be dispatched, for the hook of
/// [`Kernel::before_each_trap`](crate::Kernel::before_each_trap).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Trap<'a> {
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
pub(crate) type BeforeTrap = Box<dyn FnMut(&Trap<'_>) -> Option<Injected>>;

/// The hook, and the number of traps, scopes and spawns that it has seen.
#[derive(Default)]
pub(crate) struct Hook {
    pub(crate) before: Option<BeforeTrap>,
    pub(crate) seen: u64,
}

impl Hook {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.before.is_some()
    }
}

impl<M: Machine> Core<M> {
    /// Calls the hook for a trap that is about to be dispatched, and interrupts the task if the
    /// hook asks for it.
    #[cold]
    pub(crate) fn before_trap(&mut self, task: u32, site: Site, op: &Op<'_>) {
        let Some(mut before) = self.hook.before.take() else { return };
        self.hook.seen += 1;
        let (id, name) = self.tasks.label(task);
        let what = before(&Trap { number: self.hook.seen, task: id, name, op, site });
        self.hook.before = Some(before);
        let Some(what) = what else { return };
        self.now = self.machine.now();
        let cause = self.log.cause;
        match what {
            Injected::Cancellation => self.cancel_now(task, "injected"),
            Injected::Timeout => self.time_out(task),
        }
        self.log.cause = cause;
    }

    /// Opens a scope around the whole task, and fires its deadline.
    fn time_out(&mut self, task: u32) {
        let site = self.site_of(task);
        let root = self.tasks[task].root;
        self.shared.scopes.set(self.shared.scopes.get() + 1);
        let number = self.shared.scopes.get();
        let kind = ScopeKind::Timeout;
        let scope = self.gate.records().open_around(root, kind, number, site);
        let (timer, until) = (Timer::Scope(number), self.now);
        let armed =
            emit_for!(self, KERNEL, Event::Arm { timer, until, phase: "".into(), at: None });
        self.log_fire(timer, until, armed);
        self.gate.records().scopes[scope.index].deadline = until;
        self.fire(scope);
    }
}
