//! The pool of worker threads: blocking work, done elsewhere.
//!
//! One bounded pool for each kernel, with one visible FIFO queue. The kernel thread submits; a
//! worker takes the oldest job, runs it and delivers it. Workers start on demand and retire when
//! they have been idle for a while. A worker touches nothing of the kernel's but what its job
//! and `deliver` hold.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::limits::WORKER_STACK;
use crate::machine::sys;

pub(crate) use traps::threads::Work;

/// Names a job to the pool and back. The caller never uses one twice.
pub type JobId = u64;

/// A job that has run, as its worker delivers it.
pub struct Done {
    pub job: JobId,
    /// After [`Work::run`], which may have panicked.
    pub work: Box<dyn Work>,
}

/// The kernel thread's end of the pool.
///
/// Dropping it is a [`Pool::shut_down`] that waits for nobody.
pub(crate) struct Pool {
    /// The most threads at one time.
    limit: usize,
    /// How many threads were ever started, for their names.
    started: u64,
    /// Of each worker, in bytes.
    stack_size: usize,
    floor: Arc<Floor>,
}

/// What the kernel thread and the workers share.
struct Floor {
    board: Mutex<Board>,
    /// For idle workers: a job was queued, or the pool is closing.
    called: Condvar,
    /// For `shut_down`: the last worker has left.
    emptied: Condvar,
    /// How long an idle worker stays.
    idle: Duration,
    deliver: Arc<dyn Fn(Done) + Send + Sync>,
}

/// What the lock guards. No foreign code runs and no job is dropped while it is held.
#[derive(Default)]
struct Board {
    /// Jobs that no worker has taken, oldest first.
    queue: VecDeque<(JobId, Box<dyn Work>)>,
    /// Workers that are in `Work::run`.
    running: usize,
    /// Workers that look at the queue before they do anything else: waiting, just started, or
    /// delivering.
    idle: usize,
    /// All workers: `running + idle`.
    threads: usize,
    /// No worker takes another job.
    closing: bool,
}

impl Pool {
    /// Makes a pool without any thread.
    ///
    /// `limit` is the most threads at one time; a thread without a job for `idle` ends. `deliver`
    /// is called on the worker's thread with each job that has run; it must not block or panic.
    ///
    /// # Panics
    ///
    /// If `limit` is zero: no job would ever run.
    pub(crate) fn new(
        limit: usize,
        idle: Duration,
        deliver: Arc<dyn Fn(Done) + Send + Sync>,
    ) -> Pool {
        assert!(limit > 0, "a pool of no threads runs no job");
        let floor = Floor {
            board: Mutex::default(),
            called: Condvar::new(),
            emptied: Condvar::new(),
            idle,
            deliver,
        };
        Pool { limit, started: 0, stack_size: WORKER_STACK, floor: Arc::new(floor) }
    }

    /// Queues a job, and sees to it that a worker takes it: an idle one, or a new one if the
    /// limit allows, or else the first that is done with what was queued before. Never blocks.
    ///
    /// # Errors
    ///
    /// If no thread lives and none can be started, or the pool was shut down. The job is queued
    /// all the same: the next `submit` tries again for it too, [`Pool::withdraw`] takes it out.
    pub(crate) fn submit(&mut self, job: JobId, work: Box<dyn Work>) -> io::Result<()> {
        self.floor.enter().queue.push_back((job, work));
        self.floor.called.notify_one();
        self.start_workers()
    }

    /// Starts a worker for each queued job that no idle one will take, up to the limit.
    ///
    /// # Errors
    ///
    /// As [`Pool::submit`].
    fn start_workers(&mut self) -> io::Result<()> {
        loop {
            let mut board = self.floor.enter();
            if board.closing {
                return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the pool was shut down"));
            }
            if board.queue.len() <= board.idle || board.threads == self.limit {
                return Ok(());
            }
            // Counted before it exists, so that the next job does not count on it too.
            board.idle += 1;
            board.threads += 1;
            drop(board);
            if let Err(error) = self.start_worker() {
                let mut board = self.floor.enter();
                board.idle -= 1;
                board.threads -= 1;
                // A worker never leaves while something is queued, so one will do.
                return if board.threads > 0 { Ok(()) } else { Err(error) };
            }
        }
    }

    /// Starts one worker. It is detached: `Board::threads` says how many there are.
    fn start_worker(&mut self) -> io::Result<()> {
        let floor = self.floor.clone();
        let name = format!("trapline-worker-{}", self.started + 1);
        let worker = thread::Builder::new().name(name).stack_size(self.stack_size);
        worker.spawn(move || floor.work())?;
        self.started += 1;
        Ok(())
    }

    /// How many jobs are being run. A job is no longer counted when it is delivered; it is when
    /// its caller gave up but its thread did not.
    #[cfg(test)]
    pub(crate) fn running(&self) -> usize {
        self.floor.enter().running
    }

    /// How many jobs wait for a worker.
    pub(crate) fn queued(&self) -> usize {
        self.floor.enter().queue.len()
    }

    /// How many workers there are, idle or not.
    pub(crate) fn threads(&self) -> usize {
        self.floor.enter().threads
    }

    /// Takes a job out of the queue: it never runs. `None` if a worker has it, or had it: it
    /// will be delivered. O(queued).
    pub(crate) fn withdraw(&mut self, job: JobId) -> Option<Box<dyn Work>> {
        let mut board = self.floor.enter();
        let place = board.queue.iter().position(|(queued, _)| *queued == job)?;
        board.queue.remove(place).map(|(_, work)| work)
    }

    /// Ends the pool: no job starts any more, those queued are dropped here, oldest first, and
    /// those running have `grace` to end and be delivered.
    ///
    /// Returns how many workers are still there. They are left alone, and deliver when they
    /// end, if the process still lives.
    pub(crate) fn shut_down(&mut self, grace: Duration) -> usize {
        self.close();
        let Floor { emptied, .. } = &*self.floor;
        let (board, _) = emptied
            .wait_timeout_while(self.floor.enter(), grace, |board| board.threads > 0)
            .unwrap_or_else(PoisonError::into_inner);
        board.threads
    }

    /// Sends the workers home after their present job and drops the jobs that none has.
    fn close(&mut self) {
        let never_run = {
            let mut board = self.floor.enter();
            board.closing = true;
            mem::take(&mut board.queue)
        };
        self.floor.called.notify_all();
        drop(never_run);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close();
    }
}

impl Floor {
    /// Takes the lock. A poisoned one still guards whole counts: nothing foreign runs under it.
    fn enter(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of a worker. It comes in counted as idle.
    fn work(&self) {
        sys::block_all_signals(); // they are for the kernel thread
        while let Some((job, mut work)) = self.next_job() {
            // The job catches its own panics and keeps them; this is for one that does not.
            let ran = panic::catch_unwind(AssertUnwindSafe(|| work.run()));
            // Not dropped: to drop a panic's payload may panic again.
            ran.unwrap_or_else(mem::forget);
            let mut board = self.enter();
            board.running -= 1;
            // Before the delivery: who hears of it and submits again finds this worker idle,
            // and does not start another.
            board.idle += 1;
            drop(board);
            (self.deliver)(Done { job, work });
        }
    }

    /// Waits for a job and takes it. `None`: the worker is no longer counted and must end.
    fn next_job(&self) -> Option<(JobId, Box<dyn Work>)> {
        let (mut board, _) = self
            .called
            .wait_timeout_while(self.enter(), self.idle, |board| {
                board.queue.is_empty() && !board.closing
            })
            .unwrap_or_else(PoisonError::into_inner);
        board.idle -= 1;
        // Even when the time is up: the job may have come with the last tick, and counts on us.
        let next = if board.closing { None } else { board.queue.pop_front() };
        if next.is_some() {
            board.running += 1;
            return next;
        }
        board.threads -= 1;
        if board.threads == 0 {
            self.emptied.notify_all();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::sync::mpsc::{self, Receiver, Sender};

    const LONG: Duration = Duration::from_secs(3600);

    /// A job from a closure.
    struct Call<F>(F);

    impl<F: FnMut() + Send + 'static> Work for Call<F> {
        fn run(&mut self) {
            (self.0)();
        }

        fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
            self
        }
    }

    fn call(run: impl FnMut() + Send + 'static) -> Box<dyn Work> {
        Box::new(Call(run))
    }

    /// A pool, and the jobs it delivers.
    fn pool(limit: usize, idle: Duration) -> (Pool, Receiver<JobId>) {
        let (sender, delivered) = mpsc::channel();
        let deliver = move |done: Done| sender.send(done.job).unwrap_or(()); // the test is over
        (Pool::new(limit, idle, Arc::new(deliver)), delivered)
    }

    /// A job that says its number when it starts, and ends when `open` is dropped or sends.
    fn gated(number: JobId, starts: &Sender<JobId>) -> (Box<dyn Work>, Sender<()>) {
        let (open, gate) = mpsc::channel();
        let starts = starts.clone();
        let run = move || {
            starts.send(number).unwrap();
            let _ = gate.recv(); // an error is as good as a message
        };
        (call(run), open)
    }

    #[test]
    fn the_limit_holds_and_what_is_above_it_queues() {
        let (mut pool, delivered) = pool(3, LONG);
        let (starts, started) = mpsc::channel();
        let mut gates = VecDeque::new();
        for job in 0..7 {
            let (work, gate) = gated(job, &starts);
            pool.submit(job, work).unwrap();
            gates.push_back(gate);
        }
        let first: BTreeSet<JobId> = started.iter().take(3).collect();
        assert_eq!(first, BTreeSet::from([0, 1, 2]));
        assert_eq!((pool.running(), pool.queued(), pool.threads()), (3, 4, 3));
        assert!(started.try_recv().is_err(), "three threads are busy");
        for job in 3..7 {
            drop(gates.pop_front());
            assert_eq!(delivered.recv(), Ok(job - 3));
            assert_eq!(started.recv(), Ok(job), "the oldest is next");
            assert_eq!((pool.running(), pool.queued(), pool.threads()), (3, 6 - job as usize, 3));
        }
        gates.clear();
        assert_eq!(delivered.iter().take(3).count(), 3);
        assert_eq!((pool.running(), pool.shut_down(LONG)), (0, 0));
    }

    #[test]
    fn one_thread_runs_jobs_in_the_order_of_submission() {
        let (mut pool, delivered) = pool(1, LONG);
        (0..100).for_each(|job| pool.submit(job, call(|| ())).unwrap());
        assert!(delivered.iter().take(100).eq(0..100));
        assert_eq!((pool.running(), pool.queued(), pool.threads()), (0, 0, 1));
    }

    #[test]
    fn a_queued_job_can_be_withdrawn_and_a_running_one_not() {
        let (mut pool, delivered) = pool(1, LONG);
        let (starts, started) = mpsc::channel();
        let (work, gate) = gated(1, &starts);
        pool.submit(1, work).unwrap();
        assert_eq!(started.recv(), Ok(1));
        (2..5).for_each(|job| pool.submit(job, call(|| ())).unwrap());
        assert!(pool.withdraw(1).is_none(), "it runs");
        assert!(pool.withdraw(3).is_some());
        assert!(pool.withdraw(3).is_none(), "it is no longer there");
        assert_eq!(pool.queued(), 2);
        drop(gate);
        assert!(delivered.iter().take(3).eq([1, 2, 4]));
    }

    #[test]
    fn a_panic_in_a_job_is_delivered_and_kills_no_thread() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("the payload of a panic that panics");
            }
        }
        let (mut pool, delivered) = pool(1, LONG);
        pool.submit(1, call(|| panic!("expected by the test"))).unwrap();
        pool.submit(2, call(|| panic::panic_any(Bomb))).unwrap();
        pool.submit(3, call(|| ())).unwrap();
        assert!(delivered.iter().take(3).eq([1, 2, 3]));
        assert_eq!((pool.running(), pool.threads(), pool.started), (0, 1, 1));
    }

    #[test]
    fn r10_a_thousand_jobs_start_at_most_limit_threads() {
        let (mut pool, delivered) = pool(4, LONG);
        (0..1000).for_each(|job| pool.submit(job, call(|| ())).unwrap());
        assert_eq!(delivered.iter().take(1000).collect::<BTreeSet<_>>().len(), 1000);
        assert!(pool.started <= 4, "{} threads", pool.started);
        assert_eq!(pool.shut_down(LONG), 0);
    }

    #[test]
    fn one_job_after_the_other_needs_one_thread() {
        let (mut pool, delivered) = pool(8, LONG);
        for job in 0..1000 {
            pool.submit(job, call(|| ())).unwrap();
            assert_eq!(delivered.recv(), Ok(job));
        }
        assert_eq!(pool.started, 1);
    }

    #[test]
    fn an_idle_thread_retires_and_no_job_is_left_behind() {
        let (mut pool, delivered) = pool(2, Duration::ZERO);
        for job in 0..2000 {
            pool.submit(job, call(|| ())).unwrap();
            if job % 2 == 0 {
                assert!(delivered.recv().is_ok());
            }
        }
        assert_eq!(delivered.iter().take(1000).count(), 1000);
        let floor = pool.floor.clone();
        drop(floor.emptied.wait_while(floor.enter(), |board| board.threads > 0).unwrap());
        assert_eq!((pool.threads(), pool.floor.enter().idle), (0, 0));
        pool.submit(2000, call(|| ())).unwrap();
        assert_eq!(delivered.recv(), Ok(2000));
    }

    #[test]
    fn shut_down_waits_for_a_running_job_or_leaves_it_alone() {
        let (mut pool, delivered) = pool(1, LONG);
        let (starts, started) = mpsc::channel();
        let (work, gate) = gated(1, &starts);
        pool.submit(1, work).unwrap();
        let (dropped, drops) = mpsc::channel();
        pool.submit(2, call(move || dropped.send(()).unwrap())).unwrap();
        assert_eq!(started.recv(), Ok(1));
        assert_eq!(pool.shut_down(Duration::ZERO), 1, "it is left alone");
        assert_eq!(drops.recv(), Err(mpsc::RecvError), "the queued one was dropped, not run");
        assert_eq!((pool.running(), pool.queued()), (1, 0));
        assert!(pool.submit(3, call(|| ())).is_err());
        assert!(pool.withdraw(3).is_some(), "it was kept");
        drop(gate);
        assert_eq!(pool.shut_down(LONG), 0);
        assert_eq!(delivered.try_recv(), Ok(1), "delivered before the worker had left");
    }

    #[test]
    fn a_thread_that_cannot_start_is_an_error_only_if_there_is_no_other() {
        let (mut pool, delivered) = pool(2, LONG);
        let possible = mem::replace(&mut pool.stack_size, 1 << 50);
        assert!(pool.submit(1, call(|| ())).is_err());
        assert_eq!((pool.queued(), pool.threads()), (1, 0));
        pool.stack_size = possible;
        let (starts, started) = mpsc::channel();
        let (work, gate) = gated(2, &starts);
        pool.submit(2, work).unwrap();
        assert_eq!((delivered.recv(), started.recv()), (Ok(1), Ok(2)));
        let (work, other_gate) = gated(3, &starts);
        pool.submit(3, work).unwrap();
        assert_eq!(started.recv(), Ok(3));
        pool.limit = 3;
        pool.stack_size = 1 << 50;
        pool.submit(4, call(|| ())).unwrap();
        assert_eq!((pool.queued(), pool.threads()), (1, 2));
        drop((gate, other_gate));
        assert_eq!(delivered.iter().take(3).collect::<BTreeSet<_>>(), BTreeSet::from([2, 3, 4]));
    }

    #[test]
    fn a_worker_has_a_name_and_no_signals() {
        let (mut pool, _delivered) = pool(1, LONG);
        let (sender, seen) = mpsc::channel();
        let look = move || {
            let name = thread::current().name().map(str::to_owned);
            sender.send((name, fs::read_to_string("/proc/thread-self/status").unwrap())).unwrap();
        };
        pool.submit(1, call(look)).unwrap();
        let (name, status) = seen.recv().unwrap();
        assert_eq!(name.as_deref(), Some("trapline-worker-1"));
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap().trim();
        let mask = u64::from_str_radix(mask, 16).unwrap();
        for signal in [1, 2, 10, 12, 15, 17] {
            assert!(mask & (1 << (signal - 1)) != 0, "signal {signal} would be delivered");
        }
    }
}
