//! A handler's work, whose panic or delay ends one request and nothing else.
//!
//! It may not know the request.

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use traps::threads::into_panic_message;
use traps::{ignore_after, note_warning};

/// Runs a handler's work. A panic becomes an error, with a line in the log.
///
/// What the work owned was dropped by the panic, its borrows of the wire and its requests at the
/// gate too; so the connection can still answer.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        note_warning(format!("a handler panicked: {}", into_panic_message(panic)));
        io::Error::other(Panicked)
    })
}

/// Work pinned elsewhere, each poll of it [caught](catch).
pub(crate) struct Caught<'w, W>(pub(crate) Pin<&'w mut W>);

impl<W, T> Future for Caught<'_, W>
where
    W: Future<Output = io::Result<T>>,
{
    type Output = io::Result<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let work = self.0.as_mut();
        catch(|| work.poll(cx)).unwrap_or_else(|error| Poll::Ready(Err(error)))
    }
}

/// Runs a handler's work for so long at most.
///
/// Its errors are the work's, and one that [`is_late`] knows.
pub(crate) async fn limited<T>(
    span: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let done = ignore_after(span, work).await?;
    done.ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, Late))
}

/// Whether the handler panicked.
pub(crate) fn has_panicked(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Panicked>())
}

/// Whether the deadline of the handler passed.
pub(crate) fn is_late(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Late>())
}

#[derive(Debug)]
struct Panicked;

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a handler panicked")
    }
}

impl std::error::Error for Panicked {}

#[derive(Debug)]
struct Late;

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer took too long")
    }
}

impl std::error::Error for Late {}
