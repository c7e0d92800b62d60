//! What the poller was told, and what it told: one registration per handle, for both directions.
//!
//! Keyed by the handle's name, never by a descriptor's number. Knows no task: only the index of
//! the ticket that waits for a direction.

use std::mem;
use std::num::NonZeroU64;

use traps::protocol::{Descriptor, Direction, HandleId};

use crate::task::NONE;
use crate::trace::Alias;

/// When a registration is ended. It can be chosen so that it can be studied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// At every wake after which nobody waits for it.
    Eager,
    /// When the task next leaves the CPU for something else, as Curio does.
    NextSleep,
    /// At the 16th event that nobody waited for, or when the handle is closed.
    #[default]
    Lazy,
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Policy::Eager => "eager",
            Policy::NextSleep => "next-sleep",
            Policy::Lazy => "lazy",
        })
    }
}

impl std::str::FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        match text {
            "eager" => Ok(Policy::Eager),
            "next-sleep" => Ok(Policy::NextSleep),
            "lazy" => Ok(Policy::Lazy),
            other => Err(format!("expected eager, next-sleep or lazy, not `{other}`")),
        }
    }
}

pub(crate) struct Registration {
    /// Of its handle, whose index is its place in the table.
    serial: NonZeroU64,
    /// The tickets that wait: read, write.
    pub(crate) waiting: [u32; 2],
    /// Of its descriptor, and whether that is a real one.
    number: u32,
    is_real: bool,
    /// The letter of its alias.
    letter: u8,
    alias: u32,
    pub(crate) registered: bool,
    /// Readiness that nobody has used: read, write.
    pub(crate) ready: [bool; 2],
    /// The peer's end, or an error, was seen: readable as long as the system says so.
    pub(crate) closed: bool,
    /// Events since the last wait that served nobody, of which a few end it.
    pub(crate) unwanted: u8,
}

// Each connection has one.
const _: () = assert!(size_of::<Option<Registration>>() == 32);

pub(crate) fn side(direction: Direction) -> usize {
    match direction {
        Direction::Read => 0,
        Direction::Write => 1,
    }
}

impl Registration {
    pub(crate) fn nobody_waits(&self) -> bool {
        self.waiting == [NONE, NONE]
    }

    /// Whether it is registered, nobody waits on that side, and nothing is remembered for it.
    #[inline]
    pub(crate) fn is_quiet(&self, direction: Direction) -> bool {
        let side = side(direction);
        let remembers = self.ready[side] || self.closed && direction == Direction::Read;
        self.registered && self.waiting[side] == NONE && !remembers
    }

    /// That side looks ready, if it is `here`: who waited for it, or else whether that is new.
    #[inline]
    pub(crate) fn meet(&mut self, direction: Direction, here: bool) -> (u32, bool) {
        let side = side(direction);
        if !here {
            return (NONE, false);
        }
        match mem::replace(&mut self.waiting[side], NONE) {
            NONE => (NONE, !mem::replace(&mut self.ready[side], true)),
            ticket => (ticket, false),
        }
    }

    #[inline]
    pub(crate) fn alias(&self) -> Alias {
        Alias { kind: char::from(self.letter), number: self.alias }
    }

    pub(crate) fn descriptor(&self) -> Descriptor {
        match self.is_real {
            true => Descriptor::Real(self.number.cast_signed()),
            false => Descriptor::Scripted(self.number),
        }
    }

    /// What the poller gives back with an event: the place, and enough of the serial number to
    /// tell a stale event.
    pub(crate) fn token(&self, index: u32) -> u64 {
        // 31 bits: the tokens with the highest are the machine's own.
        let serial = self.serial.get() & 0x7fff_ffff;
        u64::from(index) | serial << 32
    }
}

#[derive(Default)]
pub(crate) struct Registrations {
    table: Vec<Option<Registration>>,
    numbers: [u32; 26],
    /// Registered with the poller now.
    pub(crate) registered: usize,
    /// Handles known.
    pub(crate) known: usize,
}

impl Registrations {
    /// The registration of a handle, made if it is new.
    #[inline]
    pub(crate) fn of(
        &mut self,
        handle: HandleId,
        descriptor: Descriptor,
        kind: char,
    ) -> &mut Registration {
        let index = handle.index as usize;
        if self.table.get(index).is_none_or(Option::is_none) {
            self.add(handle, descriptor, kind);
        }
        self.at(handle.index)
    }

    #[cold]
    fn add(&mut self, handle: HandleId, descriptor: Descriptor, kind: char) {
        let index = handle.index as usize;
        if index >= self.table.len() {
            self.table.resize_with(index + 1, || None);
        }
        self.known += 1;
        let letter = u8::try_from(kind).ok().filter(u8::is_ascii_lowercase).unwrap_or(b'f');
        let alias = &mut self.numbers[usize::from(letter - b'a')];
        *alias += 1;
        let (is_real, number) = match descriptor {
            Descriptor::Real(number) => (true, number.cast_unsigned()),
            Descriptor::Scripted(number) => (false, number),
        };
        self.table[index] = Some(Registration {
            serial: handle.serial,
            waiting: [NONE; 2],
            number,
            is_real,
            letter,
            alias: *alias,
            registered: false,
            ready: [false; 2],
            closed: false,
            unwanted: 0,
        });
    }

    /// `e1` is the kernel's own bell.
    pub(crate) fn bell(&mut self) -> Alias {
        let events = &mut self.numbers['e' as usize - 'a' as usize];
        *events = (*events).max(1);
        Alias { kind: 'e', number: 1 }
    }

    #[inline]
    pub(crate) fn get(&mut self, index: u32) -> Option<&mut Registration> {
        self.table.get_mut(index as usize)?.as_mut()
    }

    pub(crate) fn alias(&self, index: u32) -> Option<Alias> {
        Some(self.table.get(index as usize)?.as_ref()?.alias())
    }

    /// The registration of a handle that is known.
    #[inline]
    pub(crate) fn at(&mut self, index: u32) -> &mut Registration {
        self.get(index).expect("it was found before, and handles are removed in posts only")
    }

    /// What is behind an event's token, unless the event is stale.
    #[inline]
    pub(crate) fn find_token(&mut self, wanted: u64) -> Option<(u32, &mut Registration)> {
        let index = u32::try_from(wanted & 0xffff_ffff).expect("masked to 32 bits");
        let found = self.table.get_mut(index as usize)?.as_mut()?;
        (found.token(index) == wanted).then_some((index, found))
    }

    pub(crate) fn find(&self, handle: HandleId) -> Option<u32> {
        let found = self.table.get(handle.index as usize)?.as_ref()?;
        (found.serial == handle.serial).then_some(handle.index)
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<Registration> {
        let removed = self.table.get_mut(index as usize)?.take()?;
        self.known -= 1;
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bell_takes_no_alias_that_is_given_out() {
        let mut registrations = Registrations::default();
        let mut seen = Vec::new();
        for index in 0..3 {
            assert_eq!(registrations.bell().number, 1);
            let handle = HandleId { index, epoch: 1, serial: NonZeroU64::MIN };
            seen.push(registrations.of(handle, Descriptor::Scripted(index), 'e').alias().number);
        }
        assert_eq!(seen, [2, 3, 4]);
    }
}
