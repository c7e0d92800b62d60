//! The numbers that bound something in the kernel and have no option of their own.
//!
//! Those with an option are in `options.rs`.

use std::time::Duration;

/// The tick of the deadline table, if nobody chooses another.
pub(crate) const TICK: Duration = Duration::from_millis(300);

/// A shorter tick becomes this: a scan must be seldom beside what it scans for.
pub(crate) const LEAST_TICK: Duration = Duration::from_millis(10);

/// Turns that may go by without a look at the machine while tasks only hand work to each other; and
/// fewer if the coarse clock moves meanwhile.
pub(crate) const SKIPPED: u32 = 61;

/// As many arrivals as one wait takes; more come with the next.
pub(crate) const ARRIVALS: usize = 1024;

/// How many events that nobody waited for end a registration under `Policy::Lazy`.
pub(crate) const UNWANTED: u32 = 16;

/// Signal listeners, one for each kernel that waits for signals, that a process may have.
pub(crate) const LISTENERS: usize = 64;

/// Worker threads at most, whatever the option says.
pub(crate) const MOST_THREADS: usize = 1 << 16;

/// After a thread could not be started: the pause before it is tried again.
pub(crate) const THREAD_PAUSE: Duration = Duration::from_millis(100);

/// Of a worker thread, in bytes.
pub(crate) const WORKER_STACK: usize = 2 << 20;
