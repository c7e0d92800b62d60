//! Two small stores of the gate: values by serial number, and names that are used again.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;

/// Values by serial number: the newest in a cell, the others in a list that most polls never touch.
pub(super) struct Tray<T> {
    newest: Cell<Option<(NonZeroU32, T)>>,
    others: RefCell<Vec<(NonZeroU32, T)>>,
    any_others: Cell<bool>,
}

impl<T> Default for Tray<T> {
    fn default() -> Tray<T> {
        Tray { newest: Cell::default(), others: RefCell::default(), any_others: Cell::default() }
    }
}

impl<T> Tray<T> {
    #[inline]
    pub(super) fn put(&self, serial: NonZeroU32, thing: T) {
        if let Some(older) = self.newest.replace(Some((serial, thing))) {
            self.others.borrow_mut().push(older);
            self.any_others.set(true);
        }
    }

    #[inline]
    pub(super) fn take(&self, serial: NonZeroU32) -> Option<T> {
        match self.newest.take() {
            Some((newest, thing)) if newest == serial => return Some(thing),
            other => self.newest.set(other),
        }
        if self.any_others.get() { self.take_other(serial) } else { None }
    }

    #[cold]
    fn take_other(&self, serial: NonZeroU32) -> Option<T> {
        let mut others = self.others.borrow_mut();
        let place = others.iter().position(|(other, _)| *other == serial)?;
        let (_, thing) = others.remove(place);
        self.any_others.set(!others.is_empty());
        Some(thing)
    }

    #[inline]
    pub(super) fn has_any(&self) -> bool
    where
        T: Copy,
    {
        self.newest.get().is_some() || self.any_others.get()
    }

    /// Takes any one value.
    #[inline]
    pub(super) fn pop(&self) -> Option<(NonZeroU32, T)> {
        self.newest.take().or_else(|| if self.any_others.get() { self.pop_other() } else { None })
    }

    #[cold]
    fn pop_other(&self) -> Option<(NonZeroU32, T)> {
        let mut others = self.others.borrow_mut();
        let popped = others.pop();
        self.any_others.set(!others.is_empty());
        popped
    }
}

/// Gives out indices: the one that was freed last, or else the lowest that was never used.
#[derive(Default)]
pub(super) struct Names {
    next: Cell<u32>,
    free: RefCell<Vec<u32>>,
}

impl Names {
    #[inline]
    pub(super) fn take(&self) -> u32 {
        self.free.borrow_mut().pop().unwrap_or_else(|| self.next.replace(self.next.get() + 1))
    }

    #[inline]
    pub(super) fn free(&self, index: u32) {
        self.free.borrow_mut().push(index);
    }
}
