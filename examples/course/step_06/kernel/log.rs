//! The log: one line for each decision of the kernel.

use std::io::Write;

use super::*;

/// The number of a line, from 1.
pub(super) type Seq = u64;

/// The kernel itself, where a task has its number.
pub(super) const KERNEL: TaskId = 0;

impl<M: Machine> Kernel<M> {
    /// Writes a line. Gives its number.
    pub(super) fn log(&mut self, task: TaskId, verb: &str, detail: &str) -> Seq {
        self.seq += 1;
        let name = self.tasks.get(&task).map_or("kernel", |found| &found.name);
        let (now, turn, seq) = (self.now, self.turn, self.seq);
        // A reader that went away is no error.
        _ = writeln!(self.out, "{now} {turn:>7}  #{seq:04} {task:>3} {name:<8} {verb:<8} {detail}");
        seq
    }

    /// The first two lines.
    pub(super) fn log_head(&mut self) {
        _ = writeln!(self.out, "#trace v3 clock={} seed=0 tick=0.3s", self.machine.name());
        _ = writeln!(self.out, "# time       turn    seq  id task     verb     detail");
    }
}

/// An answer, as it stands behind ` = `.
pub(super) fn outcome(reply: &Reply) -> String {
    match reply {
        Reply::Done => "ok".to_owned(),
        Reply::Time(time) => time_of(*time),
        Reply::Task(task) => task.to_string(),
    }
}

/// A place in the source.
pub(super) fn at(site: Site) -> String {
    format!("at={}:{}", site.file(), site.line())
}
