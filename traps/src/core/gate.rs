//! The gate: where the tasks and the kernels of one thread meet.
//!
//! A wait lies here from the poll that files it until its result is read, and so do the scopes.
//! What a task files stays in program order: traps, and posts that need no reply. The newest trap
//! is in a cell, because most polls file nothing else.
//!
//! One rule for all of this module: no foreign object (a waker, a result, a future) is dropped,
//! cloned or called while a table here is borrowed, because it may call back into the gate.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::SystemTime;

use super::deadlines::DeadlineTable;
use super::names::{HandleId, OfHandle, Site, TaskId, TaskRef, Ticket};
use super::protocol::Post;
use super::queue::Queue;
use super::records::Records;
use super::signals::{SignalLine, SignalSet};
use super::table::Table;
use crate::time::Time;

/// Where the tasks and the kernels of one thread exchange traps and replies.
#[derive(Default)]
pub struct Gate {
    /// What the running kernel shares with its tasks.
    pub(super) kernel: RefCell<Option<Rc<Shared>>>,
    /// The number of the running kernel, 0 for none.
    pub(super) epoch: Cell<u32>,
    /// The kernels of this thread that exist.
    pub(super) kernels: RefCell<Vec<u32>>,
    /// The task that is being polled.
    pub(super) task: Cell<Option<TaskRef>>,
    /// Its place in the table of its kernel.
    pub(super) index: Cell<u32>,
    /// The index of the scope in force.
    pub(super) scope: Cell<u32>,
    /// The last reading of the clock.
    pub(super) now: Cell<Time>,
    /// Identifies the waker of the current task without touching its reference count.
    pub(super) waker: Cell<(*const (), *const ())>,
    pub(super) budget: Cell<u32>,
    /// How often tasks woke themselves in a poll of theirs. Such a task has something to do: it
    /// does not wait for foreign wakers alone.
    pub(super) self_wakes: Cell<u32>,
    /// The waits and the scopes.
    pub(super) records: RefCell<Records>,
    /// Names of handles, and the kernel that knows them.
    pub(super) handles: RefCell<Table<OfHandle, u32>>,
    /// The trap that was filed last.
    pub(super) newest: Cell<Option<Ticket>>,
    /// Everything that was filed before.
    pub(super) filed: RefCell<Vec<Filed>>,
    pub(super) any_filed: Cell<bool>,
    /// Posts for kernels that do not run.
    pub(super) later: RefCell<Vec<(u32, Post)>>,
}

/// What a task has filed.
pub enum Filed {
    /// A trap, which gets a reply. Stale if its future was dropped.
    Trap(Ticket),
    /// A post, which gets none.
    Post(Post),
}

/// What a kernel shares with its tasks.
pub struct Shared {
    /// The number of the kernel, unique in the process.
    pub epoch: u32,
    /// The kernel clock.
    pub clock: Box<dyn Fn() -> Time>,
    /// The time of day.
    pub wall: Box<dyn Fn() -> SystemTime>,
    /// The connection deadlines.
    pub deadlines: DeadlineTable,
    /// Sends wakes of the kernel's tickets to it, from any thread.
    pub outside: Arc<dyn Outside>,
    /// Whether the shutdown has begun.
    pub closing: Cell<bool>,
    /// Where tasks wait for its beginning.
    pub until_closing: Rc<Queue>,
    /// How many holds keep the drain of the shutdown going.
    pub holds: Rc<Cell<u64>>,
    /// Where tasks wait for one signal of several.
    pub signals: Rc<SignalLine>,
    /// The number of the newest task; the kernel's own is number 1.
    pub tasks: Cell<u64>,
    /// The number of the newest scope.
    pub scopes: Cell<u64>,
    /// The number of the newest job.
    pub jobs: Cell<u64>,
}

/// Carries the wakes of a kernel's tickets to it. A kernel implements it.
pub trait Outside: Send + Sync {
    /// Ends the wait of that ticket, from any thread. Never blocks for the kernel and never fails:
    /// where the ticket, or the kernel, is gone, nothing happens.
    fn unpark(&self, ticket: Ticket);
}

impl Shared {
    /// What a new kernel shares.
    #[must_use]
    pub fn new(
        epoch: u32,
        clock: Box<dyn Fn() -> Time>,
        wall: Box<dyn Fn() -> SystemTime>,
        outside: Arc<dyn Outside>,
    ) -> Shared {
        Shared {
            epoch,
            clock,
            wall,
            deadlines: DeadlineTable::default(),
            outside,
            closing: Cell::new(false),
            until_closing: Rc::default(),
            holds: Rc::default(),
            signals: Rc::new(SignalLine::new(SignalSet::default())),
            tasks: Cell::new(1),
            scopes: Cell::new(0),
            jobs: Cell::new(0),
        }
    }
}

thread_local! {
    /// The gate of this thread, if a kernel was ever made on it. It is never freed, so that objects
    /// that a thread drops at its end can still post.
    pub(super) static GATE: Cell<Option<&'static Gate>> = const { Cell::new(None) };
    /// Whether the running kernel wants every event. It is not in the gate, because every read and
    /// write checks it.
    pub(super) static LISTENING: Cell<bool> = const { Cell::new(false) };
}

/// Calls `look` with the gate of this thread; `None` if no kernel was ever made on it.
#[inline]
pub(super) fn with<R>(look: impl FnOnce(&'static Gate) -> R) -> Option<R> {
    GATE.get().map(look)
}

/// The gate, and the task that is being polled.
///
/// # Panics
///
/// If no task is being polled: a trap was polled outside a kernel.
#[inline]
pub(super) fn in_task(site: Site) -> (&'static Gate, TaskRef) {
    match GATE.get() {
        Some(gate) if let Some(task) = gate.task.get() => (gate, task),
        _ => refuse_outside_a_task(site),
    }
}

#[cold]
pub(crate) fn refuse_outside_a_task(site: Site) -> ! {
    panic!("rule: traps are made by tasks; the trap at {site} was polled outside a kernel's poll")
}

impl Gate {
    #[cold]
    pub(super) fn push(&self, filed: Filed) {
        self.filed.borrow_mut().push(filed);
        self.any_filed.set(true);
    }
}

#[inline]
pub(super) fn identity(waker: &Waker) -> (*const (), *const ()) {
    (waker.data(), ptr::from_ref(waker.vtable()).cast())
}

/// The task that is being polled, `None` outside a poll.
#[inline]
pub(crate) fn task() -> Option<TaskRef> {
    with(|gate| gate.task.get()).flatten()
}

/// The number of the task that is being polled.
pub(crate) fn task_id(site: Site) -> TaskId {
    let (gate, task) = in_task(site);
    TaskId(gate.records.borrow().scopes[task.index].number)
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

/// Reads the clock of the running kernel.
#[inline]
pub(crate) fn now() -> Option<Time> {
    let gate = GATE.get()?;
    let now = gate.kernel.borrow().as_deref().map(|kernel| (kernel.clock)())?;
    gate.now.set(now.max(gate.now.get()));
    Some(now)
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
pub(crate) fn new_task(site: Site) -> (TaskRef, TaskId) {
    with(|gate| gate.new_task(site)).expect("a task is spawned in a task")
}

/// A name for a descriptor.
pub(crate) fn new_handle() -> HandleId {
    with(|gate| gate.handles.borrow_mut().insert(gate.epoch.get()))
        .expect("a descriptor is waited for in a task")
}

/// Whether the running kernel wants every event.
#[inline]
pub(crate) fn is_listening() -> bool {
    LISTENING.get()
}

/// Calls `look` with the records, and the index of the scope in force.
pub(crate) fn with_records<R>(site: Site, look: impl FnOnce(&mut Records, u32, &Shared) -> R) -> R {
    let (gate, _) = in_task(site);
    let kernel = gate.kernel.borrow();
    let kernel = kernel.as_deref().expect("who polls a task is a kernel");
    look(&mut gate.records.borrow_mut(), gate.scope.get(), kernel)
}

/// The task that is being polled is to be polled when the shutdown begins.
#[inline]
pub(crate) fn watch_shutdown() {
    with(|gate| {
        if let Some(task) = gate.task.get() {
            gate.records.borrow_mut().scopes[task.index].watches_shutdown = true;
        }
    });
}

/// Whether a task belongs to the kernel that runs on this thread.
pub(crate) fn is_of_this_kernel(task: TaskRef) -> bool {
    let epoch = |gate: &Gate| Some(gate.records.borrow().scopes.get(task)?.epoch);
    with(epoch).flatten() == Some(self::epoch())
}
