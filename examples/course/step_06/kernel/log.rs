//! The log: one line for each decision of the kernel.

use std::io::Write;

use super::*;

/// The number of a line, from 1.
pub(super) type Seq = u64;

/// The kernel itself, where a task has its number.
pub(super) const KERNEL: TaskId = 0;

impl<M: Machine> Kernel<M> {
    /// Writes a line. Returns its number.
    pub(super) fn log(&mut self, task: TaskId, verb: &str, detail: &str) -> Seq {
        self.seq += 1;
        let name = self.tasks.get(&task).map_or("kernel", |found| &found.name);
        let (now, turn, seq) = (self.now, self.turn, self.seq);
        // Ignore the error: with `| head`, the reader of the log ends before the kernel.
        _ = writeln!(self.out, "{now} {turn:>7}  #{seq:04} {task:>3} {name:<8} {verb:<8} {detail}");
        seq
    }
}
