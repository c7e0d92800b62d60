//! Try first, trap on "not yet": the one loop behind every operation of this crate.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use traps::{Budget, Interrupt};

/// An operation that is tried, and waits by `W` whenever it would block.
///
/// Nothing is held over from a wait that was interrupted or dropped: the next operation tries
/// first, so readiness that went to a wait which nobody finished is found by the try.
pub(crate) struct Attempt<W> {
    budget: Budget,
    wait: W,
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
    #[track_caller]
    pub(crate) fn new(wait: W, first: First) -> Attempt<W> {
        Attempt { budget: traps::budget(), wait, first, step: Step::Budget }
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
                    let granted = ready!(Pin::new(&mut self.budget).poll(cx));
                    granted.map_err(<io::Error as From<Interrupt>>::from)?;
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
}

/// What `future` comes to without waiting. Else it is dropped and its requests are withdrawn: they
/// never happened.
pub(crate) async fn now<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
