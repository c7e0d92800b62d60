//! How a ticket is woken from outside its task: who carries the wake to its kernel.
//!
//! Each kernel of the thread leaves a carrier here, which other threads may use.

use std::cell::RefCell;
use std::sync::Arc;

use super::{GATE, Gate};
use crate::outside::{Outside, OutsideWaker};
use crate::protocol::Ticket;

/// The carriers of the kernels of one thread, which are few.
pub(super) struct Outsides(RefCell<Vec<(u32, Arc<dyn Outside>)>>);

impl Outsides {
    pub(super) const fn new() -> Outsides {
        Outsides(RefCell::new(Vec::new()))
    }

    /// Takes out what that kernel left, to be dropped outside.
    pub(super) fn close(&self, epoch: u32) -> Option<Arc<dyn Outside>> {
        let mut kernels = self.0.borrow_mut();
        let place = kernels.iter().position(|(kernel, _)| *kernel == epoch)?;
        Some(kernels.swap_remove(place).1)
    }

    fn of(&self, epoch: u32) -> Option<Arc<dyn Outside>> {
        let kernels = self.0.borrow();
        kernels.iter().find(|(kernel, _)| *kernel == epoch).map(|(_, outside)| outside.clone())
    }
}

impl Gate {
    /// Says who carries the wakes of that kernel's tickets to it. Once in its life.
    pub fn set_outside(&self, epoch: u32, outside: Arc<dyn Outside>) {
        self.outsides.0.borrow_mut().push((epoch, outside));
    }
}

/// A waker of that ticket, for any thread.
///
/// # Panics
///
/// If its kernel is gone; the one that runs is not.
pub(crate) fn outside_waker(ticket: Ticket) -> OutsideWaker {
    let outside = GATE.with(|gate| gate.outsides.of(ticket.epoch));
    OutsideWaker::new(ticket, outside.expect("rule: a kernel says who carries its wakes"))
}
