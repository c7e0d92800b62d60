//! A group's member as its task runs it, and the signal of its end, which cannot be lost.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::call::Call;
use crate::gate;
use crate::interrupt::{Interrupt, Interruptible};
use crate::protocol::{Limit, Site, TaskRef};
use crate::queue::{Wait, WaitQueue};
use crate::time::Time;
use crate::timeout::TimeoutAfter;

/// How a member's future ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It was dropped before its end, after a panic or by the kernel.
    Unfinished,
    Output,
    /// With an error that is its own task's cancellation.
    Cancelled,
    /// With another error.
    Failed,
}

/// What members tell their group: who has ended, in the order of ending.
///
/// What has ended is kept in a list, and the wake only says "look": whichever way a wake goes, the
/// list still has it.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    alive: Cell<usize>,
    /// Slots whose end nobody has looked at.
    ended: RefCell<VecDeque<(usize, How)>>,
    line: WaitQueue,
}

impl Ends {
    /// How many have not ended.
    pub(crate) fn alive(&self) -> usize {
        self.alive.get()
    }

    /// The first end that nobody has looked at.
    pub(crate) fn first(&self) -> Option<(usize, How)> {
        self.ended.borrow().front().copied()
    }

    pub(crate) fn forget_first(&self) {
        self.ended.borrow_mut().pop_front();
    }

    pub(crate) fn forget_all(&self) {
        self.ended.borrow_mut().clear();
    }

    /// Waits until some member ends.
    pub(crate) fn next(&self, site: Site) -> Wait {
        self.line.wait_at(site)
    }
}

/// Tells the group when it is dropped: after the end, by a panic, or because the kernel drops the
/// member's future.
struct EndGuard {
    ends: Rc<Ends>,
    slot: usize,
    how: How,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        let EndGuard { ends, slot, how } = self;
        ends.alive.set(ends.alive.get() - 1);
        ends.ended.borrow_mut().push_back((*slot, *how));
        ends.line.wake_soon(1);
    }
}

pin_project! {
    /// The future of a member's task.
    pub(crate) struct Body<F> {
        // In this order: what the future holds is gone when the group hears of the end.
        #[pin]
        run: Run<F>,
        end: EndGuard,
    }
}

pin_project! {
    #[project = RunProjection]
    enum Run<F> {
        /// Under the deadline of its group.
        Limited { #[pin] future: TimeoutAfter<F> },
        Plain { #[pin] future: F },
    }
}

impl<F: Future> Body<F> {
    pub(crate) fn new(
        future: F,
        deadline: Option<Time>,
        site: Site,
        ends: &Rc<Ends>,
        slot: usize,
    ) -> Body<F> {
        let run = match deadline {
            Some(point) => {
                let future = TimeoutAfter::new(Call::at(site), Limit::At(point), future);
                Run::Limited { future }
            }
            None => Run::Plain { future },
        };
        ends.alive.set(ends.alive.get() + 1);
        Body { run, end: EndGuard { ends: ends.clone(), slot, how: How::Unfinished } }
    }
}

impl<F, T, E> Future for Body<F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        let this = self.project();
        // By a panic, unless it returns.
        this.end.how = How::Failed;
        let polled = match this.run.project() {
            RunProjection::Limited { future } => future.poll(cx),
            RunProjection::Plain { future } => future.poll(cx),
        };
        let Poll::Ready(result) = polled else {
            this.end.how = How::Unfinished;
            return Poll::Pending;
        };
        this.end.how = match &result {
            Ok(_) => How::Output,
            Err(error) if error.interrupt().is_some_and(is_own_cancellation) => How::Cancelled,
            Err(_) => How::Failed,
        };
        Poll::Ready(result)
    }
}

/// Whether it is the cancellation of the task that is being polled, and not one that came to it as
/// the result of another task.
fn is_own_cancellation(interrupt: &Interrupt) -> bool {
    interrupt.is_cancelled() && Some(interrupt.source()) == gate::task().map(TaskRef::root)
}
