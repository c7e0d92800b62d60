//! How one task runs: polled, answered, polled on, until it parks or ends.
//!
//! The only file that polls a task. What a trap means is in `table.rs`.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use traps::Time;
use traps::protocol::{Body, Filed, TaskRef};

use crate::emit::{drop_quietly, emit};
use crate::kernel::{Kernel, MainPoll};
use crate::longrun::Came;
use crate::machine::Machine;
use crate::table::At;
use crate::task::{End, State};
use crate::trace::{Event, Op, Seq, Timed, WakeOp};
use crate::waker::SpareWaker;

impl<M: Machine> Kernel<M> {
    /// Polls one task, answering its traps, until it parks or ends.
    #[inline]
    pub(crate) fn run_task(&mut self, index: u32, main: MainPoll<'_>) {
        let run = self.begin_run(index);
        loop {
            let parked_before = self.waits.parked_so_far();
            match self.poll_once(index, main) {
                Ok(Poll::Pending) => {
                    self.serve_first(index);
                    if !self.suspend(index, parked_before) {
                        continue;
                    }
                    self.end_run(index);
                }
                Ok(Poll::Ready(())) => {
                    self.gate.end();
                    self.serve();
                    self.end_task(index, End::Output, run);
                }
                Err(panic) => {
                    self.gate.end();
                    self.end_by_panic(index, panic, run);
                }
            }
            return;
        }
    }

    /// Gives a ready task the CPU: its `run` line.
    #[inline]
    fn begin_run(&mut self, index: u32) -> Seq {
        if self.log.timed {
            self.log.now = self.machine.now();
        }
        self.log.seq += 1;
        let run = self.log.seq;
        let epoch = self.epoch;
        let task = self.tasks.get_mut(index);
        debug_assert!(task.state == State::Ready, "the queue holds ready tasks");
        let name = TaskRef { index, epoch, serial: task.id };
        task.state = State::Running;
        task.cycles += 1;
        let (cause, since) = (mem::replace(&mut task.cause, run), task.ready_since);
        task.interrupted = false;
        self.longrun.begin_from(task.came);
        let waker = task.waker().unwrap_or_else(|| self.spare.waker());
        self.gate.begin(name, name.root(), waker, self.options.budget, task.is_home_free);
        self.running = Some(index);
        self.running_since = self.log.now;
        if self.log.is_listening() || task.news().is_some_and(|news| !news.is_empty()) {
            self.tell_run(index, cause, since);
        }
        if self.inject.around {
            let root = self.root_around(index);
            self.gate.set_root(root);
        }
        self.begin_beat(index);
        run
    }

    /// The `run` line, whose number is given.
    #[cold]
    fn tell_run(&mut self, index: u32, cause: Seq, since: Time) {
        if self.log.is_listening() {
            let task = self.tasks.get(index);
            let answered = task.news().map_or(&[][..], |news| &news.answered);
            let waited = Timed { waited: Some(self.log.now.since(since)), ..Timed::default() };
            let event = Event::Run { cause, answered: answered.into() };
            let (id, name) = self.tasks.label(index);
            self.log.write(id, name, event, Some(waited));
        }
        let task = self.tasks.get_mut(index);
        if task.news().is_some() {
            task.rare().news.clear();
        }
    }

    /// Polls the task's future once; a spare waker that the poll kept becomes the task's own.
    #[inline]
    fn poll_once(&mut self, index: u32, main: MainPoll<'_>) -> thread::Result<Poll<()>> {
        self.log.count_untold(self.timers.table().untold());
        let mut task = self.tasks.get_mut(index);
        if task.troubled || task.pending > 0 {
            self.gate.set_troubled();
            self.offer_bare(index);
            task = self.tasks.get_mut(index);
        }
        self.gate.set_parked(task.waits);
        let polled = {
            let (waker, body) = task.parts();
            let mut cx = Context::from_waker(waker.unwrap_or_else(|| self.spare.waker()));
            catch_unwind(AssertUnwindSafe(|| match body {
                Some(body) => body.as_mut().poll(&mut cx),
                None => main(&mut cx),
            }))
        };
        self.gate.clear_bare();
        if task.waker().is_none() && self.spare.was_used() {
            self.adopt_spare(index);
        }
        polled
    }

    /// The poll kept the spare waker: it is the task's own from now on.
    #[cold]
    fn adopt_spare(&mut self, index: u32) {
        let used = mem::replace(&mut self.spare, SpareWaker::new(&self.wakes));
        let (waker, hit) = used.adopt(self.tasks.name_of(index));
        let task = self.tasks.get_mut(index);
        self.gate.set_waker(task.set_waker(waker));
        task.woken |= hit;
    }

    /// How long a task has had the CPU, for a timed trace; nothing of one that does not run.
    #[inline]
    pub(crate) fn ran(&mut self, index: u32) -> Option<Timed> {
        if !self.log.timed || self.running != Some(index) {
            return None;
        }
        self.log.now = self.machine.now();
        let ran = self.log.now.since(self.running_since);
        Some(Timed { ran: Some(ran), ..Timed::default() })
    }

    /// Puts a task that leaves the CPU where its tickets, or its waker, will find it. `before` it
    /// was polled, so many tickets had been parked. False if it was answered: it is polled on.
    #[inline]
    fn suspend(&mut self, index: u32, before: u64) -> bool {
        let mut task = self.tasks.get_mut(index);
        if mem::take(&mut task.answered) {
            // The next poll is what it was woken for.
            task.woken = false;
            return false;
        }
        task.is_home_free = self.gate.end();
        let silent = self.waits.parked_so_far() == before && !task.woken;
        if silent || task.deferred().is_some() {
            if silent {
                self.tell_bare_wait(index);
            }
            self.undefer(index, crate::trace::Why::Suspend);
            task = self.tasks.get_mut(index);
        }
        task.state = State::Parked;
        task.ready_since = self.log.now;
        let pending = task.pending > 0;
        if task.woken {
            self.requeue(index);
        }
        if self.gave_way {
            self.end_giving_way(index);
        } else if !self.scratch.yielded.is_empty() {
            self.complete_yields();
        }
        if pending {
            self.hit_bare_wait(index);
        }
        true
    }

    /// The line of a task that is parked on what it was parked on before, or on wakers.
    #[cold]
    fn tell_bare_wait(&mut self, index: u32) {
        let tickets = u64::from(self.tasks.get(index).waits);
        let op = if tickets == 0 { Op::Waker } else { Op::Parked { tickets } };
        let ran = self.ran(index);
        emit!(self, index, Event::Block { op, ticket: None, at: None }, ran);
    }

    /// Its waker was called while it ran: it goes to the end of the queue.
    #[cold]
    fn requeue(&mut self, index: u32) {
        let task = self.tasks.get_mut(index);
        task.woken = false;
        let cause = task.cause;
        let op = WakeOp::Waker;
        let seq = emit!(self, index, Event::Wake { op, ticket: None, cause });
        self.make_ready(index, seq, Came::Waker);
    }

    /// Answers what a poll has filed. Nearly always that is one request, the first.
    #[inline]
    fn serve_first(&mut self, task: u32) {
        if let Some((first, request)) = self.gate.take_first() {
            self.counts.traps += 1;
            self.dispatch(&At::first(task, first), request);
        }
        self.serve();
    }

    /// Answers what is filed at the gate, in order, until nothing is.
    #[inline]
    pub(crate) fn serve(&mut self) {
        if self.gate.has_filed() {
            self.serve_filed();
        }
    }

    /// Heeds what was posted while the kernel did not run. Where that wakes somebody it is a turn
    /// of its own: the log's order of being ready is a turn's.
    pub(crate) fn serve_between_runs(&mut self) {
        self.log.turn += u64::from(self.gate.has_wakes());
        self.serve();
    }

    #[inline(never)]
    fn serve_filed(&mut self) {
        self.before_posts = self.log.seq;
        while self.gate.has_filed() {
            match self.gate.take_first() {
                Some((first, request)) => {
                    let task = self.running.expect("a task that is polled filed it");
                    self.counts.traps += 1;
                    self.dispatch_again(&At::first(task, first), request);
                }
                None => match self.gate.take_only() {
                    Some(post) => self.heed(post),
                    None => match self.gate.take_opening() {
                        Some(opening) => self.open_timeout(opening),
                        None if self.serve_births() => {}
                        None => self.serve_all(),
                    },
                },
            }
        }
    }

    /// Makes the tasks that were told of, if nothing else was filed. Whether there were any.
    fn serve_births(&mut self) -> bool {
        let mut births = mem::take(&mut self.scratch.births);
        self.gate.take_births(&mut births);
        let any = !births.is_empty();
        births.drain(..).for_each(|birth| self.spawn_posted(birth));
        self.scratch.births = births;
        any
    }

    fn serve_all(&mut self) {
        let mut inbox = mem::take(&mut self.scratch.inbox);
        self.gate.take(&mut inbox);
        let mut rest = inbox.drain(..);
        let mut ahead = 0;
        while let Some(filed) = rest.next() {
            match filed {
                Filed::Opening(_) if ahead > 0 => ahead -= 1,
                Filed::Opening(first) => ahead = self.open_timeouts(first, rest.as_slice()),
                filed => self.serve_one(filed),
            }
        }
        drop(rest);
        self.scratch.inbox = inbox;
    }

    #[inline]
    fn serve_one(&mut self, filed: Filed) {
        match filed {
            Filed::Request { ticket, task, scope, request, site } => {
                if !self.gate.is_wanted(ticket) {
                    return drop_quietly(request);
                }
                let Some(task) = self.tasks.find(task) else {
                    self.gate.forget(ticket);
                    return drop_quietly(request);
                };
                self.counts.traps += 1;
                self.dispatch_again(&At { task, ticket, scope, site }, request);
            }
            Filed::Post(post) => self.heed(post),
            Filed::Opening(opening) => self.open_timeout(opening),
        }
    }

    /// After a poll that panicked: heeds what it posted, and discards what it asked for.
    pub(crate) fn serve_posts(&mut self) {
        while self.gate.has_filed() {
            let mut inbox = mem::take(&mut self.scratch.inbox);
            self.gate.take(&mut inbox);
            for filed in inbox.drain(..) {
                match filed {
                    Filed::Request { ticket, request, .. } => {
                        self.gate.forget(ticket);
                        drop_quietly(request);
                    }
                    filed => self.serve_one(filed),
                }
            }
            self.scratch.inbox = inbox;
        }
    }

    /// A new task, not yet ready; `detached`: nobody can join it.
    #[inline]
    pub(crate) fn add_task(
        &mut self,
        body: Pin<Box<dyn Body>>,
        parent: u64,
        detached: bool,
    ) -> TaskRef {
        let made = self.timers.table().made_so_far();
        let task = self.tasks.add(Some(body), parent, made, detached);
        self.settle_in(task)
    }

    /// Looks at the home of a task that is new.
    #[inline]
    pub(crate) fn settle_in(&mut self, task: TaskRef) -> TaskRef {
        if !self.gate.is_home_free(task) {
            self.tasks.get_mut(task.index).is_home_free = false;
        }
        task
    }

    /// Makes a parked task ready, for the line `cause`, which ended `came`; one that runs is
    /// polled on.
    #[inline(always)]
    pub(crate) fn make_ready(&mut self, index: u32, cause: Seq, came: Came) {
        let task = self.tasks.get_mut(index);
        task.make_ready(index, (cause, came), self.log.now, &mut self.ready);
    }
}
