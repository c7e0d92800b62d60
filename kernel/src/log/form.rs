//! The forms of values: how each is written in a line. The tables of `event.rs` and `op.rs` name a
//! form for each field.

use std::borrow::Cow;
pub(super) use std::fmt;
use std::time::Duration;

use traps::Kind;
use traps::core::names::Direction;
use traps::time::Time;

pub(super) use super::table::{display, given, table};
use super::words::{KINDS, Span, Text, phrase, sentence, signal, stop, word};

/// Where a line is written: bytes, all of them ASCII. To write it with `core::fmt` would cost more
/// than all else that an event costs.
#[derive(Default)]
pub(super) struct Out(pub(super) Vec<u8>);

impl Out {
    pub(super) fn text(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Text, to the left of a column of that width, 8 at most.
    pub(super) fn column(&mut self, text: &str, width: usize) {
        let end = self.0.len() + text.len().max(width);
        self.text(text);
        self.text("        ");
        self.0.truncate(end);
    }

    /// A number, to the right of a column of that width, 20 at most.
    pub(super) fn number(&mut self, mut number: u64, width: usize, fill: u8) {
        let digits = number.max(1).ilog10() as usize + 1;
        let end = self.0.len() + digits.max(width);
        // In its place: bytes that are copied right after they were made cost a stall.
        self.0.extend_from_slice(&[fill; 20]);
        self.0.truncate(end);
        for digit in self.0[end - digits..].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
}

/// How a value of type `T` stands in a line.
pub(super) trait Form<T> {
    /// Writes a text and then the value, or nothing if the value is left out.
    fn put(&self, before: &str, value: &T, out: &mut Out);
}

/// The one form of a type that has only one.
pub(super) struct Own;

impl Form<Time> for Own {
    fn put(&self, before: &str, time: &Time, out: &mut Out) {
        out.text(before);
        if *time == Time::NEVER {
            return out.text("never");
        }
        out.number(time.as_micros() / 1_000_000, 1, b'0');
        out.text(".");
        out.number(time.as_micros() % 1_000_000, 6, b'0');
    }
}

impl Form<Duration> for Own {
    fn put(&self, before: &str, span: &Duration, out: &mut Out) {
        out.text(before);
        let micros = match Time::ZERO + *span {
            Time::NEVER => return out.text("never"),
            end => end.as_micros(),
        };
        let (decimals, unit) = match micros {
            1..1_000 => (0, "us"),
            1_000..100_000 => (3, "ms"),
            _ => (6, "s"),
        };
        let one = 10_u64.pow(decimals);
        out.number(micros / one, 1, b'0');
        out.text(".");
        out.number(micros % one, decimals as usize, b'0');
        while out.0.pop_if(|last| *last == b'0').is_some() {}
        out.0.pop_if(|last| *last == b'.');
        out.text(unit);
    }
}

impl Form<Span> for Own {
    fn put(&self, before: &str, Span(span): &Span, out: &mut Out) {
        Own.put(before, span, out);
    }
}

display!(Span);

/// A prefix, and a number in a column of so many characters that is filled with the last.
pub(super) struct Number(pub(super) &'static str, pub(super) usize, pub(super) u8);

pub(super) const COUNT: Number = Number("", 1, b'0');
pub(super) const SEQ: Number = Number("#", 4, b'0');
pub(super) const TASK: Number = COUNT;
pub(super) const TICKET: Number = Number("k=", 1, b'0');
pub(super) const SCOPE: Number = Number("s", 1, b'0');
pub(super) const DEADLINE: Number = Number("d", 1, b'0');
pub(super) const QUEUE: Number = Number("q", 1, b'0');
pub(super) const JOB: Number = Number("o", 1, b'0');

impl<N: Copy + Into<u64>> Form<N> for Number {
    fn put(&self, before: &str, value: &N, out: &mut Out) {
        out.text(before);
        out.text(self.0);
        out.number((*value).into(), self.1, self.2);
    }
}

/// Values that have words of their own, and the form of all others. A value whose word is empty is
/// left out.
pub(super) struct Named<'n, T, F>(pub(super) &'n [(T, &'static str)], pub(super) F);

/// A task, or `-` for the kernel.
pub(super) const ACTOR: Named<'_, Option<u64>, Opt<Number>> = Named(&[(None, "-")], Opt(TASK));
pub(super) const SCOPE_OR_ROOT: Named<'_, u64, Number> = Named(&[(0, "root")], SCOPE);
pub(super) const EXTERNAL: Named<'_, bool, ()> = Named(&[(true, "external"), (false, "")], ());
pub(super) const DIRECTION: Named<'_, Direction, ()> =
    Named(&[(Direction::Read, "read"), (Direction::Write, "write")], ());
pub(super) const KIND: Named<'_, Kind, ()> = Named(&KINDS, ());

impl<T: PartialEq, F: Form<T>> Form<T> for Named<'_, T, F> {
    fn put(&self, before: &str, value: &T, out: &mut Out) {
        match self.0.iter().find(|(each, _)| each == value) {
            Some((_, "")) => {}
            Some((_, word)) => [before, word].into_iter().for_each(|text| out.text(text)),
            None => self.1.put(before, value, out),
        }
    }
}

/// There is no other value.
impl<T> Form<T> for () {
    fn put(&self, _: &str, _: &T, _: &mut Out) {}
}

/// Free text, and how it is made to look like what it is.
pub(super) struct Free(fn(&str) -> Cow<'_, str>);

pub(super) const WORD: Free = Free(word);
pub(super) const SENTENCE: Free = Free(sentence);
pub(super) const ERROR: Free = Free(phrase);
pub(super) const SIGNAL: Free = Free(signal);
pub(super) const STOP: Free = Free(stop);

impl<'a> Form<Text<'a>> for Free {
    fn put(&self, before: &str, text: &Text<'a>, out: &mut Out) {
        out.text(before);
        out.text(&self.0(text));
    }
}

/// A value that may be missing.
pub(super) struct Opt<F>(pub(super) F);

impl<T, F: Form<T>> Form<Option<T>> for Opt<F> {
    fn put(&self, before: &str, value: &Option<T>, out: &mut Out) {
        value.iter().for_each(|value| self.0.put(before, value, out));
    }
}

/// A value that is left out if it is the default of its type: 0, `false`, or an empty text.
pub(super) struct Filled<F>(pub(super) F);

impl<T: Default + PartialEq, F: Form<T>> Form<T> for Filled<F> {
    fn put(&self, before: &str, value: &T, out: &mut Out) {
        if *value != T::default() {
            self.0.put(before, value, out);
        }
    }
}
