//! The hook for tests: it is called before each trap, and can interrupt the task that makes it.

use traps::Time;
use traps::protocol::{Opening, ROOT, ScopeId, ScopeKind, Site};

use crate::kernel::Kernel;
use crate::log::{self, KERNEL, emit, emit_for};
use crate::machine::Machine;
use crate::trace::{Event, Op, Outcome, Timer};

/// A trap that is about to be dispatched, as the hook of [`Kernel::before_each_trap`] sees it.
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

type Before = Box<dyn FnMut(&Trap<'_>) -> Option<Injected>>;

/// The hook of a kernel, if it has one.
pub(crate) struct Hook {
    before: Option<Before>,
    /// Each task runs inside a scope whose deadline can be made to pass.
    pub(crate) around: bool,
    /// That scope, of the task that runs.
    pub(crate) root: ScopeId,
}

impl Default for Hook {
    fn default() -> Hook {
        Hook { before: None, around: false, root: ScopeId { index: ROOT, number: 0 } }
    }
}

impl Hook {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.before.is_some()
    }
}

impl<M: Machine> Kernel<M> {
    /// Calls `hook` before each trap is dispatched, from now on. What it returns happens to the
    /// task that makes the trap: a trap that blocks ends with the interrupt, and from one that
    /// answers it is pending until the next that blocks.
    ///
    /// For tests that interrupt a program. With `timeouts`, each task runs inside a scope of its
    /// own, which the trace shows; only then may the hook return [`Injected::Timeout`]. Set the
    /// hook before the first run.
    pub fn before_each_trap(
        &mut self,
        timeouts: bool,
        hook: impl FnMut(&Trap<'_>) -> Option<Injected> + 'static,
    ) {
        self.hook = Hook { before: Some(Box::new(hook)), around: timeouts, ..Hook::default() };
        self.look();
    }

    /// Shows a trap to the hook, and interrupts its task if the hook says so.
    #[cold]
    pub(crate) fn before_trap(&mut self, task: u32, site: Site, op: &Op<'_>) {
        let Some(before) = &mut self.hook.before else { return };
        let (id, name) = self.tasks.label(task);
        let what = before(&Trap { number: self.counts.traps, task: id, name, op, site });
        let Some(what) = what else { return };
        self.log.now = self.machine.now();
        match what {
            Injected::Cancellation => {
                self.cancel_task(task, None, "injected", self.run_line(task));
            }
            Injected::Timeout => {
                let index = self.outermost(task);
                let timer = Timer::Scope(self.scopes[index].number);
                let until = self.log.now;
                let armed = emit_for!(self, KERNEL, Event::Arm { timer, until, at: None });
                self.scopes[index].seq = armed;
                let fire = self.log_fire(timer, until, armed);
                self.fire_scope(index, until, fire);
            }
        }
    }

    /// Opens the scope around all that a task does, when it first runs.
    #[cold]
    pub(crate) fn open_outermost(&mut self, task: u32) {
        if self.tasks[task].runs == 1 {
            let site = self.tasks.site(task).expect("a task that runs was spawned somewhere");
            let scope = self.gate.new_scope();
            let (kind, deadline, now) = (ScopeKind::Timeout, Time::NEVER, self.log.now);
            let opening = Opening { scope, parent: ROOT, kind, deadline, now, site };
            let index = self.scopes.open(&mut self.tasks, task, &opening);
            self.scopes[index].seq = emit!(self, task, {
                let op = Op::SetTimeout { span: None, until: None };
                let (outcome, at) = (Outcome::Scope(scope.number), Some(log::site(site)));
                Event::Trap { op, outcome, cause: None, at }
            });
        }
        let index = self.outermost(task);
        self.hook.root = self.scopes.name_of(&self.tasks, task, index);
    }

    /// The oldest scope of a task: opened before it ran, it stays to its end.
    fn outermost(&self, task: u32) -> u32 {
        let oldest = self.scopes.of(&self.tasks, task).last();
        oldest.expect("a task of this run has a scope around it").0
    }
}
