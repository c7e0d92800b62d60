//! The log: one line for each decision of the kernel.

use std::io::Write;

use super::*;

impl Kernel {
    /// Writes a line.
    pub(super) fn log(&mut self, task: TaskId, verb: &str) {
        let (turn, out) = (self.turn, &mut self.out);
        // Ignore the error: with `| head`, the reader of the log ends before the kernel.
        _ = writeln!(out, "{turn:>4} {task:>3} {verb}");
    }
}
