//! The gate: where requests go out and answers come back. Each thread has one.
//!
//! A task reaches it through trap futures only; a kernel through the methods in `kernel_side.rs`.
//! What a task files, it files in program order: requests, and posts that need no answer.
//! The newest request lies in a cell of its own, because most polls file nothing else.
//!
//! One rule holds throughout: nothing foreign (a waker, an answer, a future) is dropped, cloned or
//! called while a list here is borrowed, because it may come back in.

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

/// The meeting place of the tasks and the kernels of one thread.
#[derive(Default)]
pub struct Gate {
    /// What the kernel that runs shares with its tasks.
    kernel: RefCell<Option<Rc<Shared>>>,
    /// The number of that kernel, 0 for none.
    epoch: Cell<u32>,
    /// Kernels of this thread that exist.
    kernels: Cell<u32>,
    /// The task that is being polled.
    task: Cell<Option<TaskRef>>,
    /// The index of the scope in force.
    scope: Cell<u32>,
    /// The nearest timeout at or around that scope, or the root.
    timeout: Cell<ScopeId>,
    /// Tells the waker of the current task without touching its reference count.
    waker: Cell<(*const (), *const ())>,
    budget: Cell<u32>,
    /// An interrupt may be pending in the current task.
    troubled: Cell<bool>,
    /// The current task is polled when the shutdown begins.
    watches: Cell<bool>,
    serial: Cell<u32>,
    generation: Cell<u32>,
    newest: Cell<Option<Asked>>,
    /// A scope that was opened after all else that is filed; then there is no `newest`.
    opened: Cell<Option<Opening>>,
    /// What was filed before these.
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
    /// Posts that came while no kernel ran, or for a kernel that did not run.
    later: RefCell<Vec<Post>>,
}

/// What a kernel shares with its tasks.
pub struct Shared {
    /// Numbers kernels, of all in the process.
    pub epoch: u32,
    /// The kernel clock.
    pub clock: Box<dyn Fn() -> Time>,
    /// Deadlines of connections.
    pub deadlines: DeadlineTable,
    /// Carries wakes of its tickets to it, from any thread.
    pub outside: Arc<dyn Outside>,
    /// Its shutdown, as tasks see it.
    pub closing: Closing,
    /// The number of the task that was made last; the kernel's own is number 1.
    pub tasks: Cell<u64>,
    /// The number of the scope that was opened last.
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
    /// The gate of this thread, if a kernel was ever made on it. It is never freed, so that what a
    /// thread drops at its end may still post.
    static GATE: Cell<Option<&'static Gate>> = const { Cell::new(None) };
    /// Somebody wants every event of the kernel that runs. Beside the gate, since every read and
    /// write looks here.
    static LISTENING: Cell<bool> = const { Cell::new(false) };
}

/// Looks at the gate of this thread; `None` if no kernel was ever made on it.
#[inline]
fn with<R>(look: impl FnOnce(&'static Gate) -> R) -> Option<R> {
    GATE.get().map(look)
}

/// Looks at the gate of a task that is being polled.
///
/// # Panics
///
/// If none is: a trap is polled outside a kernel.
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

/// A request that was filed: by whom, and under which serial number.
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
    /// The request was filed by another task: file it anew.
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

/// Lays down what the next request owns; gives its serial number.
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

/// Takes what an answer owns.
pub(crate) fn take_owned(serial: NonZeroU32) -> Option<Owned> {
    with(|gate| gate.owned.take(serial)).flatten()
}

/// Gives a request up: its future is gone. Hands back an answer that nobody read, with what it
/// owns, unless that is an interrupt, which becomes pending again.
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

    /// The serial number that the next request will have. It wraps after 2^32 requests; nobody
    /// waits that long.
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

    /// Moves what was filed last to the end of the list.
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

    /// Takes a request back that the kernel has not seen.
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

/// Tells the kernel something. Harmless outside a kernel and while a thread ends.
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
    /// Keeps a post for a kernel that does not run now. Gives it back if there is none.
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

// ---- What is around ----------------------------------------------------------------------------

/// The task that is being polled, `None` outside a poll.
#[inline]
pub(crate) fn task() -> Option<TaskRef> {
    with(|gate| gate.task.get()).flatten()
}

/// The kernel that runs on this thread, 0 for none.
#[inline]
pub(crate) fn epoch() -> u32 {
    with(|gate| gate.epoch.get()).unwrap_or(0)
}

/// What the kernel that runs shares with its tasks.
pub(crate) fn shared() -> Option<Rc<Shared>> {
    with(|gate| gate.kernel.borrow().clone()).flatten()
}

/// Looks at what the kernel that runs shares with its tasks.
#[inline]
pub(crate) fn with_shared<R>(look: impl FnOnce(&Shared) -> R) -> Option<R> {
    with(|gate| gate.kernel.borrow().as_deref().map(look)).flatten()
}

/// Has the task that is being polled woken when the shutdown begins. It says so once in its life.
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

/// Reads the clock of the kernel that runs.
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

/// Takes so many more, as far as there are any.
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
