//! Handles of descriptors: their registration with the poller, and remembered readiness. A handle
//! has one registration, for both directions.
//!
//! Unregistration is deferred: after a wake a descriptor stays registered, and [`Policy`] says
//! until when. The code calls a registration *deferred* only under [`Policy::NextSleep`], which has
//! to remember it for the task.
//!
//! The key is the name of the handle, never the number of the descriptor, because the system reuses
//! numbers. `io.rs` uses this table.

use std::mem;

use traps::core::names::{Descriptor, Direction, HandleId, Ticket};

use crate::trace::Alias;

/// When a registration is ended. It is an option so that the policies can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// At every wake after which no task waits for the descriptor.
    Eager,
    /// When the task next leaves the CPU for something else, as Curio does.
    NextSleep,
    /// At the 16th event that no task waited for, or when the handle is closed.
    #[default]
    Lazy,
}

pub(crate) struct Handle {
    serial: u32,
    pub(crate) descriptor: Descriptor,
    pub(crate) alias: Alias,
    /// The waits for reading and for writing.
    pub(crate) waiting: [Option<Ticket>; 2],
    /// Whether it is known to be ready, with no wait since: to read, to write.
    pub(crate) ready: [bool; 2],
    /// Whether the poller watches it.
    pub(crate) registered: bool,
    /// Whether it was ever registered; for the log.
    pub(crate) was_registered: bool,
    /// Whether the end of the stream or an error was seen. It then counts as readable as long as
    /// the system says so.
    pub(crate) closed: bool,
    /// Events since the last wait that no task waited for. A number of them end the registration.
    pub(crate) unwanted: u8,
}

impl Handle {
    pub(crate) fn nobody_waits(&self) -> bool {
        self.waiting == [None, None]
    }

    /// The token that the poller returns with an event: the place, and 31 bits of the serial
    /// number, which reveal a stale event. Tokens with the highest bit are the machine's own.
    pub(crate) fn token(handle: HandleId) -> u64 {
        u64::from(handle.index) | u64::from(handle.serial & 0x7fff_ffff) << 32
    }

    /// One direction looks ready. Returns the wait for it, and whether the readiness is new and has
    /// no waiter.
    #[inline]
    pub(crate) fn meet(&mut self, direction: Direction) -> (Option<Ticket>, bool) {
        let side = direction as usize;
        match self.waiting[side].take() {
            None => (None, !mem::replace(&mut self.ready[side], true)),
            ticket => (ticket, false),
        }
    }
}

/// The handles of a kernel, and the registrations of their descriptors.
#[derive(Default)]
pub(crate) struct Handles {
    /// By the index of the handle, which the gate has chosen.
    table: Vec<Option<Handle>>,
    /// The last alias number of each letter.
    aliases: [u32; 26],
    /// How many are registered with the poller now.
    pub(crate) registered: usize,
    /// How many handles exist.
    pub(crate) known: usize,
}

impl Handles {
    /// Adds a handle.
    pub(crate) fn add(&mut self, handle: HandleId, descriptor: Descriptor, kind: char) {
        let index = handle.index as usize;
        if index >= self.table.len() {
            self.table.resize_with(index + 1, || None);
        }
        let kind = if kind.is_ascii_lowercase() { kind } else { 'f' };
        let number = &mut self.aliases[kind as usize - 'a' as usize];
        *number += 1;
        self.known += 1;
        self.table[index] = Some(Handle {
            serial: handle.serial,
            descriptor,
            alias: Alias { kind, number: *number },
            waiting: [None; 2],
            ready: [false; 2],
            registered: false,
            was_registered: false,
            closed: false,
            unwanted: 0,
        });
    }

    /// `e1` is the kernel's own bell.
    pub(crate) fn bell(&mut self) -> Alias {
        let events = &mut self.aliases['e' as usize - 'a' as usize];
        *events = (*events).max(1);
        Alias { kind: 'e', number: 1 }
    }

    #[inline]
    pub(crate) fn get(&mut self, handle: HandleId) -> Option<&mut Handle> {
        let found = self.table.get_mut(handle.index as usize)?.as_mut();
        found.filter(|found| found.serial == handle.serial)
    }

    pub(crate) fn alias(&self, handle: HandleId) -> Option<Alias> {
        let found = self.table.get(handle.index as usize)?.as_ref();
        Some(found.filter(|found| found.serial == handle.serial)?.alias)
    }

    /// The handle that an event's token names, unless the event is stale.
    #[inline]
    pub(crate) fn find_token(&mut self, token: u64) -> Option<(HandleId, &mut Handle)> {
        let index = token as u32;
        let found = self.table.get_mut(index as usize)?.as_mut()?;
        let handle = HandleId::new(index, found.serial);
        (Handle::token(handle) == token).then_some((handle, found))
    }

    /// Whether a task waits for a descriptor. O(handles) if none does.
    pub(crate) fn somebody_waits(&self) -> bool {
        self.table.iter().flatten().any(|handle| !handle.nobody_waits())
    }

    pub(crate) fn remove(&mut self, handle: HandleId) {
        if self.get(handle).is_some() {
            self.known -= 1;
            self.table[handle.index as usize] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_an_idle_connection_does_not_grow() {
        assert_eq!(size_of::<Option<Handle>>(), 52);
    }
}
