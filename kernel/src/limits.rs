//! The numbers that bound something in the kernel, in one place.
//!
//! Those with an option have their defaults in `options.rs`, which [`limits`] lists; it takes the
//! options apart, so that a new one does not compile before it is listed or passed over here.

use std::time::Duration;

use traps::limits::Bound;

use crate::options::Options;

/// The tick of the deadline table, if nobody says another.
pub(crate) const TICK: Duration = Duration::from_millis(300);

/// No tick is shorter: a scan must be seldom beside what it scans for.
pub(crate) const LEAST_TICK: Duration = Duration::from_millis(10);

/// Turns that may go by without a look at the machine while tasks only hand work to each other; and
/// fewer if the coarse clock moves meanwhile.
pub(crate) const SKIPPED: u32 = 61;

/// As many arrivals as one wait takes; more come with the next.
pub(crate) const ARRIVALS: usize = 1024;

/// How many events that nobody waited for end a registration under `Policy::Lazy`.
pub(crate) const UNWANTED: u32 = 16;

/// Signal listeners, one a kernel that waits for signals, that a process may have at one time.
pub(crate) const LISTENERS: usize = 64;

/// Worker threads at most, whatever the option says.
pub(crate) const MOST_THREADS: usize = 1 << 16;

/// After a thread could not be started: the pause before it is tried again.
pub(crate) const THREAD_PAUSE: Duration = Duration::from_millis(100);

/// Turns of a clean-up that a machine which has failed cannot limit by its clock.
pub(crate) const BLIND_TURNS: u32 = 61;

/// Messages of other threads for which the wake queue keeps room, however few come.
pub(crate) const KEPT: usize = 1024;

/// Of a worker thread, in bytes.
pub(crate) const WORKER_STACK: usize = 2 << 20;

/// Every number that bounds something in a kernel with these options, over a machine that asks for
/// no tick of its own.
#[must_use]
pub fn limits(options: &Options) -> Vec<Bound> {
    let Options {
        policy: _,
        tick,
        budget,
        grace,
        drain,
        shutdown_on: _,
        threads,
        idle,
        longrun,
        watchdog,
    } = &options.clone().in_bounds(None);
    let mut bounds = vec![
        Bound::set(
            "kernel.budget",
            (u64::from(*budget), "operations"),
            "Options::budget",
            "I/O that never blocks, before the task gives way",
        ),
        Bound::set(
            "kernel.tick",
            *tick,
            "Options::tick",
            "between two scans of the deadline table",
        ),
        Bound::fixed("kernel.tick.least", LEAST_TICK, "a shorter tick becomes this"),
        Bound::set("kernel.drain", *drain, "Options::drain", "what is held up at shutdown, in all"),
        Bound::set("kernel.grace", *grace, "Options::grace", "clean-up at shutdown, in all"),
        Bound::set(
            "kernel.longrun",
            *longrun,
            "Options::longrun",
            "a run, before it is a line of the log",
        ),
        Bound::set(
            "kernel.watchdog",
            *watchdog,
            "Options::watchdog",
            "a run, before a thread says so while it lasts",
        ),
        Bound::set(
            "kernel.threads",
            (*threads as u64, "threads"),
            "Options::threads",
            "worker threads, those left behind included",
        ),
        Bound::set("kernel.idle", *idle, "Options::idle", "how long an idle worker thread stays"),
        Bound::fixed("kernel.worker.stack", (WORKER_STACK as u64, "bytes"), "of a worker thread"),
    ];
    bounds.extend(fixed());
    bounds
}

/// Those that nobody chooses.
fn fixed() -> [Bound; 8] {
    [
        Bound::fixed(
            "kernel.skipped",
            (u64::from(SKIPPED), "turns"),
            "without a look at the machine, while tasks hand on work and the coarse clock stands",
        ),
        Bound::fixed("kernel.arrivals", (ARRIVALS as u64, "arrivals"), "taken by one wait"),
        Bound::fixed(
            "kernel.unwanted",
            (u64::from(UNWANTED), "events"),
            "that nobody waited for, before a descriptor is unregistered (policy lazy)",
        ),
        Bound::fixed(
            "kernel.listeners",
            (LISTENERS as u64, "kernels"),
            "that wait for signals in one process",
        ),
        Bound::fixed(
            "kernel.threads.most",
            (MOST_THREADS as u64, "threads"),
            "that the option can set",
        ),
        Bound::fixed("kernel.threads.pause", THREAD_PAUSE, "when none can be started"),
        Bound::fixed(
            "kernel.blind",
            (u64::from(BLIND_TURNS), "turns"),
            "of a clean-up after the machine has failed",
        ),
        Bound::fixed("kernel.wakes.kept", (KEPT as u64, "messages"), "room for them is kept"),
    ]
}
