//! The end of a kernel, phase by phase: close, drain, cancel, cleanup, halt.
//!
//! Each phase has its line, and a phase that fails does not skip the next. All together take no
//! longer than the drain and one grace.

use std::task::{Context, Poll};
use std::time::Duration;

use traps::{Signal, Time};

use crate::kernel::Kernel;
use crate::log::{KERNEL, announce, emit};
use crate::machine::Machine;
use crate::options::Error;
use crate::task::End;
use crate::timers::{Owner, TimerId};
use crate::trace::{After, Event, Phase, Seq, Timer};

/// Why a future is dropped that would not end.
pub(crate) const OVER: &str = "its_grace_is_over";

/// How far the shutdown has come.
#[derive(Default)]
pub(crate) struct Ending {
    stage: Stage,
    /// Why the drain is to end although a task may still hold it.
    over: Option<After>,
    /// The newest task that was cancelled.
    cancelled: u64,
    /// The end of the grace.
    until: Time,
    /// The line of the phase, and the timer that ends it.
    line: Seq,
    pub(crate) timer: Option<TimerId>,
    /// The grace is over.
    overdue: bool,
    /// The machine below has failed: there is no further run.
    pub(crate) failed: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// It has not begun.
    #[default]
    Open,
    /// Until all holds are dropped, and until main has ended.
    Drain,
    /// Until all tasks have ended.
    Cleanup,
    Halted,
}

/// In a shutdown there is no main to poll.
fn nobody(_: &mut Context<'_>) -> Poll<()> {
    Poll::Pending
}

/// How a shutdown begins, and what it does during a run.
impl<M: Machine> Kernel<M> {
    /// Whether a shutdown has begun or the machine has failed: no new run begins.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.ending.stage != Stage::Open || self.ending.failed
    }

    pub(crate) fn has_halted(&self) -> bool {
        self.ending.stage == Stage::Halted
    }

    /// One of the signals that shut the kernel down has arrived: the first begins the shutdown,
    /// another ends the drain.
    pub(crate) fn shut_down_by(&mut self, signal: Signal, cause: Seq) {
        match self.ending.stage {
            Stage::Open => self.begin_shutdown(&signal.to_string(), cause),
            Stage::Drain => self.ending.over = self.ending.over.or(Some(After::Signal)),
            Stage::Cleanup | Stage::Halted => {}
        }
    }

    /// Phase close, and the beginning of the drain. A second call does nothing. `cause` is the line
    /// that caused it, 0 if the owner did.
    pub(crate) fn begin_shutdown(&mut self, reason: &str, cause: Seq) {
        if self.ending.stage != Stage::Open {
            return;
        }
        let tasks = self.tasks.alive as u64;
        let cause = (cause > 0).then_some(cause);
        let phase = Phase::Close { reason: reason.into(), tasks, cause };
        let close = announce!(self, KERNEL, Event::Phase(phase));
        self.ending.stage = Stage::Drain;
        let shared = self.shared.clone();
        shared.closing.begin();
        for task in self.tasks.newest_first(0).into_iter().rev() {
            if self.tasks[task].watches_shutdown {
                self.call_all_wakers(task);
                self.wake_task(self.tasks.name_of(task), close);
            }
        }
        self.wake_queue(shared.closing.line(), u64::MAX, close);
        let (holds, until) = (shared.closing.holds(), self.log.now + self.options.drain);
        self.ending.line = announce!(self, KERNEL, Event::Phase(Phase::Drain { holds, until }));
        self.set_phase_timer(until);
    }

    fn set_phase_timer(&mut self, until: Time) {
        self.forget_phase_timer();
        self.ending.timer = Some(self.timers.set(until, Owner::Phase, 0));
    }

    fn forget_phase_timer(&mut self) {
        if let Some(timer) = self.ending.timer.take() {
            self.timers.cancel(timer);
        }
    }

    /// The timer of the phase fires.
    pub(crate) fn end_phase(&mut self, deadline: Time) {
        self.ending.timer = None;
        let timer = if self.ending.stage == Stage::Drain {
            self.ending.over.get_or_insert(After::Limit);
            Timer::Drain
        } else {
            self.ending.overdue = true;
            Timer::Grace
        };
        self.log_fire(timer, deadline, self.ending.line);
    }

    /// After a turn in which main did not end. True: main was cancelled, and its grace is over.
    pub(crate) fn end_main(&mut self, main: u32) -> bool {
        match (self.ending.stage, self.ending.over) {
            (Stage::Drain, Some(after)) => self.cancel_phase(after),
            (Stage::Cleanup, _) => self.cancel_newer(),
            _ => {}
        }
        if self.ending.overdue {
            let seq = emit!(self, main, Event::Drop { what: OVER.into() });
            self.end_task(main, End::Dropped, seq);
        }
        self.ending.overdue
    }

    /// Whether no task holds the drain, or none is left that could release it. A task that has not
    /// run yet may still take a hold.
    fn is_drained(&self) -> bool {
        let is_new = |task: u32| self.tasks[task].runs == 0;
        let is_held = self.shared.closing.holds() > 0 && self.tasks.alive > 0;
        !is_held && !self.ready.iter().any(is_new)
    }

    /// Cancels all tasks, newest first, and starts the grace.
    fn cancel_phase(&mut self, after: After) {
        let tasks = self.tasks.alive as u64;
        self.ending.line = announce!(self, KERNEL, Event::Phase(Phase::Cancel { tasks, after }));
        self.ending.stage = Stage::Cleanup;
        self.ending.until = self.log.now + self.options.grace;
        self.set_phase_timer(self.ending.until);
        self.cancel_newer();
        let (tasks, until) = (self.tasks.alive as u64, self.ending.until);
        announce!(self, KERNEL, Event::Phase(Phase::Cleanup { tasks, until }));
    }

    /// Cancels the tasks that were made since the last call: clean-up may spawn.
    fn cancel_newer(&mut self) {
        let newest = self.shared.tasks.get();
        let older = std::mem::replace(&mut self.ending.cancelled, newest);
        if older < newest {
            for task in self.tasks.newest_first(older) {
                if self.tasks[task].cancel().is_none() {
                    self.cancel_task(task, None, "shutdown", self.ending.line);
                }
            }
        }
    }
}

/// The shutdown itself.
impl<M: Machine> Kernel<M> {
    /// See [`Kernel::shutdown`]. Goes on with what a run has begun.
    pub(crate) fn shut_down(&mut self, reason: &str) -> Result<(), Error> {
        self.look();
        self.log.now = self.machine.now();
        self.serve_between_runs();
        self.main_ended = false;
        let mut ended = Ok(());
        let is_idle = self.tasks.alive == 0 && self.shared.closing.holds() == 0;
        if is_idle && self.ending.stage == Stage::Open {
            // Phases that wait for nothing have no lines.
            self.shared.closing.begin();
            self.ending.until = self.log.now + self.options.grace;
        } else {
            self.begin_shutdown(reason, 0);
            ended = self.drain();
            let cleaned = self.clean_up();
            ended = ended.and(cleaned);
        }
        self.halt();
        ended
    }

    fn drain(&mut self) -> Result<(), Error> {
        // A task that the shutdown has woken, or a new one, may want to hold it.
        self.serve();
        let mut is_heard = self.ready.is_empty();
        while self.ending.stage == Stage::Drain {
            let drained = (is_heard && self.is_drained()).then_some(After::Drained);
            let failure = self.ending.failed.then_some(After::Failure);
            if let Some(after) = self.ending.over.or(failure).or(drained) {
                self.cancel_phase(after);
            } else if let Err(error) = self.turn(&mut nobody) {
                self.cancel_phase(After::Failure);
                return Err(error);
            }
            is_heard = true;
        }
        Ok(())
    }

    /// Runs the tasks until they have ended, and drops those that are left when the grace is over.
    /// If the machine fails, they are dropped at once.
    fn clean_up(&mut self) -> Result<(), Error> {
        let mut ended = Ok(());
        self.cancel_newer();
        while ended.is_ok() && self.tasks.alive > 0 && !self.ending.overdue && !self.ending.failed {
            ended = self.turn(&mut nobody);
            self.cancel_newer();
        }
        self.forget_phase_timer();
        if self.tasks.alive > 0 {
            let tasks = self.tasks.alive as u64;
            announce!(self, KERNEL, Event::Phase(Phase::Drop { tasks }));
            self.drop_tasks(if self.ending.failed { "the_machine_has_failed" } else { OVER });
        }
        ended
    }

    /// Waits for the worker threads for the rest of the grace, and reports what is left.
    fn halt(&mut self) {
        self.ending.stage = Stage::Halted;
        self.log.now = self.machine.now();
        // Other threads are refused at once, not when the wait is over: one of them may run a job
        // that is waited for.
        self.inbox.queue.seal();
        self.run_wakeup();
        self.drop_queued_jobs();
        self.serve();
        let on_threads = self.jobs.tokens.on_threads > 0;
        let left = if on_threads { self.ending.until.since(self.log.now) } else { Duration::ZERO };
        self.jobs.pool.wait_for_workers(left);
        self.log.now = self.machine.now();
        self.run_wakeup();
        self.serve();
        let threads = self.jobs.tokens.on_threads as u64;
        if threads > 0 {
            let jobs: Vec<String> =
                self.jobs().iter().map(|job| format!("o{}", job.number)).collect();
            let text = format!("left alone, for their grace is over: {}", jobs.join(" "));
            announce!(self, KERNEL, Event::Warn { text: text.into() });
        }
        let counters = self.counters();
        let event = Event::Halt {
            tasks: counters.tasks as u64,
            tickets: counters.tickets as u64,
            timers: counters.timers as u64,
            handles: counters.registered as u64,
            threads,
        };
        announce!(self, KERNEL, event);
    }
}
