//! Handlers that come to nothing: a panic or a delay ends one request and nothing else.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use traps::threads::into_panic_message;
use traps::{ignore_after, note_warning};

/// A handler's work, pinned elsewhere. A panic becomes an error, with a line in the log.
///
/// What the work owned was dropped by the panic, its borrows of the transport and its requests at
/// the gate too; so the connection can still answer.
pub(crate) struct Caught<'w, W>(pub(crate) Pin<&'w mut W>);

impl<W, T> Future for Caught<'_, W>
where
    W: Future<Output = io::Result<T>>,
{
    type Output = io::Result<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let work = self.0.as_mut();
        catch_unwind(AssertUnwindSafe(|| work.poll(cx))).unwrap_or_else(|panic| {
            note_panic(panic);
            Poll::Ready(Err(io::Error::other(Gone::Panicked)))
        })
    }
}

/// A line in the log for a handler that panicked.
pub(crate) fn note_panic(panic: Box<dyn Any + Send>) {
    note_warning(format!("a handler panicked: {}", into_panic_message(panic)));
}

/// Runs a handler's work for so long at most.
///
/// Its errors are the work's, and one that [`is_late`] knows.
pub(crate) async fn limited<T>(
    span: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let done = ignore_after(span, work).await?;
    done.ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, Gone::Late))
}

/// Whether the deadline of the handler passed.
pub(crate) fn is_late(error: &io::Error) -> bool {
    Gone::of(error) == Some(&Gone::Late)
}

/// Why a handler came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Panicked,
    Late,
}

impl Gone {
    /// What this error of a handler tells, if it is one of these.
    pub(crate) fn of(error: &io::Error) -> Option<&Gone> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Gone::Panicked => "a handler panicked",
            Gone::Late => "the answer took too long",
        })
    }
}

impl std::error::Error for Gone {}
