//! Runs that are too long: who held the CPU, from which trap to which.
//!
//! Each run pays for one reading of the coarse clock and one comparison. The watchdog, in contrast,
//! looks from outside and while the run lasts.

use std::time::Duration;

use traps::Time;

use crate::kernel::Kernel;
use crate::log::{self, announce};
use crate::machine::Machine;
use crate::task::State;
use crate::trace::{Event, Stop};
use crate::waits::{On, Wait};

/// How long a run may be, and when the present one began.
pub(crate) struct Longrun {
    /// In nanoseconds; `u64::MAX`: nobody measures.
    limit: u64,
    /// When the run before it ended, or the turn's wait, by [`Machine`]'s cheap clock.
    pub(crate) since: u64,
    /// The wait that the task has come back from, if it was in one.
    pub(crate) from: Option<Wait>,
}

impl Longrun {
    pub(crate) fn new(limit: Option<Duration>) -> Longrun {
        let nanos = limit.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        Longrun { limit: nanos.unwrap_or(u64::MAX), since: 0, from: None }
    }

    #[inline]
    pub(crate) fn measures(&self) -> bool {
        self.limit != u64::MAX
    }
}

/// What a wait is for, or was for, in one word.
fn word(on: On) -> &'static str {
    match on {
        On::Yield { .. } | On::Done => "yield",
        On::Sleep(_) | On::Slept(_) => "sleep",
        On::Io(..) | On::IoReady(..) | On::Closed => "io",
        On::Join(..) | On::Joined(..) => "join",
        On::Queue { .. } | On::Granted { .. } => "wait",
        On::Job(_) | On::Answered(_) => "offload",
        On::Signal(_) | On::Stream | On::Signalled(_) => "signal",
        On::Foreign(_) => "foreign",
        On::Outside(..) => "outside",
        On::Interrupted => "interrupt",
    }
}

impl<M: Machine> Kernel<M> {
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
        let Some(task) = self.running else { return };
        let (trap, at) = match self.longrun.from {
            Some(wait) if !wait.on.is_parked() => (word(wait.on), Some(log::site(wait.site))),
            _ if self.tasks[task].runs == 1 => ("spawn", None),
            _ => ("waker", None),
        };
        let from = Stop { trap: trap.into(), at };
        let (ran, to) = (Time::ZERO + ran, self.stop_of(task));
        announce!(self, self.tasks.label(task), Event::Longrun { ran, from, to });
    }

    /// Where a run has ended: the trap that the task is in now.
    fn stop_of(&self, index: u32) -> Stop<'static> {
        let task = &self.tasks[index];
        let newest = task.waits().max_by_key(|wait| wait.serial);
        let (trap, at) = match (task.state, newest) {
            (State::Ended(_) | State::Free, _) => ("exit", None),
            (_, Some(wait)) => (word(wait.on), Some(log::site(wait.site))),
            (_, None) => ("waker", None),
        };
        Stop { trap: trap.into(), at }
    }
}
