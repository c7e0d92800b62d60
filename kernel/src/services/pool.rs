//! The pool of worker threads.
//!
//! The kernel's thread hands over jobs that have a token, so there are never more threads than
//! tokens. A worker takes the oldest job, runs it and delivers it. Workers start on demand and end
//! when they have been idle for a while.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use traps::threads::{drop_quietly, quietly};

use crate::limits::WORKER_STACK;
use crate::machine::{Deliver, Parcel};

/// The kernel thread's end of the pool. Dropping it closes the pool and waits for nobody.
pub(crate) struct Pool {
    /// How many threads were ever started, for their names.
    started: u64,
    /// Of each worker, in bytes.
    pub(super) stack_size: usize,
    floor: Arc<Floor>,
}

/// What the kernel thread and the workers share.
struct Floor {
    board: Mutex<Board>,
    /// For idle workers: a job was queued, or the pool is closing.
    called: Condvar,
    /// For [`Pool::wait_for_workers`]: a worker has left.
    left: Condvar,
    /// How long an idle worker stays.
    idle: Duration,
    deliver: Deliver,
}

/// What the lock guards. No foreign code runs and no job is dropped while it is taken.
#[derive(Default)]
struct Board {
    /// Jobs that no worker has taken, oldest first.
    queue: VecDeque<(u64, Parcel)>,
    /// All workers.
    threads: usize,
    /// Workers that look at the queue before they do anything else.
    idle: usize,
    closing: bool,
}

impl Pool {
    /// A pool without threads. `deliver` is called on the worker's thread with each job that has
    /// run. A worker without a job for `idle` ends.
    pub(crate) fn new(idle: Duration, deliver: Deliver) -> Pool {
        let (called, left) = (Condvar::new(), Condvar::new());
        let floor = Floor { board: Mutex::default(), called, left, idle, deliver };
        Pool { started: 0, stack_size: WORKER_STACK, floor: Arc::new(floor) }
    }

    /// Queues a job and calls an idle worker. [`Pool::staff`] starts one if there is none.
    pub(crate) fn submit(&mut self, job: u64, parcel: Parcel) {
        self.floor.enter().queue.push_back((job, parcel));
        self.floor.called.notify_one();
    }

    /// Starts workers until there is one for each queued job. Never blocks.
    ///
    /// # Errors
    ///
    /// Why no thread could be started. The jobs stay queued: a worker that is busy now takes them,
    /// or one that a later call starts.
    pub(crate) fn staff(&mut self) -> io::Result<()> {
        loop {
            {
                let mut board = self.floor.enter();
                if board.queue.len() <= board.idle {
                    return Ok(());
                }
                // Counted before it exists, so that it is not started twice.
                board.idle += 1;
                board.threads += 1;
            }
            if let Err(error) = self.start_worker() {
                self.floor.leave(self.floor.enter());
                return Err(error);
            }
        }
    }

    /// Starts one worker. It is detached: `Board::threads` says how many there are.
    fn start_worker(&mut self) -> io::Result<()> {
        let floor = self.floor.clone();
        let name = format!("trapline-worker-{}", self.started + 1);
        thread::Builder::new()
            .name(name)
            .stack_size(self.stack_size)
            .spawn(move || floor.work())?;
        self.started += 1;
        Ok(())
    }

    /// How many workers there are, idle or not.
    pub(crate) fn threads(&self) -> usize {
        self.floor.enter().threads
    }

    /// Ends the pool: workers end after their present job. Gives the jobs that none has taken,
    /// oldest first.
    pub(crate) fn close(&mut self) -> VecDeque<(u64, Parcel)> {
        let mut board = self.floor.enter();
        board.closing = true;
        self.floor.called.notify_all();
        mem::take(&mut board.queue)
    }

    /// Waits until all workers of a closed pool have ended, at most for `grace`. Blocks. Workers
    /// that are left deliver when they end, if the process still lives.
    pub(crate) fn wait_for_workers(&self, grace: Duration) {
        let workers = |board: &mut Board| board.threads > 0;
        drop(self.floor.left.wait_timeout_while(self.floor.enter(), grace, workers));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
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
            // Before the delivery: whoever hears of it and submits again finds this worker idle.
            self.enter().idle += 1;
            (self.deliver)(job);
        }
    }

    /// An idle worker is gone.
    fn leave(&self, mut board: MutexGuard<'_, Board>) {
        board.idle -= 1;
        board.threads -= 1;
        self.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::sync::mpsc::{self, Receiver, Sender};
    use traps::Time;
    use traps::core::names::TaskRef;
    use traps::threads::{ThreadClock, ThreadContext, Work};

    const LONG: Duration = Duration::from_secs(3600);

    /// A job from a closure.
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

    /// A pool, and the jobs it delivers.
    fn pool(idle: Duration) -> (Pool, Receiver<u64>) {
        let (sender, delivered) = mpsc::channel();
        // An error: the test is over.
        let deliver = move |job| sender.send(job).unwrap_or(());
        (Pool::new(idle, Arc::new(deliver)), delivered)
    }

    fn submit(pool: &mut Pool, job: u64, parcel: Parcel) {
        pool.submit(job, parcel);
        pool.staff().unwrap();
    }

    /// How many jobs are being run.
    fn running(pool: &Pool) -> usize {
        let board = pool.floor.enter();
        board.threads - board.idle
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
            // None ends before all have begun.
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
