//! How a future runs inside a scope, and the futures of branches and shields. Those of timeouts and
//! guards, in `timeout.rs` and `deadline.rs`, are built on it.
//!
//! A `Scoped` future opens its scope at its first poll and closes it when it is ready or dropped.
//! While it polls its inner future, its scope is the one in force at the gate, so every wait filed
//! inside is in it. Opening a scope needs no answer of the kernel: the record is made at the gate,
//! and the inner future is polled at once. The kernel learns of a scope only if the inner future
//! pends, because only then does its deadline matter. While the log is on, it learns of every
//! scope.
//!
//! For example, `timeout_after(1s, ready(7))` reads the clock once, opens a scope, polls, and
//! closes the scope. The kernel never learns of it. `timeout_after(1s, sleep(5s))` pends, so the
//! scope goes on the list of new timers, and after the poll the kernel puts its deadline into the
//! timer heap.
//!
//! The invariant: the inner future is dropped before its scope closes, so the posts of its waits
//! come before the close. The kernel serves them later, and until then the row of the scope stays
//! as a link to the outer scope. Before that, `relabel` gives an interrupt that leaves a timeout
//! the name that it has outside.
//!
//! A foreign future has no trap that could fail. If the scope fires while the inner future waits
//! for foreign wakers alone, the next poll takes the interrupt itself and drops the inner future
//! (`take_bare`).

use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::interrupt::{Interrupt, Interruptible};
use super::source::Scope;
use crate::core::gate::{self, GATE, Gate, in_task, is_listening, with};
use crate::core::protocol::{Left, Note, Post, Rescoped, ScopeEvent, ScopeKind, ScopePost};
use crate::core::records::Records;
use crate::core::table::{ScopeId, Site, TaskRef};
use crate::time::Time;

pub(crate) use crate::time::Limit;

fn next_scope(gate: &Gate) -> u64 {
    let kernel = gate.kernel.borrow();
    let kernel = kernel.as_deref().expect("a scope is opened in a kernel");
    kernel.scopes.set(kernel.scopes.get() + 1);
    kernel.scopes.get()
}

/// Puts a scope on the list of new timers, because the future inside pends.
#[inline]
pub(crate) fn set_timer(scope: ScopeId) {
    with(|gate| gate.new_timers.borrow_mut().push(scope));
}

/// Closes a scope.
pub(crate) fn close_scope(scope: ScopeId, left: Left) {
    let Some(gate) = GATE.get() else { return };
    let mut records = gate.records.borrow_mut();
    // While the record is there: the way to the enclosing deadlines begins at its parent.
    let again = if records.sources > 0 { records.repend_enclosing(scope) } else { Vec::new() };
    let Some(closed) = records.close(scope) else { return };
    let task = records.tasks.key(closed.task.0);
    drop(records);
    let Scope { number, kind, deadline, line, .. } = closed;
    // If its opening has a line, its end has one too, also if the log was switched off in between.
    if (line != 0 || is_listening()) && !matches!(kind, ScopeKind::Deadline(_)) {
        let told = ScopePost { task, number, kind, deadline, event: ScopeEvent::Closed(left) };
        gate.post(Post::Scope(Box::new(told)));
    }
    for (source, place) in again {
        gate.post(Post::RependNow { source, place });
    }
}

/// Makes `scope` the scope in force until the guard is dropped, even by a panic.
#[inline]
pub(crate) fn enter_scope(scope: ScopeId) -> ScopeGuard {
    let enter = |gate: &Gate| {
        let outer = gate.scope.replace(scope);
        let mut records = gate.records.borrow_mut();
        if records.scopes[scope.index].parent != outer {
            move_scope(gate, &mut records, scope, outer);
        }
        ScopeGuard(outer)
    };
    with(enter).expect("a scope is entered in a poll")
}

#[cold]
fn move_scope(gate: &Gate, records: &mut Records, scope: ScopeId, outer: ScopeId) {
    let Scope { number, parent, .. } = records.scopes[scope.index];
    note_move(gate, records, Rescoped::Scope(number), parent, outer);
    records.move_scope(scope, outer);
}

/// Logs that a wait or a scope is polled in another scope than before, if the log is on.
#[cold]
pub(crate) fn note_move(
    gate: &Gate,
    records: &Records,
    what: Rescoped,
    before: ScopeId,
    scope: ScopeId,
) {
    let number = records.number_of(scope);
    if is_listening() && records.number_of(before) != number {
        gate.post(Post::Note(Note::Rescoped(what, number)));
    }
}

/// A guard that restores the outer scope on drop.
pub(crate) struct ScopeGuard(ScopeId);

impl Drop for ScopeGuard {
    #[inline]
    fn drop(&mut self) {
        with(|gate| gate.scope.set(self.0));
    }
}

/// Returns the number of times that a task woke itself so far.
#[inline]
pub(crate) fn self_wakes() -> u32 {
    with(|gate| gate.self_wakes.get()).unwrap_or(0)
}

/// Takes the interrupt of `scope`, if the scope has fired and the future inside waits for foreign
/// wakers alone: the future is in no trap, and the task has not woken itself since `before`.
#[inline]
pub(crate) fn take_bare(scope: ScopeId, before: u32) -> Option<Interrupt> {
    let gate = GATE.get()?;
    let mut records = gate.records.borrow_mut();
    if records.sources == 0 || gate.self_wakes.get() != before {
        return None;
    }
    records.take_bare(scope, gate.now.get())
}

/// Returns the nearest timeout in force.
pub(crate) fn timeout_in_force() -> Option<ScopeId> {
    with(|gate| gate.records.borrow().nearest_timeout(gate.scope.get())).flatten()
}

/// Returns the number of an open scope.
pub(crate) fn scope_number(scope: ScopeId) -> u64 {
    let number = |gate: &Gate| Some(gate.records.borrow().scopes.get(scope)?.number);
    with(number).flatten().unwrap_or(0)
}

/// Returns the scope around a whole task of the connection deadline in this slot, if the deadline
/// has fired outside a guard.
#[cold]
pub(crate) fn deadline_around(task: TaskRef, slot: u32) -> Option<ScopeId> {
    with(|gate| gate.records.borrow().scope_around(task, ScopeKind::Deadline(slot))).flatten()
}

/// Withdraws the pending interrupt of a connection deadline, because the deadline is armed again.
/// Returns whether the scope had fired.
#[cold]
pub(crate) fn forget(scope: ScopeId) -> bool {
    with(|gate| gate.records.borrow_mut().forget(scope)).unwrap_or(false)
}

/// An open scope, and the task in which it was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) task: TaskRef,
    pub(crate) scope: ScopeId,
    /// The scope's own deadline.
    pub(crate) deadline: Time,
}

/// The opener of a scope: the arguments for the opening, and the open scope. It belongs to the gate
/// of its thread, so it is not `Send`.
#[derive(Debug)]
pub(crate) struct Opener {
    limit: Limit,
    kind: ScopeKind,
    pub(crate) site: Site,
    open: Option<Open>,
    /// Whether the kernel knows the deadline.
    is_set: bool,
    local: PhantomData<Rc<()>>,
}

impl Opener {
    pub(crate) fn new(limit: Limit, kind: ScopeKind, site: Site) -> Opener {
        Opener { limit, kind, site, open: None, is_set: false, local: PhantomData }
    }

    /// Records that the future inside pends, so that the kernel learns of the deadline.
    #[inline]
    pub(crate) fn pends(&mut self) {
        if let Some(Open { scope, deadline, .. }) = self.open
            && deadline != Time::NEVER
            && !std::mem::replace(&mut self.is_set, true)
        {
            set_timer(scope);
        }
    }

    /// Opens the scope, unless it is open in the task that is being polled. If another task polls
    /// it, the scope closes there and opens here, with the same deadline. In another kernel, the
    /// limit begins again.
    #[inline]
    pub(crate) fn open(&mut self) -> Open {
        match self.open {
            Some(open) if gate::task() == Some(open.task) => open,
            _ => self.open_here(),
        }
    }

    fn open_here(&mut self) -> Open {
        if let Some(Open { task, deadline, .. }) = self.open {
            self.close(Left::Other);
            if gate::is_of_this_kernel(task) {
                self.limit = Limit::At(deadline);
            }
        }
        let (gate, task) = in_task(self.site);
        let (deadline, now) = match self.limit {
            Limit::Never => (Time::NEVER, Time::ZERO),
            Limit::After(span) => {
                // The clock, and not the reading of the turn: the task may have computed for a long
                // time since.
                let now = gate::now().unwrap_or_default();
                (now + span, now)
            }
            Limit::At(point) => (point, Time::ZERO),
        };
        let (number, kind, site) = (next_scope(gate), self.kind, self.site);
        let mut records = gate.records.borrow_mut();
        let scope = records.open(gate.scope.get(), kind, number, deadline, site);
        if is_listening() {
            let parent = records.number_of(gate.scope.get());
            let event = ScopeEvent::Opened { scope, now, site, parent };
            let told = ScopePost { task, number, kind, deadline, event };
            gate.post(Post::Scope(Box::new(told)));
        }
        self.is_set = false;
        *self.open.insert(Open { task, scope, deadline })
    }

    /// Closes the scope, if it is open.
    #[inline]
    pub(crate) fn close(&mut self, left: Left) {
        if let Some(Open { scope, .. }) = self.open.take() {
            close_scope(scope, left);
        }
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.close(Left::Other);
    }
}

pin_project! {
    /// A future inside a scope. The fields are dropped in order: the inner future goes first, so
    /// that the posts of its waits come before the close of the scope.
    #[derive(Debug)]
    pub(crate) struct Scoped<F> {
        #[pin]
        inner: Option<F>,
        pub(crate) opener: Opener,
    }
}

/// The result of a scope's inner future.
pub(crate) enum Inner<T> {
    Value(T),
    /// The scope fired while the future waited on a foreign waker alone.
    Fired(Interrupt),
}

/// Polls `inner` inside an open scope.
#[inline]
pub(crate) fn poll_inside<F: Future>(
    mut inner: Pin<&mut Option<F>>,
    scope: ScopeId,
    cx: &mut Context<'_>,
) -> Poll<Inner<F::Output>> {
    // A future that wakes itself in this poll goes on in the next. It does not wait, so no
    // interrupt may take its place.
    let before = self_wakes();
    let polled = {
        // A guard, because the poll may panic, and the task may catch that.
        let _scope = enter_scope(scope);
        let inner = inner.as_mut().as_pin_mut();
        inner.expect("rule: a future is not polled after it was ready").poll(cx)
    };
    // Only a future that pends can be waiting for a foreign waker. A value that is there counts,
    // even after the deadline.
    match polled {
        Poll::Ready(value) => Poll::Ready(Inner::Value(value)),
        Poll::Pending => match take_bare(scope, before) {
            Some(interrupt) => Poll::Ready(Inner::Fired(interrupt)),
            None => Poll::Pending,
        },
    }
}

impl<F: Future> Scoped<F> {
    pub(crate) fn new(limit: Limit, kind: ScopeKind, site: Site, inner: F) -> Scoped<F> {
        Scoped { inner: Some(inner), opener: Opener::new(limit, kind, site) }
    }

    /// Polls the future inside the scope. The scope is still open when this is ready.
    #[inline]
    pub(crate) fn poll_inner(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<(Open, Inner<F::Output>)> {
        let this = self.project();
        let open = this.opener.open();
        let polled = poll_inside(this.inner, open.scope, cx);
        if polled.is_pending() {
            this.opener.pends();
        }
        polled.map(|inner| (open, inner))
    }

    /// Drops the inner future and closes the scope.
    #[inline]
    pub(crate) fn finish(self: Pin<&mut Self>, left: Left) {
        let mut this = self.project();
        // The inner future goes first, so that the posts of its waits come before the close.
        this.inner.set(None);
        this.opener.close(left);
    }
}

/// Describes a result that leaves a scope, for the log.
#[inline]
pub(crate) fn left<T, E: Interruptible>(result: &Result<T, E>) -> Left {
    if gate::is_listening() { left_for_the_log(result) } else { Left::Other }
}

fn left_for_the_log<T, E: Interruptible>(result: &Result<T, E>) -> Left {
    match result.as_ref().map_err(Interruptible::interrupt) {
        Ok(_) => Left::Value(gate::now().unwrap_or_default()),
        Err(None) => Left::Other,
        Err(Some(why)) => Left::Interrupt { kind: why.kind(), scope: why.scope(), by: why.by() },
    }
}

/// Relabels the result that leaves an open timeout: an interrupt gets the kind that it has outside.
/// Also returns whether this scope timed out.
#[inline]
pub(crate) fn relabel<T, E: Interruptible>(
    inner: Inner<Result<T, E>>,
    scope: ScopeId,
    deadline: Time,
    site: Site,
) -> (Result<T, E>, bool) {
    let mut result = match inner {
        Inner::Value(Ok(value)) => return (Ok(value), false),
        Inner::Value(error) => error,
        Inner::Fired(interrupt) => Err(E::from(interrupt)),
    };
    let interrupt = result.as_mut().err().and_then(Interruptible::interrupt_mut);
    // Looked up only for an interrupt, because most results are values.
    let outer = timeout_in_force;
    let number = || scope_number(scope);
    let own = interrupt.is_some_and(|it| it.leave((scope, number()), outer(), deadline, site));
    (result, own)
}

/// Makes `future` one branch of a combinator. An interrupt from outside is delivered to each branch
/// once, even to a branch that is in no trap when it arrives.
///
/// The crate's own [`join`](crate::join), [`join_all`](crate::join_all) and [`race`](crate::race)
/// do this for each child. In a foreign `join!`, write it for each child.
///
/// ```
/// # use std::time::Duration;
/// use futures_util::future;
/// use traps::{branch, sleep, timeout_after};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// let both = async {
///     let (one, two) = future::join(branch(sleep(9 * second)), branch(sleep(9 * second))).await;
///     assert!(one.is_err() && two.is_err()); // the timeout has ended both sleeps
///     one
/// };
/// assert!(timeout_after(second, both).await.is_err());
/// # });
/// ```
#[track_caller]
pub fn branch<F: Future>(future: F) -> Branch<F> {
    Branch { scoped: Scoped::new(Limit::Never, ScopeKind::Branch, Location::caller(), future) }
}

/// Holds back interrupts from outer scopes while `future` runs. They are delivered at the first
/// blocking trap after it. Timeouts opened inside work as usual: use `shield(timeout_after(..))`
/// for a clean-up that must end.
///
/// [`check_cancellation`](crate::check_cancellation()) returns the interrupt that is held back.
///
/// ```
/// # use std::time::Duration;
/// use traps::{Time, clock, shield, sleep, timeout_after};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// let late = timeout_after(second, async {
///     shield(sleep(5 * second)).await.unwrap(); // the deadline passes in this time
///     sleep(second).await // and ends this sleep at once
/// });
/// assert!(late.await.is_err());
/// assert_eq!(clock().await, Time::ZERO + 5 * second);
/// # });
/// ```
#[track_caller]
pub fn shield<F: Future>(future: F) -> Shield<F> {
    shield_from(Location::caller(), future)
}

pub(crate) fn shield_from<F: Future>(site: Site, future: F) -> Shield<F> {
    Shield { scoped: Scoped::new(Limit::Never, ScopeKind::Shield, site, future) }
}

macro_rules! without_deadline {
    ($name:ident, $doc:literal) => {
        pin_project! {
            #[doc = $doc]
            #[derive(Debug)]
            #[must_use = "futures do nothing unless awaited"]
            pub struct $name<F> {
                #[pin]
                scoped: Scoped<F>,
            }
        }

        impl<F: Future> Future for $name<F> {
            type Output = F::Output;

            #[inline]
            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
                let mut scoped = self.project().scoped;
                let (_, inner) = ready!(scoped.as_mut().poll_inner(cx));
                scoped.finish(Left::Other);
                match inner {
                    Inner::Value(value) => Poll::Ready(value),
                    Inner::Fired(_) => {
                        unreachable!("rule: a scope without a deadline does not fire")
                    }
                }
            }
        }
    };
}

without_deadline!(Branch, "The future of [`branch`].");
without_deadline!(Shield, "The future of [`shield`](fn@shield).");
