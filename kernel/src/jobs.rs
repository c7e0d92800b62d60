//! Jobs for worker threads: how they start, and what becomes of their end.
//!
//! Who has a token is in `tokens.rs`; the threads are in `threads.rs`.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;

use traps::protocol::{Answer, Owned, Site};
use traps::threads::{ThreadContext, Work, drop_quietly, quietly};
use traps::{TaskId, Time};

use crate::kernel::Kernel;
use crate::limits::THREAD_PAUSE;
use crate::log::{self, KERNEL, WAKEUP, announce, emit, emit_for};
use crate::machine::Machine;
use crate::options::Options;
use crate::table::Asker;
use crate::threads::{Deliver, Done, Pool};
use crate::timers::{Owner, TimerId};
use crate::tokens::{Job, Parcel, State, Tokens};
use crate::trace::{Event, Op, Seq, WakeOp};
use crate::waits::On;
use crate::wake::WakeQueue;
use crate::wakeup::Message;

/// A job as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobView {
    /// Its number, `o3` in the log.
    pub number: u64,
    /// `queued`, `running`, or `abandoned`: its caller was answered first.
    pub state: &'static str,
    /// The task that asked for it.
    pub task: u64,
    /// That task's name.
    pub name: String,
    /// Since when it is queued, or has its token.
    pub since: Time,
    /// Where it was asked for, `file:line`.
    pub site: String,
    /// The name of its limiter, if it has one.
    pub limiter: Option<&'static str>,
}

/// A job that ended when nobody waited for it any more.
#[non_exhaustive]
pub struct Orphan {
    /// Its number, `o3` in the log.
    pub job: u64,
    /// The task that had asked for it, which may have ended.
    pub task: u64,
    /// Where, `file:line`.
    pub site: String,
    /// Its value, to be downcast, or the message of its panic.
    pub outcome: Result<Box<dyn Any + Send>, String>,
}

impl fmt::Debug for Orphan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orphan")
            .field("job", &self.job)
            .field("task", &self.task)
            .field("site", &self.site)
            .field("outcome", &self.outcome.as_ref().map(|_| "a value"))
            .finish()
    }
}

type Clock = dyn Fn() -> Time + Send + Sync;

/// What a kernel keeps of its jobs.
pub(crate) struct Jobs {
    pub(crate) tokens: Tokens,
    pub(crate) pool: Pool,
    deliver: Deliver,
    clock: Arc<Clock>,
    on_orphan: Option<Box<dyn FnMut(Orphan)>>,
    /// Jobs with a token for which no thread could be started, oldest first.
    stalled: VecDeque<u64>,
    /// The timer after which that is tried again.
    retry: Option<TimerId>,
    /// A line has said that no thread can be started.
    is_failing: bool,
}

impl Jobs {
    pub(crate) fn new(
        options: &Options,
        clock: Box<Clock>,
        queue: &Arc<WakeQueue<Message>>,
    ) -> Jobs {
        let queue = queue.clone();
        let deliver: Deliver = Arc::new(move |done| _ = queue.push(Message::Done(done)));
        Jobs {
            tokens: Tokens::new(options.threads),
            pool: Pool::new(options.idle, deliver.clone()),
            deliver,
            clock: Arc::from(clock),
            on_orphan: None,
            stalled: VecDeque::new(),
            retry: None,
            is_failing: false,
        }
    }

    /// How many jobs have a real thread, or are about to.
    pub(crate) fn on_threads(&self) -> usize {
        self.tokens.counts.on_threads
    }
}

/// How a job starts.
impl<M: Machine> Kernel<M> {
    /// The `offload` trap.
    pub(crate) fn offload(&mut self, asker: &Asker) {
        let Some(Owned::Offload(work, limiter)) = self.gate.take_owned(asker.asked.serial) else {
            unreachable!("rule: a request for a thread owns its job")
        };
        let task = self.tasks.name_of(asker.task);
        let until = self.in_force(asker.scope()).map_or(Time::NEVER, |found| found.deadline);
        let context = ThreadContext::new(until, &self.jobs.clock, task);
        if let Some(limiter) = &limiter {
            limiter.home.set(self.shared.epoch);
        }
        let named = limiter.as_ref().map(|limiter| limiter.name);
        let job = self.jobs.tokens.add(Job {
            state: State::InLine,
            abandoned: context.abandoned(),
            parcel: Some(Parcel { work, context }),
            ticket: Some(asker.ticket()),
            task: (task, self.tasks[asker.task].id),
            name: None,
            site: asker.site(),
            since: self.log.now,
            limiter,
        });
        // Whoever was in line before it has had every token that was free.
        let starts = self.jobs.tokens.grant(self.log.now) == Some(job);
        let (running, queued) = self.occupation();
        emit!(self, asker.task, {
            let limiter = named.map(Into::into);
            Event::Offload { job, running, queued, limiter }
        });
        if starts {
            self.start_job(job);
        }
        self.park(asker, On::Job(job), || Op::Offload { job });
    }

    /// How many jobs have a token, and how many wait for one.
    fn occupation(&self) -> (u32, u32) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let tokens = &self.jobs.tokens;
        (count(tokens.in_use()), count(tokens.counts.queued))
    }

    /// Gives the tokens that are free to those who wait for them.
    fn grant_tokens(&mut self, cause: Seq) {
        while let Some(job) = self.jobs.tokens.grant(self.log.now) {
            let (running, queued) = self.occupation();
            emit_for!(self, WAKEUP, Event::OffloadStarts { job, running, queued, cause });
            self.start_job(job);
        }
    }

    /// Has a job run that has its token. Nobody overtakes those for which there was no thread.
    fn start_job(&mut self, job: u64) {
        self.jobs.stalled.push_back(job);
        if self.jobs.stalled.len() == 1 {
            self.start_stalled();
        }
    }

    /// Starts the jobs that wait for a thread, until there is none for the next.
    fn start_stalled(&mut self) {
        while let Some(job) = self.jobs.stalled.front().copied() {
            if let Err(error) = self.try_to_start(job) {
                return self.retry_later(&error);
            }
            self.jobs.stalled.pop_front();
        }
        if let Some(timer) = self.jobs.retry.take() {
            self.timers.cancel(timer);
        }
    }

    fn try_to_start(&mut self, job: u64) -> io::Result<()> {
        if self.machine.scripts_jobs() {
            let view = self.job_view(job);
            if let Some(span) = self.machine.job_span(&view) {
                let parcel = self.jobs.tokens.hand_over(job, false);
                self.machine.play_job(job, parcel, span, &self.jobs.deliver);
                return Ok(());
            }
        }
        self.machine.may_start_thread()?;
        let parcel = self.jobs.tokens.hand_over(job, true);
        if let Err((error, parcel)) = self.jobs.pool.submit(job, parcel) {
            self.jobs.tokens.take_back(job, parcel);
            return Err(error);
        }
        if std::mem::take(&mut self.jobs.is_failing) {
            announce!(self, KERNEL, Event::Warn { text: "jobs find threads again".into() });
        }
        Ok(())
    }

    #[cold]
    fn retry_later(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.jobs.is_failing, true) {
            let text = format!(
                "no thread could be started: {error}; jobs wait, and it is tried again every 100 ms"
            );
            announce!(self, KERNEL, Event::Warn { text: text.into() });
        }
        if self.jobs.retry.is_none() {
            let timer = self.timers.set(self.log.now + THREAD_PAUSE, Owner::Retry, 0);
            self.jobs.retry = Some(timer);
        }
    }

    /// The timer of those jobs has fired.
    #[cold]
    pub(crate) fn retry_threads(&mut self) {
        self.jobs.retry = None;
        self.start_stalled();
    }
}

/// What becomes of its end.
impl<M: Machine> Kernel<M> {
    pub(crate) fn job_done(&mut self, done: Done) {
        let Done { job, work } = done;
        let Some(ended) = self.jobs.tokens.end(job, self.log.now) else {
            return drop_quietly(work);
        };
        let seq = match ended.ticket {
            Some(ticket) => {
                let seq = emit_for!(self, WAKEUP, Event::Done { job });
                let owned = Owned::Job { job, task: TaskId(ended.task.1), work };
                self.tasks[ticket.task].own(ticket.serial, owned);
                let come = On::Answered(Answer::Owned);
                self.complete(ticket, come, |_| (WakeOp::Offload { job }, seq));
                seq
            }
            None => {
                let seq = emit_for!(self, WAKEUP, Event::Orphan { job });
                self.give_orphan(job, ended.task.1, ended.site, work);
                seq
            }
        };
        // Its worker is free.
        self.start_stalled();
        self.grant_tokens(seq);
    }

    /// A job ended in time, and its future was dropped before it read the value.
    pub(crate) fn job_unheard(&mut self, job: u64, task: TaskId, site: Site, work: Box<dyn Work>) {
        emit_for!(self, KERNEL, Event::Orphan { job });
        self.give_orphan(job, task.0, site, work);
    }

    fn give_orphan(&mut self, job: u64, task: u64, site: Site, work: Box<dyn Work>) {
        let Some(mut hook) = self.jobs.on_orphan.take() else { return drop_quietly(work) };
        let site = log::place_of(site);
        quietly(|| {
            let Some(outcome) = work.into_outcome() else { return };
            hook(Orphan { job, task, site, outcome });
        });
        // One that it set meanwhile stays.
        self.jobs.on_orphan.get_or_insert(hook);
    }

    /// The future of a wait for a job is gone, or was interrupted.
    pub(crate) fn stop_waiting_for_job(&mut self, task: u32, job: u64) {
        if let Some(parcel) = self.jobs.tokens.withdraw(job) {
            let what = || format!("o{job}_before_it_ran").into();
            let seq = emit!(self, task, Event::Drop { what: what() });
            drop_quietly(parcel);
            self.jobs.stalled.retain(|other| *other != job);
            self.start_stalled();
            self.grant_tokens(seq);
        } else if self.jobs.tokens.abandon(job, self.tasks.label(task).1) {
            emit!(self, task, Event::Abandon { job });
        }
    }

    /// At the end of a shutdown: a job that was handed to the pool, and that no thread has begun,
    /// never runs.
    pub(crate) fn drop_queued_jobs(&mut self) {
        for (job, parcel) in self.jobs.pool.close() {
            self.jobs.tokens.end(job, self.log.now);
            let what = || format!("o{job}_before_it_ran").into();
            emit_for!(self, KERNEL, Event::Drop { what: what() });
            drop_quietly(parcel);
        }
    }

    /// What a script would have ended later ends here; a thread's job is its thread's.
    pub(crate) fn drop_scripted_jobs(&mut self) {
        let is_scripted = |job: &Job| job.state == State::Running { on_thread: false };
        let all = self.jobs.tokens.jobs.iter();
        let scripted: Vec<u64> = all.filter(|(_, job)| is_scripted(job)).map(|(n, _)| *n).collect();
        for job in scripted {
            self.jobs.tokens.end(job, self.log.now);
            emit_for!(self, KERNEL, Event::Drop { what: format!("o{job}").into() });
        }
        self.machine.drop_jobs();
    }

    /// The kernel is dropped.
    pub(crate) fn drop_jobs(&mut self) {
        self.jobs.tokens.abandon_all().into_iter().for_each(drop_quietly);
        self.machine.drop_jobs();
    }
}

/// What the owner sees of it.
impl<M: Machine> Kernel<M> {
    /// The jobs that have not ended, in the order of their numbers: a snapshot. A job that has a
    /// token, abandoned or not, has held it [since](JobView::since).
    #[must_use]
    pub fn jobs(&self) -> Vec<JobView> {
        self.jobs.tokens.jobs.keys().map(|job| self.job_view(*job)).collect()
    }

    fn job_view(&self, number: u64) -> JobView {
        let job = &self.jobs.tokens.jobs[&number];
        let name = || self.tasks.find(job.task.0).map(|task| self.tasks.label(task).1.to_owned());
        JobView {
            number,
            state: match (job.state, job.ticket) {
                (State::AtLimiter | State::InLine, _) => "queued",
                (State::Ready | State::Running { .. }, Some(_)) => "running",
                (State::Ready | State::Running { .. }, None) => "abandoned",
            },
            task: job.task.1,
            name: job.name.clone().or_else(name).unwrap_or_default(),
            since: job.since,
            site: log::place_of(job.site),
            limiter: job.limiter.as_ref().map(|limiter| limiter.name),
        }
    }

    /// Has `hook` called with the value of each job that ends when nobody waits for it any more,
    /// or whose value is dropped unread: a connection that is to be closed, for example.
    ///
    /// Called inside the kernel's loop, so it must not block. A panic in it is caught. Replaces an
    /// earlier hook.
    ///
    /// An item of [`iterate_in_thread`](traps::iterate_in_thread()) is no such value: it waits for
    /// the next call, or was dropped with its source. Only the panic of an iterator whose source
    /// is gone comes here.
    pub fn on_orphan(&mut self, hook: impl FnMut(Orphan) + 'static) {
        self.jobs.on_orphan = Some(Box::new(hook));
    }
}
