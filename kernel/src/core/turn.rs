//! The main loop of the kernel.
//!
//! One pass of the loop is a *turn*. A turn finds out what has happened since the last one, makes
//! the tasks that waited for it ready, and then runs every ready task once:
//!
//! 1. **Wait.** Ask the machine (epoll, or the simulator) for events. Block only if no task is
//!    ready.
//! 2. **Arrivals.** At most once a tick of the deadline table (0.3 s for example), fire the
//!    connection deadlines that are due. Then wake the tasks whose descriptors are ready, and
//!    deliver signals.
//! 3. **Wake queue.** Handle the messages that other threads have sent.
//! 4. **Timers.** Fire the sleeps and timeouts that are due.
//! 5. **Run.** Poll each task that is ready now, once (`run.rs`).
//!
//! Only step 5 polls tasks. Step 3 has a `run` line of `wakeup`, but that task is the kernel itself
//! and has no future. The other steps write results into the records of waits, and append tasks to
//! the ready queue. A task that becomes ready during step 5 runs in the next turn, so no chain of
//! wake-ups can hold the loop inside step 5.
//!
//! Suppose `main` spawns `child` and sleeps for 1 s, and `child` sleeps for 0.5 s:
//!
//! ```text
//! turn 1  run     main: spawns child (ready, but not before turn 2), sleeps until 1.0
//! turn 2  wait    child is ready, so do not block
//!         run     child: sleeps until 0.5
//! turn 3  wait    nothing is ready: block until 0.5, the earliest timer
//!         timers  child's sleep ends, so child is ready
//!         run     child: ends
//! turn 4  wait    block until 1.0, and so on with main
//! ```
//!
//! # The order of the steps decides ties
//!
//! A parked wait keeps the first result that is written to it. Arrivals come before timers. So if a
//! value and a timeout come in the same turn, the value wins, however late the kernel is. A
//! connection deadline is meant to beat a value of the same turn, so it fires before the arrivals.
//!
//! # When the kernel may block
//!
//! Step 1 blocks only if no wake-up can be missed: no task is ready, no post is filed at the gate,
//! and the wake queue is empty and will ring the bell at the next push. The wait lasts until an
//! event arrives, or until the earliest timer (plus the timer slack, if the options set one) or the
//! next scan of the deadline table is due.
//!
//! # Why not the obvious way
//!
//! - *Run tasks until none is ready.* Two tasks that keep waking each other would starve all I/O
//!   and all timers.
//! - *Poll a task as soon as it is woken.* A wake-up may come from inside another task's poll, so
//!   polls would nest without bound. With one queue, tasks run in the order in which they became
//!   ready, and the log can show that order.
//! - *Ask the machine in every turn.* Tasks that only hand work to each other would pay for a
//!   system call per turn. While tasks are ready, [`Core::skips`] therefore leaves out steps 1 and
//!   2, for a bounded number of turns and a bounded time.

use std::mem;

use traps::Time;
use traps::internal::gate::{Gate, set_listening};
use traps::internal::protocol::Reply;
use traps::internal::table::{Site, TaskIndex, Ticket};
use traps::internal::tape::{self, Mode};

use super::tasks::KernelTask;
use super::timers::{Owner, lives};
use super::{Core, MainPoll, Services};
use crate::log::lines::emit;
use crate::log::words;
use crate::machine::{Machine, WaitLimit};
use crate::options::SKIPPED;
use crate::parts::wakers::Message;
use crate::trace::{Event, Parent, Timer};

/// A guard that marks the kernel as running. Its drop releases the gate, even after a panic.
pub(crate) struct Running(&'static Gate);

impl Running {
    pub(crate) fn begin<M: Machine>(core: &Core<M>) -> Running {
        core.sched.gate.start(&core.sched.shared);
        Running(core.sched.gate)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The reason why a turn failed.
pub(crate) enum Failure {
    /// The machine failed.
    Machine(std::io::Error),
    /// No arrival can come any more, so the wait would never have ended.
    Hang,
}

impl<M: Machine> Core<M> {
    /// Makes the task of main.
    pub(crate) fn add_main(&mut self, site: Site) -> TaskIndex {
        let (key, _) = self.sched.gate.new_task(site);
        let task = self.sched.tasks.add(key, KernelTask::new(key, "main".into()));
        self.sched.tasks.main = Some(task);
        self.sched.make_ready(task);
        let event = Event::Spawn { parent: Parent::Kernel, at: Some(words::site(site)) };
        emit!(self.sched, task, event);
        task
    }

    /// Prepares for the first turn of a run.
    pub(crate) fn start(&mut self, services: &impl Services<M>) {
        self.refresh_flags(services);
        self.sched.now = self.sched.machine.now();
        self.main_ended = false;
        // As after a wait, so that `mark_runs` takes a new mark.
        self.skipped.turns = 0;
        let last = self.longrun.since;
        self.mark_runs();
        // From the end of the last run of the last `Kernel::run` until now, the thread may have
        // used the CPU, though no task ran. So this time counts toward the next reading of the CPU
        // time.
        let busy = self.longrun.since.wrapping_sub(last);
        self.longrun.count_busy(&mut self.sched.machine, busy);
        self.boot();
    }

    /// Handles the posts that were made while the kernel did not run. They get a turn number of
    /// their own, because the tasks that they make ready were ready before the first turn.
    pub(crate) fn serve_between_runs(&mut self, services: &mut impl Services<M>) {
        self.sched.turn += u64::from(self.sched.gate.has_filed());
        self.serve(services);
        // For tests: an observer that wants the state gets it here, where no event is half handled.
        self.between_events();
    }

    /// Runs one turn of the loop.
    pub(crate) fn turn(
        &mut self,
        services: &mut impl Services<M>,
        main: MainPoll<'_>,
    ) -> Result<(), Failure> {
        debug_assert!(self.sched.run.task.is_none(), "no task runs between two turns");
        if self.sched.log.wants_head {
            self.name_lines_in_force();
        }
        self.sched.turn += 1;
        // Steps 1 and 2.
        self.wait(services)?;
        // Step 3.
        self.run_wakeup(services);
        // Step 4. Then the posts of the wakers that the steps so far have called, so that the tasks
        // that they make ready still run in this turn.
        self.fire_timers(services);
        self.serve(services);
        // Step 5.
        self.mark_runs();
        self.run_ready(services, main);
        Ok(())
    }

    /// Updates whether the log is on, and whether runs are watched. Once for each wait is often
    /// enough.
    pub(crate) fn refresh_flags(&mut self, services: &impl Services<M>) {
        self.sched.log.refresh_flags();
        // Scopes make a post only while tasks listen, and the hook needs these posts.
        let is_told = self.sched.log.listening || self.hook.is_set();
        set_listening(is_told || M::IS_TAPED && tape::mode() != Mode::Off);
        self.sched.run.is_watched = is_told || self.sched.log.timed || services.watches();
    }

    /// Waits for the machine, and wakes the tasks that its arrivals concern (steps 1 and 2). While
    /// tasks are ready, many turns skip this: see [`skips`](Self::skips).
    fn wait(&mut self, services: &mut impl Services<M>) -> Result<(), Failure> {
        let busy = !self.sched.ready.is_empty();
        if busy && self.skips() {
            return Ok(());
        }
        self.refresh_flags(services);
        // Announce the sleep before the wait begins. A push after this rings the bell, which ends
        // the wait; a push before it makes this `false`. If the kernel only looked whether the
        // queue is empty, a push between the look and the wait would ring nothing, and its task
        // would sleep on.
        let sleeps = !busy && self.wakeup.inbox.queue.fall_asleep();
        let until = self.until(sleeps);
        let mut arrivals = mem::take(&mut self.arrivals);
        self.machine_waits += 1;
        let before = self.sched.now;
        let waited = self.sched.machine.wait(until, &mut arrivals);
        // An awake kernel looks at the queue in each turn, so pushes need not ring.
        if sleeps {
            self.wakeup.inbox.queue.wake_up();
        }
        // One reading for all arrivals: they came in the same wait, and the log must not show an
        // order between them.
        self.sched.now = self.sched.machine.now();
        debug_assert!(self.sched.now >= before, "the clock does not go back");
        self.skipped.turns = 0;
        // For the log: the waits that deadlines end in this turn, with a line if their descriptor
        // turns out to be ready.
        self.handles.guarded.clear();
        // The deadlines go before the arrivals, because a guard (a timeout that wins ties) must
        // fire before a value of the same turn. A write that is ready at 5.000 s must not save a
        // client whose deadline was 5.000 s.
        self.fire_deadlines();
        for arrival in arrivals.io.drain(..) {
            self.handles.arrive(&mut self.sched, arrival);
            self.between_events();
        }
        for signal in arrivals.signals.drain(..) {
            services.signal(self, signal);
            self.between_events();
        }
        let hang = mem::take(&mut arrivals.hang);
        // The bell has ended the wait, and has nothing more to say.
        arrivals.bell = false;
        self.arrivals = arrivals;
        if let Err(error) = waited {
            // A failed wait ends `Kernel::run`. What is due by now still fires first, because the
            // time has passed. After a hang nothing is due.
            self.fire_timers(services);
            return Err(Failure::Machine(error));
        }
        if hang { Err(Failure::Hang) } else { Ok(()) }
    }

    /// Returns the limit of the machine's wait.
    fn until(&mut self, sleeps: bool) -> WaitLimit {
        if !sleeps {
            return WaitLimit::Now;
        }
        debug_assert!(self.sched.ready.is_empty(), "a kernel with a ready task does not block");
        if self.sched.log.listening {
            self.sched.log.idle();
        }
        // An observer of the log may have woken a task.
        if self.sched.gate.has_filed() {
            return WaitLimit::Now;
        }
        // The loop in `kernel.rs` has called `next_live` before this turn, so the soonest timer is
        // live. With the slack, timers that are due soon after share one turn.
        let timer = self.timers.soonest().map(|at| at + self.options.timer_slack);
        let scan = self.scans.next(&self.sched.shared.deadlines);
        let by = [timer, scan, self.bound].into_iter().flatten().min();
        // A virtual clock may jump to `by` only if nothing outside can come first.
        WaitLimit::Arrival { by, outside: self.sched.external > 0 || self.busy_threads > 0 }
    }

    /// Counts a turn that has tasks to run, and returns whether the turn leaves out steps 1 and 2.
    /// At most 61 turns in a row skip epoll, and none once the coarse clock has ticked. Otherwise
    /// tasks that hand work to each other would pay for a system call in each turn. The bound keeps
    /// busy tasks from delaying all I/O.
    #[inline]
    fn skips(&mut self) -> bool {
        self.skipped.turns += 1;
        // If `longrun` measures, it has read the cheap clock at the end of the last run.
        let measured = self.longrun.measures();
        let mark = if measured { self.longrun.since } else { self.sched.machine.mark() };
        self.skipped.turns <= SKIPPED && self.skipped.since == mark
    }

    /// Marks the start of the runs, if this turn has waited for the machine.
    #[inline]
    fn mark_runs(&mut self) {
        // A turn that leaves out the wait continues the time of the turn before.
        if self.skipped.turns == 0 {
            // From the last mark to the end of the last run: what the runs since then have taken.
            let busy = self.longrun.since.wrapping_sub(self.skipped.since);
            self.longrun.count_busy(&mut self.sched.machine, busy);
            self.skipped.since = self.sched.machine.mark();
            self.longrun.since = self.skipped.since;
        }
    }

    /// Fires the due timers, in the order of their deadlines (step 4). If equal, sleeps fire first.
    #[inline]
    pub(crate) fn fire_timers(&mut self, services: &mut impl Services<M>) {
        self.timers.sweep_stale(&mut self.sched.gate.records());
        while let Some((deadline, owner)) = self.timers.pop(self.sched.now) {
            // The wait has ended before its timer. To find and remove its entry then would have
            // cost more than to skip it now.
            if !lives(&self.sched.gate.records(), owner) {
                continue;
            }
            debug_assert!(deadline <= self.sched.now, "a timer is never early");
            match owner {
                Owner::Sleep(ticket) => self.end_sleep(ticket, deadline),
                Owner::Scope(scope) => {
                    let mut records = self.sched.gate.records();
                    let Some(found) = records.scopes.get_mut(scope) else { continue };
                    // The entry is gone, so the close of the scope must not count it as stale.
                    found.has_timer = false;
                    let (timer, cause) = (Timer::Scope(found.number), found.line);
                    drop(records);
                    self.sched.log_fire(timer, deadline, cause);
                    // The second reading: ends the waits in the scope.
                    self.fire(scope);
                }
                Owner::Service(which) => services.timer(self, which, deadline),
            }
            self.between_events();
        }
    }

    #[inline]
    fn end_sleep(&mut self, ticket: Ticket, deadline: Time) {
        if self.sched.log.listening {
            let (number, cause) = self.sched.log.number_of(ticket);
            self.sched.log_fire(Timer::Sleep(number), deadline, cause);
        }
        self.sched.complete(ticket, Reply::Time(self.sched.now));
    }

    /// Runs task 1 if the wake queue has messages (step 3 of a turn).
    #[inline]
    pub(crate) fn run_wakeup(&mut self, services: &mut impl Services<M>) {
        // Task 1 has its first run without a message, so that each log shows it once.
        if !self.wakeup.has_run || self.wakeup.has_messages(M::IS_TAPED, self.sched.turn) {
            self.move_messages(services);
        }
    }

    #[cold]
    fn move_messages(&mut self, services: &mut impl Services<M>) {
        // A kernel may be shut down before its first run.
        self.boot();
        let (mut messages, run) = self.wakeup.begin(&mut self.sched, M::IS_TAPED);
        for message in messages.drain(..) {
            self.sched.log.cause = run;
            match message {
                Message::Wake(task) => self.sched.wake_task(task),
                Message::Unpark(ticket) => {
                    let is_stale = !self.sched.unpark(ticket, Reply::Done);
                    self.sched.stale += u64::from(is_stale);
                }
                // It only had to end the wait.
                Message::Turn => {}
                other => services.message(self, other),
            }
            self.between_events();
        }
        self.wakeup.end(&mut self.sched, messages);
    }

    /// Logs the first lines of a trace, once.
    fn boot(&mut self) {
        let facts = self.options.facts(self.sched.machine.clock_name());
        self.wakeup.boot(&mut self.sched, facts);
    }
}
