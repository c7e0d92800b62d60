//! The gate: where the tasks and the kernel of one thread meet.
//!
//! The gate is a thread-local. It holds the task that is being polled, the scope in force, the
//! records of all waits and scopes, and the list of what the task has filed in this poll. One round
//! trip takes five steps:
//!
//! 1. The kernel begins a poll ([`Gate::begin_poll`]): it names the task. The scope in force is the
//!    task itself.
//! 2. The task files traps and posts, which stay in program order. The newest trap is in a cell of
//!    its own, because most polls file one trap and nothing else.
//! 3. The poll returns. The kernel takes what was filed ([`Gate::take_only_trap`],
//!    [`Gate::take_filed`]).
//! 4. The kernel answers a trap by writing the reply into the record of its wait, now or in a later
//!    turn.
//! 5. The next poll of the future finds the reply there by its ticket, and removes the record.
//!
//! **One rule holds for all of this module**: user code (a waker, a result, a future) must not be
//! dropped, cloned or called while a table here is borrowed, because it may call back into the
//! gate.
//!
//! **A thread has one kernel at a time.** A second one is refused. A post that is made while the
//! kernel does not run waits for its next run. When the kernel is dropped, the gate drops all
//! records and posts that are left. The serial numbers of keys go on counting (see `table.rs`), so
//! a future or a handle of a dropped kernel names nothing in the next one.
//!
//! The obvious way is a handle of the kernel in each future, or an argument of each `poll`. The
//! first makes a cycle of reference counts, and the second needs a `Context` of our own, which no
//! other future would pass on. A thread-local works below any combinator of any library.

use std::cell::{Cell, RefCell, RefMut};
use std::io;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;
use std::time::SystemTime;

use super::protocol::Post;
use super::records::Records;
use super::table::{HandleId, Key, Queue, ScopeId, Site, TaskId, TaskRef, Ticket};
use crate::parts::deadlines::DeadlineTable;
use crate::parts::handles::HandleNames;
use crate::parts::signals::{SignalInbox, SignalSet};
use crate::time::Time;

/// The meeting place at which the tasks and the kernel of one thread exchange traps and replies.
#[derive(Default)]
pub struct Gate {
    /// The state that the kernel of this thread shares with its tasks. `None` while there is no
    /// kernel.
    pub(crate) kernel: RefCell<Option<Rc<Shared>>>,
    /// The number of the kernel while it runs, otherwise 0.
    pub(crate) epoch: Cell<u32>,
    /// The task that is being polled.
    pub(crate) task: Cell<Option<TaskRef>>,
    /// The scope in force: the innermost scope that is being polled, or the task.
    pub(crate) scope: Cell<ScopeId>,
    /// The last reading of the kernel clock.
    pub(crate) now: Cell<Time>,
    /// The identity of the current task's waker, read without touching its reference count.
    pub(crate) waker: Cell<(*const (), *const ())>,
    pub(crate) budget: Cell<u32>,
    /// For `longrun` lines: the wait from which the task came into this run. It is the first wait
    /// whose reply the first poll of the run has read: the log's word and the call site. `None`
    /// until then. An empty word means that the first poll has read no reply, so a waker has woken
    /// the task. Here and not in each task, because few runs are long.
    pub(crate) came: Cell<Option<(&'static str, Option<Site>)>>,
    /// The number of times that a task woke itself in its own poll. A task that has just woken
    /// itself is not waiting.
    pub(crate) self_wakes: Cell<u32>,
    /// The tasks of this thread, with their waits and scopes.
    pub(crate) records: RefCell<Records>,
    pub(crate) handles: RefCell<HandleNames>,
    /// The scopes whose deadlines the kernel must put into the timer heap. They make no log line,
    /// so they need no order among the posts.
    pub(crate) new_timers: RefCell<Vec<ScopeId>>,
    /// The trap that was filed last.
    pub(crate) newest: Cell<Option<Ticket>>,
    /// The traps and posts that were filed before `newest`, in program order.
    pub(crate) filed: RefCell<Vec<Filed>>,
    /// Whether `filed` is not empty, to be asked without a borrow.
    pub(crate) any_filed: Cell<bool>,
    /// A fence between two kernels of the thread: the largest serial number of a key that was made
    /// before this kernel. Every key of the kernel has a larger one, whatever it names, until 2^32
    /// keys of a kind were made.
    before: Cell<u32>,
}

/// A trap or a post that a task has filed.
pub enum Filed {
    /// A trap, which gets a reply. Stale if its future was dropped.
    Trap(Ticket),
    /// A post, which gets no reply.
    Post(Post),
}

/// The state that a kernel shares with its tasks.
///
/// It is no part of the [`Gate`], although a thread has one kernel at a time. A connection deadline
/// can outlive its kernel, and then writes into the table of that kernel and not into the table of
/// the next one. A server arms a deadline for each request, and so needs no look-up of the gate.
pub struct Shared {
    /// The number of the kernel, unique in the process.
    pub epoch: u32,
    /// The kernel clock.
    pub(crate) clock: Box<dyn Fn() -> Time>,
    /// The time of day.
    pub(crate) wall: Box<dyn Fn() -> SystemTime>,
    /// Lets children of the process keep their exit statuses until they are waited for.
    pub(crate) keep_statuses: fn() -> io::Result<()>,
    /// The connection deadlines.
    pub deadlines: DeadlineTable,
    /// The inbox through which any thread can end a wait of the kernel's tasks.
    pub outside: Arc<dyn Outside>,
    /// Whether the shutdown has begun.
    pub closing: Cell<bool>,
    /// The queue of tasks that wait for the shutdown.
    pub until_closing: Rc<Queue>,
    /// The number of holds, which keep the drain of the shutdown going.
    pub holds: Rc<Cell<u64>>,
    /// The kernel's own inbox of signals, at which tasks wait for a single signal.
    pub signals: Rc<SignalInbox>,
    /// The number of the newest task. The kernel's own task is number 1.
    pub tasks: Cell<u64>,
    /// The number of the newest scope.
    pub scopes: Cell<u64>,
    /// The number of the newest job.
    pub(crate) jobs: Cell<u64>,
}

/// An inbox through which any thread can end a wait in a kernel. The kernel implements this trait.
pub trait Outside: Send + Sync {
    /// Ends the wait of a ticket, from any thread. Never blocks for the kernel, and never fails. If
    /// the wait or the kernel is gone, does nothing.
    fn unpark(&self, ticket: Ticket);
}

impl Shared {
    /// Makes the shared state of a new kernel.
    #[must_use]
    pub fn new(
        epoch: u32,
        clock: Box<dyn Fn() -> Time>,
        wall: Box<dyn Fn() -> SystemTime>,
        keep_statuses: fn() -> io::Result<()>,
        outside: Arc<dyn Outside>,
    ) -> Shared {
        Shared {
            epoch,
            clock,
            wall,
            keep_statuses,
            deadlines: DeadlineTable::default(),
            outside,
            closing: Cell::new(false),
            until_closing: Rc::default(),
            holds: Rc::default(),
            signals: Rc::new(SignalInbox::new(SignalSet::default())),
            tasks: Cell::new(1),
            scopes: Cell::new(0),
            jobs: Cell::new(0),
        }
    }
}

thread_local! {
    /// The gate of this thread, if a kernel was ever made on it. It is never freed, so that objects
    /// that a thread drops at its end can still post.
    pub(crate) static GATE: Cell<Option<&'static Gate>> = const { Cell::new(None) };
    /// Whether the running kernel wants its tasks to file every event. This is not in the gate,
    /// because every read and write checks it.
    static LISTENING: Cell<bool> = const { Cell::new(false) };
}

/// Calls `look` with the gate of this thread. Returns `None` if no kernel was ever made on it.
#[inline]
pub(crate) fn with<R>(look: impl FnOnce(&'static Gate) -> R) -> Option<R> {
    GATE.get().map(look)
}

/// Returns the gate, and the task that is being polled.
///
/// # Panics
///
/// Panics if no task is being polled, because a trap was then polled outside a kernel.
#[inline]
pub(crate) fn in_task(site: Site) -> (&'static Gate, TaskRef) {
    if let Some(gate) = GATE.get()
        && let Some(task) = gate.task.get()
    {
        return (gate, task);
    }
    refuse_outside_a_task(site)
}

#[cold]
pub(crate) fn refuse_outside_a_task(site: Site) -> ! {
    panic!("rule: traps are made by tasks; the trap at {site} was polled outside a kernel's poll")
}

impl Gate {
    #[cold]
    pub(crate) fn push(&self, filed: Filed) {
        self.filed.borrow_mut().push(filed);
        self.any_filed.set(true);
    }
}

#[inline]
pub(crate) fn identity(waker: &Waker) -> (*const (), *const ()) {
    (waker.data(), ptr::from_ref(waker.vtable()).cast())
}

/// Returns the task that is being polled, or `None` outside a poll.
#[inline]
pub(crate) fn task() -> Option<TaskRef> {
    with(|gate| gate.task.get()).flatten()
}

/// Returns the number of the task that is being polled.
pub(crate) fn task_id(site: Site) -> TaskId {
    let (gate, task) = in_task(site);
    TaskId(gate.records.borrow().tasks[task.index].number)
}

/// Returns the number of the task that is being polled, or `None` outside a poll.
pub(crate) fn task_number() -> Option<u64> {
    let gate = GATE.get()?;
    let records = gate.records.try_borrow().ok()?;
    records.tasks.get(gate.task.get()?).map(|task| task.number)
}

/// Returns the number of the kernel of this thread while it runs, otherwise 0.
#[inline]
pub(crate) fn epoch() -> u32 {
    with(|gate| gate.epoch.get()).unwrap_or(0)
}

/// Returns the state that the kernel of this thread shares with its tasks.
pub(crate) fn shared() -> Option<Rc<Shared>> {
    with(|gate| gate.kernel.borrow().clone()).flatten()
}

/// Calls `look` with the state that the kernel of this thread shares with its tasks.
#[inline]
pub(crate) fn with_shared<R>(look: impl FnOnce(&Shared) -> R) -> Option<R> {
    with(|gate| gate.kernel.borrow().as_deref().map(look)).flatten()
}

/// Reads the clock of the kernel of this thread.
#[inline]
pub(crate) fn now() -> Option<Time> {
    let gate = GATE.get()?;
    let now = gate.kernel.borrow().as_deref().map(|kernel| (kernel.clock)())?;
    // The kernel takes this over after the poll. So no later line is earlier than what the task has
    // read.
    gate.now.set(now.max(gate.now.get()));
    Some(now)
}

/// Takes one operation from the task's budget. Returns `false` if the budget is spent.
#[inline]
pub(crate) fn spend() -> bool {
    with(|gate| {
        let left = gate.budget.get();
        gate.budget.set(left.saturating_sub(1));
        left > 0
    })
    .unwrap_or(false)
}

/// Takes up to `operations` more operations from the budget.
pub(crate) fn spend_more(operations: u32) {
    with(|gate| gate.budget.set(gate.budget.get().saturating_sub(operations)));
}

/// Makes a name and a number for a new task.
pub(crate) fn new_task(site: Site) -> (TaskRef, TaskId) {
    with(|gate| gate.new_task(site)).expect("a task is spawned in a task")
}

/// Makes the post that cancels a task. It has its rank from now, so a branch that the poll opens
/// later was not open when the cancellation fired.
pub(crate) fn cancellation(task: TaskRef, reason: &'static str) -> Post {
    let order = with(|gate| gate.records.borrow_mut().next_rank()).unwrap_or(0);
    Post::Cancel { task, reason, order }
}

/// Makes a name for a descriptor.
pub(crate) fn new_handle() -> HandleId {
    with(|gate| gate.handles.borrow_mut().make()).expect("a descriptor is waited for in a task")
}

/// Returns whether a key was made in the kernel of this thread. A future that outlives its kernel
/// can so tell that its key, or a point of time that it has kept, means nothing here.
#[inline]
pub(crate) fn is_of_this_kernel<K>(key: Key<K>) -> bool {
    with(|gate| key.serial() > gate.before.get()).unwrap_or(false)
}

/// Returns whether the running kernel wants its tasks to file every event.
#[inline]
pub(crate) fn is_listening() -> bool {
    LISTENING.get()
}

/// Returns the largest serial number of the keys of this thread.
pub(crate) fn last_serial() -> u32 {
    with(Gate::last_serial).unwrap_or_default()
}

/// Sets whether tasks of this thread file every event.
pub fn set_listening(listening: bool) {
    LISTENING.set(listening);
}

/// Calls `look` with the records, and the scope in force.
pub(crate) fn with_records<R>(
    site: Site,
    look: impl FnOnce(&mut Records, ScopeId, &Shared) -> R,
) -> R {
    let (gate, _) = in_task(site);
    let kernel = gate.kernel.borrow();
    let kernel = kernel.as_deref().expect("who polls a task is a kernel");
    look(&mut gate.records.borrow_mut(), gate.scope.get(), kernel)
}

/// Returns whether the shutdown has begun, and records that the task that is being polled has
/// asked. If it `watches`, it is polled again when the shutdown begins.
#[inline]
pub(crate) fn ask_shutdown(watches: bool) -> bool {
    let Some(gate) = GATE.get() else { return false };
    if let Some(task) = gate.task.get()
        && let Some(record) = gate.records.borrow_mut().tasks.get_mut(task)
    {
        record.asked_shutdown = true;
        record.watches_shutdown |= watches;
    }
    gate.kernel.borrow().as_deref().is_some_and(|kernel| kernel.closing.get())
}

/// Returns whether a task has not ended.
pub(crate) fn is_alive(task: TaskRef) -> bool {
    with(|gate| gate.records.borrow().tasks.get(task).is_some()).unwrap_or(false)
}

/// Makes a number for a new kernel, unique in the process. Wakers recognise their kernel by it.
pub fn new_epoch() -> u32 {
    static EPOCHS: AtomicU32 = AtomicU32::new(1);
    EPOCHS.fetch_add(1, Ordering::Relaxed)
}

/// Reports to the kernel of this thread, by a post, that the waker of a task was called.
pub fn post_woken(task: TaskRef) {
    with(|gate| {
        if gate.task.get() == Some(task) {
            gate.self_wakes.set(gate.self_wakes.get().wrapping_add(1));
        }
    });
    post(Post::Woken(task));
}

/// Asks the kernel of this thread, by a post, to end the wait of a ticket.
pub fn post_unpark(ticket: Ticket) {
    post(Post::Unpark(ticket));
}

/// The methods for the life of a kernel: made, running, stopped, gone.
impl Gate {
    /// Returns the gate of this thread. The first call makes it, and it is never freed.
    #[must_use]
    pub fn of_this_thread() -> &'static Gate {
        let gate = GATE.get().unwrap_or_else(|| {
            let gate: &'static Gate = Box::leak(Box::default());
            gate.end_poll();
            gate
        });
        GATE.set(Some(gate));
        gate
    }

    /// Makes `kernel` the kernel of this thread, until the claim is dropped.
    ///
    /// # Panics
    ///
    /// Panics if the thread already has a kernel.
    pub fn claim(&'static self, kernel: &Rc<Shared>) -> Claim {
        // Two kernels would serve each other's traps: the records do not say whose they are.
        let rule = "rule: a thread has one kernel at a time, and this thread has one already";
        assert!(self.kernel.borrow().is_none(), "{rule}");
        self.kernel.replace(Some(kernel.clone()));
        let before = self.last_serial();
        self.before.set(before);
        let mut records = self.records.borrow_mut();
        // All tables count on from one number. So a key whose serial number is not above it belongs
        // to an earlier kernel of this thread, whatever it names.
        (records.waits.last, records.tasks.last, records.scopes.last) = (before, before, before);
        self.handles.borrow_mut().last = before;
        Claim(self)
    }

    fn last_serial(&self) -> u32 {
        let records = self.records.borrow();
        let last = records.waits.last.max(records.tasks.last).max(records.scopes.last);
        last.max(self.handles.borrow().last)
    }

    /// Marks the kernel as running.
    pub fn start(&self, kernel: &Shared) {
        debug_assert!(self.epoch.get() == 0, "a kernel runs once at a time");
        self.epoch.set(kernel.epoch);
    }

    /// Marks the kernel as stopped. Later posts wait for its next run.
    pub fn stop(&self) {
        self.end_poll();
        self.epoch.set(0);
    }

    /// Returns the number of filed posts for which `counts` returns `true`.
    #[must_use]
    pub fn count_posts(&self, counts: impl Fn(&Post) -> bool) -> usize {
        let filed = self.filed.borrow();
        filed.iter().filter(|filed| matches!(filed, Filed::Post(post) if counts(post))).count()
    }
}

/// A kernel's claim to the gate of its thread.
#[derive(Debug)]
pub struct Claim(&'static Gate);

impl Drop for Claim {
    /// Drops everything that the kernel has left at the gate.
    fn drop(&mut self) {
        let kernel = self.0.kernel.take();
        self.0.before.set(self.0.last_serial());
        self.0.new_timers.borrow_mut().clear();
        self.0.handles.borrow_mut().clear();
        // Take everything out before any of it is dropped. A drop runs user code, and that may post
        // while a table is borrowed.
        let filed = self.0.take_filed();
        let records = self.0.records.borrow_mut().clear();
        drop((kernel, filed, records));
    }
}

/// The methods for the polls of a task.
impl Gate {
    /// Prepares for a poll: sets the task, and the kernel's last reading of the clock.
    #[inline]
    pub fn begin_poll(&self, task: TaskRef, now: Time) {
        debug_assert!(self.task.get().is_none_or(|it| it == task), "one task is polled at a time");
        self.task.set(Some(task));
        // No scope of the task is polled yet. This name stands for the task itself.
        self.scope.set(ScopeId::of(task));
        self.now.set(now);
    }

    /// Sets the waker with which the task is polled, so that the gate recognises it.
    #[inline]
    pub fn set_waker(&self, waker: &Waker) {
        self.waker.set(identity(waker));
    }

    /// Prepares for a run: sets the number of I/O operations after which the task yields, and
    /// forgets from which wait the last run came.
    #[inline]
    pub fn begin_run(&self, budget: u32) {
        self.budget.set(budget);
        self.came.set(None);
    }

    /// Records that the next poll is not the first one of the run. What it reads are answers to
    /// traps of this run, so they do not tell from which wait the task came.
    #[inline]
    pub fn keep_polling(&self) {
        if self.came.get().is_none() {
            self.came.set(Some(("", None)));
        }
    }

    /// Returns the log's word for the wait from which the task has returned in this run, and the
    /// call site of the wait. The word is empty if a waker has woken the task.
    #[must_use]
    pub fn came_from(&self) -> (&'static str, Option<Site>) {
        self.came.get().unwrap_or_default()
    }

    /// Returns the last reading of the kernel clock, made by the task or before its poll.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Time {
        self.now.get()
    }

    /// Records that no task is being polled any more.
    #[inline]
    pub fn end_poll(&self) {
        self.task.set(None);
        self.scope.set(ScopeId::NONE);
    }

    /// Forgets the traps that the last poll of a task has filed. Their futures live on elsewhere,
    /// and their waits end with the task.
    #[inline]
    pub fn drop_traps(&self) {
        self.newest.set(None);
        if self.any_filed.get() {
            let mut filed = self.filed.borrow_mut();
            filed.retain(|filed| matches!(filed, Filed::Post(_)));
            self.any_filed.set(!filed.is_empty());
        }
    }

    /// Hides the current task while user code runs.
    pub fn without_task<R>(&self, code: impl FnOnce() -> R) -> R {
        // If a destructor polls a trap, the trap must be refused: nothing would poll its future
        // again.
        let task = self.task.take();
        let result = code();
        self.task.set(task);
        result
    }

    /// Borrows the tasks, the waits and the scopes. User code must not be called in the meantime.
    #[inline]
    pub fn records(&self) -> RefMut<'_, Records> {
        self.records.borrow_mut()
    }

    /// Returns whether anything is filed.
    #[inline]
    #[must_use]
    pub fn has_filed(&self) -> bool {
        self.newest.get().is_some() || self.any_filed.get()
    }

    /// Takes one of the scopes whose deadlines must go into the timer heap.
    #[inline]
    #[must_use]
    pub fn take_new_timer(&self) -> Option<ScopeId> {
        self.new_timers.borrow_mut().pop()
    }

    /// Takes the filed trap, if nothing else is filed.
    #[inline]
    #[must_use]
    pub fn take_only_trap(&self) -> Option<Ticket> {
        if self.any_filed.get() { None } else { self.newest.take() }
    }

    /// Takes everything that is filed, in program order.
    #[must_use]
    pub fn take_filed(&self) -> Vec<Filed> {
        if let Some(newest) = self.newest.take() {
            self.push(Filed::Trap(newest));
        }
        self.any_filed.set(false);
        self.filed.take()
    }

    /// Keeps the emptied list of filed entries, so that the next poll need not allocate one.
    pub fn reuse_list(&self, list: Vec<Filed>) {
        debug_assert!(list.is_empty(), "what was taken is handled first");
        let mut filed = self.filed.borrow_mut();
        // Free a long list, so that a loop of spawns does not keep its memory forever.
        if filed.is_empty() && list.capacity() <= 1024 {
            *filed = list;
        }
    }

    /// Chooses the name and the number of a new task.
    ///
    /// # Panics
    ///
    /// Panics if the thread has no kernel.
    #[must_use]
    pub fn new_task(&self, site: Site) -> (TaskRef, TaskId) {
        let kernel = self.kernel.borrow();
        let kernel = kernel.as_ref().expect("a task is made in a kernel");
        kernel.tasks.set(kernel.tasks.get() + 1);
        let number = kernel.tasks.get();
        (self.records.borrow_mut().add_task(number, site), TaskId(number))
    }

    /// Frees the name of a handle.
    pub fn free_handle(&self, handle: HandleId) {
        self.handles.borrow_mut().free(handle);
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("epoch", &self.epoch.get()).finish_non_exhaustive()
    }
}

/// Returns whether the kernel with this number is running on this thread now.
#[must_use]
pub fn is_running(epoch: u32) -> bool {
    self::epoch() == epoch
}

/// Posts a message to the kernel of this thread, for now or for its next run. If there is no
/// kernel, or the thread is ending, drops the message.
pub(crate) fn post(post: Post) {
    match GATE.get() {
        Some(gate) if gate.kernel.borrow().is_some() => gate.post(post),
        _ => drop(post),
    }
}

impl Gate {
    /// Posts a message to the kernel of this thread.
    pub fn post(&self, post: Post) {
        // The list must be in program order, and the newest trap is not in it yet.
        if let Some(older) = self.newest.take() {
            self.push(Filed::Trap(older));
        }
        self.push(Filed::Post(post));
    }
}
