//! Puts an interrupt before one chosen trap of a run: the kernel's side of `testing::sweep`.
//!
//! A kernel that is not swept pays one comparison a trap and one a run.

use traps::Time;
use traps::protocol::{ROOT, ScopeId, ScopeKind, Site};

use crate::emit::{KERNEL, emit, emit_for};
use crate::kernel::Kernel;
use crate::log;
use crate::machine::Machine;
use crate::testing::{Injected, Trap};
use crate::trace::{Event, Op, Outcome, Timer};

/// What a sweep wants of a run.
#[derive(Debug)]
pub(crate) struct Inject {
    /// From the trap with this number on, each is looked at before it is dispatched;
    /// `u64::MAX`: none is.
    pub(crate) from: u64,
    /// Whether each task runs inside a scope whose deadline can be made to pass.
    pub(crate) around: bool,
    /// What the first trap that is looked at meets; `None`: nothing, and all are noted.
    pub(crate) what: Option<Injected>,
    /// The traps that were looked at.
    pub(crate) seen: Vec<Trap>,
}

impl Default for Inject {
    fn default() -> Inject {
        Inject { from: u64::MAX, around: false, what: None, seen: Vec::new() }
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
}

impl<M: Machine> Kernel<M> {
    /// Notes a trap that is about to be dispatched, and interrupts its task if that is asked for.
    #[cold]
    #[inline(never)]
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
                let run = self.tasks.get(task).cause;
                self.cancel_task(task, None, "injected", run);
            }
            Injected::Timeout => {
                let index = self.outermost(task);
                let (number, until) = (self.scopes.get(index).serial.get(), self.log.now);
                let event = Event::Arm { timer: Timer::Scope(number), until, at: None };
                let armed = emit_for!(self, KERNEL, event);
                let scope = self.scopes.get_mut(index);
                (scope.deadline, scope.seq) = (until, armed);
                self.fire_scope(index, until);
            }
        }
    }

    /// The scope around all that a task does, opened when it first runs.
    #[cold]
    pub(crate) fn root_around(&mut self, task: u32) -> ScopeId {
        if self.tasks.get(task).cycles > 1 {
            let index = self.outermost(task);
            return self.scopes.name_of(&self.tasks, task, index);
        }
        let site = self.tasks.site(task).expect("a task that runs was spawned somewhere");
        let (kind, never) = (ScopeKind::Timeout, Time::NEVER);
        let index = self.scopes.open(&mut self.tasks, task, ROOT, kind, never, site);
        let name = self.scopes.name_of(&self.tasks, task, index);
        let seq = emit!(self, task, {
            let op = Op::SetTimeout { span: None, until: None };
            let outcome = Outcome::Scope(name.serial.get());
            Event::Trap { op, outcome, cause: None, at: Some(log::site(site)) }
        });
        self.scopes.get_mut(index).seq = seq;
        name
    }

    /// The oldest scope of a task: opened before it ran, it stays to its end.
    fn outermost(&self, task: u32) -> u32 {
        self.scopes.of(&self.tasks, task).pop().expect("a task of this run has a scope around it")
    }
}
