//! The forms of values: how each is written in a line. The tables of `event.rs` and `op.rs` name a
//! form for each field.

use std::borrow::Cow;
use std::fmt::Display;
pub(super) use std::fmt::{self, Formatter};
use std::time::Duration;

use traps::Kind;
use traps::core::names::Direction;
use traps::time::Time;

pub(super) use super::table::{display, given, table};
use super::words::{KINDS, Span, Text, phrase, sentence, signal, word};

/// How a value of type `T` stands in a line.
pub(super) trait Form<T: PartialEq> {
    /// The value that is left out of a line, if there is one.
    fn absent(&self) -> Option<T> {
        None
    }

    /// Writes a value.
    fn write(&self, value: &T, f: &mut Formatter<'_>) -> fmt::Result;

    /// Writes a text and then the value, or nothing if the value is left out.
    fn put(&self, before: &str, value: &T, f: &mut Formatter<'_>) -> fmt::Result {
        if self.absent().as_ref() == Some(value) {
            return Ok(());
        }
        f.write_str(before)?;
        self.write(value, f)
    }
}

/// Writes text, to the left of a column of that width, 8 at most.
pub(super) fn write_column(text: &str, width: usize, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(text)?;
    f.write_str(&"        "[..width.saturating_sub(text.len())])
}

/// Writes a time, to the right of a column of that width.
pub(super) fn write_time(time: Time, width: usize, f: &mut Formatter<'_>) -> fmt::Result {
    if time == Time::NEVER {
        return write!(f, "{:>width$}", "never");
    }
    let (micros, width) = (time.as_micros(), width.saturating_sub(".000000".len()));
    write!(f, "{:>width$}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// The one form of a type that has only one.
pub(super) struct Own;

impl Form<Time> for Own {
    fn write(&self, time: &Time, f: &mut Formatter<'_>) -> fmt::Result {
        write_time(*time, 0, f)
    }
}

impl Form<Duration> for Own {
    fn write(&self, span: &Duration, f: &mut Formatter<'_>) -> fmt::Result {
        Span(*span).fmt(f)
    }
}

/// A prefix, and a number of at least so many digits behind it.
pub(super) struct Number(&'static str, usize);

pub(super) const COUNT: Number = Number("", 1);
pub(super) const SEQ: Number = Number("#", 4);
pub(super) const TASK: Number = Number("", 1);
pub(super) const TICKET: Number = Number("k=", 1);
pub(super) const SCOPE: Number = Number("s", 1);
pub(super) const DEADLINE: Number = Number("d", 1);
pub(super) const QUEUE: Number = Number("q", 1);
pub(super) const JOB: Number = Number("o", 1);

impl<N: Display + PartialEq> Form<N> for Number {
    fn write(&self, value: &N, f: &mut Formatter<'_>) -> fmt::Result {
        let Number(letter, digits) = *self;
        write!(f, "{letter}{value:0digits$}")
    }
}

/// Values that have words of their own, and the form of all others. A value whose word is empty is
/// left out.
pub(super) struct Named<'n, T, F>(pub(super) &'n [(T, &'static str)], pub(super) F);

/// A task, or `-` for the kernel.
pub(super) const ACTOR: Named<'_, Option<u64>, Opt<Number>> = Named(&[(None, "-")], Opt(TASK));
pub(super) const SCOPE_OR_ROOT: Named<'_, u64, Number> = Named(&[(0, "root")], SCOPE);
pub(super) const EXTERNAL: Named<'_, bool, Other> =
    Named(&[(true, "external"), (false, "")], Other);
pub(super) const DIRECTION: Named<'_, Direction, Other> =
    Named(&[(Direction::Read, "read"), (Direction::Write, "write")], Other);
pub(super) const KIND: Named<'_, Kind, Other> = Named(&KINDS, Other);

impl<T: Copy + PartialEq, F: Form<T>> Form<T> for Named<'_, T, F> {
    fn absent(&self) -> Option<T> {
        self.0.iter().find(|(_, word)| word.is_empty()).map(|(value, _)| *value)
    }

    fn write(&self, value: &T, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.iter().find(|(each, _)| each == value) {
            Some((_, word)) => f.write_str(word),
            None => self.1.write(value, f),
        }
    }
}

/// There is no other value.
pub(super) struct Other;

impl<T: PartialEq> Form<T> for Other {
    fn write(&self, _: &T, _: &mut Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Free text, and how it is made to look like what it is.
pub(super) struct Free(fn(&str) -> Cow<'_, str>);

pub(super) const WORD: Free = Free(word);
pub(super) const SENTENCE: Free = Free(sentence);
pub(super) const ERROR: Free = Free(phrase);
pub(super) const SIGNAL: Free = Free(signal);

impl<'a> Form<Text<'a>> for Free {
    fn write(&self, text: &Text<'a>, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0(text))
    }
}

/// A value that may be missing.
pub(super) struct Opt<F>(pub(super) F);

impl<T: PartialEq, F: Form<T>> Form<Option<T>> for Opt<F> {
    fn absent(&self) -> Option<Option<T>> {
        Some(None)
    }

    fn write(&self, value: &Option<T>, f: &mut Formatter<'_>) -> fmt::Result {
        value.iter().try_for_each(|value| self.0.write(value, f))
    }
}

/// A value that is left out if it is the default of its type: 0, `false`, or an empty text.
pub(super) struct Filled<F>(pub(super) F);

impl<T: Default + PartialEq, F: Form<T>> Form<T> for Filled<F> {
    fn absent(&self) -> Option<T> {
        Some(T::default())
    }

    fn write(&self, value: &T, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.write(value, f)
    }
}
