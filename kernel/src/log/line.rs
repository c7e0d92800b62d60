//! A line of the log, and the head of a trace.

use std::time::Duration;

use traps::time::Time;

use super::event::Event;
use super::form::*;
use super::place::Seq;
use super::words::{Text, word};

/// One line of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Line<'a> {
    /// Kernel time.
    pub at: Time,
    /// The turn of the loop; 0 before the first.
    pub turn: u64,
    /// The number of this event.
    pub seq: Seq,
    /// The task it happened to; 0 is the kernel itself.
    pub task: u64,
    /// The task's name, `kernel` for 0. White space and control characters are shown as `_`.
    pub name: Text<'a>,
    /// What happened.
    pub event: Event<'a>,
    /// What only a timed trace shows; `None` in a stable one.
    pub timed: Option<Timed>,
}

/// Measured spans, in timed traces only. Microseconds inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Timed {
    /// How long the task ran before this line (`block`, `exit`).
    pub ran: Option<Duration>,
    /// How long it was ready before it ran (`run`).
    pub waited: Option<Duration>,
    /// How long after its time it fired (`fire`).
    pub late: Option<Duration>,
}

/// The columns, and what was measured. Nothing is allocated once `out` has room, unless a free text
/// has characters that must be replaced.
impl<'a> Form<Line<'a>> for Own {
    fn put(&self, before: &str, line: &Line<'a>, out: &mut Out) {
        out.text(before);
        let Line { at, turn, seq, task, name, event, timed } = line;
        // Two digits of seconds, at least.
        Own.put(if at.as_micros() < 10_000_000 { " " } else { "" }, at, out);
        Number("", 7, b' ').put(" ", turn, out);
        SEQ.put("  ", seq, out);
        Number("", 3, b' ').put(" ", task, out);
        out.text(" ");
        out.column(&word(name), 8);
        Own.put(" ", event, out);
        if let Some(Timed { ran, waited, late }) = timed
            && !event.ends_in_text()
        {
            Opt(Own).put(" ran=", ran, out);
            Opt(Own).put(" waited=", waited, out);
            Opt(Own).put(" late=", late, out);
        }
    }
}

display!(Line<'a>);

/// The version of the format.
const VERSION: &str = "v2";

/// The two lines above every trace: what made it, and the names of the columns.
///
/// No line end behind the second. `clock` is `virtual` or `real`.
#[must_use]
pub fn header(clock: &str, seed: u64) -> String {
    let columns = "# time       turn    seq  id task     verb     detail";
    format!("#trace {VERSION} clock={} seed={seed}\n{columns}", word(clock))
}

/// The lines of `--list-traps`: all that a task can ask of its kernel.
#[must_use]
pub fn listed() -> Vec<String> {
    include_str!("traps.txt").lines().map(str::to_owned).collect()
}
