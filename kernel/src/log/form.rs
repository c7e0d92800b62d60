//! The forms of values: how a value is written in a line. The tables of `event.rs` name a form for
//! each field.
//!
//! Free text must not look like any other part of a line. So each form of free text replaces the
//! characters that have a meaning there.

use std::borrow::Cow;
pub(super) use std::fmt;
use std::time::Duration;

use traps::Kind;
use traps::internal::table::Direction;
use traps::time::Time;

/// The buffer for a line: bytes, all of them ASCII. Formatting with `core::fmt` would cost more
/// than the rest of the event.
#[derive(Default)]
pub(super) struct Out(pub(super) Vec<u8>);

impl Out {
    pub(super) fn text(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Writes text left-aligned in a column of this width, at most 8.
    pub(super) fn column(&mut self, text: &str, width: usize) {
        let end = self.0.len() + text.len().max(width);
        self.text(text);
        self.text("        ");
        self.0.truncate(end);
    }

    /// Writes a number right-aligned in a column of this width, at most 20.
    pub(super) fn number(&mut self, mut number: u64, width: usize, fill: u8) {
        let digits = number.max(1).ilog10() as usize + 1;
        let end = self.0.len() + digits.max(width);
        // Write the digits in place: to copy bytes right after they were written would cost a
        // stall.
        self.0.extend_from_slice(&[fill; 20]);
        self.0.truncate(end);
        for digit in self.0[end - digits..].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
}

/// A way to print values of type `T` in a log line.
pub(super) trait Form<T> {
    /// Writes `before` and then the value, or nothing if the value is left out.
    fn put(&self, before: &str, value: &T, out: &mut Out);
}

/// The default form of a type in a log line.
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

/// The form of a number: its prefix, the width of its column, and the character that fills the
/// column.
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

/// A form with a list of values that have their own words, and the form of all other values. A
/// value with an empty word is left out.
pub(super) struct Named<'n, T, F>(pub(super) &'n [(T, &'static str)], pub(super) F);

/// The form of a task number, or `-` for the kernel.
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

/// The form of the other values of a type that has no other values: writes nothing.
impl<T> Form<T> for () {
    fn put(&self, _: &str, _: &T, _: &mut Out) {}
}

/// The form of free text: the function that makes the text safe in a log line.
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

/// The form of an optional value, which prints nothing for `None`.
pub(super) struct Opt<F>(pub(super) F);

impl<T, F: Form<T>> Form<Option<T>> for Opt<F> {
    fn put(&self, before: &str, value: &Option<T>, out: &mut Out) {
        value.iter().for_each(|value| self.0.put(before, value, out));
    }
}

/// The form of a value that is left out if it is the default of its type: 0, `false`, or an empty
/// text.
pub(super) struct Filled<F>(pub(super) F);

impl<T: Default + PartialEq, F: Form<T>> Form<T> for Filled<F> {
    fn put(&self, before: &str, value: &T, out: &mut Out) {
        if *value != T::default() {
            self.0.put(before, value, out);
        }
    }
}

/// Text that the kernel either borrows or owns.
pub type Text<'a> = Cow<'a, str>;

/// The kinds of interrupts, with their words.
pub(super) const KINDS: [(Kind, &str); 4] = [
    (Kind::Cancelled, "cancelled"),
    (Kind::TaskTimeout, "timeout"),
    (Kind::TimeoutCancellation, "timeout-cancellation"),
    (Kind::UncaughtTimeout, "uncaught-timeout"),
];

/// Replaces each character that is not kept, and an empty text, by `_`. Borrows the text if nothing
/// changes.
fn keep(text: &str, is_kept: impl Fn(u8) -> bool) -> Cow<'_, str> {
    if text.is_empty() {
        Cow::Borrowed("_")
    } else if text.bytes().fold(true, |are_kept, byte| are_kept & is_kept(byte)) {
        Cow::Borrowed(text)
    } else {
        text.chars().map(|c| if c.is_ascii() && is_kept(c as u8) { c } else { '_' }).collect()
    }
}

fn is_plain(c: u8) -> bool {
    c.is_ascii_graphic() && c != b'=' && c != b','
}

/// Turns free text into one word: white space, control characters, characters beyond ASCII, `=` and
/// `,` become `_`, and so does an empty text. Borrows the text if nothing changes.
#[must_use]
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    keep(text, is_plain)
}

/// Turns text into the trap of a `Stop`: a [`word`] without `@`.
pub(super) fn stop(text: &str) -> Cow<'_, str> {
    keep(text, |c| is_plain(c) && c != b'@')
}

/// Turns text into the name of a signal: a [`word`] that begins with `SIG`.
pub(super) fn signal(text: &str) -> Cow<'_, str> {
    if text.starts_with("SIG") { word(text) } else { format!("SIG{}", word(text)).into() }
}

/// Turns free text into text that can run to the end of a log line. White space, line ends
/// included, becomes one space between words, and is removed at both ends. Other control characters
/// and characters beyond ASCII become `_`, and so does an empty text.
pub(super) fn sentence(text: &str) -> Cow<'_, str> {
    let is_kept = |c: u8| c.is_ascii_graphic() || c == b' ';
    let words = text.split_whitespace();
    if words.clone().eq(text.split(' ')) {
        return keep(text, is_kept);
    }
    keep(&words.collect::<Vec<_>>().join(" "), is_kept).into_owned().into()
}

/// Turns the text of an error into text inside a log line: a [`sentence`] in which `=` and `,`
/// become `_`, so that its end is visible. If the first word is that of an interrupt, the word gets
/// a `_` at its end.
pub(super) fn phrase(text: &str) -> Cow<'_, str> {
    let mut text = sentence(text);
    if text.contains(['=', ',']) {
        text = text.replace(['=', ','], "_").into();
    }
    let first = text.split(' ').next().unwrap_or_default();
    if KINDS.iter().any(|(_, word)| *word == first) {
        text = format!("{first}_{}", &text[first.len()..]).into();
    }
    text
}

/// A duration as the log shows it: `1s`, `0.5s`, `4ms`, `12.5ms`, `64us`, `0s`.
///
/// The unit is seconds from a tenth of a second on, then milliseconds, and microseconds below one
/// millisecond. Decimals have no zeros at the end. A duration is rounded up to a microsecond, as
/// the kernel's clock does. A duration too large for the clock is `never`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

/// Defines enums whose values are printed as a word and then their fields. A row is
///
/// ```text
/// Variant = "word" { field " before=": Type = form, ... }
/// Variant(name " before=": Type = form) = "word"
/// ```
///
/// The second form is for a tuple. Everything after the first word may be left out. `" before="` is
/// the text printed before the field; the default is a space. `form` is the form of the field; the
/// default is the own form of its type. A form may use the fields before it. The same forms pack
/// the value (`pack.rs`).
///
/// After the name of an enum come the name of the method that returns the word, and the width of
/// the word's column if it has one. A module with a table imports all names of `form.rs` and
/// `pack.rs`.
macro_rules! table {
    ($($(#[$meta:meta])* pub enum $name:ident $(<$a:lifetime>)?,
    $getter:ident $(, width $width:literal)? {
        $($(#[$doc:meta])* $variant:ident
        $(($inner:ident $($prefix:literal)?: $payload:ty $(= $shape:expr)?))? = $word:literal $({
            $($(#[$note:meta])* $field:ident $($before:literal)?: $type:ty $(= $form:expr)?),* $(,)?
        })?),* $(,)?
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name $(<$a>)? {
            $($(#[$doc])* $variant $(($payload))? $({
                $($(#[$note])*
                #[doc = given!("Positional." $(, concat!("Behind `", $before, "`."))?)]
                $field: $type),*
            })?),*
        }

        impl $(<$a>)? $name $(<$a>)? {
            /// The first word of each variant, or an empty text if the variant has none.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// Returns the first word of this value, or an empty text if the value has none.
            #[must_use]
            pub fn $getter(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $word),*
                }
            }
        }

        impl $(<$a>)? Form<$name $(<$a>)?> for Own {
            fn put(&self, before: &str, value: &$name $(<$a>)?, out: &mut Out) {
                out.text(before);
                out.column(value.$getter(), 0 $(+ $width)?);
                match value {
                    $($name::$variant { $(0: $inner)? $($($field),*)? } => {
                        $(given!(Own $(, $shape)?).put(given!(" " $(, $prefix)?), $inner, out);)?
                        $($(given!(Own $(, $form)?).put(given!(" " $(, $before)?), $field, out);)*)?
                    })*
                }
            }
        }
        display!($name $(<$a>)?);

        impl $(<$a>)? Pack<$name $(<$a>)?> for Own {
            #[inline(always)]
            fn pack(&self, value: &$name $(<$a>)?, out: &mut Packed<'_>) {
                enum Tag { $($variant),* }
                match value {
                    $($name::$variant { $(0: $inner)? $($($field),*)? } => {
                        out.byte(Tag::$variant as u8);
                        $(given!(Own $(, $shape)?).pack($inner, out);)?
                        $($(given!(Own $(, $form)?).pack($field, out);)*)?
                    })*
                }
            }

            fn take(&self, from: &mut Unpack<'_>) -> $name $(<$a>)? {
                enum Tag { $($variant),* }
                match from.byte() {
                    $(tag if tag == Tag::$variant as u8 => {
                        $(let $inner: $payload = given!(Own $(, $shape)?).take(from);)?
                        $($(let $field: $type = given!(Own $(, $form)?).take(from);)*)?
                        $name::$variant { $(0: $inner)? $($($field),*)? }
                    })*
                    tag => unreachable!("no value has the tag {tag}"),
                }
            }
        }
    )*};
}
pub(super) use table;

/// Expands to the given value, or to the default if none is given.
macro_rules! given {
    ($default:expr) => {
        $default
    };
    ($default:expr, $given:expr) => {
        $given
    };
}
pub(super) use given;

/// Implements `Display` for a type with the form `Own` of the type.
macro_rules! display {
    ($name:ident $(<$a:lifetime>)?) => {
        impl $(<$a>)? fmt::Display for $name $(<$a>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut out = Out::default();
                Own.put("", self, &mut out);
                f.pad(&String::from_utf8_lossy(&out.0))
            }
        }
    };
}
pub(super) use display;
