//! An iterator that blocks, as a source of items for a task: a job for each item.
//!
//! The iterator lies in a slot that the source and its jobs share. A job takes it out, calls it
//! once and puts it back with the item, so that an item is never in an answer that may be dropped
//! unread. While a job has it, whoever asks waits to be woken by that job.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use super::{RunInThread, caught};
use crate::combine::Either;
use crate::core::limiter::LimiterCore;
use crate::core::names::Site;
use crate::core::protocol::Parked;
use crate::error::Error;
use crate::outside::{OutsideWaker, Wait};

/// Makes a source of the items of an iterator that blocks, as one that reads a file piece by piece
/// does. Each item is a job of its own, as with [`run_in_thread`](crate::run_in_thread()): it takes
/// a token while it is made, and between items the source has none. So many slow readers share few
/// threads.
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
pub fn iterate_in_thread<I: Iterator<Item: Send> + Send + 'static>(
    iterator: I,
) -> IterateInThread<I> {
    IterateInThread::new(iterator, None)
}

/// The source that [`iterate_in_thread`] makes.
pub struct IterateInThread<I: Iterator> {
    slot: Slot<I>,
    limiter: Option<Rc<LimiterCore>>,
}

/// What the source and its jobs share. Nothing foreign is called or dropped under the lock.
type Slot<I> = Arc<Mutex<State<I>>>;

struct State<I: Iterator> {
    /// `None` while a job has it, and when it has ended.
    iterator: Option<I>,
    /// An item, or the message of a panic, that a job has left here.
    found: Option<Result<I::Item, String>>,
    source: Source,
    /// Of the source, while it waits for a job of an earlier call.
    waker: Option<OutsideWaker>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    Idle,
    /// It has asked for an item, and the job has not ended.
    Asks,
    /// It was dropped, and with it all that was in the slot.
    Gone,
}

fn lock<I: Iterator>(slot: &Slot<I>) -> MutexGuard<'_, State<I>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<I: Iterator<Item: Send> + Send + 'static> IterateInThread<I> {
    pub(super) fn new(iterator: I, limiter: Option<Rc<LimiterCore>>) -> IterateInThread<I> {
        let iterator = Some(iterator);
        let state = State { iterator, found: None, source: Source::Idle, waker: None };
        IterateInThread { slot: Arc::new(Mutex::new(state)), limiter }
    }

    /// The next item, made on a worker thread; `None` when there is no more, and ever after.
    /// *Blocks*, unless an earlier call that was interrupted has had the item made. Costs two
    /// allocations and two wake-ups of a thread.
    ///
    /// The job sees the deadline and the inherited locals of the call that began it. It counts as
    /// abandoned ([`is_abandoned`](super::ThreadDeadline::is_abandoned)) when that call is
    /// interrupted, though its item is kept: an iterator that gives up for that reason ends early.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupt`]: nothing is lost. A job that has its token goes on, and the next
    /// call gives its item; one that has none is withdrawn, and the iterator was not called. The
    /// same holds when the future is dropped. The job's late end is an `orphan` line of
    /// the log; the kernel's hook for orphans does not hear of it.
    ///
    /// [`Error::Panicked`], once: the iterator panicked, which ends it.
    /// [`Error::WouldNest`] inside a job: call the iterator right there.
    #[track_caller]
    #[expect(clippy::should_implement_trait, reason = "a source is no iterator: it waits")]
    pub fn next(&mut self) -> NextItem<'_, I> {
        NextItem { items: self, site: Location::caller(), stage: Stage::Look }
    }

    /// The content of the slot; on the right, how to wait for it.
    fn look(&self, site: Site) -> Either<Result<Option<I::Item>, String>, Stage> {
        let mut state = lock(&self.slot);
        if let Some(found) = state.found.take() {
            return Either::Left(found.map(Some));
        }
        if state.source == Source::Asks {
            return Either::Right(Stage::Wait(Wait::from(Parked::Outside("item"), site)));
        }
        if state.iterator.is_none() {
            return Either::Left(Ok(None));
        }
        state.source = Source::Asks;
        let next = NextJob(Some(self.slot.clone()));
        let job = move || next.make().map(Err);
        Either::Right(Stage::Job(RunInThread::new(job, self.limiter.clone(), site)))
    }
}

impl<I: Iterator> Drop for IterateInThread<I> {
    fn drop(&mut self) {
        let mut state = lock(&self.slot);
        state.source = Source::Gone;
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
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Look into the slot.
    Look,
    /// Wait for a job of its own.
    Job(RunInThread<()>),
    /// Wait for a job of an earlier call.
    Wait(Wait),
}

impl<I: Iterator> Unpin for NextItem<'_, I> {}

impl<I: Iterator<Item: Send> + Send + 'static> Future for NextItem<'_, I> {
    type Output = Result<Option<I::Item>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let NextItem { items, site, stage } = &mut *self;
        loop {
            match stage {
                Stage::Look => match items.look(site) {
                    Either::Left(found) => {
                        return Poll::Ready(found.map_err(Error::Panicked));
                    }
                    Either::Right(next) => *stage = next,
                },
                Stage::Job(job) => {
                    let ended = ready!(Pin::new(job).poll(cx));
                    *stage = Stage::Look;
                    match ended {
                        // The result of the job is in the slot.
                        Ok(()) | Err(Error::Panicked(_)) => {}
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                }
                Stage::Wait(wait) => {
                    let ended = ready!(wait.poll(cx, |waker| leave_waker(&items.slot, waker)));
                    *stage = Stage::Look;
                    if let Either::Right(woken) = ended {
                        woken?;
                    }
                }
            }
        }
    }
}

/// Leaves the waker where the job finds it. `Some`: there is no job to wait for any more.
fn leave_waker<I: Iterator>(slot: &Slot<I>, waker: OutsideWaker) -> Option<()> {
    let mut state = lock(slot);
    if state.source != Source::Asks {
        return Some(());
    }
    let earlier = state.waker.replace(waker);
    drop(state);
    drop(earlier);
    None
}

/// The job of one item. Dropped before it has begun, it leaves the iterator as it was.
struct NextJob<I: Iterator>(Option<Slot<I>>);

impl<I: Iterator> NextJob<I> {
    /// Has the iterator make its next item. Does not panic; gives the message of a panic that the
    /// source will not hear of.
    fn make(mut self) -> Option<String> {
        let slot = self.0.take()?;
        let mut iterator = lock(&slot).iterator.take()?;
        let (iterator, found) = match caught(|| iterator.next()) {
            Ok(Some(item)) => (Some(iterator), Some(Ok(item))),
            // A file is closed here, not when the source is dropped, and not on its thread.
            Ok(None) => (None, caught(|| drop(iterator)).err().map(Err)),
            Err(message) => {
                // What its drop may say comes after what ended it.
                let _ = caught(|| drop(iterator));
                (None, Some(Err(message)))
            }
        };
        let mut state = lock(&slot);
        if state.source == Source::Gone {
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

/// The job is over: whoever waits for it is woken.
fn finish<I: Iterator>(mut state: MutexGuard<'_, State<I>>) {
    if state.source == Source::Asks {
        state.source = Source::Idle;
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
