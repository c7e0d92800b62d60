//! The turn: wait, arrivals, wake queue, timers, ready tasks.
//!
//! The loop of the kernel. How one task runs is in `run.rs`.

use std::mem;

use traps::Time;
use traps::core::deadlines::Due;
use traps::core::gate::Gate;
use traps::core::names::{Site, Ticket};
use traps::core::protocol::{Reply, ScopeKind};
use traps::core::records::Fired;
use traps::core::table::NONE;

use super::timers::Owner;
use super::{Core, MainPoll, Services};
use crate::limits::SKIPPED;
use crate::log::{self, KERNEL, emit, emit_for};
use crate::machine::{Machine, Until};
use crate::trace::{Event, Seq, Timer};

/// A running kernel's claim to its thread's gate. It is released even by a panic.
pub(crate) struct Running(&'static Gate);

impl Running {
    pub(crate) fn enter<M: Machine>(core: &Core<M>) -> Running {
        core.gate.enter(&core.shared);
        Running(core.gate)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Why a turn failed.
pub(crate) enum Failure {
    /// The machine failed.
    Machine(std::io::Error),
    /// Nothing can arrive any more.
    Hang,
}

impl<M: Machine> Core<M> {
    /// Makes the task of main.
    pub(crate) fn add_main(&mut self, site: Site) -> u32 {
        let (root, id) = self.gate.new_task(site);
        let task = self.tasks.add(root, id.0, 0, None);
        self.tasks.main = Some((task, site));
        self.gate.records().scopes[root.index].task = task;
        let event = Event::Spawn { parent: None, cause: None, at: Some(log::site(site)) };
        let seq = emit!(self, task, event);
        self.make_ready(task, seq);
        task
    }

    /// Runs before the first turn of a run.
    pub(crate) fn start(&mut self, services: &impl Services<M>) {
        self.look(services);
        self.now = self.machine.now();
        self.abort_run();
        self.main_ended = false;
        self.skipped.turns = 0;
        self.mark_runs();
        self.boot();
    }

    /// Handles the posts that were made while the kernel did not run. This is a turn of its own,
    /// because the log shows in which order tasks became ready in a turn.
    pub(crate) fn serve_between_runs(&mut self, services: &mut impl Services<M>) {
        self.turn += u64::from(self.gate.has_filed());
        self.serve(services);
    }

    /// One turn of the loop.
    pub(crate) fn turn(
        &mut self,
        services: &mut impl Services<M>,
        main: MainPoll<'_>,
    ) -> Result<(), Failure> {
        self.turn += 1;
        // Steps 1 and 2, with the connection deadlines that are due between them.
        self.wait(services)?;
        // Step 3.
        self.run_wakeup(services);
        // Step 4, and what foreign wakers posted in the steps so far.
        self.fire_timers(services);
        self.serve(services);
        // Step 5.
        self.mark_runs();
        self.run_ready(services, main);
        Ok(())
    }

    /// Checks whether the log is on; once a turn is often enough.
    pub(crate) fn look(&mut self, services: &impl Services<M>) {
        self.log.look();
        // The hook sees every scope.
        let is_told = self.log.listening || self.hook.is_set();
        self.gate.listen(is_told);
        self.run.is_watched = is_told || self.log.timed || services.watches();
    }

    /// Steps 1 and 2: waits for the machine, and makes the tasks ready that its arrivals concern.
    /// While tasks are ready, many turns leave this out: see [`skips`](Self::skips).
    fn wait(&mut self, services: &mut impl Services<M>) -> Result<(), Failure> {
        let busy = !self.ready.is_empty();
        if busy && self.skips() {
            return Ok(());
        }
        self.look(services);
        let sleeps = !busy && self.inbox.queue.fall_asleep();
        let until = self.until(sleeps);
        let mut arrivals = mem::take(&mut self.arrivals);
        self.counts.polls += 1;
        let waited = self.machine.wait(until, &mut arrivals);
        if sleeps {
            self.inbox.queue.wake_up();
        }
        self.now = self.machine.now();
        self.skipped.turns = 0;
        // Comes before the arrivals, because a guard wins against a value of the same turn.
        self.guarded.clear();
        self.fire_deadlines();
        for arrival in arrivals.io.drain(..) {
            self.arrive(arrival);
        }
        self.guarded.clear();
        for signal in arrivals.signals.drain(..) {
            services.signal(self, signal);
        }
        let hang = mem::take(&mut arrivals.hang);
        arrivals.bell = false;
        self.arrivals = arrivals;
        if let Err(error) = waited {
            self.fire_timers(services);
            return Err(Failure::Machine(error));
        }
        if hang { Err(Failure::Hang) } else { Ok(()) }
    }

    /// How long the machine may wait.
    fn until(&mut self, sleeps: bool) -> Until {
        if !sleeps {
            return Until::Now;
        }
        if self.log.listening {
            self.log.idle();
        }
        // An observer of the log may have woken a task.
        if self.gate.has_filed() {
            return Until::Now;
        }
        let by = [self.timers.next(), self.next_scan(), self.bound].into_iter().flatten().min();
        Until::Arrival { by, outside: self.external > 0 || self.busy_threads > 0 }
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

    /// When to scan the deadline table next: not before a deadline can be due, and, unless a task
    /// fired one, not before a tick has passed since the last scan.
    fn next_scan(&self) -> Option<Time> {
        let soonest = self.shared.deadlines.soonest()?;
        let is_fired = soonest == Time::ZERO;
        Some(if is_fired {
            soonest
        } else {
            soonest.max(self.scanned + self.options.tick_in_force())
        })
    }

    /// Scans the table of connection deadlines if it is time, and fires those that are due.
    #[inline]
    fn fire_deadlines(&mut self) {
        if self.next_scan().is_some_and(|at| at <= self.now) {
            self.scan_deadlines();
        }
    }

    #[cold]
    fn scan_deadlines(&mut self) {
        self.scanned = self.now;
        self.counts.scans += 1;
        let mut due = mem::take(&mut self.due);
        self.shared.deadlines.scan(self.now, &mut due);
        emit_for!(self, KERNEL, {
            let armed = self.shared.deadlines.armed() as u64;
            Event::Tick { fired: due.len() as u64, armed }
        });
        for Due { deadline, number, slot, scope } in due.drain(..) {
            let cause = self.log.armed.get(&number).copied().unwrap_or_default();
            let line = self.log_fire(Timer::Deadline(u64::from(number)), deadline, cause);
            if let Some(found) = self.gate.records().scopes.get_mut(scope)
                && is_on(found.kind, slot)
            {
                found.deadline = deadline;
            } else {
                continue;
            }
            self.fire(scope, Fired { line, ..Fired::default() });
        }
        self.due = due;
    }

    /// Step 4: fires the timers that are due, in the order of their deadlines; of equal ones sleeps
    /// first.
    #[inline]
    pub(crate) fn fire_timers(&mut self, services: &mut impl Services<M>) {
        while let Some((deadline, owner)) = self.timers.pop(self.now) {
            match owner {
                Owner::Sleep(ticket) => self.end_sleep(ticket, deadline),
                Owner::Scope(scope) => {
                    let mut records = self.gate.records();
                    let Some(found) = records.scopes.get_mut(scope) else { continue };
                    found.timer = NONE;
                    let (timer, cause) = (Timer::Scope(found.number), found.line);
                    drop(records);
                    let line = self.log_fire(timer, deadline, cause);
                    self.fire(scope, Fired { line, ..Fired::default() });
                }
                Owner::Service(which) => services.timer(self, which, deadline),
                Owner::Nobody => {}
            }
        }
    }

    #[inline]
    fn end_sleep(&mut self, ticket: Ticket, deadline: Time) {
        let mut fire = 0;
        if self.log.listening {
            let (number, cause) = self.log.number_of(ticket);
            fire = self.log_fire(Timer::Sleep(number), deadline, cause);
        }
        self.complete(ticket, Reply::Time(self.now), fire);
    }

    /// The line of a timer or a connection deadline that fires.
    pub(crate) fn log_fire(&mut self, timer: Timer, deadline: Time, cause: Seq) -> Seq {
        let event = Event::Fire { timer, deadline, cause };
        emit_for!(self, KERNEL, event, log::late(deadline, self.now))
    }
}

/// Whether the deadline of a scope lies in that slot of the deadline table.
fn is_on(kind: ScopeKind, slot: u32) -> bool {
    match kind {
        ScopeKind::Deadline(own) | ScopeKind::Guard { slot: Some(own), .. } => own == slot,
        _ => false,
    }
}
