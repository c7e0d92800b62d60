//! Scopes as a task sees them: opened, entered while the inner future is polled, and closed.

use super::{Gate, LISTENING, in_task, post, with};
use crate::interrupt::Interrupt;
use crate::protocol::{Left, Opening, Post, ScopeId, ScopeKind, Site, TaskRef};
use crate::time::Time;

/// Opens a scope around the futures that are polled next. The kernel learns of it after the poll.
pub(crate) fn open_scope(kind: ScopeKind, deadline: Time, now: Time, site: Site) -> ScopeId {
    in_task(site, |gate, _| {
        let scope = gate.new_scope();
        let parent = gate.scope.get();
        gate.flush();
        gate.opened.set(Some(Opening { scope, parent, kind, deadline, now, site }));
        scope
    })
}

/// Closes a scope. If the kernel has not seen the opening yet, and it was the last entry, the
/// opening is withdrawn.
pub(crate) fn close_scope(task: TaskRef, scope: ScopeId, left: Left) {
    let take_back = |gate: &Gate| gate.task.get() == Some(task) && gate.take_opening_back(scope);
    let taken = with(take_back).unwrap_or(false);
    if !taken {
        post(Post::CloseScope(task, scope, left));
    }
}

/// Whether the running kernel wants every event.
#[inline]
pub(crate) fn is_listening() -> bool {
    LISTENING.get()
}

impl Gate {
    fn take_opening_back(&self, scope: ScopeId) -> bool {
        let is_it = self.opened.get().is_some_and(|opening| opening.scope == scope);
        if !is_it || is_listening() || self.has_sources.get() {
            return false;
        }
        self.opened.set(None);
        self.scopes.free(scope.index);
        true
    }
}

/// Makes `scope` the scope in force until the guard is dropped, even by a panic.
#[inline]
pub(crate) fn enter_scope(scope: ScopeId, is_timeout: bool) -> ScopeGuard {
    with(|gate| {
        let before = (gate.scope.replace(scope.index), gate.timeout.get());
        if is_timeout {
            gate.timeout.set(scope);
        }
        ScopeGuard(before)
    })
    .expect("a scope is entered in a poll")
}

/// Restores the outer scope.
pub(crate) struct ScopeGuard((u32, ScopeId));

impl Drop for ScopeGuard {
    #[inline]
    fn drop(&mut self) {
        with(|gate| {
            gate.scope.set(self.0.0);
            gate.timeout.set(self.0.1);
        });
    }
}

/// The nearest timeout at or around the scope in force, or the root.
pub(crate) fn timeout() -> ScopeId {
    with(|gate| gate.timeout.get()).expect("a timeout is polled inside a task")
}

/// A point in a poll. Later it tells whether the task has filed a request or woken itself since.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(u32);

/// The current moment, if a scope fired around a wait on a foreign waker; usually none has.
#[inline]
pub(crate) fn moment() -> Option<Moment> {
    with(|gate| gate.any_offers.get().then(|| Moment(gate.serial.get()))).flatten()
}

/// The interrupt of `scope`, if it fired and the task has filed nothing since: then the future
/// inside waits for no trap.
pub(crate) fn take_offer(scope: ScopeId, since: Moment) -> Option<Interrupt> {
    with(|gate| {
        if gate.serial.get() != since.0 {
            return None;
        }
        let mut offers = gate.offers.borrow_mut();
        let place = offers.iter().position(|(offered, _)| *offered == scope)?;
        Some(offers.remove(place).1)
    })
    .flatten()
}
