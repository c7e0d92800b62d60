//! Runs of tasks that are too long.
//!
//! The kernel measures each run of a task with one reading of the coarse clock and one comparison.
//! The report names the task, and the traps at which the run began and ended. It comes after the
//! run; the watchdog, in contrast, reports from another thread while the run lasts.
//!
//! On a busy host a run may be long because other processes have the CPU. So the report also has
//! the CPU time that the kernel's thread has used since the last reading. Each reading is a system
//! call. The kernel therefore makes one only after a long run, and before a turn if runs have taken
//! a quarter of the limit since the last reading. So the number is an upper bound. It is too large
//! by at most this quarter, the other runs of the same turn, and the time that the kernel itself
//! has used.
//!
//! A program without a logger would not learn of its long runs. So a debug build writes runs of
//! [`HELD`] and more to standard error, once for each call site at which such a run began.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::time::Duration;

use traps::Time;
use traps::internal::table::{Site, TaskIndex};
use traps::internal::tape;

use crate::core::sched::Sched;
use crate::core::tasks::TaskState;

use crate::log::lines::announce;
use crate::log::words::site;
use crate::machine::Machine;
use crate::trace::{Event, Span, Stop};

/// The duration of a run above which a debug build writes to standard error.
const HELD: Duration = Duration::from_millis(100);

/// The limit of a run, and the readings for the present run.
pub(crate) struct Longrun {
    /// The duration above which a run is too long, in nanoseconds. `u64::MAX` means that runs are
    /// not measured.
    pub(crate) limit: u64,
    /// The end of the previous run or of the turn's wait, by [`Machine`]'s cheap clock.
    pub(crate) since: u64,
    /// The last reading of the thread's CPU time.
    pub(crate) cpu: Option<Duration>,
    /// The time that runs have taken since the last reading of the CPU time, in nanoseconds.
    pub(crate) unread: u64,
    /// The call sites that standard error has named: file and line.
    told: BTreeSet<(&'static str, u32)>,
}

impl Longrun {
    pub(crate) fn new(limit: Option<Duration>) -> Longrun {
        let nanos = limit.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        Longrun {
            limit: nanos.unwrap_or(u64::MAX),
            since: 0,
            cpu: None,
            unread: 0,
            told: BTreeSet::new(),
        }
    }

    /// Adds `busy` nanoseconds to the time that runs have taken. Returns whether the CPU time is to
    /// be read again: runs have taken a quarter of the limit since it was read.
    #[inline]
    fn is_stale_after(&mut self, busy: u64) -> bool {
        self.unread = self.unread.saturating_add(busy);
        self.unread > self.limit / 4
    }

    #[inline]
    pub(crate) fn measures(&self) -> bool {
        self.limit != u64::MAX
    }

    /// Reports the run that has just ended, if it was too long.
    #[inline]
    pub(crate) fn measure(&mut self, sched: &mut Sched<impl Machine>) {
        if self.measures() {
            let mark = sched.machine.mark();
            let ran = mark.wrapping_sub(self.since);
            if ran > self.limit {
                self.tell(sched, Duration::from_nanos(ran));
            }
            self.since = mark;
        }
    }

    #[cold]
    fn tell(&mut self, sched: &mut Sched<impl Machine>, ran: Duration) {
        let Some(task) = sched.run.task else { return };
        let came = match sched.gate.came_from() {
            _ if sched.tasks[task].runs == 1 => ("spawn", None),
            ("", _) => ("waker", None),
            wait => wait,
        };
        let from = Stop { trap: came.0.into(), at: came.1.map(site) };
        let before = self.cpu;
        self.read_cpu(&mut sched.machine);
        let used = self.cpu.zip(before).map(|(now, before)| now.saturating_sub(before));
        if cfg!(debug_assertions)
            && let Some(used) = used
        {
            self.warn_without_a_logger(sched, task, came, ran, used.min(ran));
        }
        let cpu = used.map(|used| Time::ZERO + used.min(ran));
        let (ran, to) = (Time::ZERO + ran, stop_of(sched, task));
        announce!(sched, sched.tasks.label(task), Event::Longrun { ran, cpu, from, to });
    }

    /// Writes a long run of the real machine to standard error, if no logger takes its warning.
    fn warn_without_a_logger(
        &mut self,
        sched: &Sched<impl Machine>,
        task: TaskIndex,
        came: (&'static str, Option<Site>),
        ran: Duration,
        used: Duration,
    ) {
        let has_logger = log::log_enabled!(target: "kernel::sched", log::Level::Warn);
        if ran < HELD || has_logger || tape::answers() {
            return;
        }
        let (word, at) = came;
        // A spawn and a waker have no call site of their own.
        let at = at.unwrap_or_else(|| sched.tasks.site(task));
        if self.told.insert((at.file(), at.line())) {
            let after = match word {
                "spawn" => format!("its spawn at {at}"),
                "waker" => format!("a call of its waker (it was spawned at {at})"),
                wait => format!("{wait} at {at}"),
            };
            let (id, name) = sched.tasks.label(task);
            let millis = |span: Duration| Span(Duration::from_millis(span.as_millis() as u64));
            let (ran, used) = (millis(ran), millis(used));
            // Standard error may be a pipe without a reader, which is no reason to panic.
            let _ = writeln!(
                io::stderr(),
                "trapline: task {id} {name} held the thread for {ran}, {used} on a CPU, in its run \
                 after {after}. No other task could run. Move the work to \
                 traps::run_in_thread, or await traps::yield_now in between. (Debug builds say \
                 this once for a place, if no logger takes warnings.)"
            );
        }
    }

    /// Adds `nanos` to the time that runs have taken, and reads the CPU time of the thread if runs
    /// have taken a quarter of the limit since the last reading.
    #[inline]
    pub(crate) fn count_busy(&mut self, machine: &mut impl Machine, nanos: u64) {
        if self.is_stale_after(nanos) {
            self.read_cpu(machine);
        }
    }

    /// Reads the CPU time of the thread.
    #[cold]
    fn read_cpu(&mut self, machine: &mut impl Machine) {
        (self.cpu, self.unread) = (machine.cpu(), 0);
    }
}

/// Returns the position at which a run has ended: the trap in which the task is parked now.
fn stop_of(sched: &Sched<impl Machine>, index: TaskIndex) -> Stop<'static> {
    let waits = sched.parked(index, |_, wait| (wait.trap.word(), Some(site(wait.site))));
    let (trap, at) = match (sched.tasks[index].state, waits.into_iter().last()) {
        (TaskState::Running, _) => ("exit", None),
        (_, Some(wait)) => wait,
        (_, None) => ("waker", None),
    };
    Stop { trap: trap.into(), at }
}

#[cfg(test)]
mod tests {
    use super::Longrun;
    use super::*;

    /// Returns the number of readings of the CPU time in `turns` turns whose runs take `each` each.
    fn readings(turns: u64, each: Duration) -> u64 {
        let mut longrun = Longrun::new(Some(Duration::from_millis(50)));
        let mut count = 0;
        for _ in 0..turns {
            if longrun.is_stale_after(each.as_nanos() as u64) {
                (longrun.unread, count) = (0, count + 1);
            }
        }
        count
    }

    #[test]
    fn c34_the_cpu_time_is_read_once_in_a_quarter_of_the_limit_and_not_once_a_turn() {
        assert_eq!(readings(10_000, Duration::ZERO), 0);
        assert_eq!(readings(10_000, Duration::from_micros(20)), 15);
        assert_eq!(readings(10, Duration::from_millis(13)), 10);
        assert!(!Longrun::new(None).is_stale_after(1 << 61));
    }
}
