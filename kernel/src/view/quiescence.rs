//! Whether anything can still happen: the one predicate, and what it counts.
//!
//! A simulated machine that has nothing to wait for asks it before it is called a hang, and so does
//! whoever wants the kernel to run until all is quiet. It decides nothing else.

use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;

use traps::Time;
use traps::protocol::Post;

use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::options::Error;
use crate::turn::Running;
use crate::view::Counters;
use crate::waits::{On, Wait};

/// What could still happen in a kernel: a snapshot. Tasks that are parked and that none of this
/// can wake do not count.
///
/// A bare waker that another thread holds cannot be seen, unless the wait is marked as
/// [external](traps::Foreign::external).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outstanding {
    /// Tasks that are ready to run.
    pub ready: usize,
    /// Timers and connection deadlines that will fire; those of a shutdown not counted.
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
    /// Jobs that run although their caller was answered: their end is still seen.
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
    /// What could still happen. O(tasks).
    #[must_use]
    pub fn outstanding(&self) -> Outstanding {
        let Counters { queued, abandoned, jobs, .. } = self.counters();
        let own = usize::from(self.ending.timer.is_some());
        let timers = self.timers.next().map_or(0, |_| self.timers.len() - own);
        let is_io = |wait: &&Wait| matches!(wait.on, On::Io(..) | On::Signal(_) | On::Stream);
        let io = self.tasks.iter().map(|task| task.parked().filter(is_io).count()).sum();
        let posts = self.gate.count_later(|post| self.wakes(post));
        Outstanding {
            ready: self.ready.iter().count(),
            timers: timers + self.shared.deadlines.armed(),
            io: if self.machine.has_io() { io } else { 0 },
            external: self.external,
            wakes: posts + usize::from(!self.inbox.queue.is_empty()),
            queued,
            running: jobs - (abandoned + queued),
            abandoned,
            scripted: self.machine.scripted(),
        }
    }

    /// Whether a post that waits for the next run will wake a task of this kernel.
    fn wakes(&self, post: &Post) -> bool {
        let wakes = matches!(
            post,
            Post::Woken(_) | Post::WakeTicket(_) | Post::Wake { .. } | Post::Permit { .. }
        );
        wakes && self.knows(post)
    }

    /// Whether nothing can happen any more: the kernel could wait for ever. O(tasks).
    #[must_use]
    pub fn is_quiescent(&self) -> bool {
        self.outstanding().is_nothing()
    }

    /// Whether a thread, or what an external wait waits for, may still ring: a virtual clock stands
    /// still meanwhile.
    pub(crate) fn is_awaited_outside(&self) -> bool {
        self.external > 0 || self.jobs.are_on_threads()
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
        self.run_turns(|kernel, start| {
            let end = start + limit;
            kernel.bound = Some(end);
            kernel.log.now < end
        })
    }

    /// Runs one turn and does not wait in it: what has arrived, what other threads sent, what is
    /// due, and each task that is ready. Gives whether all is quiet then, as
    /// [`Kernel::run_until_quiescent`] does.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::run_until_quiescent`].
    ///
    /// # Panics
    ///
    /// If a kernel runs on this thread, as in its task.
    pub fn turn_once(&mut self) -> Result<bool, Error> {
        let mut turns = 0;
        self.run_turns(|kernel, _| {
            turns += 1;
            // A point that is past: the machine only looks.
            kernel.bound = Some(Time::ZERO);
            turns == 1
        })
    }

    /// Runs turns without main, as long as `goes_on` says and anything can happen. It gets the
    /// time of the start.
    fn run_turns(
        &mut self,
        mut goes_on: impl FnMut(&mut Kernel<M>, Time) -> bool,
    ) -> Result<bool, Error> {
        if self.is_closing() {
            return Err(Error::Shut);
        }
        let _running = Running::enter(self);
        self.start()?;
        self.serve_between_runs();
        let start = self.log.now;
        let mut nobody = |_: &mut Context<'_>| Poll::Pending;
        let mut ended = Ok(());
        while ended.is_ok() && !self.is_closing() && !self.is_quiescent() && goes_on(self, start) {
            ended = self.turn(&mut nobody);
        }
        self.bound = None;
        ended.map(|()| !self.is_closing() && self.is_quiescent())
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
