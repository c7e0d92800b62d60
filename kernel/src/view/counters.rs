//! Counters: what a kernel holds, and what it has done.

/// What a kernel holds now, and what it has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Tasks that have not ended (the kernel's own not counted).
    pub tasks: usize,
    /// Waits: parked, or ended and not read.
    pub tickets: usize,
    /// Open scopes.
    pub scopes: usize,
    /// Timers that are set, and connection deadlines that are armed.
    pub timers: usize,
    /// Connection deadlines that exist, armed or not.
    pub deadlines: usize,
    /// Descriptors that are registered with the poller.
    pub registered: usize,
    /// Handles that are open and were waited for.
    pub handles: usize,
    /// Jobs that are queued, run, or were abandoned and still run.
    pub jobs: usize,
    /// Jobs that wait for a token of the pool or of their limiter.
    pub queued: usize,
    /// Tokens in use: one for each job that runs, abandoned ones too.
    pub tokens: usize,
    /// The most that were in use at one time.
    pub tokens_peak: usize,
    /// How long ended jobs had their tokens, added up. Divided by the kernel's time it is the mean
    /// number of tokens in use.
    pub tokens_held: std::time::Duration,
    /// Jobs that run although their caller was answered.
    pub abandoned: usize,
    /// Worker threads that live, idle ones too.
    pub threads: usize,
    /// Interrupts that no task has met yet.
    pub pending: usize,
    /// Turns so far.
    pub turns: u64,
    /// Waits on the machine so far.
    pub polls: u64,
    /// Registrations made with the poller so far (`EPOLL_CTL_ADD`).
    pub registers: u64,
    /// Registrations taken back so far (`EPOLL_CTL_DEL`; a close that ends one is not counted).
    pub unregisters: u64,
    /// Traps that were answered or parked so far, and scopes that were opened but for guards.
    pub traps: u64,
    /// Times that the bell was rung so far.
    pub rings: u64,
    /// Scans of the deadline table so far.
    pub scans: u64,
    /// Messages of other threads so far: wakes, ended jobs, requests of a
    /// [`Remote`](crate::Remote).
    pub wakes: u64,
    /// The batches in which these messages came.
    pub batches: u64,
    /// Wakes through an [`OutsideWaker`](traps::OutsideWaker) that came when the wait had ended.
    pub stale: u64,
}
