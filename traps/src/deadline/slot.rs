//! The place of a connection deadline in the deadline table.
//!
//! Sets and clears nothing there.

use std::rc::Rc;

use crate::deadline_table::DeadlineTable;
use crate::gate;
use crate::protocol::{DeadlineName, Post};

/// In place of a slot: it was given back.
const GONE: u32 = u32::MAX;

/// A place in the deadline table, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct DeadlineSlot {
    pub(super) table: Rc<DeadlineTable>,
    pub(crate) name: DeadlineName,
}

impl DeadlineSlot {
    /// A place for a new deadline of the task at that place, in the kernel of that number.
    pub(crate) fn make(table: &Rc<DeadlineTable>, task: u32, epoch: u32) -> DeadlineSlot {
        let (slot, number) = table.make(task);
        let name = DeadlineName { slot, number, epoch, task };
        DeadlineSlot { table: table.clone(), name }
    }

    /// Gives it back at once, if its kernel runs and need not be asked. No scope names it.
    pub(super) fn give_back(&mut self) {
        let DeadlineSlot { table, name } = self;
        if name.epoch == gate::epoch() && table.unmake(name.slot) {
            name.slot = GONE;
        }
    }
}

impl Drop for DeadlineSlot {
    fn drop(&mut self) {
        if self.name.slot != GONE {
            gate::post(Post::DropDeadline { deadline: self.name });
        }
    }
}
