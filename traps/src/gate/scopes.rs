//! Timeouts and connection deadlines at the gate: they begin without a trap.
//!
//! The kernel is told after the poll, before it looks at what was filed inside. Where nobody
//! listens, a timeout that is over by then, and not late, is taken back if nothing else was filed
//! and nothing is pending in the task: its scope was never anybody's.

use super::now::{Now, now};
use super::{Gate, Stage, post, refuse_outside_a_task};
use crate::deadline::DeadlineSlot;
use crate::protocol::{
    DeadlineName, Filed, Left, Limit, Opening, Post, Reading, ScopeId, Site, TaskRef,
};
use crate::time::Time;

/// Opens a timeout where a task is being polled: its scope, the one around it, and the task.
#[inline]
pub(crate) fn open_timeout(limit: Limit, site: Site) -> (ScopeId, ScopeId, TaskRef) {
    let current = now().and_then(|now| Some((now, now.current()?)));
    let Some((now, current)) = current else { refuse_outside_a_task(site) };
    let opening = {
        let scopes = now.scopes.borrow();
        let table = scopes.as_ref().expect("who polls a task has a table of scopes");
        let reading = table.reading(limit);
        Opening { scope: table.open(), parent: current.scope, limit, reading, site }
    };
    if now.any_filed.replace(true) {
        file_beside(now, opening);
    } else {
        now.opening.set(Some(opening));
    }
    (opening.scope, current.scope, current.task)
}

/// The same where something is filed already.
#[cold]
fn file_beside(now: &Now, opening: Opening) {
    now.keep_order();
    now.tables.borrow_mut().filed.push(Filed::Opening(opening));
}

/// Makes a connection deadline of the task that is being polled.
pub(crate) fn make_deadline(site: Site) -> DeadlineSlot {
    let current = now().and_then(|now| Some((now, now.task.get()?)));
    let Some((now, task)) = current else { refuse_outside_a_task(site) };
    let scopes = now.scopes.borrow();
    let table = scopes.as_ref().expect("who polls a task has a table of scopes");
    table.make_deadline(task.index, |deadline| tell_made(deadline, site))
}

#[cold]
fn tell_made(deadline: DeadlineName, site: Site) {
    post(Post::MakeDeadline { deadline, site });
}

/// Closes a scope.
#[inline(never)]
pub(crate) fn close_scope(scope: ScopeId, left: Left) {
    if !now().is_some_and(|now| take_back(now, scope, left)) {
        tell_closed(scope, left);
    }
}

#[inline(never)]
fn tell_closed(scope: ScopeId, left: Left) {
    if let Some(now) = now()
        && let Some(table) = &*now.scopes.borrow()
    {
        table.close(scope);
    }
    post(Post::CloseScope { scope, left });
}

/// Takes the opening of a scope back if it is all that is filed, nobody wants to know of it, and
/// its end means nothing to others. A value that is late does: it has a line.
#[inline]
fn take_back(now: &Now, scope: ScopeId, left: Left) -> bool {
    let Some(opening) = now.opening.get() else { return false };
    let alone = now.register.stage.get() != Stage::Filed && !now.troubled.get();
    if opening.scope != scope || !alone {
        return false;
    }
    let scopes = now.scopes.borrow();
    let taken = scopes.as_ref().is_some_and(|table| table.take_back(&opening, left));
    if taken {
        now.opening.set(None);
        now.any_filed.set(false);
    }
    taken
}

/// It is this late at most, by the coarse clock of the kernel that runs.
#[inline]
pub(crate) fn time_by_now() -> Time {
    let read = now().and_then(|now| Some(now.scopes.borrow().as_ref()?.deadlines().now()));
    read.unwrap_or(Time::ZERO)
}

/// The deadline of a timeout that is open.
#[cold]
pub(crate) fn deadline_of(scope: ScopeId) -> Time {
    let Some(now) = now() else { return Time::NEVER };
    let told = now.scopes.borrow().as_ref().and_then(|table| table.deadline(scope));
    told.or_else(|| untold_deadline(now, scope)).unwrap_or(Time::NEVER)
}

/// The same for one that opened in this poll.
fn untold_deadline(now: &Now, scope: ScopeId) -> Option<Time> {
    now.unfold();
    let tables = now.tables.borrow();
    let opening = tables.filed.iter().rev().find_map(|filed| match filed {
        Filed::Opening(opening) if opening.scope == scope => Some(opening),
        _ => None,
    })?;
    Some(match opening.reading {
        // Of the coarse one it may be some ms late, but then it is far ahead.
        Reading::Exact(now) | Reading::Bound(now) => opening.limit.from(now),
        Reading::None => opening.limit.from(Time::ZERO),
    })
}

impl Gate {
    /// Takes what is filed, if that is one timeout that opened.
    #[inline]
    pub fn take_opening(&self) -> Option<Opening> {
        let opening = self.now.opening.take()?;
        debug_assert!(
            self.now.tables.borrow().filed.is_empty(),
            "a lone opening is all of the list"
        );
        self.now.any_filed.set(false);
        self.now.register.behind.set(false);
        Some(opening)
    }
}
