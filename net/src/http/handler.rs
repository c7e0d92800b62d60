//! What answers requests; its panic or delay ends one request and nothing else.

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

use super::request::Request;
use super::response::Response;
use crate::stream::Stream;

/// What answers requests.
///
/// ```
/// use std::io;
/// use net::Stream;
/// use net::http::{Handler, Method, Request, Response};
///
/// struct Hello;
///
/// impl Handler for Hello {
///     async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
///         match (request.method(), request.path()) {
///             (Method::Get, "/") => Ok(Response::text("Hello\n")),
///             (_, "/") => Ok(Response::method_not_allowed("GET, HEAD")?),
///             _ => Ok(Response::new(404).with_text("not here\n")),
///         }
///     }
/// }
/// ```
pub trait Handler {
    /// Answers one request. What it leaves unread of the body is thrown away.
    ///
    /// An error of reading the body or writing the answer is to be passed on: it is the
    /// connection's, and leaves no line in the log. Any other error is answered with 500, or breaks
    /// an answer off of which something has gone out, and is a `warn` line, `a handler failed:
    /// ...`, as a panic is; so what a client can bring about as it likes is to be an answer (400,
    /// 404) and no error. A timeout that the handler sets itself and passes on is such an error
    /// too; an interrupt from further out ends the connection. No deadline covers the handler
    /// itself unless [`Deadlines::handler`](super::Deadlines::handler) is set, and nobody looks at
    /// the peer while it waits for something else: bound what it waits for.
    fn handle<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
    ) -> impl Future<Output = io::Result<Response>>;

    /// Answers a request at once, where that takes no wait; `None` leaves it to
    /// [`handle`](Handler::handle), as this does unless it is written. A short cut for what is
    /// asked often: no future is made. It is not always asked, so `handle` has to give the same
    /// answer. That is copied, so it should not be large.
    fn at_once<S: Stream>(&self, request: &mut Request<'_, S>) -> Option<Response> {
        let _ = request;
        None
    }
}

impl<H: Handler> Handler for &H {
    fn handle<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
    ) -> impl Future<Output = io::Result<Response>> {
        (**self).handle(request)
    }

    fn at_once<S: Stream>(&self, request: &mut Request<'_, S>) -> Option<Response> {
        (**self).at_once(request)
    }
}

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

/// Whether the handler panicked.
pub(crate) fn has_panicked(error: &io::Error) -> bool {
    is(error, Gone::Panicked)
}

/// Whether the deadline of the handler passed.
pub(crate) fn is_late(error: &io::Error) -> bool {
    is(error, Gone::Late)
}

fn is(error: &io::Error, gone: Gone) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref()) == Some(&gone)
}

/// Why a handler came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gone {
    Panicked,
    Late,
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
