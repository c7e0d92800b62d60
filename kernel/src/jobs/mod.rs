//! Jobs for worker threads: how they start, and what becomes of their end.
//!
//! `tokens` has the jobs and says which may run; `pool` has the threads.

use std::any::Any;
use std::sync::Arc;

use traps::protocol::{Answer, Owned, Site};
use traps::threads::{ThreadContext, Work, drop_quietly, quietly};
use traps::{TaskId, Time};

use crate::kernel::Kernel;
use crate::limits::THREAD_PAUSE;
use crate::log::{self, KERNEL, WAKEUP, announce, emit, emit_for};
use crate::machine::Machine;
use crate::options::Options;
use crate::outside::{Message, WakeQueue};
use crate::table::Asker;
use crate::task::Tasks;
use crate::timers::{Owner, TimerId};
use crate::trace::{Event, Op, WakeOp};
use crate::waits::On;

mod pool;
mod tokens;

use pool::Pool;
pub use pool::{Deliver, Done};
pub use tokens::Parcel;
use tokens::{Job, Tokens};

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
#[derive(Debug)]
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

type Clock = dyn Fn() -> Time + Send + Sync;

/// The jobs of a kernel.
pub(crate) struct Jobs {
    pub(crate) tokens: Tokens,
    pub(crate) pool: Pool,
    deliver: Deliver,
    clock: Arc<Clock>,
    on_orphan: Option<Box<dyn FnMut(Orphan)>>,
    /// No thread could be started: the timer after which that is tried again.
    retry: Option<TimerId>,
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
            retry: None,
        }
    }

    /// Whether a thread has a job, or will soon: it ends without the help of the kernel's clock.
    pub(crate) fn are_on_threads(&self) -> bool {
        self.tokens.on_threads > 0 && self.retry.is_none()
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
            abandoned: context.abandoned(),
            parcel: Some(Parcel { work, context }),
            ticket: Some(asker.ticket()),
            task: (task, self.tasks[asker.task].id),
            name: None,
            site: asker.site(),
            since: self.log.now,
            limiter,
            on_thread: false,
        });
        // The jobs before it have every token that was free, so this is the new job or none.
        let granted = self.jobs.tokens.grant(self.log.now);
        let (running, queued) = self.occupation();
        emit!(self, asker.task, {
            let limiter = named.map(Into::into);
            Event::Offload { job, running, queued, limiter }
        });
        if let Some((job, parcel)) = granted {
            self.start_job(job, parcel);
        }
        self.park(asker, On::Job(job), || Op::Offload { job });
    }

    /// How many jobs have a token, and how many wait for one.
    fn occupation(&self) -> (u32, u32) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        (count(self.jobs.tokens.in_use), count(self.jobs.tokens.queued()))
    }

    /// Runs a job that has its tokens.
    fn start_job(&mut self, job: u64, parcel: Parcel) {
        let Kernel { jobs: Jobs { tokens, deliver, .. }, machine, tasks, .. } = self;
        let view = || tokens.jobs[&job].view(job, tasks);
        if let Some(parcel) = machine.play_job(job, &view, parcel, deliver) {
            if let Some(job) = tokens.jobs.get_mut(&job) {
                job.on_thread = true;
                tokens.on_threads += 1;
            }
            self.jobs.pool.submit(job, parcel);
            self.staff_pool();
        }
    }

    /// Starts the threads that queued jobs need, or tries again after a while.
    fn staff_pool(&mut self) {
        let text = match (self.jobs.pool.staff(), self.jobs.retry) {
            (Err(error), None) => {
                self.set_retry();
                format!("no thread could be started: {error}; it is tried again every 100 ms")
            }
            (Ok(()), Some(timer)) => {
                self.timers.cancel(timer);
                self.jobs.retry = None;
                "jobs find threads again".to_owned()
            }
            (Err(_), Some(_)) | (Ok(()), None) => return,
        };
        announce!(self, KERNEL, Event::Warn { text: text.into() });
    }

    fn set_retry(&mut self) {
        let timer = self.timers.set(self.log.now + THREAD_PAUSE, Owner::Retry, 0);
        self.jobs.retry = Some(timer);
    }

    /// The timer of the next attempt has fired.
    pub(crate) fn retry_threads(&mut self) {
        self.set_retry();
        self.staff_pool();
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
        while let Some((job, parcel)) = self.jobs.tokens.grant(self.log.now) {
            let (running, queued) = self.occupation();
            emit_for!(self, WAKEUP, Event::OffloadStarts { job, running, queued, cause: seq });
            self.start_job(job, parcel);
        }
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
            emit!(self, task, Event::Drop { what: never_ran(job).into() });
            drop_quietly(parcel);
        } else if self.jobs.tokens.abandon(job, self.tasks.label(task).1) {
            emit!(self, task, Event::Abandon { job });
        }
    }

    /// At the end of a shutdown: jobs that no thread has begun, and those that a script would have
    /// ended later, never run.
    pub(crate) fn drop_queued_jobs(&mut self) {
        if let Some(timer) = self.jobs.retry.take() {
            self.timers.cancel(timer);
        }
        let queued = self.jobs.pool.close();
        for (job, parcel) in queued.into_iter().chain(self.machine.take_jobs()) {
            self.jobs.tokens.end(job, self.log.now);
            emit_for!(self, KERNEL, Event::Drop { what: never_ran(job).into() });
            drop_quietly(parcel);
        }
    }

    /// The kernel is dropped.
    pub(crate) fn drop_jobs(&mut self) {
        self.jobs.tokens.abandon_all().for_each(drop_quietly);
        self.machine.take_jobs().into_iter().for_each(drop_quietly);
    }
}

fn never_ran(job: u64) -> String {
    format!("o{job}_before_it_ran")
}

/// What the owner sees of it.
impl<M: Machine> Kernel<M> {
    /// The jobs that have not ended, in the order of their numbers: a snapshot. A job that has a
    /// token, abandoned or not, has held it [since](JobView::since).
    #[must_use]
    pub fn jobs(&self) -> Vec<JobView> {
        let jobs = self.jobs.tokens.jobs.iter();
        jobs.map(|(number, job)| job.view(*number, &self.tasks)).collect()
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

impl Job {
    fn view(&self, number: u64, tasks: &Tasks) -> JobView {
        let name = || tasks.find(self.task.0).map(|task| tasks.label(task).1.to_owned());
        JobView {
            number,
            state: match (&self.parcel, self.ticket) {
                (Some(_), _) => "queued",
                (None, Some(_)) => "running",
                (None, None) => "abandoned",
            },
            task: self.task.1,
            name: self.name.clone().or_else(name).unwrap_or_default(),
            since: self.since,
            site: log::place_of(self.site),
            limiter: self.limiter.as_ref().map(|limiter| limiter.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::time::Duration;

    use traps::{Time, run_in_thread, sleep, spawn, timeout_after};

    use crate::{Kernel, Sim};

    #[test]
    fn a_thread_that_cannot_be_started_is_said_once_and_tried_again_and_no_job_is_lost() {
        let ms = Duration::from_millis;
        let mut kernel = Kernel::new(Sim::new());
        let lines = Rc::new(RefCell::new(Vec::new()));
        let told = lines.clone();
        kernel.observe(move |line: &crate::trace::Line<'_>| {
            told.borrow_mut().push(line.event.to_string());
        });
        let warnings =
            |text: &str| lines.borrow().iter().filter(|line| line.contains(text)).count();
        let possible = std::mem::replace(&mut kernel.jobs.pool.stack_size, 1 << 50);
        let job = kernel.run(async {
            let late = timeout_after(ms(250), run_in_thread(|| 1)).await.unwrap_err();
            assert!(late.to_string().starts_with("timed out"), "{late}");
            let job = spawn("job", run_in_thread(|| 2)).await;
            sleep(ms(20)).await.unwrap();
            job
        });
        assert_eq!(warnings("no thread could be started"), 1);
        kernel.jobs.pool.stack_size = possible;
        let mut job = job.unwrap();
        let (value, at) = kernel
            .run(async { (job.join().await.unwrap().unwrap(), traps::clock().await) })
            .unwrap();
        // Tried at 0, 100 ms, 200 ms, and with success at 300 ms.
        assert_eq!((value, at), (2, Time::ZERO + ms(300)));
        assert_eq!(warnings("jobs find threads again"), 1);
        kernel.shutdown().unwrap();
        assert_eq!(kernel.counters().timers, 0);
    }
}
