//! Jobs on worker threads: their admission, the threads, and the handling of their ends.
//!
//! A job is a blocking call that a task runs on another thread. [`Tokens`] decides which jobs may
//! run, [`Pool`] runs them, and [`Threads`] connects both with the core.
//!
//! A running job holds a *token* of the pool; there are [`Options::threads`] tokens. A job with a
//! limiter also holds one of the limiter's tokens. The life of a job:
//!
//! 1. The job waits at its limiter, if that has no free token. It holds no pool token there, so
//!    jobs of a slow limiter cannot fill the pool.
//! 2. It waits in the queue for a token of the pool, oldest job first.
//! 3. With its tokens it runs: on a worker, or by a script of a simulated machine. A worker takes
//!    the oldest job, runs it, and posts its end to the wake queue.
//! 4. If its caller stops waiting first, the job is *abandoned*: it continues, and keeps its
//!    tokens.
//! 5. At its end the tokens are free for the next jobs. Its value goes to the caller, or to the
//!    orphan hook if no caller waits.
//!
//! The invariant: only jobs with a token reach the pool, so there are never more threads than
//! tokens. Workers start on demand, and end when they have been idle for a while.
//!
//! Suppose the pool has two tokens, and the limiter `db` has one. Jobs o1 and o2 use `db`:
//!
//! ```text
//! o1 asks    takes the token of db and one of the pool: runs
//! o2 asks    waits at db
//! o3 asks    takes the other token of the pool: runs
//! o3's caller times out: o3 is abandoned, and keeps its token
//! o1 ends    its token of db goes to o2, which takes the free token of the pool: runs
//! ```
//!
//! Why not free the tokens when a caller stops waiting: its thread is still blocked. With every
//! timeout there would be one more thread, without bound.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, mem};

use traps::Time;
use traps::internal::protocol::{EndedJob, LimiterCore, NewJob, Reply, Work};
use traps::internal::table::{Site, TaskId, TaskRef, Ticket};
use traps::internal::tape::{self, Answer, Mode, Words};
use traps::internal::{Caller, ThreadContext, drop_quietly, quietly};

use crate::core::Core;
use crate::core::sched::Sched;
use crate::core::tasks::Tasks;
use crate::core::timers::ServiceTimer;
use crate::log::lines::{announce, emit, emit_for};
use crate::log::{KERNEL, WAKEUP, words};
use crate::machine::{Deliver, JobView, Machine, Parcel};
use crate::options::{Options, THREAD_PAUSE, WORKER_STACK};
use crate::parts::wake_queue::WakeQueue;
use crate::parts::wakers::Message;
use crate::trace::Event;

/// The result of a job that no task takes.
#[derive(Debug)]
#[non_exhaustive]
pub struct Orphan {
    /// The number of the job, `o3` in the log.
    pub job: u64,
    /// The task that asked for the job. It may have ended.
    pub task: u64,
    /// The location of the call, `file:line`.
    pub site: String,
    /// The value of the job, to be downcast, or the message of its panic.
    pub outcome: Result<Box<dyn Any + Send>, String>,
}

/// The time after which a replay begins another job, because the one that it waits for has not
/// ended.
const PAUSE: Duration = Duration::from_millis(100);

type Clock = dyn Fn() -> Time + Send + Sync;

/// The jobs of a kernel, and its worker threads.
pub(crate) struct Threads {
    pub(crate) tokens: Tokens,
    pub(crate) pool: Pool,
    deliver: Deliver,
    clock: Arc<Clock>,
    pub(crate) on_orphan: Option<Box<dyn FnMut(Orphan)>>,
    /// Whether the retry timer is set, because a thread could not be started.
    retries: bool,
    /// How long a replay waits for a job at least. It waits for ten times as long as the job has
    /// run in the record, in addition.
    pub(crate) patience: Duration,
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
            retries: false,
            patience: Duration::from_secs(60),
        }
    }

    /// Returns the number of jobs that hold a token, and the number of jobs that wait for a token.
    fn occupation(&self) -> (u32, u32) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        (count(self.tokens.in_use), count(self.tokens.queued()))
    }
}

/// The start of jobs.
impl Threads {
    /// Adds a job for a task, and starts it if its tokens are free. If the task's wait was refused,
    /// the job never runs.
    pub(crate) fn submit<M: Machine>(&mut self, core: &mut Core<M>, new: NewJob) {
        let NewJob { job, ticket, task, site, work, is_question, limiter, until } = new;
        let (true, Some(index)) = (core.sched.is_parked(ticket), core.sched.find(task)) else {
            return drop_quietly(work);
        };
        let context = ThreadContext::new(until, &self.clock, task);
        let named = limiter.as_ref().map(|limiter| limiter.name);
        let queued = Job {
            caller: context.caller(),
            parcel: Some(Parcel { work: work.clone(), context }),
            work,
            ticket: Some(ticket),
            task: (task, core.sched.tasks.id(index)),
            name: None,
            site,
            since: core.sched.now,
            is_question,
            limiter,
            on_thread: false,
        };
        self.tokens.add(job, queued);
        // In the log, `queued=0` says that the new job has a token. So if no other job waits, take
        // the token before the line. Otherwise the line counts the job as queued. If the others
        // wait only at their limiters, the job starts at once, with a line of its own.
        let is_alone = self.tokens.queued() == 1;
        let first = if is_alone { self.tokens.grant(core.sched.now) } else { None };
        let (running, queued) = self.occupation();
        let cause = emit!(core.sched, index, {
            let limiter = named.map(Into::into);
            Event::Offload { job, running, queued, limiter }
        });
        // Earlier jobs hold every token that was free before. So this grants the new job, or none.
        let Some((_, parcel)) = first.or_else(|| self.tokens.grant(core.sched.now)) else { return };
        if !is_alone {
            let (running, queued) = self.occupation();
            emit!(core.sched, index, Event::OffloadStarts { job, running, queued, cause });
        }
        self.start_job(core, job, parcel);
    }

    /// Runs a job that has its tokens.
    fn start_job<M: Machine>(&mut self, core: &mut Core<M>, number: u64, parcel: Parcel) {
        let Threads { tokens, deliver, .. } = self;
        let Sched { machine, tasks, .. } = &mut core.sched;
        let Some(job) = tokens.jobs.get_mut(&number) else { return };
        let name = tasks.name_of(job.task.1);
        let view = || job.view(number, name);
        if let Some(parcel) = machine.play_job(number, &view, parcel, deliver) {
            job.on_thread = true;
            tokens.on_threads += 1;
            self.pool.submit(number, parcel);
            self.staff_pool(core);
        }
    }

    /// Starts the threads that the queued jobs need. If that fails, sets the retry timer.
    fn staff_pool<M: Machine>(&mut self, core: &mut Core<M>) {
        let staffed = tape::input(
            "staff",
            || self.pool.staff(),
            |staffed, words| words.result(staffed, |(), _| ()),
            |answer| answer.result(|_| ()),
        );
        let text = match (staffed, self.retries) {
            (Err(error), false) => {
                self.set_retry(core);
                format!("no thread could be started: {error}; it is tried again every 100 ms")
            }
            (Ok(()), true) => {
                core.timers.set_service(ServiceTimer::Retry, Time::NEVER);
                self.retries = false;
                "jobs find threads again".to_owned()
            }
            (Err(_), true) | (Ok(()), false) => return self.count(core),
        };
        self.count(core);
        announce!(core.sched, KERNEL, Event::Warn { text: text.into() });
    }

    /// Updates the core's number of threads that may ring the bell.
    fn count<M: Machine>(&self, core: &mut Core<M>) {
        core.busy_threads = self.busy();
    }

    /// Returns the number of threads that may ring the bell. While none can be started, none does.
    pub(super) fn busy(&self) -> usize {
        if self.retries { 0 } else { self.tokens.on_threads }
    }

    fn set_retry<M: Machine>(&mut self, core: &mut Core<M>) {
        core.timers.set_service(ServiceTimer::Retry, core.sched.now + THREAD_PAUSE);
        self.retries = true;
    }

    /// Tries to start threads again, when the retry timer has fired.
    pub(crate) fn retry<M: Machine>(&mut self, core: &mut Core<M>) {
        self.set_retry(core);
        self.staff_pool(core);
    }
}

/// The end of jobs.
impl Threads {
    pub(crate) fn done<M: Machine>(&mut self, core: &mut Core<M>, job: u64) {
        if M::IS_TAPED && tape::mode() != Mode::Off {
            self.taped_end(core, job);
        }
        let Some(ended) = self.tokens.end(job, core.sched.now) else { return };
        self.count(core);
        // If an interrupt has ended the wait in this turn, the job is not marked as abandoned yet.
        let ticket = ended.ticket.filter(|ticket| core.sched.is_parked(*ticket));
        let is_waiting = ticket.is_some();
        let (task, site) = (TaskId(ended.task.1), ended.site);
        let work = ended.work.clone();
        drop_quietly(ended.parcel);
        let told = EndedJob { job, task, site, work };
        let event = if is_waiting { Event::Done { job } } else { Event::Orphan { job } };
        emit_for!(core.sched, WAKEUP, event);
        match ticket {
            Some(ticket) => drop(core.sched.unpark(ticket, Reply::Job(Box::new(told)))),
            None => self.give_orphan(told),
        }
        drop_quietly(ended.work);
        self.grant_all(core);
    }

    /// Records what a job that has ended was told about its caller, or runs the job again.
    fn taped_end<M: Machine>(&mut self, core: &mut Core<M>, number: u64) {
        let Some(job) = self.tokens.jobs.get(&number) else { return };
        let put = |told: &[u64; 2], words: &mut Words| {
            words.number(number);
            told.iter().for_each(|it| words.number(*it));
        };
        let get = |answer: &mut Answer<'_>| {
            answer.number();
            [answer.number(), answer.number()]
        };
        let told = job.caller.first_yes();
        let is_told = told != [0, 0] || tape::is_next(&format!("told {number}"));
        if is_told {
            job.caller.set_first_yes(tape::input("told", || told, put, get));
        }
        if tape::is_cut_off() {
            // What the job was told may have been in the part that is missing.
            tape::diverge(&format!("the job o{number} has ended"));
        } else if tape::answers() {
            self.run_again(core, number);
        }
    }

    /// Runs a job again, because a record is played and the job ends here. It has a thread of its
    /// own and runs alone. If it does not end soon, it may wait for another job, so one after the
    /// other of those that hold tokens begins too.
    fn run_again<M: Machine>(&mut self, core: &mut Core<M>, number: u64) {
        let Threads { tokens, pool, .. } = self;
        let Some(job) = tokens.jobs.get(&number) else { return };
        let most = self.patience + 10 * core.sched.now.since(job.since);
        let mut next = Some(number);
        // Whole pauses are counted, so that a program that stands still in a debugger has time.
        for _ in 0..most.as_micros() / PAUSE.as_micros() {
            let begun =
                next.take().and_then(|next| pool.begin(next, tokens.jobs.get(&next)?.since));
            if let Some(Err(error)) = begun {
                let text = format!("the replay has stopped: no thread could be started: {error}");
                return tape::stop(false, text);
            }
            if pool.has_ended(number) {
                return;
            }
            next = pool.first();
        }
        let (task, site) = (job.task.1, words::place_of(job.site));
        let text = "has ended in the record, and does not end when it runs again";
        tape::stop(true, format!("the job o{number} of task {task}, called at {site}, {text}"));
    }

    fn grant_all<M: Machine>(&mut self, core: &mut Core<M>) {
        while let Some((job, parcel)) = self.tokens.grant(core.sched.now) {
            let ((running, queued), cause) = (self.occupation(), core.sched.log.cause);
            emit_for!(core.sched, WAKEUP, Event::OffloadStarts { job, running, queued, cause });
            self.start_job(core, job, parcel);
        }
    }

    /// Handles a job that ended in time, but whose future was dropped before it read the value.
    pub(crate) fn orphan<M: Machine>(&mut self, core: &mut Core<M>, ended: EndedJob) {
        emit_for!(core.sched, KERNEL, Event::Orphan { job: ended.job });
        self.give_orphan(ended);
    }

    fn give_orphan(&mut self, ended: EndedJob) {
        let EndedJob { job, task, site, work } = ended;
        let Some(mut hook) = self.on_orphan.take() else { return drop_quietly(work) };
        let site = words::place_of(site);
        quietly(|| {
            let Some(outcome) = work.take() else { return };
            hook(Orphan { job, task: task.0, site, outcome });
        });
        drop_quietly(work);
        // The hook may have set a new hook in the meantime: keep the new one.
        self.on_orphan.get_or_insert(hook);
    }

    /// Abandons a job, because its future was dropped or interrupted. A job without its tokens
    /// never runs.
    pub(crate) fn abandon<M: Machine>(&mut self, core: &mut Core<M>, number: u64) {
        let Some((task, id)) = self.tokens.jobs.get(&number).map(|job| job.task) else { return };
        let index = core.sched.find(task);
        let label = |tasks: &Tasks| index.map(|index| tasks.label(index).1.to_owned());
        let name = label(&core.sched.tasks).unwrap_or_default();
        if let Some(parcel) = self.tokens.withdraw(number) {
            emit_for!(core.sched, (id, &*name), Event::DropJob { job: number });
            drop_quietly(parcel);
        } else if self.tokens.abandon(number, &name) {
            emit_for!(core.sched, (id, &*name), Event::Abandon { job: number });
        }
    }

    /// Drops the jobs that will never run, at the end of a shutdown: those that no thread has
    /// begun, and those that a script would have ended later.
    pub(crate) fn drop_queued<M: Machine>(&mut self, core: &mut Core<M>) {
        core.timers.set_service(ServiceTimer::Retry, Time::NEVER);
        self.retries = false;
        let queued = self.pool.close();
        let whole =
            |queued: VecDeque<_>| queued.into_iter().map(|(job, it)| (job, Some(it))).collect();
        let queued: Vec<_> = if M::IS_TAPED { self.pool.unbegun(queued) } else { whole(queued) };
        let scripted = core.sched.machine.take_jobs().into_iter().map(|(job, it)| (job, Some(it)));
        for (job, parcel) in queued.into_iter().chain(scripted) {
            drop_quietly(self.tokens.end(job, core.sched.now));
            emit_for!(core.sched, KERNEL, Event::DropJob { job });
            drop_quietly(parcel);
        }
    }

    /// Abandons all jobs, because the kernel is dropped.
    pub(crate) fn drop_all<M: Machine>(&mut self, core: &mut Core<M>) {
        let is_played = M::IS_TAPED && tape::answers();
        for job in self.tokens.abandon_all() {
            if is_played {
                // The record does not say when it was told so.
                job.caller.set_first_yes([1, 1]);
            }
            drop_quietly(job);
        }
        core.sched.machine.take_jobs().into_iter().for_each(drop_quietly);
    }

    /// Returns the jobs that have not ended, ordered by number.
    pub(crate) fn views(&self, tasks: &Tasks) -> Vec<JobView> {
        let jobs = self.tokens.jobs.iter();
        jobs.map(|(number, job)| job.view(*number, tasks.name_of(job.task.1))).collect()
    }
}

impl Job {
    /// Returns the job as the kernel's owner sees it. `name` is the name of its task, if the task
    /// still lives.
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
            site: words::place_of(self.site),
            limiter: self.limiter.as_ref().map(|limiter| limiter.name),
        }
    }
}

/// The pool of worker threads, as the kernel's thread sees it. Dropping it closes the pool without
/// waiting.
pub(crate) struct Pool {
    /// The number of threads started so far, for their names.
    started: u64,
    /// The stack size of a worker, in bytes.
    pub(super) stack_size: usize,
    floor: Arc<Floor>,
    /// The jobs of a replay that have begun again, each with its thread, which drops the sender of
    /// the channel when the job has ended.
    again: BTreeMap<u64, (JoinHandle<()>, Receiver<Infallible>)>,
}

/// The state that the kernel's thread and the workers share.
struct Floor {
    board: Mutex<Board>,
    /// The condition variable of idle workers, notified when a job was queued or the pool is
    /// closing.
    called: Condvar,
    /// The condition variable of [`Pool::wait_for_workers`], notified when a worker has left.
    left: Condvar,
    /// The time after which an idle worker ends.
    idle: Duration,
    deliver: Deliver,
}

/// The data of a [`Floor`], guarded by its lock. While a thread holds the lock, it runs no user
/// code and drops no job.
#[derive(Default)]
struct Board {
    /// The jobs that no worker has taken, oldest first.
    queue: VecDeque<(u64, Parcel)>,
    /// The number of all workers, idle or not.
    threads: usize,
    /// The number of workers that will look at the queue before they do anything else.
    idle: usize,
    closing: bool,
}

impl Pool {
    /// Makes a pool without threads. The worker's thread calls `deliver` with each job that has
    /// run. A worker that is idle for `idle` ends.
    pub(crate) fn new(idle: Duration, deliver: Deliver) -> Pool {
        let (called, left) = (Condvar::new(), Condvar::new());
        let floor = Floor { board: Mutex::default(), called, left, idle, deliver };
        let (floor, again) = (Arc::new(floor), BTreeMap::new());
        Pool { started: 0, stack_size: WORKER_STACK, floor, again }
    }

    /// Queues a job, and wakes an idle worker. If there is none, [`Pool::staff`] starts one.
    pub(crate) fn submit(&mut self, job: u64, parcel: Parcel) {
        self.floor.enter().queue.push_back((job, parcel));
        self.floor.called.notify_one();
    }

    /// Starts workers until there is one for each queued job. Never blocks.
    ///
    /// # Errors
    ///
    /// Returns the system's error if a thread cannot be started. The jobs stay queued, until a busy
    /// worker takes them or a later call starts a worker.
    pub(crate) fn staff(&mut self) -> io::Result<()> {
        loop {
            {
                let mut board = self.floor.enter();
                if board.queue.len() <= board.idle {
                    return Ok(());
                }
                // Count the worker before it exists, so that no second one is started for the same
                // job.
                board.idle += 1;
                board.threads += 1;
            }
            if let Err(error) = self.start_worker() {
                self.floor.leave(self.floor.enter());
                return Err(error);
            }
        }
    }

    /// Starts one detached worker. `Board::threads` has the number of workers.
    fn start_worker(&mut self) -> io::Result<()> {
        let floor = self.floor.clone();
        self.start_thread(move || floor.work()).map(drop)
    }

    fn start_thread(&mut self, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
        let name = format!("trapline-worker-{}", self.started + 1);
        let thread = thread::Builder::new().name(name).stack_size(self.stack_size).spawn(run)?;
        self.started += 1;
        Ok(thread)
    }

    /// Returns the number of workers, idle or not.
    pub(crate) fn threads(&self) -> usize {
        self.floor.enter().threads
    }

    /// Closes the pool: each worker ends after its present job. Returns the jobs that no worker has
    /// taken, oldest first.
    pub(crate) fn close(&mut self) -> VecDeque<(u64, Parcel)> {
        let mut board = self.floor.enter();
        board.closing = true;
        self.floor.called.notify_all();
        mem::take(&mut board.queue)
    }

    /// Begins a queued job of a replay on a thread of its own. Returns `None` if it has begun.
    /// `since` is the time at which it got its tokens in the record.
    fn begin(&mut self, job: u64, since: Time) -> Option<io::Result<()>> {
        let mut board = self.floor.enter();
        let at = board.queue.iter().position(|(queued, _)| *queued == job)?;
        let (_, mut parcel) = board.queue.remove(at)?;
        drop(board);
        parcel.context.replay(since);
        let (alive, end) = mpsc::channel::<Infallible>();
        let run = move || {
            let _alive = alive;
            quietly(|| parcel.run());
        };
        Some(self.start_thread(run).map(|thread| _ = self.again.insert(job, (thread, end))))
    }

    /// Waits for a job that [`begin`](Pool::begin) has begun, for a short time. Returns whether its
    /// thread has ended.
    fn has_ended(&mut self, job: u64) -> bool {
        let Some((_, end)) = self.again.get(&job) else { return true };
        if end.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            return false;
        }
        // The end of the thread is near: it may run destructors of its thread-locals.
        self.again.remove(&job).is_none_or(|(thread, _)| thread.join().is_ok())
    }

    /// Returns the oldest job that no thread has begun.
    fn first(&self) -> Option<u64> {
        self.floor.enter().queue.front().map(|(job, _)| *job)
    }

    /// Records which jobs no worker has begun, and returns them. In a replay the record has their
    /// numbers. The other queued jobs stay, because they end later. One that has begun in a replay
    /// has no parcel: another job did not end soon.
    fn unbegun(&mut self, mut queued: VecDeque<(u64, Parcel)>) -> Vec<(u64, Option<Parcel>)> {
        let numbers: Vec<u64> = queued.iter().map(|(job, _)| *job).collect();
        let put = |jobs: &Vec<u64>, words: &mut Words| jobs.iter().for_each(|it| words.number(*it));
        let get = |answer: &mut Answer<'_>| {
            let mut jobs = Vec::new();
            while !answer.is_empty() {
                jobs.push(answer.number());
            }
            jobs
        };
        let unbegun = tape::input("unbegun", || numbers, put, get);
        let mut parcel_of = |job: u64| {
            let at = queued.iter().position(|(queued, _)| *queued == job)?;
            Some(queued.remove(at)?.1)
        };
        let unbegun = unbegun.into_iter().map(|job| (job, parcel_of(job))).collect();
        self.floor.enter().queue = queued;
        unbegun
    }

    /// Blocks until all workers of a closed pool have ended, for at most `grace`. The remaining
    /// workers deliver when they end, if the process still lives.
    pub(crate) fn wait_for_workers(&self, grace: Duration) {
        let workers = |board: &mut Board| board.threads > 0;
        let mut board = self.floor.enter();
        // The wait reads the system's clock, and WebAssembly has none. It has no workers either.
        if workers(&mut board) {
            drop(self.floor.left.wait_timeout_while(board, grace, workers));
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close().into_iter().for_each(drop_quietly);
    }
}

impl Floor {
    /// Locks the board. A poisoned lock still guards consistent counts, because no user code runs
    /// under it.
    fn enter(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs jobs on the thread of a worker, until the pool closes or the worker has been idle too
    /// long. The worker is counted as idle when this begins.
    fn work(&self) {
        loop {
            let is_idle = |board: &mut Board| board.queue.is_empty() && !board.closing;
            let waited = self.called.wait_timeout_while(self.enter(), self.idle, is_idle);
            let (mut board, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let Some((job, parcel)) = board.queue.pop_front() else {
                return self.leave(board);
            };
            board.idle -= 1;
            drop(board);
            quietly(|| parcel.run());
            // Before the delivery: a thread that sees the delivery and submits again must find this
            // worker idle.
            self.enter().idle += 1;
            (self.deliver)(job);
        }
    }

    /// Removes an idle worker from the counts.
    fn leave(&self, mut board: MutexGuard<'_, Board>) {
        board.idle -= 1;
        board.threads -= 1;
        self.left.notify_all();
    }
}

pub(crate) struct Job {
    /// The job in the form in which a worker runs it, until the job has its tokens.
    pub(crate) parcel: Option<Parcel>,
    pub(crate) work: Arc<dyn Work>,
    /// The wait of the caller. `None` once the job was abandoned.
    pub(crate) ticket: Option<Ticket>,
    /// What the job can learn about its caller on its thread.
    pub(crate) caller: Arc<Caller>,
    /// The task that asked for the job, and its number.
    pub(crate) task: (TaskRef, u64),
    /// The name of the task, set when the job is abandoned, because the task may end first.
    pub(crate) name: Option<String>,
    pub(crate) site: Site,
    /// The time at which the job was queued, or got its tokens.
    pub(crate) since: Time,
    /// Whether only the caller needs the job, so that the halt does not wait for it.
    pub(crate) is_question: bool,
    pub(crate) limiter: Option<Rc<LimiterCore>>,
    /// Whether the job was given to the pool, not to a script.
    pub(crate) on_thread: bool,
}

/// All jobs of a kernel by number, and the pool's tokens. This part only counts: it starts no
/// thread and runs no job.
#[derive(Default)]
pub(crate) struct Tokens {
    /// The number of the pool's tokens, free or in use.
    all: usize,
    pub(crate) in_use: usize,
    /// The largest number of tokens in use at one time so far.
    pub(crate) peak: usize,
    /// The sum of the times for which ended jobs held their tokens.
    pub(crate) held: Duration,
    /// The number of jobs that were given to the pool and have not ended.
    pub(crate) on_threads: usize,
    pub(crate) jobs: BTreeMap<u64, Job>,
    /// The queue of jobs that wait for a token of the pool, oldest first.
    line: BTreeSet<u64>,
}

impl Tokens {
    pub(crate) fn new(all: usize) -> Tokens {
        Tokens { all, ..Tokens::default() }
    }

    /// Returns the number of jobs that wait for a token of the pool or of their limiter.
    pub(crate) fn queued(&self) -> usize {
        self.jobs.len() - self.in_use
    }

    /// Returns the number of running jobs whose caller has its reply already. O(jobs).
    pub(crate) fn abandoned(&self) -> usize {
        self.jobs.values().filter(|job| job.ticket.is_none()).count()
    }

    /// Returns the number of jobs on threads that the halt waits for. O(jobs).
    pub(crate) fn needed(&self) -> usize {
        self.jobs.values().filter(|job| job.on_thread && !job.is_question).count()
    }

    /// Adds a job, which waits for its tokens.
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

    /// Gives a free token to the oldest job in the queue, and returns the job. The caller must run
    /// it.
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

    /// Marks a job as abandoned, because its caller stopped waiting. The job continues and keeps
    /// its tokens. Returns `false` if it was abandoned before or has ended.
    pub(crate) fn abandon(&mut self, number: u64, name: &str) -> bool {
        let Some(job) = self.jobs.get_mut(&number) else { return false };
        if job.ticket.take().is_none() {
            return false;
        }
        job.name = Some(name.to_owned());
        job.caller.mark_gone();
        true
    }

    /// Removes a job that still waits for a token. Returns `None` if it runs or has ended.
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

    /// Removes a job that has ended, and frees its tokens. Returns `None` if there is no such job.
    pub(crate) fn end(&mut self, number: u64, now: Time) -> Option<Job> {
        let mut job = self.jobs.remove(&number)?;
        self.in_use -= 1;
        self.on_threads -= usize::from(job.on_thread);
        self.held += now.since(job.since);
        self.leave(job.limiter.take());
        Some(job)
    }

    /// Frees a token of the limiter, and gives it to the next job in the limiter's queue.
    fn leave(&mut self, limiter: Option<Rc<LimiterCore>>) {
        let Some(limiter) = limiter else { return };
        limiter.in_use.set(limiter.in_use.get() - 1);
        let next = limiter.line.borrow_mut().pop_first();
        if let Some(next) = next {
            take_token(&limiter);
            self.line.insert(next);
        }
    }

    /// Checks that the jobs which have left the queues are those with a token of the pool, and that
    /// those on threads are counted. For tests: O(jobs).
    ///
    /// # Panics
    ///
    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        let Tokens { all, in_use, on_threads, jobs, line, .. } = self;
        let running = jobs.values().filter(|job| job.parcel.is_none());
        assert_eq!(*in_use, running.clone().count(), "a job that runs holds a token");
        assert!(in_use <= all, "{in_use} of {all} tokens");
        let are_there = running.filter(|job| job.on_thread).count();
        assert_eq!(*on_threads, are_there, "a job on a thread runs");
        let is_queued = |number| jobs.get(number).is_some_and(|job: &Job| job.parcel.is_some());
        assert!(line.iter().all(is_queued), "who waits for a token has none");
    }

    /// Abandons all jobs, because the kernel is gone, and resets their limiters, so that another
    /// kernel can use them. Returns the jobs, oldest first.
    pub(crate) fn abandon_all(&mut self) -> impl Iterator<Item = Job> + use<> {
        for job in self.jobs.values() {
            job.caller.mark_gone();
            job.limiter.iter().for_each(|limiter| limiter.reset());
        }
        std::mem::take(&mut self.jobs).into_values()
    }
}

/// Whether a token is free. If so, no job waits for it: [`Tokens::leave`] passes each token on.
fn may_pass(limiter: &LimiterCore) -> bool {
    limiter.in_use.get() < limiter.tokens
}

fn take_token(limiter: &LimiterCore) {
    limiter.in_use.set(limiter.in_use.get() + 1);
    limiter.peak.set(limiter.peak.get().max(limiter.in_use.get()));
}

#[cfg(test)]
mod threads_tests {
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
        // The kernel tries at 0, 100 ms and 200 ms, and succeeds at 300 ms.
        assert_eq!((value, at), (2, Time::ZERO + ms(300)));
        assert_eq!(warnings("jobs find threads again"), 1);
        kernel.shutdown().unwrap();
        assert_eq!(kernel.counters().timers, 0);
    }
}

#[cfg(test)]
mod pool_tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::sync::mpsc::{self, Receiver, Sender};
    use traps::Time;
    use traps::internal::protocol::Work;
    use traps::internal::table::TaskRef;
    use traps::internal::{ThreadClock, ThreadContext};

    const LONG: Duration = Duration::from_secs(3600);

    /// A job that calls a closure.
    struct Call<F>(Mutex<F>);

    impl<F: FnMut() + Send + 'static> Work for Call<F> {
        fn run(&self) {
            (self.0.lock().unwrap())();
        }

        fn take(&self) -> Option<Result<Box<dyn std::any::Any + Send>, String>> {
            None
        }
    }

    fn call(run: impl FnMut() + Send + 'static) -> Parcel {
        let clock: Arc<ThreadClock> = Arc::new(|| Time::ZERO);
        let nobody = TaskRef::new(0, 0);
        let context = ThreadContext::new(Time::NEVER, &clock, nobody);
        Parcel { work: Arc::new(Call(Mutex::new(run))), context }
    }

    /// Makes a pool, and a channel of the jobs that it delivers.
    fn pool(idle: Duration) -> (Pool, Receiver<u64>) {
        let (sender, delivered) = mpsc::channel();
        // A failed send means that the test is over.
        let deliver = move |job| sender.send(job).unwrap_or(());
        (Pool::new(idle, Arc::new(deliver)), delivered)
    }

    fn submit(pool: &mut Pool, job: u64, parcel: Parcel) {
        pool.submit(job, parcel);
        pool.staff().unwrap();
    }

    /// Returns the number of jobs that are running.
    fn running(pool: &Pool) -> usize {
        let board = pool.floor.enter();
        board.threads - board.idle
    }

    /// Makes a job that sends its number when it starts, and ends when `open` sends or is dropped.
    fn gated(number: u64, starts: &Sender<u64>) -> (Parcel, Sender<()>) {
        let (open, gate) = mpsc::channel();
        let starts = starts.clone();
        let run = move || {
            starts.send(number).unwrap();
            let _ = gate.recv(); // an error is as good as a message
        };
        (call(run), open)
    }

    fn shut_down(pool: &mut Pool, grace: Duration) -> usize {
        assert!(pool.close().is_empty());
        pool.wait_for_workers(grace);
        pool.threads()
    }

    #[test]
    fn a_job_has_a_thread_at_once_and_an_idle_one_before_a_new_one() {
        let (mut pool, delivered) = pool(LONG);
        let (starts, started) = mpsc::channel();
        let mut gates = Vec::new();
        for job in 0..3 {
            let (parcel, gate) = gated(job, &starts);
            submit(&mut pool, job, parcel);
            gates.push(gate);
        }
        assert_eq!(started.iter().take(3).collect::<BTreeSet<_>>(), BTreeSet::from([0, 1, 2]));
        assert_eq!((running(&pool), pool.threads()), (3, 3));
        gates.remove(1);
        assert_eq!(delivered.recv(), Ok(1));
        submit(&mut pool, 3, call(|| ()));
        assert_eq!((delivered.recv(), pool.threads()), (Ok(3), 3));
        gates.clear();
        assert_eq!(delivered.iter().take(2).count(), 2);
        assert_eq!((running(&pool), shut_down(&mut pool, LONG)), (0, 0));
    }

    #[test]
    fn a_panic_in_a_job_is_delivered_and_kills_no_thread() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("the payload of a panic that panics");
            }
        }
        let (mut pool, delivered) = pool(LONG);
        submit(&mut pool, 1, call(|| panic!("expected by the test")));
        assert_eq!(delivered.recv(), Ok(1));
        submit(&mut pool, 2, call(|| std::panic::panic_any(Bomb)));
        assert_eq!(delivered.recv(), Ok(2));
        submit(&mut pool, 3, call(|| ()));
        assert_eq!(delivered.recv(), Ok(3));
        assert_eq!((running(&pool), pool.threads(), pool.started), (0, 1, 1));
    }

    #[test]
    fn each_of_a_burst_of_long_jobs_has_an_idle_worker_of_its_own() {
        let (mut pool, delivered) = pool(LONG);
        let (starts, started) = mpsc::channel();
        for _ in 0..50 {
            let (parcels, gates): (Vec<_>, Vec<_>) = (0..8).map(|job| gated(job, &starts)).unzip();
            for (job, parcel) in (0..).zip(parcels) {
                submit(&mut pool, job, parcel);
            }
            // No job ends before all jobs have begun.
            assert_eq!(started.iter().take(8).collect::<BTreeSet<_>>().len(), 8);
            drop(gates);
            assert_eq!(delivered.iter().take(8).count(), 8);
            while pool.floor.enter().idle < 8 {
                thread::yield_now();
            }
        }
        assert_eq!(pool.threads(), 8);
    }

    #[test]
    fn one_job_after_the_other_needs_one_thread() {
        let (mut pool, delivered) = pool(LONG);
        for job in 0..1000 {
            submit(&mut pool, job, call(|| ()));
            assert_eq!(delivered.recv(), Ok(job));
        }
        assert_eq!(pool.started, 1);
    }

    #[test]
    fn an_idle_thread_retires_and_no_job_is_left_behind() {
        let (mut pool, delivered) = pool(Duration::ZERO);
        for job in 0..2000 {
            submit(&mut pool, job, call(|| ()));
            if job % 2 == 0 {
                assert!(delivered.recv().is_ok());
            }
        }
        assert_eq!(delivered.iter().take(1000).count(), 1000);
        let floor = pool.floor.clone();
        drop(floor.left.wait_while(floor.enter(), |board| board.threads > 0).unwrap());
        assert_eq!((pool.threads(), pool.floor.enter().idle), (0, 0));
        submit(&mut pool, 2000, call(|| ()));
        assert_eq!(delivered.recv(), Ok(2000));
    }

    #[test]
    fn shut_down_waits_for_a_running_job_or_leaves_it_alone() {
        let (mut pool, delivered) = pool(LONG);
        let (starts, started) = mpsc::channel();
        let (parcel, gate) = gated(1, &starts);
        submit(&mut pool, 1, parcel);
        assert_eq!(started.recv(), Ok(1));
        assert_eq!(shut_down(&mut pool, Duration::ZERO), 1, "it is left alone");
        assert_eq!(running(&pool), 1);
        drop(gate);
        assert_eq!(shut_down(&mut pool, LONG), 0);
        assert_eq!(delivered.try_recv(), Ok(1), "delivered before the worker had left");
    }

    #[test]
    fn a_replay_drops_the_jobs_that_the_record_has_even_if_one_has_begun() {
        let (mut pool, _delivered) = pool(LONG);
        [3, 4].into_iter().for_each(|job| pool.submit(job, call(|| ())));
        let queued = pool.close();
        tape::play(Box::new(std::io::Cursor::new("<unbegun 2 3\n<end\n")));
        let unbegun = pool.unbegun(queued);
        assert!(tape::stopped().is_none() && tape::end().is_ok());
        let found: Vec<_> = unbegun.iter().map(|(job, parcel)| (*job, parcel.is_some())).collect();
        assert_eq!((found, pool.first()), (vec![(2, false), (3, true)], Some(4)));
    }

    #[test]
    fn a_thread_that_cannot_start_is_an_error_and_the_job_stays_queued() {
        let (mut pool, delivered) = pool(LONG);
        let possible = mem::replace(&mut pool.stack_size, 1 << 50);
        pool.submit(1, call(|| ()));
        assert!(pool.staff().is_err() && pool.threads() == 0);
        pool.stack_size = possible;
        pool.staff().unwrap();
        assert_eq!((delivered.recv(), pool.threads()), (Ok(1), 1));
        // A worker that was busy takes the job too.
        let (starts, started) = mpsc::channel();
        let (parcel, gate) = gated(2, &starts);
        pool.stack_size = 1 << 50;
        submit(&mut pool, 2, parcel);
        assert_eq!(started.recv(), Ok(2));
        pool.submit(3, call(|| ()));
        assert!(pool.staff().is_err());
        drop(gate);
        assert_eq!((delivered.recv(), delivered.recv()), (Ok(2), Ok(3)));
        assert_eq!(pool.threads(), 1);
    }

    /// Checks the signal mask, because a process that a job starts inherits the mask of its thread.
    #[test]
    fn a_worker_has_a_name_and_the_signals_of_the_process() {
        let (mut pool, _delivered) = pool(LONG);
        let (sender, seen) = mpsc::channel();
        let mask = || {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
            u64::from_str_radix(mask.trim(), 16).unwrap()
        };
        let look = move || {
            let name = thread::current().name().map(str::to_owned);
            sender.send((name, mask())).unwrap();
        };
        submit(&mut pool, 1, call(look));
        let (name, theirs) = seen.recv().unwrap();
        assert_eq!(name.as_deref(), Some("trapline-worker-1"));
        assert_eq!(theirs, mask());
    }
}
