//! The words of the log, and what free text may look like in it.
//!
//! Each table is an exhaustive match, so a new verb or trap has a word before it compiles; a test
//! holds every word here to an entry in `grammar.md`.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use traps::Kind;
use traps::protocol::Direction;
use traps::time::Time;

use super::pen::{Print, shown};
use super::{After, Effect, Event, Exit, Op, WakeOp, Why};

impl Event<'_> {
    /// The word in the verb column.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Event::Spawn { .. } => "spawn",
            Event::Run { .. } => "run",
            Event::Trap { .. } => "trap",
            Event::Block { .. } => "block",
            Event::Wake { .. } => "wake",
            Event::Deliver { .. } => "deliver",
            Event::Withdraw { .. } => "withdraw",
            Event::Cancel { .. } => "cancel",
            Event::Exit { .. } => "exit",
            Event::Drop { .. } => "drop",
            Event::Join { .. } => "join",
            Event::Yielded { .. } => "yielded",
            Event::Longrun { .. } => "longrun",
            Event::Late { .. } => "late",
            Event::Race { .. } => "race",
            Event::Warn { .. } => "warn",
            Event::Panic { .. } => "panic",
            Event::Register { .. } => "register",
            Event::Defer { .. } => "defer",
            Event::Reuse { .. } => "reuse",
            Event::Remember { .. } => "remember",
            Event::Unregister { .. } => "unregister",
            Event::Refuse { .. } => "refuse",
            Event::Arm { .. } => "arm",
            Event::Disarm { .. } => "disarm",
            Event::Fire { .. } => "fire",
            Event::Tick { .. } => "tick",
            Event::Offload { .. } | Event::OffloadStarts { .. } => "offload",
            Event::Done { .. } => "done",
            Event::Abandon { .. } => "abandon",
            Event::Orphan { .. } => "orphan",
            Event::Shield { .. } => "shield",
            Event::Cleanup { .. } => "cleanup",
            Event::Cap { .. } => "cap",
            Event::Boot { .. } => "boot",
            Event::Phase(_) => "phase",
            Event::Halt { .. } => "halt",
        }
    }

    /// Whether its detail ends in text that runs to the end of the line, so that nothing may
    /// follow it.
    #[must_use]
    pub fn ends_in_text(&self) -> bool {
        matches!(
            self,
            Event::Warn { .. }
                | Event::Panic { .. }
                | Event::Refuse { .. }
                | Event::Cap { .. }
                | Event::Boot { .. }
        )
    }
}

impl Op<'_> {
    /// Its first word, the name of the function that makes the trap.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Op::Clock => "clock",
            Op::WallClock => "wall_clock",
            Op::CurrentTask => "current_task",
            Op::Deadline { .. } => "deadline",
            Op::Yield => "yield",
            Op::Sleep { .. } => "sleep",
            Op::Io { .. } => "io",
            Op::SetTimeout { .. } => "set_timeout",
            Op::UnsetTimeout { .. } => "unset_timeout",
            Op::ConnectionDeadline => "connection_deadline",
            Op::Guard { .. } => "guard",
            Op::Branch => "branch",
            Op::Shield { .. } => "shield",
            Op::CheckInterrupt => "check_interrupt",
            Op::HeldInterrupt => "held_interrupt",
            Op::Spawn { .. } => "spawn",
            Op::Join { .. } => "join",
            Op::Cancel { .. } => "cancel",
            Op::Wait { .. } => "wait",
            Op::Wake { .. } => "wake",
            Op::Offload { .. } => "offload",
            Op::Signal => "signal",
            Op::Waker => "waker",
            Op::Foreign { .. } => "foreign",
            Op::Outside { .. } => "outside",
            Op::Parked { .. } => "parked",
        }
    }
}

impl WakeOp {
    /// Its first word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            WakeOp::Yield => "yield",
            WakeOp::Sleep => "sleep",
            WakeOp::Io { .. } => "io",
            WakeOp::Join { .. } => "join",
            WakeOp::Wait { .. } => "wait",
            WakeOp::Offload { .. } => "offload",
            WakeOp::Signal => "signal",
            WakeOp::Waker => "waker",
            WakeOp::Outside => "outside",
            WakeOp::Closed { .. } => "closed",
            WakeOp::Scope { .. } => "scope",
        }
    }
}

/// What is one bare word in the log.
pub(crate) trait Word: Sized {
    /// As it is printed.
    fn word(self) -> &'static str;

    /// Which one has that word.
    fn of(word: &str) -> Option<Self>;
}

/// Gives an enum the words of its variants.
macro_rules! words {
    ($name:ident, $($variant:ident => $word:literal),+) => {
        impl Word for $name {
            fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }

            fn of(word: &str) -> Option<$name> {
                [$($name::$variant),+].into_iter().find(|each| each.word() == word)
            }
        }

        impl Print for $name {
            fn print(&self, out: &mut Vec<u8>) {
                self.word().print(out);
            }
        }
    };
}

shown!(After, Effect, Exit, Why);

words!(Direction, Read => "read", Write => "write");
words!(Exit, Ok => "ok", Panic => "panic", Cancelled => "cancelled", Dropped => "dropped");
words!(Effect, Delivered => "delivered", Pending => "pending", Again => "again", Ended => "ended");
words!(Kind, Cancelled => "cancelled", TaskTimeout => "timeout",
    TimeoutCancellation => "timeout-cancellation", UncaughtTimeout => "uncaught-timeout");
words!(After, Drained => "drained", Limit => "limit", Signal => "signal", Failure => "failure");
words!(Why, Wake => "wake", Suspend => "suspend", Other => "other", Exit => "exit",
    Unwanted => "unwanted", Interrupt => "interrupt", Close => "close");

/// Free text as one word: white space, control characters, everything beyond ASCII, `=` and `,`
/// become `_`; so does an empty text. Borrowed where there is nothing to change.
#[must_use]
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_graphic() && c != '=' && c != ',';
    // To the end, without a branch: several bytes go at once.
    let all = |all: bool, c: u8| all & c.is_ascii_graphic() & (c != b'=') & (c != b',');
    if text.is_empty() {
        Cow::Borrowed("_")
    } else if text.bytes().fold(true, all) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.chars().map(|c| if plain(c) { c } else { '_' }).collect())
    }
}

/// Free text to the end of the line: white space, line ends included, becomes one space between
/// words and nothing at the ends; other control characters and everything beyond ASCII become
/// `_`; so does an empty text.
#[must_use]
pub(super) fn sentence(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_graphic() || c == ' ';
    let edges = text.starts_with(' ') || text.ends_with(' ');
    if !text.is_empty() && !edges && text.chars().all(plain) && !text.contains("  ") {
        return Cow::Borrowed(text);
    }
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect())
        .collect();
    if words.is_empty() { Cow::Borrowed("_") } else { Cow::Owned(words.join(" ")) }
}

/// The text of an error inside a line: a [`sentence`] with `=` and `,` as `_`, so that its end
/// can be seen. One whose first word is that of an interrupt gets a `_` behind that word.
#[must_use]
pub(super) fn phrase(text: &str) -> Cow<'_, str> {
    let mut text = sentence(text);
    if text.contains(['=', ',']) {
        text = Cow::Owned(text.replace(['=', ','], "_"));
    }
    let first = text.split(' ').next().unwrap_or_default();
    match Kind::of(first) {
        Some(_) => Cow::Owned(format!("{first}_{}", &text[first.len()..])),
        None => text,
    }
}

/// The name of a signal: a [`word`], with `SIG` before it unless it is there.
#[must_use]
pub(super) fn signal(text: &str) -> Cow<'_, str> {
    if text.starts_with("SIG") { word(text) } else { Cow::Owned(format!("SIG{}", word(text))) }
}

/// The trap of a [`Stop`](super::Stop): a [`word`] without `@`.
#[must_use]
pub(super) fn stop(text: &str) -> Cow<'_, str> {
    let text = word(text);
    if text.contains('@') { Cow::Owned(text.replace('@', "_")) } else { text }
}

/// A span as the log shows it: seconds in decimals without zeros at the end, then `s`.
///
/// Rounded up to a microsecond, as the kernel's clock does it: `1s`, `0.5s`, `0.000001s`, `0s`.
/// What saturates is `never`, and comes back as the longest span that the clock can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

shown!(Span);

/// What was wrong with the text of a [`Span`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseSpanError;

impl FromStr for Span {
    type Err = ParseSpanError;

    fn from_str(text: &str) -> Result<Span, ParseSpanError> {
        if text == "never" {
            return Ok(Span(Time::NEVER.since(Time::ZERO)));
        }
        let seconds = text.strip_suffix('s').ok_or(ParseSpanError)?;
        let (whole, part) = seconds.split_once('.').unwrap_or((seconds, ""));
        let end: Time = format!("{whole}.{part:0<6}").parse().map_err(|_| ParseSpanError)?;
        let span = Span(end.since(Time::ZERO));
        if span.to_string() == text { Ok(span) } else { Err(ParseSpanError) }
    }
}
