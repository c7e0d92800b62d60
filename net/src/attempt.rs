//! Try first, trap on "not yet": the one loop behind every operation of this crate.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use traps::core::names::Site;
use traps::{Budget, Interrupt, budget_from, take_budget};

/// An operation that is tried, and waits by `W` whenever it would block.
///
/// Nothing is held over from a wait that was interrupted or dropped: the next operation tries
/// first, so readiness that went to a wait which nobody finished is found by the try.
pub(crate) struct Attempt<W> {
    site: Site,
    step: Step,
    /// The budget is spent: it gives way first.
    spent: Option<Box<Budget>>,
    /// Can be waited for again and again.
    wait: W,
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

#[derive(Clone, Copy)]
enum Step {
    New(First),
    Waiting,
}

impl<W, E> Attempt<W>
where
    W: Future<Output = Result<(), E>> + Unpin,
    io::Error: From<E>,
{
    #[inline]
    pub(crate) fn new(first: First, site: Site, wait: W) -> Attempt<W> {
        Attempt { site, step: Step::New(first), spent: None, wait }
    }

    /// Makes the next operation of this future begin in another way.
    #[inline]
    pub(crate) fn begin(&mut self, first: First) {
        self.step = Step::New(first);
    }

    /// Polls one operation. When it is ready the next one can be polled.
    #[inline]
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut operation: impl FnMut() -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            if let Step::New(first) = self.step {
                if self.spent.is_some() || !take_budget() {
                    ready!(self.give_way(cx))?;
                }
                if first == First::Wait {
                    self.step = Step::Waiting;
                }
            }
            if let Step::Waiting = self.step {
                let waited = ready!(Pin::new(&mut self.wait).poll(cx));
                self.step = Step::New(First::Try);
                waited.map_err(io::Error::from)?;
            }
            loop {
                match operation() {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    done => return Poll::Ready(done),
                }
            }
            self.step = Step::Waiting;
        }
    }

    #[cold]
    fn give_way(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let site = self.site;
        let budget = self.spent.get_or_insert_with(|| Box::new(budget_from(site)));
        let granted = ready!(Pin::new(&mut **budget).poll(cx));
        self.spent = None;
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
