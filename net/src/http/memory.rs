//! The bound on all bodies together that are kept in memory.
//!
//! It keeps a number, and no bytes.

use std::cell::Cell;

use traps::sync::Mutex;
use traps::{Interrupt, WaitQueue};

use crate::limits::READ_BUFFER;

/// How much of the bound is reserved, and who waits.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    reserved: Cell<u64>,
    /// First in, first out: the one who waits for room has it.
    turn: Mutex<()>,
    freed: WaitQueue,
}

impl Memory {
    /// Reserves so many bytes, if there is room below `most` and nobody waits for it. What fits
    /// into a read buffer needs none.
    pub(crate) fn try_reserve(&self, bytes: u64, most: u64) -> Option<Reserved<'_>> {
        if bytes <= READ_BUFFER as u64 {
            return Some(Reserved { memory: self, bytes: 0 });
        }
        let _turn = self.turn.try_lock()?;
        self.take(bytes, most)
    }

    /// Reserves so many bytes, which are no more than `most`. Blocks until there is room.
    pub(crate) async fn reserve(&self, bytes: u64, most: u64) -> Result<Reserved<'_>, Interrupt> {
        let _turn = self.turn.lock().await?;
        loop {
            match self.take(bytes, most) {
                Some(reserved) => return Ok(reserved),
                None => self.freed.wait().await?,
            };
        }
    }

    fn take(&self, bytes: u64, most: u64) -> Option<Reserved<'_>> {
        let reserved = self.reserved.get() + bytes;
        (reserved <= most).then(|| {
            self.reserved.set(reserved);
            Reserved { memory: self, bytes }
        })
    }
}

/// So many bytes, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved<'m> {
    memory: &'m Memory,
    bytes: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.reserved.set(self.memory.reserved.get() - self.bytes);
            self.memory.freed.wake(1);
        }
    }
}
