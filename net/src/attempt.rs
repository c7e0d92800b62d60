//! Try first, trap on "not yet": the one loop behind every operation of this crate.

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
    wait: W,
    /// Made when the budget is spent.
    budget: Option<Budget>,
    site: Site,
    first: First,
    step: Step,
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
    pub(crate) fn after(exhausted: &mut bool) -> First {
        if std::mem::take(exhausted) { First::Wait } else { First::Try }
    }
}

enum Step {
    Budget,
    Try,
    Wait,
}

impl<W, E> Attempt<W>
where
    W: Future<Output = Result<(), E>> + Unpin,
    io::Error: From<E>,
{
    #[inline]
    pub(crate) fn new(wait: W, first: First, site: Site) -> Attempt<W> {
        Attempt { wait, budget: None, site, first, step: Step::Budget }
    }

    /// Makes the next operation of this future begin in another way.
    pub(crate) fn begin(&mut self, first: First) {
        self.first = first;
    }

    /// Polls one operation. When it is ready the next one can be polled.
    #[inline]
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut operation: impl FnMut() -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            match self.step {
                Step::Budget => {
                    if self.budget.is_some() || !take_budget() {
                        ready!(self.give_way(cx))?;
                    }
                    self.step = match self.first {
                        First::Try => Step::Try,
                        First::Wait => Step::Wait,
                    };
                }
                Step::Try => match operation() {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => self.step = Step::Wait,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    done => {
                        self.step = Step::Budget;
                        self.first = First::Try;
                        return Poll::Ready(done);
                    }
                },
                Step::Wait => {
                    let waited = ready!(Pin::new(&mut self.wait).poll(cx));
                    self.step = Step::Try;
                    waited.map_err(io::Error::from)?;
                }
            }
        }
    }

    /// The budget of the task is spent.
    #[cold]
    fn give_way(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let budget = self.budget.get_or_insert_with(|| budget_at(self.site));
        let granted = ready!(Pin::new(budget).poll(cx));
        self.budget = None;
        Poll::Ready(granted.map_err(<io::Error as From<Interrupt>>::from))
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
