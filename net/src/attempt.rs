//! Try first, trap on "not yet": the one loop behind every operation of this crate.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use traps::protocol::Site;
use traps::{Budget, Interrupt, budget_at, take_budget};

/// An operation that is tried, and waits by `W` whenever it would block.
///
/// Nothing is held over from a wait that was interrupted or dropped: the next operation tries
/// first, so readiness that went to a wait which nobody finished is found by the try.
pub(crate) struct Attempt<W> {
    site: Site,
    step: Step<W>,
}

/// How an operation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// With the system call.
    Try,
    /// With the wait, because the system call is known to say `WouldBlock`.
    Wait,
}

impl First {
    /// `Wait` if `exhausted`, which is then no longer known.
    #[inline]
    pub(crate) fn after(exhausted: &Cell<bool>) -> First {
        if exhausted.take() { First::Wait } else { First::Try }
    }
}

enum Step<W> {
    New(First),
    /// The budget is spent: it gives way first.
    Spent(Budget, First),
    Wait(W),
}

impl<W, E> Attempt<W>
where
    W: Future<Output = Result<(), E>> + Unpin,
    io::Error: From<E>,
{
    #[inline]
    pub(crate) fn new(first: First, site: Site) -> Attempt<W> {
        Attempt { site, step: Step::New(first) }
    }

    /// Makes the next operation of this future begin in another way.
    #[inline]
    pub(crate) fn begin(&mut self, first: First) {
        self.step = Step::New(first);
    }

    /// Polls one operation. When it is ready the next one can be polled. `wait` makes what it waits
    /// by.
    #[inline(always)]
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        wait: impl Fn(Site) -> W,
        mut operation: impl FnMut() -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            let first = match &mut self.step {
                Step::New(first) if take_budget() => *first,
                Step::New(first) => {
                    self.step = Step::Spent(budget_at(self.site), *first);
                    continue;
                }
                Step::Spent(budget, first) => {
                    let (granted, first) = (ready!(Pin::new(budget).poll(cx)), *first);
                    self.step = Step::New(first);
                    granted.map_err(<io::Error as From<Interrupt>>::from)?;
                    first
                }
                Step::Wait(waiting) => {
                    let waited = ready!(Pin::new(waiting).poll(cx));
                    self.step = Step::New(First::Try);
                    waited.map_err(io::Error::from)?;
                    First::Try
                }
            };
            if first == First::Wait {
                self.step = Step::Wait(wait(self.site));
                continue;
            }
            match operation() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.step = Step::Wait(wait(self.site));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

/// What the future that `make` gives comes to without waiting. Else it is dropped and its requests
/// are withdrawn: they never happened. It is nowhere but on the stack.
pub(crate) async fn now<F: Future>(make: impl FnOnce() -> F) -> Option<F::Output> {
    let mut make = Some(make);
    poll_fn(|cx| {
        let make = make.take().expect("a future that was ready is not polled again");
        match pin!(make()).poll(cx) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending => Poll::Ready(None),
        }
    })
    .await
}
