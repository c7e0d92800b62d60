//! An iterator that blocks, as a source of items for a task: a job for each item.
//!
//! The iterator lies in a slot that the source and its jobs share. A job takes it out, calls it
//! once and puts it back with the item, so that an item is never in an answer that may be dropped
//! unread. While a job has it, whoever asks waits to be woken by that job.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::combine::Either;
use crate::outside::Wait;
use crate::protocol::Site;

use super::item_slot::{Look, NextJob, Slot, look};
use super::{LimiterCore, RunInThread, ThreadError};

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
        IterateInThread { slot: Arc::new(Slot::new(iterator)), limiter }
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
    /// [`ThreadError::Interrupt`]: nothing is lost. A job that has its token goes on, and the next
    /// call gives its item; one that has none is withdrawn, and the iterator was not called. The
    /// same holds when the future is dropped. The job's late end is an `orphan` line of
    /// the log; the kernel's hook for orphans does not hear of it (row X8).
    ///
    /// [`ThreadError::Panicked`], once: the iterator panicked, which ends it.
    /// [`ThreadError::WouldNest`] inside a job: call the iterator right there.
    #[track_caller]
    #[expect(clippy::should_implement_trait, reason = "a source is no iterator: it waits")]
    pub fn next(&mut self) -> NextItem<'_, I> {
        NextItem { items: self, site: Location::caller(), stage: Stage::Looks }
    }
}

impl<I: Iterator> Drop for IterateInThread<I> {
    fn drop(&mut self) {
        self.slot.close();
    }
}

impl<I: Iterator> fmt::Debug for IterateInThread<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterateInThread")
            .field("state", &self.slot.state_name())
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
    RunInThread::new(Box::new(job), limiter, |_| Ok(()), site)
}
