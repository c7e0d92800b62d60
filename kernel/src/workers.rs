//! Who has a token of the pool, and who waits for one: every job from its asking to its end.
//!
//! Pure accounting on the kernel's thread, the same on every machine. It starts no thread and runs
//! no job; `threads.rs` has the threads, `jobs.rs` the decisions.
//!
//! A job is queued (at its limiter, then in the pool's line), then it has a token; it runs when
//! something took it, and is abandoned when its caller is answered first. Its tokens come back when
//! it has really ended (rows X8, R16).

use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use slab::Slab;
use traps::Time;
use traps::protocol::{Site, TaskRef};
use traps::threads::{LimiterCore, Outlook, ThreadContext, Work};

use crate::task::NONE;
use crate::threads::JobId;

/// A job as it is handed over.
pub struct Parcel {
    pub work: Box<dyn Work>,
    pub context: ThreadContext,
}

/// Where a job is. Its parcel is with it until something takes it.
#[derive(Clone, Copy)]
pub(crate) enum State {
    /// In its limiter's line.
    AtLimiter,
    /// In the pool's line.
    InLine,
    /// It has a token, and nothing has taken it yet.
    Ready { token: u32 },
    /// It runs by this token: on a thread, or by a script.
    Running { token: u32, on_thread: bool },
}

pub(crate) struct Job {
    number: u64,
    pub(crate) state: State,
    parcel: Option<Parcel>,
    /// Neighbours in the pool's line, which a job may leave from the middle.
    before: u32,
    after: u32,
    /// Who waits for it; `None` once it was abandoned.
    pub(crate) ticket: Option<u32>,
    pub(crate) task: TaskRef,
    /// Of its task; known when it is abandoned, for the task may end.
    pub(crate) name: Option<String>,
    pub(crate) site: Site,
    /// Since when it is queued, or has its token.
    pub(crate) since: Time,
    pub(crate) limiter: Option<Rc<LimiterCore>>,
}

/// What a job is made of.
pub(crate) struct Order {
    pub(crate) parcel: Parcel,
    pub(crate) ticket: u32,
    pub(crate) task: TaskRef,
    pub(crate) site: Site,
    pub(crate) limiter: Option<Rc<LimiterCore>>,
}

/// All jobs of a kernel.
pub(crate) struct Workers {
    tokens: usize,
    /// Tokens that came back; the last one is used next.
    free: Vec<u32>,
    in_use: usize,
    last: u64,
    jobs: Slab<Job>,
    /// The first and the last in the pool's line.
    line: (u32, u32),
    /// Jobs in state `Ready` that could not be handed over, oldest first.
    stalled: VecDeque<JobId>,
    pub(crate) outlook: Arc<Outlook>,
    pub(crate) counts: Counts,
}

/// How many jobs there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// In a line, the pool's or a limiter's.
    pub(crate) queued: usize,
    /// With a real thread, or about to have one.
    pub(crate) on_threads: usize,
    pub(crate) abandoned: usize,
    /// Most tokens in use at one time.
    pub(crate) peak: usize,
    /// How long tokens were held by jobs that have ended, added up.
    pub(crate) held: Duration,
}

impl Workers {
    /// With this many tokens. The outlook is what the jobs see of their kernel.
    pub(crate) fn new(tokens: usize, outlook: Arc<Outlook>) -> Workers {
        Workers {
            tokens,
            free: Vec::new(),
            in_use: 0,
            last: 0,
            jobs: Slab::new(),
            line: (NONE, NONE),
            stalled: VecDeque::new(),
            outlook,
            counts: Counts::default(),
        }
    }

    /// The number that the next job will have.
    pub(crate) fn next_number(&self) -> u64 {
        self.last + 1
    }

    /// Takes a job in, at the end of the line where it is to wait. [`Workers::grant`] gives it its
    /// token, at once if there is one.
    pub(crate) fn add(&mut self, order: Order, now: Time) -> JobId {
        self.last += 1;
        let Order { parcel, ticket, task, site, limiter } = order;
        let slot = u32::try_from(self.jobs.vacant_key()).expect("fewer than 2^32 jobs");
        let job = JobId { number: self.last, slot };
        let waits = limiter.as_ref().is_some_and(|limiter| !enter(limiter, job));
        self.jobs.insert(Job {
            number: self.last,
            state: State::AtLimiter,
            parcel: Some(parcel),
            before: NONE,
            after: NONE,
            ticket: Some(ticket),
            task,
            name: None,
            site,
            since: now,
            limiter,
        });
        if !waits {
            self.join_line(slot);
        }
        self.counts.queued += 1;
        job
    }

    /// At its end.
    fn join_line(&mut self, slot: u32) {
        let before = mem::replace(&mut self.line.1, slot);
        match before {
            NONE => self.line.0 = slot,
            before => self.jobs[before as usize].after = slot,
        }
        let job = &mut self.jobs[slot as usize];
        (job.state, job.before, job.after) = (State::InLine, before, NONE);
    }

    /// From wherever it stands.
    fn leave_line(&mut self, slot: u32) {
        let Job { before, after, .. } = self.jobs[slot as usize];
        match before {
            NONE => self.line.0 = after,
            before => self.jobs[before as usize].after = after,
        }
        match after {
            NONE => self.line.1 = before,
            after => self.jobs[after as usize].before = before,
        }
    }

    /// Gives the oldest job in the pool's line a token, if there is one of each.
    pub(crate) fn grant(&mut self, now: Time) -> Option<JobId> {
        let slot = self.line.0;
        if slot == NONE || self.in_use == self.tokens {
            return None;
        }
        self.leave_line(slot);
        let token = self.free.pop().unwrap_or_else(|| {
            u32::try_from(self.in_use).expect("there are fewer tokens than that")
        });
        self.in_use += 1;
        self.counts.peak = self.counts.peak.max(self.in_use);
        self.counts.queued -= 1;
        let job = &mut self.jobs[slot as usize];
        (job.since, job.state) = (now, State::Ready { token });
        if let Some(parcel) = &mut job.parcel {
            parcel.context.set_token(token);
        }
        Some(JobId { number: job.number, slot })
    }

    /// Takes a job that has its token out of here, to be run.
    pub(crate) fn hand_over(&mut self, job: JobId, on_thread: bool) -> Parcel {
        let job = self.find(job).expect("rule: a job that is handed over is here");
        let (State::Ready { token }, Some(parcel)) = (job.state, job.parcel.take()) else {
            unreachable!("rule: only a job with a token, and only once, is handed over")
        };
        job.state = State::Running { token, on_thread };
        self.counts.on_threads += usize::from(on_thread);
        parcel
    }

    /// Takes it back: nothing could run it now.
    pub(crate) fn take_back(&mut self, job: JobId, parcel: Parcel) {
        let job = self.find(job).expect("rule: a job that comes back was here");
        let State::Running { token, on_thread } = job.state else {
            unreachable!("rule: only a job that was handed over comes back")
        };
        (job.state, job.parcel) = (State::Ready { token }, Some(parcel));
        self.counts.on_threads -= usize::from(on_thread);
    }

    /// The jobs that have a token and could not be handed over.
    pub(crate) fn stalled(&mut self) -> &mut VecDeque<JobId> {
        &mut self.stalled
    }

    /// The caller was answered first; the job goes on, and its token with it.
    pub(crate) fn abandon(&mut self, id: JobId, name: &str) {
        let job = self.find(id).expect("rule: a job that is abandoned is here");
        let State::Running { token, .. } = job.state else {
            unreachable!("rule: a job that does not run is withdrawn, not abandoned")
        };
        assert!(job.ticket.take().is_some(), "rule: a job is abandoned once");
        job.name = Some(name.to_owned());
        self.outlook.abandon(token);
        self.counts.abandoned += 1;
    }

    /// Takes out a job that nothing has taken: it never runs. `None` if it runs, or has ended.
    pub(crate) fn withdraw(&mut self, id: JobId) -> Option<Parcel> {
        let job = self.find(id)?;
        let parcel = job.parcel.take()?;
        let limiter = job.limiter.take();
        match job.state {
            State::AtLimiter => {
                let limiter = limiter.as_ref().expect("it waits at its limiter");
                limiter.line.borrow_mut().remove(&id.number);
                self.counts.queued -= 1;
            }
            State::InLine => {
                self.leave_line(id.slot);
                self.leave(limiter);
                self.counts.queued -= 1;
            }
            State::Ready { token } => {
                self.stalled.retain(|waiting| *waiting != id);
                self.free.push(token);
                self.in_use -= 1;
                self.leave(limiter);
            }
            State::Running { .. } => unreachable!("rule: a job that runs has no parcel here"),
        }
        self.jobs.remove(id.slot as usize);
        Some(parcel)
    }

    /// A job has really ended: its tokens are free. `None` if it is not here.
    pub(crate) fn end(&mut self, id: JobId, now: Time) -> Option<Job> {
        self.find(id)?;
        let mut job = self.jobs.remove(id.slot as usize);
        let State::Running { token, on_thread } = job.state else {
            unreachable!("rule: only a job that runs ends")
        };
        self.free.push(token);
        self.in_use -= 1;
        self.counts.on_threads -= usize::from(on_thread);
        self.counts.abandoned -= usize::from(job.ticket.is_none());
        self.counts.held += now.since(job.since);
        self.leave(job.limiter.take());
        Some(job)
    }

    /// A token of the limiter is free: the next in its line goes on to the pool's.
    fn leave(&mut self, limiter: Option<Rc<LimiterCore>>) {
        let Some(limiter) = limiter else { return };
        limiter.in_use.set(limiter.in_use.get() - 1);
        let next = limiter.line.borrow_mut().pop_first();
        if let Some((_, slot)) = next {
            take_token(&limiter);
            self.join_line(slot);
        }
    }

    fn find(&mut self, job: JobId) -> Option<&mut Job> {
        self.jobs.get_mut(job.slot as usize).filter(|found| found.number == job.number)
    }

    pub(crate) fn get(&self, job: JobId) -> Option<&Job> {
        self.jobs.get(job.slot as usize).filter(|found| found.number == job.number)
    }

    /// All jobs, oldest first. O(jobs log jobs).
    pub(crate) fn all(&self) -> Vec<JobId> {
        let id = |(slot, job): (usize, &Job)| JobId { number: job.number, slot: slot as u32 };
        let mut jobs: Vec<JobId> = self.jobs.iter().map(id).collect();
        jobs.sort_unstable_by_key(|job| job.number);
        jobs
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// How many tokens jobs have, abandoned ones too.
    pub(crate) fn in_use(&self) -> usize {
        self.in_use
    }

    /// All that were not handed over, for a kernel that ends.
    pub(crate) fn take_all(&mut self) -> Vec<Job> {
        self.line = (NONE, NONE);
        let mut jobs: Vec<Job> = self.jobs.drain().collect();
        jobs.sort_unstable_by_key(|job| job.number);
        jobs
    }

    /// Their kernel is gone: limiters may serve another.
    pub(crate) fn reset_limiters(&mut self) {
        self.jobs.iter().filter_map(|(_, job)| job.limiter.as_ref()).for_each(|core| core.reset());
    }
}

/// Takes a token of the limiter, or a place at the end of its line: then false.
fn enter(limiter: &LimiterCore, job: JobId) -> bool {
    let mut line = limiter.line.borrow_mut();
    if !line.is_empty() || limiter.in_use.get() >= limiter.tokens {
        line.insert(job.number, job.slot);
        return false;
    }
    take_token(limiter);
    true
}

fn take_token(limiter: &LimiterCore) {
    limiter.in_use.set(limiter.in_use.get() + 1);
    limiter.peak.set(limiter.peak.get().max(limiter.in_use.get()));
}
