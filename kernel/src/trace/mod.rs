//! The log: what happened, as types, as text, and back.
//!
//! | file | is |
//! |---|---|
//! | `event.rs` | the events, as the kernel makes them |
//! | `op.rs` | what stands behind their verbs |
//! | `listed.rs` | the traps among these, for a reader |
//! | `phase.rs` | the phases of a shutdown |
//! | `words.rs` | the closed list of words, and what free text may look like |
//! | `text.rs` | a line as text |
//! | `pen.rs` | what that text is put together with |
//! | `parse.rs` | the way back; accepts what is printed and nothing else |
//! | `cursor.rs` | a line word by word, for the parser |
//! | `check.rs`, `check/` | the oracle over a whole trace; what it has of jobs and of the end |
//! | `violation.rs` | what the oracle finds |
//!
#![doc = include_str!("grammar.md")]

mod check;
mod cursor;
mod event;
mod listed;
mod op;
mod parse;
mod pen;
mod phase;
mod text;
mod violation;
pub(crate) mod words;

#[cfg(test)]
mod any_event;
#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod text_tests;

pub use check::check;
pub use event::{Alias, Answered, Event, Line, Seq, Site, Stop, Text, Timed};
pub use listed::{Listed, TRAPS, listed};
pub use op::{Effect, Exit, Op, Outcome, Timer, WakeOp, Why};
pub use parse::{ParseError, line, trace};
pub use phase::{After, Phase};
pub use violation::Violation;
pub use words::{ParseSpanError, Span};

use traps::time::Time;

/// The two lines above every trace: what made it, and the names of the columns.
///
/// No line end behind the second. `clock` is `virtual` or `real`.
#[must_use]
pub fn header(clock: &str, seed: u64) -> String {
    let columns = "# time       turn    seq  id task     verb     detail";
    format!("#trace v1 clock={} seed={seed}\n{columns}", words::word(clock))
}

/// The fields whose value is a point or a span that was measured.
const MEASURED: [&str; 7] = ["until", "deadline", "over", "ran", "waited", "late", "clock"];

/// A trace with `*` for every time that depends on the clock, so that a trace of the real machine
/// can be compared with one of the simulated.
///
/// That is the time column, readings of the clock (`= 0.500000`), and the fields `until`,
/// `deadline`, `over`, `ran`, `waited`, `late`, and `clock` in the header. Spans as they were
/// asked for stay, and so do the turns.
#[must_use]
pub fn mask_times(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let is_remark = line.starts_with('#') && !line.starts_with("#trace ");
        if is_remark || line.trim().is_empty() {
            masked.push_str(line);
        } else {
            mask_line(line, &mut masked);
        }
    }
    masked
}

fn mask_line(line: &str, masked: &mut String) {
    let mut rest = line;
    let time = line.trim_start().split(' ').next().filter(|word| word.parse::<Time>().is_ok());
    if let Some(time) = time {
        masked.push_str("        *");
        rest = &line[line.len() - line.trim_start().len() + time.len()..];
    }
    let mut before = "";
    for piece in rest.split_inclusive([' ', ',', '\n']) {
        let word = piece.trim_end_matches([' ', ',', '\n']);
        let key = word.split_once('=').map(|(key, _)| key).filter(|key| MEASURED.contains(key));
        match key {
            Some(key) => *masked += &format!("{key}=*"),
            None if before == "=" && word.parse::<Time>().is_ok() => masked.push('*'),
            None => masked.push_str(word),
        }
        masked.push_str(&piece[word.len()..]);
        before = word;
    }
}
