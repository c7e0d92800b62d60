//! The oracle: rules that every trace obeys, whatever the program.
//!
//! One pass over a whole trace, from its first event. The oracle uses nothing of the kernel's code,
//! only the promises of its grammar. Each rule is in one of five places: the numbers and causes of
//! lines here, the lives of tasks, tickets and so on in `lives.rs`, the order in which tasks run in
//! `queue.rs`, primitives in `primitives.rs`, and scopes, holders and readiness, which need the
//! state of the kernel, in `fields.rs`.

use std::collections::VecDeque;
use std::fmt;

use traps::Time;

use super::causes::{Behind, Causes};
use super::fields::Fields;
use super::lives::Lives;
use super::primitives::Primitives;
use super::queue::Queue;
use super::{Flight, Line, Seq, Spans};

/// A promise that a trace breaks, with the line that breaks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The line.
    pub seq: Seq,
    /// The rule, one word from the list in [`kernel::trace`].
    pub rule: &'static str,
    /// The violation, in words.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:04} {}: {}", self.seq, self.rule, self.what)
    }
}

impl std::error::Error for Violation {}

/// Receives a finding: a rule that the line breaks, and how.
pub(super) type Report<'r> = dyn FnMut(&'static str, String) + 'r;

/// Checks a whole trace.
///
/// # Errors
///
/// Returns all violations, in the order of the lines.
pub fn check(lines: &[Line<'_>]) -> Result<(), Vec<Violation>> {
    let mut checker = Checker::default();
    lines.iter().for_each(|line| checker.line(line));
    checker.end()
}

/// Checks a trace line by line, from its first event.
///
/// The memory grows only with the things that exist at the same time; the memory of ended things is
/// bounded.
#[derive(Default)]
pub struct Checker {
    found: Vec<Violation>,
    lives: Lives,
    queue: Queue,
    primitives: Primitives,
    fields: Fields,
    spans: Spans,
    causes: Causes,
    first: Option<Seq>,
    /// The first line of a dump of the flight recorder. The lines before it are its head: those
    /// that were in force there.
    flight: Option<Flight>,
    last: Option<(Seq, Time, u64)>,
    /// The verbs and the tasks of the last lines, to judge a cause.
    verbs: VecDeque<(&'static str, u64)>,
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checker").field("last", &self.last).finish_non_exhaustive()
    }
}

/// The number of lines whose verbs are remembered, to judge a cause.
const VERBS: usize = 1 << 16;

/// The verbs whose lines always name a cause.
const CAUSED: [&str; 6] = ["run", "wake", "deliver", "cancel", "exit", "fire"];

impl Checker {
    /// Reads a remark: a line that starts with `#`. In an explored run, ready tasks may have run in
    /// another order. The remark `# explored ...` marks such a run, and then `fifo` is not checked.
    /// The remark `# flight ...` marks a dump: nothing is checked at the lines of its head.
    pub fn remark(&mut self, line: &str) {
        if let Some(flight) = Flight::parse(line) {
            self.flight = Some(flight);
            self.causes.head_until(flight.from);
        }
        let liberties = line.strip_prefix("# explored ").and_then(|case| case.split(' ').nth(1));
        let names = liberties.and_then(|word| word.strip_prefix("liberties="));
        if names.is_some_and(|names| names.split(',').any(|name| name == "order")) {
            self.queue.is_in_any_order = true;
        }
    }

    /// The next line.
    pub fn line(&mut self, line: &Line<'_>) {
        if self.flight.is_some_and(|flight| line.seq < flight.from) {
            return self.head(line);
        }
        let Checker { found, lives, queue, primitives, fields, spans, .. } = self;
        let report = &mut |rule, what| found.push(Violation { seq: line.seq, rule, what });
        order(self.last, line, report);
        // The cause of a line may be older than a dump, and not in force any more.
        let is_dump = self.flight.is_some();
        let first = *self.first.get_or_insert(if is_dump { 0 } else { line.seq });
        match line.cause {
            Some(cause) => {
                let back = line.seq.saturating_sub(cause) as usize;
                let known = self.verbs.len().checked_sub(back).and_then(|at| self.verbs.get(at));
                if !(first..line.seq).contains(&cause) {
                    report("cause", format!("#{cause:04} is no earlier line of this trace"));
                } else if let Some((verb, _)) = known.filter(|(verb, _)| !fits(line, verb)) {
                    report("cause", format!("#{cause:04}, a {verb}, does not lead to this"));
                } else if known == Some(&("run", line.task)) && waits(line, queue) {
                    report("cause", format!("#{cause:04} is the run before this wait"));
                }
            }
            None if CAUSED.contains(&line.verb) => report("cause", "it names none".to_owned()),
            None => {}
        }
        lives.line(line, report);
        queue.line(line, report);
        primitives.line(line, report);
        fields.line(line, report);
        if spans.leave(line).is_none() && line.verb == "leave" {
            report("span", format!("no span {} is open", line.word(0)));
        }
        if self.causes.behind(line) == Behind::Nothing {
            report("root", "nothing is behind it".to_owned());
        }
        self.last = Some((line.seq, line.at, line.turn));
        self.verbs.push_back((line.verb, line.task));
        if self.verbs.len() > VERBS {
            self.verbs.pop_front();
        }
    }

    /// A line of the head of a dump: it only tells what is in force.
    fn head(&mut self, line: &Line<'_>) {
        let Checker { lives, queue, primitives, fields, spans, causes, .. } = self;
        let report = &mut |_, _| {};
        lives.line(line, report);
        queue.head(line);
        primitives.line(line, report);
        fields.line(line, report);
        let _ = (spans.leave(line), causes.behind(line));
    }

    /// The trace is over.
    ///
    /// # Errors
    ///
    /// Returns all violations, in the order of the lines.
    pub fn end(self) -> Result<(), Vec<Violation>> {
        if self.found.is_empty() { Ok(()) } else { Err(self.found) }
    }
}

/// Checks that numbers have no gaps, and that time and turn never decrease.
fn order(last: Option<(Seq, Time, u64)>, line: &Line<'_>, report: &mut Report<'_>) {
    let Some((seq, at, turn)) = last else { return };
    if seq.checked_add(1) != Some(line.seq) {
        report("seq", format!("follows #{seq:04}"));
    }
    if line.at < at {
        report("time", format!("{} after {at}", line.at));
    }
    if line.turn < turn {
        report("turn", format!("turn {} after turn {turn}", line.turn));
    }
}

/// Whether a line ends a wait of a task that has left the CPU. No run of that task can be its
/// cause, with one exception: the run may have called the waker of a wait for something outside.
fn waits(line: &Line<'_>, queue: &Queue) -> bool {
    let calls_wakers = ["waker", "outside"].contains(&line.word(0));
    line.verb == "wake" && !calls_wakers && !queue.is_running(line.task)
}

/// Whether a line with that verb can be the cause of the line. A wait for a descriptor or a signal
/// is never the cause of its end.
fn fits(line: &Line<'_>, cause: &str) -> bool {
    match line.verb {
        "run" => ["spawn", "wake", "deliver"].contains(&cause),
        "fire" => ["block", "await", "trap", "arm", "phase"].contains(&cause),
        "deliver" => ["fire", "cancel"].contains(&cause),
        "wake" if ["io", "signal"].contains(&line.word(0)) => !["block", "await"].contains(&cause),
        _ => true,
    }
}
