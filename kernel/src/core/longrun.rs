//! Runs that are too long: who held the CPU, from which trap to which.
//!
//! Each run pays for one reading of the coarse clock and one comparison. The watchdog, in contrast,
//! looks from outside and while the run lasts.

use std::time::Duration;

use traps::Time;

use super::Core;
use super::tasks::State;
use super::words::word;
use crate::log::{self, announce};
use crate::machine::Machine;
use crate::trace::{Event, Stop};

impl<M: Machine> Core<M> {
    /// Reports the run that has just ended if it was too long.
    #[inline]
    pub(crate) fn measure_run(&mut self) {
        if self.longrun.measures() {
            let mark = self.machine.mark();
            let ran = mark.wrapping_sub(self.longrun.since);
            if ran > self.longrun.limit {
                self.tell_long_run(Duration::from_nanos(ran));
            }
            self.longrun.since = mark;
        }
    }

    #[cold]
    fn tell_long_run(&mut self, ran: Duration) {
        let Some(task) = self.run.task else { return };
        let (trap, at) = match self.run.from {
            _ if self.tasks[task].runs == 1 => ("spawn", None),
            ("", _) => ("waker", None),
            (word, at) => (word, at.map(log::site)),
        };
        let from = Stop { trap: trap.into(), at };
        let (ran, to) = (Time::ZERO + ran, self.stop_of(task));
        announce!(self, self.tasks.label(task), Event::Longrun { ran, from, to });
    }

    /// Where a run has ended: the trap that the task is in now.
    fn stop_of(&self, index: u32) -> Stop<'static> {
        let waits = self.parked(index, |_, wait, on| (word(on), Some(log::site(wait.site))));
        let (trap, at) = match (self.tasks[index].state, waits.into_iter().last()) {
            (State::Running, _) => ("exit", None),
            (_, Some(wait)) => wait,
            (_, None) => ("waker", None),
        };
        Stop { trap: trap.into(), at }
    }
}
