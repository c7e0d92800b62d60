//! The run of one task: the kernel polls it and serves what it has filed, until it parks or ends.
//!
//! This is the only file that polls a task. One *run* is a loop:
//!
//! 1. Poll the task's future ([`Core::poll`]).
//! 2. Serve what the poll has filed, in program order: traps go to the trap table (`dispatch.rs`),
//!    posts to their handlers. Usually that is one trap.
//! 3. If a trap was answered at once, poll the task again. If the future was ready, end the task.
//!    Otherwise the task has nothing to do until something wakes it, and leaves the CPU
//!    ([`Core::suspend`]).
//!
//! For example, a task that reads the clock and sleeps has one run of two polls. The first files
//! `Clock`, which is answered. The second reads that reply and files `Sleep`, which parks, and the
//! task leaves the CPU.
//!
//! The invariant: while a task runs, its state is `Running`, and nothing else polls it. A wake in
//! the meantime only sets a flag. The kernel looks at the flag when the task leaves the CPU, so no
//! wake is lost.
//!
//! A panic of a task ends the task and not the kernel. One `catch_unwind` goes around all runs of a
//! turn, because it costs more than a poll. After a panic the loop continues with the next task.
//! The flag `is_polling` distinguishes a panic of a task from a panic of an observer or of the
//! kernel itself, which ends the run.
//!
//! The waker of a poll costs nothing until it is cloned: tasks are polled with one spare waker, and
//! a spare that a poll has cloned becomes that task's own ([`Core::adopt_spare`]). The obvious way,
//! an `Arc` for each task, pays for a waker that most tasks never use.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::{Context, Poll};

use traps::Time;
use traps::internal::gate::Filed;
use traps::internal::protocol::{End, Post, Reply};
use traps::internal::table::{Site, Ticket};
use traps::tape::{self, Mode};

use super::tasks::State;
use super::{Core, MainPoll, Services};
use crate::log::emit;
use crate::machine::Machine;
use crate::options::Policy;
use crate::parts::wakes::SpareWaker;
use crate::trace::{Event, Op, Why};

/// The state of a run: fields that only the task on the CPU needs.
#[derive(Default)]
pub(crate) struct Run {
    /// The index of the task that runs. `None` between two runs.
    pub(crate) task: Option<u32>,
    /// The time at which the task got the CPU, by the last reading of the clock.
    pub(crate) since: Time,
    /// The log's word for the wait from which the task returns, and the call site of the wait.
    pub(crate) from: (&'static str, Option<Site>),
    /// Whether the task must be polled again before it can leave the CPU.
    pub(crate) again: bool,
    /// Whether the task's own waker was called during the run. The task then goes to the end of the
    /// ready queue.
    pub(crate) woken: bool,
    /// Whether the task has parked a wait. While a log is written: whether its `block` line was
    /// written.
    pub(crate) parked: bool,
    /// Whether the poll has filed more after the trap that is being dispatched. For the log, so
    /// entries that are quiet (`is_quiet`) do not count.
    pub(crate) goes_on: bool,
    /// The waits that end when the task leaves the CPU, each with whether it is a sleep.
    pub(crate) yields: Vec<(Ticket, bool)>,
    /// Whether the task's future is being polled, so that a panic belongs to the task.
    pub(super) is_polling: bool,
    /// Whether each run is watched: by a log, a hook or the watchdog.
    pub(crate) is_watched: bool,
}

/// The runs of a turn (step 5).
impl<M: Machine> Core<M> {
    /// Runs each task that is ready *now* once. A task that becomes ready in the meantime waits for
    /// the next turn, so that no chain of wakes can starve I/O.
    pub(super) fn run_ready(&mut self, services: &mut impl Services<M>, main: MainPoll<'_>) {
        self.ready.begin_turn();
        self.machine.order(&mut self.ready.now);
        loop {
            // One `catch_unwind` for the whole turn is cheaper than one for each poll.
            let ran = catch_unwind(AssertUnwindSafe(|| self.run_until_panic(services, main)));
            let Err(panic) = ran else { return };
            let is_over = M::IS_TAPED && tape::mode() == Mode::Stopped;
            if !mem::take(&mut self.run.is_polling) || is_over {
                // This is no panic of a task: a rule of the kernel was broken, an observer failed,
                // or a replay has stopped.
                resume_unwind(panic);
            }
            self.end_by_panic(services, panic);
            self.end_run(services);
        }
    }

    fn run_until_panic(&mut self, services: &mut impl Services<M>, main: MainPoll<'_>) {
        while !self.main_ended
            && let Some(task) = self.ready.take()
        {
            self.run_task(task, services, main);
            self.end_run(services);
        }
    }

    /// Polls one task and answers its traps until it parks or ends.
    #[inline]
    fn run_task(&mut self, index: u32, services: &mut impl Services<M>, main: MainPoll<'_>) {
        self.begin_run(index, services);
        loop {
            let polled = self.poll(index, main);
            // The task may have read the clock.
            self.now = self.now.max(self.gate.now());
            if polled.is_ready() {
                self.gate.end();
                self.gate.drop_traps();
            }
            self.set_new_timers();
            self.serve(services);
            if polled.is_ready() {
                return self.end_task(index, End::Output);
            }
            if self.suspend(index) {
                return;
            }
        }
    }

    /// Gives a ready task the CPU.
    #[inline]
    fn begin_run(&mut self, index: u32, services: &mut impl Services<M>) {
        let task = &mut self.tasks[index];
        debug_assert!(task.state == State::Ready, "the queue holds ready tasks");
        task.state = State::Running;
        task.runs = task.runs.wrapping_add(1);
        let run = &mut self.run;
        (run.task, run.since, run.from) = (Some(index), self.now, task.came);
        (run.again, run.woken, run.parked) = (false, false, false);
        self.gate.set_budget(self.options.budget);
        if self.run.is_watched {
            self.begin_watched_run(index);
            services.run_begins(self, index);
        }
    }

    /// Logs the start of a run, and reads the clock first if the trace is timed.
    #[cold]
    fn begin_watched_run(&mut self, index: u32) {
        if self.log.timed {
            self.now = self.machine.now();
            self.run.since = self.now;
        }
        if self.log.listening {
            self.ready.ran_in = Some(self.turn);
            self.log_run(index);
            self.between_events();
        }
    }

    /// Ends a run, after its task has left the CPU or has ended.
    #[inline]
    fn end_run(&mut self, services: &mut impl Services<M>) {
        self.run.task = None;
        if self.run.is_watched {
            services.run_ends();
        }
        // A waker that was called as the task left the CPU may have posted.
        self.serve(services);
        self.between_events();
    }

    // ---- A poll ----------------------------------------------------------------------------

    /// Polls a task's future once. This is the only poll of a task in the project.
    #[inline]
    fn poll(&mut self, index: u32, main: MainPoll<'_>) -> Poll<()> {
        let task = &mut self.tasks[index];
        self.gate.begin(task.root, index, self.now);
        let own = task.rare.as_ref().and_then(|rare| rare.waker.as_ref()).map(|own| &own.waker);
        let is_spare = own.is_none();
        let waker = own.unwrap_or_else(|| self.spare.lend(task.root));
        self.gate.set_waker(waker);
        let mut cx = Context::from_waker(waker);
        self.run.is_polling = true;
        let polled = match &mut task.body {
            Some(body) => body.as_mut().poll(&mut cx),
            None => main(&mut cx),
        };
        self.run.is_polling = false;
        if is_spare && self.spare.was_kept() {
            self.adopt_spare(index);
        }
        polled
    }

    /// Gives the spare waker to a task whose poll has kept a clone of it.
    #[cold]
    fn adopt_spare(&mut self, index: u32) {
        let kept = mem::replace(&mut self.spare, SpareWaker::new(&self.inbox));
        self.tasks[index].rare().waker = Some(kept);
    }

    // ---- What a poll has filed -------------------------------------------------------------

    /// Handles the traps and posts that are filed at the gate, in order. Usually there is one trap.
    #[inline]
    pub(crate) fn serve(&mut self, services: &mut impl Services<M>) {
        while self.gate.has_filed() {
            match (self.gate.take_only(), self.run.task) {
                (Some(ticket), Some(task)) => self.dispatch(task, ticket),
                // The poll that filed it has panicked.
                (Some(_), None) => {}
                (None, _) => self.serve_list(services),
            }
        }
    }

    #[inline(never)]
    fn serve_list(&mut self, services: &mut impl Services<M>) {
        let mut list = self.gate.take();
        let mut rest = list.drain(..);
        while let Some(filed) = rest.next() {
            match (filed, self.run.task) {
                (Filed::Post(post), _) => self.handle_post(services, post),
                (Filed::Trap(ticket), Some(task)) => {
                    self.run.goes_on = self.log.listening && !rest.as_slice().iter().all(is_quiet);
                    self.dispatch(task, ticket);
                }
                // The poll that filed it has panicked.
                (Filed::Trap(_), None) => {}
            }
        }
        self.run.goes_on = false;
        drop(rest);
        self.gate.give_back(list);
    }

    /// Serves the posts of a poll that has panicked, without its traps.
    pub(super) fn serve_posts(&mut self, services: &mut impl Services<M>) {
        for filed in self.gate.take() {
            if let Filed::Post(post) = filed {
                self.handle_post(services, post);
            }
        }
    }

    // ---- Leaving the CPU -------------------------------------------------------------------

    /// Parks a task that leaves the CPU. Returns `false` if the task has a reply and must be polled
    /// again.
    #[inline]
    fn suspend(&mut self, index: u32) -> bool {
        if mem::take(&mut self.run.again) {
            // The task is polled again at once, which also serves the wake.
            self.run.woken = false;
            return false;
        }
        self.gate.end();
        let task = &mut self.tasks[index];
        task.state = State::Parked;
        task.since = self.now;
        let parked = mem::take(&mut self.run.parked);
        if !parked || self.run.woken || self.options.policy == Policy::NextSleep {
            self.suspend_unusually(index, parked);
        }
        self.measure_run();
        if !self.run.yields.is_empty() {
            self.end_yields();
        }
        true
    }

    /// Finishes the parking of a task in a less common case: the task has no `block` line or was
    /// woken while it ran, or the policy acts when a task parks.
    #[cold]
    fn suspend_unusually(&mut self, index: u32, parked: bool) {
        let woken = mem::take(&mut self.run.woken);
        if !parked && self.log.listening {
            // The task parks on several waits, on waits of earlier runs, or on wakers.
            let tickets = self.parked(index, |_, _| ()).len() as u64;
            let op = if tickets == 0 { Op::Waker } else { Op::Parked { tickets } };
            let ran = self.ran(index);
            self.tasks[index].since = self.now;
            emit!(self, index, Event::Block { op, wait: None }, ran);
        }
        if self.options.policy == Policy::NextSleep {
            self.undefer(index, Why::Suspend);
        }
        if woken {
            self.wake_by_waker(index);
        }
    }

    /// Ends the yields and the sleeps of zero length of the task that leaves the CPU.
    fn end_yields(&mut self) {
        let mut yields = mem::take(&mut self.run.yields);
        for (ticket, is_sleep) in yields.drain(..) {
            let reply = if is_sleep { Reply::Time(self.now) } else { Reply::Done };
            if self.log.listening {
                (_, self.log.cause) = self.log.number_of(ticket);
            }
            self.complete(ticket, reply);
        }
        self.run.yields = yields;
    }
}

/// Returns whether a filed entry writes no log line for its task before the task is parked.
fn is_quiet(filed: &Filed) -> bool {
    matches!(filed, Filed::Post(Post::Woken(_) | Post::Service(_)))
}
