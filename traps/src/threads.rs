//! Blocking work on worker threads: jobs, limiters for classes of jobs, and iterators that block.
//!
//! A task hands a closure to the kernel as a *job*, and parks. A worker thread runs the job, and
//! the task takes the value out of the `SharedJob` that both share. A job needs a *token* of the
//! kernel's pool, and also one of its [`Limiter`] if it has one. The kernel decides when a job gets
//! its tokens.
//!
//! A job runs without a kernel. All that it knows of its task is in its context, which has a file
//! of its own, `context.rs`.
//!
//! A source of items takes a blocking iterator, and makes one job for each item. The iterator is
//! stored in a slot that the source and its jobs share. A job takes the iterator out, calls it
//! once, and puts it back together with the item. So no item is ever inside a reply, and a dropped
//! reply loses no item. If an earlier call's job still has the iterator, the next call waits until
//! that job wakes it.

use std::any::Any;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::{fmt, mem};

use crate::combine::Either;
use crate::core::gate;
use crate::core::protocol::{LimiterCore, NewJob, ParkedOn, Post, Reply, ServicePost, Trap, Work};
use crate::core::table::Site;
use crate::core::wait::{self, Call};
use crate::error::{Error, caught};
use crate::outside::{OutsideCall, OutsideWaker};
use crate::time::Time;
use crate::verbs::in_force;

pub use crate::context::{ThreadDeadline, is_in_job, thread_deadline};

/// A job: its closure, and afterwards its result. The caller of the job and the thread that runs it
/// share this state, because either can end first: the caller by an interrupt, the thread by the
/// end of the closure.
struct SharedJob<F, T> {
    state: Mutex<JobState<F, T>>,
}

enum JobState<F, T> {
    Waiting(F),
    Running,
    /// The result of the job. `None` if the job did not run, stored its result elsewhere, or the
    /// result was taken.
    Ended(Option<Result<T, String>>),
}

impl<F, T> SharedJob<F, T> {
    /// Replaces the state. The caller drops the old state after the lock is released, because user
    /// code must not run under the lock.
    fn replace(&self, state: JobState<F, T>) -> JobState<F, T> {
        mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), state)
    }
}

impl<F, T> Work for SharedJob<F, T>
where
    F: FnOnce() -> Option<Result<T, String>> + Send,
    T: Send + 'static,
{
    fn run(&self) {
        if let JobState::Waiting(closure) = self.replace(JobState::Running) {
            let ended = caught(closure).unwrap_or_else(|message| Some(Err(message)));
            drop(self.replace(JobState::Ended(ended)));
        }
    }

    fn take(&self) -> Option<Result<Box<dyn Any + Send>, String>> {
        Some(self.take_value()?.map(|value| Box::new(value) as Box<_>))
    }
}

/// A job as its caller sees it: of a known type of value, but of any type of closure.
trait TypedWork<T>: Work {
    fn take_value(&self) -> Option<Result<T, String>>;
}

impl<F, T> TypedWork<T> for SharedJob<F, T>
where
    F: FnOnce() -> Option<Result<T, String>> + Send,
    T: Send + 'static,
{
    fn take_value(&self) -> Option<Result<T, String>> {
        match self.replace(JobState::Ended(None)) {
            JobState::Ended(ended) => ended,
            JobState::Waiting(_) | JobState::Running => None,
        }
    }
}

/// Runs `closure` on a worker thread and waits for its value. *Blocks* the task, always, but never
/// the kernel. Costs one allocation for the job and two wake-ups of a thread.
///
/// The kernel's option `threads` is the number of jobs that run at one time. Further jobs wait in
/// one queue, first in, first out. The job knows the deadline of its caller ([`thread_deadline`]),
/// and sees the [`InheritedLocal`](crate::InheritedLocal)s that the caller has when it parks.
///
/// # Errors
///
/// Returns [`Error::Interrupt`], [`Error::Panicked`] if the closure panicked, [`Error::WouldNest`]
/// inside a job, and [`Error::Moved`]. After an interrupt, a job without a token never runs. A job
/// with a token keeps it until it ends, even if its thread has not begun it yet, and its value goes
/// to the kernel's hook for orphans. The hook also gets a value that was never read, such as that
/// of a branch that lost a race.
///
/// ```
/// use traps::{Error, run_in_thread};
///
/// # testing::run(async {
/// let sum = run_in_thread(|| (1..=1000).sum::<u64>()).await?;
/// assert_eq!(sum, 500_500);
///
/// let panicked = run_in_thread(|| -> u64 { panic!("no such number") }).await;
/// assert_eq!(panicked, Err(Error::Panicked("no such number".to_owned())));
/// # Ok::<(), Error>(())
/// # }).output.unwrap();
/// ```
#[track_caller]
pub fn run_in_thread<F, T>(closure: F) -> RunInThread<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    RunInThread::new(move || Some(Ok(closure())), None, Location::caller())
}

/// Runs `closure` like [`run_in_thread`], for a question to the system, such as the look-up of a
/// name: it changes nothing, and only its caller needs the answer. So a shutdown does not wait for
/// it, and does not count it as work that was cut off.
#[track_caller]
pub fn ask_in_thread<F, T>(closure: F) -> RunInThread<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    RunInThread { is_question: true, ..run_in_thread(closure) }
}

/// The future of [`run_in_thread`].
#[must_use = "a trap that is not awaited is never made"]
pub struct RunInThread<T> {
    job: Arc<dyn TypedWork<T>>,
    /// Whether the job was handed over to the kernel. From then on it belongs to the task that
    /// polled the future first.
    is_submitted: bool,
    /// Whether [`ask_in_thread`] has made the job.
    is_question: bool,
    limiter: Option<Rc<LimiterCore>>,
    call: Call,
}

impl<T: Send + 'static> RunInThread<T> {
    /// Makes the future of a job. The closure returns the result of the job, or `None` if it stores
    /// the result elsewhere.
    fn new<F>(closure: F, limiter: Option<Rc<LimiterCore>>, site: Site) -> RunInThread<T>
    where
        F: FnOnce() -> Option<Result<T, String>> + Send + 'static,
    {
        let job = Arc::new(SharedJob { state: Mutex::new(JobState::Waiting(closure)) });
        let call = Call::from(site);
        RunInThread { job, is_submitted: false, is_question: false, limiter, call }
    }
}

impl<T> fmt::Debug for RunInThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunInThread").field("call", &self.call).finish_non_exhaustive()
    }
}

impl<T: 'static> Future for RunInThread<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let RunInThread { job, is_submitted, is_question, limiter, call } = &mut *self;
        if !*is_submitted {
            if is_in_job() {
                return Poll::Ready(Err(Error::WouldNest));
            }
        } else if !call.ticket().is_some_and(wait::is_here) {
            // A job is handed over once, with the ticket of its first task. Another task cannot
            // file it again, because the closure may be running already.
            return Poll::Ready(Err(Error::Moved));
        }
        let (mut number, site) = (0, call.site());
        let polled = call.poll(cx, || {
            number = gate::with_shared(|kernel| {
                kernel.jobs.set(kernel.jobs.get() + 1);
                kernel.jobs.get()
            })
            .unwrap_or_else(|| gate::refuse_outside_a_task(site));
            Trap::Park { what: ParkedOn::Job(number), external: false }
        });
        let Poll::Ready(reply) = polled else {
            if !mem::replace(is_submitted, true) {
                submit(number, call, job.clone(), *is_question, limiter.clone());
            }
            return Poll::Pending;
        };
        Poll::Ready(match reply {
            Reply::Job(_) => match job.take_value() {
                Some(Ok(value)) => Ok(value),
                Some(Err(message)) => Err(Error::Panicked(message)),
                None => Err(Error::Panicked("the job has no value".to_owned())),
            },
            Reply::Interrupt(interrupt) => Err(Error::Interrupt(interrupt)),
            other => other.wrong(),
        })
    }
}

/// Hands a job over to the kernel. The wait of the job must be filed first: the kernel throws a job
/// away if its task does not wait for it, for example because the trap was interrupted at once.
fn submit<T: 'static>(
    job: u64,
    call: &Call,
    work: Arc<dyn TypedWork<T>>,
    is_question: bool,
    limiter: Option<Rc<LimiterCore>>,
) {
    let (Some(ticket), Some(task)) = (call.ticket(), gate::task()) else { return };
    let until = in_force(call.site()).map_or(Time::NEVER, |found| found.deadline);
    let work: Arc<dyn Work> = work;
    let site = call.site();
    let job = NewJob { job, ticket, task, site, work, is_question, limiter, until };
    gate::post(Post::Service(ServicePost::Submit(Box::new(job))));
}

/// A limit on the number of threads that one class of jobs has at a time, so that a slow class
/// leaves threads for the others. Further jobs wait in the limiter's own queue, first in, first
/// out, and not in that of the pool. The queue has no bound. To refuse work instead of queueing it,
/// put an [`AdmissionLimit`](crate::admission::AdmissionLimit) in front.
///
/// A job takes one token of the limiter and one of the pool. It keeps both until its thread has
/// finished, even if the caller stopped waiting before. Clones share one limiter.
///
/// ```
/// # use std::time::Duration;
/// # use kernel::Sim;
/// use traps::threads::Limiter;
/// use traps::{clock, join_all};
///
/// let sim = Sim::new().jobs_take(Duration::from_secs(1)); // on the virtual clock
/// # testing::Setup::new().sim(sim).run(async {
/// let disk = Limiter::new("disk", 2);
/// let jobs = (0..6).map(|n| disk.run_in_thread(move || n * n));
/// let squares: Result<Vec<_>, _> = join_all(jobs).await.into_iter().collect();
/// assert_eq!(squares?, [0, 1, 4, 9, 16, 25]);
/// assert_eq!((disk.peak(), clock().await.as_micros()), (2, 3_000_000));
/// # Ok::<(), traps::Error>(())
/// # }).output.unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Limiter(Rc<LimiterCore>);

impl Limiter {
    /// Makes a limiter with `tokens` tokens; 0 counts as 1. The name is one word for the log.
    #[must_use]
    pub fn new(name: &'static str, tokens: usize) -> Limiter {
        let tokens = tokens.max(1);
        Limiter(Rc::new(LimiterCore { name, tokens, ..LimiterCore::default() }))
    }

    /// Runs `closure` like [`run_in_thread`](crate::run_in_thread()), within this limit. *Blocks*.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`run_in_thread`](crate::run_in_thread()).
    #[track_caller]
    pub fn run_in_thread<F, T>(&self, closure: F) -> RunInThread<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        RunInThread::new(move || Some(Ok(closure())), Some(self.0.clone()), Location::caller())
    }

    /// Makes a source like [`iterate_in_thread`](crate::iterate_in_thread()), with each item within
    /// this limit.
    ///
    /// ```
    /// use traps::threads::Limiter;
    ///
    /// # testing::run(async {
    /// let disk = Limiter::new("disk", 1);
    /// let mut lines = disk.iterate_in_thread(["one", "two"].into_iter());
    /// assert_eq!(lines.next().await?, Some("one"));
    /// assert_eq!(disk.in_use(), 0); // between two items the source has no token
    /// # Ok::<(), traps::Error>(())
    /// # }).output.unwrap();
    /// ```
    #[must_use]
    pub fn iterate_in_thread<I: Iterator<Item: Send> + Send + 'static>(
        &self,
        iterator: I,
    ) -> IterateInThread<I> {
        IterateInThread::new(iterator, Some(self.0.clone()))
    }

    /// Returns the number of tokens that jobs have now. Abandoned jobs count.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kernel::Sim;
    /// use traps::threads::Limiter;
    /// use traps::{join_all, spawn, yield_now};
    ///
    /// let sim = Sim::new().jobs_take(Duration::from_secs(1)); // on the virtual clock
    /// # testing::Setup::new().sim(sim).run(async {
    /// let disk = Limiter::new("disk", 2);
    /// let uses = disk.clone();
    /// let jobs = async move { join_all((0..5).map(|n| uses.run_in_thread(move || n))).await };
    /// let mut reader = spawn("reader", jobs).await;
    /// yield_now().await?; // the reader asks for its five jobs
    /// assert_eq!((disk.in_use(), disk.waiting()), (2, 3));
    /// assert_eq!(reader.join().await?.len(), 5);
    /// # Ok::<(), traps::Error>(())
    /// # }).output.unwrap();
    /// ```
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.0.in_use.get()
    }

    /// Returns the largest number of tokens that were in use at one time. If it equals the limit,
    /// jobs may have waited.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.0.peak.get()
    }

    /// Returns the number of jobs that wait for a token of this limiter.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.line.borrow().len()
    }
}

/// Makes a source of items from a blocking iterator, such as one that reads a file piece by piece.
/// Each item is a job of its own, as with [`run_in_thread`](crate::run_in_thread()). The job has a
/// token while it makes the item. Between items, the source has none. So many slow readers can
/// share few threads.
///
/// The call itself does not use the iterator. The iterator is called only when an item is asked
/// for, and no item is made ahead.
///
/// # The drop of the iterator
///
/// An iterator that has ended or panicked is dropped at once, on the worker thread. If the source
/// is dropped first, the iterator is dropped at once on the thread that drops the source, so that a
/// file is closed together with its reader. This can block the kernel as long as that drop takes.
/// If a job has the iterator at that moment, the worker drops it, with the item, when the job ends.
///
/// ```
/// # use std::io;
/// use std::fs::File;
/// use std::io::{BufRead, BufReader};
///
/// # testing::run(async {
/// let lines = BufReader::new(File::open("Cargo.toml")?).lines();
/// let mut lines = traps::iterate_in_thread(lines);
/// let mut longest = 0;
/// while let Some(line) = lines.next().await? {
///     longest = longest.max(line?.len());
/// }
/// assert!(longest > 20);
/// # Ok::<(), io::Error>(())
/// # }).output.unwrap();
/// ```
#[must_use]
pub fn iterate_in_thread<I: Iterator<Item: Send> + Send + 'static>(
    iterator: I,
) -> IterateInThread<I> {
    IterateInThread::new(iterator, None)
}

/// A source of items that a blocking iterator makes on worker threads. [`iterate_in_thread`] makes
/// it.
pub struct IterateInThread<I: Iterator> {
    slot: SharedSlot<I>,
    limiter: Option<Rc<LimiterCore>>,
}

/// The state that the source and its jobs share. No user code is called or dropped under the lock.
type SharedSlot<I> = Arc<Mutex<ItemSlot<I>>>;

struct ItemSlot<I: Iterator> {
    /// The iterator. `None` while a job has it, and once it has ended.
    iterator: Option<I>,
    /// An item, or the message of a panic, that a job has stored here. It stays here if the call
    /// that asked for it was interrupted, so no item is lost.
    found: Option<Result<I::Item, String>>,
    source: SourceState,
    /// The waker of the source, while the source waits for a job of an earlier call.
    waker: Option<OutsideWaker>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SourceState {
    Idle,
    /// The source has asked for an item, and the job has not ended.
    Asks,
    /// The source was dropped, together with the content of the slot.
    Gone,
}

fn lock<I: Iterator>(slot: &SharedSlot<I>) -> MutexGuard<'_, ItemSlot<I>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<I: Iterator<Item: Send> + Send + 'static> IterateInThread<I> {
    fn new(iterator: I, limiter: Option<Rc<LimiterCore>>) -> IterateInThread<I> {
        let iterator = Some(iterator);
        let state = ItemSlot { iterator, found: None, source: SourceState::Idle, waker: None };
        IterateInThread { slot: Arc::new(Mutex::new(state)), limiter }
    }

    /// Returns the next item, made on a worker thread. Returns `None` once there are no more items.
    /// *Blocks*, unless the job of an earlier, interrupted call has already made the item. Costs
    /// two allocations and two wake-ups of a thread.
    ///
    /// The job sees the deadline and the inherited locals of the call that began it. If that call
    /// is interrupted, the job counts as abandoned
    /// ([`is_abandoned`](ThreadDeadline::is_abandoned)), although its item is kept. An
    /// iterator that gives up for that reason ends early.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Interrupt`] if the wait was interrupted. No item is lost: a job with a
    /// token continues, and the next call returns its item. A job without a token is withdrawn
    /// before it calls the iterator. The same holds if the future is dropped. The log shows the
    /// late end of the job as an `orphan` line, but the kernel's hook for orphans is not called.
    ///
    /// Returns [`Error::Panicked`], once, if the iterator panicked, which ends the iterator.
    /// Returns [`Error::WouldNest`] inside a job; call the iterator directly there.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kernel::Sim;
    /// use traps::{Error, iterate_in_thread, timeout_after};
    ///
    /// let sim = Sim::new().jobs_take(Duration::from_secs(2)); // on the virtual clock
    /// # testing::Setup::new().sim(sim).run(async {
    /// let mut items = iterate_in_thread(["a", "b"].into_iter());
    /// let late = timeout_after(Duration::from_secs(1), items.next()).await;
    /// assert!(matches!(late, Err(Error::Interrupt(_))));
    /// assert_eq!(items.next().await?, Some("a")); // the job of the first call has made it
    /// assert_eq!(items.next().await?, Some("b"));
    /// assert_eq!(items.next().await?, None);
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    #[expect(clippy::should_implement_trait, reason = "a source is no iterator: it waits")]
    pub fn next(&mut self) -> NextItem<'_, I> {
        NextItem { items: self, site: Location::caller(), state: NextState::Check }
    }

    /// Returns the content of the slot, as `Left`. If there is none, returns the wait for it, as
    /// `Right`: for the job of an earlier call, or for a new job.
    fn try_next(&self, site: Site) -> Either<Result<Option<I::Item>, String>, NextState> {
        let mut state = lock(&self.slot);
        if let Some(found) = state.found.take() {
            return Either::Left(found.map(Some));
        }
        if state.source == SourceState::Asks {
            return Either::Right(NextState::Wait(OutsideCall::from(
                ParkedOn::Outside("item"),
                site,
            )));
        }
        if state.iterator.is_none() {
            return Either::Left(Ok(None));
        }
        state.source = SourceState::Asks;
        let next = NextJob(Some(self.slot.clone()));
        let job = move || next.make().map(Err);
        Either::Right(NextState::Job(RunInThread::new(job, self.limiter.clone(), site)))
    }
}

impl<I: Iterator> Drop for IterateInThread<I> {
    fn drop(&mut self) {
        let mut state = lock(&self.slot);
        state.source = SourceState::Gone;
        let left = (state.iterator.take(), state.found.take());
        drop(state);
        drop(left);
    }
}

impl<I: Iterator> fmt::Debug for IterateInThread<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterateInThread").field("limiter", &self.limiter).finish_non_exhaustive()
    }
}

/// The future of [`IterateInThread::next`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct NextItem<'a, I: Iterator> {
    items: &'a mut IterateInThread<I>,
    site: Site,
    state: NextState,
}

#[derive(Debug)]
enum NextState {
    /// The future has to check the slot: at its first poll, and after each wait.
    Check,
    /// The future waits for a job of its own.
    Job(RunInThread<()>),
    /// The future waits for the job of an earlier call.
    Wait(OutsideCall),
}

impl<I: Iterator> Unpin for NextItem<'_, I> {}

impl<I: Iterator<Item: Send> + Send + 'static> Future for NextItem<'_, I> {
    type Output = Result<Option<I::Item>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let NextItem { items, site, state } = &mut *self;
        loop {
            match state {
                NextState::Check => match items.try_next(site) {
                    Either::Left(found) => {
                        return Poll::Ready(found.map_err(Error::Panicked));
                    }
                    Either::Right(next) => *state = next,
                },
                NextState::Job(job) => {
                    let ended = ready!(Pin::new(job).poll(cx));
                    *state = NextState::Check;
                    match ended {
                        // The result of the job is in the slot.
                        Ok(()) | Err(Error::Panicked(_)) => {}
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                }
                NextState::Wait(wait) => {
                    let ended = ready!(wait.poll(cx, |waker| store_waker(&items.slot, waker)));
                    *state = NextState::Check;
                    if let Either::Right(woken) = ended {
                        woken?;
                    }
                }
            }
        }
    }
}

/// Stores the waker for the job. Returns `Some` if the job has ended in the meantime: then the
/// waker would never be called.
fn store_waker<I: Iterator>(slot: &SharedSlot<I>, waker: OutsideWaker) -> Option<()> {
    let mut state = lock(slot);
    if state.source != SourceState::Asks {
        return Some(());
    }
    let earlier = state.waker.replace(waker);
    drop(state);
    drop(earlier);
    None
}

/// The job that makes one item. If it is dropped before it has begun, the iterator is unchanged.
struct NextJob<I: Iterator>(Option<SharedSlot<I>>);

impl<I: Iterator> NextJob<I> {
    /// Calls the iterator for its next item. Does not panic. Returns the message of a panic if the
    /// source will not see it.
    fn make(mut self) -> Option<String> {
        let slot = self.0.take()?;
        let mut iterator = lock(&slot).iterator.take()?;
        let (iterator, found) = match caught(|| iterator.next()) {
            Ok(Some(item)) => (Some(iterator), Some(Ok(item))),
            // Drop the iterator here, on the worker, so that a file is closed at once.
            Ok(None) => (None, caught(|| drop(iterator)).err().map(Err)),
            Err(message) => {
                // Ignore a panic of this drop. The first panic is the one to report.
                let _ = caught(|| drop(iterator));
                (None, Some(Err(message)))
            }
        };
        let mut state = lock(&slot);
        if state.source == SourceState::Gone {
            drop(state);
            return match found {
                Some(Err(message)) => Some(message),
                found => caught(|| drop((iterator, found))).err(),
            };
        }
        (state.iterator, state.found) = (iterator, found);
        finish(state);
        None
    }
}

/// Ends the job, and wakes the call that waits for it.
fn finish<I: Iterator>(mut state: MutexGuard<'_, ItemSlot<I>>) {
    if state.source == SourceState::Asks {
        state.source = SourceState::Idle;
    }
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl<I: Iterator> Drop for NextJob<I> {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            finish(lock(&slot));
        }
    }
}
