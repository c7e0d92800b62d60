//! What the kernel needs from below: a clock, a way to wait, and what arrives meanwhile.
//!
//! [`Real`] is Linux through mio; [`Sim`] is a clock that jumps and a world that follows a script.
//! The kernel above is the same code.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use traps::Signal;
use traps::Time;
use traps::protocol::Descriptor;

use crate::jobs::JobView;
use crate::threads::Deliver;
use crate::tokens::Parcel;
use crate::wake::Bell;

mod real;
mod sim;
mod sim_bell;
mod sim_clock;
pub(crate) mod sys;

pub use real::{Real, raise_descriptor_limit};
pub use sim::Sim;
pub use sim_clock::SimClock;

/// How long a wait may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Only looks.
    Now,
    /// Until something arrives.
    Arrival {
        /// At most until that point.
        by: Option<Time>,
        /// Whether a live thread, or whatever an external wait waits for, may still ring.
        outside: bool,
    },
}

/// What a wait brought.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// Descriptors, in order of arrival.
    pub io: Vec<Arrival>,
    /// The bell was rung.
    pub bell: bool,
    /// Signals, in the order of their numbers.
    pub signals: Vec<Signal>,
    /// Nothing can arrive any more: the wait would never have ended.
    pub hang: bool,
}

impl Arrivals {
    /// There is none: no more than a point of time can have ended the wait.
    pub(crate) fn are_none(&self) -> bool {
        self.io.is_empty() && self.signals.is_empty() && !self.bell && !self.hang
    }
}

/// One descriptor that looks ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// As given at registration.
    pub token: u64,
    /// Something to read, or the end.
    pub readable: bool,
    /// Room to write, or an error to learn of.
    pub writable: bool,
    /// The peer's end was seen, or an error: it stays readable, most often for ever.
    pub closed: bool,
}

/// The machine below a kernel.
///
/// Sealed: [`Real`] and [`Sim`] are all there is.
pub trait Machine: sealed::Machine {}

impl<M: sealed::Machine> Machine for M {}

pub(crate) mod sealed {
    use super::*;

    pub trait Machine {
        /// `real` or `virtual`, for the head of a trace.
        fn clock_name(&self) -> &'static str;

        /// The seed of what is chosen at random, 0 if nothing is.
        fn seed(&self) -> u64 {
            0
        }

        /// How often the deadline table is scanned at most, if the owner does not say.
        fn tick(&self) -> Option<Duration> {
            None
        }

        /// Reads the clock. Never goes back.
        fn now(&mut self) -> Time;

        /// A reading of the cheapest clock, in nanoseconds from anywhere, for [`Machine::passed`].
        fn mark(&mut self) -> u64;

        /// How much time has passed since a mark: never too much, and too little by two ticks of
        /// the coarse clock at most.
        fn passed(&mut self, mark: u64) -> Duration;

        /// The time of day.
        fn wall(&mut self) -> SystemTime;

        /// Waits for arrivals and appends them.
        fn wait(&mut self, until: Until, arrivals: &mut Arrivals) -> io::Result<()>;

        /// Makes `wait` report the descriptor, both directions, once for each change (edge).
        fn register(&mut self, descriptor: Descriptor, token: u64) -> io::Result<()>;

        /// Ends that.
        fn deregister(&mut self, descriptor: Descriptor) -> io::Result<()>;

        /// Whether one that was seen closed has the end still, or something to read.
        fn is_readable(&mut self, _: Descriptor) -> bool {
            true
        }

        /// The descriptor was closed, which ended its registration.
        fn forget(&mut self, descriptor: Descriptor);

        /// Ends the current or next `wait` from any thread.
        fn bell(&self) -> Arc<dyn Bell>;

        /// Makes `wait` report the signal instead of letting it act.
        fn watch_signal(&mut self, signal: Signal) -> io::Result<()>;

        /// The clock as a job may read it, from any thread.
        fn thread_clock(&self) -> Box<dyn Fn() -> Time + Send + Sync>;

        /// Whether [`Machine::job_span`] is worth asking.
        fn scripts_jobs(&self) -> bool {
            false
        }

        /// How long the job takes by script; `None`: a real thread has it.
        fn job_span(&mut self, _: &JobView) -> Option<Duration> {
            None
        }

        /// Runs the job by script, so long from now, and delivers it.
        fn play_job(&mut self, _: u64, _: Parcel, _: Duration, _: &Deliver) {
            unreachable!("rule: a machine without a script plays no jobs")
        }

        /// Drops the jobs that are still to be played. They are foreign: each by itself, or two
        /// panics at once would end the process.
        fn drop_jobs(&mut self) {}

        /// Whether a job may be handed to a thread.
        fn may_start_thread(&mut self) -> io::Result<()> {
            Ok(())
        }

        /// Steps of a script that are still to come, jobs not counted.
        fn scripted(&self) -> usize {
            0
        }

        /// Whether file descriptors that are waited for can end a wait.
        fn has_io(&self) -> bool;
    }
}
