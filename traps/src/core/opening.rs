//! Scopes at the gate: opened, entered and closed by the futures around which they are.

use super::gate::{GATE, Gate, in_task, is_listening, with};
use super::interrupt::Interrupt;
use super::names::{ScopeId, Site, TaskRef};
use super::protocol::{ClosedScope, Left, OpenedScope, Post, ScopeKind};
use super::table::NONE;
use crate::time::Time;

/// Opens a scope around the futures that are polled next.
pub(crate) fn open_scope(kind: ScopeKind, deadline: Time, now: Time, site: Site) -> ScopeId {
    let (gate, task) = in_task(site);
    let number = next_scope(gate);
    let scope = gate.records.borrow_mut().open(gate.scope.get(), kind, number, deadline, site);
    if is_listening() {
        let told = OpenedScope { scope, task, number, kind, deadline, now, site };
        gate.post_to(gate.epoch.get(), Post::Opened(Box::new(told)));
    }
    scope
}

/// Opens a scope around all of a task, for a connection deadline.
pub(crate) fn open_around(task: TaskRef, kind: ScopeKind, site: Site) -> Option<ScopeId> {
    let mut records = GATE.get()?.records.borrow_mut();
    records.scopes.get(task)?;
    Some(records.open_around(task.index, kind, 0, site))
}

fn next_scope(gate: &Gate) -> u64 {
    let kernel = gate.kernel.borrow();
    let kernel = kernel.as_deref().expect("a scope is opened in a kernel that runs");
    kernel.scopes.set(kernel.scopes.get() + 1);
    kernel.scopes.get()
}

/// The inside of a scope was polled, and pends: its deadline is to be in the timer heap.
#[inline]
pub(crate) fn set_timer(scope: ScopeId) {
    with(|gate| gate.post_to(gate.epoch.get(), Post::Set(scope)));
}

/// Closes a scope.
pub(crate) fn close_scope(scope: ScopeId, left: Left) {
    let Some(gate) = GATE.get() else { return };
    let mut records = gate.records.borrow_mut();
    let Some(found) = records.scopes.get(scope) else { return };
    let task = records.scopes.key(found.root);
    let epoch = records.scopes[task.index].epoch;
    let Some(closed) = records.close(scope) else { return };
    drop(records);
    if closed.timer != NONE {
        gate.post_to(epoch, Post::Unset(scope, closed.timer));
    }
    let is_numbered = !matches!(closed.kind, ScopeKind::Deadline(_));
    let is_told = closed.line != 0 || is_listening() && epoch == gate.epoch.get();
    if is_told && is_numbered {
        let (number, kind, deadline) = (closed.number, closed.kind, closed.deadline);
        let told = ClosedScope { task, number, kind, deadline, left };
        gate.post_to(epoch, Post::Closed(Box::new(told)));
    }
}

/// Makes `scope` the scope in force until the guard is dropped, even by a panic.
#[inline]
pub(crate) fn enter_scope(scope: ScopeId) -> ScopeGuard {
    with(|gate| ScopeGuard(gate.scope.replace(scope.index))).expect("a scope is entered in a poll")
}

/// Restores the outer scope.
pub(crate) struct ScopeGuard(u32);

impl Drop for ScopeGuard {
    #[inline]
    fn drop(&mut self) {
        with(|gate| gate.scope.set(self.0));
    }
}

/// How often tasks woke themselves so far.
#[inline]
pub(crate) fn self_wakes() -> u32 {
    with(|gate| gate.self_wakes.get()).unwrap_or(0)
}

/// The interrupt of `scope`, if it has fired and what is inside waits for foreign wakers alone: it
/// is in no trap, and the task has not woken itself since `before`.
#[inline]
pub(crate) fn take_bare(scope: ScopeId, before: u32) -> Option<Interrupt> {
    let gate = GATE.get()?;
    let mut records = gate.records.borrow_mut();
    if records.fired == 0 || gate.self_wakes.get() != before {
        return None;
    }
    records.take_bare(scope, gate.now.get())
}

/// The nearest timeout in force.
pub(crate) fn timeout_in_force() -> Option<ScopeId> {
    with(|gate| gate.records.borrow().nearest_timeout(gate.scope.get())).flatten()
}

/// The number of an open scope.
pub(crate) fn scope_number(scope: ScopeId) -> u64 {
    let number = |gate: &Gate| Some(gate.records.borrow().scopes.get(scope)?.number);
    with(number).flatten().unwrap_or(0)
}

/// Forgets what a connection deadline has left pending: it is armed anew.
#[cold]
pub(crate) fn forget(scope: ScopeId) {
    with(|gate| gate.records.borrow_mut().forget(scope));
}
