//! The turn: wait, arrivals, wake queue, timers, ready tasks.
//!
//! The loop of the kernel. How one task runs is in `run.rs`.

use std::mem;

use traps::Time;
use traps::deadline::{self, Due};
use traps::gate::Gate;
use traps::protocol::Site;

use crate::kernel::{Kernel, MainPoll};
use crate::limits::SKIPPED;
use crate::log::{self, KERNEL, WAKEUP, emit, emit_for};
use crate::machine::{Machine, Until};
use crate::options::Error;
use crate::task::End;
use crate::timers::Owner;
use crate::trace::{Event, Seq, Timer, WakeOp};
use crate::waits::On;

/// A running kernel's claim to its thread's gate. It is released even by a panic.
pub(crate) struct Running(&'static Gate);

impl Running {
    pub(crate) fn enter<M: Machine>(kernel: &Kernel<M>) -> Running {
        kernel.gate.enter(&kernel.shared);
        Running(kernel.gate)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.leave());
    }
}

/// How many turns passed since the last look at the machine.
#[derive(Default)]
pub(crate) struct Skipped {
    turns: u32,
    /// The machine's mark at that look.
    since: u64,
}

impl<M: Machine> Kernel<M> {
    /// Runs turns until main has ended.
    pub(crate) fn run_main(&mut self, main: MainPoll<'_>, site: Site) -> Result<(), Error> {
        let _running = Running::enter(self);
        self.start()?;
        let task = self.tasks.add_main(self.gate.new_task(), site);
        let event = Event::Spawn { parent: None, cause: None, at: Some(log::site(site)) };
        let seq = emit!(self, task, event);
        self.make_ready(task, seq);
        // Posts that were made between two runs go before timers that are due in this run.
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

    /// Runs before the first turn of a run.
    pub(crate) fn start(&mut self) -> Result<(), Error> {
        self.start_watchdog().map_err(Error::Machine)?;
        self.watch_own_signals().map_err(Error::Machine)?;
        self.look();
        self.log.now = self.machine.now();
        self.main_ended = false;
        self.skipped.turns = 0;
        self.mark_runs();
        self.boot();
        Ok(())
    }

    /// Handles the posts that were made while the kernel did not run. This is a turn of its own,
    /// because the log shows in which order tasks became ready in a turn.
    pub(crate) fn serve_between_runs(&mut self) {
        self.log.turn += u64::from(self.gate.has_filed());
        self.serve();
    }

    /// One turn of the loop.
    pub(crate) fn turn(&mut self, main: MainPoll<'_>) -> Result<(), Error> {
        self.log.turn += 1;
        // Steps 1 and 2, with the connection deadlines that are due between them.
        self.wait()?;
        // Step 3.
        self.run_wakeup();
        // Step 4, and what foreign wakers posted in it.
        self.fire_timers();
        self.serve();
        // Step 5.
        self.mark_runs();
        self.run_ready(main);
        Ok(())
    }

    /// Checks whether the log is on; once a turn is often enough.
    pub(crate) fn look(&mut self) {
        self.log.look();
        // A hook is called before every trap, so it needs to know every scope.
        let is_told = self.log.listening || self.hook.is_set();
        self.gate.listen(is_told);
        self.is_watched = is_told || self.log.timed || self.watchdog.is_on();
    }

    /// Steps 1 and 2: waits for the machine, and makes the tasks ready that its arrivals concern.
    fn wait(&mut self) -> Result<(), Error> {
        let busy = !self.ready.is_empty();
        if busy && self.skips() {
            return Ok(());
        }
        self.look();
        let by = [self.timers.next(), self.next_scan(), self.bound].into_iter().flatten().min();
        let sleeps = !busy && self.inbox.queue.fall_asleep();
        let mut until = Until::Now;
        if sleeps {
            if self.log.listening {
                self.log.idle();
            }
            // An observer of the log may have woken a task.
            if !self.gate.has_filed() {
                until = Until::Arrival { by, outside: self.is_awaited_outside() };
            }
        }
        let mut arrivals = mem::take(&mut self.arrivals);
        self.counts.polls += 1;
        let waited = self.machine.wait(until, &mut arrivals);
        if sleeps {
            self.inbox.queue.wake_up();
        }
        self.log.now = self.machine.now();
        self.skipped.turns = 0;
        // Comes before the arrivals, because a guard wins against a value of the same turn.
        self.fire_deadlines();
        for arrival in arrivals.io.drain(..) {
            self.arrive(arrival);
        }
        self.guarded.clear();
        for signal in arrivals.signals.drain(..) {
            self.meet_signal(signal);
        }
        let hang = mem::take(&mut arrivals.hang) && self.is_quiescent();
        arrivals.bell = false;
        self.arrivals = arrivals;
        if let Err(error) = waited {
            self.fail();
            return Err(Error::Machine(error));
        }
        if hang { Err(Error::Hang(self.report())) } else { Ok(()) }
    }

    /// Whether this turn, which has tasks to run, does not look at the machine. At most 61 turns in
    /// a row do not, and only while the coarse clock shows the same time. Otherwise tasks that hand
    /// work to each other would pay for a system call in each turn. The bound keeps busy tasks from
    /// delaying all I/O.
    #[inline]
    fn skips(&mut self) -> bool {
        self.skipped.turns += 1;
        // The end of the last run, if that was measured.
        let measured = self.longrun.measures();
        let mark = if measured { self.longrun.since } else { self.machine.mark() };
        self.skipped.turns <= SKIPPED && self.skipped.since == mark
    }

    /// Marks the start of the runs of a turn.
    #[inline]
    fn mark_runs(&mut self) {
        if self.skipped.turns == 0 {
            self.skipped.since = self.machine.mark();
            self.longrun.since = self.skipped.since;
        }
    }

    /// The machine has failed, so no new requests are accepted from other threads. Results of jobs
    /// and wakes are still handled in a shutdown.
    #[cold]
    fn fail(&mut self) {
        self.ending.failed = true;
        self.fire_timers();
        self.seal_messages();
    }

    /// When to scan the deadline table next: not before a deadline can be due, and not before a
    /// tick has passed since the last scan.
    fn next_scan(&self) -> Option<Time> {
        let soonest = self.shared.deadlines.soonest()?;
        Some(soonest.max(self.scanned + self.options.tick_in_force()))
    }

    /// Scans the table of connection deadlines if it is time, and fires those that are due.
    #[inline]
    fn fire_deadlines(&mut self) {
        if self.next_scan().is_some_and(|at| at <= self.log.now) {
            self.scan_deadlines();
        }
    }

    #[cold]
    fn scan_deadlines(&mut self) {
        self.scanned = self.log.now;
        self.counts.scans += 1;
        let mut due = mem::take(&mut self.due);
        self.shared.deadlines.scan(self.log.now, &mut due);
        emit_for!(self, KERNEL, {
            let armed = self.shared.deadlines.armed() as u64;
            Event::Tick { fired: due.len() as u64, armed }
        });
        for Due { deadline, number, slot, owner } in due.drain(..) {
            let (timer, cause) = (Timer::Deadline(u64::from(number)), self.log.armed_by(number));
            let fire = self.log_fire(timer, deadline, cause);
            match owner {
                deadline::Owner::Scope(index) => {
                    if self.scopes.guards(index, slot) {
                        self.fire_scope(index, deadline, fire);
                    }
                }
                deadline::Owner::Task(task) => {
                    if let Some(task) = self.tasks.find(task)
                        && !self.tasks[task].is_ended()
                    {
                        self.fire_deadline(task, slot, deadline, fire);
                    }
                }
            }
        }
        self.due = due;
    }

    /// Step 4: fires the timers that are due, in the order of their deadlines; of equal ones sleeps
    /// first.
    #[inline]
    fn fire_timers(&mut self) {
        while let Some((deadline, owner, timer)) = self.timers.pop(self.log.now) {
            match owner {
                Owner::Sleep(task) => self.end_sleep(task, timer, deadline),
                Owner::Scope(index) => {
                    let scope = &mut self.scopes[index];
                    scope.timer = None;
                    let (timer, cause) = (Timer::Scope(scope.number), scope.seq);
                    let fire = self.log_fire(timer, deadline, cause);
                    self.fire_scope(index, deadline, fire);
                }
                Owner::Retry => self.retry_threads(),
                Owner::Phase => self.end_phase(deadline),
            }
        }
    }

    fn end_sleep(&mut self, task: u32, timer: crate::timers::TimerId, deadline: Time) {
        let is_it = |on: &On| matches!(on, On::Sleep(other) if *other == timer);
        let sleep = self.tasks[task].parked().find(|wait| is_it(&wait.on));
        let serial = sleep.expect("a sleep that ends otherwise cancels its timer").serial;
        let (number, cause) = self.log.number_of(&self.tasks[task], serial);
        let fire = self.log_fire(Timer::Sleep(number), deadline, cause);
        let ticket = traps::protocol::Ticket { task, serial };
        self.complete(ticket, On::Slept(self.log.now), |_| (WakeOp::Sleep, fire));
    }

    /// The line of a timer or a connection deadline that fires.
    pub(crate) fn log_fire(&mut self, timer: Timer, deadline: Time, cause: Seq) -> Seq {
        let event = Event::Fire { timer, deadline, cause };
        emit_for!(self, KERNEL, event, log::late(deadline, self.log.now))
    }

    /// The tasks that are blocked and their waits, for the error of a hang.
    fn report(&self) -> String {
        self.task_table().to_string().trim_end().to_owned()
    }

    /// The first lines of a trace.
    pub(crate) fn boot(&mut self) {
        if self.wakeup.has_begun {
            return;
        }
        self.wakeup.has_begun = true;
        let facts = self.options.facts(self.machine.clock_name());
        log::announce!(self, KERNEL, Event::Boot { text: facts.into() });
        let event = Event::Spawn { parent: None, cause: None, at: None };
        self.wakeup.line = emit_for!(self, WAKEUP, event);
    }
}
