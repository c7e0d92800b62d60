//! The gate: tasks put requests in, the kernel puts answers in. Each thread has one.
//!
//! Tasks use it only through trap futures, and a kernel only through the methods in
//! `kernel_side.rs`. What a task files stays in program order: requests, and posts that need no
//! answer. The newest request is in a separate cell, because most polls file nothing else.
//!
//! One rule for all of this module: no foreign object (a waker, an answer, a future) is dropped,
//! cloned or called while a list here is borrowed, because it may call back into the gate.

mod kernel_side;
mod scopes;
mod tray;

use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use crate::deadline::DeadlineTable;
use crate::interrupt::Interrupt;
use crate::outside::Outside;
use crate::protocol::{
    Answer, Asked, Filed, HandleId, Opening, Owned, Post, Request, ScopeId, Site, TaskRef, Ticket,
};
use crate::shutdown::Closing;
use crate::task::TaskId;
use crate::time::Time;
use tray::{Names, Tray};

/// Where the tasks and the kernels of one thread exchange requests and answers.
#[derive(Default)]
pub struct Gate {
    /// What the running kernel shares with its tasks.
    kernel: RefCell<Option<Rc<Shared>>>,
    /// The number of the running kernel, 0 for none.
    epoch: Cell<u32>,
    /// How many kernels of this thread exist.
    kernels: Cell<u32>,
    /// The task that is being polled.
    task: Cell<Option<TaskRef>>,
    /// The index of the scope in force.
    scope: Cell<u32>,
    /// The nearest timeout at or around that scope, or the root.
    timeout: Cell<ScopeId>,
    /// Identifies the waker of the current task without touching its reference count.
    waker: Cell<(*const (), *const ())>,
    budget: Cell<u32>,
    /// Whether an interrupt may be pending in the current task.
    has_sources: Cell<bool>,
    /// Whether the current task is to be polled when the shutdown begins.
    watches: Cell<bool>,
    serial: Cell<u32>,
    generation: Cell<u32>,
    newest: Cell<Option<Asked>>,
    /// A scope that was opened after everything else in the list; then there is no `newest`.
    opened: Cell<Option<Opening>>,
    /// Everything that was filed before these two.
    filed: RefCell<Vec<Filed>>,
    any_filed: Cell<bool>,
    answers: Tray<Answer>,
    owned: Tray<Owned>,
    /// Scopes that fired around a wait on a foreign waker.
    offers: RefCell<Vec<(ScopeId, Interrupt)>>,
    any_offers: Cell<bool>,
    tasks: Names,
    scopes: Names,
    handles: Names,
    /// Posts that came while no kernel ran, or for a kernel that was not running.
    later: RefCell<Vec<Post>>,
}

/// What a kernel shares with its tasks.
pub struct Shared {
    /// The number of the kernel, unique in the process.
    pub epoch: u32,
    /// The kernel clock.
    pub clock: Box<dyn Fn() -> Time>,
    /// The connection deadlines.
    pub deadlines: DeadlineTable,
    /// Sends wakes of the kernel's tickets to it, from any thread.
    pub outside: Arc<dyn Outside>,
    /// The shutdown of the kernel, as tasks see it.
    pub closing: Closing,
    /// The number of the newest task; the kernel's own is number 1.
    pub tasks: Cell<u64>,
    /// The number of the newest scope.
    pub scopes: Cell<u64>,
}

impl Shared {
    /// What a new kernel shares.
    #[must_use]
    pub fn new(epoch: u32, clock: Box<dyn Fn() -> Time>, outside: Arc<dyn Outside>) -> Shared {
        Shared {
            epoch,
            clock,
            deadlines: DeadlineTable::default(),
            outside,
            closing: Closing::default(),
            tasks: Cell::new(1),
            scopes: Cell::new(0),
        }
    }
}

thread_local! {
    /// The gate of this thread, if a kernel was ever made on it. It is never freed, so that objects
    /// that a thread drops at its end can still post.
    static GATE: Cell<Option<&'static Gate>> = const { Cell::new(None) };
    /// Whether the running kernel wants every event. It is not in the gate, because every read and
    /// write checks it.
    static LISTENING: Cell<bool> = const { Cell::new(false) };
}

/// Calls `look` with the gate of this thread; `None` if no kernel was ever made on it.
#[inline]
fn with<R>(look: impl FnOnce(&'static Gate) -> R) -> Option<R> {
    GATE.get().map(look)
}

/// Calls `look` with the gate, for the task that is being polled.
///
/// # Panics
///
/// If no task is being polled: a trap was polled outside a kernel.
#[inline]
fn in_task<R>(site: Site, look: impl FnOnce(&'static Gate, TaskRef) -> R) -> R {
    match GATE.get() {
        Some(gate) if let Some(task) = gate.task.get() => look(gate, task),
        _ => refuse_outside_a_task(site),
    }
}

#[cold]
pub(crate) fn refuse_outside_a_task(site: Site) -> ! {
    panic!("rule: traps are made by tasks; the trap at {site} was polled outside a kernel's poll")
}

// ---- Requests and answers ----------------------------------------------------------------------

/// A filed request: the task that filed it, and its serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) task: TaskRef,
    pub(crate) serial: NonZeroU32,
}

impl Receipt {
    pub(crate) fn ticket(self) -> Ticket {
        Ticket { task: self.task.index, serial: self.serial }
    }
}

/// What [`collect`] found.
pub(crate) enum Look {
    /// The answer.
    Answer(Answer),
    /// No answer yet.
    Nothing,
    /// The request was filed by another task and has to be filed again.
    Elsewhere,
}

/// Files a request of the task that is being polled.
#[inline]
pub(crate) fn file(request: Request, site: Site, cx: &Context<'_>) -> Receipt {
    in_task(site, |gate, task| {
        let receipt = Receipt { task, serial: gate.next_serial() };
        let scope = gate.scope.get();
        gate.flush();
        gate.newest.set(Some(Asked { serial: receipt.serial, scope, request, site }));
        if !gate.is_own(cx.waker()) {
            post(Post::SetWaker(receipt.ticket(), cx.waker().clone()));
        }
        receipt
    })
}

/// Stores the value that the next request owns; returns the request's serial number.
pub(crate) fn attach(owned: Owned) {
    with(|gate| gate.owned.put(gate.peek_serial(), owned));
}

/// Looks for the answer to a request.
#[inline]
pub(crate) fn collect(receipt: Receipt, site: Site, cx: &Context<'_>) -> Look {
    in_task(site, |gate, task| match gate.answers.take(receipt.serial) {
        Some(answer) => Look::Answer(answer),
        None if receipt.task != task => Look::Elsewhere,
        None => {
            if !gate.is_own(cx.waker()) {
                post(Post::SetWaker(receipt.ticket(), cx.waker().clone()));
            }
            Look::Nothing
        }
    })
}

/// Takes the value that an answer owns.
pub(crate) fn take_owned(serial: NonZeroU32) -> Option<Owned> {
    with(|gate| gate.owned.take(serial)).flatten()
}

/// Withdraws a request whose future is gone. Returns an unread answer with the value that it owns.
/// An unread interrupt is not returned: it becomes pending again.
pub(crate) fn withdraw(receipt: Receipt) -> Option<(Answer, Option<Owned>)> {
    let (answer, owned) = with(|gate| {
        let owned = gate.owned.take(receipt.serial);
        if let Some(answer) = gate.answers.take(receipt.serial) {
            return (Some(answer), owned);
        }
        if !gate.take_back(receipt.serial) {
            post(Post::Withdraw(receipt.ticket()));
        }
        (None, owned)
    })?;
    match owned {
        Some(Owned::Interrupt(interrupt)) => {
            post(Post::Unread(receipt.task, interrupt));
            None
        }
        owned => Some((answer?, owned)),
    }
}

impl Gate {
    fn new() -> Gate {
        let gate = Gate::default();
        gate.end();
        gate
    }

    #[inline]
    fn is_own(&self, waker: &Waker) -> bool {
        self.waker.get() == identity(waker)
    }

    /// The serial number of the next request. It wraps after 2^32 requests; no wait lasts that
    /// long.
    #[inline]
    fn peek_serial(&self) -> NonZeroU32 {
        NonZeroU32::new(self.serial.get().wrapping_add(1)).unwrap_or(NonZeroU32::MIN)
    }

    #[inline]
    fn next_serial(&self) -> NonZeroU32 {
        let serial = self.peek_serial();
        self.serial.set(serial.get());
        serial
    }

    /// Moves the newest entries to the end of the list.
    #[inline]
    fn flush(&self) {
        if self.newest.get().is_some() || self.opened.get().is_some() {
            self.flush_newest();
        }
    }

    #[cold]
    fn flush_newest(&self) {
        if let Some(asked) = self.newest.take() {
            self.push(Filed::Request(asked));
        }
        if let Some(opening) = self.opened.take() {
            self.push(Filed::Post(Post::OpenScope(opening)));
        }
    }

    fn push(&self, filed: Filed) {
        self.filed.borrow_mut().push(filed);
        self.any_filed.set(true);
    }

    /// Withdraws a request that the kernel has not seen.
    fn take_back(&self, serial: NonZeroU32) -> bool {
        if self.newest.get().is_some_and(|asked| asked.serial == serial) {
            self.newest.set(None);
            return true;
        }
        let is_it = |filed: &Filed| matches!(filed, Filed::Request(it) if it.serial == serial);
        let mut filed = self.filed.borrow_mut();
        let place = filed.iter().rposition(is_it);
        place.map(|place| filed.remove(place)).is_some()
    }
}

#[inline]
fn identity(waker: &Waker) -> (*const (), *const ()) {
    (waker.data(), ptr::from_ref(waker.vtable()).cast())
}

// ---- Posts -------------------------------------------------------------------------------------

/// Posts a message to the kernel. Harmless outside a kernel and while a thread ends.
pub(crate) fn post(post: Post) {
    let mut refused = Some(post);
    with(|gate| {
        if gate.epoch.get() != 0 {
            gate.flush();
            refused.take().into_iter().for_each(|post| gate.push(Filed::Post(post)));
        } else {
            refused = gate.post_later(refused.take());
        }
    });
    drop(refused);
}

impl Gate {
    /// Stores a post for a kernel that is not running. Returns it if there is none.
    fn post_later(&self, post: Option<Post>) -> Option<Post> {
        if self.kernels.get() == 0 {
            if let Some(Post::Release { handle, .. }) = &post {
                self.handles.free(handle.index);
            }
            return post;
        }
        self.later.borrow_mut().extend(post);
        None
    }
}

// ---- The surroundings --------------------------------------------------------------------------

/// The task that is being polled, `None` outside a poll.
#[inline]
pub(crate) fn task() -> Option<TaskRef> {
    with(|gate| gate.task.get()).flatten()
}

/// The number of the kernel that runs on this thread, 0 for none.
#[inline]
pub(crate) fn epoch() -> u32 {
    with(|gate| gate.epoch.get()).unwrap_or(0)
}

/// What the running kernel shares with its tasks.
pub(crate) fn shared() -> Option<Rc<Shared>> {
    with(|gate| gate.kernel.borrow().clone()).flatten()
}

/// Calls `look` with what the running kernel shares with its tasks.
#[inline]
pub(crate) fn with_shared<R>(look: impl FnOnce(&Shared) -> R) -> Option<R> {
    with(|gate| gate.kernel.borrow().as_deref().map(look)).flatten()
}

/// Has the task that is being polled woken when the shutdown begins. Posts this once per task.
#[inline]
pub(crate) fn watch_shutdown() {
    with(|gate| {
        if let Some(task) = gate.task.get()
            && !gate.watches.replace(true)
        {
            post(Post::Watch(task));
        }
    });
}

/// Reads the clock of the running kernel.
#[inline]
pub(crate) fn now() -> Option<Time> {
    with_shared(|kernel| (kernel.clock)())
}

/// Takes one operation from the task's budget; false if it is spent.
#[inline]
pub(crate) fn spend() -> bool {
    with(|gate| {
        let left = gate.budget.get();
        gate.budget.set(left.saturating_sub(1));
        left > 0
    })
    .unwrap_or(false)
}

/// Takes up to this many more operations from the budget.
pub(crate) fn spend_more(operations: u32) {
    with(|gate| gate.budget.set(gate.budget.get().saturating_sub(operations)));
}

/// A name and a number for a new task.
pub(crate) fn new_task() -> (TaskRef, TaskId) {
    with(Gate::new_task).expect("a task is spawned in a task")
}

/// A name for a descriptor.
pub(crate) fn new_handle() -> HandleId {
    with(|gate| HandleId { index: gate.handles.take(), generation: gate.next_generation() })
        .expect("a descriptor is waited for in a task")
}

pub(crate) use scopes::{
    close_scope, enter_scope, is_listening, moment, open_scope, take_offer, timeout,
};

pub use kernel_side::{is_running, post_wake_ticket, post_woken};
