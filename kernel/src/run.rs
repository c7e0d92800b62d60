//! How one task runs: it is polled and answered until it parks or ends.
//!
//! The only file that polls a task. `table.rs` says what each trap does.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::{Context, Poll};

use traps::Time;
use traps::protocol::{Filed, TaskRef};
use traps::threads::drop_quietly;

use crate::kernel::{Kernel, MainPoll};
use crate::log::emit;
use crate::machine::Machine;
use crate::outside::SpareWaker;
use crate::registrations::Policy;
use crate::task::{End, State};
use crate::trace::{Answered, Event, Op, Seq, Timed, Why};

/// Step 5 of a turn.
impl<M: Machine> Kernel<M> {
    /// Runs each task that is ready *now* once. Tasks that become ready meanwhile wait for the next
    /// turn, so that no chain of wakes can starve I/O.
    pub(crate) fn run_ready(&mut self, main: MainPoll<'_>) {
        self.ready.begin_turn();
        loop {
            // One `catch_unwind` for the whole turn is cheaper than one for each poll.
            let ran = catch_unwind(AssertUnwindSafe(|| self.run_until_panic(main)));
            let Err(panic) = ran else { return };
            if !mem::take(&mut self.is_polling) {
                // Not the panic of a task: a rule of the kernel was broken.
                resume_unwind(panic);
            }
            self.end_by_panic(panic);
            self.end_run();
        }
    }

    fn run_until_panic(&mut self, main: MainPoll<'_>) {
        while !self.main_ended
            && let Some(task) = self.ready.take()
        {
            self.run_task(task, main);
            self.end_run();
        }
    }

    /// Polls one task and answers its traps until it parks or ends.
    #[inline]
    fn run_task(&mut self, index: u32, main: MainPoll<'_>) {
        self.begin_run(index);
        loop {
            match self.poll(index, main) {
                Poll::Ready(()) => {
                    self.gate.end();
                    self.serve();
                    return self.end_task(index, End::Output, self.run_line(index));
                }
                Poll::Pending => {
                    self.serve();
                    if self.suspend(index) {
                        return;
                    }
                }
            }
        }
    }

    /// Gives a ready task the CPU.
    #[inline]
    fn begin_run(&mut self, index: u32) {
        let task = &mut self.tasks[index];
        debug_assert!(task.state == State::Ready, "the queue holds ready tasks");
        task.state = State::Running;
        task.runs = task.runs.wrapping_add(1);
        self.longrun.from = task.first;
        self.running = Some(index);
        self.running_since = self.log.now;
        self.gate.set_budget(self.options.budget);
        if self.is_watched {
            self.begin_watched_run(index);
        }
    }

    /// Notes the start of a run for a log, a sweep or a watchdog.
    #[cold]
    fn begin_watched_run(&mut self, index: u32) {
        if self.log.timed {
            self.log.now = self.machine.now();
            self.running_since = self.log.now;
        }
        if self.log.listening {
            self.log_run(index);
        }
        if self.hook.around {
            self.open_outermost(index);
        }
        self.begin_beat(index);
    }

    /// Ends a run that was measured: its task has left the CPU, or has ended.
    #[inline]
    fn end_run(&mut self) {
        self.running = None;
        if self.is_watched {
            self.end_beat();
        }
        // A waker that was called as the task left the CPU may have posted.
        self.serve();
    }

    /// The `run` line.
    fn log_run(&mut self, index: u32) {
        let logged = &mut self.tasks[index].rare().logged;
        let (cause, left, mut answered) =
            (logged.cause, logged.left, mem::take(&mut logged.answered));
        let waited = self.log.now.since(self.tasks[index].since);
        let timed = Some(Timed { waited: Some(waited), ..Timed::default() });
        let (id, name) = self.tasks.label(index);
        let parked = left.map(|left| self.log.now.since(left));
        let event = Event::Run { cause, parked, answered: answered[..].into() };
        let run = self.log.write(id, name, event, timed);
        let logged = &mut self.tasks[index].rare().logged;
        let is_answered = |ticket| answered.iter().any(|it: &Answered<'_>| it.ticket == ticket);
        logged.waits.retain(|wait| !is_answered(wait.number));
        answered.clear();
        (logged.cause, logged.answered) = (run, answered);
    }

    /// The `run` line of the task that runs.
    pub(crate) fn run_line(&self, index: u32) -> Seq {
        self.tasks[index].rare.as_ref().map_or(0, |rare| rare.logged.cause)
    }

    /// How long a task has had the CPU, for a timed trace; `None` for a task that does not run.
    pub(crate) fn ran(&mut self, index: u32) -> Option<Timed> {
        if !self.log.timed || self.running != Some(index) {
            return None;
        }
        self.log.now = self.machine.now();
        let ran = self.log.now.since(self.running_since);
        Some(Timed { ran: Some(ran), ..Timed::default() })
    }

    // ---- A poll ----------------------------------------------------------------------------

    /// Polls a task's future once, with its results at the gate.
    #[inline]
    fn poll(&mut self, index: u32, main: MainPoll<'_>) -> Poll<()> {
        self.lay_down(index);
        let task = &self.tasks[index];
        let (has_sources, watches) = (task.sources > 0, task.watches_shutdown);
        let name = TaskRef { index, generation: task.generation };
        let root = if self.hook.around { self.hook.root } else { name.root() };
        self.gate.begin(name, root, has_sources, watches);
        if has_sources {
            self.offer_timeouts(index);
        }
        let task = &mut self.tasks[index];
        let own = task.rare.as_ref().and_then(|rare| rare.waker.as_ref());
        let is_spare = own.is_none();
        let waker = own.unwrap_or_else(|| self.spare.lend(name));
        self.gate.set_waker(waker);
        let mut cx = Context::from_waker(waker);
        self.is_polling = true;
        let polled = match &mut task.body {
            Some(body) => body.as_mut().poll(&mut cx),
            None => main(&mut cx),
        };
        self.is_polling = false;
        self.clear_away(index);
        if is_spare && self.spare.was_kept() {
            self.adopt_spare(index);
        }
        polled
    }

    /// The poll kept the spare waker, so it belongs to this task from now on.
    #[cold]
    fn adopt_spare(&mut self, index: u32) {
        let kept = mem::replace(&mut self.spare, SpareWaker::new(&self.inbox));
        self.tasks[index].rare().waker = Some(kept.into_waker());
    }

    // ---- What a poll has filed -------------------------------------------------------------

    /// Answers everything that is filed at the gate, in order. Usually that is one request.
    #[inline]
    pub(crate) fn serve(&mut self) {
        while self.gate.has_filed() {
            match self.gate.take_only() {
                Some(asked) => {
                    let task = self.running.expect("a task that is polled files requests");
                    self.dispatch(task, asked);
                }
                None => self.serve_list(true),
            }
        }
    }

    /// After a poll that panicked: handles the posts, and discards the requests.
    pub(crate) fn serve_posts(&mut self) {
        while self.gate.has_filed() {
            self.serve_list(false);
        }
    }

    #[inline(never)]
    fn serve_list(&mut self, requests: bool) {
        let mut list = self.gate.take();
        for filed in list.drain(..) {
            match (filed, self.running) {
                (Filed::Post(post), _) => self.handle_post(post),
                (Filed::Request(asked), Some(task)) if requests => {
                    self.dispatch(task, asked);
                }
                (Filed::Request(asked), _) => drop_quietly(self.gate.take_owned(asked.serial)),
            }
        }
        self.gate.give_back(list);
    }

    // ---- Leaving the CPU and coming back ---------------------------------------------------

    /// Parks a task that leaves the CPU. False if it was answered and is to be polled again.
    #[inline]
    fn suspend(&mut self, index: u32) -> bool {
        let task = &mut self.tasks[index];
        if mem::take(&mut task.answered) {
            // The task is polled again at once, which also serves the wake.
            task.woken = false;
            return false;
        }
        self.gate.end();
        task.state = State::Parked;
        task.since = self.log.now;
        let gives_way = mem::take(&mut task.gives_way);
        let parked_now = mem::take(&mut task.parked_now);
        if !parked_now || task.woken || self.options.policy == Policy::NextSleep {
            self.suspend_unusually(index, parked_now);
        }
        self.measure_run();
        if gives_way {
            self.end_yields(index);
        }
        true
    }

    /// Handles the less common cases: the task has no new wait, was woken while it ran, or has a
    /// policy that acts when it parks.
    #[cold]
    fn suspend_unusually(&mut self, index: u32, parked_now: bool) {
        let task = &mut self.tasks[index];
        let woken = mem::take(&mut task.woken);
        if !parked_now && !woken && self.log.listening {
            // It parks on the waits that it had before, or on wakers.
            let tickets = task.parked().count() as u64;
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

    /// Reads the clock for a trap.
    pub(crate) fn read_clock(&mut self) -> Time {
        self.log.now = self.machine.now();
        self.log.now
    }
}
