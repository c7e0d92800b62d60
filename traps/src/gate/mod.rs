//! Where requests go out and results come back: one gate per thread.
//!
//! A task touches it only through a trap future; a kernel through the methods of [`Gate`]. Nothing
//! else passes between them: no reference from a task to a kernel or back.
//!
//! The first request of a poll lies in a *register*: its result is usually back before anything
//! else happens, and then no table is touched. When it parks, or its result is not read at once, it
//! goes to its task's *home*, a slot that each task has; if something is parked there already, to a
//! slot that was kept free. A second request of the same poll goes straight to the tables.
//!
//! One rule holds throughout: a waker, a result, a request or anything else with a foreign `Drop`
//! is never dropped, cloned or called while a table here is borrowed, because it may come back in.

mod kernel_side;
mod kernels;
mod locals;
mod now;
mod outside;
mod posts;
mod register;
mod scopes;
mod slot;
mod tables;

pub use kernel_side::{Completion, First, is_running, post_wake_ticket, post_woken};
pub(crate) use kernels::drop_each;
use locals::Locals;
pub use locals::TaskLocals;
pub(crate) use locals::{inherited_local, own_local, set_inherited_local, set_own_local};
use now::{Current, Now, now};
pub(crate) use now::{is_live, polled_by, spend, spend_more};
use outside::Outsides;
pub(crate) use outside::outside_waker;
pub(crate) use posts::{note, post, post_task};
use register::Stage;
pub(crate) use register::take_task;
pub(crate) use scopes::{close_scope, deadline_of, make_deadline, open_timeout, time_by_now};
use slot::State;
use tables::{END, Tables};

use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::task::{Context, Waker};

use crate::interrupt::Interrupt;
use crate::protocol::{
    Failure, Filed, HandleId, Post, Request, ScopeId, Site, TaskRef, Ticket, TrapResult,
};

/// The meeting place of the tasks and the kernels of one thread.
///
/// Tasks reach it through their trap futures; the methods are for kernels. What traps touch is
/// beside it, in `now.rs`.
pub struct Gate {
    now: &'static Now,
    locals: Locals,
    outsides: Outsides,
}

thread_local! {
    static GATE: Rc<Gate> = Rc::new(Gate {
        now: Now::of_this_thread(),
        locals: Locals::new(),
        outsides: Outsides::new(),
    });
}

impl Drop for Gate {
    fn drop(&mut self) {
        let tables = self.now.tables.replace(Tables::new());
        let births = self.now.births.take();
        drop((tables, births));
    }
}

/// Numbers kernels, on all threads: a waker tells its own kernel from others by it.
static EPOCHS: AtomicU32 = AtomicU32::new(1);

/// What [`collect`] found.
pub(crate) enum Look {
    /// The result.
    Result(TrapResult),
    /// No result yet.
    Nothing,
    /// No such ticket in the kernel that runs: file anew.
    Gone,
    /// No task is being polled.
    Outside,
}

/// Files a request of the task that is being polled.
#[inline]
pub(crate) fn file(request: Request, site: Site, cx: &Context<'_>) -> Ticket {
    let current = now().and_then(|now| Some((now, now.current()?)));
    let Some((now, Current { task, scope })) = current else { refuse_outside_a_task(site) };
    let register = &now.register;
    let index = register.index.get();
    if register.stage.get() != Stage::Empty || index == END || !now.is_own(cx.waker()) {
        return file_beside(now, request, site, cx);
    }
    let serial = now.next_serial();
    register.serial.set(serial);
    register.behind.set(now.any_filed.get());
    register.scope.set(scope);
    register.site.set(site);
    register.set_request(request);
    register.stage.set(Stage::Filed);
    Ticket { index, epoch: task.epoch, serial }
}

/// The same where the register cannot take it as it is.
#[inline(never)]
fn file_beside(now: &Now, request: Request, site: Site, cx: &Context<'_>) -> Ticket {
    let register = &now.register;
    if register.stage.get() == Stage::Answered {
        now.spill();
    }
    let own = now.is_own(cx.waker());
    if own && register.stage.get() == Stage::Empty {
        if register.index.get() == END {
            register.spare.set(now.tables.borrow_mut().reserve());
            register.index.set(register.spare.get());
        }
        return file(request, site, cx);
    }
    now.keep_order();
    let waker = if own { None } else { Some(cx.waker().clone()) };
    let current = now.current().expect("a task that is polled is in a scope");
    now.file_in_table(current, request, site, waker)
}

#[cold]
pub(crate) fn refuse_outside_a_task(site: Site) -> ! {
    panic!("rule: traps are made by tasks; the trap at {site} was polled outside a kernel's poll")
}

/// Looks for the result of `ticket`, and sees to it that the right task and waker will hear of it.
#[inline]
pub(crate) fn collect(ticket: Ticket, cx: &Context<'_>) -> Look {
    let Some(now) = now() else { return Look::Outside };
    let register = &now.register;
    if register.holds(ticket) && register.stage.get() == Stage::Answered {
        register.stage.set(Stage::Empty);
        let result = register.take_result();
        return Look::Result(result.expect("an answered request has a result"));
    }
    collect_kept(now, ticket, cx)
}

/// [`collect`] for what is not in the register with its result.
#[inline(never)]
fn collect_kept(now: &Now, ticket: Ticket, cx: &Context<'_>) -> Look {
    if let Some(result) = now.take_home(ticket) {
        return Look::Result(result);
    }
    collect_parked(now, ticket, cx)
}

/// Takes the result of `ticket` if it lies in the home of the task that runs, and is no more than
/// that the request is done.
#[inline]
pub(crate) fn take_done(ticket: Ticket) -> bool {
    now().is_some_and(|now| now.take_done(ticket))
}

/// The same for what is not in the task's own home with its result.
#[inline(never)]
fn collect_parked(now: &Now, ticket: Ticket, cx: &Context<'_>) -> Look {
    let Some(current) = now.current() else { return Look::Outside };
    let own = now.is_own(cx.waker());
    if now.register.holds(ticket) {
        if own && now.register.scope.get() == current.scope {
            return Look::Nothing;
        }
        // Its scope may be one that the kernel has yet to hear of.
        now.spill();
    }
    now.keep_order();
    let heard = {
        let tables = &mut *now.tables.borrow_mut();
        let Current { task, scope } = current;
        if ticket.epoch != task.epoch {
            return Look::Gone;
        }
        if let Some(result) = tables.take_done(ticket) {
            return Look::Result(result);
        }
        let Some(slot) = tables.live(ticket) else { return Look::Gone };
        let heard = own && slot.state.waker().is_none();
        if !slot.is_of(task.serial, scope) {
            slot.set_owner(task.serial, scope);
            if slot.state.is_waiting() {
                tables.filed.push(Filed::Post(Post::Rehome(ticket, task)));
                now.any_filed.set(true);
            }
        }
        heard
    };
    if !heard {
        hear(now, own, ticket, cx);
    }
    Look::Nothing
}

/// Lets a ticket that is live wake this waker from now on, or the task's own alone.
#[cold]
fn hear(now: &Now, own: bool, ticket: Ticket, cx: &Context<'_>) {
    let fresh = if own { None } else { Some(cx.waker().clone()) };
    let stale = now.tables.borrow_mut().set_waker(ticket, fresh);
    drop(stale);
}

/// Gives a ticket up: its future is gone. Hands back a result that nobody read, unless it is an
/// interrupt, which becomes pending again. Harmless outside a kernel and while a thread ends.
pub(crate) fn withdraw(ticket: Ticket) -> Option<TrapResult> {
    let now = now()?;
    if now.register.holds(ticket) {
        return now.register.withdraw();
    }
    withdraw_parked(now, ticket)
}

fn withdraw_parked(now: &Now, ticket: Ticket) -> Option<TrapResult> {
    now.keep_order();
    let (result, dropped) = {
        let tables = &mut *now.tables.borrow_mut();
        let state = tables.live(ticket)?.state;
        if let Some(result) = tables.take_done(ticket) {
            now.come_home(ticket);
            (Some(result), None)
        } else if state.is_waiting() {
            (None, Some(withdraw_waiting(now, tables, state, ticket)))
        } else {
            return None;
        }
    };
    drop(dropped);
    unread(result)
}

/// The same where there is no result; gives what is to be dropped outside.
fn withdraw_waiting(
    now: &Now,
    tables: &mut Tables,
    state: State,
    ticket: Ticket,
) -> (Option<Waker>, Option<Filed>) {
    if state.is_filed()
        && let filed = &mut tables.filed
        && let Some(place) = filed.iter().rposition(|filed| tables::is_request_of(filed, ticket))
    {
        let request = filed.remove(place);
        now.come_home(ticket);
        return (tables.free(ticket).0, Some(request));
    }
    let waker = tables.withdraw(ticket);
    // Else the kernel has taken it and is about to look at it.
    if !state.is_filed() {
        let refused = tables.post(now.epoch.get(), Post::Withdraw(ticket));
        now.any_filed.set(true);
        debug_assert!(refused.is_none(), "a parked ticket has a kernel");
    }
    (waker, None)
}

/// A result that nobody read: an interrupt is pending again, anything else comes back.
fn unread(result: Option<TrapResult>) -> Option<TrapResult> {
    match result {
        Some(Err(Failure::Interrupt(interrupt))) => {
            post(Post::Unread(interrupt));
            None
        }
        other => other,
    }
}

/// The scope in force, `None` outside a poll.
#[inline]
pub(crate) fn scope() -> Option<ScopeId> {
    now().and_then(|now| now.scope.get())
}

/// The task that is being polled, `None` outside a poll.
#[inline]
pub(crate) fn task() -> Option<TaskRef> {
    now().and_then(|now| now.task.get())
}

/// Whether the end of a guard is to be told to the kernel; so outside a poll.
#[inline]
pub(crate) fn is_troubled() -> bool {
    now().is_none_or(|now| now.troubled.get() || now.task.get().is_none())
}

/// How many waits of the task may be in a scope that ends now: those that were there when this poll
/// began, or some that it has filed.
#[inline]
pub(crate) fn waits_at_most() -> u32 {
    let filed = |now: &Now| now.register.stage.get() == Stage::Filed || now.any_filed.get();
    now().map_or(0, |now| now.parked.get().max(u32::from(filed(now))))
}

/// The nearest timeout at or around the scope in force, or the root; `None` outside a poll.
#[inline]
pub(crate) fn timeout() -> Option<ScopeId> {
    now().and_then(|now| now.timeout.get())
}

/// Makes `scope` the one in force until the guard is dropped, also by a panic.
#[inline]
pub(crate) fn enter_scope(scope: ScopeId, is_timeout: bool) -> ScopeGuard {
    let now = now().expect("a scope is entered inside a poll");
    let before = (now.scope.replace(Some(scope)), now.timeout.get());
    if is_timeout {
        now.timeout.set(Some(scope));
    }
    ScopeGuard { now, before }
}

/// Restores the scope around.
pub(crate) struct ScopeGuard {
    now: &'static Now,
    before: (Option<ScopeId>, Option<ScopeId>),
}

impl Drop for ScopeGuard {
    #[inline]
    fn drop(&mut self) {
        self.now.scope.set(self.before.0);
        self.now.timeout.set(self.before.1);
    }
}

/// How many waits the current poll has begun so far.
#[inline]
pub(crate) fn asked_so_far() -> usize {
    match now() {
        Some(now) if now.any_bare.get() => now.asked(),
        _ => 0,
    }
}

/// The interrupt of `scope`, if it fired around a wait on a bare waker and the poll has begun no
/// wait since there were `before`.
#[inline]
pub(crate) fn take_bare(scope: ScopeId, before: usize) -> Option<Interrupt> {
    let now = now().filter(|now| now.any_bare.get())?;
    take_any_bare(now, scope, before)
}

#[cold]
fn take_any_bare(now: &Now, scope: ScopeId, before: usize) -> Option<Interrupt> {
    if now.asked() != before {
        return None;
    }
    let tables = &mut *now.tables.borrow_mut();
    let place = tables.bare.iter().position(|(bare, _)| *bare == scope)?;
    Some(tables.bare.remove(place).1)
}

/// A name for a descriptor, in the kernel that runs.
pub(crate) fn new_handle() -> Option<HandleId> {
    let now = now().filter(|now| now.epoch.get() != 0)?;
    let tables = &mut *now.tables.borrow_mut();
    let index = tables.free_handles.pop().unwrap_or_else(|| {
        tables.handles += 1;
        tables.handles - 1
    });
    Some(HandleId { index, epoch: now.epoch.get(), serial: now.next_serial() })
}

/// The kernel that runs on this thread, 0 for none.
#[inline]
pub(crate) fn epoch() -> u32 {
    now().map_or(0, |now| now.epoch.get())
}
