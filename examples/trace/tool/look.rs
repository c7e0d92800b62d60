//! The time of a view of a log: its end, a given time, or now.

use std::time::Duration;

use kernel::trace::Span;
use testing::trace::{Line, span};
use traps::Time;

use super::now::Now;

/// A process that is writing the log.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// The process.
    pub pid: u32,
    /// How long ago it wrote last. Because the kernel writes whenever it is about to sleep, this is
    /// also the age of the last event.
    pub ago: Duration,
}

impl Writer {
    /// Describes a log that continues after its last line.
    pub fn in_words(self, last: Time) -> String {
        let Writer { pid, ago } = self;
        let (time, ago) = (last + ago, Span(ago));
        format!("now ({time} s), {ago} after the last event; process {pid} is writing the trace")
    }
}

/// Parses a time from a user: `3.25`, `3.25s` or `250ms`.
///
/// # Errors
///
/// The expected input.
pub fn time(text: &str) -> Result<Time, String> {
    let found = span(text).or_else(|| span(&format!("{text}s"))).filter(|_| text != "never");
    let time = found.map(|span| Time::ZERO + span);
    time.ok_or_else(|| format!("expected a time of the trace such as 3.25 or 250ms, not `{text}`"))
}

/// The time of the view.
#[derive(Debug, Default)]
pub struct Look {
    at: Option<Time>,
    writer: Option<Writer>,
    /// The reason why no more lines count.
    over: Over,
}

/// The lines that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Over {
    /// All lines so far, and there may be more.
    #[default]
    No,
    /// All that there are.
    Halted,
    /// The lines up to the requested time.
    Later,
    /// The lines up to the failure of the run. Nothing could wake its tasks any more, and the rest
    /// is their end.
    Failed,
}

impl Look {
    /// Views the log at that time, or now if a process is writing the log, or at its end.
    pub fn new(at: Option<Time>, writer: Option<Writer>) -> Look {
        Look { at, writer, over: Over::No }
    }

    /// Whether the next line counts.
    pub fn wants(&mut self, line: &Line<'_>) -> bool {
        if self.over == Over::Failed || self.over == Over::Later {
            return false;
        }
        if self.at.is_some_and(|at| line.at > at) {
            self.over = Over::Later;
        } else if line.verb == "drop" && line.word(0) == "its_run_failed" {
            self.over = Over::Failed;
        } else {
            // A test may run several kernels, one after the other.
            self.over = if line.verb == "halt" { Over::Halted } else { Over::No };
            return true;
        }
        false
    }

    /// The process that is still writing after the last line.
    fn goes_on(&self) -> Option<Writer> {
        self.writer.filter(|_| self.over == Over::No)
    }

    /// The time of the view.
    ///
    /// # Errors
    ///
    /// The log ends before the requested time, or begins after it.
    pub fn time(&self, now: &Now) -> Result<Time, String> {
        if now.is_head {
            return Err(
                "expected a later time: this is before the recorder's first line".to_owned()
            );
        }
        let end = now.last.at + self.goes_on().map_or(Duration::ZERO, |writer| writer.ago);
        match self.at {
            Some(at) if at > end && self.over != Over::Later => {
                let what = if self.over == Over::Failed { "its run failed" } else { "it ends" };
                Err(format!("expected a time up to {end} s, when {what}, not {at}"))
            }
            Some(at) => Ok(at),
            None => Ok(end),
        }
    }

    /// Says in words at which time the look is.
    pub fn in_words(&self, time: Time, now: &Now) -> String {
        match (self.at, self.over, self.goes_on()) {
            (Some(_), ..) => format!("at {time} s"),
            (None, Over::Failed, _) => format!("when the run failed ({time} s)"),
            (None, _, Some(writer)) => writer.in_words(now.last.at),
            (None, ..) => format!("at the end of the trace ({time} s)"),
        }
    }
}
