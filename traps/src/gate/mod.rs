//! Where requests go out and results come back: one gate per thread.
//!
//! A task touches it only through a trap future; a kernel through the methods of [`Gate`]. Nothing
//! else passes between them: no reference from a task to a kernel or back.
//!
//! The first request of a poll lies in a *register*: its result is usually back before anything
//! else happens, and then no table is touched. It gets the slot that was kept free for it when it
//! parks, or when its result is not read at once. A second request of the same poll goes straight
//! to the tables.
//!
//! One rule holds throughout: a waker, a result, a request or anything else with a foreign `Drop`
//! is never dropped, cloned or called while a table here is borrowed, because it may come back in.

mod kernel_side;
mod locals;
mod outside;
mod register;
mod tables;

pub use kernel_side::{Completion, First, is_running, post_wake_ticket, post_woken};
pub(crate) use kernel_side::{note, polled_by};
use locals::Locals;
pub use locals::TaskLocals;
pub(crate) use locals::{inherited_local, own_local, set_inherited_local, set_own_local};
use outside::Outsides;
pub(crate) use outside::{is_polling, kernel_runs, outside_waker, post_unread};
use register::{Register, Stage};
use tables::{END, Slot, State, Tables};

use std::cell::{Cell, RefCell};
use std::mem;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::task::{Context, Waker};

use crate::deadline_table::DeadlineTable;
use crate::interrupt::Interrupt;
use crate::protocol::{
    Failure, Filed, HandleId, Post, Request, ScopeId, Site, TaskRef, Ticket, TrapResult,
};

/// What is being polled now, and for whom.
#[derive(Clone, Copy)]
struct Current {
    task: TaskRef,
    scope: ScopeId,
}

/// The meeting place of the tasks and the kernels of one thread.
///
/// Tasks reach it through their trap futures; the methods are for kernels.
pub struct Gate {
    /// The kernel that runs on this thread, 0 for none.
    epoch: Cell<u32>,
    /// The task that is being polled.
    task: Cell<Option<TaskRef>>,
    /// The scope in force.
    scope: Cell<Option<ScopeId>>,
    /// The nearest timeout at or around it, or the root.
    timeout: Cell<Option<ScopeId>>,
    /// The waker of the current task, told apart without touching its reference count.
    own: Cell<(*const (), *const ())>,
    budget: Cell<u32>,
    any_bare: Cell<bool>,
    /// Something is pending in the task, or an open scope of it fired: a guard that ends matters.
    troubled: Cell<bool>,
    /// Whether anything is filed in the tables: to be read without a borrow.
    any_filed: Cell<bool>,
    /// The last serial number that was given out.
    serial: Cell<u64>,
    register: Register,
    locals: Locals,
    outsides: Outsides,
    /// Those of the kernel that runs.
    deadlines: RefCell<Option<Rc<DeadlineTable>>>,
    tables: RefCell<Tables>,
}

thread_local! {
    static GATE: Rc<Gate> = Rc::new(Gate {
        epoch: Cell::new(0),
        task: Cell::new(None),
        scope: Cell::new(None),
        timeout: Cell::new(None),
        own: Cell::new((ptr::null(), ptr::null())),
        budget: Cell::new(0),
        any_bare: Cell::new(false),
        troubled: Cell::new(false),
        any_filed: Cell::new(false),
        serial: Cell::new(0),
        register: Register::new(),
        locals: Locals::new(),
        outsides: Outsides::new(),
        deadlines: RefCell::new(None),
        tables: RefCell::new(Tables::new()),
    });
}

/// Numbers kernels, on all threads: a waker tells its own kernel from others by it.
static EPOCHS: AtomicU32 = AtomicU32::new(1);

impl Gate {
    #[inline]
    fn current(&self) -> Option<Current> {
        Some(Current { task: self.task.get()?, scope: self.scope.get()? })
    }
}

fn identity(waker: &Waker) -> (*const (), *const ()) {
    (waker.data(), ptr::from_ref(waker.vtable()).cast())
}

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
    GATE.with(|gate| {
        let Some(task) = gate.task.get() else { outside(site) };
        let own = gate.own.get() == identity(cx.waker());
        let register = &gate.register;
        if register.stage.get() == Stage::Answered {
            gate.spill();
        }
        if !own || register.stage.get() != Stage::Empty {
            gate.keep_order();
            let waker = if own { None } else { Some(cx.waker().clone()) };
            let current = gate.current().expect("a task that is polled is in a scope");
            return gate.file_in_table(current, request, site, waker);
        }
        if register.index.get() == END {
            register.index.set(gate.tables.borrow_mut().reserve());
        }
        let serial = gate.next_serial();
        register.serial.set(serial.get());
        register.behind.set(gate.any_filed.get());
        register.scope.set(gate.scope.get());
        register.site.set(Some(site));
        let earlier = register.request.replace(Some(request));
        debug_assert!(earlier.is_none(), "an empty register holds no request");
        mem::forget(earlier);
        register.stage.set(Stage::Filed);
        Ticket { index: register.index.get(), epoch: task.epoch, serial }
    })
}

#[cold]
pub(crate) fn outside(site: Site) -> ! {
    panic!("rule: traps are made by tasks; the trap at {site} was polled outside a kernel's poll")
}

/// Looks for the result of `ticket`, and sees to it that the right task and waker will hear of it.
#[inline]
pub(crate) fn collect(ticket: Ticket, cx: &Context<'_>) -> Look {
    GATE.with(|gate| {
        let register = &gate.register;
        if register.holds(ticket) && register.stage.get() == Stage::Answered {
            register.stage.set(Stage::Empty);
            let result = register.result.take();
            return Look::Result(result.expect("an answered request has a result"));
        }
        let Some(current) = gate.current() else { return Look::Outside };
        let own = gate.own.get() == identity(cx.waker());
        if register.holds(ticket) {
            if own {
                register.scope.set(Some(current.scope));
                return Look::Nothing;
            }
            gate.spill();
        }
        gate.keep_order();
        {
            let tables = &mut *gate.tables.borrow_mut();
            let Some(slot) = tables.live(ticket) else { return Look::Gone };
            if slot.epoch != current.task.epoch {
                return Look::Gone;
            }
            if matches!(slot.state, State::Done(_)) {
                // Completion took the waker, so nothing foreign is dropped here.
                let (State::Done(result), _) = tables.free(ticket.index) else {
                    unreachable!("the state was looked at above")
                };
                return Look::Result(result);
            }
            if slot.task != current.task || slot.scope != current.scope {
                slot.task = current.task;
                slot.scope = current.scope;
                if matches!(slot.state, State::Parked) {
                    tables.filed.push(Filed::Post(Post::Rehome(ticket)));
                    gate.any_filed.set(true);
                }
            }
            if own && tables.slots[ticket.index as usize].waker.is_none() {
                return Look::Nothing;
            }
        }
        let fresh = if own { None } else { Some(cx.waker().clone()) };
        let stale = gate.tables.borrow_mut().live(ticket).map(|slot| {
            let keep = match (&slot.waker, &fresh) {
                (Some(old), Some(new)) => old.will_wake(new),
                _ => false,
            };
            if keep { fresh } else { mem::replace(&mut slot.waker, fresh) }
        });
        drop(stale);
        Look::Nothing
    })
}

/// Gives a ticket up: its future is gone. Hands back a result that nobody read, unless it is an
/// interrupt, which becomes pending again. Harmless outside a kernel and while a thread ends.
pub(crate) fn withdraw(ticket: Ticket) -> Option<TrapResult> {
    GATE.try_with(|gate| {
        if gate.register.holds(ticket) {
            return gate.withdraw_register();
        }
        gate.keep_order();
        let running = gate.epoch.get();
        let (result, request, waker);
        {
            let tables = &mut *gate.tables.borrow_mut();
            let slot = tables.live(ticket)?;
            match slot.state {
                State::Done(_) => {
                    let (state, _) = tables.free(ticket.index);
                    let State::Done(found) = state else { unreachable!("looked at above") };
                    (result, request, waker) = (Some(found), None, None);
                }
                State::Filed => {
                    let mine = |filed: &Filed| {
                        matches!(filed, Filed::Request { ticket: found, .. } if *found == ticket)
                    };
                    match tables.filed.iter().rposition(mine) {
                        Some(place) => {
                            request = Some(tables.filed.remove(place));
                            waker = tables.free(ticket.index).1;
                        }
                        None => {
                            // The kernel has taken it and is about to look at it.
                            slot_mut(tables, ticket).state = State::Withdrawn;
                            (request, waker) = (None, slot_mut(tables, ticket).waker.take());
                        }
                    }
                    result = None;
                }
                State::Parked => {
                    slot.state = State::Withdrawn;
                    waker = slot.waker.take();
                    (result, request) = (None, None);
                    let refused = tables.post(running, Post::Withdraw(ticket));
                    gate.any_filed.set(true);
                    debug_assert!(refused.is_none(), "a parked ticket has a kernel");
                }
                State::Withdrawn | State::Free(_) => return None,
            }
        }
        drop((request, waker));
        unread(result)
    })
    .ok()
    .flatten()
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

fn slot_mut(tables: &mut Tables, ticket: Ticket) -> &mut Slot {
    &mut tables.slots[ticket.index as usize]
}

/// Tells the kernel something. Harmless outside a kernel and while a thread ends.
pub(crate) fn post(post: Post) {
    let refused = GATE.try_with(|gate| {
        gate.keep_order();
        let refused = gate.tables.borrow_mut().post(gate.epoch.get(), post);
        gate.any_filed.set(true);
        refused
    });
    drop(refused);
}

/// The scope in force, `None` outside a poll.
pub(crate) fn scope() -> Option<ScopeId> {
    GATE.with(|gate| gate.scope.get())
}

/// The task that is being polled, `None` outside a poll.
pub(crate) fn task() -> Option<TaskRef> {
    GATE.with(|gate| gate.task.get())
}

/// Whether the end of a guard is to be told to the kernel; so outside a poll.
#[inline]
pub(crate) fn is_troubled() -> bool {
    GATE.try_with(|gate| gate.troubled.get() || gate.task.get().is_none()).unwrap_or(true)
}

/// The nearest timeout at or around the scope in force, or the root; `None` outside a poll.
#[inline]
pub(crate) fn timeout() -> Option<ScopeId> {
    GATE.with(|gate| gate.timeout.get())
}

/// Makes `scope` the one in force until the guard is dropped, also by a panic.
#[inline]
pub(crate) fn enter_scope(scope: ScopeId, is_timeout: bool) -> ScopeGuard {
    GATE.with(|gate| {
        let before = (gate.scope.replace(Some(scope)), gate.timeout.get());
        if is_timeout {
            gate.timeout.set(Some(scope));
        }
        ScopeGuard(before)
    })
}

/// Restores the scope around.
pub(crate) struct ScopeGuard((Option<ScopeId>, Option<ScopeId>));

impl Drop for ScopeGuard {
    #[inline]
    fn drop(&mut self) {
        GATE.with(|gate| {
            gate.scope.set(self.0.0);
            gate.timeout.set(self.0.1);
        });
    }
}

/// How much the current poll has filed so far.
#[inline]
pub(crate) fn filed_so_far() -> usize {
    GATE.with(|gate| if gate.any_bare.get() { gate.filed() } else { 0 })
}

/// The interrupt of `scope`, if it fired around a wait on a bare waker and the poll filed nothing
/// since it had filed `before`.
#[inline]
pub(crate) fn take_bare(scope: ScopeId, before: usize) -> Option<Interrupt> {
    GATE.with(|gate| {
        if !gate.any_bare.get() {
            return None;
        }
        if gate.filed() != before {
            return None;
        }
        let tables = &mut *gate.tables.borrow_mut();
        let place = tables.bare.iter().position(|(bare, _)| *bare == scope)?;
        Some(tables.bare.remove(place).1)
    })
}

/// Takes one operation from the task's budget; false if it is spent.
#[inline]
pub(crate) fn spend() -> bool {
    GATE.with(|gate| match gate.budget.get().checked_sub(1) {
        Some(rest) => {
            gate.budget.set(rest);
            true
        }
        None => false,
    })
}

/// A name for a descriptor, in the kernel that runs.
pub(crate) fn new_handle() -> Option<HandleId> {
    GATE.with(|gate| {
        let epoch = gate.epoch.get();
        let tables = &mut *gate.tables.borrow_mut();
        let index = tables.free_handles.pop().unwrap_or_else(|| {
            tables.handles += 1;
            tables.handles - 1
        });
        (epoch != 0).then(|| HandleId { index, epoch, serial: gate.next_serial() })
    })
}

/// The kernel that runs on this thread, 0 for none.
#[inline]
pub(crate) fn epoch() -> u32 {
    GATE.with(|gate| gate.epoch.get())
}
