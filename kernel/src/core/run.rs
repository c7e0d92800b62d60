//! How one task runs: it is polled and answered until it parks or ends.
//!
//! The only file that polls a task. `table.rs` says what each trap does.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::{Context, Poll};

use traps::core::gate::Filed;
use traps::core::kernel_side::is_running;
use traps::core::protocol::{End, Post, Reply};
use traps::core::records::{On, WaitState};

use super::handles::Policy;
use super::tasks::State;
use super::wakers::SpareWaker;
use super::{Core, MainPoll, Services};
use crate::log::emit;
use crate::machine::Machine;
use crate::trace::{Event, Op, Seq, Timed, Why};

/// Step 5 of a turn.
impl<M: Machine> Core<M> {
    /// Runs each task that is ready *now* once. Tasks that become ready meanwhile wait for the next
    /// turn, so that no chain of wakes can starve I/O.
    pub(super) fn run_ready(&mut self, services: &mut impl Services<M>, main: MainPoll<'_>) {
        self.ready.begin_turn();
        self.machine.order(&mut self.ready.now);
        loop {
            // One `catch_unwind` for the whole turn is cheaper than one for each poll.
            let ran = catch_unwind(AssertUnwindSafe(|| self.run_until_panic(services, main)));
            let Err(panic) = ran else { return };
            if !mem::take(&mut self.run.is_polling) {
                // Not the panic of a task: a rule of the kernel was broken, or an observer failed.
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
            self.run.has_ended = polled.is_ready();
            if polled.is_ready() {
                self.gate.end();
            }
            self.serve(services);
            if polled.is_ready() {
                return self.end_task(index, End::Output, self.run_line(index));
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

    /// Notes the start of a run for a log.
    #[cold]
    fn begin_watched_run(&mut self, index: u32) {
        if self.log.timed {
            self.now = self.machine.now();
            self.run.since = self.now;
        }
        if self.log.listening {
            self.log_run(index);
        }
    }

    /// Ends a run: its task has left the CPU, or has ended.
    #[inline]
    fn end_run(&mut self, services: &mut impl Services<M>) {
        self.run.task = None;
        if self.run.is_watched {
            services.run_ends();
        }
        // A waker that was called as the task left the CPU may have posted.
        self.serve(services);
    }

    /// The `run` line.
    fn log_run(&mut self, index: u32) {
        let rare = self.tasks[index].rare();
        let (cause, left, mut answered) = (rare.cause, rare.left, mem::take(&mut rare.answered));
        let waited = self.now.since(self.tasks[index].since);
        let timed = Some(Timed { waited: Some(waited), ..Timed::default() });
        let parked = left.map(|left| self.now.since(left));
        let event = Event::Run { cause, parked, answered: answered[..].into() };
        let run = emit!(self, index, event, timed);
        answered.clear();
        let rare = self.tasks[index].rare();
        (rare.cause, rare.answered) = (run, answered);
    }

    /// The `run` line of the task that runs.
    pub(crate) fn run_line(&self, index: u32) -> Seq {
        self.tasks[index].rare.as_ref().map_or(0, |rare| rare.cause)
    }

    /// How long a task has had the CPU, for a timed trace; `None` for a task that does not run.
    pub(crate) fn ran(&mut self, index: u32) -> Option<Timed> {
        if !self.log.timed || self.run.task != Some(index) {
            return None;
        }
        self.now = self.machine.now();
        let ran = self.now.since(self.run.since);
        Some(Timed { ran: Some(ran), ..Timed::default() })
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

    /// The poll kept the spare waker, so it belongs to this task from now on.
    #[cold]
    fn adopt_spare(&mut self, index: u32) {
        let kept = mem::replace(&mut self.spare, SpareWaker::new(&self.inbox));
        self.tasks[index].rare().waker = Some(kept);
    }

    // ---- What a poll has filed -------------------------------------------------------------

    /// Serves everything that is filed at the gate, in order. Usually that is one trap.
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
        // A kernel that is dropped in a task of another one has no posts here.
        if is_running(self.shared.epoch) {
            for filed in self.gate.take() {
                if let Filed::Post(post) = filed {
                    self.handle_post(services, post);
                }
            }
        }
    }

    /// Ends a run in which an observer has panicked: the task is polled again, unless it has ended.
    /// Main is not: its future is gone.
    pub(crate) fn abort_run(&mut self) {
        if let Some(index) = self.run.task.take() {
            self.run.yields.clear();
            if self.tasks.state(index) == Some(State::Running) {
                self.tasks[index].state = State::Parked;
                let cause = self.log.seq.max(1);
                if !self.run.has_ended {
                    // Its reply may lie at the gate.
                    self.wake_by_waker(index, cause);
                } else if !self.tasks.is_main(index) {
                    self.end_task(index, End::Output, cause);
                }
            }
        }
        if let Some(main) = self.tasks.main() {
            let seq = emit!(self, main, Event::Drop { what: "its_run_failed".into() });
            self.end_task(main, End::Dropped, seq);
        }
    }

    // ---- Leaving the CPU -------------------------------------------------------------------

    /// Parks a task that leaves the CPU. False if it has a reply and is to be polled again.
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

    /// Handles the less common cases: the task has no `block` line, was woken while it ran, or has
    /// a policy that acts when it parks.
    #[cold]
    fn suspend_unusually(&mut self, index: u32, parked: bool) {
        let woken = mem::take(&mut self.run.woken);
        if !parked && self.log.listening {
            // It parks on several waits, on those that it had before, or on wakers.
            let tickets = self.parked(index, |_, _, _| ()).len() as u64;
            let op = if tickets == 0 { Op::Waker } else { Op::Parked { tickets } };
            let ran = self.ran(index);
            emit!(self, index, Event::Block { op, ticket: None, reg: None, at: None }, ran);
        }
        if self.options.policy == Policy::NextSleep {
            self.undefer(index, Why::Suspend);
        }
        if woken {
            self.wake_by_waker(index, self.run_line(index));
        }
    }

    /// The task has left the CPU: the waits that waited for this end.
    fn end_yields(&mut self) {
        let mut yields = mem::take(&mut self.run.yields);
        for ticket in yields.drain(..) {
            let records = self.gate.records();
            let Some(wait) = records.waits.get(ticket) else { continue };
            let reply = match wait.state {
                WaitState::Parked(On::Yield { zero: true }) => Reply::Time(self.now),
                WaitState::Parked(On::Yield { zero: false }) => Reply::Done,
                _ => continue,
            };
            drop(records);
            let line = if self.log.listening { self.log.number_of(ticket).1 } else { 0 };
            self.complete(ticket, reply, line);
        }
        self.run.yields = yields;
    }
}

/// Whether what is filed makes no line of the task that filed it, or none before it is parked.
fn is_quiet(filed: &Filed) -> bool {
    matches!(filed, Filed::Post(Post::Set(_) | Post::Woken(_) | Post::Service(_)))
}
