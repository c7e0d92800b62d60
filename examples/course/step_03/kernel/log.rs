//! The log: one line for each decision of the kernel.

use std::io::Write;

use super::*;

/// The kernel itself, where a task has its number.
pub(super) const KERNEL: TaskId = 0;

impl<M: Machine> Kernel<M> {
    /// Writes a line.
    pub(super) fn log(&mut self, task: TaskId, verb: &str) {
        let (now, turn, out) = (self.now, self.turn, &mut self.out);
        // Ignore the error: with `| head`, the reader of the log ends before the kernel.
        _ = writeln!(out, "{now} {turn:>4} {task:>3} {verb}");
    }
}
