//! The packed form of values: the bytes that the flight recorder keeps of an event.
//!
//! The tables of `event.rs` name a form for each field. The code that packs an event and the code
//! that unpacks it are made from the same rows as its text, so no verb has a second description.
//!
//! A number takes a byte for each 7 bits. The number of a line, such as a cause, is stored as the
//! distance to the packed line, which is one byte or two. A name that is a constant of the program,
//! such as the path of a source file, is stored as a place in a table ([`Constants`]).

use std::borrow::Cow;
use std::time::Duration;

use traps::time::Time;

use super::form::{Filled, Free, Named, Number, Opt, Own, SEQ, Text};

/// The longest packed event, in bytes. A power of two, so that an index needs no check.
pub(super) const ROOM: usize = 1024;

/// A form that can pack values of type `T`.
pub(super) trait Pack<T> {
    /// Appends the packed value.
    fn pack(&self, value: &T, out: &mut Packed<'_>);
    /// Reads a value that `pack` has written.
    fn take(&self, from: &mut Unpack<'_>) -> T;
}

/// The room for one packed event.
pub(super) struct Packed<'r> {
    pub(super) bytes: &'r mut [u8; ROOM],
    /// The length of the event. If it is more than [`ROOM`], the event did not fit, and the bytes
    /// mean nothing.
    pub(super) len: usize,
    /// The number of the line.
    pub(super) seq: u64,
    pub(super) words: &'r mut Constants,
}

impl Packed<'_> {
    #[inline(always)]
    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes[self.len % ROOM] = byte;
        self.len += 1;
    }

    #[inline(always)]
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    #[inline(always)]
    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        let end = self.len + text.len();
        if let Some(room) = self.bytes.get_mut(self.len..end) {
            room.copy_from_slice(text.as_bytes());
        }
        self.len = end;
    }

    #[inline(always)]
    pub(super) fn word(&mut self, word: &'static str) {
        let place = self.words.find(word);
        self.number(place as u64);
    }
}

/// A reader of packed bytes.
pub(super) struct Unpack<'p> {
    pub(super) bytes: &'p [u8],
    /// The number of the line.
    pub(super) seq: u64,
    pub(super) words: &'p [&'static str],
}

impl<'p> Unpack<'p> {
    pub(super) fn byte(&mut self) -> u8 {
        let (byte, rest) = self.bytes.split_first().expect("an event is whole");
        self.bytes = rest;
        *byte
    }

    pub(super) fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    }

    pub(super) fn text(&mut self) -> &'p str {
        let len = self.number() as usize;
        let (text, rest) = self.bytes.split_at(len);
        self.bytes = rest;
        std::str::from_utf8(text).expect("a whole text was packed")
    }

    pub(super) fn word(&mut self) -> &'static str {
        self.words[self.number() as usize]
    }
}

/// The constants of the program that packed events name.
#[derive(Default)]
pub(super) struct Constants {
    pub(super) all: Vec<&'static str>,
    /// The places of words that were found before, each at a place made of its address.
    found: [(&'static str, usize); 32],
}

impl Constants {
    #[inline]
    fn find(&mut self, word: &'static str) -> usize {
        let address = word.as_ptr() as usize;
        let slot = (address >> 3 ^ address >> 8) % self.found.len();
        let (known, place) = self.found[slot];
        // A comparison of addresses, not of texts.
        if std::ptr::eq(known, word) { place } else { self.find_slowly(word, slot) }
    }

    #[cold]
    fn find_slowly(&mut self, word: &'static str, slot: usize) -> usize {
        let place = self.all.iter().position(|known| *known == word).unwrap_or_else(|| {
            self.all.push(word);
            self.all.len() - 1
        });
        self.found[slot] = (word, place);
        place
    }
}

impl Pack<Time> for Own {
    #[inline(always)]
    fn pack(&self, time: &Time, out: &mut Packed<'_>) {
        out.number(time.as_micros());
    }

    fn take(&self, from: &mut Unpack<'_>) -> Time {
        Time::from_micros(from.number())
    }
}

impl Pack<Duration> for Own {
    #[inline(always)]
    fn pack(&self, span: &Duration, out: &mut Packed<'_>) {
        Own.pack(&(Time::ZERO + *span), out);
    }

    fn take(&self, from: &mut Unpack<'_>) -> Duration {
        Duration::from_micros(from.number())
    }
}

impl<N: Copy + Into<u64> + TryFrom<u64>> Pack<N> for Number {
    #[inline(always)]
    fn pack(&self, value: &N, out: &mut Packed<'_>) {
        let value = (*value).into();
        out.number(if self.0 == SEQ.0 { out.seq.wrapping_sub(value) } else { value });
    }

    fn take(&self, from: &mut Unpack<'_>) -> N {
        let value = from.number();
        let value = if self.0 == SEQ.0 { from.seq.wrapping_sub(value) } else { value };
        N::try_from(value).ok().expect("a number of this type was packed")
    }
}

impl<T: PartialEq + Clone, F: Pack<T>> Pack<T> for Named<'_, T, F> {
    #[inline(always)]
    fn pack(&self, value: &T, out: &mut Packed<'_>) {
        match self.0.iter().position(|(each, _)| each == value) {
            Some(place) => out.byte(place as u8),
            None => {
                out.byte(u8::MAX);
                self.1.pack(value, out);
            }
        }
    }

    fn take(&self, from: &mut Unpack<'_>) -> T {
        match from.byte() {
            u8::MAX => self.1.take(from),
            place => self.0[usize::from(place)].0.clone(),
        }
    }
}

/// The form of the other values of a type that has no other values.
impl<T> Pack<T> for () {
    fn pack(&self, _: &T, _: &mut Packed<'_>) {}

    fn take(&self, _: &mut Unpack<'_>) -> T {
        unreachable!("each value has a word")
    }
}

impl<'a> Pack<Text<'a>> for Free {
    #[inline(always)]
    fn pack(&self, text: &Text<'a>, out: &mut Packed<'_>) {
        out.text(text);
    }

    fn take(&self, from: &mut Unpack<'_>) -> Text<'a> {
        Cow::Owned(from.text().to_owned())
    }
}

impl<T, F: Pack<T>> Pack<Option<T>> for Opt<F> {
    #[inline(always)]
    fn pack(&self, value: &Option<T>, out: &mut Packed<'_>) {
        out.byte(u8::from(value.is_some()));
        value.iter().for_each(|value| self.0.pack(value, out));
    }

    fn take(&self, from: &mut Unpack<'_>) -> Option<T> {
        (from.byte() == 1).then(|| self.0.take(from))
    }
}

impl<T, F: Pack<T>> Pack<T> for Filled<F> {
    #[inline(always)]
    fn pack(&self, value: &T, out: &mut Packed<'_>) {
        self.0.pack(value, out);
    }

    fn take(&self, from: &mut Unpack<'_>) -> T {
        self.0.take(from)
    }
}
