//! An iterator that blocks, as a source of items for a task: a job for each item.
//!
//! The iterator lies in a slot that the source and its jobs share. A job takes it out, calls it
//! once and puts it back with the item, so that an item is never in an answer that may be dropped
//! unread. While a job has it, whoever asks waits to be woken by that job.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use crate::call::Call;
use crate::combine::Either;
use crate::outside::{OutsideWaker, Wait};
use crate::protocol::Site;

use super::{LimiterCore, RunInThread, ThreadContext, ThreadError, Work};
use super::{is_in_job, panic_message};

/// Makes a source of the items of an iterator that blocks, as one that reads a file piece by piece
/// does. Each item is a job of its own, as with [`run_in_thread`](crate::run_in_thread()): it takes
/// a token while it is made, and between items the source has none (row F21). So many slow readers
/// share few threads.
///
/// Does nothing yet; the iterator is called when an item is asked for, and no item is made ahead.
///
/// # Where the iterator is dropped
///
/// On the worker's thread, as soon as it has ended or panicked. If the source is dropped first: at
/// once, on the thread that drops the source, so a file is closed when its reader goes away; this
/// may block the kernel as long as that drop takes. Only if a job has the iterator at that moment,
/// the worker drops it, with the item, when the job ends.
///
/// ```no_run
/// use std::fs::File;
/// use std::io::{self, BufRead, BufReader};
///
/// # async fn example() -> io::Result<()> {
/// let lines = BufReader::new(File::open("/etc/services")?).lines();
/// let mut lines = traps::iterate_in_thread(lines);
/// let mut longest = 0;
/// while let Some(line) = lines.next().await? {
///     longest = longest.max(line?.len());
/// }
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn iterate_in_thread<I>(iterator: I) -> IterateInThread<I>
where
    I: Iterator + Send + 'static,
    I::Item: Send + 'static,
{
    IterateInThread::new(iterator, None)
}

/// The source that [`iterate_in_thread`] makes.
pub struct IterateInThread<I: Iterator> {
    slot: Arc<Slot<I>>,
    limiter: Option<Rc<LimiterCore>>,
}

impl<I> IterateInThread<I>
where
    I: Iterator + Send + 'static,
    I::Item: Send + 'static,
{
    pub(super) fn new(iterator: I, limiter: Option<Rc<LimiterCore>>) -> IterateInThread<I> {
        let shared = Shared { state: State::Idle(Box::new(iterator)), waker: None };
        IterateInThread { slot: Arc::new(Slot(Mutex::new(shared))), limiter }
    }

    /// The next item, made on a worker thread; `None` when there is no more, and ever after.
    /// *Blocks*, unless an earlier call that was interrupted has had the item made. Costs one
    /// allocation and two wake-ups of a thread.
    ///
    /// The job sees the deadline and the inherited locals of the call that began it. It counts as
    /// abandoned ([`is_abandoned`](super::ThreadDeadline::is_abandoned)) when that call is
    /// interrupted, though its item is kept: an iterator that gives up for that reason ends early.
    ///
    /// # Errors
    ///
    /// [`ThreadError::Interrupt`]: nothing is lost. A job that has begun goes on, with its token,
    /// and the next call gives its item; one that has not is withdrawn, and the iterator was not
    /// called. The same holds when the future is dropped. The kernel's hook for orphans hears of
    /// neither (row X8).
    ///
    /// [`ThreadError::Panicked`], once: the iterator panicked, which ends it.
    /// [`ThreadError::WouldNest`] inside a job.
    #[track_caller]
    #[expect(clippy::should_implement_trait, reason = "a source is no iterator: it waits")]
    pub fn next(&mut self) -> NextItem<'_, I> {
        NextItem { items: self, site: Location::caller(), stage: Stage::Looks }
    }
}

impl<I: Iterator> Drop for IterateInThread<I> {
    fn drop(&mut self) {
        let left = mem::replace(&mut self.slot.enter().state, State::Closed);
        // The lock is open again: an iterator is foreign.
        drop(left);
    }
}

impl<I: Iterator> fmt::Debug for IterateInThread<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterateInThread")
            .field("state", &self.slot.enter().state.name())
            .field("limiter", &self.limiter.as_ref().map(|limiter| limiter.name))
            .finish()
    }
}

/// The future of [`IterateInThread::next`].
#[must_use = "a trap that is not awaited is never made"]
pub struct NextItem<'a, I: Iterator> {
    items: &'a mut IterateInThread<I>,
    site: Site,
    stage: Stage,
}

/// How far it is.
enum Stage {
    /// At the slot.
    Looks,
    /// In a job of its own.
    Asks(RunInThread<()>),
    /// For a job of an earlier call.
    Waits(Wait),
}

impl<I: Iterator> fmt::Debug for NextItem<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextItem").field("items", &self.items).finish_non_exhaustive()
    }
}

impl<I: Iterator> Unpin for NextItem<'_, I> {}

impl<I> Future for NextItem<'_, I>
where
    I: Iterator + Send + 'static,
    I::Item: Send + 'static,
{
    type Output = Result<Option<I::Item>, ThreadError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let NextItem { items, site, stage } = &mut *self;
        loop {
            let ended = match stage {
                Stage::Looks if is_in_job() => return Poll::Ready(Err(ThreadError::WouldNest)),
                Stage::Looks => {
                    *stage = match look(&items.slot) {
                        Look::There(item) => {
                            return Poll::Ready(item.map_err(ThreadError::Panicked));
                        }
                        Look::Ask(job) => Stage::Asks(ask(job, items.limiter.clone(), site)),
                        Look::Busy => Stage::Waits(Wait::at("item", site)),
                    };
                    continue;
                }
                Stage::Asks(job) => ready!(Pin::new(job).poll(cx)),
                Stage::Waits(wait) => match ready!(wait.poll(cx, |waker| items.slot.join(waker))) {
                    Either::Left(()) => Ok(()),
                    Either::Right(ended) => ended.map_err(ThreadError::Interrupt),
                },
            };
            *stage = Stage::Looks;
            if let Err(error) = ended {
                return Poll::Ready(Err(error));
            }
        }
    }
}

fn ask<I>(job: NextJob<I>, limiter: Option<Rc<LimiterCore>>, site: Site) -> RunInThread<()>
where
    I: Iterator + Send + 'static,
    I::Item: Send + 'static,
{
    // What came of it lies in the slot.
    let result = |_: Box<dyn Work>| Ok(());
    RunInThread {
        work: Some(Box::new(job)),
        limiter,
        result,
        call: Call::at(site),
        output: PhantomData,
    }
}

// ---- The slot --------------------------------------------------------------------------------

/// What the source and its jobs share.
struct Slot<I: Iterator>(Mutex<Shared<I>>);

struct Shared<I: Iterator> {
    state: State<I>,
    /// Of the one who waits for a job of an earlier call.
    waker: Option<OutsideWaker>,
}

/// Where the iterator is.
enum State<I: Iterator> {
    /// Here, and nothing is asked of it.
    Idle(Box<I>),
    /// Here, for a job that has not begun.
    Asked(Box<I>),
    /// With a job that runs.
    Away,
    /// Here, with an item that nobody has taken.
    Made(Box<I>, I::Item),
    /// Gone, with a panic that nobody has heard of.
    Panicked(String),
    /// Gone.
    Ended,
    /// The source is gone, and with it all that was here.
    Closed,
}

impl<I: Iterator> State<I> {
    fn name(&self) -> &'static str {
        match self {
            State::Idle(_) => "idle",
            State::Asked(_) => "asked",
            State::Away => "running",
            State::Made(..) => "made",
            State::Panicked(_) => "panicked",
            State::Ended => "ended",
            State::Closed => "closed",
        }
    }
}

/// What is found in a slot.
enum Look<I: Iterator> {
    There(Result<Option<I::Item>, String>),
    Ask(NextJob<I>),
    Busy,
}

/// What the source finds. Where there is nothing, a job is to ask for it.
fn look<I: Iterator>(slot: &Arc<Slot<I>>) -> Look<I> {
    let mut shared = slot.enter();
    let (state, found) = match mem::replace(&mut shared.state, State::Ended) {
        State::Idle(iterator) => {
            let job = NextJob { slot: slot.clone(), begun: false, unheard: None };
            (State::Asked(iterator), Look::Ask(job))
        }
        State::Made(iterator, item) => (State::Idle(iterator), Look::There(Ok(Some(item)))),
        State::Panicked(message) => (State::Ended, Look::There(Err(message))),
        State::Ended => (State::Ended, Look::There(Ok(None))),
        busy @ (State::Asked(_) | State::Away) => (busy, Look::Busy),
        State::Closed => unreachable!("rule: only the source looks, and it is there"),
    };
    shared.state = state;
    found
}

impl<I: Iterator> Slot<I> {
    /// Takes the lock. Nothing foreign runs or is dropped while it is held.
    fn enter(&self) -> MutexGuard<'_, Shared<I>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the waker where the job will find it; a value if there is no job to wait for any more.
    fn join(&self, waker: OutsideWaker) -> Option<()> {
        let mut shared = self.enter();
        if !matches!(shared.state, State::Asked(_) | State::Away) {
            return Some(());
        }
        let earlier = shared.waker.replace(waker);
        drop(shared);
        drop(earlier);
        None
    }

    /// Changes the state and wakes who waits for that. `change` gives back what it cannot use.
    fn settle<R>(&self, change: impl FnOnce(&mut State<I>) -> R) -> R {
        let mut shared = self.enter();
        let left = change(&mut shared.state);
        let waker = shared.waker.take();
        drop(shared);
        if let Some(waker) = waker {
            waker.wake();
        }
        left
    }

    /// The job begins. `None`: the source is gone.
    fn begin(&self) -> Option<Box<I>> {
        let mut shared = self.enter();
        match mem::replace(&mut shared.state, State::Away) {
            State::Asked(iterator) => Some(iterator),
            other => {
                // What else there is holds nothing: a source that is there waits for this job.
                shared.state = other;
                None
            }
        }
    }

    /// The job ends. `Some`: the source is gone, and nobody will have this.
    fn end(&self, state: State<I>) -> Option<State<I>> {
        self.settle(|now| match now {
            State::Closed => Some(state),
            _ => {
                *now = state;
                None
            }
        })
    }

    /// The job will never begin: the source may ask again.
    fn give_back(&self) {
        self.settle(|now| {
            *now = match mem::replace(now, State::Ended) {
                State::Asked(iterator) => State::Idle(iterator),
                other => other,
            };
        });
    }
}

// ---- The job ---------------------------------------------------------------------------------

/// The job of one item. Dropped before it has begun, it leaves the iterator as it was.
struct NextJob<I: Iterator> {
    slot: Arc<Slot<I>>,
    begun: bool,
    /// The message of a panic that the source will not hear of.
    unheard: Option<String>,
}

impl<I> NextJob<I>
where
    I: Iterator,
{
    /// Has the iterator make its next item. Does not panic.
    fn make(&mut self) {
        self.begun = true;
        let Some(mut iterator) = self.slot.begin() else { return };
        let state = match caught(|| iterator.next()) {
            Ok(Some(item)) => State::Made(iterator, item),
            // A file is closed here, not when the source is dropped, and not on its thread.
            Ok(None) => caught(|| drop(iterator)).map_or_else(State::Panicked, |()| State::Ended),
            Err(message) => {
                // What its drop may say comes after what ended it.
                let _ = caught(|| drop(iterator));
                State::Panicked(message)
            }
        };
        self.unheard = match self.slot.end(state) {
            Some(State::Panicked(message)) => Some(message),
            Some(left) => caught(|| drop(left)).err(),
            None => None,
        };
    }
}

impl<I> Work for NextJob<I>
where
    I: Iterator + Send + 'static,
    I::Item: Send + 'static,
{
    fn run(&mut self, context: ThreadContext) {
        // The locals that came with the context are foreign too.
        let left = caught(|| context.run(|| self.make()));
        self.unheard = self.unheard.take().or(left.err());
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn into_outcome(mut self: Box<Self>) -> Option<Result<Box<dyn Any>, String>> {
        self.unheard.take().map(Err)
    }
}

impl<I: Iterator> Drop for NextJob<I> {
    fn drop(&mut self) {
        if !self.begun {
            self.slot.give_back();
        }
    }
}

/// Runs foreign code; the message of its panic.
fn caught<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| {
        let message = panic_message(&*panic).to_owned();
        // Not dropped: to drop a panic's payload may panic again.
        mem::forget(panic);
        message
    })
}
