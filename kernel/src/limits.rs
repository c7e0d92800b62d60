//! The numbers that bound something in the kernel, in one place.
//!
//! Those with an option are in `options.rs`.

use std::time::Duration;

use traps::limits::Bound;

use crate::options::Options;

/// The tick of the deadline table, if nobody chooses another.
pub(crate) const TICK: Duration = Duration::from_millis(300);

/// Declares constants, and lists them with a name and a unit.
macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $number:expr,
        $shown:literal, $value:expr, $what:literal;)*) => {
        $($(#[$doc])* pub(crate) const $name: $type = $number;)*

        fn fixed() -> Vec<Bound> {
            vec![$(Bound::fixed($shown, $value, $what),)*]
        }
    };
}

fixed! {
    /// A shorter tick becomes this: a scan must be seldom beside what it scans for.
    LEAST_TICK: Duration = Duration::from_millis(10),
        "kernel.tick.least", LEAST_TICK, "a shorter tick becomes this";
    /// Turns that may go by without a look at the machine while tasks only hand work to each other;
    /// and fewer if the coarse clock moves meanwhile.
    SKIPPED: u32 = 61, "kernel.skipped", (u64::from(SKIPPED), "turns"),
        "without a look at the machine, while tasks hand on work and the coarse clock stands";
    /// As many arrivals as one wait takes; more come with the next.
    ARRIVALS: usize = 1024,
        "kernel.arrivals", (ARRIVALS as u64, "arrivals"), "taken by one wait";
    /// How many events that nobody waited for end a registration under `Policy::Lazy`.
    UNWANTED: u32 = 16, "kernel.unwanted", (u64::from(UNWANTED), "events"),
        "that nobody waited for, before a descriptor is unregistered (policy lazy)";
    /// Signal listeners, one for each kernel that waits for signals, that a process may have.
    LISTENERS: usize = 64,
        "kernel.listeners", (LISTENERS as u64, "kernels"), "that wait for signals in one process";
    /// Worker threads at most, whatever the option says.
    MOST_THREADS: usize = 1 << 16,
        "kernel.threads.most", (MOST_THREADS as u64, "threads"), "that the option can set";
    /// After a thread could not be started: the pause before it is tried again.
    THREAD_PAUSE: Duration = Duration::from_millis(100),
        "kernel.threads.pause", THREAD_PAUSE, "when none can be started";
    /// Of a worker thread, in bytes.
    WORKER_STACK: usize = 2 << 20,
        "kernel.worker.stack", (WORKER_STACK as u64, "bytes"), "of a worker thread";
}

/// Every number that bounds something in a kernel with these options, over a machine that asks for
/// no tick of its own.
#[must_use]
pub fn limits(options: &Options) -> Vec<Bound> {
    let mut bounds = options.clone().in_bounds(None).bounds();
    bounds.extend(fixed());
    bounds
}
