//! The records at the gate: tasks and waits.
//!
//! A *wait* is one trap, from the poll that files it until its reply is read. It is a row of a
//! table here. The kernel and the futures keep no copy of it. A task knows its waits, in the order
//! in which they were filed.
//!
//! A wait also has a place in its task: the task itself, or a *scope*, such as a timeout. A scope
//! can end the waits in it. That is the second reading (`interrupts/`). Here, a wait is only
//! counted in its scope.
//!
//! The obvious way is to keep the state of a wait in its future. But the kernel writes the reply
//! while no future is borrowed, a queue names waits of many tasks, and a dropped future must leave
//! its queue in O(1).
//!
//! This file calls no user code and reads no clock.

use std::mem;
use std::task::Waker;

use super::protocol::{Reply, ScopeKind, Trap};
use super::table::{
    Links, List, NONE, OfScope, OfTask, OfWait, Queue, ScopeId, Site, Table, TaskIndex, TaskRef,
    Ticket,
};
use crate::interrupts::interrupt::Interrupt;
use crate::interrupts::source::Scope;

/// A wait, from the poll that files it until its reply is read or its future is dropped. A trap, a
/// parked wait and a reply are stored only here.
#[derive(Debug)]
pub struct Wait {
    /// The trap that the task has filed.
    pub trap: Trap,
    /// The progress of the wait.
    pub state: WaitState,
    /// The scope, or the task, that polled the wait last.
    pub scope: ScopeId,
    /// The task. An index is enough, because the task outlives its waits.
    pub task: TaskIndex,
    /// The call site that made the trap.
    pub site: Site,
    /// The neighbours of the wait in the list of its task's waits.
    pub(crate) beside: Links,
    /// The neighbours of the wait in its queue.
    pub in_queue: Links,
    /// A combinator's waker, to be called when the wait ends.
    pub waker: Option<Waker>,
}

/// The progress of a wait.
#[derive(Debug)]
pub enum WaitState {
    /// The kernel has not dispatched the trap.
    Filed,
    /// The trap has blocked.
    Parked,
    /// The task has not read the reply.
    Done(Reply),
}

impl Wait {
    /// Returns whether the trap has blocked and has no reply yet.
    #[inline]
    #[must_use]
    pub fn is_parked(&self) -> bool {
        matches!(self.state, WaitState::Parked)
    }

    /// Returns whether the reply has arrived.
    #[inline]
    #[must_use]
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, WaitState::Done(_))
    }

    /// Returns the interrupt that ended the wait, if there is one.
    #[must_use]
    pub fn interrupt(&self) -> Option<&Interrupt> {
        match &self.state {
            WaitState::Done(Reply::Interrupt(interrupt)) => Some(interrupt),
            _ => None,
        }
    }
}

/// The half of a task that its own polls need. The kernel has the other half, at the same index,
/// with the future, which is user code and must not be in a table of the gate.
#[derive(Debug)]
pub struct TaskRecord {
    /// The number of the task, from 2. The kernel's own task is number 1.
    pub number: u64,
    /// The call site that spawned the task.
    pub site: Site,
    /// The waits of the task, in the order in which they were filed.
    waits: List,
    /// The number of open scopes in the task.
    pub open: u32,
    /// The index of the innermost scope around the whole task, or [`NONE`]. Most tasks have none: a
    /// cancellation opens one.
    pub(crate) around: u32,
    /// Whether the task has asked about the shutdown. The drain waits for a main that has.
    pub asked_shutdown: bool,
    /// Whether the task is polled when the shutdown begins.
    pub watches_shutdown: bool,
}

/// All tasks, waits and scopes of a thread.
#[derive(Debug, Default)]
pub struct Records {
    /// The tasks.
    pub tasks: Table<OfTask, TaskRecord>,
    /// The waits.
    pub waits: Table<OfWait, Wait>,
    /// The scopes.
    pub scopes: Table<OfScope, Scope>,
    /// The number of open scopes that have fired. While it is 0, no interrupt can be pending.
    pub sources: usize,
    /// The number of open shields.
    pub(crate) shields: usize,
    /// The number of timers whose wait or scope has ended since the kernel's heap was last rebuilt.
    pub stale_timers: usize,
    /// The rank of the last source.
    pub(crate) order: u64,
}

impl Records {
    /// Adds a task.
    pub(crate) fn add_task(&mut self, number: u64, site: Site) -> TaskRef {
        self.tasks.insert(TaskRecord {
            number,
            site,
            waits: List::default(),
            open: 0,
            around: NONE,
            asked_shutdown: false,
            watches_shutdown: false,
        })
    }

    /// Removes a task that has neither waits nor scopes any more.
    pub fn remove_task(&mut self, task: TaskRef) {
        let record = &self.tasks[task.index];
        debug_assert!(record.waits.first().is_none(), "the waits of a task end before it");
        debug_assert!(record.open == 0 && record.around == NONE, "its scopes close before it");
        self.tasks.remove(task);
    }

    /// Takes all remaining records, because the kernel is gone. Empties the queues.
    pub(crate) fn clear(&mut self) -> impl Sized + use<> {
        for (_, wait) in self.waits.iter() {
            // A queue belongs to a primitive, which may outlive the kernel. Its list would then
            // name rows of other waits.
            if wait.is_parked()
                && let Trap::Wait { queue, .. } = &wait.trap
            {
                queue.waiters.set(List::default());
                queue.len.set(0);
            }
        }
        // `order` goes on, as the serial numbers do.
        (self.sources, self.shields, self.stale_timers) = (0, 0, 0);
        (self.tasks.clear(), self.waits.clear(), self.scopes.clear())
    }

    /// Counts one more wait or scope in `scope`. Returns the scope, which also has the index of
    /// what came in last. A task does not count what is in none of its scopes.
    #[inline]
    pub(crate) fn count_in(&mut self, scope: ScopeId) -> Option<&mut Scope> {
        let scope = self.scopes.get_mut(scope)?;
        scope.inside += 1;
        Some(scope)
    }

    /// Takes one wait or scope off the count of a scope. Removes closed scopes that become empty.
    pub(crate) fn count_out(&mut self, mut at: ScopeId) {
        while let Some(scope) = self.scopes.get_mut(at) {
            debug_assert!(scope.inside > 0, "what leaves a scope was counted in it");
            scope.inside -= 1;
            if scope.inside > 0 || scope.kind != ScopeKind::Closed {
                return;
            }
            // The closed row was kept for its content alone. Without it, the row leaves its own
            // parent in turn, which may be closed too.
            let parent = scope.parent;
            self.scopes.remove(at);
            at = parent;
        }
    }

    /// Adds a wait that a task files in `scope`.
    #[inline(always)]
    pub(crate) fn add_wait(
        &mut self,
        trap: Trap,
        scope: ScopeId,
        task: TaskIndex,
        site: Site,
    ) -> Ticket {
        let (beside, in_queue) = (Links::default(), Links::default());
        let state = WaitState::Filed;
        let wait = Wait { trap, state, scope, task, site, beside, in_queue, waker: None };
        let ticket = self.waits.insert(wait);
        if let Some(scope) = self.count_in(scope) {
            scope.newest_wait = ticket.index;
        }
        let list = &mut self.tasks[task.0].waits;
        list.push(&mut self.waits, ticket.index, |wait| &mut wait.beside);
        ticket
    }

    /// Takes a wait out of the table.
    #[inline(always)]
    pub fn remove_wait(&mut self, ticket: Ticket) -> Option<Wait> {
        let Wait { task, scope, .. } = *self.waits.get(ticket)?;
        let list = &mut self.tasks[task.0].waits;
        list.remove(&mut self.waits, ticket.index, |wait| &mut wait.beside);
        self.count_out(scope);
        self.waits.remove(ticket)
    }

    /// Records that a wait is polled in `scope`, another scope than before. From now on it is in
    /// `scope`.
    pub(crate) fn move_wait(&mut self, ticket: Ticket, scope: ScopeId) {
        debug_assert!(self.waits[ticket.index].scope != scope, "a wait moves to another scope");
        let before = mem::replace(&mut self.waits[ticket.index].scope, scope);
        if let Some(scope) = self.count_in(scope) {
            scope.newest_wait = ticket.index;
        }
        self.count_out(before);
    }

    /// Takes a wait out of its queue, wherever it is in the queue.
    pub fn dequeue(&mut self, queue: &Queue, ticket: Ticket) {
        let mut list = queue.waiters.get();
        list.remove(&mut self.waits, ticket.index, |wait| &mut wait.in_queue);
        queue.waiters.set(list);
        queue.len.set(queue.len.get() - 1);
    }

    /// Returns whether a task may read the reply to a wait. It may read every
    /// reply to its own waits. If the future has moved here from another task, it may read a reply
    /// that has arrived, unless that is an interrupt.
    #[inline]
    pub(crate) fn is_open_to(&self, wait: &Wait, task: TaskIndex) -> bool {
        // An interrupt belongs to the task in which the wait was filed. Another task that polls the
        // future now was neither cancelled nor timed out.
        let moves = |reply: &Reply| !matches!(reply, Reply::Interrupt(_) | Reply::Held(_));
        wait.task == task || matches!(&wait.state, WaitState::Done(reply) if moves(reply))
    }

    /// Iterates over the waits of a task, in the order in which they were filed.
    pub fn waits_of(&self, task: TaskIndex) -> impl Iterator<Item = (Ticket, &Wait)> {
        let list = self.tasks[task.0].waits;
        let next = move |at: &u32| list.after(self.waits[*at].beside);
        let indexes = std::iter::successors(list.first(), next);
        indexes.map(|at| (self.waits.key(at), &self.waits[at]))
    }

    /// Returns whether all other waits of the task have their replies.
    #[must_use]
    pub fn is_only(&self, task: TaskIndex, ticket: Ticket) -> bool {
        self.waits_of(task).all(|(it, wait)| it == ticket || wait.is_done())
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::time::Time;

    #[test]
    fn x10_a_wait_is_the_only_one_if_all_others_have_their_results_wherever_they_are() {
        let site = Location::caller();
        for place in 0..16 {
            let is_set = |bit| place & bit > 0;
            let (is_first, other_is_done) = (is_set(4), is_set(8));
            let mut records = Records::default();
            let task = records.add_task(2, site);
            let root = ScopeId::of(task);
            let mut add = |is_within, is_done| {
                let scope = match is_within {
                    true => records.open(root, ScopeKind::Branch, 1, Time::NEVER, site),
                    false => root,
                };
                let ticket = records.add_wait(Trap::Clock, scope, TaskIndex::of(task), site);
                let state = if is_done { WaitState::Done(Reply::Done) } else { WaitState::Parked };
                records.waits[ticket.index].state = state;
                ticket
            };
            let first = add(is_set(1), other_is_done && !is_first);
            let second = add(is_set(2), other_is_done && is_first);
            let asked = if is_first { first } else { second };
            assert_eq!(records.is_only(TaskIndex::of(task), asked), other_is_done, "{place}");
        }
    }
}
