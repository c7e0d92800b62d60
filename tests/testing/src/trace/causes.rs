//! The cause of a line: the earlier line that led to it, or something from outside.

use std::collections::{BTreeMap, VecDeque};

use super::{Line, Seq};

/// The cause of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// An earlier line: the one that `cause=` names, or the `run` during which the task did this.
    Line(Seq),
    /// Something from outside: an arrival, a timer, another thread, the start.
    Outside,
    /// A line that a dump of the flight recorder does not have, because it was before them.
    Earlier,
    /// Unknown from the trace.
    Nothing,
}

/// Finds the cause of each line of a trace, from the first to the last.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    /// The last `run` of each task, or its `spawn`.
    tasks: BTreeMap<u64, Seq>,
    /// The tasks that have ended, oldest first.
    ended: VecDeque<u64>,
    /// The last phase of a shutdown.
    phase: Option<Seq>,
    /// The first line behind the head of a dump of the flight recorder.
    flight: Option<Seq>,
}

/// The number of ended tasks that are remembered as possible causes.
const ENDED: usize = 1024;

impl Causes {
    /// Takes the lines before this one as the head of a dump of the flight recorder, which has no
    /// `run` lines.
    pub fn head_until(&mut self, from: Seq) {
        self.flight = Some(from);
    }

    /// The cause of the next line.
    pub fn behind(&mut self, line: &Line<'_>) -> Behind {
        let is_head = self.flight.is_some_and(|from| line.seq < from);
        let by = |line: Option<&Seq>| match line {
            Some(seq) if !is_head => Behind::Line(*seq),
            _ if self.flight.is_some() => Behind::Earlier,
            _ => Behind::Nothing,
        };
        let behind = match (line.verb, line.cause) {
            // These lines also name the line that set the timer. But time made the timer fire.
            ("fire" | "arrive", _) => Behind::Outside,
            ("spawn", cause) => match (line.number("parent"), cause) {
                (Some(parent), _) => by(self.tasks.get(&parent)),
                (None, Some(cause)) => Behind::Line(cause),
                (None, None) => Behind::Outside,
            },
            (_, Some(cause)) => Behind::Line(cause),
            // One phase of a shutdown leads to the next. The first is asked for from outside.
            ("phase", None) => self.phase.map_or(Behind::Outside, Behind::Line),
            // Work of the kernel itself belongs to the turn.
            (_, None) if line.task == 0 => Behind::Outside,
            (_, None) => by(self.tasks.get(&line.task)),
        };
        match line.verb {
            "run" | "spawn" => {
                self.tasks.insert(line.task, line.seq);
            }
            "exit" => {
                self.ended.push_back(line.task);
                let old = if self.ended.len() > ENDED { self.ended.pop_front() } else { None };
                old.and_then(|old| self.tasks.remove(&old));
            }
            "phase" => self.phase = Some(line.seq),
            // The task has run since its `spawn`, at a line that the dump does not have.
            _ if is_head && line.cause.is_none() => drop(self.tasks.remove(&line.task)),
            _ => {}
        }
        behind
    }
}
