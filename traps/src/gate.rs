//! Where requests go out and results come back: one gate per thread.
//!
//! A task touches it only through a trap future; a kernel through the methods of [`Gate`]. Nothing
//! else passes between them: no reference from a task to a kernel or back.
//!
//! The first request of a poll lies in a *register*: its result is usually back before anything
//! else happens, and then no table is touched. It gets the slot that was kept free for it when it
//! parks, when a second request comes, or when its result is not read at once.
//!
//! One rule holds throughout: a waker, a result, a request or anything else with a foreign `Drop`
//! is never dropped, cloned or called while a table here is borrowed, because it may come back in.

use std::cell::{Cell, RefCell};
use std::mem;
use std::num::NonZeroU64;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};

use crate::interrupt::Interrupt;
use crate::protocol::{
    Failure, Filed, HandleId, Post, Request, ScopeId, Site, TaskRef, Ticket, TrapResult,
};

/// What is being polled now, and for whom.
#[derive(Clone, Copy)]
struct Current {
    task: TaskRef,
    scope: ScopeId,
    /// The nearest timeout at or around `scope`, or the root.
    timeout: ScopeId,
}

/// One ticket: who filed it, and its result once there is one.
struct Slot {
    serial: NonZeroU64,
    epoch: u32,
    task: TaskRef,
    scope: ScopeId,
    state: State,
    /// A waker other than the task's own (a combinator's), to be called with the result.
    waker: Option<Waker>,
}

enum State {
    /// Not in use; the next free slot.
    Free(u32),
    /// The kernel has not looked at it yet.
    Filed,
    /// The kernel keeps it.
    Parked,
    /// Its future is gone, the kernel has yet to hear of it.
    Withdrawn,
    /// To be read.
    Done(TrapResult),
}

const END: u32 = u32::MAX;

/// How far the request in the register has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There is none.
    Empty,
    /// The kernel has not looked at it yet.
    Filed,
    /// The kernel is answering it.
    Taken,
    /// Its future went away meanwhile.
    Withdrawn,
    /// Its result is to be read.
    Answered,
}

/// The first request of the current poll, and then its result.
struct Register {
    stage: Cell<Stage>,
    serial: Cell<u64>,
    /// The slot that is kept free for it, `END` until the first is needed.
    index: Cell<u32>,
    /// Whether what is in the list was filed before it.
    behind: Cell<bool>,
    scope: Cell<Option<ScopeId>>,
    site: Cell<Option<Site>>,
    request: Cell<Option<Request>>,
    result: Cell<Option<TrapResult>>,
}

impl Register {
    #[inline]
    fn holds(&self, ticket: Ticket) -> bool {
        self.serial.get() == ticket.serial.get() && self.stage.get() != Stage::Empty
    }
}

impl Slot {
    /// A free slot that is in no list.
    fn unused() -> Slot {
        let serial = NonZeroU64::MAX;
        let task = TaskRef { index: END, epoch: 0, serial };
        let scope = ScopeId { index: END, epoch: 0, serial };
        Slot { serial, epoch: 0, task, scope, state: State::Free(END), waker: None }
    }
}

/// The tables of a gate.
struct Tables {
    slots: Vec<Slot>,
    free: u32,
    /// For the kernel that runs, in the order in which it was filed.
    filed: Vec<Filed>,
    /// For kernels of this thread that do not run now.
    elsewhere: Vec<(u32, Post)>,
    /// Kernels of this thread that exist.
    kernels: Vec<u32>,
    free_handles: Vec<u32>,
    handles: u32,
    /// Scopes that fired around a wait on a bare waker.
    bare: Vec<(ScopeId, Interrupt)>,
}

/// The meeting place of the tasks and the kernels of one thread.
///
/// Tasks reach it through their trap futures; the methods are for kernels.
pub struct Gate {
    /// The kernel that runs on this thread, 0 for none.
    epoch: Cell<u32>,
    current: Cell<Option<Current>>,
    /// The waker of the current task, told apart without touching its reference count.
    own: Cell<(*const (), *const ())>,
    budget: Cell<u32>,
    any_bare: Cell<bool>,
    /// Whether anything is filed in the tables: to be read without a borrow.
    any_filed: Cell<bool>,
    /// The last serial number that was given out.
    serial: Cell<u64>,
    register: Register,
    tables: RefCell<Tables>,
}

thread_local! {
    static GATE: Rc<Gate> = Rc::new(Gate {
        epoch: Cell::new(0),
        current: Cell::new(None),
        own: Cell::new((ptr::null(), ptr::null())),
        budget: Cell::new(0),
        any_bare: Cell::new(false),
        any_filed: Cell::new(false),
        serial: Cell::new(0),
        register: Register {
            stage: Cell::new(Stage::Empty),
            serial: Cell::new(0),
            index: Cell::new(END),
            behind: Cell::new(false),
            scope: Cell::new(None),
            site: Cell::new(None),
            request: Cell::new(None),
            result: Cell::new(None),
        },
        tables: RefCell::new(Tables {
            slots: Vec::new(),
            free: END,
            filed: Vec::new(),
            elsewhere: Vec::new(),
            kernels: Vec::new(),
            free_handles: Vec::new(),
            handles: 0,
            bare: Vec::new(),
        }),
    });
}

/// Numbers kernels, on all threads: a waker tells its own kernel from others by it.
static EPOCHS: AtomicU32 = AtomicU32::new(1);

fn identity(waker: &Waker) -> (*const (), *const ()) {
    (waker.data(), ptr::from_ref(waker.vtable()).cast())
}

impl Tables {
    /// Takes a slot out of the free list, or makes one.
    fn reserve(&mut self) -> u32 {
        let index = self.free;
        if index == END {
            let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 tickets");
            self.slots.push(Slot::unused());
            return index;
        }
        let State::Free(next) = self.slots[index as usize].state else {
            unreachable!("the free list holds free slots")
        };
        self.free = next;
        index
    }

    #[inline]
    fn live(&mut self, ticket: Ticket) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(ticket.index as usize)?;
        (slot.serial == ticket.serial && !matches!(slot.state, State::Free(_))).then_some(slot)
    }

    /// Frees a slot and hands out what was in it, to be dropped outside.
    #[inline]
    fn free(&mut self, index: u32) -> (State, Option<Waker>) {
        let slot = &mut self.slots[index as usize];
        let state = mem::replace(&mut slot.state, State::Free(self.free));
        self.free = index;
        (state, slot.waker.take())
    }

    /// Queues a post; gives it back if its kernel is gone.
    fn post(&mut self, running: u32, post: Post) -> Option<Post> {
        let epoch = post.epoch().unwrap_or(running);
        if epoch == running && running != 0 {
            self.filed.push(Filed::Post(post));
        } else if self.kernels.contains(&epoch) {
            self.elsewhere.push((epoch, post));
        } else {
            return Some(post);
        }
        None
    }
}

// ---- The task's side ---------------------------------------------------------------------------

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

impl Gate {
    #[inline]
    fn next_serial(&self) -> NonZeroU64 {
        self.serial.set(self.serial.get() + 1);
        NonZeroU64::new(self.serial.get()).expect("a counter from 1 does not wrap in 64 bits")
    }

    /// Moves what is in the register to its slot, and leaves the register empty.
    #[cold]
    fn spill(&self) {
        let register = &self.register;
        let stage = register.stage.replace(Stage::Empty);
        let Some(current) = self.current.get() else { return };
        let serial = NonZeroU64::new(register.serial.get());
        let (Some(serial), Some(scope)) = (serial, register.scope.get()) else { return };
        let tables = &mut *self.tables.borrow_mut();
        let (task, index) = (current.task, register.index.get());
        let ticket = Ticket { index, epoch: task.epoch, serial };
        let state = match stage {
            Stage::Empty => return,
            Stage::Filed => {
                let request = register.request.take().expect("a filed request is there");
                let site = register.site.get().expect("a filed request has a place");
                let place = if register.behind.get() { tables.filed.len() } else { 0 };
                let filed = Filed::Request { ticket, task, scope, request, site };
                tables.filed.insert(place, filed);
                self.any_filed.set(true);
                State::Filed
            }
            Stage::Taken => State::Filed,
            Stage::Withdrawn => State::Withdrawn,
            Stage::Answered => {
                State::Done(register.result.take().expect("an answered request has a result"))
            }
        };
        let slot = Slot { serial, epoch: task.epoch, task, scope, state, waker: None };
        tables.slots[index as usize] = slot;
        register.index.set(tables.reserve());
    }

    /// Before something goes to the end of the list: what is in the register must not stand
    /// between two parts of it.
    #[inline]
    fn keep_order(&self) {
        if self.register.stage.get() == Stage::Filed && self.register.behind.get() {
            self.spill();
        }
    }

    /// How much is filed now.
    fn filed(&self) -> usize {
        let first = usize::from(self.register.stage.get() == Stage::Filed);
        first + self.tables.borrow().filed.len()
    }

    /// Files a request in a slot of its own.
    fn file_in_table(
        &self,
        current: Current,
        request: Request,
        site: Site,
        waker: Option<Waker>,
    ) -> Ticket {
        let serial = self.next_serial();
        let Current { task, scope, .. } = current;
        let tables = &mut *self.tables.borrow_mut();
        let index = tables.reserve();
        let slot = Slot { serial, epoch: task.epoch, task, scope, state: State::Filed, waker };
        tables.slots[index as usize] = slot;
        let ticket = Ticket { index, epoch: task.epoch, serial };
        tables.filed.push(Filed::Request { ticket, task, scope, request, site });
        self.any_filed.set(true);
        ticket
    }
}

/// Files a request of the task that is being polled.
#[inline]
pub(crate) fn file(request: Request, site: Site, cx: &Context<'_>) -> Ticket {
    GATE.with(|gate| {
        let Some(current) = gate.current.get() else { outside(site) };
        let own = gate.own.get() == identity(cx.waker());
        let register = &gate.register;
        if register.stage.get() == Stage::Answered {
            gate.spill();
        }
        if !own || register.stage.get() != Stage::Empty {
            gate.keep_order();
            let waker = if own { None } else { Some(cx.waker().clone()) };
            return gate.file_in_table(current, request, site, waker);
        }
        if register.index.get() == END {
            register.index.set(gate.tables.borrow_mut().reserve());
        }
        let serial = gate.next_serial();
        register.serial.set(serial.get());
        register.behind.set(gate.any_filed.get());
        register.scope.set(Some(current.scope));
        register.site.set(Some(site));
        let earlier = register.request.replace(Some(request));
        debug_assert!(earlier.is_none(), "an empty register holds no request");
        mem::forget(earlier);
        register.stage.set(Stage::Filed);
        Ticket { index: register.index.get(), epoch: current.task.epoch, serial }
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
        let Some(current) = gate.current.get() else { return Look::Outside };
        let own = gate.own.get() == identity(cx.waker());
        if gate.register.holds(ticket) {
            if gate.register.stage.get() == Stage::Answered {
                gate.register.stage.set(Stage::Empty);
                let result = gate.register.result.take();
                return Look::Result(result.expect("an answered request has a result"));
            }
            if own {
                gate.register.scope.set(Some(current.scope));
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

impl Gate {
    fn withdraw_register(&self) -> Option<TrapResult> {
        match self.register.stage.get() {
            Stage::Filed => {
                self.register.stage.set(Stage::Empty);
                drop(self.register.request.take());
                None
            }
            Stage::Taken => {
                self.register.stage.set(Stage::Withdrawn);
                None
            }
            Stage::Answered => {
                self.register.stage.set(Stage::Empty);
                unread(self.register.result.take())
            }
            Stage::Empty | Stage::Withdrawn => None,
        }
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
    GATE.with(|gate| gate.current.get().map(|current| current.scope))
}

/// The task that is being polled, `None` outside a poll.
pub(crate) fn task() -> Option<TaskRef> {
    GATE.with(|gate| gate.current.get().map(|current| current.task))
}

/// The nearest timeout at or around the scope in force, or the root; `None` outside a poll.
#[inline]
pub(crate) fn timeout() -> Option<ScopeId> {
    GATE.with(|gate| gate.current.get().map(|current| current.timeout))
}

/// Makes `scope` the one in force until the guard is dropped, also by a panic.
#[inline]
pub(crate) fn enter_scope(scope: ScopeId, is_timeout: bool) -> ScopeGuard {
    GATE.with(|gate| {
        let before = gate.current.get();
        if let Some(current) = before {
            let timeout = if is_timeout { scope } else { current.timeout };
            gate.current.set(Some(Current { scope, timeout, ..current }));
        }
        ScopeGuard(before.map(|current| (current.scope, current.timeout)))
    })
}

/// Restores the scope around.
pub(crate) struct ScopeGuard(Option<(ScopeId, ScopeId)>);

impl Drop for ScopeGuard {
    #[inline]
    fn drop(&mut self) {
        GATE.with(|gate| {
            if let (Some((scope, timeout)), Some(current)) = (self.0, gate.current.get()) {
                gate.current.set(Some(Current { scope, timeout, ..current }));
            }
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

// ---- The kernel's side -------------------------------------------------------------------------

/// What became of a result.
pub enum Completion {
    /// It lies ready to be read; the waker, if there is one, is to be called.
    Ready(Option<Waker>),
    /// The future was gone: here it is again, for the next in line.
    Withdrawn(TrapResult),
}

/// Whether a kernel of that number runs on this thread now. For wakers, on any thread.
#[inline]
#[must_use]
pub fn is_running(epoch: u32) -> bool {
    GATE.try_with(|gate| gate.epoch.get() == epoch).unwrap_or(false)
}

/// Tells the kernel that runs on this thread that a task's waker was called.
pub fn post_woken(task: TaskRef) {
    post(Post::Woken(task));
}

impl Gate {
    /// The gate of this thread.
    #[must_use]
    pub fn of_this_thread() -> Rc<Gate> {
        GATE.with(Rc::clone)
    }

    /// Registers a kernel on this thread and numbers it.
    #[must_use]
    pub fn open(&self) -> u32 {
        let epoch = EPOCHS.fetch_add(1, Ordering::Relaxed);
        self.tables.borrow_mut().kernels.push(epoch);
        epoch
    }

    /// Forgets a kernel: its tickets, and the posts that nobody will read.
    pub fn close(&self, epoch: u32) {
        let mut dropped = Vec::new();
        let mut posts = Vec::new();
        {
            let tables = &mut *self.tables.borrow_mut();
            tables.kernels.retain(|kernel| *kernel != epoch);
            for index in 0..tables.slots.len() {
                let slot = &tables.slots[index];
                if slot.epoch == epoch && !matches!(slot.state, State::Free(_)) {
                    dropped.push(tables.free(u32::try_from(index).expect("a slot's index")));
                }
            }
            for entry in mem::take(&mut tables.elsewhere) {
                if entry.0 == epoch {
                    posts.push(entry.1);
                } else {
                    tables.elsewhere.push(entry);
                }
            }
        }
        for post in &posts {
            // The queue lives on, and what was handed back to it is not lost.
            if let Post::Permit { queue, keep: true } = post {
                queue.permits.set(queue.permits.get() + 1);
            }
        }
        drop((dropped, posts));
    }

    /// Makes the kernel the one that runs on this thread.
    ///
    /// # Panics
    ///
    /// If one runs already: a kernel does not run inside a kernel.
    pub fn enter(&self, epoch: u32) {
        assert!(
            self.epoch.get() == 0,
            "rule: one kernel runs on a thread at a time; `run` was called inside `run`"
        );
        self.epoch.set(epoch);
        let tables = &mut *self.tables.borrow_mut();
        for entry in mem::take(&mut tables.elsewhere) {
            if entry.0 == epoch {
                tables.filed.push(Filed::Post(entry.1));
                self.any_filed.set(true);
            } else {
                tables.elsewhere.push(entry);
            }
        }
    }

    /// The kernel stops running; what is posted and was not taken waits for its next run.
    pub fn leave(&self, epoch: u32) {
        self.end();
        self.epoch.set(0);
        self.any_filed.set(false);
        let mut requests = Vec::new();
        {
            let tables = &mut *self.tables.borrow_mut();
            for filed in mem::take(&mut tables.filed) {
                match filed {
                    Filed::Post(post) => tables.elsewhere.push((epoch, post)),
                    request @ Filed::Request { .. } => requests.push(request),
                }
            }
        }
        drop(requests);
    }

    /// Before a task runs: says who it is, with which waker it is polled, and how many operations
    /// it may do.
    #[inline]
    pub fn begin(&self, task: TaskRef, root: ScopeId, waker: &Waker, budget: u32) {
        self.current.set(Some(Current { task, scope: root, timeout: root }));
        self.own.set(identity(waker));
        self.budget.set(budget);
    }

    /// The task that runs is polled with another waker from now on.
    pub fn set_waker(&self, waker: &Waker) {
        self.own.set(identity(waker));
    }

    /// After a task ran.
    #[inline]
    pub fn end(&self) {
        if self.register.stage.get() != Stage::Empty {
            self.spill();
        }
        self.current.set(None);
    }

    /// Whether anything is filed.
    #[inline]
    #[must_use]
    pub fn has_filed(&self) -> bool {
        self.register.stage.get() == Stage::Filed || self.any_filed.get()
    }

    /// Takes what is filed, in order, in exchange for an empty `inbox`.
    #[inline]
    pub fn take(&self, inbox: &mut Vec<Filed>) {
        debug_assert!(inbox.is_empty(), "what was taken is heeded first");
        self.any_filed.set(false);
        self.register.behind.set(false);
        mem::swap(&mut self.tables.borrow_mut().filed, inbox);
    }

    /// Takes the first request of the poll, unless something in the list was filed before it.
    #[inline]
    pub fn take_first(&self) -> Option<Filed> {
        let register = &self.register;
        let waits = register.behind.get() && self.any_filed.get();
        if register.stage.get() != Stage::Filed || waits {
            return None;
        }
        register.stage.set(Stage::Taken);
        let task = self.current.get().expect("a task filed it").task;
        let serial = NonZeroU64::new(register.serial.get()).expect("a filed request has a number");
        Some(Filed::Request {
            ticket: Ticket { index: register.index.get(), epoch: task.epoch, serial },
            task,
            scope: register.scope.get().expect("a filed request has a scope"),
            request: register.request.take().expect("a filed request is there"),
            site: register.site.get().expect("a filed request has a place"),
        })
    }

    /// Whether a request that was taken is still wanted; frees its ticket if not.
    #[inline]
    #[must_use]
    pub fn is_wanted(&self, ticket: Ticket) -> bool {
        if self.register.holds(ticket) {
            let wanted = self.register.stage.get() == Stage::Taken;
            if !wanted {
                self.register.stage.set(Stage::Empty);
            }
            return wanted;
        }
        let freed = {
            let tables = &mut *self.tables.borrow_mut();
            match tables.live(ticket).map(|slot| &slot.state) {
                Some(State::Withdrawn) => Some(tables.free(ticket.index)),
                Some(_) => return true,
                None => None,
            }
        };
        drop(freed);
        false
    }

    /// The kernel keeps the request.
    #[inline]
    pub fn park(&self, ticket: Ticket) {
        if self.register.holds(ticket) {
            self.spill();
        }
        if let Some(slot) = self.tables.borrow_mut().live(ticket) {
            slot.state = State::Parked;
        }
    }

    /// The result of a request.
    #[inline]
    #[must_use]
    pub fn complete(&self, ticket: Ticket, result: TrapResult) -> Completion {
        let register = &self.register;
        if register.holds(ticket) && register.stage.get() == Stage::Taken {
            register.stage.set(Stage::Answered);
            let earlier = register.result.replace(Some(result));
            debug_assert!(earlier.is_none(), "a request is answered once");
            mem::forget(earlier);
            return Completion::Ready(None);
        }
        let tables = &mut *self.tables.borrow_mut();
        match tables.live(ticket) {
            Some(slot) if !matches!(slot.state, State::Withdrawn) => {
                slot.state = State::Done(result);
                Completion::Ready(slot.waker.take())
            }
            _ => Completion::Withdrawn(result),
        }
    }

    /// Puts another result in place of one that was not read yet; gives the old one back.
    ///
    /// # Errors
    ///
    /// The new one, if the old one was read or withdrawn meanwhile.
    pub fn replace(&self, ticket: Ticket, result: TrapResult) -> Result<TrapResult, TrapResult> {
        let tables = &mut *self.tables.borrow_mut();
        match tables.live(ticket).map(|slot| &mut slot.state) {
            Some(State::Done(old)) => Ok(mem::replace(old, result)),
            _ => Err(result),
        }
    }

    /// Whether the ticket was parked and is now withdrawn.
    #[must_use]
    pub fn is_withdrawn(&self, ticket: Ticket) -> bool {
        let tables = &mut *self.tables.borrow_mut();
        matches!(tables.live(ticket).map(|slot| &slot.state), Some(State::Withdrawn) | None)
    }

    /// Frees a ticket that was withdrawn.
    pub fn forget(&self, ticket: Ticket) {
        if self.register.holds(ticket) {
            self.register.stage.set(Stage::Empty);
            return drop((self.register.request.take(), self.register.result.take()));
        }
        let freed = {
            let tables = &mut *self.tables.borrow_mut();
            if tables.live(ticket).is_none() {
                return;
            }
            tables.free(ticket.index)
        };
        drop(freed);
    }

    /// Which task and scope poll the future of that ticket now.
    #[must_use]
    pub fn home(&self, ticket: Ticket) -> Option<(TaskRef, ScopeId)> {
        let tables = &mut *self.tables.borrow_mut();
        tables.live(ticket).map(|slot| (slot.task, slot.scope))
    }

    /// Lets the next poll of the task end the scope, which fired around a wait on a bare waker.
    pub fn set_bare(&self, scope: ScopeId, interrupt: Interrupt) {
        self.any_bare.set(true);
        self.tables.borrow_mut().bare.push((scope, interrupt));
    }

    /// Takes back what that poll did not use.
    #[inline]
    pub fn clear_bare(&self) {
        if self.any_bare.replace(false) {
            let unused = mem::take(&mut self.tables.borrow_mut().bare);
            drop(unused);
        }
    }

    /// The place of a handle is free again.
    pub fn free_handle(&self, handle: HandleId) {
        self.tables.borrow_mut().free_handles.push(handle.index);
    }

    /// Tickets of that kernel that are in use: for its counters and tests.
    #[must_use]
    pub fn tickets(&self, epoch: u32) -> usize {
        let tables = self.tables.borrow();
        let used = |slot: &&Slot| slot.epoch == epoch && !matches!(slot.state, State::Free(_));
        let first = self.register.stage.get() != Stage::Empty && self.epoch.get() == epoch;
        tables.slots.iter().filter(used).count() + usize::from(first)
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("epoch", &self.epoch.get()).finish_non_exhaustive()
    }
}
