//! Whether anything can still happen: the one predicate, and what it counts.
//!
//! A simulated machine that has nothing to wait for asks it before it is called a hang, and so does
//! whoever wants the kernel to run until all is quiet. It decides nothing else.

use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;

use traps::Time;

use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::options::Error;
use crate::turn::Running;
use crate::waits::Wait;

/// What could still happen in a kernel: a snapshot. Tasks that are parked and that none of this
/// can wake do not count (row R8).
///
/// A bare waker that another thread holds cannot be seen, unless the wait is marked as
/// [external](traps::Foreign::external).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outstanding {
    /// Tasks that are ready to run.
    pub ready: usize,
    /// Timers that will fire; those of a shutdown not counted.
    pub timers: usize,
    /// Waits for descriptors and signals, where the machine has any.
    pub io: usize,
    /// Waits that something outside the kernel will end.
    pub external: usize,
    /// Wakes that were sent and not delivered yet.
    pub wakes: usize,
    /// Jobs that wait for a token.
    pub queued: usize,
    /// Jobs that run, and whose caller waits.
    pub running: usize,
    /// Jobs that run although their caller was answered: their end is still seen (row R9).
    pub abandoned: usize,
    /// Steps of a simulated machine's script that are still to come; its jobs not counted.
    pub scripted: usize,
}

impl Outstanding {
    /// Whether it is nothing at all.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Outstanding::default()
    }
}

/// `ready=1 timers=0 ...`, as in the log.
impl fmt::Display for Outstanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outstanding { ready, timers, io, external, wakes, .. } = self;
        let Outstanding { queued, running, abandoned, scripted, .. } = self;
        write!(f, "ready={ready} timers={timers} io={io} external={external} wakes={wakes} ")?;
        write!(f, "queued={queued} running={running} abandoned={abandoned} scripted={scripted}")
    }
}

impl<M: Machine> Kernel<M> {
    /// What could still happen. *Answers*; O(waits).
    #[must_use]
    pub fn outstanding(&self) -> Outstanding {
        let crate::workers::Counts { queued, abandoned, .. } = self.workers.counts;
        // One that never fires is not among those that are set.
        let fires = |timer| self.timers.due_at(timer) != Time::NEVER;
        let own = usize::from(self.ending.timer.is_some_and(fires));
        let io = |wait: &Wait| matches!(wait, Wait::Io { .. } | Wait::Signal(_) | Wait::Stream(_));
        let posts = self.gate.wakes_for(self.epoch);
        Outstanding {
            ready: self.ready.iter().count(),
            timers: self.timers.next().map_or(0, |_| self.timers.len() - own),
            io: if self.machine.has_io() { self.waits.count(io) } else { 0 },
            external: self.external,
            wakes: posts + usize::from(!self.wakes.is_empty()),
            queued,
            running: self.workers.len() - (abandoned + queued),
            abandoned,
            scripted: self.machine.scripted(),
        }
    }

    /// Whether nothing can happen any more: the kernel could wait for ever. *Answers*; O(waits).
    #[must_use]
    pub fn is_quiescent(&self) -> bool {
        self.outstanding().is_nothing()
    }

    /// Whether a thread, or what an external wait waits for, may still ring: a virtual clock stands
    /// still meanwhile.
    pub(crate) fn is_awaited_outside(&self) -> bool {
        self.external > 0 || self.workers.counts.on_threads > 0
    }

    /// Runs what main has left behind until nothing can happen any more, or for at most `limit` of
    /// kernel time; parked tasks that nothing can wake stay. Blocks this thread. Gives whether all
    /// is quiet; false as soon as a shutdown begins.
    ///
    /// A simulated machine that waits for a real thread knows no limit.
    ///
    /// # Errors
    ///
    /// [`Error::Machine`]; [`Error::Shut`] after a shutdown.
    ///
    /// # Panics
    ///
    /// If a kernel runs on this thread, as in its task.
    pub fn run_until_quiescent(&mut self, limit: Duration) -> Result<bool, Error> {
        if self.is_closing() {
            return Err(Error::Shut);
        }
        let _running = Running::enter(&self.gate, self.epoch, self.scopes.table());
        let _closing = self.enter_closing();
        self.start()?;
        self.serve_between_runs();
        self.main_ended = false;
        let end = self.log.now + limit;
        let mut nobody = |_: &mut Context<'_>| Poll::Pending;
        let quiet = loop {
            if self.is_closing() {
                break Ok(false);
            }
            if self.is_quiescent() {
                break Ok(true);
            }
            if self.log.now >= end {
                break Ok(false);
            }
            self.bound = Some(end);
            if let Err(error) = self.turn(&mut nobody) {
                break Err(error);
            }
        };
        self.bound = None;
        quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Sim};
    use traps::{Signal, sleep, spawn};

    #[test]
    fn r8_a_drain_without_a_limit_hides_no_timer_of_a_task() {
        const SECOND: Duration = Duration::from_secs(1);
        let sim = Sim::new().signal_at(Time::ZERO + SECOND, Signal::Terminate);
        let options = Options::new().shutdown_on(&[Signal::Terminate]).drain(Duration::MAX);
        let mut kernel = Kernel::with_options(sim, options);
        let ran = kernel.run(async {
            spawn("late", sleep(3 * SECOND)).await;
            traps::shutdown::begun().await
        });
        ran.unwrap().unwrap();
        assert_eq!(kernel.outstanding().timers, 1);
        kernel.shutdown().unwrap();
    }
}
