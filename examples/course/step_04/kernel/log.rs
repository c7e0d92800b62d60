//! The log: one line for each decision of the kernel.

use std::io::Write;
use std::time::Duration;

use super::*;

/// The kernel itself, where a task has its number.
pub(super) const KERNEL: TaskId = 0;

impl<M: Machine> Kernel<M> {
    /// Writes a line.
    pub(super) fn log(&mut self, task: TaskId, verb: &str, detail: &str) {
        let line = format!("{} {:>4} {task:>3} {verb:<8} {detail}", self.now, self.turn);
        // A reader that went away is no error.
        _ = writeln!(self.out, "{}", line.trim_end());
    }
}

/// A span, in the unit that suits it.
pub(super) fn span(span: Duration) -> String {
    let micros = span.as_nanos().div_ceil(1000);
    let (value, unit) = match micros {
        0 => return "0s".to_owned(),
        1..1000 => (micros as f64, "us"),
        1000..100_000 => (micros as f64 / 1e3, "ms"),
        _ => (micros as f64 / 1e6, "s"),
    };
    format!("{value}{unit}")
}

/// An answer, as it stands behind ` = `.
pub(super) fn outcome(reply: &Reply) -> String {
    match reply {
        Reply::Done => "ok".to_owned(),
        Reply::Time(time) => time_of(*time),
    }
}

/// A time without the padding of its column.
pub(super) fn time_of(time: Time) -> String {
    time.to_string().trim_start().to_owned()
}
