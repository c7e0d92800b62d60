//! Every job from its request to its end, and which of them have a token.
//!
//! A job first waits at its limiter, if that has no token free, then in the line for the pool's
//! tokens. With both it runs. It is abandoned when its caller is answered first. Its tokens come
//! back when it has really ended.
//!
//! This is accounting on the kernel's thread. It starts no thread and runs no job.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use traps::Time;
use traps::core::limiter::LimiterCore;
use traps::core::names::{Site, TaskRef, Ticket};
use traps::threads::Work;

use crate::machine::Parcel;

pub(crate) struct Job {
    /// `None` once it has its tokens.
    pub(crate) parcel: Option<Parcel>,
    pub(crate) work: Arc<dyn Work>,
    /// Who waits for it; `None` once it was abandoned.
    pub(crate) ticket: Option<Ticket>,
    /// The job's own view of that.
    pub(crate) abandoned: Arc<AtomicBool>,
    /// The task that asked for it, and its number.
    pub(crate) task: (TaskRef, u64),
    /// The task's name, kept when the job is abandoned: the task may end first.
    pub(crate) name: Option<String>,
    pub(crate) site: Site,
    /// When it was queued, or got its tokens.
    pub(crate) since: Time,
    pub(crate) limiter: Option<Rc<LimiterCore>>,
    /// It was handed to the pool, and not to a script.
    pub(crate) on_thread: bool,
}

/// All jobs of a kernel, by number, and the pool's tokens.
#[derive(Default)]
pub(crate) struct Tokens {
    /// How many tokens there are.
    all: usize,
    pub(crate) in_use: usize,
    /// The most that were in use at one time.
    pub(crate) peak: usize,
    /// How long ended jobs had their tokens, added up.
    pub(crate) held: Duration,
    /// Jobs that the pool has.
    pub(crate) on_threads: usize,
    pub(crate) jobs: BTreeMap<u64, Job>,
    /// Jobs that wait for one of the pool's tokens.
    line: BTreeSet<u64>,
}

impl Tokens {
    pub(crate) fn new(all: usize) -> Tokens {
        Tokens { all, ..Tokens::default() }
    }

    /// Jobs that wait for a token of the pool or of their limiter.
    pub(crate) fn queued(&self) -> usize {
        self.jobs.len() - self.in_use
    }

    /// Jobs that run although their caller was answered. O(jobs).
    pub(crate) fn abandoned(&self) -> usize {
        self.jobs.values().filter(|job| job.ticket.is_none()).count()
    }

    /// Adds a job that waits for its tokens.
    pub(crate) fn add(&mut self, number: u64, job: Job) {
        match &job.limiter {
            Some(limiter) if !may_pass(limiter) => _ = limiter.line.borrow_mut().insert(number),
            limiter => {
                limiter.as_deref().inspect(|limiter| take_token(limiter));
                self.line.insert(number);
            }
        }
        self.jobs.insert(number, job);
    }

    /// Gives a free token to the oldest job in the line, which is then to be run.
    pub(crate) fn grant(&mut self, now: Time) -> Option<(u64, Parcel)> {
        if self.in_use == self.all {
            return None;
        }
        let number = self.line.pop_first()?;
        let job = self.jobs.get_mut(&number)?;
        job.since = now;
        self.in_use += 1;
        self.peak = self.peak.max(self.in_use);
        Some((number, job.parcel.take()?))
    }

    /// The caller was answered first. The job goes on and keeps its tokens. False if it was
    /// abandoned before, or has ended.
    pub(crate) fn abandon(&mut self, number: u64, name: &str) -> bool {
        let Some(job) = self.jobs.get_mut(&number) else { return false };
        if job.ticket.take().is_none() {
            return false;
        }
        job.name = Some(name.to_owned());
        job.abandoned.store(true, Ordering::Release);
        true
    }

    /// Removes a job that still waits for a token. `None` if it runs, or has ended.
    pub(crate) fn withdraw(&mut self, number: u64) -> Option<Parcel> {
        let parcel = self.jobs.get_mut(&number)?.parcel.take()?;
        let limiter = self.jobs.remove(&number)?.limiter;
        if self.line.remove(&number) {
            self.leave(limiter);
        } else if let Some(limiter) = limiter {
            limiter.line.borrow_mut().remove(&number);
        }
        Some(parcel)
    }

    /// A job has really ended: its tokens are free. `None` if it is not here.
    pub(crate) fn end(&mut self, number: u64, now: Time) -> Option<Job> {
        let mut job = self.jobs.remove(&number)?;
        self.in_use -= 1;
        self.on_threads -= usize::from(job.on_thread);
        self.held += now.since(job.since);
        self.leave(job.limiter.take());
        Some(job)
    }

    /// A token of the limiter is free: the next job in its line gets it.
    fn leave(&mut self, limiter: Option<Rc<LimiterCore>>) {
        let Some(limiter) = limiter else { return };
        limiter.in_use.set(limiter.in_use.get() - 1);
        let next = limiter.line.borrow_mut().pop_first();
        if let Some(next) = next {
            take_token(&limiter);
            self.line.insert(next);
        }
    }

    /// The kernel is gone: nobody waits for its jobs, and their limiters may serve another. Gives
    /// the jobs, oldest first.
    pub(crate) fn abandon_all(&mut self) -> impl Iterator<Item = Job> + use<> {
        for job in self.jobs.values() {
            job.abandoned.store(true, Ordering::Release);
            job.limiter.iter().for_each(|limiter| limiter.reset());
        }
        std::mem::take(&mut self.jobs).into_values()
    }
}

fn may_pass(limiter: &LimiterCore) -> bool {
    limiter.line.borrow().is_empty() && limiter.in_use.get() < limiter.tokens
}

fn take_token(limiter: &LimiterCore) {
    limiter.in_use.set(limiter.in_use.get() + 1);
    limiter.peak.set(limiter.peak.get().max(limiter.in_use.get()));
}
