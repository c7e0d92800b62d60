//! What a kernel gives back for a request: an answer, or why there is none.
//!
//! Plain data, the other half of the vocabulary in `protocol.rs`.

use std::pin::Pin;
use std::time::SystemTime;

use crate::interrupt::Interrupt;
use crate::protocol::{Body, ScopeId, Site, TaskRef};
use crate::signal::Signal;
use crate::threads::Work;
use crate::time::Time;

/// What comes back for a request.
pub type TrapResult = Result<Answer, Failure>;

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    /// Done; nothing to add.
    Unit,
    /// A reading of the clock.
    Time(Time),
    /// The time of day.
    Wall(SystemTime),
    /// A deadline and whose it is, or none.
    Deadline(Option<InForce>),
    /// What is pending or held back, if anything.
    Held(Option<Interrupt>),
    /// The asking task, or the spawned one.
    Task(TaskRef),
    /// How many.
    Count(u64),
    /// A new scope and its own deadline.
    Scope {
        /// Which.
        scope: ScopeId,
        /// Absolute, [`Time::NEVER`] for none.
        deadline: Time,
    },
    /// A task has ended.
    Ended(Ended),
    /// A job came back from its thread.
    Job {
        /// Its number.
        job: u64,
        /// With its value.
        work: Box<dyn Work>,
    },
    /// A signal arrived.
    Signal(Signal),
}

// It is moved at every trap.
const _: () = assert!(size_of::<Answer>() <= 32);

/// The nearest deadline in force somewhere, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Absolute.
    pub deadline: Time,
    /// The number of the scope that has it, as the log shows it.
    pub scope: u64,
    /// Where that scope was opened; `None` for a connection deadline, armed in many places.
    pub set_at: Option<Site>,
}

/// How a joined task ended.
pub enum Ended {
    /// With an output, which is in its body (none if only its end was waited for).
    Output(Option<Pin<Box<dyn Body>>>),
    /// Its code panicked, with this message.
    Panicked(Box<String>),
    /// Its future was dropped before its end.
    Dropped,
    /// Its output was taken by an earlier join, or there is no such task any more.
    Taken,
}

impl std::fmt::Debug for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Ended::Output(_) => "Output",
            Ended::Panicked(_) => "Panicked",
            Ended::Dropped => "Dropped",
            Ended::Taken => "Taken",
        })
    }
}

/// Why a request came to nothing.
#[derive(Debug)]
pub enum Failure {
    /// The wait ended early; nothing was done.
    Interrupt(Interrupt),
    /// Another task already waits for this direction of this descriptor.
    Busy,
    /// The handle was closed.
    Closed,
    /// The machine below refused.
    Refused(std::io::Error),
}
