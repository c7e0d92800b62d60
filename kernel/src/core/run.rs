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
//! kernel itself, which ends [`Kernel::run`](crate::Kernel::run).
//!
//! The waker of a poll costs nothing until it is cloned: tasks are polled with one spare waker, and
//! a spare that a poll has cloned becomes that task's own ([`Core::adopt_spare`]). The obvious way,
//! an `Arc` for each task, pays for a waker that most tasks never use.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::{Context, Poll};

use traps::internal::gate::Filed;
use traps::internal::protocol::{End, Post};
use traps::internal::table::TaskIndex;
use traps::internal::tape::{self, Mode};
use traps::internal::{drop_quietly, panic_message};

use super::tasks::TaskState;
use super::{Core, MainPoll, Services};

use crate::log::lines::{announce, emit};
use crate::machine::Machine;
use crate::options::Policy;
use crate::parts::wakers::SpareWaker;
use crate::trace::{Event, Op, Why};

/// The runs of a turn (step 5).
impl<M: Machine> Core<M> {
    /// Runs each task that is ready *now* once. A task that becomes ready in the meantime waits for
    /// the next turn, so that no chain of wakes can starve I/O.
    pub(super) fn run_ready(&mut self, services: &mut impl Services<M>, main: MainPoll<'_>) {
        self.sched.ready.begin_turn();
        // A simulated machine may shuffle the tasks, so that tests find programs that rely on this
        // order.
        self.sched.machine.order(&mut self.sched.ready.this_turn);
        loop {
            // One `catch_unwind` for the whole turn is cheaper than one for each poll.
            let ran = catch_unwind(AssertUnwindSafe(|| self.run_until_panic(services, main)));
            let Err(panic) = ran else { return };
            let is_over = M::IS_TAPED && tape::mode() == Mode::Stopped;
            if !mem::take(&mut self.sched.run.is_polling) || is_over {
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
            && let Some(task) = self.sched.ready.pop()
        {
            self.run_task(task, services, main);
            self.end_run(services);
        }
    }

    /// Polls one task and answers its traps until it parks or ends.
    #[inline]
    fn run_task(&mut self, index: TaskIndex, services: &mut impl Services<M>, main: MainPoll<'_>) {
        self.begin_run(index, services);
        loop {
            let polled = self.poll(index, main);
            // The task may have read the clock.
            self.sched.now = self.sched.now.max(self.sched.gate.now());
            if polled.is_ready() {
                // The body is over, but a future that has filed a trap may live on, in the output
                // for example. No run of this task will read the reply.
                self.sched.gate.end_poll();
                self.sched.gate.drop_traps();
            }
            // A scope that opened in this poll and pends has its deadline on a list at the gate.
            self.timers.set_new(self.sched.gate);
            self.serve(services);
            if polled.is_ready() {
                // Its yields end with it, and the next run begins with an empty list.
                self.sched.run.yields.clear();
                return self.end_task(index, End::Output);
            }
            if self.suspend(index) {
                return;
            }
        }
    }

    /// Gives a ready task the CPU.
    #[inline]
    fn begin_run(&mut self, index: TaskIndex, services: &mut impl Services<M>) {
        let task = &mut self.sched.tasks[index];
        debug_assert!(task.state == TaskState::Ready, "the queue holds ready tasks");
        debug_assert!(self.sched.run.task.is_none(), "one task has the CPU");
        task.state = TaskState::Running;
        task.runs = task.runs.wrapping_add(1);
        let run = &mut self.sched.run;
        (run.task, run.since) = (Some(index), self.sched.now);
        (run.again, run.woken, run.block_logged) = (false, false, false);
        self.sched.gate.begin_run(self.options.budget);
        if self.sched.run.is_watched {
            self.begin_watched_run(index);
            services.run_begins(self, index);
        }
    }

    /// Logs the start of a run, and reads the clock first if the trace is timed.
    #[cold]
    fn begin_watched_run(&mut self, index: TaskIndex) {
        if self.sched.log.timed {
            // Earlier runs of this turn have taken time. Without this reading, the log would show
            // that time as taken by this run.
            self.sched.now = self.sched.machine.now();
            self.sched.run.since = self.sched.now;
        }
        if self.sched.log.listening {
            self.sched.ready.ran_in = Some(self.sched.turn);
            self.sched.log_run(index);
            self.between_events();
        }
    }

    /// Ends a run, after its task has left the CPU or has ended.
    #[inline]
    fn end_run(&mut self, services: &mut impl Services<M>) {
        self.sched.run.task = None;
        if self.sched.run.is_watched {
            services.run_ends();
        }
        // A waker that was called as the task left the CPU may have posted.
        self.serve(services);
        self.between_events();
    }

    /// Polls a task's future once. This is the only poll of a task in the project.
    #[inline]
    fn poll(&mut self, index: TaskIndex, main: MainPoll<'_>) -> Poll<()> {
        let key = self.sched.tasks.key(index);
        let task = &mut self.sched.tasks[index];
        debug_assert!(task.state == TaskState::Running, "only the task on the CPU is polled");
        self.sched.gate.begin_poll(key, self.sched.now);
        // Once a poll has cloned the spare, it stays the waker of this task: the clone may still be
        // used.
        let own = task.rare.as_ref().and_then(|rare| rare.waker.as_ref()).map(|own| &own.waker);
        let is_spare = own.is_none();
        let waker = own.unwrap_or_else(|| self.spare.lend(key));
        // The gate compares wakers by address. A wait stores only a waker that is not the task's
        // own, which is that of a combinator.
        self.sched.gate.set_waker(waker);
        let mut cx = Context::from_waker(waker);
        self.sched.run.is_polling = true;
        let polled = match &mut task.body {
            Some(body) => body.as_mut().poll(&mut cx),
            // The future of main is in the frame of `run`, so that it may borrow from the caller.
            None => main(&mut cx),
        };
        self.sched.run.is_polling = false;
        if is_spare && self.spare.was_kept() {
            self.adopt_spare(index);
        }
        polled
    }

    /// Gives the spare waker to a task whose poll has kept a clone of it.
    #[cold]
    fn adopt_spare(&mut self, index: TaskIndex) {
        let kept = mem::replace(&mut self.spare, SpareWaker::new(&self.wakeup.inbox));
        self.sched.tasks[index].rare().waker = Some(kept);
    }

    /// Handles the traps and posts that are filed at the gate, in order. Usually there is one trap.
    #[inline]
    pub(crate) fn serve(&mut self, services: &mut impl Services<M>) {
        // Serving may file more: a post that drops a future runs a destructor, which may post.
        while self.sched.gate.has_filed() {
            match (self.sched.gate.take_only_trap(), self.sched.run.task) {
                (Some(ticket), Some(task)) => self.dispatch(task, ticket),
                // A panic has cut off the run that filed it.
                (Some(_), None) => {}
                (None, _) => self.serve_list(services),
            }
        }
    }

    #[inline(never)]
    fn serve_list(&mut self, services: &mut impl Services<M>) {
        let mut list = self.sched.gate.take_filed();
        let mut rest = list.drain(..);
        while let Some(filed) = rest.next() {
            match (filed, self.sched.run.task) {
                (Filed::Post(post), _) => self.handle_post(services, post),
                (Filed::Trap(ticket), Some(task)) => {
                    // Only the last line of a run may be `block`, so the dispatch must know whether
                    // more lines follow.
                    self.sched.run.goes_on =
                        self.sched.log.listening && !rest.as_slice().iter().all(is_quiet);
                    self.dispatch(task, ticket);
                }
                // A panic has cut off the run that filed it.
                (Filed::Trap(_), None) => {}
            }
        }
        self.sched.run.goes_on = false;
        drop(rest);
        self.sched.gate.reuse_list(list);
    }

    /// Parks a task that leaves the CPU. Returns `false` if the task has a reply and must be polled
    /// again.
    #[inline]
    fn suspend(&mut self, index: TaskIndex) -> bool {
        if mem::take(&mut self.sched.run.again) {
            // The poll that follows at once also serves the wake.
            self.sched.run.woken = false;
            self.sched.gate.keep_polling();
            return false;
        }
        // From here no task is current: `end_yields` calls the wakers of combinators.
        self.sched.gate.end_poll();
        debug_assert!(self.sched.run.task == Some(index), "the task on the CPU parks");
        let task = &mut self.sched.tasks[index];
        task.state = TaskState::Parked;
        task.since = self.sched.now;
        let is_logged = mem::take(&mut self.sched.run.block_logged);
        if !is_logged || self.sched.run.woken || self.options.policy == Policy::NextSleep {
            self.suspend_unusually(index, is_logged);
        }
        self.longrun.measure(&mut self.sched);
        if !self.sched.run.yields.is_empty() {
            // Only now, so that the task stands behind each task that became ready during its run.
            self.sched.end_yields();
        }
        true
    }

    /// Finishes the parking of a task in a less common case: the task has no `block` line or was
    /// woken while it ran, or the policy acts when a task parks.
    #[cold]
    fn suspend_unusually(&mut self, index: TaskIndex, is_logged: bool) {
        // The task was woken while it ran. That counts as a wake right after it has parked: nothing
        // is lost, and it goes to the end of the queue.
        let woken = mem::take(&mut self.sched.run.woken);
        if !is_logged && self.sched.log.listening {
            // The task parks on several waits, on waits of earlier runs, or on wakers.
            let tickets = self.sched.parked(index, |_, _| ()).len() as u64;
            let op = if tickets == 0 { Op::Waker } else { Op::Parked { tickets } };
            let ran = self.sched.ran(index);
            self.sched.tasks[index].since = self.sched.now;
            let line = emit!(self.sched, index, Event::Block { op, wait: None }, ran);
            self.sched.keep_block(index, line);
        }
        if self.options.policy == Policy::NextSleep {
            self.handles.undefer(&mut self.sched, index, Why::Suspend);
        }
        if woken {
            self.sched.wake_by_waker(index);
        }
    }

    /// Ends the task whose poll has panicked.
    fn end_by_panic(&mut self, services: &mut impl Services<M>, panic: Box<dyn Any + Send>) {
        let index = self.sched.run.task.expect("a task was being polled");
        // The poll has not come back, so nobody has looked whether it kept the waker. A kept waker
        // names this task, and must not be lent to the next.
        if self.spare.was_kept() {
            self.spare = SpareWaker::new(&self.wakeup.inbox);
        }
        // The poll may have read the clock, and no later line may be earlier than that.
        self.sched.now = self.sched.now.max(self.sched.gate.now());
        // Its yields end with it, and the next run begins with an empty list.
        self.sched.run.yields.clear();
        let message = panic_message(&*panic).to_owned();
        let line = announce!(
            self.sched,
            self.sched.tasks.label(index),
            Event::Panic { text: message.as_str().into() }
        );
        if self.sched.tasks.is_main(index) {
            // The future of main belongs to the caller of `run`.
            self.main_panic = Some(panic);
        } else {
            // The payload is user data, and its drop may panic again.
            drop_quietly(panic);
        }
        self.sched.gate.end_poll();
        self.drop_body(index, End::Panicked(&message), "future");
        // Serve the posts of the poll that panicked.
        self.serve_posts(services);
        self.end_task(index, End::Panicked(&message));
        self.sched.log.dump("panic", line);
    }
}

/// Returns whether a filed entry writes no log line for its task before the task is parked. These
/// two write none at all, or only after the `block` line.
fn is_quiet(filed: &Filed) -> bool {
    matches!(filed, Filed::Post(Post::Woken(_) | Post::Service(_)))
}
