//! What the kernel needs from below: a clock, a way to wait, and what arrives meanwhile.
//!
//! [`Real`] is Linux through mio; [`Sim`] is a clock that jumps and a world that follows a script.
//! The kernel above is the same code.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use traps::core::names::Descriptor;
use traps::{Signal, Time};

mod jobs;
mod real;
mod signals;
mod sim;
mod sim_clock;
mod sys;

pub use jobs::{Deliver, JobView, Parcel};
pub use real::Real;
pub use sim::Sim;
pub use sim_clock::SimClock;
pub use sys::raise_descriptor_limit;

/// Ends the machine's current wait, or its next wait if it is not waiting.
pub trait Bell: Send + Sync {
    /// May be called from any thread. Cheap; never blocks and never fails. A bell that is ringing
    /// already need not ring again.
    fn ring(&self);
}

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

        /// Reads the cheapest clock, in nanoseconds from an arbitrary start. On [`Real`] it moves
        /// in steps of a few milliseconds.
        fn mark(&mut self) -> u64;

        /// The time of day, to be read at any time.
        fn wall_clock(&self) -> Box<dyn Fn() -> SystemTime>;

        /// Waits for arrivals and appends them.
        fn wait(&mut self, until: Until, arrivals: &mut Arrivals) -> io::Result<()>;

        /// Has the ready tasks of a turn run in another order than that in which they became
        /// ready. Only an explorer does.
        fn order(&mut self, _: &mut [u32]) {}

        /// Makes `wait` report the descriptor, both directions, once for each change (edge).
        fn register(&mut self, descriptor: Descriptor, token: u64) -> io::Result<()>;

        /// Ends that.
        fn deregister(&mut self, descriptor: Descriptor) -> io::Result<()>;

        /// Whether a descriptor that was seen closed still has its end, or something to read.
        fn is_readable(&mut self, _: Descriptor) -> bool {
            true
        }

        /// The descriptor was closed, which ended its registration.
        fn forget(&mut self, _: Descriptor) {}

        /// Ends the current or next `wait` from any thread.
        fn bell(&self) -> Arc<dyn Bell>;

        /// Makes `wait` report the signal instead of letting it act.
        fn watch_signal(&mut self, signal: Signal) -> io::Result<()>;

        /// The clock as a job may read it, from any thread.
        fn thread_clock(&self) -> Box<dyn Fn() -> Time + Send + Sync>;

        /// Has a script run the job and deliver it later. Gives the job back if a thread is to run
        /// it.
        fn play_job(
            &mut self,
            _: u64,
            _: &dyn Fn() -> JobView,
            parcel: Parcel,
            _: &Deliver,
        ) -> Option<Parcel> {
            Some(parcel)
        }

        /// Takes back the jobs that a script has not run yet.
        fn take_jobs(&mut self) -> Vec<(u64, Parcel)> {
            Vec::new()
        }

        /// Steps of a script that are still to come, jobs not counted.
        fn scripted(&self) -> usize {
            0
        }

        /// Whether file descriptors that are waited for can end a wait.
        fn has_io(&self) -> bool;
    }
}
