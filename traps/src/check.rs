//! The invariants of the records and of the gate, as code.
//!
//! Tests call these checks at each state that they see: in the sweep, in the random programs, and
//! wherever a log is compared with its kernel. A fault that leaves no trace in any output, such as
//! a count that is one too high, ends the next check.

use std::rc::Rc;

use crate::core::gate::Gate;
use crate::core::protocol::{ScopeKind, Trap};
use crate::core::records::{Records, WaitState};
use crate::core::table::{Links, Queue, ScopeId, TaskIndex};
use crate::interrupts::source::Scope;

impl Records {
    /// Checks that the counts and the lists agree with the parents. Nothing may be filed. For
    /// tests: O(waits * waits + scopes * scopes).
    ///
    /// # Panics
    ///
    /// Panics if an invariant is broken.
    pub fn check(&self) {
        let fired = self.scopes.iter().filter(|(_, scope)| scope.fired.is_some()).count();
        assert_eq!(self.sources, fired, "the scopes that have fired are counted");
        let shields = self.scopes.iter().filter(|(_, scope)| scope.kind == ScopeKind::Shield);
        assert_eq!(self.shields, shields.count(), "the open shields are counted");
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
            let mut around = self.outwards(ScopeId::of(self.tasks.key(scope.task.0)));
            assert!(scope.is_inner || around.any(|(it, _)| it == at), "{at:?} is around its task");
            let Some(fired) = &scope.fired else { continue };
            assert!(fired.order <= self.order, "{at:?} has fired with a rank that was taken");
            for (place, it) in &fired.places {
                assert!(it.is_pending || it.taken > 0, "{at:?} is pending at {place:?}, or taken");
                // The post passes over a place that has closed in the meantime.
                let waits = it.waits_for_post && self.is_open(*place);
                assert!(!waits, "the post of {at:?} at {place:?} was handled");
            }
        }
        for (at, task) in self.tasks.iter() {
            let index = TaskIndex::of(at);
            let is_open = |it: &Scope| it.is_inner && it.kind != ScopeKind::Closed;
            let of_task = |(_, it): &(_, &Scope)| it.task == index && is_open(it);
            assert_eq!(task.open as usize, self.scopes.iter().filter(of_task).count());
            let filed = self.waits.iter().filter(|(_, wait)| wait.task == index).count();
            assert_eq!(self.waits_of(index).count(), filed, "{at:?} lists its waits");
            let are_around = self.outwards(ScopeId::of(at)).all(|(_, it)| !it.is_inner);
            assert!(are_around, "{at:?} names the scopes around it");
        }
        for (ticket, wait) in self.waits.iter() {
            let task = self.tasks.key(wait.task.0);
            let is_in_task = wait.scope == ScopeId::of(task);
            assert!(is_in_task || self.scopes.get(wait.scope).is_some(), "{ticket:?} is somewhere");
            assert!(!matches!(wait.state, WaitState::Filed), "{ticket:?} was dispatched");
            let may_be_listed = matches!(wait.trap, Trap::Wait { .. } | Trap::Join { .. });
            let is_listed = wait.in_queue != Links::default();
            assert!(!is_listed || may_be_listed && wait.is_parked(), "{ticket:?} is in no list");
            if let Trap::Wait { queue, .. } = &wait.trap {
                let is_there = self.check_queue(queue).contains(&ticket.index);
                assert_eq!(is_there, wait.is_parked(), "{ticket:?} is in its queue if parked");
            }
        }
    }

    /// Checks a queue of waits, while nothing is filed. Returns the indexes of its waits.
    ///
    /// # Panics
    ///
    /// Panics if an invariant is broken.
    pub fn check_queue(&self, queue: &Rc<Queue>) -> Vec<u32> {
        let next = |at: &u32| queue.waiters.get().after(self.waits[*at].in_queue);
        let line: Vec<u32> = std::iter::successors(queue.waiters.get().first(), next).collect();
        assert_eq!(queue.len.get(), line.len() as u64, "a queue counts its waits");
        for wait in line.iter().map(|at| &self.waits[*at]) {
            let is_its =
                matches!(&wait.trap, Trap::Wait { queue: it, .. } if Rc::ptr_eq(it, queue));
            assert!(is_its && wait.is_parked(), "a queue lists the waits that are parked in it");
        }
        assert!(line.is_empty() || queue.permits.get() == 0, "a queue with waits has no permit");
        assert!(line.is_empty() || !queue.over.get(), "nobody waits for what has happened");
        line
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
