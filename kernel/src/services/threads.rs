//! Jobs for worker threads: how they start, and what becomes of their end.
//!
//! `tokens` has the jobs and says which may run; `pool` has the threads.

use std::any::Any;
use std::sync::Arc;

use traps::Time;
use traps::core::names::{TaskId, Ticket};
use traps::core::protocol::{EndedJob, NewJob, Reply};
use traps::core::records::Wait;
use traps::threads::{ThreadContext, drop_quietly, quietly};

use super::pool::Pool;
use super::tokens::{Job, Tokens};
use crate::core::Core;
use crate::core::tasks::Tasks;
use crate::core::timers::{Owner, Service, TimerId};
use crate::core::wake_queue::WakeQueue;
use crate::core::wakers::Message;
use crate::limits::THREAD_PAUSE;
use crate::log::{self, KERNEL, WAKEUP, announce, emit_for};
use crate::machine::{Deliver, JobView, Machine, Parcel};
use crate::options::Options;
use crate::trace::{Event, Seq};

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

/// The jobs of a kernel, and its worker threads.
pub(crate) struct Threads {
    pub(crate) tokens: Tokens,
    pub(crate) pool: Pool,
    deliver: Deliver,
    clock: Arc<Clock>,
    pub(crate) on_orphan: Option<Box<dyn FnMut(Orphan)>>,
    /// No thread could be started: the timer after which that is tried again.
    retry: Option<TimerId>,
}

impl Threads {
    pub(crate) fn new(
        options: &Options,
        clock: Box<Clock>,
        queue: &Arc<WakeQueue<Message>>,
    ) -> Threads {
        let queue = queue.clone();
        let deliver: Deliver = Arc::new(move |job| _ = queue.push(Message::Done(job)));
        Threads {
            tokens: Tokens::new(options.threads),
            pool: Pool::new(options.idle, deliver.clone()),
            deliver,
            clock: Arc::from(clock),
            on_orphan: None,
            retry: None,
        }
    }

    /// How many jobs have a token, and how many wait for one.
    fn occupation(&self) -> (u32, u32) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        (count(self.tokens.in_use), count(self.tokens.queued()))
    }
}

/// How a job starts.
impl Threads {
    /// A task asks for a job. If its wait was refused, the job never runs.
    pub(crate) fn submit<M: Machine>(&mut self, core: &mut Core<M>, new: NewJob) {
        let NewJob { job, ticket, task, site, work, limiter, until } = new;
        let (true, Some(index)) = (is_parked(core, ticket), core.find(task)) else {
            return drop_quietly(work);
        };
        let context = ThreadContext::new(until, &self.clock, task);
        if let Some(limiter) = &limiter {
            limiter.home.set(core.shared.epoch);
        }
        let named = limiter.as_ref().map(|limiter| limiter.name);
        let queued = Job {
            abandoned: context.abandoned(),
            parcel: Some(Parcel { work: work.clone(), context }),
            work,
            ticket: Some(ticket),
            task: (task, core.tasks[index].id),
            name: None,
            site,
            since: core.now,
            limiter,
            on_thread: false,
        };
        self.tokens.add(job, queued);
        // The jobs before it have every token that was free, so this is the new job or none.
        let granted = self.tokens.grant(core.now);
        let (running, queued) = self.occupation();
        log::emit!(core, index, {
            let limiter = named.map(Into::into);
            Event::Offload { job, running, queued, limiter }
        });
        if let Some((job, parcel)) = granted {
            self.start_job(core, job, parcel);
        }
    }

    /// Runs a job that has its tokens.
    fn start_job<M: Machine>(&mut self, core: &mut Core<M>, number: u64, parcel: Parcel) {
        let Threads { tokens, deliver, .. } = self;
        let Core { machine, tasks, .. } = core;
        let Some(job) = tokens.jobs.get_mut(&number) else { return };
        let name = tasks.has_name(job.task.1);
        let view = || job.view(number, name);
        if let Some(parcel) = machine.play_job(number, &view, parcel, deliver) {
            job.on_thread = true;
            tokens.on_threads += 1;
            self.pool.submit(number, parcel);
            self.staff_pool(core);
        }
    }

    /// Starts the threads that queued jobs need, or tries again after a while.
    fn staff_pool<M: Machine>(&mut self, core: &mut Core<M>) {
        let text = match (self.pool.staff(), self.retry) {
            (Err(error), None) => {
                self.set_retry(core);
                format!("no thread could be started: {error}; it is tried again every 100 ms")
            }
            (Ok(()), Some(timer)) => {
                core.timers.cancel(timer);
                self.retry = None;
                "jobs find threads again".to_owned()
            }
            (Err(_), Some(_)) | (Ok(()), None) => return self.count(core),
        };
        self.count(core);
        announce!(core, KERNEL, Event::Warn { text: text.into() });
    }

    /// Tells the core how many threads may ring.
    fn count<M: Machine>(&self, core: &mut Core<M>) {
        core.busy_threads = if self.retry.is_none() { self.tokens.on_threads } else { 0 };
    }

    fn set_retry<M: Machine>(&mut self, core: &mut Core<M>) {
        let (at, owner) = (core.now + THREAD_PAUSE, Owner::Service(Service::Retry));
        self.retry = Some(core.timers.set(at, owner, 0));
    }

    /// The timer of the next attempt has fired.
    pub(crate) fn retry<M: Machine>(&mut self, core: &mut Core<M>) {
        self.set_retry(core);
        self.staff_pool(core);
    }
}

/// What becomes of its end.
impl Threads {
    pub(crate) fn done<M: Machine>(&mut self, core: &mut Core<M>, job: u64) {
        let Some(ended) = self.tokens.end(job, core.now) else { return };
        self.count(core);
        // A wait that an interrupt has ended in this turn has not abandoned its job yet.
        let ticket = ended.ticket.filter(|ticket| is_parked(core, *ticket));
        let is_waiting = ticket.is_some();
        let (task, site) = (TaskId(ended.task.1), ended.site);
        let work = ended.work.clone();
        drop_quietly(ended.parcel);
        let told = EndedJob { job, task, site, work };
        let event = if is_waiting { Event::Done { job } } else { Event::Orphan { job } };
        let seq = emit_for!(core, WAKEUP, event);
        match ticket {
            Some(ticket) => drop(core.unpark(ticket, Reply::Job(Box::new(told)), seq)),
            None => self.give_orphan(told),
        }
        drop_quietly(ended.work);
        self.grant_all(core, seq);
    }

    fn grant_all<M: Machine>(&mut self, core: &mut Core<M>, cause: Seq) {
        while let Some((job, parcel)) = self.tokens.grant(core.now) {
            let (running, queued) = self.occupation();
            emit_for!(core, WAKEUP, Event::OffloadStarts { job, running, queued, cause });
            self.start_job(core, job, parcel);
        }
    }

    /// A job ended in time, and its future was dropped before it read the value.
    pub(crate) fn orphan<M: Machine>(&mut self, core: &mut Core<M>, ended: EndedJob) {
        emit_for!(core, KERNEL, Event::Orphan { job: ended.job });
        self.give_orphan(ended);
    }

    fn give_orphan(&mut self, ended: EndedJob) {
        let EndedJob { job, task, site, work } = ended;
        let Some(mut hook) = self.on_orphan.take() else { return drop_quietly(work) };
        let site = log::place_of(site);
        quietly(|| {
            let Some(outcome) = work.take() else { return };
            hook(Orphan { job, task: task.0, site, outcome });
        });
        drop_quietly(work);
        // One that it set meanwhile stays.
        self.on_orphan.get_or_insert(hook);
    }

    /// The future of a wait for a job is gone, or was interrupted.
    pub(crate) fn abandon<M: Machine>(&mut self, core: &mut Core<M>, number: u64) {
        let Some((task, id)) = self.tokens.jobs.get(&number).map(|job| job.task) else { return };
        let index = core.find(task);
        let label = |tasks: &Tasks| index.map(|index| tasks.label(index).1.to_owned());
        let name = label(&core.tasks).unwrap_or_default();
        if let Some(parcel) = self.tokens.withdraw(number) {
            emit_for!(core, (id, &*name), Event::Drop { what: never_ran(number).into() });
            drop_quietly(parcel);
        } else if self.tokens.abandon(number, &name) {
            emit_for!(core, (id, &*name), Event::Abandon { job: number });
        }
    }

    /// At the end of a shutdown: jobs that no thread has begun, and those that a script would have
    /// ended later, never run.
    pub(crate) fn drop_queued<M: Machine>(&mut self, core: &mut Core<M>) {
        if let Some(timer) = self.retry.take() {
            core.timers.cancel(timer);
        }
        let queued = self.pool.close();
        for (job, parcel) in queued.into_iter().chain(core.machine.take_jobs()) {
            drop_quietly(self.tokens.end(job, core.now));
            emit_for!(core, KERNEL, Event::Drop { what: never_ran(job).into() });
            drop_quietly(parcel);
        }
    }

    /// The kernel is dropped.
    pub(crate) fn drop_all<M: Machine>(&mut self, core: &mut Core<M>) {
        self.tokens.abandon_all().for_each(drop_quietly);
        core.machine.take_jobs().into_iter().for_each(drop_quietly);
    }

    /// The jobs that have not ended, in the order of their numbers.
    pub(crate) fn views(&self, tasks: &Tasks) -> Vec<JobView> {
        let jobs = self.tokens.jobs.iter();
        jobs.map(|(number, job)| job.view(*number, tasks.has_name(job.task.1))).collect()
    }
}

/// Whether the caller of a job still waits for it.
fn is_parked<M: Machine>(core: &Core<M>, ticket: Ticket) -> bool {
    core.gate.records().waits.get(ticket).is_some_and(Wait::is_parked)
}

fn never_ran(job: u64) -> String {
    format!("o{job}_before_it_ran")
}

impl Job {
    /// `name` is that of its task, if the task lives.
    fn view(&self, number: u64, name: Option<&str>) -> JobView {
        JobView {
            number,
            state: match (&self.parcel, self.ticket) {
                (Some(_), _) => "queued",
                (None, Some(_)) => "running",
                (None, None) => "abandoned",
            },
            task: self.task.1,
            name: self.name.clone().or(name.map(str::to_owned)).unwrap_or_default(),
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
        let possible = std::mem::replace(&mut kernel.services.threads.pool.stack_size, 1 << 50);
        let job = kernel.run(async {
            let late = timeout_after(ms(250), run_in_thread(|| 1)).await.unwrap_err();
            assert!(late.to_string().starts_with("timed out"), "{late}");
            let job = spawn("job", run_in_thread(|| 2)).await;
            sleep(ms(20)).await.unwrap();
            job
        });
        assert_eq!(warnings("no thread could be started"), 1);
        kernel.services.threads.pool.stack_size = possible;
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
