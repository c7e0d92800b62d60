//! How one task runs: polled, answered, polled on, until it parks or ends.
//!
//! The only file that polls a task. What a trap means is in `table.rs`.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};
use std::thread;

use traps::Time;
use traps::gate::First;
use traps::protocol::{Filed, Left, Site, TaskRef};
use traps::threads::panic_message;

use crate::emit::{announce, drop_quietly, emit, quietly};
use crate::kernel::{Kernel, MainPoll};
use crate::longrun::Came;
use crate::machine::Machine;
use crate::scopes::Timing;
use crate::table::At;
use crate::tasks::{End, NONE, News, Place, State};
use crate::trace::{Event, Exit, Op, Seq, Timed, WakeOp};
use crate::waker::SpareWaker;

impl<M: Machine> Kernel<M> {
    /// Polls one task, answering its traps, until it parks or ends.
    pub(crate) fn run_task(&mut self, index: u32, main: MainPoll<'_>) {
        let (run, mut own) = self.begin_run(index);
        loop {
            let polled = self.poll_once(index, &mut own, main);
            let parked_before = self.waits.parked_so_far();
            match polled {
                Ok(Poll::Pending) => {
                    self.serve();
                    let task = self.tasks.get_mut(index);
                    if mem::take(&mut task.answered) {
                        // The next poll is what it was woken for.
                        task.woken = false;
                        continue;
                    }
                    self.gate.end();
                    self.tasks.get_mut(index).waker = own;
                    self.suspend(index, self.waits.parked_so_far() != parked_before);
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

    /// Gives a ready task the CPU: its `run` line, and its waker if it has one of its own.
    #[inline]
    fn begin_run(&mut self, index: u32) -> (Seq, Option<Waker>) {
        if self.log.timed {
            self.log.now = self.machine.now();
        }
        self.log.seq += 1;
        let run = self.log.seq;
        let name = self.tasks.name_of(index);
        let task = self.tasks.get_mut(index);
        debug_assert!(task.state == State::Ready, "the queue holds ready tasks");
        task.state = State::Running;
        task.cycles += 1;
        let (cause, since, came) = (task.cause, task.ready_since, task.came);
        task.cause = run;
        task.interrupted = false;
        let own = task.waker.take();
        let news = task.news.take();
        if news.is_some() || self.log.listening {
            self.tell_run(index, cause, since, news);
        }
        let root =
            if self.inject.around { self.root_around(index) } else { self.tasks.root_of(name) };
        self.running = Some(index);
        self.running_since = self.log.now;
        self.begin_run_from(came);
        self.begin_beat(index);
        let spare = self.spare.as_ref().map(SpareWaker::waker);
        let waker = own.as_ref().or(spare).expect("a spare waker is at hand");
        self.gate.begin(name, root, waker, self.options.budget);
        (run, own)
    }

    /// The `run` line, whose number is given.
    #[cold]
    fn tell_run(&mut self, index: u32, cause: Seq, since: Time, mut news: Option<Box<News>>) {
        if self.log.listening {
            let answered = news.as_ref().map_or(&[][..], |news| &news.answered);
            let waited = Timed { waited: Some(self.log.now.since(since)), ..Timed::default() };
            let event = Event::Run { cause, answered: answered.into() };
            let (id, name) = self.tasks.label(index);
            self.log.write(id, name, event, Some(waited));
            // Kept while somebody listens: the next run is told without an allocation.
            if let Some(news) = &mut news {
                news.answered.clear();
                news.delivered.clear();
            }
            self.tasks.get_mut(index).news = news;
        }
    }

    /// Polls the task's future once; a spare waker that the poll kept becomes the task's own.
    #[inline]
    fn poll_once(
        &mut self,
        index: u32,
        own: &mut Option<Waker>,
        main: MainPoll<'_>,
    ) -> thread::Result<Poll<()>> {
        self.log.count_untold(self.timers.table().untold());
        let task = self.tasks.get(index);
        if task.troubled || task.pending > 0 {
            self.gate.set_troubled();
            self.offer_bare(index);
        }
        let task = self.tasks.get_mut(index);
        let mut place = mem::replace(&mut task.place, Place::Away);
        let polled = {
            let spare = self.spare.as_ref().map(SpareWaker::waker);
            let waker: &Waker = own.as_ref().or(spare).expect("a spare waker is at hand");
            let mut cx = Context::from_waker(waker);
            catch_unwind(AssertUnwindSafe(|| match &mut place {
                Place::Body(body) => body.as_mut().poll(&mut cx),
                Place::Main => main(&mut cx),
                Place::Away => unreachable!("a task that is ready has its future"),
            }))
        };
        self.tasks.get_mut(index).place = place;
        self.gate.clear_bare();
        if own.is_none() && self.spare.as_ref().is_some_and(SpareWaker::was_used) {
            let fresh = SpareWaker::new(&self.wakes);
            let used = self.spare.replace(fresh).expect("looked at above");
            let (waker, hit) = used.adopt(self.tasks.name_of(index));
            self.gate.set_waker(own.insert(waker));
            self.tasks.get_mut(index).woken |= hit;
        }
        polled
    }

    /// How long the task that runs has had the CPU, for a timed trace.
    #[inline]
    pub(crate) fn ran(&mut self) -> Option<Timed> {
        if !self.log.timed {
            return None;
        }
        self.log.now = self.machine.now();
        let ran = self.log.now.since(self.running_since);
        Some(Timed { ran: Some(ran), ..Timed::default() })
    }

    /// Puts a task that left the CPU where its tickets, or its waker, will find it.
    pub(crate) fn suspend(&mut self, index: u32, parked: bool) {
        let task = self.tasks.get(index);
        if !parked && !task.woken {
            let tickets = u64::from(task.waits);
            let op = if tickets == 0 { Op::Waker } else { Op::Parked { tickets } };
            let ran = self.ran();
            emit!(self, index, Event::Block { op, ticket: None, at: None }, ran);
        }
        let task = self.tasks.get_mut(index);
        if task.deferred.is_some() {
            self.undefer(index, crate::trace::Why::Suspend);
        }
        let task = self.tasks.get_mut(index);
        task.state = State::Parked;
        task.ready_since = self.log.now;
        let (run, pending) = (task.cause, task.pending > 0);
        if mem::take(&mut task.woken) {
            let event = Event::Wake { op: WakeOp::Waker, ticket: None, cause: run };
            let seq = emit!(self, index, event);
            self.tasks.get_mut(index).came = Came::Waker;
            self.make_ready(index, seq);
        }
        if !self.scratch.yielded.is_empty() {
            let mut yielded = mem::take(&mut self.scratch.yielded);
            for ticket in yielded.drain(..) {
                self.complete_yield(ticket);
            }
            self.scratch.yielded = yielded;
        }
        if pending {
            self.hit_bare_wait(index);
        }
    }

    /// Answers what is filed at the gate, in order, until nothing is.
    #[inline]
    pub(crate) fn serve(&mut self) {
        if self.gate.has_filed() {
            self.serve_filed();
        }
    }

    fn serve_filed(&mut self) {
        while self.gate.has_filed() {
            match self.gate.take_first() {
                Some(First { ticket, scope, request, site }) => {
                    let task = self.running.expect("a task that is polled filed it");
                    self.counts.traps += 1;
                    self.dispatch(At { task, ticket, scope, site }, request);
                }
                None => self.serve_all(),
            }
        }
    }

    pub(crate) fn serve_all(&mut self) {
        let mut inbox = mem::take(&mut self.scratch.inbox);
        self.gate.take(&mut inbox);
        for filed in inbox.drain(..) {
            self.serve_one(filed);
        }
        self.scratch.inbox = inbox;
    }

    #[inline]
    pub(crate) fn serve_one(&mut self, filed: Filed) {
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
                self.dispatch(At { task, ticket, scope, site }, request);
            }
            Filed::Post(post) => self.heed(post),
        }
    }

    /// A new task, not yet ready.
    pub(crate) fn add_task(&mut self, place: Place, parent: u64, site: Site) -> TaskRef {
        self.tasks.add(place, parent, Some(site), self.deadlines.so_far)
    }

    /// Makes a parked task ready; one that runs is polled on.
    #[inline]
    pub(crate) fn make_ready(&mut self, index: u32, cause: Seq) {
        let task = self.tasks.get_mut(index);
        match task.state {
            State::Parked => {
                task.state = State::Ready;
                task.cause = cause;
                task.ready_since = self.log.now;
                self.ready.push_back(index);
            }
            State::Running => task.answered = true,
            State::Ready | State::Ended => {}
        }
    }

    pub(crate) fn end_by_panic(
        &mut self,
        index: u32,
        panic: Box<dyn std::any::Any + Send>,
        run: Seq,
    ) {
        let message = panic_message(&*panic).to_owned();
        let (id, name) = self.tasks.label(index);
        let name = name.to_owned();
        // What that poll armed is heeded after it.
        announce!(self, 0, id, &name, Event::Panic { text: message.as_str().into() });
        let task = self.tasks.get_mut(index);
        if let Place::Main = task.place {
            self.main_panic = Some(panic);
        } else {
            drop_quietly(panic);
            // The future goes before its name: its requests are withdrawn, its scopes closed.
            self.drop_future(index);
        }
        self.end_task(index, End::Panicked(message), run);
    }

    /// Drops a task's future, and heeds what its parts post.
    pub(crate) fn drop_future(&mut self, index: u32) {
        self.drop_body(index);
        self.serve();
    }

    /// Drops a task's future, in the name of no task.
    pub(crate) fn drop_body(&mut self, index: u32) {
        let task = self.tasks.get_mut(index);
        if let Place::Body(body) = &mut task.place {
            let name = body.name().to_owned();
            let site = body.site();
            // A stand-in keeps the name for the lines to come.
            let stand_in = crate::tasks::stand_in(name, site);
            let body = mem::replace(body, stand_in);
            self.gate.aside(|| drop_quietly(body));
        }
    }

    /// The end of a task: its joiners hear of it, and nothing of it stays behind.
    pub(crate) fn end_task(&mut self, index: u32, end: End, cause: Seq) {
        let task = self.tasks.get(index);
        let runs = task.state == State::Running;
        let how = match end {
            End::Panicked(_) => Exit::Panic,
            End::Dropped => Exit::Dropped,
            End::Output if task.cancel.as_ref().is_some_and(|cancel| cancel.delivered > 0) => {
                Exit::Cancelled
            }
            End::Output => Exit::Ok,
        };
        for ticket in self.waits.of(&self.tasks, index) {
            // Their futures are gone, leaked, or about to be dropped unheard.
            let number = self.waits.get(ticket).expect("a list holds parked tickets").number;
            emit!(self, index, Event::Withdraw { ticket: number });
            self.forget_wait(ticket);
        }
        for scope in self.scopes.of(&self.tasks, index) {
            match self.scopes.get(scope).timing {
                Timing::Bare => self.close_bare(scope),
                Timing::Own | Timing::Guard => self.close_scope(scope, Left::Other),
            }
        }
        if self.tasks.get(index).pending > 0 {
            self.scopes.drop_pending(&mut self.tasks, index, |_| true);
        }
        self.undefer(index, crate::trace::Why::Exit);
        let ran = self.ran();
        let exit = emit!(self, index, Event::Exit { how, cause }, ran);
        let task = self.tasks.get_mut(index);
        if task.state == State::Ready {
            // Its place stays: the turn has counted it.
            if let Some(place) = self.ready.iter_mut().find(|ready| **ready == index) {
                *place = NONE;
            }
        }
        task.state = State::Ended;
        task.end = Some(end);
        task.waker = None;
        task.news = None;
        self.tasks.alive -= 1;
        if let Place::Main = self.tasks.get(index).place {
            self.main_ended = true;
            self.tasks.get_mut(index).detached = true;
        }
        if let Some(locals) = self.gate.take_locals(self.tasks.name_of(index)) {
            self.gate.aside(|| drop_quietly(locals));
        }
        if runs {
            self.end_last_run(index);
        }
        self.wake_joiners(index, exit);
        if self.tasks.get(index).detached {
            let task = self.tasks.remove(index);
            drop_quietly(task);
        }
    }

    /// A run that ended its task is over when its output is gone too, if nobody will have it, and
    /// what that posted is heeded. A joiner takes it later, and the name with it.
    fn end_last_run(&mut self, index: u32) {
        if self.tasks.get(index).detached {
            let mut place = mem::replace(&mut self.tasks.get_mut(index).place, Place::Away);
            if let Place::Body(body) = &mut place {
                quietly(|| body.as_mut().clear());
            }
            self.tasks.get_mut(index).place = place;
            self.serve();
        }
        self.end_run(index);
    }
}
