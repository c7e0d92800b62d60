//! The register: where the first request of a poll lies, and then its result.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::task::Waker;

use super::tables::{END, Slot, State};
use super::{Current, Gate, unread};
use crate::protocol::{Filed, Request, ScopeId, Site, Ticket, TrapResult};

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
    pub(super) serial: Cell<u64>,
    /// The slot that is kept free for it, `END` until the first is needed.
    pub(super) index: Cell<u32>,
    /// Whether what is in the list was filed before it.
    pub(super) behind: Cell<bool>,
    pub(super) scope: Cell<Option<ScopeId>>,
    pub(super) site: Cell<Option<Site>>,
    pub(super) request: Cell<Option<Request>>,
    pub(super) result: Cell<Option<TrapResult>>,
}

impl Register {
    pub(super) const fn new() -> Register {
        Register {
            stage: Cell::new(Stage::Empty),
            serial: Cell::new(0),
            index: Cell::new(END),
            behind: Cell::new(false),
            scope: Cell::new(None),
            site: Cell::new(None),
            request: Cell::new(None),
            result: Cell::new(None),
        }
    }

    #[inline]
    pub(super) fn holds(&self, ticket: Ticket) -> bool {
        self.serial.get() == ticket.serial.get() && self.stage.get() != Stage::Empty
    }
}

impl Gate {
    #[inline]
    pub(super) fn next_serial(&self) -> NonZeroU64 {
        self.serial.set(self.serial.get() + 1);
        NonZeroU64::new(self.serial.get()).expect("a counter from 1 does not wrap in 64 bits")
    }

    /// Moves what is in the register to its slot, and leaves the register empty.
    #[cold]
    pub(super) fn spill(&self) {
        let register = &self.register;
        let stage = register.stage.replace(Stage::Empty);
        let Some(task) = self.task.get() else { return };
        let serial = NonZeroU64::new(register.serial.get());
        let (Some(serial), Some(scope)) = (serial, register.scope.get()) else { return };
        let tables = &mut *self.tables.borrow_mut();
        let index = register.index.get();
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
    pub(super) fn keep_order(&self) {
        if self.register.stage.get() == Stage::Filed && self.register.behind.get() {
            self.spill();
        }
    }

    /// How much is filed now.
    pub(super) fn filed(&self) -> usize {
        let first = usize::from(self.register.stage.get() == Stage::Filed);
        first + self.tables.borrow().filed.len()
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
        let index = tables.reserve();
        let slot = Slot { serial, epoch: task.epoch, task, scope, state: State::Filed, waker };
        tables.slots[index as usize] = slot;
        let ticket = Ticket { index, epoch: task.epoch, serial };
        tables.filed.push(Filed::Request { ticket, task, scope, request, site });
        self.any_filed.set(true);
        ticket
    }

    pub(super) fn withdraw_register(&self) -> Option<TrapResult> {
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
