//! The waits of a trace, each from the line that opened its ticket to the line that ended it, and
//! the timers that fired late.

use std::collections::BTreeMap;

use testing::trace::Line;
use traps::Time;

use super::model::Trace;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The awaited event happened.
    Well,
    /// A deadline passed.
    Timeout,
    /// The task was cancelled.
    Cancelled,
    /// Its future was dropped: another branch was faster.
    Withdrawn,
    /// The wait did not end before the end of its task or of the trace.
    Open,
}

/// One wait: one ticket. A task in a race or a join has several at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The line that opened the ticket, as a place in the trace.
    pub from: usize,
    /// The line that ended it; if there is none, the end of its task or of the trace.
    pub to: usize,
    /// How it ended.
    pub ended: Ended,
}

/// All waits, in the order of their opening.
pub fn waits(trace: &Trace) -> Vec<Wait> {
    let (mut waits, mut open) = (Vec::new(), BTreeMap::new());
    trace.each(|place, line| {
        let verbs = ["block", "await", "wake", "deliver", "withdraw"];
        let Some(ticket) = verbs.contains(&line.verb).then(|| line.number("k")).flatten() else {
            return;
        };
        if let Some(ended) = ended(line) {
            if let Some(nth) = open.remove(&ticket) {
                waits[nth] = Wait { to: place, ended, ..waits[nth] };
            }
        } else {
            open.insert(ticket, waits.len());
            let to = trace.last_of(line.task).max(place);
            waits.push(Wait { from: place, to, ended: Ended::Open });
        }
    });
    waits
}

/// How a line ends a ticket, if it does.
fn ended(line: &Line<'_>) -> Option<Ended> {
    match line.verb {
        "wake" => Some(Ended::Well),
        "withdraw" => Some(Ended::Withdrawn),
        "deliver" if line.outcome().is_some_and(|outcome| outcome.starts_with("!cancelled")) => {
            Some(Ended::Cancelled)
        }
        "deliver" => Some(Ended::Timeout),
        _ => None,
    }
}

/// A timer that fired after its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// The line that set it, as a place in the trace. The timer belongs to the task of that line.
    pub set: usize,
    /// Its `fire` line.
    pub fired: usize,
    /// By how many microseconds it was late.
    pub micros: u64,
}

/// All timers that fired late, in order, by the time of their lines.
pub fn lates(trace: &Trace) -> Vec<Late> {
    let fires = (0..trace.len()).filter(|place| trace.verb(*place) == "fire");
    let late = |fired| {
        let line = trace.line(fired);
        let deadline: Time = line.key("deadline")?.parse().ok()?;
        let micros = line.at.since(deadline).as_micros() as u64;
        let set = line.cause.and_then(|cause| trace.place(cause)).unwrap_or(fired);
        (micros > 0).then_some(Late { set, fired, micros })
    };
    fires.filter_map(late).collect()
}
