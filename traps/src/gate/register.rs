//! The register: where the first request of a poll lies, and then its result.

use std::cell::Cell;
use std::mem;
use std::num::NonZeroU64;
use std::panic::Location;
use std::task::Waker;

use super::now::{Current, Now, now};
use super::slot::{Slot, State};
use super::tables::END;
use super::{First, unread};
use crate::protocol::{
    Answer, Filed, HOME, Post, Request, ScopeId, Site, TaskRef, Ticket, TrapResult,
};

/// How far the request in the register has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
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
pub(super) struct Register {
    pub(super) stage: Cell<Stage>,
    pub(super) serial: Cell<NonZeroU64>,
    /// Where it goes when it parks: the task's home, or `spare` if something is parked there.
    pub(super) index: Cell<u32>,
    /// Nothing is kept in the home of the task that runs.
    pub(super) is_home_free: Cell<bool>,
    /// A slot that is kept free for it, `END` until the first is needed.
    pub(super) spare: Cell<u32>,
    /// Whether what is in the list was filed before it.
    pub(super) behind: Cell<bool>,
    pub(super) scope: Cell<ScopeId>,
    pub(super) site: Cell<Site>,
    request: Cell<Option<Request>>,
    result: Cell<Option<TrapResult>>,
}

impl Register {
    pub(super) fn new() -> Register {
        // Numbers begin at 1: no ticket has this one.
        let serial = NonZeroU64::MAX;
        Register {
            stage: Cell::new(Stage::Empty),
            serial: Cell::new(serial),
            index: Cell::new(END),
            is_home_free: Cell::new(true),
            spare: Cell::new(END),
            behind: Cell::new(false),
            scope: Cell::new(ScopeId { index: END, epoch: 0, serial }),
            site: Cell::new(Location::caller()),
            request: Cell::new(None),
            result: Cell::new(None),
        }
    }

    #[inline]
    pub(super) fn holds(&self, ticket: Ticket) -> bool {
        self.serial.get() == ticket.serial && self.stage.get() != Stage::Empty
    }

    /// Where the request in it was made.
    #[inline]
    pub(super) fn first(&self, epoch: u32) -> First {
        let ticket = Ticket { index: self.index.get(), epoch, serial: self.serial.get() };
        First { ticket, scope: self.scope.get(), site: self.site.get() }
    }

    #[inline]
    pub(super) fn set_request(&self, request: Request) {
        let earlier = self.request.replace(Some(request));
        debug_assert!(earlier.is_none(), "an empty register holds no request");
        mem::forget(earlier);
    }

    #[inline]
    pub(super) fn take_request(&self) -> Option<Request> {
        self.request.take()
    }

    #[inline]
    pub(super) fn set_result(&self, result: TrapResult) {
        let earlier = self.result.replace(Some(result));
        debug_assert!(earlier.is_none(), "a request is answered once");
        mem::forget(earlier);
    }

    #[inline]
    pub(super) fn take_result(&self) -> Option<TrapResult> {
        self.result.take()
    }

    /// Takes the result if it is a task.
    #[inline]
    pub(super) fn take_task(&self) -> Option<TaskRef> {
        let result = self.result.take();
        if let Some(Ok(Answer::Task(task))) = result {
            // It holds nothing else, which the compiler does not see.
            mem::forget(result);
            return Some(task);
        }
        self.result.set(result);
        None
    }

    /// A task begins to run, whose home may be free.
    #[inline]
    pub(super) fn begin(&self, task: TaskRef, is_home_free: bool) {
        self.is_home_free.set(is_home_free);
        self.index.set(if is_home_free { task.index | HOME } else { self.spare.get() });
    }

    /// A ticket was freed: nothing is kept in the task's home, if that was where it lay.
    #[inline]
    pub(super) fn come_home(&self, ticket: Ticket, task: TaskRef) {
        if ticket.index == task.index | HOME && ticket.epoch == task.epoch {
            self.free_home(ticket.index);
        }
    }

    /// Nothing is kept in the task's home any more, at that place.
    #[inline]
    pub(super) fn free_home(&self, index: u32) {
        self.is_home_free.set(true);
        if self.stage.get() == Stage::Empty {
            self.index.set(index);
        }
    }

    /// What was in it is kept in the task's home.
    #[inline]
    pub(super) fn leave_home(&self) {
        self.is_home_free.set(false);
        self.index.set(self.spare.get());
    }

    /// The future of the request is gone; a result that nobody read comes back.
    pub(super) fn withdraw(&self) -> Option<TrapResult> {
        match self.stage.get() {
            Stage::Filed => {
                self.stage.set(Stage::Empty);
                drop(self.take_request());
                None
            }
            Stage::Taken => {
                self.stage.set(Stage::Withdrawn);
                None
            }
            Stage::Answered => {
                self.stage.set(Stage::Empty);
                unread(self.take_result())
            }
            Stage::Empty | Stage::Withdrawn => None,
        }
    }
}

/// Takes the result of `ticket` if it was answered at once, and with a task.
#[inline]
pub(crate) fn take_task(ticket: Ticket) -> Option<TaskRef> {
    let register = &now()?.register;
    if !register.holds(ticket) || register.stage.get() != Stage::Answered {
        return None;
    }
    let task = register.take_task()?;
    register.stage.set(Stage::Empty);
    Some(task)
}

impl Now {
    /// Moves what is in the register to its slot, and leaves the register empty.
    #[cold]
    pub(super) fn spill(&self) {
        self.unfold();
        let register = &self.register;
        let stage = register.stage.replace(Stage::Empty);
        let Some(task) = self.task.get() else { return };
        let (serial, scope) = (register.serial.get(), register.scope.get());
        let tables = &mut *self.tables.borrow_mut();
        let index = register.index.get();
        let ticket = Ticket { index, epoch: task.epoch, serial };
        let state = match stage {
            Stage::Empty => return,
            Stage::Filed => {
                let request = register.take_request().expect("a filed request is there");
                let site = register.site.get();
                let place = if register.behind.get() { tables.filed.len() } else { 0 };
                let filed = Filed::Request { ticket, task, scope, request, site };
                tables.filed.insert(place, filed);
                self.any_filed.set(true);
                State::FILED_HERE
            }
            Stage::Taken => State::FILED_HERE,
            Stage::Withdrawn => State::WITHDRAWN,
            Stage::Answered => {
                let result = register.take_result().expect("an answered request has a result");
                tables.keep(result)
            }
        };
        tables.fill(ticket, Slot::new(serial, task.serial, scope, state));
        if index & HOME != 0 {
            return register.leave_home();
        }
        register.spare.set(tables.reserve());
        register.begin(task, register.is_home_free.get());
    }

    /// Puts the one post, or opening, or the births that were kept beside the list into it.
    #[inline]
    pub(super) fn unfold(&self) {
        if !self.any_filed.get() {
            return;
        }
        if let Some(post) = self.only.take() {
            self.tables.borrow_mut().filed.push(Filed::Post(post));
        } else if let Some(opening) = self.opening.take() {
            self.tables.borrow_mut().filed.push(Filed::Opening(opening));
        } else {
            let births = &mut *self.births.borrow_mut();
            let births = births.drain(..).map(|birth| Filed::Post(Post::Spawn(birth)));
            self.tables.borrow_mut().filed.extend(births);
        }
    }

    /// Before something goes to the end of the list: what is in the register must not stand
    /// between two parts of it.
    #[inline]
    pub(super) fn keep_order(&self) {
        self.unfold();
        if self.register.stage.get() == Stage::Filed && self.register.behind.get() {
            self.spill();
        }
    }

    /// How many waits this poll has begun or moved, or woken its own task for. What else is told
    /// is no wait.
    pub(super) fn asked(&self) -> usize {
        self.unfold();
        let first = usize::from(self.register.stage.get() == Stage::Filed);
        let tables = self.tables.borrow();
        let asks = |filed: &&Filed| match filed {
            Filed::Request { .. } => true,
            Filed::Post(Post::Woken(task)) => self.task.get() == Some(*task),
            Filed::Post(post) => matches!(post, Post::Rehome(..) | Post::RehomeScope { .. }),
            Filed::Opening(_) => false,
        };
        first + tables.filed.iter().filter(asks).count()
    }

    /// Files a request in a slot of its own.
    pub(super) fn file_in_table(
        &self,
        current: Current,
        request: Request,
        site: Site,
        waker: Option<Waker>,
    ) -> Ticket {
        let serial = self.next_serial();
        let Current { task, scope } = current;
        let tables = &mut *self.tables.borrow_mut();
        let ticket = Ticket { index: tables.reserve(), epoch: task.epoch, serial };
        let state = tables.filed_with(waker);
        tables.fill(ticket, Slot::new(serial, task.serial, scope, state));
        tables.filed.push(Filed::Request { ticket, task, scope, request, site });
        self.any_filed.set(true);
        ticket
    }
}
