//! The hook for tests: it is called before each trap, and can interrupt the task that makes it.

use traps::core::names::Site;
use traps::core::protocol::ScopeKind;
use traps::core::records::Fired;

use super::Core;
use crate::log::{KERNEL, emit_for};
use crate::machine::Machine;
use crate::trace::{Event, Op, Timer};

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
    seen: u64,
}

impl Hook {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.before.is_some()
    }
}

impl<M: Machine> Core<M> {
    /// Shows a trap that is about to be dispatched to the hook, and interrupts its task if that is
    /// asked for.
    #[cold]
    pub(crate) fn before_trap(&mut self, task: u32, site: Site, op: &Op<'_>) {
        let Some(mut before) = self.hook.before.take() else { return };
        self.hook.seen += 1;
        let (id, name) = self.tasks.label(task);
        let what = before(&Trap { number: self.hook.seen, task: id, name, op, site });
        self.hook.before = Some(before);
        let Some(what) = what else { return };
        self.now = self.machine.now();
        match what {
            Injected::Cancellation => {
                self.cancel(task, None, "injected", self.run_line(task));
            }
            Injected::Timeout => self.time_out(task),
        }
    }

    /// Has a deadline around all that a task does pass.
    fn time_out(&mut self, task: u32) {
        let site = self.tasks.site(task).expect("a task that runs was spawned somewhere");
        let root = self.tasks[task].root;
        self.shared.scopes.set(self.shared.scopes.get() + 1);
        let number = self.shared.scopes.get();
        let kind = ScopeKind::Timeout;
        let scope = self.gate.records().open_around(root.index, kind, number, site);
        let (timer, until) = (Timer::Scope(number), self.now);
        let armed = emit_for!(self, KERNEL, Event::Arm { timer, until, at: None });
        let fire = self.log_fire(timer, until, armed);
        self.gate.records().scopes[scope.index].deadline = until;
        self.fire(scope, Fired { line: fire, ..Fired::default() });
    }
}
