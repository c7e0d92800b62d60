//! Free text in the log, which must not look like anything else; and spans.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use traps::Kind;
use traps::time::Time;

/// Text that is borrowed where the kernel has it, and owned where it makes it.
pub type Text<'a> = Cow<'a, str>;

/// The kinds of interrupts.
pub(super) const KINDS: [(Kind, &str); 4] = [
    (Kind::Cancelled, "cancelled"),
    (Kind::TaskTimeout, "timeout"),
    (Kind::TimeoutCancellation, "timeout-cancellation"),
    (Kind::UncaughtTimeout, "uncaught-timeout"),
];

/// A text with `_` for each character that is not kept, and for an empty text. Borrowed where there
/// is nothing to change.
fn keep(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.is_empty() {
        Cow::Borrowed("_")
    } else if text.chars().all(&is_kept) {
        Cow::Borrowed(text)
    } else {
        text.chars().map(|c| if is_kept(c) { c } else { '_' }).collect()
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_graphic() && c != '=' && c != ','
}

/// Free text as one word: white space, control characters, everything beyond ASCII, `=` and `,`
/// become `_`; so does an empty text. Borrowed where there is nothing to change.
#[must_use]
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    keep(text, is_plain)
}

/// The trap of a `Stop`: a [`word`] without `@`.
pub(super) fn stop(text: &str) -> Cow<'_, str> {
    keep(text, |c| is_plain(c) && c != '@')
}

/// The name of a signal: a [`word`], with `SIG` before it unless it is there.
pub(super) fn signal(text: &str) -> Cow<'_, str> {
    if text.starts_with("SIG") { word(text) } else { format!("SIG{}", word(text)).into() }
}

/// Free text to the end of the line: white space, line ends included, becomes one space between
/// words and nothing at the ends; other control characters and everything beyond ASCII become
/// `_`; so does an empty text.
pub(super) fn sentence(text: &str) -> Cow<'_, str> {
    let is_kept = |c: char| c.is_ascii_graphic() || c == ' ';
    let words = text.split_whitespace();
    if words.clone().eq(text.split(' ')) {
        return keep(text, is_kept);
    }
    keep(&words.collect::<Vec<_>>().join(" "), is_kept).into_owned().into()
}

/// The text of an error inside a line: a [`sentence`] with `=` and `,` as `_`, so that its end
/// can be seen. One whose first word is that of an interrupt gets a `_` behind that word.
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

/// A span as the log shows it: `1s`, `0.5s`, `4ms`, `12.5ms`, `64us`, `0s`.
///
/// Seconds from a tenth of a second on, else milliseconds, and microseconds below one of these;
/// decimals without zeros at the end. Rounded up to a microsecond, as the kernel's clock does it.
/// What saturates is `never`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = Time::ZERO + self.0;
        if end == Time::NEVER {
            return f.write_str("never");
        }
        let micros = end.as_micros();
        let (decimals, unit) = match micros {
            1..1_000 => (0, "us"),
            1_000..100_000 => (3, "ms"),
            _ => (6, "s"),
        };
        let one = 10_u64.pow(decimals);
        write!(f, "{}", micros / one)?;
        let (mut part, mut width) = (micros % one, decimals as usize);
        while width > 0 && part.is_multiple_of(10) {
            (part, width) = (part / 10, width - 1);
        }
        if width > 0 {
            write!(f, ".{part:0width$}")?;
        }
        f.write_str(unit)
    }
}
