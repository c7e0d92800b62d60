//! The two locks of a universal queue: of its core, and of its head.
//!
//! Who puts takes the core's alone, and who takes an item that stands at the head takes the head's
//! alone, so that neither stands in the other's way; once that is empty, it gets all the others at
//! once. Everything else takes both, the head's first. Nothing foreign runs under either, and who
//! is to be woken is said, not done: a poisoned lock still guards what is whole.

use std::sync::PoisonError;

use super::core::{After, Core, Head, Refusal};
use super::waiter::{Mutex, MutexGuard};

/// Alone in its cache lines, two of which come and go together.
#[repr(align(128))]
struct Apart<T>(T);

/// Items at the head.
struct Front<T> {
    items: Head<T>,
    /// A put waits: it is let in as soon as there is room.
    awaits_room: bool,
}

pub(super) struct Locked<T, W> {
    front: Apart<Mutex<Front<T>>>,
    core: Apart<Mutex<Core<T, W>>>,
}

impl<T, W> Locked<T, W> {
    pub(super) fn new(room: usize) -> Locked<T, W> {
        let front = Front { items: Head::new(), awaits_room: false };
        Locked { front: Apart(Mutex::new(front)), core: Apart(Mutex::new(Core::new(room))) }
    }

    fn front(&self) -> MutexGuard<'_, Front<T>> {
        self.front.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn core(&self) -> MutexGuard<'_, Core<T, W>> {
        self.core.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on both.
    pub(super) fn with<R>(
        &self,
        after: &mut After<W>,
        work: impl FnOnce(&mut Core<T, W>, &mut Head<T>, &mut After<W>) -> R,
    ) -> R {
        self.with_front(&mut self.front(), after, work)
    }

    fn with_front<R>(
        &self,
        front: &mut Front<T>,
        after: &mut After<W>,
        work: impl FnOnce(&mut Core<T, W>, &mut Head<T>, &mut After<W>) -> R,
    ) -> R {
        let mut core = self.core();
        core.hear(front.items.len(), after);
        let result = work(&mut core, &mut front.items, after);
        core.hear(front.items.len(), after);
        front.awaits_room = core.awaits_room();
        result
    }

    /// Puts the item in `slot`, if there is room.
    pub(super) fn try_put(
        &self,
        slot: &mut Option<T>,
        after: &mut After<W>,
    ) -> Result<(), Refusal> {
        // It may know of items that have been taken meanwhile.
        let refused = self.core().try_put(slot, after);
        match refused {
            Err(Refusal::Wait) => self.with(after, |core, _, after| core.try_put(slot, after)),
            result => result,
        }
    }

    /// Takes the oldest item, if one is free.
    pub(super) fn try_get(&self, after: &mut After<W>) -> Result<T, Refusal> {
        let mut front = self.front();
        if !front.awaits_room
            && let Some((_, item)) = front.items.pop_front()
        {
            return Ok(item);
        }
        self.with_front(&mut front, after, |core, head, _| core.try_get(head))
    }

    /// Both, as they are, before either hears of the other.
    #[cfg(all(test, not(loom)))]
    pub(super) fn look(&self, look: impl FnOnce(&Head<T>, &Core<T, W>)) {
        look(&self.front().items, &self.core());
    }
}
