//! The oracle: what must be true of any trace, whatever the program.
//!
//! One pass over a whole trace, from its first event. The oracle knows nothing of the kernel's
//! code, only what `grammar.md` promises. Each rule is in one of three places: the numbers and
//! causes of lines here, the lives of tasks, tickets and so on in `lives.rs`, the order in which
//! tasks run in `queue.rs`.

use std::fmt;

use super::{Event, Line, Phase, Seq};

mod lives;
mod queue;

use lives::Lives;
use queue::Queue;

/// A promise that a trace breaks, and the line that breaks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The line.
    pub seq: Seq,
    /// The rule, one word from the list in `grammar.md`.
    pub rule: &'static str,
    /// What is wrong, in words.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:04} {}: {}", self.seq, self.rule, self.what)
    }
}

impl std::error::Error for Violation {}

/// Takes what is found: a rule that the line breaks, and how.
type Report<'r> = dyn FnMut(&'static str, String) + 'r;

/// Checks a whole trace.
///
/// # Errors
///
/// Every violation, in the order of the lines.
pub fn check(lines: &[Line<'_>]) -> Result<(), Vec<Violation>> {
    let mut found = Vec::new();
    let (mut lives, mut queue) = (Lives::default(), Queue::default());
    for (nth, line) in lines.iter().enumerate() {
        let report = &mut |rule, what| found.push(Violation { seq: line.seq, rule, what });
        order(&lines[..nth], line, report);
        lives.line(line, report);
        queue.line(line, report);
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// Numbers are gapless, time and turn never go back, a cause is an earlier line.
fn order(earlier: &[Line<'_>], line: &Line<'_>, report: &mut Report<'_>) {
    if let Some(last) = earlier.last() {
        if last.seq.checked_add(1) != Some(line.seq) {
            report("seq", format!("follows #{:04}", last.seq));
        }
        if line.at < last.at {
            report("time", format!("{} after {}", line.at, last.at));
        }
        if line.turn < last.turn {
            report("turn", format!("turn {} after turn {}", line.turn, last.turn));
        }
    }
    let first = earlier.first().map_or(line.seq, |first| first.seq);
    if let Some(cause) = cause(&line.event).filter(|cause| !(first..line.seq).contains(cause)) {
        report("cause", format!("#{cause:04} is no earlier line of this trace"));
    }
}

fn cause(event: &Event<'_>) -> Option<Seq> {
    match event {
        Event::Run { cause, .. }
        | Event::Wake { cause, .. }
        | Event::Deliver { cause, .. }
        | Event::Cancel { cause, .. }
        | Event::Exit { cause, .. }
        | Event::Fire { cause, .. }
        | Event::OffloadStarts { cause, .. } => Some(*cause),
        Event::Spawn { cause, .. }
        | Event::Trap { cause, .. }
        | Event::Phase(Phase::Close { cause, .. }) => *cause,
        _ => None,
    }
}
