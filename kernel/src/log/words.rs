//! Free text in the log, which must not look like anything else; and spans.

use std::borrow::Cow;
use std::time::Duration;

use traps::Kind;

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

/// Free text as one word: white space, control characters, everything beyond ASCII, `=` and `,`
/// become `_`; so does an empty text. Borrowed where there is nothing to change.
#[must_use]
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    keep(text, is_plain)
}

/// The trap of a `Stop`: a [`word`] without `@`.
pub(super) fn stop(text: &str) -> Cow<'_, str> {
    keep(text, |c| is_plain(c) && c != b'@')
}

/// The name of a signal: a [`word`], with `SIG` before it unless it is there.
pub(super) fn signal(text: &str) -> Cow<'_, str> {
    if text.starts_with("SIG") { word(text) } else { format!("SIG{}", word(text)).into() }
}

/// Free text to the end of the line: white space, line ends included, becomes one space between
/// words and nothing at the ends; other control characters and everything beyond ASCII become
/// `_`; so does an empty text.
pub(super) fn sentence(text: &str) -> Cow<'_, str> {
    let is_kept = |c: u8| c.is_ascii_graphic() || c == b' ';
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
