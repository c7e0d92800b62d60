//! The wake queue: the only state that other threads share with the kernel.
//!
//! A thread pushes a message and, if the kernel may be asleep, rings its bell. The kernel marks
//! itself asleep before a wait, and awake after it. Both sides do this under one lock, so no wake
//! is lost:
//!
//! - A push before [`WakeQueue::fall_asleep`] leaves a message that `fall_asleep` finds, so the
//!   kernel does not block.
//! - A push after it finds the kernel marked asleep, removes the mark, and rings. The next push
//!   finds no mark and need not ring.
//!
//! So there is at most one ring per sleep, however many messages arrive during it.
//!
//! Why not a ring per message: each ring is a system call, and a batch of messages needs only one.

use std::mem;
use std::sync::{Arc, PoisonError};

use traps::internal::drop_quietly;

use crate::machine::Bell;

#[cfg(all(test, loom))]
use loom::sync::{Mutex, MutexGuard, atomic::AtomicBool, atomic::Ordering};
#[cfg(not(all(test, loom)))]
use std::sync::{Mutex, MutexGuard, atomic::AtomicBool, atomic::Ordering};

/// The queue of messages from any thread to the kernel.
///
/// The messages of one thread stay in the order of its pushes, and the lock orders the threads.
/// Only memory bounds the queue, because a wake must never fail.
pub(crate) struct WakeQueue<T> {
    state: Mutex<QueueState<T>>,
    /// Whether `state.messages` has a message. Written only under the lock.
    filled: AtomicBool,
}

/// The state of a [`WakeQueue`], guarded by its lock.
struct QueueState<T> {
    messages: Vec<T>,
    /// Whether the kernel may be blocked in a wait and no push has rung since. Never true while
    /// `messages` has a message.
    asleep: bool,
    /// Whether [`WakeQueue::push_order`] is refused.
    sealed: bool,
    /// The number of pushes that rang the bell.
    rings: u64,
    /// The bell of the kernel's machine. `None` once the kernel is gone; then messages are dropped,
    /// and wakers that outlive the kernel do not keep its descriptor open.
    bell: Option<Arc<dyn Bell>>,
}

impl<T: Send> WakeQueue<T> {
    /// Makes an empty queue for a kernel that is awake.
    pub(crate) fn new(bell: Arc<dyn Bell>) -> WakeQueue<T> {
        let state = QueueState {
            messages: Vec::new(),
            asleep: false,
            sealed: false,
            rings: 0,
            bell: Some(bell),
        };
        WakeQueue { state: Mutex::new(state), filled: AtomicBool::new(false) }
    }

    /// Adds a message, from any thread. Rings if the kernel may be asleep and no push has rung
    /// since it fell asleep. The kernel may drain the queue before this returns. Returns `false` if
    /// the kernel is gone; then the message was dropped here.
    ///
    /// May wait for the lock, which is held for O(1) steps only.
    pub(crate) fn push(&self, message: T) -> bool {
        self.push_unless(message, |state| state.bell.is_none())
    }

    /// Adds a message like [`WakeQueue::push`], for a request that makes the kernel start
    /// something. Refuses it once the queue is sealed.
    pub(crate) fn push_order(&self, message: T) -> bool {
        self.push_unless(message, |state| state.sealed || state.bell.is_none())
    }

    fn push_unless(&self, message: T, refuses: impl FnOnce(&QueueState<T>) -> bool) -> bool {
        let bell = {
            let mut state = self.lock();
            if refuses(&state) {
                drop(state);
                // The message contains user code, and a panic in its drop must not end a worker
                // thread.
                drop_quietly(message);
                return false;
            }
            state.messages.push(message);
            self.filled.store(true, Ordering::Relaxed);
            let asleep = mem::take(&mut state.asleep);
            state.rings += u64::from(asleep);
            state.bell.as_ref().filter(|_| asleep).cloned()
        };
        // Ring after the lock is released. Otherwise the kernel would wake up and wait for the
        // lock. A late ring costs one empty wait.
        if let Some(bell) = bell {
            bell.ring();
        }
        true
    }

    /// Returns whether the queue looks empty to the kernel's thread, with one relaxed load.
    ///
    /// May return `true` although a push has just returned on another thread. Returns `false` after
    /// a push that rang and ended the last sleep, because the lock orders the two. A kernel that is
    /// about to block calls [`WakeQueue::fall_asleep`], which is exact.
    pub(crate) fn is_empty(&self) -> bool {
        !self.filled.load(Ordering::Relaxed)
    }

    /// Prepares for a wait, and returns whether the wait may block. Called by the kernel's thread.
    ///
    /// If it returns `true`, the queue is empty, and from now on a push rings. If it returns
    /// `false`, the queue has a message, and the wait must not block.
    #[must_use = "if it returns false, the kernel must not block"]
    pub(crate) fn fall_asleep(&self) -> bool {
        let mut state = self.lock();
        state.asleep = state.messages.is_empty();
        state.asleep
    }

    /// Marks the kernel as awake after a wait, so that pushes need not ring. Called by the kernel's
    /// thread.
    pub(crate) fn wake_up(&self) {
        self.lock().asleep = false;
    }

    /// Moves every message to the end of `into`, in the order of the pushes. Called by the kernel's
    /// thread.
    ///
    /// If `into` is empty, the two buffers are swapped, which is O(1) under the lock. A caller that
    /// passes the same vector each time allocates nothing once both buffers have the size of a
    /// batch.
    pub(crate) fn drain(&self, into: &mut Vec<T>) {
        let mut state = self.lock();
        if into.is_empty() {
            mem::swap(&mut state.messages, into);
        } else {
            into.append(&mut state.messages);
        }
        self.filled.store(false, Ordering::Relaxed);
    }

    /// Makes [`WakeQueue::push_order`] refuse messages from now on. Called by the kernel's thread.
    pub(crate) fn seal(&self) {
        self.lock().sealed = true;
    }

    /// Closes the queue, and returns the messages that were not drained. Called by the kernel's
    /// thread. Wakers that outlive their kernel keep nothing alive.
    pub(crate) fn close(&self) -> Vec<T> {
        let (bell, messages) = {
            let mut state = self.lock();
            state.asleep = false;
            self.filled.store(false, Ordering::Relaxed);
            (state.bell.take(), mem::take(&mut state.messages))
        };
        drop(bell);
        messages
    }

    /// Returns the number of pushes that rang the bell: at most one for each
    /// [`WakeQueue::fall_asleep`] that returned `true`.
    pub(crate) fn rings(&self) -> u64 {
        self.lock().rings
    }

    /// Checks that `filled` and the messages agree, and that the kernel is not asleep while there
    /// is a message. For tests.
    ///
    /// # Panics
    ///
    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        let state = self.lock();
        let is_filled = self.filled.load(Ordering::Relaxed);
        assert_eq!(is_filled, !state.messages.is_empty(), "the flag says whether there are any");
        assert!(!state.asleep || !is_filled, "a kernel with a message is not asleep");
    }

    /// Locks the state of the queue. Under the lock, messages are only moved, never run or dropped,
    /// because they contain user code and may push again. So the state behind a poisoned lock is
    /// still consistent.
    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::Condvar;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    const THREADS: u64 = 4;
    const EACH: u64 = 250_000;

    /// A bell that a thread can wait for.
    #[derive(Default)]
    struct Doorbell {
        rung: Mutex<bool>,
        heard: Condvar,
        rings: AtomicU64,
    }

    impl Bell for Doorbell {
        fn ring(&self) {
            self.rings.fetch_add(1, Ordering::Relaxed);
            *self.rung.lock().unwrap() = true;
            self.heard.notify_one();
        }
    }

    impl Doorbell {
        fn wait(&self) {
            let rung = self.rung.lock().unwrap();
            *self.heard.wait_while(rung, |rung| !*rung).unwrap() = false;
        }
    }

    fn queue<T: Send>() -> (Arc<Doorbell>, Arc<WakeQueue<T>>) {
        let bell = Arc::new(Doorbell::default());
        (bell.clone(), Arc::new(WakeQueue::new(bell)))
    }

    /// Starts four threads. Each pushes `(thread, 0..EACH)`.
    fn start_pushers(queue: &Arc<WakeQueue<(u64, u64)>>) -> Vec<thread::JoinHandle<()>> {
        let pusher = |id| {
            let queue = queue.clone();
            thread::spawn(move || (0..EACH).for_each(|count| assert!(queue.push((id, count)))))
        };
        (0..THREADS).map(pusher).collect()
    }

    /// Checks that no message is lost, none arrives twice, and each thread's messages are in order.
    fn assert_complete(got: &[(u64, u64)]) {
        let mut next = [0; THREADS as usize];
        for &(id, count) in got {
            assert_eq!(count, next[id as usize], "of thread {id}");
            next[id as usize] += 1;
        }
        assert_eq!(next, [EACH; THREADS as usize]);
    }

    #[test]
    fn c27_a_million_wakes_never_fail() {
        let (bell, queue) = queue();
        assert!(queue.fall_asleep());
        start_pushers(&queue).into_iter().for_each(|pusher| pusher.join().unwrap());
        assert_eq!(bell.rings.load(Ordering::Relaxed), 1, "one ring for the whole batch");
        bell.wait();
        queue.wake_up();
        let mut got = Vec::new();
        queue.drain(&mut got);
        assert_complete(&got);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_kernel_that_sleeps_whenever_it_may_gets_every_wake_once_and_in_order() {
        let (bell, queue) = queue();
        let pushers = start_pushers(&queue);
        let (mut got, mut batch, mut sleeps) = (Vec::new(), Vec::new(), 0);
        while got.len() < (THREADS * EACH) as usize {
            if queue.fall_asleep() {
                sleeps += 1;
                bell.wait();
                queue.wake_up();
            }
            if !queue.is_empty() {
                queue.drain(&mut batch);
                got.append(&mut batch);
            }
        }
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        assert_complete(&got);
        assert_eq!(bell.rings.load(Ordering::Relaxed), queue.rings());
        assert!(queue.rings() <= sleeps, "{} rings in {sleeps} sleeps", queue.rings());
    }

    #[test]
    fn c23_a_thread_may_push_and_nothing_it_pushes_runs_there() {
        type Task = Box<dyn FnOnce() -> thread::ThreadId + Send>;
        fn shared<S: Send + Sync>() {}
        shared::<WakeQueue<Cell<u8>>>(); // a message crosses over; it is never shared
        let (_, queue) = queue();
        let from = queue.clone();
        let task: Task = Box::new(|| thread::current().id());
        assert!(thread::spawn(move || from.push(task)).join().unwrap());
        let mut got = Vec::new();
        queue.drain(&mut got);
        assert_eq!(got.pop().unwrap()(), thread::current().id());
    }

    #[test]
    fn what_is_pushed_after_the_end_is_dropped_and_rings_nobody() {
        let kept = Arc::new(());
        let queue = WakeQueue::new(Arc::<Doorbell>::default());
        queue.push(kept.clone());
        assert_eq!(queue.close().len(), 1);
        queue.push(kept.clone());
        assert!(queue.is_empty());
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[test]
    fn only_the_first_push_of_a_sleep_rings() {
        let (bell, queue) = queue();
        let rings = || bell.rings.load(Ordering::Relaxed);
        queue.push(1);
        assert_eq!(rings(), 0, "the kernel is awake");
        assert!(!queue.fall_asleep(), "something is there");
        queue.check();
        queue.push(2);
        assert_eq!(rings(), 0, "the kernel was told not to block");
        queue.drain(&mut Vec::new());
        assert!(queue.fall_asleep());
        queue.check();
        queue.push(3);
        queue.check();
        queue.push(4);
        assert_eq!(rings(), 1);
        queue.wake_up();
        queue.drain(&mut Vec::new());
        assert!(queue.fall_asleep());
        queue.wake_up(); // by a deadline
        queue.push(5);
        assert_eq!((rings(), queue.rings()), (1, 1));
    }

    #[test]
    fn a_queue_that_was_closed_lets_go_of_the_bell() {
        let (bell, queue) = queue();
        assert!(queue.fall_asleep());
        assert!(queue.push(1));
        assert_eq!(queue.close(), [1]);
        queue.check();
        assert_eq!(Arc::strong_count(&bell), 1);
        assert!(!queue.push(2));
        assert_eq!(queue.close(), []);
    }

    #[test]
    fn draining_goes_to_the_end_and_two_buffers_serve_for_ever() {
        let (_, queue) = queue();
        let mut into = vec![1];
        queue.push(2);
        queue.push(3);
        queue.drain(&mut into);
        assert_eq!(into, [1, 2, 3]);
        let mut buffers = Vec::new();
        for _ in 0..6 {
            into.clear();
            (0..64).for_each(|count| assert!(queue.push(count)));
            queue.drain(&mut into);
            buffers.push(into.as_ptr());
        }
        assert_eq!(buffers[2..4], buffers[4..]);
    }

    #[test]
    fn a_message_may_push_when_it_is_dropped() {
        struct Echo(Arc<WakeQueue<Option<Echo>>>);
        impl Drop for Echo {
            fn drop(&mut self) {
                self.0.push(None);
            }
        }
        let (_, queue) = queue();
        queue.push(Some(Echo(queue.clone())));
        let mut got = Vec::new();
        queue.drain(&mut got);
        got.clear();
        queue.drain(&mut got);
        assert!(matches!(got[..], [None]));
    }
}

/// Tests of every interleaving of small programs. Run them with `RUSTFLAGS="--cfg loom"` in a
/// release build.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Condvar;
    use loom::thread;

    /// A machine whose wait ends only by a ring. A lost wake is a deadlock, which loom reports.
    struct Doorbell {
        rung: Mutex<bool>,
        heard: Condvar,
    }

    impl Bell for Doorbell {
        fn ring(&self) {
            *self.rung.lock().unwrap() = true;
            self.heard.notify_one();
        }
    }

    impl Doorbell {
        fn wait(&self) {
            let mut rung = self.rung.lock().unwrap();
            while !*rung {
                rung = self.heard.wait(rung).unwrap();
            }
            *rung = false;
        }
    }

    type Queue = Arc<WakeQueue<(usize, usize)>>;

    fn queue() -> (Arc<Doorbell>, Queue) {
        let bell = Arc::new(Doorbell { rung: Mutex::new(false), heard: Condvar::new() });
        (bell.clone(), Arc::new(WakeQueue::new(bell)))
    }

    fn start_pusher(queue: &Queue, id: usize, messages: usize) -> thread::JoinHandle<()> {
        let queue = queue.clone();
        thread::spawn(move || (0..messages).for_each(|count| assert!(queue.push((id, count)))))
    }

    /// Runs the kernel's part of a turn until it has `wanted` messages. Returns the messages and
    /// the number of sleeps.
    fn run(bell: &Doorbell, queue: &Queue, wanted: usize) -> (Vec<(usize, usize)>, u64) {
        let (mut got, mut sleeps) = (Vec::new(), 0);
        while got.len() < wanted {
            if queue.fall_asleep() {
                sleeps += 1;
                bell.wait();
                queue.wake_up();
            }
            if !queue.is_empty() {
                queue.drain(&mut got);
            }
        }
        (got, sleeps)
    }

    #[test]
    fn a_push_is_never_lost_and_a_sleep_is_rung_for_at_most_once() {
        loom::model(|| {
            let (bell, queue) = queue();
            let pushers = [start_pusher(&queue, 0, 1), start_pusher(&queue, 1, 1)];
            let (mut got, sleeps) = run(&bell, &queue, 2);
            pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
            got.sort_unstable();
            assert_eq!(got, [(0, 0), (1, 0)]);
            assert!(queue.rings() <= sleeps);
            assert!(queue.is_empty());
        });
    }

    #[test]
    fn each_producer_keeps_its_order() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3); // all interleavings take minutes
        model.check(|| {
            let (bell, queue) = queue();
            let pushers = [start_pusher(&queue, 0, 2), start_pusher(&queue, 1, 1)];
            let (mut got, sleeps) = run(&bell, &queue, 3);
            pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
            got.retain(|(id, _)| *id == 0);
            assert_eq!(got, [(0, 0), (0, 1)]);
            assert!(queue.rings() <= sleeps);
        });
    }

    #[test]
    fn what_is_pushed_while_the_queue_closes_is_handed_back_or_refused() {
        loom::model(|| {
            let (_, queue) = queue();
            let pusher = {
                let queue = queue.clone();
                thread::spawn(move || queue.push((0, 0)))
            };
            let left = queue.close();
            let taken = pusher.join().unwrap();
            assert_eq!(left.len(), usize::from(taken));
            assert!(queue.is_empty());
        });
    }

    #[test]
    fn a_sleep_ended_by_a_deadline_loses_nothing_either() {
        loom::model(|| {
            let (bell, queue) = queue();
            let pushers = [start_pusher(&queue, 0, 1), start_pusher(&queue, 1, 1)];
            let (mut got, mut sleeps) = (Vec::new(), 0);
            if queue.fall_asleep() {
                sleeps += 1; // and the deadline comes before any ring
            }
            queue.wake_up();
            queue.drain(&mut got);
            let (rest, later) = run(&bell, &queue, 2 - got.len());
            pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
            assert_eq!(got.len() + rest.len(), 2);
            assert!(queue.rings() <= sleeps + later);
        });
    }
}
