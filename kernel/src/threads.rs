//! The pool of worker threads: blocking work, done elsewhere.
//!
//! The kernel's thread hands over jobs that have a token (`workers.rs` counts those, so there are
//! never more threads than tokens); a worker takes the oldest, runs it and delivers it. Workers
//! start on demand and retire when they have been idle for a while. A worker touches nothing of the
//! kernel's but what its job and `deliver` hold.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::limits::WORKER_STACK;
use crate::tokens::Parcel;

use traps::threads::{Work, drop_quietly};

/// How often a worker without a job gives way before it sleeps: for a microsecond or so.
const YIELDS: u32 = 3;

/// A job that has run, as its worker delivers it.
pub struct Done {
    pub job: u64,
    /// After [`Work::run`], which may have panicked.
    pub work: Box<dyn Work>,
}

/// Takes a finished job back, from any thread. Must not block or panic.
pub type Deliver = Arc<dyn Fn(Done) + Send + Sync>;

/// The kernel thread's end of the pool.
///
/// Dropping it is a [`Pool::close`] that waits for nobody.
pub(crate) struct Pool {
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
    /// For [`Pool::wait_for_workers`]: the last one has left.
    emptied: Condvar,
    /// How long an idle worker stays.
    idle: Duration,
    deliver: Deliver,
}

/// What the lock guards. No foreign code runs and no job is dropped while it is held.
///
/// While jobs are queued, somebody is on the way to them, or nobody is asleep: at most one worker
/// is called at a time, and the next one is by whoever takes a job and leaves others. So a burst of
/// short jobs wakes few threads, and each of a burst of long ones has its own soon.
#[derive(Default)]
struct Board {
    /// Jobs that no worker has taken, oldest first.
    queue: VecDeque<(u64, Parcel)>,
    /// All workers; those that are not idle are in `Work::run`.
    threads: usize,
    /// Workers that look at the queue before they do anything else: waiting, just started, or
    /// delivering.
    idle: usize,
    /// Idle workers that wait and were not called.
    asleep: usize,
    /// Workers that were called and have not come.
    calls: usize,
    /// No worker takes another job.
    closing: bool,
}

impl Board {
    /// Whether a worker is to be called, who counts as called from now on.
    #[must_use]
    fn must_call(&mut self) -> bool {
        let calls = !self.queue.is_empty() && self.asleep > 0 && self.asleep == self.idle;
        self.asleep -= usize::from(calls);
        self.calls += usize::from(calls);
        calls
    }
}

impl Pool {
    /// Makes a pool without any thread.
    ///
    /// A thread without a job for `idle` ends. `deliver` is called on the worker's thread with each
    /// job that has run.
    pub(crate) fn new(idle: Duration, deliver: Deliver) -> Pool {
        let floor = Floor {
            board: Mutex::default(),
            called: Condvar::new(),
            emptied: Condvar::new(),
            idle,
            deliver,
        };
        Pool { started: 0, stack_size: WORKER_STACK, floor: Arc::new(floor) }
    }

    /// Hands a job to an idle worker, or to a new one. Never blocks.
    ///
    /// # Errors
    ///
    /// Why no thread could be started, or that the pool was shut down, with the job: it is not
    /// left here to wait for a worker that may be busy for ever.
    pub(crate) fn submit(&mut self, job: u64, parcel: Parcel) -> Result<(), (io::Error, Parcel)> {
        {
            let mut board = self.floor.enter();
            if board.closing {
                let error = io::Error::new(io::ErrorKind::BrokenPipe, "the pool was shut down");
                return Err((error, parcel));
            }
            board.queue.push_back((job, parcel));
            if board.queue.len() <= board.idle {
                let calls = board.must_call();
                drop(board);
                if calls {
                    self.floor.called.notify_one();
                }
                return Ok(());
            }
            // Counted before it exists, so that the next job does not count on it too.
            board.idle += 1;
            board.threads += 1;
        }
        self.start_worker().or_else(|error| {
            let mut board = self.floor.enter();
            board.idle -= 1;
            board.threads -= 1;
            let place = board.queue.iter().position(|(queued, _)| *queued == job);
            let taken_back = place.and_then(|place| board.queue.remove(place));
            // Whoever took a job meanwhile saw somebody on the way.
            let calls = board.must_call();
            drop(board);
            if calls {
                self.floor.called.notify_one();
            }
            // One that was busy a moment ago may have taken it.
            taken_back.map_or(Ok(()), |(_, parcel)| Err((error, parcel)))
        })
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
        let board = self.floor.enter();
        board.threads - board.idle
    }

    /// How many workers there are, idle or not.
    pub(crate) fn threads(&self) -> usize {
        self.floor.enter().threads
    }

    /// Ends the pool: no job starts any more, workers go home after their present one. Gives the
    /// jobs that none has taken, oldest first.
    pub(crate) fn close(&mut self) -> VecDeque<(u64, Parcel)> {
        let never_run = {
            let mut board = self.floor.enter();
            board.closing = true;
            mem::take(&mut board.queue)
        };
        self.floor.called.notify_all();
        never_run
    }

    /// Waits until all workers of a pool that was closed have gone, at most for so long. Blocks.
    ///
    /// Returns how many are still there. They are left alone, and deliver when they end, if the
    /// process still lives.
    pub(crate) fn wait_for_workers(&self, grace: Duration) -> usize {
        let Floor { emptied, .. } = &*self.floor;
        let (board, _) = emptied
            .wait_timeout_while(self.floor.enter(), grace, |board| board.threads > 0)
            .unwrap_or_else(PoisonError::into_inner);
        board.threads
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Foreign, each of them.
        self.close().into_iter().for_each(drop_quietly);
    }
}

impl Floor {
    /// Takes the lock. A poisoned one still guards whole counts: nothing foreign runs under it.
    fn enter(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of a worker. It comes in counted as idle.
    fn work(&self) {
        let mut next = self.wait_for_job();
        while let Some((job, Parcel { mut work, context })) = next {
            // The job catches its own panics and keeps them; this is for one that does not.
            let ran = panic::catch_unwind(AssertUnwindSafe(|| work.run(context)));
            // Not dropped: to drop a panic's payload may panic again.
            ran.unwrap_or_else(mem::forget);
            let mut board = self.enter();
            // Before the delivery: who hears of it and submits again finds this worker idle,
            // and does not start another.
            board.idle += 1;
            next = self.take(board);
            (self.deliver)(Done { job, work });
            next = next.or_else(|| self.wait_for_job());
        }
    }

    /// Takes the oldest job, if there is one, for a worker that is counted as idle until then.
    fn take(&self, mut board: MutexGuard<'_, Board>) -> Option<(u64, Parcel)> {
        let next = if board.closing { None } else { board.queue.pop_front() }?;
        board.idle -= 1;
        let calls = board.must_call();
        drop(board);
        if calls {
            self.called.notify_one();
        }
        Some(next)
    }

    /// Gives way to others for a while, as long as there is nothing to do: in a burst the next job
    /// comes sooner than a worker falls asleep and is woken.
    fn linger(&self) -> MutexGuard<'_, Board> {
        let mut board = self.enter();
        for _ in 0..YIELDS {
            if !board.queue.is_empty() || board.closing {
                break;
            }
            drop(board);
            thread::yield_now();
            board = self.enter();
        }
        board
    }

    /// Waits for a job and takes it. `None`: the worker is no longer counted and must end.
    fn wait_for_job(&self) -> Option<(u64, Parcel)> {
        let mut board = self.linger();
        while board.queue.is_empty() && !board.closing {
            board.asleep += 1;
            let (woken, waited) = self
                .called
                .wait_timeout_while(board, self.idle, |board| board.calls == 0 && !board.closing)
                .unwrap_or_else(PoisonError::into_inner);
            board = woken;
            // A call is for whoever comes first.
            match board.calls.checked_sub(1) {
                Some(others) => board.calls = others,
                None => board.asleep -= 1,
            }
            // Even when the time is up: the job may have come with the last tick, and counts on us.
            if waited.timed_out() && board.queue.is_empty() {
                break;
            }
        }
        if !board.closing && !board.queue.is_empty() {
            return self.take(board);
        }
        board.idle -= 1;
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
    use traps::Time;
    use traps::protocol::TaskRef;
    use traps::threads::{ThreadClock, ThreadContext};

    const LONG: Duration = Duration::from_secs(3600);

    /// A job from a closure.
    struct Call<F>(F);

    impl<F: FnMut() + Send + 'static> Work for Call<F> {
        fn run(&mut self, context: ThreadContext) {
            context.run(|| (self.0)()).unwrap();
        }

        fn into_outcome(self: Box<Self>) -> traps::threads::Outcome {
            Some(Ok(self))
        }
    }

    fn call(run: impl FnMut() + Send + 'static) -> Parcel {
        let clock: Arc<ThreadClock> = Arc::new(|| Time::ZERO);
        let nobody = TaskRef { index: 0, generation: 0 };
        let context = ThreadContext::new(Time::NEVER, &clock, nobody);
        Parcel { work: Box::new(Call(run)), context }
    }

    /// A pool, and the jobs it delivers.
    fn pool(idle: Duration) -> (Pool, Receiver<u64>) {
        let (sender, delivered) = mpsc::channel();
        // An error: the test is over.
        let deliver = move |done: Done| sender.send(done.job).unwrap_or(());
        (Pool::new(idle, Arc::new(deliver)), delivered)
    }

    fn submit(pool: &mut Pool, job: u64, parcel: Parcel) {
        pool.submit(job, parcel).map_err(|(error, _)| error).unwrap();
    }

    /// A job that says its number when it starts, and ends when `open` is dropped or sends.
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
        pool.wait_for_workers(grace)
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
        assert_eq!((pool.running(), pool.threads()), (3, 3));
        gates.remove(1);
        assert_eq!(delivered.recv(), Ok(1));
        submit(&mut pool, 3, call(|| ()));
        assert_eq!((delivered.recv(), pool.threads()), (Ok(3), 3));
        gates.clear();
        assert_eq!(delivered.iter().take(2).count(), 2);
        assert_eq!((pool.running(), shut_down(&mut pool, LONG)), (0, 0));
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
        submit(&mut pool, 2, call(|| panic::panic_any(Bomb)));
        assert_eq!(delivered.recv(), Ok(2));
        submit(&mut pool, 3, call(|| ()));
        assert_eq!(delivered.recv(), Ok(3));
        assert_eq!((pool.running(), pool.threads(), pool.started), (0, 1, 1));
    }

    #[test]
    fn each_of_a_burst_of_long_jobs_has_a_sleeper_of_its_own() {
        let (mut pool, delivered) = pool(LONG);
        let (starts, started) = mpsc::channel();
        for _ in 0..50 {
            let (parcels, gates): (Vec<_>, Vec<_>) = (0..8).map(|job| gated(job, &starts)).unzip();
            for (job, parcel) in (0..).zip(parcels) {
                submit(&mut pool, job, parcel);
            }
            // None ends before all have begun.
            assert_eq!(started.iter().take(8).collect::<BTreeSet<_>>().len(), 8);
            drop(gates);
            assert_eq!(delivered.iter().take(8).count(), 8);
            while pool.floor.enter().asleep < 8 {
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
        drop(floor.emptied.wait_while(floor.enter(), |board| board.threads > 0).unwrap());
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
        assert_eq!(pool.running(), 1);
        let (error, _) = pool.submit(3, call(|| ())).unwrap_err();
        assert_eq!(error.to_string(), "the pool was shut down");
        drop(gate);
        assert_eq!(shut_down(&mut pool, LONG), 0);
        assert_eq!(delivered.try_recv(), Ok(1), "delivered before the worker had left");
    }

    #[test]
    fn a_thread_that_cannot_start_is_an_error_and_the_job_comes_back() {
        let (mut pool, delivered) = pool(LONG);
        let possible = mem::replace(&mut pool.stack_size, 1 << 50);
        let (_, parcel) = pool.submit(1, call(|| ())).unwrap_err();
        assert_eq!(pool.threads(), 0);
        pool.stack_size = possible;
        submit(&mut pool, 1, parcel);
        assert_eq!((delivered.recv(), pool.threads()), (Ok(1), 1));
        // Also where there is another thread, which may be busy for ever; not where it is idle.
        let (starts, started) = mpsc::channel();
        let (parcel, gate) = gated(2, &starts);
        pool.stack_size = 1 << 50;
        submit(&mut pool, 2, parcel);
        assert_eq!(started.recv(), Ok(2));
        let (_, parcel) = pool.submit(3, call(|| ())).unwrap_err();
        drop(gate);
        assert_eq!(delivered.recv(), Ok(2));
        submit(&mut pool, 3, parcel);
        assert_eq!((delivered.recv(), pool.threads()), (Ok(3), 1));
    }

    /// A process that a job starts inherits the mask of its thread.
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
