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
    /// That of a new deadline.
    #[inline]
    pub(crate) fn of(table: Rc<DeadlineTable>, name: DeadlineName) -> DeadlineSlot {
        DeadlineSlot { table, name }
    }

    /// Gives it back at once, if its kernel runs and need not be asked. No scope names it.
    #[inline]
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
