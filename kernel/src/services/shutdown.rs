//! The state of a shutdown: its stage, and the events of a turn that begin or end a phase.
//!
//! The phases are close, drain, cancel, cleanup, and halt. Each has its line in the log. The kernel
//! runs through them in `kernel.rs`.

use std::mem;

use traps::internal::protocol::End;
use traps::internal::table::TaskIndex;
use traps::{Signal, Time};

use crate::core::Core;
use crate::core::dispatch::OVER;
use crate::core::timers::ServiceTimer;
use crate::log::KERNEL;
use crate::log::lines::{announce, emit};
use crate::machine::Machine;
use crate::trace::{After, Event, Phase, Seq, Timer};

/// The state of a shutdown.
#[derive(Default)]
pub(crate) struct Shutdown {
    pub(crate) stage: Stage,
    /// The signal that has begun the shutdown.
    pub(crate) signal: Option<Signal>,
    /// The reason to end the drain although a task may still hold it.
    over: Option<After>,
    /// Whether the tasks that the close has woken have run, so that they had time to take a hold.
    pub(crate) woken_ran: bool,
    /// The number of the newest task that was cancelled.
    cancelled: u64,
    /// The end of the grace period.
    pub(crate) until: Time,
    /// The log line of the present phase.
    line: Seq,
    /// Whether the grace period is over: by its limit, or by a further signal.
    pub(crate) overdue: bool,
    /// The number of holds that were left when the drain ended.
    pub(crate) cut_off: u64,
    /// The number of tasks that were dropped when the grace period ended.
    pub(crate) dropped: u64,
    /// Whether the machine has failed, so that no further run is possible.
    pub(crate) failed: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The shutdown has not begun.
    #[default]
    Open,
    /// The drain, which lasts until all holds are dropped and main has ended, if main has asked
    /// about the shutdown.
    Drain,
    /// The cleanup, which lasts until all tasks have ended.
    Cleanup,
    Halted,
}

impl Shutdown {
    /// Returns whether a shutdown has begun or the machine has failed. No new run can begin then.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.stage != Stage::Open || self.failed
    }

    /// Handles a signal that shuts the kernel down: the first one begins the shutdown, and each
    /// further one ends the present phase.
    pub(crate) fn signal<M: Machine>(&mut self, core: &mut Core<M>, signal: Signal) {
        match self.stage {
            Stage::Open => {
                self.signal = Some(signal);
                self.begin(core, &signal.to_string());
            }
            Stage::Drain => self.over = self.over.or(Some(After::Signal)),
            Stage::Cleanup | Stage::Halted => self.overdue = true,
        }
    }

    /// Runs the phase close, and begins the drain. A second call does nothing.
    pub(crate) fn begin<M: Machine>(&mut self, core: &mut Core<M>, reason: &str) {
        if self.stage != Stage::Open {
            return;
        }
        let tasks = core.sched.tasks.alive() as u64;
        let cause = (core.sched.log.cause > 0).then_some(core.sched.log.cause);
        let phase = Phase::Close { reason: reason.into(), tasks, cause };
        announce!(core.sched, KERNEL, Event::Phase(phase));
        self.stage = Stage::Drain;
        let shared = core.sched.shared.clone();
        shared.closing.set(true);
        shared.until_closing.over.set(true);
        for task in core.sched.tasks.newest_first(0).into_iter().rev() {
            if core.sched.gate.records().tasks[task.0].watches_shutdown {
                core.sched.wake_all_of(task);
            }
        }
        core.sched.wake(&shared.until_closing, u64::MAX);
        let (holds, until) = (shared.holds.get(), core.sched.now + core.options.drain);
        self.line = announce!(core.sched, KERNEL, Event::Phase(Phase::Drain { holds, until }));
        core.timers.set_service(ServiceTimer::Phase, until);
    }

    /// Handles the timer at the end of a phase.
    pub(crate) fn end_phase<M: Machine>(&mut self, core: &mut Core<M>, deadline: Time) {
        let timer = if self.stage == Stage::Drain {
            self.over.get_or_insert(After::Limit);
            Timer::Drain
        } else {
            self.overdue = true;
            Timer::Grace
        };
        core.sched.log_fire(timer, deadline, self.line);
    }

    /// Advances the shutdown after a turn in which main did not end. Returns whether main is
    /// overdue: it was cancelled, its grace period is over, and this call has dropped it.
    pub(crate) fn end_main<M: Machine>(&mut self, core: &mut Core<M>, main: TaskIndex) -> bool {
        match self.stage {
            Stage::Drain => {
                let waits_for_main = core.sched.gate.records().tasks[main.0].asked_shutdown;
                if let Some(after) = self.end_of_drain(core, waits_for_main) {
                    self.cancel_all(core, after);
                }
            }
            Stage::Cleanup => self.cancel_newer(core),
            Stage::Open | Stage::Halted => {}
        }
        if self.overdue {
            core.sched.log.cause = emit!(core.sched, main, Event::Drop { why: OVER.into() });
            core.end_task(main, End::Dropped);
        }
        self.overdue
    }

    /// Returns the reason to end the drain after this turn, if there is one.
    pub(crate) fn end_of_drain<M: Machine>(
        &mut self,
        core: &Core<M>,
        waits_for_main: bool,
    ) -> Option<After> {
        let woken_ran = mem::replace(&mut self.woken_ran, true) || core.sched.ready.is_empty();
        let drained = woken_ran && !waits_for_main && Shutdown::is_drained(core);
        let failure = self.failed.then_some(After::Failure);
        self.over.or(failure).or(drained.then_some(After::Drained))
    }

    /// Returns whether no task holds the drain, or no task is left that could release it. A task
    /// that has not run yet may still take a hold.
    fn is_drained<M: Machine>(core: &Core<M>) -> bool {
        let is_new = |task: TaskIndex| core.sched.tasks[task].runs == 0;
        let is_held = core.sched.shared.holds.get() > 0 && core.sched.tasks.alive() > 0;
        !is_held && !core.sched.ready.iter().any(is_new)
    }

    /// Cancels all tasks, newest first, and starts the grace period.
    pub(crate) fn cancel_all<M: Machine>(&mut self, core: &mut Core<M>, after: After) {
        let tasks = core.sched.tasks.alive() as u64;
        // If no task is left that could drop a hold, nothing is cut off.
        if after != After::Drained {
            self.cut_off = core.sched.shared.holds.get();
        }
        self.line = announce!(core.sched, KERNEL, Event::Phase(Phase::Cancel { tasks, after }));
        self.stage = Stage::Cleanup;
        self.until = core.sched.now + core.options.grace;
        core.timers.set_service(ServiceTimer::Phase, self.until);
        self.cancel_newer(core);
        let (tasks, until) = (core.sched.tasks.alive() as u64, self.until);
        announce!(core.sched, KERNEL, Event::Phase(Phase::Cleanup { tasks, until }));
    }

    /// Cancels the tasks made since the last call, because a task may spawn others during the
    /// cleanup.
    pub(crate) fn cancel_newer<M: Machine>(&mut self, core: &mut Core<M>) {
        let newest = core.sched.shared.tasks.get();
        let older = mem::replace(&mut self.cancelled, newest);
        if older < newest {
            for task in core.sched.tasks.newest_first(older) {
                if !core.is_cancelled(task) {
                    core.sched.log.cause = self.line;
                    core.cancel_now(task, "shutdown");
                }
            }
        }
    }
}
