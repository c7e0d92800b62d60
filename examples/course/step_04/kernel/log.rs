//! The log: one line for each decision of the kernel.

use std::io::Write;

use super::*;

/// The kernel itself, where a task has its number.
pub(super) const KERNEL: TaskId = 0;

impl<M: Machine> Kernel<M> {
    /// Writes a line.
    pub(super) fn log(&mut self, task: TaskId, verb: &str, detail: &str) {
        let line = format!("{} {:>4} {task:>3} {verb:<8} {detail}", self.now, self.turn);
        // Ignore the error: with `| head`, the reader of the log ends before the kernel.
        _ = writeln!(self.out, "{}", line.trim_end());
    }
}
