//! The cause of a line: the earlier line that led to it, or something from outside.

use std::collections::BTreeMap;

use super::{Event, Line, Phase, Seq};

/// What led to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// That line: its `cause=`, or the `run` in which its task did this.
    Line(Seq),
    /// Something from outside: an arrival, a timer, another thread, the start.
    Outside,
    /// Nothing that the trace knows of.
    Nothing,
}

/// Finds what is behind each line of a trace, from the first to the last.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    /// The last `run` of each task, or its `spawn`.
    tasks: BTreeMap<u64, Seq>,
    /// The last phase of a shutdown.
    phase: Option<Seq>,
}

impl Causes {
    /// The cause of the next line.
    pub fn behind(&mut self, line: &Line<'_>) -> Behind {
        let by = |line: Option<&Seq>| line.map_or(Behind::Nothing, |seq| Behind::Line(*seq));
        let behind = match &line.event {
            // These have a cause too: what set the timer. But it is time that made it fire.
            Event::Fire { .. } | Event::Arrive(_) => Behind::Outside,
            Event::Spawn { parent: Some(parent), .. } => by(self.tasks.get(parent)),
            Event::Spawn { cause: None, .. } => Behind::Outside,
            event => match cause(event) {
                Some(cause) => Behind::Line(cause),
                // One phase of a shutdown leads to the next; the first is somebody's wish.
                None if matches!(event, Event::Phase(_)) => {
                    self.phase.map_or(Behind::Outside, Behind::Line)
                }
                // The kernel's own work belongs to the turn.
                None if line.task == 0 => Behind::Outside,
                None => by(self.tasks.get(&line.task)),
            },
        };
        match line.event {
            Event::Run { .. } | Event::Spawn { .. } => {
                self.tasks.insert(line.task, line.seq);
            }
            Event::Phase(_) => self.phase = Some(line.seq),
            _ => {}
        }
        behind
    }
}

/// The line that an event names as its cause.
pub(super) fn cause(event: &Event<'_>) -> Option<Seq> {
    match event {
        Event::Run { cause, .. }
        | Event::Wake { cause, .. }
        | Event::Deliver { cause, .. }
        | Event::Cancel { cause, .. }
        | Event::Exit { cause, .. }
        | Event::Fire { cause, .. }
        | Event::OffloadStarts { cause, .. } => Some(*cause),
        Event::Spawn { cause, .. }
        | Event::Trap { cause, .. }
        | Event::Phase(Phase::Close { cause, .. }) => *cause,
        _ => None,
    }
}
