//! The invariants of the records and of the gate, as code.
//!
//! Tests call these checks at each state that they see: in the sweep, in the random programs, and
//! wherever a log is compared with its kernel. A fault that leaves no trace in any output, such as
//! a count that is one too high, ends the next check.

use crate::core::gate::Gate;
use crate::core::protocol::{ScopeKind, Trap};
use crate::core::records::{Records, Scope};
use crate::core::table::{ScopeId, TaskIndex};

impl Records {
    /// Checks that the counts and the lists agree with the parents. For tests: O(waits + scopes).
    ///
    /// # Panics
    ///
    /// Panics if an invariant is broken.
    pub fn check(&self) {
        let fired = self.scopes.iter().filter(|(_, scope)| scope.fired.is_some()).count();
        assert_eq!(self.sources, fired, "the scopes that have fired are counted");
        for (at, scope) in self.scopes.iter() {
            let waits = self.waits.iter().filter(|(_, wait)| wait.scope == at).count();
            let within = |inner: &Scope| inner.is_inner && inner.parent == at;
            let scopes = self.scopes.iter().filter(|(_, inner)| within(inner)).count();
            assert_eq!(scope.inside as usize, waits + scopes, "{at:?} counts what is in it");
            let is_step = scope.kind == ScopeKind::Closed;
            assert!(!is_step || scope.inside > 0, "{at:?} is closed, and nothing is in it");
            assert!(!is_step || scope.fired.is_none(), "{at:?} is closed, and has fired");
            let way = std::iter::successors(Some(at), |at| Some(self.scopes.get(*at)?.parent));
            let task = way.last().and_then(ScopeId::task).map(TaskIndex::of);
            assert!(task == Some(scope.task) || !scope.is_inner, "{at:?} is in its task");
            let mut around = self.around(ScopeId::of(self.tasks.key(scope.task.0)));
            assert!(scope.is_inner || around.any(|(it, _)| it == at), "{at:?} is around its task");
        }
        for (at, task) in self.tasks.iter() {
            let index = TaskIndex::of(at);
            let is_open = |it: &Scope| it.is_inner && it.kind != ScopeKind::Closed;
            let of_task = |(_, it): &(_, &Scope)| it.task == index && is_open(it);
            assert_eq!(task.open as usize, self.scopes.iter().filter(of_task).count());
            let filed = self.waits.iter().filter(|(_, wait)| wait.task == index).count();
            assert_eq!(self.waits_of(index).count(), filed, "{at:?} lists its waits");
            let are_around = self.around(ScopeId::of(at)).all(|(_, it)| !it.is_inner);
            assert!(are_around, "{at:?} names the scopes around it");
        }
        for (ticket, wait) in self.waits.iter() {
            let task = self.tasks.key(wait.task.0);
            let is_in_task = wait.scope == ScopeId::of(task);
            assert!(is_in_task || self.scopes.get(wait.scope).is_some(), "{ticket:?} is somewhere");
            if wait.is_parked()
                && let Trap::Wait { queue, .. } = &wait.trap
            {
                let next = |at: &u32| queue.waiters.get().after(self.waits[*at].in_queue);
                let line = std::iter::successors(queue.waiters.get().first(), next);
                let line: Vec<u32> = line.collect();
                assert_eq!(queue.len.get(), line.len() as u64, "a queue counts its waits");
                assert!(line.contains(&ticket.index), "{ticket:?} is in its queue");
            }
        }
    }
}

impl Gate {
    /// Checks that the flag and the list of what is filed agree, and that a scope is in force
    /// exactly while a task is polled. For tests: O(1).
    ///
    /// # Panics
    ///
    /// Panics if an invariant is broken.
    pub fn check(&self) {
        let is_any_filed = !self.filed.borrow().is_empty();
        assert_eq!(self.any_filed.get(), is_any_filed, "the flag says whether the list has any");
        let is_scope = self.scope.get() != ScopeId::NONE;
        assert_eq!(self.task.get().is_some(), is_scope, "a polled task has a scope in force");
    }
}
