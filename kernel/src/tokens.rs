//! Jobs for worker threads, and who of them has a token: every job from its asking to its end.
//!
//! A job is queued (at its limiter, then in the line for tokens). With a token it runs when a
//! thread, or a script, takes it. It is abandoned when its caller is answered first. Its tokens
//! come back when it has really ended.
//!
//! Accounting on the kernel's thread. It starts no thread and runs no job: `threads.rs` has the
//! threads, `jobs.rs` the decisions.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use traps::Time;
use traps::protocol::{Site, TaskRef, Ticket};
use traps::threads::{LimiterCore, ThreadContext, Work};

/// A job as it is handed over.
pub struct Parcel {
    pub work: Box<dyn Work>,
    pub context: ThreadContext,
}

/// Where a job is. Its parcel is with it until something takes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// In its limiter's line.
    AtLimiter,
    /// In the line for tokens.
    InLine,
    /// It has a token, and nothing has taken it yet.
    Ready,
    /// It runs: on a thread, or by a script.
    Running { on_thread: bool },
}

pub(crate) struct Job {
    pub(crate) state: State,
    pub(crate) parcel: Option<Parcel>,
    /// Who waits for it; `None` once it was abandoned.
    pub(crate) ticket: Option<Ticket>,
    /// The job's own view of that.
    pub(crate) abandoned: Arc<AtomicBool>,
    /// The task that asked for it, and its number.
    pub(crate) task: (TaskRef, u64),
    /// The task's name; known when the job is abandoned, for the task may end.
    pub(crate) name: Option<String>,
    pub(crate) site: Site,
    /// Since when it is queued, or has its token.
    pub(crate) since: Time,
    pub(crate) limiter: Option<Rc<LimiterCore>>,
}

/// All jobs of a kernel, by number.
#[derive(Default)]
pub(crate) struct Tokens {
    /// How many there are, and how many jobs have.
    all: usize,
    in_use: usize,
    last: u64,
    pub(crate) jobs: BTreeMap<u64, Job>,
    /// Jobs that wait for a token, oldest first. One that was withdrawn is skipped later.
    line: VecDeque<u64>,
    pub(crate) counts: Counts,
}

/// How many jobs there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// In a line.
    pub(crate) queued: usize,
    /// With a real thread, or about to have one.
    pub(crate) on_threads: usize,
    pub(crate) abandoned: usize,
    /// The most tokens that were in use at one time.
    pub(crate) peak: usize,
    /// How long tokens were held by jobs that have ended, added up.
    pub(crate) held: Duration,
}

impl Tokens {
    pub(crate) fn new(all: usize) -> Tokens {
        Tokens { all, ..Tokens::default() }
    }

    /// How many tokens jobs have, abandoned ones too.
    pub(crate) fn in_use(&self) -> usize {
        self.in_use
    }

    /// The number that the next job will have.
    pub(crate) fn next_number(&self) -> u64 {
        self.last + 1
    }

    /// Takes a job in, at the end of the line where it is to wait. [`Tokens::grant`] gives it its
    /// token, at once if there is one.
    pub(crate) fn add(&mut self, mut job: Job) -> u64 {
        self.last += 1;
        self.counts.queued += 1;
        job.state = State::AtLimiter;
        let may_pass = job.limiter.as_ref().is_none_or(|limiter| enter(limiter, self.last));
        self.jobs.insert(self.last, job);
        if may_pass {
            self.join_line(self.last);
        }
        self.last
    }

    fn join_line(&mut self, number: u64) {
        if let Some(job) = self.jobs.get_mut(&number) {
            job.state = State::InLine;
            self.line.push_back(number);
        }
    }

    /// Gives the oldest job in the line a token, if there is one of each.
    pub(crate) fn grant(&mut self, now: Time) -> Option<u64> {
        if self.in_use == self.all {
            return None;
        }
        let number = loop {
            let number = self.line.pop_front()?;
            if self.jobs.contains_key(&number) {
                break number;
            }
        };
        let job = self.jobs.get_mut(&number)?;
        (job.since, job.state) = (now, State::Ready);
        self.in_use += 1;
        self.counts.queued -= 1;
        self.counts.peak = self.counts.peak.max(self.in_use);
        Some(number)
    }

    /// Takes a job that has its token out of here, to be run.
    pub(crate) fn hand_over(&mut self, number: u64, on_thread: bool) -> Parcel {
        let job = self.jobs.get_mut(&number).expect("rule: a job that is handed over is here");
        job.state = State::Running { on_thread };
        self.counts.on_threads += usize::from(on_thread);
        job.parcel.take().expect("rule: a job is handed over once")
    }

    /// Takes it back: no thread could run it now.
    pub(crate) fn take_back(&mut self, number: u64, parcel: Parcel) {
        let job = self.jobs.get_mut(&number).expect("rule: a job that comes back was here");
        (job.state, job.parcel) = (State::Ready, Some(parcel));
        self.counts.on_threads -= 1;
    }

    /// The caller was answered first; the job goes on, and its token with it. False if it was
    /// abandoned before, or has ended.
    pub(crate) fn abandon(&mut self, number: u64, name: &str) -> bool {
        let Some(job) = self.jobs.get_mut(&number) else { return false };
        if job.ticket.take().is_none() {
            return false;
        }
        job.name = Some(name.to_owned());
        job.abandoned.store(true, Ordering::Release);
        self.counts.abandoned += 1;
        true
    }

    /// Takes out a job that nothing has taken: it never runs. `None` if it runs, or has ended.
    pub(crate) fn withdraw(&mut self, number: u64) -> Option<Parcel> {
        let parcel = self.jobs.get_mut(&number)?.parcel.take()?;
        let job = self.jobs.remove(&number)?;
        match (job.state, job.limiter) {
            (State::AtLimiter, Some(limiter)) => {
                limiter.line.borrow_mut().remove(&number);
                self.counts.queued -= 1;
            }
            (State::Ready, limiter) => {
                self.in_use -= 1;
                self.leave(limiter);
            }
            (_, limiter) => {
                self.counts.queued -= 1;
                self.leave(limiter);
            }
        }
        Some(parcel)
    }

    /// A job has really ended: its tokens are free. `None` if it is not here.
    pub(crate) fn end(&mut self, number: u64, now: Time) -> Option<Job> {
        let mut job = self.jobs.remove(&number)?;
        self.in_use -= 1;
        self.counts.on_threads -= usize::from(job.state == State::Running { on_thread: true });
        self.counts.abandoned -= usize::from(job.ticket.is_none());
        self.counts.held += now.since(job.since);
        self.leave(job.limiter.take());
        Some(job)
    }

    /// A token of the limiter is free: the next in its line goes on.
    fn leave(&mut self, limiter: Option<Rc<LimiterCore>>) {
        let Some(limiter) = limiter else { return };
        limiter.in_use.set(limiter.in_use.get() - 1);
        let next = limiter.line.borrow_mut().pop_first();
        if let Some(next) = next {
            take_token(&limiter);
            self.join_line(next);
        }
    }

    /// The kernel is gone: nobody waits for its jobs, and their limiters may serve another. Gives
    /// the jobs that were not handed over, oldest first.
    pub(crate) fn abandon_all(&mut self) -> Vec<Job> {
        for job in self.jobs.values() {
            job.abandoned.store(true, Ordering::Release);
            if let Some(limiter) = &job.limiter {
                limiter.reset();
            }
        }
        std::mem::take(&mut self.jobs).into_values().collect()
    }
}

/// Takes a token of the limiter, or a place at the end of its line: then false.
fn enter(limiter: &LimiterCore, number: u64) -> bool {
    let mut line = limiter.line.borrow_mut();
    if !line.is_empty() || limiter.in_use.get() >= limiter.tokens {
        line.insert(number);
        return false;
    }
    take_token(limiter);
    true
}

fn take_token(limiter: &LimiterCore) {
    limiter.in_use.set(limiter.in_use.get() + 1);
    limiter.peak.set(limiter.peak.get().max(limiter.in_use.get()));
}
