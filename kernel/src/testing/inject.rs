//! Puts an interrupt before one chosen trap of a run: the kernel's side of a sweep.

use std::fmt;

use traps::Time;
use traps::protocol::{Opening, ROOT, ScopeId, ScopeKind, Site};

use crate::kernel::Kernel;
use crate::log::{self, KERNEL, emit, emit_for};
use crate::machine::Machine;
use crate::trace::{Event, Op, Outcome, Timer};

/// A trap of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trap {
    /// From 1, in the order of their dispatch.
    pub number: u64,
    /// The number of the task that makes it.
    pub task: u64,
    /// The name of that task.
    pub name: String,
    /// What it asks for, in the words of the log.
    pub op: String,
    /// Where it was made, `file:line`.
    pub site: String,
}

/// `trap 3, sleep 1s until=1.000000 of task 3 child at examples/hello.rs:14`
impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trap { number, task, name, op, site } = self;
        write!(f, "trap {number}, {op} of task {task} {name} at {site}")
    }
}

/// What a sweep does to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injected {
    /// It is cancelled.
    Cancellation,
    /// A deadline around all of it passes: a [`TaskTimeout`](traps::Kind::TaskTimeout), but a
    /// [`TimeoutCancellation`](traps::Kind::TimeoutCancellation) where it meets the task inside a
    /// timeout of its own.
    Timeout,
}

/// What a sweep does to a run.
#[derive(Debug)]
pub(crate) struct Inject {
    /// From the trap with this number on, each is looked at before it is dispatched;
    /// `u64::MAX`: none is.
    from: u64,
    /// Each task runs inside a scope whose deadline can be made to pass.
    pub(crate) around: bool,
    /// That scope, of the task that runs.
    pub(crate) root: ScopeId,
    /// What the first trap that is looked at meets; `None`: nothing, and all are noted.
    what: Option<Injected>,
    /// The traps that were looked at.
    pub(crate) seen: Vec<Trap>,
}

impl Default for Inject {
    fn default() -> Inject {
        let root = ScopeId { index: ROOT, number: 0 };
        Inject { from: u64::MAX, around: false, root, what: None, seen: Vec::new() }
    }
}

impl Inject {
    /// Notes every trap.
    pub(crate) fn note() -> Inject {
        Inject { from: 0, ..Inject::default() }
    }

    /// Interrupts the task that makes the trap of this number.
    pub(crate) fn hit(what: Injected, number: u64) -> Inject {
        let around = what == Injected::Timeout;
        Inject { from: number, around, what: Some(what), ..Inject::default() }
    }

    /// Whether the trap of this number is to be looked at.
    #[inline]
    pub(crate) fn is_due(&self, trap: u64) -> bool {
        trap >= self.from
    }

    pub(crate) fn is_active(&self) -> bool {
        self.from != u64::MAX
    }
}

impl<M: Machine> Kernel<M> {
    /// Notes a trap that is about to be dispatched, and interrupts its task if that is asked for.
    #[cold]
    pub(crate) fn before_trap(&mut self, task: u32, site: Site, op: &Op<'_>) {
        let (id, name) = self.tasks.label(task);
        self.inject.seen.push(Trap {
            number: self.counts.traps,
            task: id,
            name: name.to_owned(),
            op: op.to_string(),
            site: log::place_of(site),
        });
        let Some(what) = self.inject.what else { return };
        self.inject.from = u64::MAX;
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
        self.inject.root = self.scopes.name_of(&self.tasks, task, index);
    }

    /// The oldest scope of a task: opened before it ran, it stays to its end.
    fn outermost(&self, task: u32) -> u32 {
        let oldest = self.scopes.of(&self.tasks, task).last();
        oldest.expect("a task of this run has a scope around it").0
    }
}
