//! The ready queue: first come, first served, and who comes after the first run of a turn waits
//! for the next.

use std::collections::BTreeMap;

use super::check::Report;
use super::{Line, Seq};

/// The line that made a task ready: its number and its turn.
type Ready = (Seq, u64);

#[derive(Default)]
struct Task {
    /// The first line since its last run that made it ready.
    ready: Option<Ready>,
    /// That line may have been of a wait that ended while the task ran, and that the same run read.
    is_tentative: bool,
    /// It has left the CPU since it ran, to be ready at once.
    has_left: bool,
}

/// The runs of one turn, without those of `wakeup`.
#[derive(Clone, Copy)]
struct Turn {
    turn: u64,
    first_run: Seq,
    /// The line that made the task ready that ran last.
    last_ready: Seq,
    /// The task that ran last; 0 when it is over.
    task: u64,
}

#[derive(Default)]
pub(super) struct Queue {
    tasks: BTreeMap<u64, Task>,
    turn: Option<Turn>,
    /// Tasks of one turn need not run in the order in which they became ready.
    pub(super) is_in_any_order: bool,
}

impl Queue {
    pub(super) fn line(&mut self, line: &Line<'_>, report: &mut Report<'_>) {
        let task = self.tasks.entry(line.task).or_default();
        match line.verb {
            "spawn" | "wake" | "deliver" => self.ready(line),
            // What made it ready while it ran was served by the same run.
            "block" => task.ready = None,
            "run" => {
                let ready = std::mem::take(task).ready;
                // The kernel's own task runs before the ready queue, as soon as it is needed.
                if (line.task, line.name()) != (1, "wakeup") {
                    self.run(line, ready, report);
                }
            }
            // All phases are between two tasks.
            "phase" => self.turn.iter_mut().for_each(|turn| turn.task = 0),
            _ => {}
        }
    }

    fn ready(&mut self, line: &Line<'_>) {
        let runs = self.turn.is_some_and(|turn| (turn.turn, turn.task) == (line.turn, line.task));
        let task = self.tasks.entry(line.task).or_default();
        if !runs || task.has_left {
            if task.is_tentative || task.ready.is_none() {
                task.ready = Some((line.seq, line.turn));
            }
            task.is_tentative = false;
            return;
        }
        // It is polled on for all but the last of these, which is of its leaving the CPU. None of
        // the waits named here ends while a task goes on.
        task.ready = Some((line.seq, line.turn));
        let leaves =
            line.verb == "wake" && ["waker", "yield", "sleep", "scope"].contains(&line.word(0));
        (task.has_left, task.is_tentative) = (leaves, !leaves);
    }

    fn run(&mut self, line: &Line<'_>, ready: Option<Ready>, report: &mut Report<'_>) {
        let Some((ready, in_turn)) = ready else {
            return report("ready", format!("nothing made task {} ready", line.task));
        };
        let (turn, seq, task) = (line.turn, line.seq, line.task);
        let now = self.turn.filter(|now| now.turn == turn);
        let now = now.unwrap_or(Turn { turn, first_run: seq, last_ready: 0, task });
        if in_turn == turn && ready > now.first_run {
            report("next-turn", format!("ready at #{ready:04}, after the first run of the turn"));
        } else if ready < now.last_ready && !self.is_in_any_order {
            report("fifo", format!("ready at #{ready:04}, runs after #{:04}", now.last_ready));
        }
        self.turn = Some(Turn { last_ready: now.last_ready.max(ready), task, ..now });
    }
}
