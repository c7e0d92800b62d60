//! Whether a log is complete: the places where lines are missing or in another order, and whether
//! it has its end.

use kernel::trace::Seq;
use testing::trace::{Flight, Line};
use traps::Time;

use super::reading::Bad;
use super::select::REMARK;

/// The largest number of faults that are listed one by one.
const LISTED: usize = 10;

/// Describes what a dump of the flight recorder has.
pub fn dump_in_words(Flight { from, .. }: Flight) -> String {
    let before = "of those before only what was in force there";
    format!("the dump has all lines from #{from:04} on, and {before}")
}

/// Follows the lines of a log, and keeps the places of its faults.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    first: Vec<String>,
    count: usize,
    last: Option<(Seq, Time, u64)>,
    /// The number of malformed lines since `last`.
    unread: u64,
    is_halted: bool,
    is_growing: bool,
    /// Whether `select` has written the log, so that lines are missing on purpose.
    is_selection: bool,
    /// Set if the log is a dump of the flight recorder.
    flight: Option<Flight>,
    /// The word of its cause.
    cause: Option<Box<str>>,
}

impl Whole {
    /// Follows a remark.
    pub fn remark(&mut self, text: &str) {
        if let Some(flight) = Flight::parse(text) {
            self.flight = Some(flight);
            self.cause =
                text.split(' ').find_map(|word| word.strip_prefix("cause=")).map(Box::from);
        }
        self.is_selection |= text.starts_with(REMARK);
    }

    /// The remark of a dump of the flight recorder, if the log is one.
    pub fn flight(&self) -> Option<Flight> {
        self.flight
    }

    /// Returns the word of the cause of a dump.
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// Follows the next line, which has this number in its file.
    pub fn line(&mut self, line: &Line<'_>, number: usize) {
        let seq = line.seq;
        // The head of a dump has only the lines in force.
        if self.flight.is_some_and(|flight| seq <= flight.from) {
            self.last = Some((seq, line.at, line.turn));
            return;
        }
        match self.last {
            // A timed trace begins with event 0.
            None if seq > 1 && !self.is_selection => self.fault(|| {
                format!("line {number}: the first event is #{seq:04}, so earlier lines are missing")
            }),
            None => {}
            Some((last, ..)) if seq <= last => self.fault(|| {
                format!(
                    "line {number}: #{seq:04} follows #{last:04}, so another log begins here or \
                     lines are in another order"
                )
            }),
            Some((last, at, turn)) => {
                let missing = (seq - last - 1).saturating_sub(self.unread);
                if missing > 0 && !self.is_selection {
                    self.fault(|| {
                        let s = if missing == 1 { " is" } else { "s are" };
                        format!(
                            "line {number}: #{seq:04} follows #{last:04}, so {missing} line{s} \
                             missing"
                        )
                    });
                }
                if line.turn < turn {
                    self.fault(|| format!("line {number}: turn {} follows turn {turn}", line.turn));
                }
                if line.at < at {
                    self.fault(|| format!("line {number}: time {} follows time {at}", line.at));
                }
            }
        }
        (self.last, self.unread) = (Some((seq, line.at, line.turn)), 0);
        self.is_halted = line.verb == "halt";
    }

    /// Whether `select` has written the log.
    pub fn is_selection(&self) -> bool {
        self.is_selection
    }

    /// Notes a malformed line.
    pub fn bad(&mut self, bad: &Bad) {
        self.unread += 1;
        self.fault(|| bad.to_string());
    }

    /// Notes that a process is writing the log, so that it needs no end.
    pub fn grows(&mut self) {
        self.is_growing = true;
    }

    /// Whether the last line reports the end of a kernel.
    pub fn is_halted(&self) -> bool {
        self.is_halted
    }

    fn fault(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < LISTED {
            self.first.push(text());
        }
    }

    /// Returns a sentence for each fault. When there are many, the last sentence counts the rest.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.first.clone();
        if let Some(more) = self.count.checked_sub(LISTED).filter(|more| *more > 0) {
            let s = if more == 1 { "" } else { "s" };
            faults.push(format!("and {more} more fault{s} of this kind"));
        }
        let needs_no_end =
            self.is_halted || self.is_growing || self.is_selection || self.flight.is_some();
        if let Some((last, ..)) = self.last.filter(|_| !needs_no_end) {
            faults.push(format!(
                "the log ends at #{last:04} without a `halt` line: its program ended before \
                 `Kernel::shutdown`, as with `kernel.run(..)??` if main fails, or it was killed, \
                 or it could not write the rest"
            ));
        }
        faults
    }
}
