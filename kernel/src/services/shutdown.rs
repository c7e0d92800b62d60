//! The state of a shutdown: how far it is, and what begins and ends its phases during a turn.
//!
//! Close, drain, cancel, cleanup, halt: each phase has its line. The kernel goes through them in
//! `phases.rs`.

use std::mem;

use traps::core::protocol::End;
use traps::{Signal, Time};

use crate::core::Core;
use crate::core::posts::OVER;
use crate::core::timers::{Owner, Service, TimerId};
use crate::log::{KERNEL, announce, emit};
use crate::machine::Machine;
use crate::trace::{After, Event, Phase, Seq, Timer};

/// How far the shutdown has come.
#[derive(Default)]
pub(crate) struct Shutdown {
    pub(crate) stage: Stage,
    /// Why the drain is to end although a task may still hold it.
    pub(crate) over: Option<After>,
    /// The newest task that was cancelled.
    cancelled: u64,
    /// The end of the grace.
    pub(crate) until: Time,
    /// The line of the phase, and the timer that ends it.
    line: Seq,
    pub(crate) timer: Option<TimerId>,
    /// The grace is over.
    pub(crate) overdue: bool,
    /// The machine below has failed: there is no further run.
    pub(crate) failed: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not begun.
    #[default]
    Open,
    /// Until all holds are dropped, and until main has ended.
    Drain,
    /// Until all tasks have ended.
    Cleanup,
    Halted,
}

impl Shutdown {
    /// Whether a shutdown has begun or the machine has failed: no new run begins.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.stage != Stage::Open || self.failed
    }

    /// One of the signals that shut the kernel down has arrived: the first begins the shutdown,
    /// another ends the drain.
    pub(crate) fn signal<M: Machine>(&mut self, core: &mut Core<M>, signal: Signal, cause: Seq) {
        match self.stage {
            Stage::Open => self.begin(core, &signal.to_string(), cause),
            Stage::Drain => self.over = self.over.or(Some(After::Signal)),
            Stage::Cleanup | Stage::Halted => {}
        }
    }

    /// Phase close, and the beginning of the drain. A second call does nothing. `cause` is the line
    /// that caused it, 0 if the owner did.
    pub(crate) fn begin<M: Machine>(&mut self, core: &mut Core<M>, reason: &str, cause: Seq) {
        if self.stage != Stage::Open {
            return;
        }
        let tasks = core.tasks.alive() as u64;
        let cause = (cause > 0).then_some(cause);
        let phase = Phase::Close { reason: reason.into(), tasks, cause };
        let close = announce!(core, KERNEL, Event::Phase(phase));
        self.stage = Stage::Drain;
        let shared = core.shared.clone();
        shared.closing.set(true);
        shared.until_closing.over.set(true);
        for task in core.tasks.newest_first(0).into_iter().rev() {
            let root = core.tasks[task].root;
            if core.gate.records().scopes[root.index].watches_shutdown {
                core.poll_again(task, close);
            }
        }
        core.wake(&shared.until_closing, u64::MAX, close);
        let (holds, until) = (shared.holds.get(), core.now + core.options.drain);
        self.line = announce!(core, KERNEL, Event::Phase(Phase::Drain { holds, until }));
        self.set_timer(core, until);
    }

    fn set_timer<M: Machine>(&mut self, core: &mut Core<M>, until: Time) {
        self.forget_timer(core);
        self.timer = Some(core.timers.set(until, Owner::Service(Service::Phase), 0));
    }

    pub(crate) fn forget_timer<M: Machine>(&mut self, core: &mut Core<M>) {
        if let Some(timer) = self.timer.take() {
            core.timers.cancel(timer);
        }
    }

    /// The timer of the phase fires.
    pub(crate) fn end_phase<M: Machine>(&mut self, core: &mut Core<M>, deadline: Time) {
        self.timer = None;
        let timer = if self.stage == Stage::Drain {
            self.over.get_or_insert(After::Limit);
            Timer::Drain
        } else {
            self.overdue = true;
            Timer::Grace
        };
        core.log_fire(timer, deadline, self.line);
    }

    /// After a turn in which main did not end. True: main was cancelled, and its grace is over.
    pub(crate) fn end_main<M: Machine>(&mut self, core: &mut Core<M>, main: u32) -> bool {
        match (self.stage, self.over) {
            (Stage::Drain, Some(after)) => self.cancel_all(core, after),
            (Stage::Cleanup, _) => self.cancel_newer(core),
            _ => {}
        }
        if self.overdue {
            let seq = emit!(core, main, Event::Drop { what: OVER.into() });
            core.end_task(main, End::Dropped, seq);
        }
        self.overdue
    }

    /// Whether no task holds the drain, or none is left that could release it. A task that has not
    /// run yet may still take a hold.
    pub(crate) fn is_drained<M: Machine>(core: &Core<M>) -> bool {
        let is_new = |task: u32| core.tasks[task].runs == 0;
        let is_held = core.shared.holds.get() > 0 && core.tasks.alive() > 0;
        !is_held && !core.ready.iter().any(is_new)
    }

    /// Cancels all tasks, newest first, and starts the grace.
    pub(crate) fn cancel_all<M: Machine>(&mut self, core: &mut Core<M>, after: After) {
        let tasks = core.tasks.alive() as u64;
        self.line = announce!(core, KERNEL, Event::Phase(Phase::Cancel { tasks, after }));
        self.stage = Stage::Cleanup;
        self.until = core.now + core.options.grace;
        self.set_timer(core, self.until);
        self.cancel_newer(core);
        let (tasks, until) = (core.tasks.alive() as u64, self.until);
        announce!(core, KERNEL, Event::Phase(Phase::Cleanup { tasks, until }));
    }

    /// Cancels the tasks that were made since the last call: clean-up may spawn.
    pub(crate) fn cancel_newer<M: Machine>(&mut self, core: &mut Core<M>) {
        let newest = core.shared.tasks.get();
        let older = mem::replace(&mut self.cancelled, newest);
        if older < newest {
            for task in core.tasks.newest_first(older) {
                if !core.is_cancelled(task) {
                    core.cancel(task, None, "shutdown", self.line);
                }
            }
        }
    }
}
