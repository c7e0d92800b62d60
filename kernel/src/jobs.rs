//! Jobs for worker threads: who gets a token, and what becomes of a job's end.
//!
//! The counts are `workers.rs`'s, the threads `threads.rs`'s.

use std::any::Any;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use traps::Time;
use traps::protocol::{Answer, Site};
use traps::threads::{LimiterCore, ThreadContext, Work};

use crate::emit::{KERNEL, WAKEUP, announce, drop_quietly, emit, emit_for, quietly};
use crate::kernel::Kernel;
use crate::limits::{THREAD_PAUSE, THREAD_PAUSE_MOST};
use crate::log;
use crate::machine::Machine;
use crate::owner::Owner;
use crate::table::At;
use crate::threads::{Done, JobId};
use crate::timers::{Class, Rank, TimerId};
use crate::trace::{Event, Op, Seq, WakeOp};
use crate::waits::Wait;
use crate::workers::{Order, Parcel, State};

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

/// A job that ended when nobody waited for it any more (row X8).
#[non_exhaustive]
pub struct Orphan {
    /// Its number, `o3` in the log.
    pub job: u64,
    /// The task that had asked for it, which may have ended.
    pub task: u64,
    /// Where, `file:line`.
    pub site: String,
    /// Its value, to be downcast, or the message of its panic.
    pub outcome: Result<Box<dyn Any>, String>,
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

/// What the kernel keeps beside the accounts: who hears of orphans, and when threads are tried
/// again.
#[derive(Default)]
pub(crate) struct Jobs {
    pub(crate) on_orphan: Option<Box<dyn FnMut(Orphan)>>,
    /// The timer for jobs that no thread took, until it is due, and how long it ran.
    retry: Option<(Option<TimerId>, Duration)>,
    /// Threads could not be started, and a line has said so.
    failing: bool,
}

impl Jobs {
    /// The timer came true, and has yet to act.
    pub(crate) fn expire_retry(&mut self) {
        if let Some((timer, _)) = &mut self.retry {
            *timer = None;
        }
    }
}

impl<M: Machine> Kernel<M> {
    pub(crate) fn offload(
        &mut self,
        at: &At,
        work: Box<dyn Work>,
        limiter: Option<Rc<LimiterCore>>,
    ) {
        let name = self.tasks.name_of(at.task);
        let until = self.in_force(at.scope).map_or(Time::NEVER, |found| found.deadline);
        let (number, locals) = (self.workers.next_number(), self.gate.crossing_locals(name));
        let context = ThreadContext::new(number, until, &self.workers.outlook, locals);
        if let Some(limiter) = &limiter {
            limiter.home.set(self.epoch);
        }
        let named = limiter.as_ref().map(|limiter| limiter.name);
        let parcel = Parcel { work, context };
        let order = Order { parcel, ticket: at.ticket.index, task: name, site: at.site, limiter };
        let job = self.workers.add(order, self.log.now);
        // Whoever was in line before it has had every token that was free.
        let starts = self.workers.grant(self.log.now) == Some(job);
        let (running, queued) = self.occupation();
        emit!(self, at.task, {
            let limiter = named.map(Into::into);
            Event::Offload { job: number, running, queued, limiter }
        });
        if starts {
            self.start_job(job);
        }
        self.park(at, Wait::Job { number, slot: job.slot }, || Op::Offload { job: number });
    }

    /// Jobs that have a token, and jobs that have none: from the accounts, not from how quick the
    /// threads are.
    fn occupation(&self) -> (u32, u32) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        (count(self.workers.in_use()), count(self.workers.counts.queued))
    }

    /// Gives the tokens that are free to those who wait for them.
    fn grant_tokens(&mut self, cause: Seq) {
        while let Some(job) = self.workers.grant(self.log.now) {
            let (running, queued) = self.occupation();
            let number = job.number;
            let starts = || Event::OffloadStarts { job: number, running, queued, cause };
            emit_for!(self, WAKEUP, starts());
            self.start_job(job);
        }
    }

    /// Has a job run that has its token: by the script, or by a thread.
    fn start_job(&mut self, job: JobId) {
        if self.workers.stalled().is_empty() {
            let Err(error) = self.try_to_start(job) else { return };
            self.say_failing(&error);
            self.try_again_after(THREAD_PAUSE);
        }
        // Nobody overtakes those for which there was no thread.
        self.workers.stalled().push_back(job);
    }

    fn try_to_start(&mut self, job: JobId) -> io::Result<()> {
        if self.machine.scripts_jobs() {
            let view = self.job_view(job);
            if let Some(span) = self.machine.job_span(&view) {
                let parcel = self.workers.hand_over(job, false);
                self.machine.play_job(job, parcel, span, &self.deliver);
                return Ok(());
            }
        }
        self.machine.may_start_thread()?;
        let parcel = self.workers.hand_over(job, true);
        match self.pool.submit(job, parcel) {
            Ok(()) => {
                self.say_well();
                Ok(())
            }
            Err((error, parcel)) => {
                self.workers.take_back(job, parcel);
                Err(error)
            }
        }
    }

    /// Nothing is left that would have to be tried again.
    fn forget_retry(&mut self) {
        if self.workers.stalled().is_empty()
            && let Some((Some(timer), _)) = self.jobs.retry.take()
        {
            self.timers.disarm(timer);
        }
    }

    /// Tries the jobs again that no thread took. Gives the error that stopped it.
    fn retry_stalled(&mut self) -> io::Result<()> {
        while let Some(job) = self.workers.stalled().front().copied() {
            self.try_to_start(job)?;
            self.workers.stalled().pop_front();
        }
        Ok(())
    }

    /// The timer of those jobs has fired.
    #[cold]
    pub(crate) fn retry_threads(&mut self) {
        // One that is armed came after another was forgotten, which was due in this turn.
        let Some((_, pause)) = self.jobs.retry.take_if(|(timer, _)| timer.is_none()) else {
            return;
        };
        if self.retry_stalled().is_err() {
            self.try_again_after((pause * 2).min(THREAD_PAUSE_MOST));
        }
    }

    #[cold]
    fn try_again_after(&mut self, pause: Duration) {
        if self.jobs.retry.is_none() {
            let rank = || Rank { class: Class::Retry, seq: 0 };
            let at = self.log.now + pause;
            let timer = self.timers.arm(at, Owner::RETRY, self.log.now, rank);
            self.jobs.retry = Some((Some(timer), pause));
        }
    }

    #[cold]
    fn say_failing(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.jobs.failing, true) {
            let text = format!(
                "no thread could be started: {error}; jobs wait, and it is tried again after \
                 100 ms to 1 s"
            );
            announce!(self, KERNEL, Event::Warn { text: text.into() });
        }
    }

    fn say_well(&mut self) {
        if std::mem::take(&mut self.jobs.failing) {
            let text = "jobs find threads again";
            announce!(self, KERNEL, Event::Warn { text: text.into() });
        }
    }

    pub(crate) fn job_done(&mut self, done: Done) {
        let Done { job, work } = done;
        let Some(ended) = self.workers.end(job, self.log.now) else { return drop_quietly(work) };
        let job = job.number;
        let seq = match ended.ticket {
            Some(index) if !self.is_doomed(index) && !self.gate.is_withdrawn(index, self.epoch) => {
                let seq = emit_for!(self, WAKEUP, Event::Done { job });
                let answer = Answer::Job { job, work };
                self.complete(index, Ok(answer), WakeOp::Offload { job }, seq);
                seq
            }
            Some(_) | None => {
                let seq = emit_for!(self, WAKEUP, Event::Orphan { job });
                self.give_orphan(job, ended.task.serial.get(), ended.site, work);
                seq
            }
        };
        if !self.workers.stalled().is_empty() && self.retry_stalled().is_ok() {
            // Its worker was free.
            self.forget_retry();
        }
        self.grant_tokens(seq);
    }

    /// A job that ended in time, and whose future was dropped before it was read.
    pub(crate) fn job_unheard(&mut self, job: u64, task: u64, site: Site, work: Box<dyn Work>) {
        emit_for!(self, KERNEL, Event::Orphan { job });
        self.give_orphan(job, task, site, work);
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

    /// The future of a wait for a job is gone, or was answered otherwise.
    pub(crate) fn stop_waiting_for_job(&mut self, task: u32, job: JobId) {
        if let Some(parcel) = self.workers.withdraw(job) {
            let what = || format!("o{}_before_it_ran", job.number).into();
            let seq = emit!(self, task, Event::Drop { what: what() });
            drop_quietly(parcel);
            self.forget_retry();
            self.grant_tokens(seq);
        } else if self.workers.get(job).is_some_and(|job| job.ticket.is_some()) {
            self.workers.abandon(job, self.tasks.label(task).1);
            emit!(self, task, Event::Abandon { job: job.number });
        }
    }

    /// What a script would have ended later ends here; a thread's job is its thread's.
    pub(crate) fn drop_scripted_jobs(&mut self) {
        for job in self.workers.all() {
            let state = self.workers.get(job).map(|job| job.state);
            if matches!(state, Some(State::Running { on_thread: false, .. })) {
                self.workers.end(job, self.log.now);
                let what = format!("o{}", job.number).into();
                emit_for!(self, KERNEL, Event::Drop { what });
            }
        }
        self.machine.drop_jobs();
    }

    /// A thread was to take this one, and none did before the end: it never runs.
    pub(crate) fn drop_unbegun(&mut self, job: JobId, parcel: Parcel) {
        self.workers.end(job, self.log.now);
        let what = format!("o{}_before_it_ran", job.number);
        emit_for!(self, KERNEL, Event::Drop { what: what.into() });
        drop_quietly(parcel);
    }

    /// The jobs that have not ended, in the order of their numbers: a snapshot. A job that has a
    /// token, abandoned or not, has held it [since](JobView::since) (rows C37, F4).
    #[must_use]
    pub fn jobs(&self) -> Vec<JobView> {
        self.workers.all().into_iter().map(|job| self.job_view(job)).collect()
    }

    fn job_view(&self, id: JobId) -> JobView {
        let job = self.workers.get(id).expect("a job that is looked at is there");
        let name = || self.tasks.find(job.task).map(|task| self.tasks.label(task).1.to_owned());
        JobView {
            number: id.number,
            state: match (&job.state, job.ticket) {
                (State::AtLimiter | State::InLine, _) => "queued",
                (State::Ready { .. } | State::Running { .. }, Some(_)) => "running",
                (State::Ready { .. } | State::Running { .. }, None) => "abandoned",
            },
            task: job.task.serial.get(),
            name: job.name.clone().or_else(name).unwrap_or_default(),
            since: job.since,
            site: log::place_of(job.site),
            limiter: job.limiter.as_ref().map(|limiter| limiter.name),
        }
    }

    /// Has `hook` called with the value of each job that ends when nobody waits for it any more, or
    /// whose value is dropped unread: a connection that is to be closed, for example (row X8).
    ///
    /// Called inside the kernel's loop, so it must not block; a panic in it is caught. Replaces an
    /// earlier one.
    ///
    /// An item of [`iterate_in_thread`](traps::iterate_in_thread()) is no such value: it waits for
    /// the next call, or was dropped with its source. Only the panic of an iterator whose source
    /// is gone comes here.
    pub fn on_orphan(&mut self, hook: impl FnMut(Orphan) + 'static) {
        self.jobs.on_orphan = Some(Box::new(hook));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kernel, Sim};
    use traps::{clock, connection_deadline, run_in_thread, spawn, timeout_after, yield_now};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_thread_that_is_tried_again_leaves_no_timer_slot_behind() {
        let mut kernel = Kernel::new(Sim::new().thread_starts_fail(3));
        let ran = kernel.run(async { run_in_thread(|| 7).await.unwrap() });
        assert_eq!(ran.unwrap(), 7);
        assert!(kernel.timers.table().columns().is_empty());
    }

    /// All of it is due at one point, and the timer for the job that found no thread comes last.
    #[test]
    fn a_job_may_find_a_thread_or_be_given_up_in_the_turn_in_which_it_is_tried_again() {
        for gives_up in [false, true] {
            let spans = |job: &JobView| (job.number == 1).then_some(THREAD_PAUSE);
            let sim = Sim::new().job_spans(spans).thread_starts_fail(1 + u32::from(gives_up));
            let mut kernel = Kernel::new(sim);
            let ran = kernel.run(async {
                let mut scripted = spawn("scripted", run_in_thread(|| 1)).await;
                yield_now().await.unwrap();
                let limit = gives_up.then_some(THREAD_PAUSE);
                let stalled = timeout_after(limit, run_in_thread(|| 2)).await;
                (scripted.join().await.unwrap().unwrap(), stalled.ok())
            });
            assert_eq!(ran.unwrap(), (1, (!gives_up).then_some(2)));
            assert!(kernel.timers.table().columns().is_empty());
        }
    }

    #[test]
    fn x1_a_job_that_comes_back_in_the_turn_of_its_guard_loses_also_when_nobody_polls() {
        let sim = Sim::new();
        let by_hand = sim.clock();
        let mut kernel = Kernel::new(sim);
        let wakes = kernel.wakes.clone();
        let ran = kernel.run(async {
            let guarded = async {
                let deadline = connection_deadline().await;
                deadline.guard(SECOND, async { io::Result::Ok(run_in_thread(|| ()).await?) }).await
            };
            let mut guarded = spawn("guarded", guarded).await;
            yield_now().await.unwrap();
            while wakes.is_empty() {
                std::thread::yield_now();
            }
            by_hand.advance(SECOND);
            // Others are ready, so this turn ends and the next begins without a look at the
            // machine.
            clock().await;
            yield_now().await.unwrap();
            guarded.join().await.unwrap().map_err(|error| error.kind())
        });
        assert_eq!(ran.unwrap(), Err(io::ErrorKind::TimedOut));
        kernel.shutdown().unwrap();
    }
}
