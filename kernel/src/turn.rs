//! The turn: wait, completed I/O, wake queue, deadlines, ready tasks. And how one task runs.
//!
//! All control flow of the kernel is here. What a trap means is in `table.rs`.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use traps::gate::Gate;
use traps::protocol::{Filed, Site};
use traps::threads::panic_message;

use crate::kernel::{Error, Kernel, MainPoll, Options};
use crate::log;
use crate::machine::{Machine, Until};
use crate::tasks::{End, Place, State};
use crate::timers::{Owner, Rank};
use crate::trace::{self, Event, Exit, Op, Seq, Timed, Timer, WakeOp};
use crate::waits::Wait;
use crate::waker::{Message, SpareWaker};

/// Turns that may go by without a look at the machine while tasks only hand work to each other.
const SKIPPED: u32 = 61;

/// Keeps the code that makes events out of the functions that mostly do not.
#[cold]
#[inline(never)]
pub(crate) fn apart<R>(code: impl FnOnce() -> R) -> R {
    code()
}

/// Numbers an event of a task and, if anybody listens, makes its line. Gives its number.
macro_rules! emit {
    ($kernel:expr, $task:expr, $event:expr) => {
        emit!($kernel, $task, $event, None)
    };
    ($kernel:expr, $task:expr, $event:expr, $timed:expr) => {{
        $kernel.log.seq += 1;
        if $kernel.log.listening {
            $crate::turn::apart(|| {
                let event = $event;
                let timed = $timed;
                let (id, name) = $kernel.tasks.label($task);
                $kernel.log.write(id, name, event, timed);
            });
        }
        $kernel.log.seq
    }};
}
pub(crate) use emit;

/// The same for the kernel itself, and for its wake-up task.
macro_rules! emit_for {
    ($kernel:expr, $id:expr, $name:expr, $event:expr) => {
        emit_for!($kernel, $id, $name, $event, None)
    };
    ($kernel:expr, $id:expr, $name:expr, $event:expr, $timed:expr) => {{
        $kernel.log.seq += 1;
        if $kernel.log.listening {
            $crate::turn::apart(|| {
                let event = $event;
                let timed = $timed;
                $kernel.log.write($id, $name, event, timed);
            });
        }
        $kernel.log.seq
    }};
}
pub(crate) use emit_for;

/// A line that is worth its cost even when only warnings are wanted.
macro_rules! announce {
    ($kernel:expr, $id:expr, $name:expr, $event:expr) => {{
        $kernel.log.seq += 1;
        $kernel.log.write($id, $name, $event, None);
    }};
}
pub(crate) use announce;

/// Runs foreign code that must not take the kernel down, such as a `Drop`.
pub(crate) fn quietly(code: impl FnOnce()) {
    // The panic hook has said what happened; the task concerned goes on without.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
        // Not dropped: to drop a panic's payload may panic again.
        mem::forget(payload);
    }
}

pub(crate) fn drop_quietly<T>(value: T) {
    quietly(move || drop(value));
}

/// Ends the kernel's hold on its thread's gate, also by a panic.
struct Running(Rc<Gate>, u32);

impl Running {
    fn enter(gate: &Rc<Gate>, epoch: u32) -> Running {
        gate.enter(epoch);
        Running(gate.clone(), epoch)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

impl<M: Machine> Kernel<M> {
    /// Runs turns until main has ended.
    pub(crate) fn run_main(&mut self, main: MainPoll<'_>, site: Site) -> Result<(), Error> {
        let _running = Running::enter(&self.gate, self.epoch);
        self.log.look();
        self.log.now = self.machine.now();
        if self.wakeup.seq == 0 {
            let Options { policy, tick, budget, grace, threads, .. } = &self.options;
            let (tick, grace) = (trace::Span(*tick), trace::Span(*grace));
            let clock = self.machine.clock_name();
            self.log.boot(&format!(
                "clock={clock} policy={policy} tick={tick} budget={budget} grace={grace} \
                 threads={threads}"
            ));
            self.wakeup.seq = emit_for!(self, 1, "wakeup", Event::Spawn { parent: None, at: None });
        }
        self.main_ended = false;
        let task = self.tasks.add(Place::Main, 0, Some(site)).index;
        let event = Event::Spawn { parent: None, at: Some(log::site(site)) };
        let seq = emit!(self, task, event);
        self.make_ready(task, seq);
        while !self.main_ended {
            if let Err(error) = self.turn(main) {
                self.end_task(task, End::Dropped, self.log.seq);
                return Err(error);
            }
        }
        self.serve();
        Ok(())
    }

    /// One turn of the loop.
    fn turn(&mut self, main: MainPoll<'_>) -> Result<(), Error> {
        self.log.turn += 1;
        self.wait()?;
        self.run_wakeup();
        self.fire_deadlines();
        self.serve();
        self.run_ready(main);
        Ok(())
    }

    /// Steps 1 and 2: waits for the machine, and makes ready whom its arrivals concern.
    fn wait(&mut self) -> Result<(), Error> {
        let busy = !self.ready.is_empty();
        if busy && self.skipped < SKIPPED {
            self.skipped += 1;
            return Ok(());
        }
        self.skipped = 0;
        self.log.look();
        let outside = self.external > 0 || self.jobs.live.iter().any(|(_, _, thread)| *thread);
        let mut until = Until::Arrival { by: self.timers.next(), outside };
        if busy || !self.wakes.fall_asleep() {
            until = Until::Now;
        }
        let mut arrivals = mem::take(&mut self.scratch.arrivals);
        self.counts.polls += 1;
        let waited = self.machine.wait(until, &mut arrivals);
        self.wakes.wake_up();
        if !self.timers.is_empty() || self.log.listening {
            self.log.now = self.machine.now();
        }
        for arrival in arrivals.io.drain(..) {
            self.arrive(arrival);
        }
        for signal in arrivals.signals.drain(..) {
            self.arrive_signal(signal);
        }
        let hang = arrivals.hang && self.wakes.is_empty();
        arrivals.clear();
        self.scratch.arrivals = arrivals;
        if let Err(error) = waited {
            self.shut = true;
            return Err(Error::Machine(error));
        }
        if hang { Err(Error::Hang(self.report())) } else { Ok(()) }
    }

    /// Step 3: the kernel's own task moves what other threads sent to the ready queue.
    fn run_wakeup(&mut self) {
        let started = self.wakeup.parked;
        if started && self.wakes.is_empty() {
            return;
        }
        // It waits without a ticket: nothing of it is left at a halt.
        let alias = self.registrations.bell();
        let direction = crate::trace::Direction::Read;
        let mut cause = self.wakeup.seq;
        if started {
            let op = WakeOp::Io { alias, direction };
            cause = emit_for!(self, 1, "wakeup", Event::Wake { op, ticket: None, cause });
        }
        let event = Event::Run { cause, answered: Vec::new().into() };
        let run = emit_for!(self, 1, "wakeup", event);
        let mut messages = mem::take(&mut self.scratch.messages);
        self.wakes.drain(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Wake(task) => self.wake_task(task, run),
                Message::Done(done) => self.job_done(done, run),
            }
        }
        self.scratch.messages = messages;
        self.wakeup.parked = true;
        let op = Op::Io { alias, direction };
        let event = Event::Block { op, ticket: None, at: None };
        self.wakeup.seq = emit_for!(self, 1, "wakeup", event);
    }

    /// Step 4: expired deadlines, in the order of their deadlines and ranks.
    fn fire_deadlines(&mut self) {
        if self.timers.next().is_none_or(|next| self.log.now < next) {
            return;
        }
        let now = self.log.now;
        let mut due = mem::take(&mut self.scratch.due);
        let (waits, scopes) = (&self.waits, &self.scopes);
        let rank = |owner| match Fired::of(owner) {
            Fired::Sleep(index) => {
                let entry = waits.get(index).expect("a timer's ticket is parked");
                Rank { class: 0, seq: entry.number }
            }
            Fired::Scope(index) => Rank { class: 1, seq: scopes.get(index).serial.get() },
            Fired::Grace => Rank { class: 2, seq: 0 },
        };
        let moved = self.timers.expire(now, &mut due, rank);
        if let Some(moved) = moved {
            let far = self.timers.far() as u64;
            emit_for!(self, 0, "kernel", Event::Tick { moved, far });
        }
        // All of these timers are gone from the queue before the first of them acts.
        for timer in &due {
            match Fired::of(timer.owner) {
                Fired::Sleep(index) => {
                    let entry = self.waits.get_mut(index).expect("a timer's ticket is parked");
                    entry.wait = Wait::Sleep { timer: None };
                }
                Fired::Scope(index) => self.scopes.get_mut(index).timer = None,
                Fired::Grace => self.grace = None,
            }
        }
        for timer in due.drain(..) {
            let deadline = timer.at;
            match Fired::of(timer.owner) {
                Fired::Sleep(index) => {
                    // An earlier timer of this batch may have interrupted it.
                    let Some(entry) = self.waits.get(index) else { continue };
                    let (number, cause) = (entry.number, entry.seq);
                    let timer = Timer::Sleep(number);
                    let event = Event::Fire { timer, deadline, cause };
                    let late = log::late(deadline, now);
                    let seq = emit_for!(self, 0, "kernel", event, late);
                    let result = Ok(traps::protocol::Answer::Time(now));
                    self.complete(index, result, WakeOp::Sleep, seq);
                }
                Fired::Scope(index) => self.fire_scope(index, deadline),
                Fired::Grace => {
                    let event = Event::Fire { timer: Timer::Grace, deadline, cause: self.phase };
                    emit_for!(self, 0, "kernel", event);
                    self.grace_over = true;
                }
            }
        }
        self.scratch.due = due;
    }

    /// Step 5: runs each task that is ready *now* once. Who becomes ready meanwhile waits for the
    /// next turn, so that no chain of wakes can starve I/O.
    fn run_ready(&mut self, main: MainPoll<'_>) {
        for _ in 0..self.ready.len() {
            let task = self.ready.pop_front().expect("only runs take from the queue");
            self.run_task(task, main);
            self.running = None;
            // The output of a task that nobody joins was dropped, and may have posted.
            self.serve();
            if self.main_ended {
                return;
            }
        }
    }

    /// Polls one task, answering its traps, until it parks or ends.
    fn run_task(&mut self, index: u32, main: MainPoll<'_>) {
        if self.log.timed {
            self.log.now = self.machine.now();
        }
        let answered = self.take_answered(index);
        let task = self.tasks.get_mut(index);
        debug_assert!(task.state == State::Ready, "the queue holds ready tasks");
        task.state = State::Running;
        task.cycles += 1;
        let (cause, since) = (task.cause, task.ready_since);
        if mem::take(&mut task.interrupted) {
            self.scratch.delivered.retain(|(task, ..)| *task != index);
        }
        let waited = Timed { waited: Some(self.log.now.since(since)), ..Timed::default() };
        let run = emit!(self, index, Event::Run { cause, answered: answered.into() }, Some(waited));
        let task = self.tasks.get_mut(index);
        task.cause = run;
        let mut own = task.waker.take();
        let (name, root) = (self.tasks.name_of(index), self.tasks.root(index));
        self.running = Some(index);
        {
            let spare = self.spare.as_ref().map(SpareWaker::waker);
            let waker = own.as_ref().or(spare).expect("a spare waker is at hand");
            self.gate.begin(name, root, waker, self.options.budget);
        }
        loop {
            if self.tasks.get(index).pending > 0 {
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
                let (waker, hit) = used.adopt(name);
                self.gate.set_waker(own.insert(waker));
                self.tasks.get_mut(index).woken |= hit;
            }
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

    /// Puts a task that left the CPU where its tickets, or its waker, will find it.
    fn suspend(&mut self, index: u32, parked: bool) {
        let task = self.tasks.get(index);
        if !parked && !task.woken {
            let tickets = u64::from(task.waits);
            let op = if tickets == 0 { Op::Waker } else { Op::Parked { tickets } };
            emit!(self, index, Event::Block { op, ticket: None, at: None });
        }
        self.undefer(index, crate::trace::Why::Suspend);
        let task = self.tasks.get_mut(index);
        task.state = State::Parked;
        let run = task.cause;
        if mem::take(&mut task.woken) {
            let event = Event::Wake { op: WakeOp::Waker, ticket: None, cause: run };
            let seq = emit!(self, index, event);
            self.make_ready(index, seq);
        }
        if !self.scratch.yielded.is_empty() {
            let mut yielded = mem::take(&mut self.scratch.yielded);
            for ticket in yielded.drain(..) {
                self.complete_yield(ticket);
            }
            self.scratch.yielded = yielded;
        }
        if self.tasks.get(index).pending > 0 {
            self.hit_bare_wait(index);
        }
    }

    /// Answers what is filed at the gate, in order, until nothing is.
    #[inline]
    pub(crate) fn serve(&mut self) {
        while self.gate.has_filed() {
            match self.gate.take_first() {
                Some(filed) => self.serve_one(filed),
                None => self.serve_all(),
            }
        }
    }

    fn serve_all(&mut self) {
        let mut inbox = mem::take(&mut self.scratch.inbox);
        self.gate.take(&mut inbox);
        for filed in inbox.drain(..) {
            self.serve_one(filed);
        }
        self.scratch.inbox = inbox;
    }

    #[inline]
    fn serve_one(&mut self, filed: Filed) {
        match filed {
            Filed::Request { ticket, task, scope, request, site } => {
                if self.gate.is_wanted(ticket) {
                    self.counts.traps += 1;
                    self.dispatch(ticket, task, scope, request, site);
                } else {
                    drop_quietly(request);
                }
            }
            Filed::Post(post) => self.heed(post),
        }
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

    fn end_by_panic(&mut self, index: u32, panic: Box<dyn std::any::Any + Send>, run: Seq) {
        let message = panic_message(&*panic).to_owned();
        let (id, name) = self.tasks.label(index);
        let name = name.to_owned();
        announce!(self, id, &name, Event::Panic { text: message.as_str().into() });
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
    fn drop_future(&mut self, index: u32) {
        let task = self.tasks.get_mut(index);
        if let Place::Body(body) = &mut task.place {
            let name = body.name().to_owned();
            let site = body.site();
            // A stand-in keeps the name for the lines to come.
            let stand_in = crate::tasks::stand_in(name, site);
            let body = mem::replace(body, stand_in);
            drop_quietly(body);
        }
        self.serve();
    }

    /// The end of a task: its joiners hear of it, and nothing of it stays behind.
    pub(crate) fn end_task(&mut self, index: u32, end: End, cause: Seq) {
        let task = self.tasks.get(index);
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
            self.close_scope(scope, false);
        }
        self.scopes.drop_pending(&mut self.tasks, |pending| pending.task == index);
        self.scratch.answered.retain(|(task, _)| *task != index);
        self.scratch.delivered.retain(|(task, ..)| *task != index);
        self.undefer(index, crate::trace::Why::Exit);
        let exit = emit!(self, index, Event::Exit { how, cause });
        let task = self.tasks.get_mut(index);
        if task.state == State::Ready {
            self.ready.retain(|ready| *ready != index);
        }
        task.state = State::Ended;
        task.end = Some(end);
        task.waker = None;
        self.tasks.alive -= 1;
        if let Place::Main = self.tasks.get(index).place {
            self.main_ended = true;
            self.tasks.get_mut(index).detached = true;
        }
        self.wake_joiners(index, exit);
        if self.tasks.get(index).detached {
            let task = self.tasks.remove(index);
            drop_quietly(task);
        }
    }

    /// See [`Kernel::shutdown`].
    pub(crate) fn shut_down(&mut self) -> Result<(), Error> {
        let _running = Running::enter(&self.gate, self.epoch);
        self.log.look();
        self.log.now = self.machine.now();
        self.serve();
        let mut failed = Ok(());
        if self.tasks.alive > 0 {
            let tasks = self.tasks.alive as u64;
            announce!(self, 0, "kernel", Event::Phase { name: "cancel".into(), tasks });
            self.phase = self.log.seq;
            let end = self.log.now + self.options.grace;
            let rank = || Rank { class: 2, seq: 0 };
            self.grace = Some(self.timers.arm(end, Fired::GRACE, self.log.now, rank));
            let mut nobody = |_: &mut Context<'_>| Poll::Pending;
            loop {
                // Again each turn: clean-up may spawn.
                self.cancel_all();
                if self.tasks.alive == 0 || self.grace_over {
                    break;
                }
                if let Err(error) = self.turn(&mut nobody) {
                    failed = Err(error);
                    break;
                }
            }
            if let Some(grace) = self.grace.take() {
                self.timers.disarm(grace);
            }
            self.drop_all();
        }
        self.shut = true;
        let wait =
            if self.jobs.live.is_empty() { std::time::Duration::ZERO } else { self.options.grace };
        self.pool.shut_down(wait);
        self.run_wakeup();
        self.serve();
        let counters = self.counters();
        announce!(
            self,
            0,
            "kernel",
            Event::Halt {
                tasks: counters.tasks as u64,
                tickets: counters.tickets as u64,
                timers: counters.timers as u64,
                handles: counters.registered as u64,
            }
        );
        failed
    }

    fn cancel_all(&mut self) {
        for task in self.tasks.newest_first() {
            if self.tasks.get(task).cancel.is_none() {
                self.cancel_task(task, None, "shutdown", self.phase);
            }
        }
    }

    fn drop_all(&mut self) {
        let left = self.tasks.newest_first();
        if !left.is_empty() {
            let tasks = left.len() as u64;
            announce!(self, 0, "kernel", Event::Phase { name: "drop".into(), tasks });
        }
        for task in left {
            let what = "its_grace_is_over".into();
            let seq = emit!(self, task, Event::Drop { what });
            self.drop_future(task);
            self.end_task(task, End::Dropped, seq);
        }
    }

    /// Who is blocked and in what, for the error of a hang.
    fn report(&self) -> String {
        let lines: Vec<String> = self.tasks().iter().map(ToString::to_string).collect();
        lines.join("\n")
    }
}

/// Whose timer it is, in 32 bits.
#[derive(Clone, Copy)]
pub(crate) enum Fired {
    Sleep(u32),
    Scope(u32),
    Grace,
}

impl Fired {
    const SCOPE: u32 = 1 << 31;
    pub(crate) const GRACE: Owner = Owner(u32::MAX);

    pub(crate) fn sleep(ticket: u32) -> Owner {
        Owner(ticket)
    }

    pub(crate) fn scope(index: u32) -> Owner {
        Owner(index | Self::SCOPE)
    }

    fn of(owner: Owner) -> Fired {
        match owner {
            Self::GRACE => Fired::Grace,
            Owner(bits) if bits & Self::SCOPE != 0 => Fired::Scope(bits & !Self::SCOPE),
            Owner(bits) => Fired::Sleep(bits),
        }
    }
}
