//! The tree of scopes, and the waits in it.
//!
//! A pure structure: it answers questions about the tree, calls nothing foreign and reads no clock.
//! The paragraph that it follows is at the head of the kernel's `interrupts.rs`.

use super::interrupt::Interrupt;
use super::names::{ScopeId, Site, Ticket};
use super::protocol::ScopeKind;
use super::queue::Queue;
use super::records::{On, Records, Scope, Wait, WaitState};
use super::table::{Links, List, NONE};
use crate::time::Time;

impl Records {
    /// Opens a scope inside `parent`, an index.
    pub fn open(
        &mut self,
        parent: u32,
        kind: ScopeKind,
        number: u64,
        deadline: Time,
        site: Site,
    ) -> ScopeId {
        let root = self.scopes[parent].root;
        let new = Scope::new(kind, number, deadline, site);
        let scope = self.scopes.insert(Scope { root, ..new });
        self.attach(scope.index, parent);
        scope
    }

    /// Opens the scope around a new task of that kernel.
    pub fn open_root(&mut self, number: u64, epoch: u32, site: Site) -> ScopeId {
        let scope = self.scopes.insert(Scope::new(ScopeKind::Task, number, Time::NEVER, site));
        let root = &mut self.scopes[scope.index];
        (root.root, root.epoch) = (scope.index, epoch);
        scope
    }

    /// Opens a scope around all of a task: around its root, and inside those that were opened so
    /// before.
    pub fn open_around(&mut self, root: u32, kind: ScopeKind, number: u64, site: Site) -> ScopeId {
        let scope = self.scopes.insert(Scope::new(kind, number, Time::NEVER, site));
        let outer = self.scopes[root].parent;
        self.scopes[scope.index].root = root;
        if outer != NONE {
            self.detach(root, outer);
            self.attach(scope.index, outer);
        }
        self.attach(root, scope.index);
        scope
    }

    fn attach(&mut self, scope: u32, parent: u32) {
        self.scopes[scope].parent = parent;
        let mut children = self.scopes[parent].children;
        children.push(&mut self.scopes, scope, |scope| &mut scope.beside);
        self.scopes[parent].children = children;
    }

    fn detach(&mut self, scope: u32, parent: u32) {
        let mut children = self.scopes[parent].children;
        children.remove(&mut self.scopes, scope, |scope| &mut scope.beside);
        self.scopes[parent].children = children;
        self.scopes[scope].parent = NONE;
    }

    /// Closes a scope. What is still inside it moves to its parent, and what is pending at it alone
    /// is gone. Enclosing deadlines that have passed are pending again where a timeout closes.
    pub fn close(&mut self, scope: ScopeId) -> Option<Scope> {
        let parent = self.scopes.get(scope)?.parent;
        while let Some(child) = self.scopes[scope.index].children.first() {
            self.detach(child, scope.index);
            if parent != NONE {
                self.attach(child, parent);
            }
        }
        while let Some(wait) = self.scopes[scope.index].waits.first() {
            self.unlink(wait);
            if parent != NONE {
                self.link(wait, parent);
            }
        }
        if parent != NONE {
            self.detach(scope.index, parent);
        }
        let closed = self.scopes.remove(scope)?;
        self.fired -= usize::from(closed.fired().is_some());
        if self.fired > 0 && closed.kind.is_timeout() {
            self.make_pending_again(parent);
        }
        Some(closed)
    }

    // ---- Waits -----------------------------------------------------------------------------

    /// Adds a wait to the list of its scope.
    #[inline]
    pub fn add(&mut self, wait: Wait) -> Ticket {
        let scope = wait.scope;
        let ticket = self.waits.insert(wait);
        self.link(ticket.index, scope);
        ticket
    }

    #[inline]
    fn link(&mut self, wait: u32, scope: u32) {
        self.waits[wait].scope = scope;
        let waits = &mut self.scopes[scope].waits;
        waits.push(&mut self.waits, wait, |wait| &mut wait.beside);
    }

    #[inline]
    fn unlink(&mut self, wait: u32) {
        let waits = &mut self.scopes[self.waits[wait].scope].waits;
        waits.remove(&mut self.waits, wait, |wait| &mut wait.beside);
    }

    /// Takes a wait out of the table.
    #[inline]
    pub fn take(&mut self, ticket: Ticket) -> Option<Wait> {
        self.waits.get(ticket)?;
        self.unlink(ticket.index);
        self.waits.remove(ticket)
    }

    /// An interrupt is read in another scope than the one of its wait.
    pub(crate) fn move_interrupt(&self, interrupt: &mut Interrupt, reader: u32) {
        let source = interrupt.delivery().source;
        let is_around = self.around(reader).any(|(index, _)| self.scopes.key(index) == source);
        interrupt.move_to(self.nearest_timeout(reader), !is_around);
    }

    /// Takes a wait out of a queue, wherever it stands.
    pub fn leave(&mut self, queue: &Queue, ticket: Ticket) {
        let mut line = queue.line.get();
        line.remove(&mut self.waits, ticket.index, |wait| &mut wait.in_queue);
        queue.line.set(line);
        queue.len.set(queue.len.get() - 1);
    }

    /// Takes a wait of a kernel that does not run out of its queue, so that a task of another
    /// kernel can wait there. The wait stays parked until its kernel hears that it is withdrawn.
    pub(crate) fn leave_early(&mut self, ticket: Ticket) {
        let WaitState::Parked(on) = &mut self.waits[ticket.index].state else { return };
        if let On::Queue(..) = on
            && let On::Queue(queue, _) = std::mem::replace(on, On::Yield { zero: false })
        {
            self.leave(&queue, ticket);
        }
    }

    /// The root of the task that filed a wait: an index.
    #[must_use]
    pub fn root_of(&self, wait: &Wait) -> u32 {
        self.scopes[wait.scope].root
    }

    /// The tickets of all waits at or inside a scope, in the order in which they were filed.
    #[must_use]
    pub fn waits_inside(&self, scope: u32) -> Vec<Ticket> {
        let mut found: Vec<_> = self.each_wait(scope).collect();
        found.sort_unstable();
        found
    }

    /// The tickets of all waits at or inside a scope, in any order.
    pub(super) fn each_wait(&self, scope: u32) -> impl Iterator<Item = Ticket> {
        self.inside(scope).flat_map(move |inside| {
            let waits = self.scopes[inside].waits;
            let next = move |at: &u32| waits.after(self.waits[*at].beside);
            std::iter::successors(waits.first(), next).map(move |at| self.waits.key(at))
        })
    }

    /// Whether no other wait at or inside a scope is without its result.
    #[must_use]
    pub fn is_only(&self, scope: u32, ticket: Ticket) -> bool {
        self.each_wait(scope).all(|it| it == ticket || self.waits[it.index].is_done())
    }

    // ---- The tree --------------------------------------------------------------------------

    /// `from` and the scopes around it, from the inside out.
    pub fn around(&self, from: u32) -> impl Iterator<Item = (u32, &Scope)> {
        let next = |index: u32| (index != NONE).then(|| (index, &self.scopes[index]));
        std::iter::successors(next(from), move |(_, scope)| next(scope.parent))
    }

    /// `scope` and all scopes inside it, each before those that are in it.
    pub(super) fn inside(&self, scope: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(scope), move |at| self.next_inside(scope, *at))
    }

    /// The scope behind `at` on the way through all that are inside `top`.
    pub(super) fn next_inside(&self, top: u32, at: u32) -> Option<u32> {
        let inner = self.scopes[at].children.first();
        let outer = std::iter::successors(Some(at), |at| Some(self.scopes[*at].parent));
        let beside = |at: u32| {
            let scope = &self.scopes[at];
            self.scopes[scope.parent].children.after(scope.beside)
        };
        inner.or_else(|| outer.take_while(|at| *at != top).find_map(beside))
    }

    /// The numbers and names of the scopes inside a scope.
    #[must_use]
    pub fn scopes_inside(&self, scope: u32) -> Vec<(u64, ScopeId)> {
        let inside = self.inside(scope).skip(1);
        inside.map(|at| (self.scopes[at].number, self.scopes.key(at))).collect()
    }

    /// Whether there is no wait and no scope inside a scope.
    #[must_use]
    pub fn is_empty(&self, scope: u32) -> bool {
        let scope = &self.scopes[scope];
        scope.waits.first().is_none() && scope.children.first().is_none()
    }

    /// The nearest timeout at or around `from`.
    #[must_use]
    pub fn nearest_timeout(&self, from: u32) -> Option<ScopeId> {
        let timeout = self.around(from).find(|(_, scope)| scope.kind.is_timeout());
        timeout.map(|(index, _)| self.scopes.key(index))
    }

    /// Whether what is inside a scope waits *bare*, for foreign wakers alone: in no trap and in no
    /// shield.
    #[must_use]
    pub fn is_bare(&self, scope: u32) -> bool {
        let is_shield = |at: u32| self.scopes[at].kind == ScopeKind::Shield;
        !self.inside(scope).skip(1).any(is_shield)
            && self.each_wait(scope).all(|wait| self.waits[wait.index].is_done())
    }
}

impl Scope {
    fn new(kind: ScopeKind, number: u64, deadline: Time, site: Site) -> Scope {
        Scope {
            kind,
            number,
            root: NONE,
            parent: NONE,
            children: List::default(),
            beside: Links::default(),
            waits: List::default(),
            deadline,
            timer: NONE,
            task: NONE,
            epoch: 0,
            site,
            line: 0,
            watches_shutdown: false,
            interrupts: None,
        }
    }
}

impl Wait {
    /// A wait that is filed in that scope.
    #[inline]
    pub(crate) fn new(scope: u32, task: u32, state: WaitState, site: Site) -> Wait {
        let (beside, in_queue) = (Links::default(), Links::default());
        Wait { scope, task, state, site, beside, in_queue, waker: None }
    }
}
