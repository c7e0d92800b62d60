//! The ready queue: first come, first served. A task that becomes ready after the first run of a
//! turn waits for the next turn. A task runs from its `run` line to its `block`.

use std::collections::BTreeMap;

use super::check::Report;
use super::{Line, Seq};

/// The number and the turn of the line that made a task ready.
type Ready = (Seq, u64);

#[derive(Default)]
struct Task {
    /// The first line that made the task ready since it left the CPU.
    ready: Option<Ready>,
    /// It has the CPU. Wakes in the meantime are served by the same run.
    runs: bool,
}

/// The runs of one turn, without those of `wakeup`.
#[derive(Clone, Copy)]
struct Turn {
    turn: u64,
    first_run: Seq,
    /// The line that made ready the task that ran last.
    last_ready: Seq,
}

#[derive(Default)]
pub(super) struct Queue {
    tasks: BTreeMap<u64, Task>,
    turn: Option<Turn>,
    /// Tasks of one turn need not run in the order in which they became ready.
    pub(super) is_in_any_order: bool,
}

impl Queue {
    /// Returns whether that task has the CPU.
    pub(super) fn is_running(&self, task: u64) -> bool {
        self.tasks.get(&task).is_some_and(|task| task.runs)
    }

    /// Reads a line of the head of a dump. The run before a `block` is not there.
    pub(super) fn head(&mut self, line: &Line<'_>) {
        self.line(line, &mut |_, _| {});
        if line.verb == "block" {
            self.tasks.entry(line.task).or_default().ready = None;
        }
    }

    pub(super) fn line(&mut self, line: &Line<'_>, report: &mut Report<'_>) {
        let task = self.tasks.entry(line.task).or_default();
        match line.verb {
            "spawn" | "wake" | "deliver" if !task.runs => {
                task.ready.get_or_insert((line.seq, line.turn));
            }
            "await" | "block" if !task.runs => {
                report("block", format!("task {} has left the CPU before", line.task));
            }
            "block" | "exit" => task.runs = false,
            "run" => {
                if task.runs {
                    report("block", format!("task {} has not left the CPU", line.task));
                }
                let ready = task.ready.take();
                task.runs = true;
                // The kernel's own task runs before the ready queue, as soon as it is needed.
                if (line.task, line.name()) != (1, "wakeup") {
                    self.run(line, ready, report);
                }
            }
            _ => {}
        }
    }

    fn run(&mut self, line: &Line<'_>, ready: Option<Ready>, report: &mut Report<'_>) {
        let Some((ready, in_turn)) = ready else {
            return report("ready", format!("nothing made task {} ready", line.task));
        };
        let (turn, seq) = (line.turn, line.seq);
        let now = self.turn.filter(|now| now.turn == turn);
        let now = now.unwrap_or(Turn { turn, first_run: seq, last_ready: 0 });
        if in_turn == turn && ready > now.first_run {
            report("next-turn", format!("ready at #{ready:04}, after the first run of the turn"));
        } else if ready < now.last_ready && !self.is_in_any_order {
            report("fifo", format!("ready at #{ready:04}, runs after #{:04}", now.last_ready));
        }
        self.turn = Some(Turn { last_ready: now.last_ready.max(ready), ..now });
    }
}
