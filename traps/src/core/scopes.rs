//! The records at the gate: waits, the scopes around them, and what is pending in the scopes.
//!
//! A *wait* is one trap, from the poll that files it until its reply is read. A *scope* is a region
//! of a task whose waits can be interrupted together: the task itself, a timeout, a guard, a branch
//! of a combinator, or a shield. Both are rows of a table here. The kernel and the futures
//! keep no copy of them.
//!
//! A scope knows the scope around it, and a task knows its waits. No record lists the content of a
//! scope; a scope only counts it. **A wait, or a scope, is *in* the scope that polled it last.** So
//! every question is answered by a walk from the inside out, and opening or closing a scope changes
//! no list. If something is still in a scope when it closes, its record stays as a step on the way
//! out, of the kind [`ScopeKind::Closed`], until nothing is in it.
//!
//! A scope that *fires* becomes a *source* of interrupts:
//!
//! > A source is pending at itself, and at every branch inside it that was open when it fired. When
//! > it fires, each parked wait without a shield on its way out takes it, at the first such place.
//! > If no parked wait does, the next wait that is filed takes it. Taking removes it from the whole
//! > way. If the task never reads it, it goes back to the place where it was taken, and to each
//! > place further out that no other wait inside has taken.
//!
//! For example, a timeout around `join(a, b)` fires while both branches sleep. It is pending at
//! branch `a`, at branch `b` and at itself. The wait of `a` takes it at `a`, and removes it there
//! and at the timeout itself. The wait of `b` takes it at `b`. If `b` is shielded, it stays pending
//! at `b`, and ends the first blocking trap after the shield.
//!
//! The source stores the places at which it is *not* pending any more (`places`), because most
//! sources fire inside one branch or none. A branch was open when a source fired if the branch has
//! the lower `order`.
//!
//! The obvious way is a tree with lists of children, which `fire` walks from the outside in. Each
//! opening and closing then costs four more links, a closing scope has to move its content, and
//! `fire` has to mark each branch in advance.
//!
//! This file calls no user code and reads no clock.

use std::collections::BTreeMap;
use std::mem;
use std::task::Waker;

use super::interrupt::{Delivery, Interrupt, Kind};
use super::protocol::{Reply, ScopeKind, Trap};
use super::table::{
    Links, List, NONE, OfScope, OfWait, Queue, ScopeId, Site, Table, TaskId, TaskRef, Ticket,
};
use crate::parts::deadlines::DeadlineTable;
use crate::time::Time;

/// A wait, from the poll that files it until its reply is read or its future is dropped. A trap, a
/// parked wait and a reply are stored only here.
#[derive(Debug)]
pub struct Wait {
    /// The trap that the task has filed.
    pub trap: Trap,
    /// The progress of the wait.
    pub state: WaitState,
    /// The scope that polled the wait last.
    pub scope: ScopeId,
    /// The index of the scope around the task. An index is enough, because the task outlives its
    /// waits.
    pub root: u32,
    /// The index of the task in the table of its kernel.
    pub task: u32,
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
    /// Whether the task is polled when the shutdown begins. Used in a root only.
    pub watches_shutdown: bool,
    /// Whether the scope was opened inside another scope. If not, it is a root, or is around a
    /// whole task.
    pub is_inner: bool,
    /// The number of the scope, from 1 in the order of opening, or 0 for a scope without a number.
    /// A root has the number of its task.
    pub number: u64,
    /// The scope around the task.
    pub root: TaskRef,
    /// The scope that polled this scope last, or [`ScopeId::NONE`] for the outermost scope of a
    /// task.
    pub parent: ScopeId,
    /// The rank of the last source when this scope was opened.
    order: u64,
    /// The number of waits and scopes in this scope, without those in inner scopes.
    inside: u32,
    /// The index of the newest wait in this scope, and of the newest inner scope.
    newest: (u32, u32),
    /// The number of open scopes in the task. Used in a root only.
    pub open: u32,
    /// The waits of the task, in the order in which they were filed. Used in a root only.
    waits: List,
    /// The deadline of the scope, unless it is in the deadline table.
    pub deadline: Time,
    /// The index of the task in the table of its kernel. Used in a root only.
    pub task: u32,
    /// The call site that opened the scope.
    pub site: Site,
    /// The number of the log line that reports the opening.
    pub line: u64,
    /// The facts about the scope as a source of interrupts, if the scope has fired.
    pub fired: Option<Box<Fired>>,
}

/// A source of interrupts: the facts about a scope that has fired.
#[derive(Debug, Default)]
pub struct Fired {
    /// The rank among all sources of this thread. A cancellation has the rank that it took when it
    /// was asked for, because a poll may open branches between that and the kernel's answer.
    pub order: u64,
    /// The number of the `fire` or `cancel` line in the log.
    pub line: u64,
    /// The number of the task that asked for the cancellation.
    pub by: Option<TaskId>,
    /// The reason of the cancellation.
    pub reason: &'static str,
    /// The places where a wait took the source.
    places: BTreeMap<ScopeId, Place>,
}

/// A place where a source is pending when it fires: the scope itself, or a branch inside it.
#[derive(Debug)]
struct Place {
    is_pending: bool,
    /// Whether it became pending again in a poll, and the kernel has not come to that post yet. A
    /// trap that the same poll filed earlier must not take it.
    is_ahead: bool,
    /// The number of waits inside that have taken the source here and have not given it back.
    taken: u32,
}

impl Fired {
    /// Makes the source of a deadline that has passed, with its rank and the number of its `fire`
    /// line in the log.
    #[must_use]
    pub fn by_deadline(order: u64, line: u64) -> Fired {
        Fired { order, line, ..Fired::default() }
    }

    /// Makes the source of a cancellation, with its rank, its reason, and the task that cancelled,
    /// if there is one.
    #[must_use]
    pub fn by_cancel(order: u64, by: Option<TaskId>, reason: &'static str) -> Fired {
        Fired { order, by, reason, ..Fired::default() }
    }

    fn place(&mut self, at: ScopeId) -> &mut Place {
        self.places.entry(at).or_insert(Place { is_pending: true, is_ahead: false, taken: 0 })
    }

    fn is_pending(&self, at: ScopeId) -> bool {
        self.places.get(&at).is_none_or(|place| place.is_pending)
    }

    fn is_open_to_traps(&self, at: ScopeId) -> bool {
        self.places.get(&at).is_none_or(|place| place.is_pending && !place.is_ahead)
    }
}

impl Scope {
    /// Returns whether the scope has fired and a wait has taken the source at the scope itself, and
    /// has not given it back. `own` is the name of the scope.
    #[must_use]
    pub fn was_taken(&self, own: ScopeId) -> bool {
        let place = self.fired.as_ref().and_then(|fired| fired.places.get(&own));
        place.is_some_and(|place| place.taken > 0)
    }
}

/// All waits and scopes of a thread.
#[derive(Debug, Default)]
pub struct Records {
    /// The waits.
    pub waits: Table<OfWait, Wait>,
    /// The scopes.
    pub scopes: Table<OfScope, Scope>,
    /// The number of open scopes that have fired.
    pub fired: usize,
    /// The number of open shields.
    shields: usize,
    /// The number of timers whose wait or scope has ended since the kernel's heap was last rebuilt.
    pub stale_timers: usize,
    /// The rank of the last source.
    order: u64,
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
        let root = self.scopes[parent.index].root;
        let scope = self.new_scope(kind, number, site);
        let scope = Scope { root, parent, deadline, is_inner: true, ..scope };
        self.shields += usize::from(kind == ScopeKind::Shield);
        let scope = self.scopes.insert(scope);
        self.scopes[root.index].open += 1;
        self.come_into(parent).1 = scope.index;
        scope
    }

    /// Opens the scope around a new task.
    pub fn open_root(&mut self, number: u64, site: Site) -> TaskRef {
        let root = self.scopes.insert(self.new_scope(ScopeKind::Task, number, site));
        self.scopes[root.index].root = root;
        root
    }

    /// Opens a scope around a whole task: around its root, and inside the earlier scopes around the
    /// same task.
    pub fn open_around(
        &mut self,
        root: TaskRef,
        kind: ScopeKind,
        number: u64,
        site: Site,
    ) -> ScopeId {
        let parent = self.scopes[root.index].parent;
        let scope = Scope { root, parent, ..self.new_scope(kind, number, site) };
        let scope = self.scopes.insert(scope);
        self.scopes[root.index].parent = scope;
        scope
    }

    fn new_scope(&self, kind: ScopeKind, number: u64, site: Site) -> Scope {
        Scope {
            kind,
            has_timer: false,
            watches_shutdown: false,
            is_inner: false,
            number,
            root: ScopeId::NONE,
            parent: ScopeId::NONE,
            order: self.order,
            inside: 0,
            newest: (NONE, NONE),
            open: 0,
            waits: List::default(),
            deadline: Time::NEVER,
            task: 0,
            site,
            line: 0,
            fired: None,
        }
    }

    /// Records that a scope is polled inside `parent`, another scope than before. From now on it is
    /// in `parent`.
    pub(crate) fn enter(&mut self, scope: ScopeId, parent: ScopeId) {
        let before = mem::replace(&mut self.scopes[scope.index].parent, parent);
        self.come_into(parent).1 = scope.index;
        self.leave_scope(before);
    }

    /// Closes a scope. A source that is pending only at this scope is gone.
    #[inline(always)]
    pub fn close(&mut self, scope: ScopeId) -> Option<Scope> {
        let found = self.scopes.get(scope).filter(|found| found.kind != ScopeKind::Closed)?;
        let is_left = found.inside == 0;
        let closed = if is_left { self.scopes.remove(scope)? } else { self.close_occupied(scope) };
        self.stale_timers += usize::from(closed.has_timer);
        self.fired -= usize::from(closed.fired.is_some());
        self.shields -= usize::from(closed.kind == ScopeKind::Shield);
        if closed.is_inner {
            self.scopes[closed.root.index].open -= 1;
            if is_left {
                self.leave_scope(closed.parent);
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
        let Scope { root, parent, inside, is_inner, site, .. } = *found;
        let step = self.new_scope(ScopeKind::Closed, 0, site);
        let step = Scope { root, parent, inside, is_inner, ..step };
        mem::replace(&mut self.scopes[scope.index], step)
    }

    /// Takes a closed scope around a whole task out of the chain of parents.
    fn close_around(&mut self, scope: ScopeId, closed: &Scope) {
        let mut at = if closed.root == scope { ScopeId::NONE } else { closed.root };
        while let Some(inner) = self.scopes.get_mut(at) {
            if inner.parent == scope {
                inner.parent = closed.parent;
            }
            at = inner.parent;
        }
    }

    /// Counts one more wait or scope in `scope`. Returns the field for its index.
    #[inline]
    fn come_into(&mut self, scope: ScopeId) -> &mut (u32, u32) {
        let scope = &mut self.scopes[scope.index];
        scope.inside += 1;
        &mut scope.newest
    }

    /// Takes one wait or scope off the count of a scope. Removes closed scopes that become empty.
    fn leave_scope(&mut self, mut at: ScopeId) {
        while let Some(scope) = self.scopes.get_mut(at) {
            scope.inside -= 1;
            if scope.inside > 0 || scope.kind != ScopeKind::Closed {
                return;
            }
            let parent = scope.parent;
            self.scopes.remove(at);
            at = parent;
        }
    }
}

/// The methods for the life of waits.
impl Records {
    /// Takes all remaining records, because the kernel is gone. Empties the queues.
    pub(crate) fn clear(&mut self) -> impl Sized + use<> {
        for (_, wait) in self.waits.iter() {
            if wait.is_parked()
                && let Trap::Wait { queue, .. } = &wait.trap
            {
                queue.line.set(List::default());
                queue.len.set(0);
            }
        }
        (self.fired, self.shields, self.stale_timers) = (0, 0, 0);
        (self.waits.clear(), self.scopes.clear())
    }

    /// Adds a wait that is filed in `scope` by the task with this root and index.
    #[inline(always)]
    pub(crate) fn add(&mut self, trap: Trap, scope: ScopeId, at: (u32, u32), site: Site) -> Ticket {
        let (root, task) = at;
        let (beside, in_queue) = (Links::default(), Links::default());
        let state = WaitState::Filed;
        let wait = Wait { trap, state, scope, root, task, site, beside, in_queue, waker: None };
        let ticket = self.waits.insert(wait);
        self.come_into(scope).0 = ticket.index;
        let waits = &mut self.scopes[root].waits;
        waits.push(&mut self.waits, ticket.index, |wait| &mut wait.beside);
        ticket
    }

    /// Takes a wait out of the table.
    #[inline(always)]
    pub fn take(&mut self, ticket: Ticket) -> Option<Wait> {
        let Wait { root, scope, .. } = *self.waits.get(ticket)?;
        let waits = &mut self.scopes[root].waits;
        waits.remove(&mut self.waits, ticket.index, |wait| &mut wait.beside);
        self.leave_scope(scope);
        self.waits.remove(ticket)
    }

    /// Records that a wait is polled in `scope`, another scope than before. From now on it is in
    /// `scope`.
    pub(crate) fn move_wait(&mut self, ticket: Ticket, scope: ScopeId) {
        let before = mem::replace(&mut self.waits[ticket.index].scope, scope);
        self.come_into(scope).0 = ticket.index;
        self.leave_scope(before);
    }

    /// Takes a wait out of its queue, at whatever position it is.
    pub fn leave(&mut self, queue: &Queue, ticket: Ticket) {
        let mut line = queue.line.get();
        line.remove(&mut self.waits, ticket.index, |wait| &mut wait.in_queue);
        queue.line.set(line);
        queue.len.set(queue.len.get() - 1);
    }

    /// Returns whether a task, given by its root, may read the reply to a wait. It may read every
    /// reply to its own waits. Of another task's wait, it may read a reply that has arrived and is
    /// no interrupt.
    #[inline]
    pub(crate) fn is_open_to(&self, wait: &Wait, task: u32) -> bool {
        let moves = |reply: &Reply| !matches!(reply, Reply::Interrupt(_) | Reply::Held(_));
        wait.root == task || matches!(&wait.state, WaitState::Done(reply) if moves(reply))
    }

    /// Iterates over the waits of a task, given by its root, in the order in which they were filed.
    pub fn waits_of(&self, root: u32) -> impl Iterator<Item = (Ticket, &Wait)> {
        let waits = self.scopes[root].waits;
        let next = move |at: &u32| waits.after(self.waits[*at].beside);
        let indexes = std::iter::successors(waits.first(), next);
        indexes.map(|at| (self.waits.key(at), &self.waits[at]))
    }

    /// Returns whether all other waits of the task have their replies.
    #[must_use]
    pub fn is_only(&self, root: u32, ticket: Ticket) -> bool {
        self.waits_of(root).all(|(it, wait)| it == ticket || wait.is_done())
    }
}

/// The methods that walk from a scope outwards.
impl Records {
    /// Iterates over `from` and the scopes around it, from the inside out.
    pub fn around(&self, from: ScopeId) -> impl Iterator<Item = (ScopeId, &Scope)> {
        let open = |at: ScopeId| self.scopes.get(at).map(|scope| (at, scope));
        std::iter::successors(open(from), move |(_, scope)| open(scope.parent))
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

    fn is_inside(&self, at: ScopeId, scope: ScopeId) -> bool {
        self.around(at).any(|(around, _)| around == scope)
    }

    /// Finds the nearest timeout at or around `from`.
    #[must_use]
    pub fn nearest_timeout(&self, from: ScopeId) -> Option<ScopeId> {
        self.around(from).find(|(_, scope)| scope.kind.is_timeout()).map(|(at, _)| at)
    }

    /// Returns whether the future inside a scope waits *bare*: for foreign wakers alone, in no trap
    /// and in no shield.
    #[must_use]
    pub fn is_bare(&self, scope: ScopeId) -> bool {
        let Scope { root, inside, is_inner, .. } = self.scopes[scope.index];
        // A scope around a whole task does not count its content.
        if is_inner && inside == 0 {
            return true;
        }
        let is_bare = |wait: &Wait| wait.is_done() || !self.is_inside(wait.scope, scope);
        // Without these counts, each timeout that fires and each task that is cancelled would look
        // at all scopes of the thread.
        let may_have = self.shields > 0 && self.scopes[root.index].open > 0;
        let has_shield = || self.inside(scope).any(|(_, inner)| inner.kind == ScopeKind::Shield);
        self.waits_of(root.index).all(|(_, wait)| is_bare(wait)) && !(may_have && has_shield())
    }

    /// Iterates over the open scopes inside a scope, in no meaningful order. O(scopes).
    fn inside(&self, scope: ScopeId) -> impl Iterator<Item = (ScopeId, &Scope)> {
        self.scopes.iter().filter(move |(at, _)| *at != scope && self.is_inside(*at, scope))
    }

    /// Finds the nearest deadline in force in a scope.
    #[must_use]
    pub fn in_force(&self, from: ScopeId, deadlines: &DeadlineTable) -> Option<InForce> {
        let mut soonest: Option<InForce> = None;
        for (_, scope) in self.around(from) {
            let deadline = match scope.kind {
                ScopeKind::Shield => break,
                ScopeKind::Guard { slot: Some(slot), .. } if scope.fired.is_none() => {
                    deadlines.at(slot)
                }
                kind if kind.is_timeout() => scope.deadline,
                _ => continue,
            };
            if deadline != Time::NEVER && soonest.is_none_or(|found| deadline <= found.deadline) {
                let set_at = (scope.kind == ScopeKind::Timeout).then_some(scope.site);
                soonest = Some(InForce { deadline, scope: scope.number, set_at });
            }
        }
        soonest
    }
}

/// The nearest deadline in force, and the scope that set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The deadline.
    pub deadline: Time,
    /// The number of the scope, as the log shows it.
    pub scope: u64,
    /// The call site that opened the scope. `None` for a connection deadline, which many call sites
    /// arm.
    pub set_at: Option<Site>,
}

/// The methods that deliver interrupts.
impl Records {
    /// Takes the rank of the next source. A branch that is opened from now on was not open when
    /// that source fired.
    pub fn take_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Makes a scope a source of interrupts. Returns the parked waits that it ends, oldest first,
    /// each with the place where the source is pending for it.
    pub fn fire(&mut self, source: ScopeId, fired: Fired) -> Vec<(Ticket, ScopeId)> {
        self.forget(source);
        self.fired += 1;
        self.scopes[source.index].fired = Some(Box::new(fired));
        self.reached(source)
    }

    /// Forgets that a scope has fired. Returns whether it had.
    pub fn forget(&mut self, source: ScopeId) -> bool {
        let fired = self.scopes.get_mut(source).and_then(|scope| scope.fired.take());
        self.fired -= usize::from(fired.is_some());
        fired.is_some()
    }

    /// Lists the parked waits that a source ends, oldest first, each with the place where the
    /// source is pending for it.
    #[must_use]
    pub fn reached(&self, source: ScopeId) -> Vec<(Ticket, ScopeId)> {
        let reached = |(ticket, wait): (_, &Wait)| {
            let place = wait.is_parked().then(|| self.place(source, wait.scope, false)).flatten();
            place.map(|place| (ticket, place))
        };
        match self.only_wait_in(source) {
            Some(only) => reached(only).into_iter().collect(),
            None => {
                let waits = self.waits_of(self.scopes[source.index].root.index);
                waits.filter_map(reached).collect()
            }
        }
    }

    /// Returns the only wait inside a scope, if it can be found without a look at all waits of the
    /// task. This is so for most timeouts. Otherwise a task with many timeouts would look at all
    /// its waits for each timeout that fires.
    fn only_wait_in(&self, mut scope: ScopeId) -> Option<(Ticket, &Wait)> {
        loop {
            let found = self.scopes.get(scope).filter(|found| found.inside == 1)?;
            let (wait, inner) = found.newest;
            if let Some(only) = self.waits.at(wait).filter(|(_, wait)| wait.scope == scope) {
                return Some(only);
            }
            (scope, _) = self.scopes.at(inner).filter(|(_, it)| it.parent == scope)?;
        }
    }

    /// Returns the places on the way from `from` out to `source`: the branches that were open when
    /// `source` fired, and `source` itself. Returns no place if a shield is on the way, unless
    /// `shields` is set.
    fn way(&self, source: ScopeId, from: ScopeId, shields: bool) -> Vec<ScopeId> {
        let order = self.scopes[source.index].fired.as_ref().map_or(0, |fired| fired.order);
        let mut places = Vec::new();
        for (at, scope) in self.around(from) {
            match scope.kind {
                _ if at == source => {
                    places.push(at);
                    return places;
                }
                ScopeKind::Branch if scope.order < order => places.push(at),
                ScopeKind::Shield if !shields => break,
                _ => {}
            }
        }
        Vec::new()
    }

    /// Returns the first scope, from `from` outwards to `source`, in which the interrupt of
    /// `source` is pending for a trap.
    #[must_use]
    pub fn place(&self, source: ScopeId, from: ScopeId, shields: bool) -> Option<ScopeId> {
        let fired = self.scopes.get(source)?.fired.as_ref()?;
        self.way(source, from, shields).into_iter().find(|place| fired.is_open_to_traps(*place))
    }

    /// Finds the source that will interrupt a wait in `from`, and the place where the wait takes it.
    /// A cancellation comes first, and then the source that fired first.
    #[must_use]
    pub fn pending(&self, from: ScopeId, shields: bool) -> Option<(ScopeId, ScopeId)> {
        let sources = self.around(from).filter_map(|(source, scope)| {
            let rank = (scope.kind != ScopeKind::Task, scope.fired.as_ref()?.order);
            Some((rank, (source, self.place(source, from, shields)?)))
        });
        sources.min_by_key(|(rank, _)| *rank).map(|(_, found)| found)
    }

    /// Takes the interrupt of `source` at every place on the way out from `from`.
    pub fn take_pending(&mut self, source: ScopeId, from: ScopeId) {
        let way = self.way(source, from, true);
        let Some(fired) = &mut self.scopes[source.index].fired else { return };
        for at in way {
            let place = fired.place(at);
            (place.is_pending, place.taken) = (false, place.taken + 1);
        }
    }

    /// Puts back an interrupt of `source` that was taken at `place` and not read. The interrupt is
    /// pending again there, and further out at each place that no other wait has taken. Returns
    /// the places on the way at which it is pending.
    pub fn put_back(&mut self, source: ScopeId, place: ScopeId, order: u64) -> Vec<ScopeId> {
        let Some(scope) = self.scopes.get(source) else { return Vec::new() };
        if scope.fired.as_ref().is_none_or(|fired| fired.order != order) {
            return Vec::new();
        }
        let is_there = self.scopes.get(place).is_some();
        let mut way = self.way(source, if is_there { place } else { source }, true);
        let Some(fired) = &mut self.scopes[source.index].fired else { return Vec::new() };
        way.retain(|at| {
            let it = fired.place(*at);
            it.taken = it.taken.saturating_sub(1);
            it.is_pending |= it.taken == 0 || *at == place;
            it.is_pending
        });
        way
    }

    /// Lists the places at which a source is pending. O(scopes).
    #[must_use]
    pub fn places_of(&self, source: ScopeId) -> Vec<ScopeId> {
        let Some(fired) = self.scopes.get(source).and_then(|scope| scope.fired.as_ref()) else {
            return Vec::new();
        };
        let is_branch =
            |scope: &Scope| scope.kind == ScopeKind::Branch && scope.order < fired.order;
        let is_place = |at: ScopeId, scope: &Scope| {
            at == source || is_branch(scope) && self.is_inside(at, source)
        };
        let places = self.scopes.iter().filter(|(at, scope)| is_place(*at, scope));
        places.map(|(at, _)| at).filter(|at| fired.is_pending(*at)).collect()
    }

    /// Makes enclosing deadlines that have passed pending again, because a timeout closes: each at
    /// the first branch on the way out, or at itself if there is no branch. Returns the sources
    /// with their places. Traps take nothing there before [`Records::pend_again`].
    pub(crate) fn close_inside(&mut self, closing: ScopeId) -> Vec<(ScopeId, ScopeId)> {
        let timeout = self.scopes.get(closing).filter(|scope| scope.kind.is_timeout());
        let Some(&Scope { parent, .. }) = timeout else { return Vec::new() };
        let around = self.around(parent).take_while(|(_, scope)| scope.kind != ScopeKind::Shield);
        let passed = around.filter(|(_, scope)| scope.kind.is_timeout() && scope.fired.is_some());
        let first = |(source, _)| (source, self.way(source, parent, true)[0]);
        let passed: Vec<_> = passed.map(first).collect();
        for (source, first) in &passed {
            let fired = self.scopes[source.index].fired.as_mut();
            let place = fired.expect("it has fired").place(*first);
            place.is_ahead |= !mem::replace(&mut place.is_pending, true);
        }
        passed
    }

    /// Makes a source pending at `place` again for traps, too, if both are still there.
    pub fn pend_again(&mut self, source: ScopeId, place: ScopeId) {
        if self.is_open(place)
            && let Some(fired) = self.scopes.get_mut(source).and_then(|it| it.fired.as_mut())
        {
            let place = fired.place(place);
            (place.is_pending, place.is_ahead) = (true, false);
        }
    }

    /// Makes the interrupt of `source`, which is pending at `place`, as a trap in `from` sees it.
    #[must_use]
    pub fn interrupt(
        &self,
        source: ScopeId,
        place: ScopeId,
        from: ScopeId,
        reading: Time,
    ) -> Interrupt {
        let scope = &self.scopes[source.index];
        let position = self.nearest_timeout(from);
        let fired = scope.fired.as_ref();
        let is_own = match scope.kind {
            ScopeKind::Deadline(_) => position.is_none(),
            _ => position == Some(source),
        };
        let kind = match (scope.kind, is_own) {
            (ScopeKind::Task, _) => Kind::Cancelled,
            (_, true) => Kind::TaskTimeout,
            (_, false) => Kind::TimeoutCancellation,
        };
        Interrupt::new(Delivery {
            kind,
            source,
            order: fired.map_or(0, |fired| fired.order),
            position,
            place,
            passed: false,
            deadline: scope.deadline,
            reading,
            // A guard adds its call site when it returns the error. Until then, its `arm` line has
            // the site.
            set_at: (scope.kind == ScopeKind::Timeout).then_some(scope.site),
            by: fired.and_then(|fired| fired.by),
            reason: fired.map_or("", |fired| fired.reason),
            scope: if scope.kind.is_timeout() { scope.number } else { 0 },
        })
    }

    /// Adjusts an interrupt that is read in `reader`, which is not the scope of its wait.
    pub(crate) fn move_interrupt(&self, interrupt: &mut Interrupt, reader: ScopeId) {
        let has_left = !self.is_inside(reader, interrupt.delivery().source);
        interrupt.move_to(self.nearest_timeout(reader), has_left);
    }

    /// Takes the interrupt that is pending for a trap in `from`.
    pub fn take_interrupt(&mut self, from: ScopeId, reading: Time) -> Option<Interrupt> {
        let (source, place) = self.pending(from, false)?;
        self.take_pending(source, from);
        Some(self.interrupt(source, place, from, reading))
    }

    /// Takes the interrupt of a scope that has fired around waits on foreign wakers alone.
    pub(crate) fn take_bare(&mut self, scope: ScopeId, reading: Time) -> Option<Interrupt> {
        let fired = self.scopes.get(scope)?.fired.as_ref()?;
        let is_pending = || fired.is_pending(scope) || !self.places_of(scope).is_empty();
        if !self.is_bare(scope) || !is_pending() {
            return None;
        }
        self.take_pending(scope, scope);
        Some(self.interrupt(scope, scope, scope, reading))
    }
}

/// The invariants of the records, as code.
impl Records {
    /// Checks that the counts and the lists agree with the parents. For tests: O(waits + scopes).
    ///
    /// # Panics
    ///
    /// Panics if an invariant is broken.
    pub fn check(&self) {
        let fired = self.scopes.iter().filter(|(_, scope)| scope.fired.is_some()).count();
        assert_eq!(self.fired, fired, "the scopes that have fired are counted");
        for (at, scope) in self.scopes.iter() {
            let waits = self.waits.iter().filter(|(_, wait)| wait.scope == at).count();
            let within = |inner: &Scope| inner.is_inner && inner.parent == at;
            let scopes = self.scopes.iter().filter(|(_, inner)| within(inner)).count();
            assert_eq!(scope.inside as usize, waits + scopes, "{at:?} counts what is in it");
            let is_step = scope.kind == ScopeKind::Closed;
            assert!(!is_step || scope.inside > 0, "{at:?} is closed, and nothing is in it");
            assert!(!is_step || scope.fired.is_none(), "{at:?} is closed, and has fired");
            let is_in_task = self.around(at).any(|(outer, _)| outer == scope.root);
            assert!(is_in_task || !scope.is_inner, "{at:?} is in its task");
            if scope.root == at {
                let is_open = |it: &Scope| it.is_inner && it.kind != ScopeKind::Closed;
                let of_task = |(_, it): &(_, &Scope)| it.root == at && is_open(it);
                assert_eq!(scope.open as usize, self.scopes.iter().filter(of_task).count());
                let filed = self.waits.iter().filter(|(_, wait)| wait.root == at.index).count();
                assert_eq!(self.waits_of(at.index).count(), filed, "{at:?} lists its waits");
            }
        }
        for (ticket, wait) in self.waits.iter() {
            assert!(self.scopes.get(wait.scope).is_some(), "{ticket:?} is in a scope");
            if wait.is_parked()
                && let Trap::Wait { queue, .. } = &wait.trap
            {
                let next = |at: &u32| queue.line.get().after(self.waits[*at].in_queue);
                let line = std::iter::successors(queue.line.get().first(), next);
                let line: Vec<u32> = line.collect();
                assert_eq!(queue.len.get(), line.len() as u64, "a queue counts its waits");
                assert!(line.contains(&ticket.index), "{ticket:?} is in its queue");
            }
        }
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
            let root = records.open_root(1, site);
            let mut add = |is_inside, is_done| {
                let scope = match is_inside {
                    true => records.open(root, ScopeKind::Branch, 1, Time::NEVER, site),
                    false => root,
                };
                let ticket = records.add(Trap::Clock, scope, (root.index, 0), site);
                let state = if is_done { WaitState::Done(Reply::Done) } else { WaitState::Parked };
                records.waits[ticket.index].state = state;
                ticket
            };
            let first = add(is_set(1), other_is_done && !is_first);
            let second = add(is_set(2), other_is_done && is_first);
            let asked = if is_first { first } else { second };
            assert_eq!(records.is_only(root.index, asked), other_is_done, "{place}");
        }
    }
}
