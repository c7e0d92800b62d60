//! Who has a token of the pool, and who waits for one: every job from its asking to its end.
//!
//! Pure accounting on the kernel's thread, the same on every machine. It starts no thread and runs
//! no job; `threads.rs` has the threads, `jobs.rs` the decisions.
//!
//! A job is queued (at its limiter, then in the pool's line), then it has a token; it runs when
//! something took it, and is abandoned when its caller is answered first. Its tokens come back when
//! it has really ended (rows X8, R16).

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use traps::Time;
use traps::protocol::{Site, TaskRef};
use traps::threads::{LimiterCore, Outlook, ThreadContext, Work};

use crate::threads::JobId;

/// A job as it is handed over.
pub struct Parcel {
    pub work: Box<dyn Work>,
    pub context: ThreadContext,
}

/// Where a job is.
pub(crate) enum State {
    /// In its limiter's line.
    AtLimiter(Parcel),
    /// In the pool's line, at this place.
    InLine(Parcel, u64),
    /// It has a token, and nothing has taken it yet.
    Ready(Parcel, u32),
    /// It runs by this token: on a thread, or by a script.
    Running { token: u32, on_thread: bool },
}

pub(crate) struct Job {
    pub(crate) state: State,
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
    last: JobId,
    jobs: BTreeMap<JobId, Job>,
    /// By their places: a job may leave it from the middle.
    line: BTreeMap<u64, JobId>,
    places: u64,
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
            jobs: BTreeMap::new(),
            line: BTreeMap::new(),
            places: 0,
            stalled: VecDeque::new(),
            outlook,
            counts: Counts::default(),
        }
    }

    /// The number that the next job will have.
    pub(crate) fn next_number(&self) -> JobId {
        self.last + 1
    }

    /// Takes a job in, at the end of the line where it is to wait. [`Workers::grant`] gives it its
    /// token, at once if there is one.
    pub(crate) fn add(&mut self, order: Order, now: Time) -> JobId {
        self.last += 1;
        let Order { parcel, ticket, task, site, limiter } = order;
        let state = match &limiter {
            Some(limiter) if !limiter.line.borrow().is_empty() || is_full(limiter) => {
                limiter.line.borrow_mut().insert(self.last);
                State::AtLimiter(parcel)
            }
            limiter => {
                if let Some(limiter) = limiter {
                    enter(limiter);
                }
                State::InLine(parcel, self.join_line(self.last))
            }
        };
        let job = Job { state, ticket: Some(ticket), task, name: None, site, since: now, limiter };
        self.jobs.insert(self.last, job);
        self.counts.queued += 1;
        self.last
    }

    /// At its end.
    fn join_line(&mut self, number: JobId) -> u64 {
        self.places += 1;
        self.line.insert(self.places, number);
        self.places
    }

    /// Gives the oldest job in the pool's line a token, if there is one of each.
    pub(crate) fn grant(&mut self, now: Time) -> Option<JobId> {
        if self.in_use == self.tokens {
            return None;
        }
        let (_, number) = self.line.pop_first()?;
        let token = self.free.pop().unwrap_or_else(|| {
            u32::try_from(self.in_use).expect("there are fewer tokens than that")
        });
        self.in_use += 1;
        self.counts.peak = self.counts.peak.max(self.in_use);
        self.counts.queued -= 1;
        let job = self.jobs.get_mut(&number).expect("the line holds jobs");
        job.since = now;
        job.advance(|state| match state {
            State::InLine(mut parcel, _) => {
                parcel.context.set_token(token);
                State::Ready(parcel, token)
            }
            _ => unreachable!("rule: only a job in the line gets a token"),
        });
        Some(number)
    }

    /// Takes a job that has its token out of here, to be run.
    pub(crate) fn hand_over(&mut self, number: JobId, on_thread: bool) -> Parcel {
        let job = self.jobs.get_mut(&number).expect("rule: a job that is handed over is here");
        let state = std::mem::replace(&mut job.state, State::Running { token: 0, on_thread });
        let State::Ready(parcel, token) = state else {
            unreachable!("rule: only a job with a token, and only once, is handed over")
        };
        job.state = State::Running { token, on_thread };
        self.counts.on_threads += usize::from(on_thread);
        parcel
    }

    /// Takes it back: nothing could run it now.
    pub(crate) fn take_back(&mut self, number: JobId, parcel: Parcel) {
        let job = self.jobs.get_mut(&number).expect("rule: a job that comes back was here");
        let State::Running { token, on_thread } = job.state else {
            unreachable!("rule: only a job that was handed over comes back")
        };
        job.state = State::Ready(parcel, token);
        self.counts.on_threads -= usize::from(on_thread);
    }

    /// The jobs that have a token and could not be handed over.
    pub(crate) fn stalled(&mut self) -> &mut VecDeque<JobId> {
        &mut self.stalled
    }

    /// The caller was answered first; the job goes on, and its token with it.
    pub(crate) fn abandon(&mut self, number: JobId, name: &str) {
        let job = self.jobs.get_mut(&number).expect("rule: a job that is abandoned is here");
        let State::Running { token, .. } = job.state else {
            unreachable!("rule: a job that does not run is withdrawn, not abandoned")
        };
        assert!(job.ticket.take().is_some(), "rule: a job is abandoned once");
        job.name = Some(name.to_owned());
        self.outlook.abandon(token, number);
        self.counts.abandoned += 1;
    }

    /// Takes out a job that nothing has taken: it never runs. `None` if it runs, or has ended.
    pub(crate) fn withdraw(&mut self, number: JobId) -> Option<Parcel> {
        let job = self.jobs.get(&number)?;
        match &job.state {
            State::Running { .. } => return None,
            State::AtLimiter(_) => {
                let limiter = job.limiter.as_ref().expect("it waits at its limiter");
                limiter.line.borrow_mut().remove(&number);
                self.counts.queued -= 1;
            }
            State::InLine(_, place) => {
                self.line.remove(place);
                self.counts.queued -= 1;
            }
            State::Ready(_, token) => {
                self.stalled.retain(|waiting| *waiting != number);
                self.free.push(*token);
                self.in_use -= 1;
            }
        }
        let job = self.jobs.remove(&number).expect("looked at above");
        match job.state {
            State::AtLimiter(parcel) => Some(parcel),
            State::InLine(parcel, _) | State::Ready(parcel, _) => {
                self.leave(job.limiter);
                Some(parcel)
            }
            State::Running { .. } => unreachable!("looked at above"),
        }
    }

    /// A job has really ended: its tokens are free. `None` if it is not here.
    pub(crate) fn end(&mut self, number: JobId, now: Time) -> Option<Job> {
        let mut job = self.jobs.remove(&number)?;
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
        let Some(next) = next else { return };
        enter(&limiter);
        let place = self.join_line(next);
        self.jobs.get_mut(&next).expect("a limiter's line holds jobs").advance(
            |state| match state {
                State::AtLimiter(parcel) => State::InLine(parcel, place),
                _ => unreachable!("rule: only a job at its limiter goes on to the line"),
            },
        );
    }

    pub(crate) fn get(&self, number: JobId) -> Option<&Job> {
        self.jobs.get(&number)
    }

    /// All jobs, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (JobId, &Job)> {
        self.jobs.iter().map(|(number, job)| (*number, job))
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// How many tokens jobs have, abandoned ones too.
    pub(crate) fn in_use(&self) -> usize {
        self.in_use
    }

    /// All that were not handed over, for a kernel that ends.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Job> + use<> {
        std::mem::take(&mut self.jobs).into_values()
    }

    /// Their kernel is gone: limiters may serve another.
    pub(crate) fn reset_limiters(&mut self) {
        self.jobs.values().filter_map(|job| job.limiter.as_ref()).for_each(|core| core.reset());
    }
}

impl Job {
    fn advance(&mut self, to: impl FnOnce(State) -> State) {
        let nothing = State::Running { token: u32::MAX, on_thread: false };
        self.state = to(std::mem::replace(&mut self.state, nothing));
    }
}

fn is_full(limiter: &LimiterCore) -> bool {
    limiter.in_use.get() >= limiter.tokens
}

fn enter(limiter: &LimiterCore) {
    limiter.in_use.set(limiter.in_use.get() + 1);
    limiter.peak.set(limiter.peak.get().max(limiter.in_use.get()));
}
