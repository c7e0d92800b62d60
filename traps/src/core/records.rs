//! The records at the gate: waits, and the scopes around them.
//!
//! A *wait* is one trap, from the poll that files it until its reply is read. A *scope* is a region
//! of a task whose waits can be interrupted together: a timeout, a guard, a branch of a combinator,
//! a shield, or the whole task. Both are rows of a table here. The kernel and the futures
//! keep no copy of them.
//!
//! A scope knows the scope around it, and a task knows its waits. No record lists the content of a
//! scope; a scope only counts it. **A wait, or a scope, is *in* the scope that polled it last.** So
//! every question is answered by a walk from the inside out, and opening or closing a scope changes
//! no list. A scope can close while it still contains something. Its record then stays, marked
//! [`ScopeKind::Closed`], as a link to the outer scope, until it is empty.
//!
//! A scope can *fire*, and then interrupts waits inside it. Which wait it ends is the second
//! reading (`interrupts/`). Here, a scope only has a field for it, which is `None` in most.
//!
//! The obvious way is a tree with lists of children, which `fire` walks from the outside in. Each
//! opening and closing then costs four more links, a closing scope has to move its content, and
//! `fire` has to mark each branch in advance.
//!
//! This file calls no user code and reads no clock.

use std::mem;
use std::task::Waker;

use super::protocol::{Reply, ScopeKind, Trap};
use super::table::{
    Links, List, NONE, OfScope, OfTask, OfWait, Queue, ScopeId, Site, Table, TaskIndex, TaskRef,
    Ticket,
};
use crate::interrupts::interrupt::{Fired, Interrupt};
use crate::time::Time;

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

/// A scope: a region of a task whose waits can be interrupted together.
#[derive(Debug)]
pub struct Scope {
    /// The kind of the scope.
    pub kind: ScopeKind,
    /// Whether the deadline is in the kernel's timer heap.
    pub has_timer: bool,
    /// False for a scope around a whole task: a cancellation, or a connection deadline.
    pub is_inner: bool,
    /// The number of the scope, from 1 in the order of opening, or 0 for a scope without a number.
    pub number: u64,
    /// The task of the scope, which outlives it.
    pub task: TaskIndex,
    /// The scope, or the task, that polled this scope last. For a scope around a whole task: the
    /// next one out, or [`ScopeId::NONE`].
    pub parent: ScopeId,
    /// The rank of the last source of interrupts when this scope was opened. A source with a larger
    /// rank fired after that.
    pub(crate) order: u64,
    /// The number of waits and scopes in this scope, without those in inner scopes.
    pub(crate) inside: u32,
    /// The index of the newest wait in this scope, and of the newest inner scope.
    pub(crate) newest: (u32, u32),
    /// The deadline of the scope. That of a guard is in the deadline table until it fires.
    pub deadline: Time,
    /// The call site that opened the scope.
    pub site: Site,
    /// The number of the log line that reports the opening.
    pub line: u64,
    /// The facts about the scope as a source of interrupts, if the scope has fired.
    pub fired: Option<Box<Fired>>,
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
    /// The index of the innermost scope around the whole task, or [`NONE`]. Most tasks have none:
    /// such a scope is opened when it fires.
    pub(crate) around: u32,
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
    /// The number of open scopes that have fired.
    pub sources: usize,
    /// The number of open shields.
    pub(crate) shields: usize,
    /// The number of timers whose wait or scope has ended since the kernel's heap was last rebuilt.
    pub stale_timers: usize,
    /// The rank of the last source.
    pub(crate) order: u64,
}

/// The methods that open and close scopes.
impl Records {
    /// Opens a scope inside `parent`.
    #[inline]
    pub fn open(
        &mut self,
        parent: ScopeId,
        kind: ScopeKind,
        number: u64,
        deadline: Time,
        site: Site,
    ) -> ScopeId {
        debug_assert!(
            parent.task().is_some() || self.is_open(parent),
            "a scope is opened inside a task or an open scope"
        );
        let task = match parent.task() {
            Some(task) => TaskIndex::of(task),
            None => self.scopes[parent.index].task,
        };
        let scope = self.new_scope(task, kind, number, site);
        let scope = Scope { parent, deadline, is_inner: true, ..scope };
        // Counted so that `is_bare` looks through the scopes of the thread only if there is a
        // shield at all.
        self.shields += usize::from(kind == ScopeKind::Shield);
        let scope = self.scopes.insert(scope);
        self.tasks[task.0].open += 1;
        if let Some(newest) = self.count_in(parent) {
            newest.1 = scope.index;
        }
        scope
    }

    pub(crate) fn new_scope(
        &self,
        task: TaskIndex,
        kind: ScopeKind,
        number: u64,
        site: Site,
    ) -> Scope {
        Scope {
            kind,
            has_timer: false,
            is_inner: false,
            number,
            task,
            parent: ScopeId::NONE,
            // Every source so far fired before this scope was opened, and none of the later ones
            // did.
            order: self.order,
            inside: 0,
            newest: (NONE, NONE),
            deadline: Time::NEVER,
            site,
            line: 0,
            fired: None,
        }
    }

    /// Records that a scope is polled inside `parent`, another scope than before. From now on it is
    /// in `parent`.
    pub(crate) fn move_scope(&mut self, scope: ScopeId, parent: ScopeId) {
        let before = mem::replace(&mut self.scopes[scope.index].parent, parent);
        if let Some(newest) = self.count_in(parent) {
            newest.1 = scope.index;
        }
        self.count_out(before);
    }

    /// Closes a scope. If it has fired and no wait has taken its interrupt, the interrupt is lost.
    #[inline(always)]
    pub fn close(&mut self, scope: ScopeId) -> Option<Scope> {
        let found = self.scopes.get(scope).filter(|found| found.kind != ScopeKind::Closed)?;
        // A wait or a scope that is still inside finds its outer scope through this row. So the row
        // stays, marked Closed, until it is empty.
        let is_empty = found.inside == 0;
        let closed = if is_empty { self.scopes.remove(scope)? } else { self.close_occupied(scope) };
        // The entry stays in the heap. To find it there would cost more than to skip it when it is
        // due.
        self.stale_timers += usize::from(closed.has_timer);
        self.sources -= usize::from(closed.fired.is_some());
        self.shields -= usize::from(closed.kind == ScopeKind::Shield);
        if closed.is_inner {
            self.tasks[closed.task.0].open -= 1;
            // A row that stays is still inside its parent, and so keeps its parent.
            if is_empty {
                self.count_out(closed.parent);
            }
        } else {
            self.close_around(scope, &closed);
        }
        Some(closed)
    }

    /// Replaces a scope that still contains waits or scopes by a row of the kind
    /// [`ScopeKind::Closed`].
    #[cold]
    fn close_occupied(&mut self, scope: ScopeId) -> Scope {
        let found = &self.scopes[scope.index];
        debug_assert!(found.inside > 0, "a row stays only for what is in it");
        let Scope { task, parent, inside, is_inner, site, .. } = *found;
        let step = self.new_scope(task, ScopeKind::Closed, 0, site);
        let step = Scope { parent, inside, is_inner, ..step };
        mem::replace(&mut self.scopes[scope.index], step)
    }

    /// Takes a closed scope around a whole task out of the chain of parents.
    #[cold]
    fn close_around(&mut self, scope: ScopeId, closed: &Scope) {
        let around = &mut self.tasks[closed.task.0].around;
        if *around == scope.index {
            *around = closed.parent.index;
        }
        let mut at = self.scopes.at(*around).map_or(ScopeId::NONE, |(at, _)| at);
        // Nothing counts the scopes around a task. So walk from the innermost outwards to the one
        // that has the closed scope as its parent, and let it skip that.
        while let Some(inner) = self.scopes.get_mut(at) {
            if inner.parent == scope {
                inner.parent = closed.parent;
            }
            at = inner.parent;
        }
    }

    /// Counts one more wait or scope in `scope`. Returns the field for its index. A task does not
    /// count what is in none of its scopes.
    #[inline]
    fn count_in(&mut self, scope: ScopeId) -> Option<&mut (u32, u32)> {
        let scope = self.scopes.get_mut(scope)?;
        scope.inside += 1;
        Some(&mut scope.newest)
    }

    /// Takes one wait or scope off the count of a scope. Removes closed scopes that become empty.
    fn count_out(&mut self, mut at: ScopeId) {
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
}

/// The methods for the life of tasks and waits.
impl Records {
    /// Adds a task.
    pub fn add_task(&mut self, number: u64, site: Site) -> TaskRef {
        self.tasks.insert(TaskRecord {
            number,
            site,
            waits: List::default(),
            open: 0,
            around: NONE,
            watches_shutdown: false,
        })
    }

    /// Removes a task that has neither waits nor scopes in it any more, with the scopes around it.
    pub fn remove_task(&mut self, task: TaskRef) {
        while let Some((around, _)) = self.step(ScopeId::of(task)) {
            self.close(around);
        }
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
        (self.sources, self.shields, self.stale_timers) = (0, 0, 0);
        (self.tasks.clear(), self.waits.clear(), self.scopes.clear())
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
        if let Some(newest) = self.count_in(scope) {
            newest.0 = ticket.index;
        }
        let waits = &mut self.tasks[task.0].waits;
        waits.push(&mut self.waits, ticket.index, |wait| &mut wait.beside);
        ticket
    }

    /// Takes a wait out of the table.
    #[inline(always)]
    pub fn remove_wait(&mut self, ticket: Ticket) -> Option<Wait> {
        let Wait { task, scope, .. } = *self.waits.get(ticket)?;
        let waits = &mut self.tasks[task.0].waits;
        waits.remove(&mut self.waits, ticket.index, |wait| &mut wait.beside);
        self.count_out(scope);
        self.waits.remove(ticket)
    }

    /// Records that a wait is polled in `scope`, another scope than before. From now on it is in
    /// `scope`.
    pub(crate) fn move_wait(&mut self, ticket: Ticket, scope: ScopeId) {
        debug_assert!(self.waits[ticket.index].scope != scope, "a wait moves to another scope");
        let before = mem::replace(&mut self.waits[ticket.index].scope, scope);
        if let Some(newest) = self.count_in(scope) {
            newest.0 = ticket.index;
        }
        self.count_out(before);
    }

    /// Takes a wait out of its queue, wherever it is in the queue.
    pub fn dequeue(&mut self, queue: &Queue, ticket: Ticket) {
        let mut line = queue.waiters.get();
        line.remove(&mut self.waits, ticket.index, |wait| &mut wait.in_queue);
        queue.waiters.set(line);
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
        let waits = self.tasks[task.0].waits;
        let next = move |at: &u32| waits.after(self.waits[*at].beside);
        let indexes = std::iter::successors(waits.first(), next);
        indexes.map(|at| (self.waits.key(at), &self.waits[at]))
    }

    /// Returns whether all other waits of the task have their replies.
    #[must_use]
    pub fn is_only(&self, task: TaskIndex, ticket: Ticket) -> bool {
        self.waits_of(task).all(|(it, wait)| it == ticket || wait.is_done())
    }
}

/// The methods that walk from a scope outwards.
impl Records {
    /// Iterates over `from` and the scopes around it, from the inside out. The scopes around the
    /// whole task come last.
    pub fn around(&self, from: ScopeId) -> impl Iterator<Item = (ScopeId, &Scope)> {
        std::iter::successors(self.step(from), move |(_, scope)| self.step(scope.parent))
    }

    /// Returns the scope `at`. Outside all scopes of a task, returns the innermost scope around the
    /// task, if there is one.
    fn step(&self, at: ScopeId) -> Option<(ScopeId, &Scope)> {
        match at.task() {
            Some(task) => self.scopes.at(self.tasks.get(task)?.around),
            None => Some((at, self.scopes.get(at)?)),
        }
    }

    /// Returns whether a scope is open.
    #[must_use]
    pub fn is_open(&self, scope: ScopeId) -> bool {
        self.scopes.get(scope).is_some_and(|scope| scope.kind != ScopeKind::Closed)
    }

    /// Returns the number of the innermost open scope at or around `from`, as the log shows it. The
    /// number 0 is the task itself.
    #[must_use]
    pub fn number_of(&self, from: ScopeId) -> u64 {
        let mut open = self.around(from).filter(|(_, scope)| scope.kind != ScopeKind::Closed);
        open.next().filter(|(_, scope)| scope.is_inner).map_or(0, |(_, scope)| scope.number)
    }

    /// Returns the number of the innermost open scope at or around `from` that has a line in the
    /// log. The task may have opened others since, in the same poll.
    #[must_use]
    pub fn logged_number_of(&self, from: ScopeId) -> u64 {
        let logged = self.around(from).find(|(_, scope)| scope.line != 0);
        self.number_of(logged.map_or(ScopeId::NONE, |(scope, _)| scope))
    }

    pub(crate) fn is_inside(&self, at: ScopeId, scope: ScopeId) -> bool {
        self.around(at).any(|(around, _)| around == scope)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;

    #[test]
    fn x10_a_wait_is_the_only_one_if_all_others_have_their_results_wherever_they_are() {
        let site = Location::caller();
        for place in 0..16 {
            let is_set = |bit| place & bit > 0;
            let (is_first, other_is_done) = (is_set(4), is_set(8));
            let mut records = Records::default();
            let task = records.add_task(2, site);
            let root = ScopeId::of(task);
            let mut add = |is_inside, is_done| {
                let scope = match is_inside {
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
