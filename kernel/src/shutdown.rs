//! The end of a kernel, phase by phase: gate, drain, cancel, clean-up, halt.
//!
//! Each has its line, and a step that fails does not skip the next. All together take no longer
//! than the drain and one grace.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use traps::protocol::TaskRef;
use traps::shutdown::Closing;
use traps::{Signal, Time};

use crate::emit::{KERNEL, announce, emit, emit_for, quietly};
use crate::kernel::Kernel;
use crate::limits::BLIND_TURNS;
use crate::log;
use crate::machine::Machine;
use crate::options::Error;
use crate::owner::Owner;
use crate::task::{End, State};
use crate::timers::{Class, Rank, TimerId};
use crate::trace::{After, Event, Phase, Seq, Timer};
use crate::turn::Running;

/// Why a future is dropped that would not end.
const OVER: &str = "its_grace_is_over";

/// How far the end has come.
#[derive(Default)]
pub(crate) struct Ending {
    /// What the tasks see of it.
    closing: Rc<Closing>,
    stage: Stage,
    /// What ended the drain, if it did not end by itself.
    over: Option<After>,
    /// The newest task that was cancelled.
    cancelled: u64,
    /// The end of the grace.
    until: Time,
    /// The line of the phase, and the timer that ends it.
    line: Seq,
    pub(crate) timer: Option<TimerId>,
    /// That timer came true.
    rang: bool,
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

/// Makes the kernel's flag that of the thread, while it runs.
pub(crate) struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        Closing::leave();
    }
}

impl<M: Machine> Kernel<M> {
    pub(crate) fn enter_closing(&self) -> Entered {
        self.ending.closing.enter();
        Entered
    }

    /// Whether it has begun, or is over, or the machine has failed.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.ending.stage != Stage::Open || self.ending.failed
    }

    pub(crate) fn has_halted(&self) -> bool {
        self.ending.stage == Stage::Halted
    }

    /// One of the signals that shut the kernel down: the first begins it, another ends the drain.
    pub(crate) fn shut_down_at(&mut self, signal: Signal) {
        match self.ending.stage {
            Stage::Open => self.begin_shutdown(&signal.to_string(), 0),
            Stage::Drain => self.ending.over = self.ending.over.or(Some(After::Signal)),
            Stage::Cleanup | Stage::Halted => {}
        }
    }

    /// Phase gate, and the beginning of the drain. Once: a second call does nothing. `cause` is the
    /// line behind it, 0 if it came from outside.
    pub(crate) fn begin_shutdown(&mut self, reason: &str, cause: Seq) {
        if self.ending.stage != Stage::Open {
            return;
        }
        let tasks = self.tasks.alive as u64;
        let cause = (cause > 0).then_some(cause);
        let phase = Phase::Gate { reason: reason.into(), tasks, cause };
        announce!(self, KERNEL, Event::Phase(phase));
        let gate = self.log.seq;
        self.ending.stage = Stage::Drain;
        let closing = self.ending.closing.clone();
        for watcher in closing.begin() {
            match watcher.waker {
                Some(waker) => quietly(|| waker.wake()),
                None => self.wake_task(watcher.task, gate),
            }
        }
        self.wake_in_time(closing.line(), gate);
        let (holds, until) = (closing.holds(), self.log.now + self.options.drain);
        announce!(self, KERNEL, Event::Phase(Phase::Drain { holds, until }));
        self.set_phase_timer(until);
    }

    /// The line that was just made begins a phase that lasts until then at most.
    fn set_phase_timer(&mut self, until: Time) {
        self.forget_phase_timer();
        self.ending.line = self.log.seq;
        let rank = || Rank { class: Class::Phase, seq: 0 };
        self.ending.timer = Some(self.timers.arm(until, Owner::PHASE, self.log.now, rank));
    }

    fn forget_phase_timer(&mut self) {
        self.ending.rang = false;
        if let Some(timer) = self.ending.timer.take() {
            self.timers.disarm(timer);
        }
    }

    /// The timer of the phase came true.
    pub(crate) fn end_phase(&mut self, deadline: Time) {
        let timer = match self.ending.stage {
            Stage::Drain => Timer::Drain,
            Stage::Open | Stage::Cleanup | Stage::Halted => Timer::Grace,
        };
        let event = Event::Fire { timer, deadline, cause: self.ending.line };
        emit_for!(self, KERNEL, event, log::late(deadline, self.log.now));
        self.ending.rang = true;
    }

    /// After a turn in which main did not end. True: main is cancelled, and its grace is over.
    pub(crate) fn end_main(&mut self, main: u32) -> bool {
        match self.drain_was_ended() {
            Some(after) => self.cancel_phase(after),
            None if self.ending.stage == Stage::Cleanup => self.cancel_newer(),
            None => {}
        }
        let overdue = self.ending.stage == Stage::Cleanup && self.ending.rang;
        if overdue {
            let seq = emit!(self, main, Event::Drop { what: OVER.into() });
            self.end_task(main, End::Dropped, seq);
        }
        overdue
    }

    /// Why the drain ends although somebody may still hold it.
    fn drain_was_ended(&self) -> Option<After> {
        let limit = self.ending.rang.then_some(After::Limit);
        self.ending.over.or(limit).filter(|_| self.ending.stage == Stage::Drain)
    }

    /// Nobody holds the drain, or nobody is left who could let go; and who has not run yet has
    /// nothing to say.
    fn is_drained(&self) -> bool {
        let is_new = |task: u32| self.tasks.try_get(task).is_some_and(|task| task.cycles == 0);
        let held = self.ending.closing.holds() > 0 && self.tasks.alive > 0;
        !held && !self.ready.iter().any(is_new)
    }

    /// Cancels all that is left, newest first, and starts the grace.
    fn cancel_phase(&mut self, after: After) {
        let tasks = self.tasks.alive as u64;
        announce!(self, KERNEL, Event::Phase(Phase::Cancel { tasks, after }));
        self.ending.stage = Stage::Cleanup;
        self.ending.until = self.log.now + self.options.grace;
        self.set_phase_timer(self.ending.until);
        self.cancel_newer();
        let (tasks, until) = (self.tasks.alive as u64, self.ending.until);
        announce!(self, KERNEL, Event::Phase(Phase::Cleanup { tasks, until }));
    }

    /// Cancels those that are new since the last time: clean-up may spawn.
    fn cancel_newer(&mut self) {
        let newest = self.tasks.last();
        let older = std::mem::replace(&mut self.ending.cancelled, newest);
        if older < newest {
            for task in self.tasks.newest_first(older) {
                if self.tasks.get(task).cancel().is_none() {
                    self.cancel_task(task, None, "shutdown", self.ending.line);
                }
            }
        }
    }

    /// See [`Kernel::shutdown`]. Goes on with what a run has begun.
    pub(crate) fn shut_down(&mut self, reason: &str) -> Result<(), Error> {
        let _running = Running::enter(&self.gate, self.epoch, self.scopes.table());
        let _closing = self.enter_closing();
        self.look();
        self.log.now = self.machine.now();
        self.serve_between_runs();
        // Main ended a turn early; there is none now.
        self.main_ended = false;
        let mut failed = Ok(());
        let idle = self.tasks.alive == 0 && self.ending.closing.holds() == 0;
        if idle && self.ending.stage == Stage::Open {
            // Phases that wait for nothing have no lines.
            drop(self.ending.closing.begin());
            self.ending.stage = Stage::Cleanup;
            self.ending.until = self.log.now + self.options.grace;
        } else {
            self.begin_shutdown(reason, 0);
            failed = self.drain();
            let cleaned = self.clean_up();
            failed = failed.and(cleaned);
        }
        self.halt();
        failed
    }

    fn drain(&mut self) -> Result<(), Error> {
        let mut nobody = |_: &mut Context<'_>| Poll::Pending;
        // Who was woken at the gate, or is new, may want to hold it.
        self.serve();
        let mut unheard = !self.ready.is_empty();
        while self.ending.stage == Stage::Drain {
            let drained = (!unheard && self.is_drained()).then_some(After::Drained);
            if let Some(after) = self.drain_was_ended().or(drained) {
                self.cancel_phase(after);
            } else if let Err(error) = self.turn(&mut nobody) {
                self.cancel_phase(After::Failure);
                return Err(error);
            }
            unheard = false;
        }
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), Error> {
        let mut nobody = |_: &mut Context<'_>| Poll::Pending;
        let mut ended = Ok(());
        loop {
            self.cancel_newer();
            if self.tasks.alive == 0 || self.ending.rang {
                break;
            }
            if let Err(error) = self.turn(&mut nobody) {
                ended = Err(error);
                self.clean_up_blindly();
                break;
            }
        }
        self.forget_phase_timer();
        self.drop_all();
        ended
    }

    /// The machine has failed: what needs nothing of it still runs.
    fn clean_up_blindly(&mut self) {
        let mut nobody = |_: &mut Context<'_>| Poll::Pending;
        for _ in 0..BLIND_TURNS {
            if self.ready.is_empty() && self.wakes.is_empty() {
                break;
            }
            self.log.turn += 1;
            self.run_wakeup();
            self.serve();
            self.run_ready(&mut nobody);
            self.cancel_newer();
        }
    }

    /// Waits for the threads with what is left of the grace, and says what is left.
    fn halt(&mut self) {
        self.ending.stage = Stage::Halted;
        self.log.now = self.machine.now();
        // Whoever asks for something from now on is told at once, and not when the wait is over: it
        // may be a job that is waited for.
        self.wakes.seal();
        self.run_wakeup();
        for (job, parcel) in self.pool.close() {
            self.drop_unbegun(job, parcel);
        }
        self.serve();
        let threads = self.workers.counts.on_threads > 0;
        let left = if threads { self.ending.until.since(self.log.now) } else { Duration::ZERO };
        self.pool.wait_for_workers(left);
        self.log.now = self.machine.now();
        self.run_wakeup();
        self.serve();
        self.drop_scripted_jobs();
        let threads = self.workers.counts.on_threads as u64;
        if threads > 0 {
            let jobs: Vec<String> =
                self.workers.all().iter().map(|job| format!("o{}", job.number)).collect();
            let text = format!("left alone, for their grace is over: {}", jobs.join(" "));
            announce!(self, KERNEL, Event::Warn { text: text.into() });
        }
        let counters = self.counters();
        announce!(
            self,
            KERNEL,
            Event::Halt {
                tasks: counters.tasks as u64,
                tickets: counters.tickets as u64,
                timers: counters.timers as u64,
                handles: counters.registered as u64,
                threads,
            }
        );
    }

    /// Ends a task whose grace is over by dropping its future, wherever that stands. A task that
    /// runs cannot be taken from under itself, and stays.
    pub(crate) fn drop_task(&mut self, task: TaskRef) {
        let Some(task) = self.tasks.find(task) else { return };
        if matches!(self.tasks.get(task).state, State::Ready | State::Parked) {
            let seq = emit!(self, task, Event::Drop { what: OVER.into() });
            // What its parts post is heeded after what was posted before.
            self.drop_body(task);
            self.end_task(task, End::Dropped, seq);
        }
    }

    fn drop_all(&mut self) {
        let left = self.tasks.newest_first(0);
        if !left.is_empty() {
            let tasks = left.len() as u64;
            announce!(self, KERNEL, Event::Phase(Phase::Drop { tasks }));
        }
        for task in left {
            let seq = emit!(self, task, Event::Drop { what: OVER.into() });
            self.drop_future(task);
            self.end_task(task, End::Dropped, seq);
        }
    }
}
