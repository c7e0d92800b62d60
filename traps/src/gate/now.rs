//! The poll that runs now: whose it is, in which scope, and the register of its first request.
//!
//! What every trap touches: one that is answered at once touches no table. A thread that has a
//! kernel makes it once and never frees it (some 600 bytes; what the tables hold goes with the
//! gate), so that a trap reaches it by one load, without a test whether the thread is ending.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU64;
use std::ptr;
use std::rc::Rc;
use std::task::Waker;

use super::register::Register;
use super::tables::Tables;
use crate::protocol::{Birth, HOME, Opening, Post, ScopeId, TaskRef, Ticket, TrapResult};
use crate::scope_table::ScopeTable;

/// What is being polled now, and for whom.
#[derive(Clone, Copy)]
pub(super) struct Current {
    pub(super) task: TaskRef,
    pub(super) scope: ScopeId,
}

pub(super) struct Now {
    /// The kernel that runs on this thread, 0 for none.
    pub(super) epoch: Cell<u32>,
    pub(super) budget: Cell<u32>,
    /// The task that is being polled.
    pub(super) task: Cell<Option<TaskRef>>,
    /// The scope in force.
    pub(super) scope: Cell<Option<ScopeId>>,
    /// The nearest timeout at or around it, or the root.
    pub(super) timeout: Cell<Option<ScopeId>>,
    /// The waker of the current task, told apart without touching its reference count.
    pub(super) own: Cell<(*const (), *const ())>,
    pub(super) any_bare: Cell<bool>,
    /// Whether any task of the thread has local values: to be read without a borrow.
    pub(super) any_locals: Cell<bool>,
    /// Something is pending in the task, or an open scope of it fired: a guard that ends matters.
    pub(super) troubled: Cell<bool>,
    /// How many tickets of the task were parked when this poll began.
    pub(super) parked: Cell<u32>,
    /// Whether anything is filed in the tables: to be read without a borrow.
    pub(super) any_filed: Cell<bool>,
    /// What the list consists of, as long as that is one post: most polls post no more.
    pub(super) only: Cell<Option<Post>>,
    /// The same, as long as the list consists of one timeout that opened.
    pub(super) opening: Cell<Option<Opening>>,
    /// The same, as long as it consists of tasks to be made.
    pub(super) births: RefCell<Vec<Birth>>,
    /// How many of these are filed, there or in the list. Whatever else is told does not count:
    /// much of it is told only where somebody listens.
    pub(super) born: Cell<usize>,
    /// The scopes and deadlines of the kernel that runs.
    pub(super) scopes: RefCell<Option<Rc<ScopeTable>>>,
    /// The last serial number that was given out.
    pub(super) serial: Cell<u64>,
    pub(super) register: Register,
    pub(super) tables: RefCell<Tables>,
}

thread_local! {
    static NOW: Cell<Option<&'static Now>> = const { Cell::new(None) };
}

/// That of this thread; `None` if it never had a kernel.
#[inline]
pub(super) fn now() -> Option<&'static Now> {
    NOW.get()
}

/// Whether the kernel that runs has that ticket still, with its result or without.
pub(crate) fn is_live(ticket: Ticket) -> bool {
    let is_live = |now: &Now| {
        let here = ticket.epoch == now.epoch.get();
        here && (now.register.holds(ticket) || now.tables.borrow_mut().live(ticket).is_some())
    };
    now().is_some_and(is_live)
}

/// The task that is being polled, and whether `waker` is its own; `None` outside a poll.
pub(crate) fn polled_by(waker: &Waker) -> Option<(TaskRef, bool)> {
    let now = now()?;
    Some((now.task.get()?, now.is_own(waker)))
}

impl Now {
    /// That of this thread, made if it is new.
    pub(super) fn of_this_thread() -> &'static Now {
        NOW.get().unwrap_or_else(|| {
            let now = Box::leak(Box::new(Now::new()));
            NOW.set(Some(now));
            now
        })
    }

    fn new() -> Now {
        Now {
            epoch: Cell::new(0),
            budget: Cell::new(0),
            task: Cell::new(None),
            scope: Cell::new(None),
            timeout: Cell::new(None),
            own: Cell::new((ptr::null(), ptr::null())),
            any_bare: Cell::new(false),
            any_locals: Cell::new(false),
            troubled: Cell::new(false),
            parked: Cell::new(0),
            any_filed: Cell::new(false),
            only: Cell::new(None),
            opening: Cell::new(None),
            births: RefCell::new(Vec::new()),
            born: Cell::new(0),
            scopes: RefCell::new(None),
            serial: Cell::new(0),
            register: Register::new(),
            tables: RefCell::new(Tables::new()),
        }
    }

    #[inline]
    pub(super) fn current(&self) -> Option<Current> {
        Some(Current { task: self.task.get()?, scope: self.scope.get()? })
    }

    /// A ticket was freed, which may have lain in the home of the task that runs.
    #[inline]
    pub(super) fn come_home(&self, ticket: Ticket) {
        if let Some(task) = self.task.get() {
            self.register.come_home(ticket, task);
        }
    }

    /// The result that lies in the home of the task that runs, if it is that ticket's.
    #[inline]
    pub(super) fn take_home(&self, ticket: Ticket) -> Option<TrapResult> {
        let task = self.task.get()?;
        if ticket.index != task.index | HOME || ticket.epoch != task.epoch {
            return None;
        }
        let tables = &mut *self.tables.borrow_mut();
        let state = tables.take_home(task.index, ticket.serial)?;
        self.register.free_home(ticket.index);
        // Last, so that it is moved once.
        Some(tables.read(state))
    }

    /// Takes that result if it is no more than that the request is done.
    #[inline]
    pub(super) fn take_done(&self, ticket: Ticket) -> bool {
        let is_home =
            |task: TaskRef| ticket.index == task.index | HOME && ticket.epoch == task.epoch;
        let taken =
            self.task.get().is_some_and(is_home) && self.tables.borrow_mut().take_home_done(ticket);
        if taken {
            self.register.free_home(ticket.index);
        }
        taken
    }

    #[inline]
    pub(super) fn is_own(&self, waker: &Waker) -> bool {
        self.own.get() == identity(waker)
    }

    #[inline]
    pub(super) fn next_serial(&self) -> NonZeroU64 {
        self.serial.set(self.serial.get() + 1);
        NonZeroU64::new(self.serial.get()).expect("a counter from 1 does not wrap in 64 bits")
    }
}

#[inline]
pub(super) fn identity(waker: &Waker) -> (*const (), *const ()) {
    (waker.data(), ptr::from_ref(waker.vtable()).cast())
}

/// Takes one operation from the task's budget; false if it is spent.
#[inline]
pub(crate) fn spend() -> bool {
    let Some(now) = now() else { return false };
    let left = now.budget.get();
    now.budget.set(left.saturating_sub(1));
    left > 0
}

/// Takes so many more of them, as far as there are any.
pub(crate) fn spend_more(operations: u32) {
    if let Some(now) = now() {
        now.budget.set(now.budget.get().saturating_sub(operations));
    }
}
