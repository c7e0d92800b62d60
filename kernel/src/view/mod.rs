//! What an owner can see of a kernel from outside: counters, and each task.
//!
//! Snapshots: nothing here changes anything.

use traps::Time;

use crate::kernel::Kernel;
use crate::log;
use crate::machine::Machine;
use crate::task::State;
use crate::waits::{On, Wait};

mod quiescence;
mod table;

pub use quiescence::Outstanding;
pub use table::TaskTable;

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

/// A task as a reader of the task table sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskView {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Who spawned it; none for main, and for one that another thread spawned.
    pub parent: Option<u64>,
    /// `ready`, `running` or `parked`.
    pub state: &'static str,
    /// Since when it is in that state, by the kernel clock.
    pub since: Time,
    /// How often it had the CPU.
    pub cycles: u64,
    /// Where it was spawned, `file:line`.
    pub spawned_at: Option<String>,
    /// The traps that it is parked in; none if it waits on a waker alone.
    pub parked: Vec<ParkedView>,
}

/// A trap that a task is parked in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParkedView {
    /// The ticket's number in the log.
    pub ticket: u64,
    /// What it waits for, in the words of the log.
    pub trap: String,
    /// When it ends at the latest: a sleep by itself, any by the nearest deadline in force.
    pub until: Option<Time>,
    /// Where it was made, `file:line`.
    pub site: String,
}

impl<M: Machine> Kernel<M> {
    /// The tasks that have not ended, in the order of their numbers: a snapshot.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskView> {
        self.tasks.newest_first(0).into_iter().rev().map(|index| self.view(index)).collect()
    }

    fn view(&self, index: u32) -> TaskView {
        let task = &self.tasks[index];
        let mut waits: Vec<&Wait> = task.parked().collect();
        waits.sort_unstable_by_key(|wait| wait.serial);
        let parked = waits.into_iter().map(|wait| ParkedView {
            ticket: self.log.number_of(task, wait.serial).0,
            trap: self.parked_in(task, wait),
            until: self.ends_at(wait),
            site: log::place_of(wait.site),
        });
        TaskView {
            id: task.id,
            name: self.tasks.label(index).1.to_owned(),
            parent: (task.parent != 0).then_some(task.parent),
            state: match task.state {
                State::Ready => "ready",
                State::Running => "running",
                State::Parked => "parked",
                State::Ended(_) | State::Free => "ended",
            },
            since: if task.state == State::Running { self.running_since } else { task.since },
            cycles: u64::from(task.runs),
            spawned_at: self.tasks.site(index).map(log::place_of),
            parked: parked.collect(),
        }
    }

    /// When a wait ends at the latest.
    fn ends_at(&self, wait: &Wait) -> Option<Time> {
        let sleep = match wait.on {
            On::Sleep(timer) => Some(self.timers.at(timer)),
            _ => None,
        };
        let deadline = self.in_force(wait.scope).map(|found| found.deadline);
        [sleep, deadline].into_iter().flatten().min().filter(|until| *until != Time::NEVER)
    }

    /// What the kernel holds and has done. O(tasks).
    #[must_use]
    pub fn counters(&self) -> Counters {
        let tokens = &self.jobs.tokens;
        Counters {
            tasks: self.tasks.alive,
            tickets: self.tasks.iter().map(|task| task.waits().count()).sum(),
            scopes: self.scopes.len(),
            timers: self.timers.len() + self.shared.deadlines.armed(),
            deadlines: self.shared.deadlines.alive(),
            registered: self.registrations.registered,
            handles: self.registrations.known,
            jobs: tokens.jobs.len(),
            queued: tokens.queued(),
            tokens: tokens.in_use,
            tokens_peak: tokens.peak,
            tokens_held: tokens.held,
            abandoned: tokens.abandoned(),
            threads: self.jobs.pool.threads(),
            pending: self.pending_sources(),
            turns: self.log.turn,
            rings: self.inbox.queue.rings(),
            ..self.counts
        }
    }
}
