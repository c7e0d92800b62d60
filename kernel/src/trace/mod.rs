//! The log: what happened, as types, as text, and back.
//!
//! | file | is |
//! |---|---|
//! | `event.rs` | the table of events: their types and their text in one |
//! | `op.rs` | the tables of what stands in events |
//! | `place.rs` | places in the source, and descriptors |
//! | `line.rs` | a line with its columns, and a whole log, as text and back |
//! | `form.rs` | how a value is written and read: the words of the tables |
//! | `table.rs` | the macros that make types, text and parser from a table |
//! | `reader.rs` | a line that is read, and what is wrong with it |
//! | `words.rs` | what free text and spans look like |
//! | `mask.rs` | `*` for times |
//! | `causes.rs` | what is behind a line |
//! | `check.rs`, `check/` | the oracle over a whole trace |
//!
#![doc = include_str!("grammar.md")]

mod causes;
mod check;
mod event;
mod form;
mod line;
mod mask;
mod op;
mod place;
mod reader;
mod table;
pub(crate) mod words;

pub use causes::{Behind, Causes};
pub use check::{Checker, Violation, check};
pub use event::{Answered, Event, Seq, Text};
pub use line::{Line, Timed, header, line, trace};
pub use mask::mask_times;
pub use op::{After, Arrival, Effect, Exit, Need, Op, Outcome, Phase, Reg, Timer, WakeOp, Why};
pub use place::{Alias, Site, Stop};
pub use reader::ParseError;
pub use words::{ParseSpanError, Span};

/// The lines of `--list-traps`: all that a task can ask of its kernel.
#[must_use]
pub fn listed() -> Vec<String> {
    include_str!("traps.txt").lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod any_event_tests;
#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod text_tests;
