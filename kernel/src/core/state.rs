//! The small records of the core: the run of a task, its measure, the skipped turns, task 1.

use std::time::Duration;

use traps::Time;
use traps::core::names::{Site, Ticket};

use super::wakers::Message;
use crate::trace::Seq;

/// The run of a task: what only the task that has the CPU needs.
#[derive(Default)]
pub(crate) struct Run {
    /// The task that runs.
    pub(crate) task: Option<u32>,
    /// When it got the CPU, as far as the clock was read.
    pub(crate) since: Time,
    /// What it came back from.
    pub(crate) from: (&'static str, Option<Site>),
    /// It has a reply: it is to be polled again.
    pub(crate) again: bool,
    /// Its waker was called: it goes to the end of the ready queue.
    pub(crate) woken: bool,
    /// Its future was ready.
    pub(super) has_ended: bool,
    /// It has parked a wait. While a log is written: and its `block` line says so.
    pub(crate) parked: bool,
    /// For a log: the poll has filed more than the trap that is dispatched.
    pub(super) goes_on: bool,
    /// The waits that end when it leaves the CPU.
    pub(crate) yields: Vec<Ticket>,
    /// Its future is being polled: a panic belongs to the task.
    pub(super) is_polling: bool,
    /// Somebody watches each run: a log, a hook or a watchdog.
    pub(crate) is_watched: bool,
}

/// How many turns passed since the last look at the machine.
#[derive(Default)]
pub(crate) struct Skipped {
    pub(super) turns: u32,
    /// The machine's mark at that look.
    pub(super) since: u64,
}

/// How long a run may be, and when the present one began.
pub(crate) struct Longrun {
    /// In nanoseconds; `u64::MAX`: nobody measures.
    pub(super) limit: u64,
    /// When the run before it ended, or the turn's wait, by [`Machine`]'s cheap clock.
    pub(crate) since: u64,
}

impl Longrun {
    pub(crate) fn new(limit: Option<Duration>) -> Longrun {
        let nanos = limit.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        Longrun { limit: nanos.unwrap_or(u64::MAX), since: 0 }
    }

    #[inline]
    pub(crate) fn measures(&self) -> bool {
        self.limit != u64::MAX
    }
}

/// The state of task 1.
#[derive(Default)]
pub(crate) struct Wakeup {
    /// Whether it exists: the kernel has begun its first run.
    pub(super) has_begun: bool,
    /// Whether it has run once and waits for the bell.
    pub(super) is_parked: bool,
    /// The number of its last line.
    pub(super) line: Seq,
    pub(super) messages: Vec<Message>,
}
