//! The turn: wait, completed I/O, wake queue, deadlines, ready tasks.
//!
//! The loop of the kernel. How one task runs is in `run.rs`.

use std::mem;
use std::rc::Rc;

use traps::gate::Gate;
use traps::protocol::{Direction, Site};
use traps::scope_table::ScopeTable;

use crate::emit::{KERNEL, WAKEUP, drop_quietly, emit, emit_for};
use crate::kernel::{Kernel, MainPoll};
use crate::log;
use crate::longrun::{Came, Done, Skipped};
use crate::machine::{Machine, Until};
use crate::options::{Error, Options};
use crate::owner::{Owner, Whose};
use crate::task::{End, NONE};
use crate::timers::{Class, Rank};
use crate::trace::{self, Event, Op, Timer, WakeOp};
use crate::waits::Wait;
use crate::wake;
use crate::waker::Message;

/// Ends the kernel's hold on its thread's gate, also by a panic.
pub(crate) struct Running(Rc<Gate>, u32);

impl Running {
    pub(crate) fn enter(gate: &Rc<Gate>, epoch: u32, scopes: &Rc<ScopeTable>) -> Running {
        gate.enter(epoch, scopes);
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
        let _running = Running::enter(&self.gate, self.epoch, self.scopes.table());
        let _closing = self.enter_closing();
        self.start()?;
        self.main_ended = false;
        let task = self.tasks.add_main(site, self.timers.table().made_so_far());
        let task = self.settle_in(task).index;
        let event = Event::Spawn { parent: None, cause: None, at: Some(log::site(site)) };
        let seq = emit!(self, task, event);
        self.make_ready(task, seq, Came::Spawn);
        // What was posted between two runs goes before what is due in this one.
        self.serve_between_runs();
        while !self.main_ended {
            if let Err(error) = self.turn(main) {
                let seq = emit!(self, task, Event::Drop { what: "its_run_failed".into() });
                self.end_task(task, End::Dropped, seq);
                return Err(error);
            }
            if self.is_closing() && !self.main_ended && self.end_main(task) {
                return Err(Error::Overdue);
            }
        }
        self.serve();
        Ok(())
    }

    /// Before the first turn of a run.
    pub(crate) fn start(&mut self) -> Result<(), Error> {
        self.start_watchdog().map_err(Error::Machine)?;
        self.watch_own_signals().map_err(Error::Machine)?;
        self.look();
        self.log.now = self.machine.now();
        if self.wakeup.seq == 0 {
            self.boot();
        }
        Ok(())
    }

    /// The first lines of a trace.
    fn boot(&mut self) {
        let Options { policy, budget, grace, threads, longrun, watchdog, .. } = &self.options;
        let shown = |span: &Option<_>| {
            span.map_or_else(|| "off".to_owned(), |span| trace::Span(span).to_string())
        };
        let (longrun, watchdog) = (shown(longrun), shown(watchdog));
        let tick = trace::Span(self.options.tick_over(None));
        let grace = trace::Span(*grace);
        let clock = self.machine.clock_name();
        self.log.boot(&format!(
            "clock={clock} policy={policy} tick={tick} budget={budget} grace={grace} \
                 threads={threads} longrun={longrun} watchdog={watchdog}"
        ));
        self.wakeup.seq =
            emit_for!(self, WAKEUP, Event::Spawn { parent: None, cause: None, at: None });
    }

    /// One turn of the loop.
    pub(crate) fn turn(&mut self, main: MainPoll<'_>) -> Result<(), Error> {
        self.log.turn += 1;
        self.wait()?;
        self.run_wakeup();
        self.fire_deadlines();
        self.serve();
        self.run_ready(main);
        Ok(())
    }

    /// Learns whether anybody listens; once a turn is often enough.
    pub(crate) fn look(&mut self) {
        self.log.look();
        self.longrun.since_then = Done::Waited;
        let table = self.timers.table();
        table.listen(self.log.is_listening());
        self.log.count_untold(table.untold());
        // A sweep wants to stand before each of them.
        self.scopes.table().tell(self.log.is_listening() || self.inject.from != u64::MAX);
    }

    /// Steps 1 and 2: waits for the machine, and makes ready whom its arrivals concern.
    fn wait(&mut self) -> Result<(), Error> {
        let busy = !self.ready.is_empty();
        if !busy {
            self.skipped = Skipped::NONE;
        } else if self.skips() {
            // Before what other threads sent: a guard wins against it.
            self.take_due();
            return Ok(());
        }
        while self.wait_once(busy)? {}
        Ok(())
    }

    /// Waits for the machine. True if the wait is to go on: it was over for a look at the far
    /// timers, and none had come near. How often there is such a look hangs on the order of the
    /// arms, so it is no turn.
    #[inline(always)]
    fn wait_once(&mut self, busy: bool) -> Result<bool, Error> {
        self.look();
        let outside = self.is_awaited_outside();
        let by = [self.timers.next(), self.bound].into_iter().flatten().min();
        let mut until = Until::Arrival { by, outside };
        let sleeps = !busy && self.wakes.fall_asleep();
        if !sleeps {
            until = Until::Now;
        } else {
            if self.log.is_listening() {
                self.log.idle();
            }
            if self.gate.has_filed() {
                // Who listens, or a logger at `info`, has woken somebody.
                until = Until::Now;
            }
        }
        let mut arrivals = mem::take(&mut self.scratch.arrivals);
        self.counts.polls += 1;
        let waited = self.machine.wait(until, &mut arrivals);
        if sleeps {
            self.wakes.wake_up();
        }
        // Also where nothing has a timer: lines, interrupts and arms have this time.
        self.log.now = self.machine.now();
        self.timers.table().set_exact(self.log.now);
        self.timers.table().columns().forget_past(self.log.now);
        let in_vain = self.take_due() && sleeps && arrivals.are_none();
        for arrival in arrivals.io.drain(..) {
            self.arrive(arrival);
        }
        for signal in arrivals.signals.drain(..) {
            self.meet_signal(signal);
        }
        let hang = arrivals.hang && self.is_quiescent();
        arrivals.clear();
        self.scratch.arrivals = arrivals;
        if let Err(error) = waited {
            self.fail();
            return Err(Error::Machine(error));
        }
        if hang { Err(Error::Hang(self.report())) } else { Ok(in_vain) }
    }

    /// The machine has failed.
    #[cold]
    #[inline(never)]
    fn fail(&mut self) {
        self.ending.failed = true;
        // Or what they were set for would be gone when the shutdown comes to them.
        self.fire_deadlines();
        // Nobody is to give orders any more. What jobs come to and whom they wake is heeded in a
        // shutdown.
        self.wakes.seal();
        let mut messages = mem::take(&mut self.scratch.messages);
        self.wakes.drain(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Spawn(..) | Message::Cancel { .. } | Message::ShutDown(_) => {
                    drop_quietly(message);
                }
                news => {
                    self.wakes.push(news);
                }
            }
        }
        self.scratch.messages = messages;
    }

    /// Step 3: the kernel's own task moves what other threads sent to the ready queue.
    #[inline]
    pub(crate) fn run_wakeup(&mut self) {
        let nothing_to_say = self.wakeup.parked || self.wakeup.seq == 0;
        if !(nothing_to_say && self.wakes.is_empty()) {
            self.move_messages();
        }
    }

    #[inline(never)]
    fn move_messages(&mut self) {
        self.longrun.since_then = Done::Served;
        let started = self.wakeup.parked;
        if self.wakeup.seq == 0 {
            // A kernel that is shut down before its first run.
            self.boot();
        }
        // A shutdown may name the line of this as its cause, at any level.
        self.log.count_untold(self.timers.table().untold());
        // It waits without a ticket: nothing of it is left at a halt.
        let alias = self.registrations.bell();
        let direction = Direction::Read;
        let mut cause = self.wakeup.seq;
        if started {
            let op = WakeOp::Io { alias, direction };
            cause = emit_for!(self, WAKEUP, Event::Wake { op, ticket: None, cause });
        }
        let event = Event::Run { cause, answered: Vec::new().into() };
        let run = emit_for!(self, WAKEUP, event);
        let mut messages = mem::take(&mut self.scratch.messages);
        self.wakes.drain(&mut messages);
        let came = messages.len();
        self.counts.batches += u64::from(came > 0);
        self.counts.wakes += came as u64;
        for message in messages.drain(..) {
            self.heed_message(message, run);
        }
        wake::trim(&mut messages, came);
        self.scratch.messages = messages;
        self.wakeup.parked = true;
        let op = Op::Io { alias, direction };
        let event = Event::Block { op, ticket: None, at: None };
        self.wakeup.seq = emit_for!(self, WAKEUP, event);
    }

    /// Does what another thread asked for.
    fn heed_message(&mut self, message: Message, run: trace::Seq) {
        match message {
            Message::Wake(task) => self.wake_task(task, run),
            Message::Done(done) => self.job_done(done),
            Message::WakeTicket(ticket) => self.wake_ticket(ticket, run),
            Message::Spawn(order) => self.spawn_from_outside(order, run),
            Message::Cancel { task, reason } => self.cancel_from_outside(&task, reason, run),
            Message::ShutDown(reason) => self.begin_shutdown(reason, run),
        }
    }

    /// Takes the timers that are due out of the queue, by deadline and rank. All are gone from
    /// their owners before the first of them acts. Whether it looked for them in vain.
    #[inline]
    fn take_due(&mut self) -> bool {
        self.timers.next().is_some_and(|next| next <= self.log.now) && !self.take_expired()
    }

    /// Whether any came near or is due.
    #[inline(never)]
    fn take_expired(&mut self) -> bool {
        let mut due = mem::take(&mut self.scratch.due);
        let before = due.len();
        let (waits, scopes) = (&self.waits, &self.scopes);
        let rank = |owner: Owner| match owner.whose() {
            Whose::Sleep(index) => {
                let entry = waits.get(index).expect("a timer's ticket is parked");
                Rank { class: Class::Sleep, seq: entry.number }
            }
            Whose::Scope(index) => {
                Rank { class: Class::Timeout, seq: scopes.get(index).serial.get() }
            }
            Whose::Guard(_) | Whose::Bare(_) => unreachable!("the queue ranks deadlines itself"),
            Whose::Phase => Rank { class: Class::Phase, seq: 0 },
            Whose::Retry => Rank { class: Class::Retry, seq: 0 },
        };
        let moved = self.timers.expire(self.log.now, &mut due, rank);
        if let Some(moved) = moved {
            let far = self.timers.far() as u64;
            emit_for!(self, KERNEL, Event::Tick { moved, far });
        }
        for timer in &due[before..] {
            match timer.owner.whose() {
                Whose::Sleep(index) => {
                    let entry = self.waits.get_mut(index).expect("a timer's ticket is parked");
                    entry.wait = Wait::Sleep { timer: None };
                }
                Whose::Scope(index) => self.scopes.get_mut(index).set_timer(None),
                Whose::Guard(_) | Whose::Bare(_) => {}
                Whose::Retry => self.jobs.expire_retry(),
                Whose::Phase => self.ending.timer = None,
            }
        }
        let any = moved.is_some() || !due.is_empty();
        self.scratch.due = due;
        self.mark_expiring();
        any
    }

    /// Step 4: expired deadlines, in the order of their deadlines and ranks.
    #[inline(always)]
    fn fire_deadlines(&mut self) {
        if !self.scratch.due.is_empty() {
            self.fire_due();
        }
    }

    #[inline(never)]
    fn fire_due(&mut self) {
        self.longrun.since_then = Done::Served;
        let now = self.log.now;
        for place in 0..self.scratch.due.len() {
            let timer = self.scratch.due[place];
            let deadline = timer.at;
            match timer.owner.whose() {
                Whose::Sleep(index) => {
                    // An earlier timer of this batch may have interrupted it.
                    let Some(entry) = self.waits.get(index) else { continue };
                    let (number, cause) = (entry.number, entry.seq);
                    if self.is_doomed(index) {
                        continue;
                    }
                    let timer = Timer::Sleep(number);
                    let event = Event::Fire { timer, deadline, cause };
                    let late = log::late(deadline, now);
                    let seq = emit_for!(self, KERNEL, event, late);
                    let result = Ok(traps::protocol::Answer::Time(now));
                    self.complete(index, result, WakeOp::Sleep, seq);
                }
                Whose::Scope(index) => {
                    self.fire_around(index, deadline);
                    if self.scopes.get(index).fired().is_none() {
                        self.fire_scope(index, deadline);
                    }
                }
                Whose::Guard(_) | Whose::Bare(_) => self.fire_deadline(timer),
                Whose::Phase => self.end_phase(deadline),
                Whose::Retry => self.retry_threads(),
            }
        }
        self.forget_due();
    }

    /// Step 5: runs each task that is ready *now* once. Who becomes ready meanwhile waits for the
    /// next turn, so that no chain of wakes can starve I/O.
    pub(crate) fn run_ready(&mut self, main: MainPoll<'_>) {
        self.begin_runs();
        self.ready.begin_turn();
        while let Some(task) = self.ready.take() {
            if task == NONE {
                // It was dropped while it was ready.
                continue;
            }
            self.run_task(task, main);
            self.running = None;
            // A waker that was called as it left the CPU, or what went with it, may have posted.
            self.serve();
            if self.main_ended {
                return;
            }
        }
    }

    /// Who is blocked and in what, for the error of a hang.
    pub(crate) fn report(&self) -> String {
        let lines: Vec<String> = self.tasks().iter().map(ToString::to_string).collect();
        lines.join("\n")
    }
}
