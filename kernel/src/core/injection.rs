//! What the hook for tests does to the task that makes a trap.

use traps::core::names::Site;
use traps::core::protocol::ScopeKind;
use traps::core::records::Fired;

use super::Core;
use super::hook::{Injected, Trap};
use crate::log::{KERNEL, emit_for};
use crate::machine::Machine;
use crate::trace::{Event, Op, Timer};

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
        let armed =
            emit_for!(self, KERNEL, Event::Arm { timer, until, phase: "".into(), at: None });
        let fire = self.log_fire(timer, until, armed);
        self.gate.records().scopes[scope.index].deadline = until;
        self.fire(scope, Fired { line: fire, ..Fired::default() });
    }
}
