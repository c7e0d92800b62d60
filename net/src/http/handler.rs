//! The interface of a handler, and the work of the connection while a handler waits.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;

use traps::internal::into_panic_message;
use traps::{Interruptible, Kind, note_warning, shield};

use super::config::Config;
use super::guard::connections::Entry;
use super::request::Request;
use super::request_head::RequestParts;
use super::response::{Gone, Response};
use super::transport::Transport;
use crate::limits::LEFT;
use crate::stream::Stream;

/// A handler of requests.
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
    /// Answers one request. The server throws away the part of the body that the handler does not
    /// read.
    ///
    /// A handler must pass on an error of reading the body or writing the response. Such an error
    /// belongs to the connection and is not logged. Any other error leads to a response with 500,
    /// or breaks off a response that has begun to go out. Like a panic, it has a `warn` line, `a
    /// handler failed: ...`. So if any client can cause a failure, respond with 400 or 404, not
    /// with an error. A timeout that the handler sets itself and passes on counts as a failure too.
    /// An interrupt from further out ends the connection.
    ///
    /// If the client leaves, or [`Deadlines::handler`](super::Deadlines::handler) passes, the
    /// handler is cancelled: its wait ends with an interrupt, so that it can still clean up. Put
    /// code that must not be interrupted into a [shield](traps::shield()).
    fn handle<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
    ) -> impl Future<Output = io::Result<Response>>;

    /// Returns the response to send in place of `response`, which the server has made for this
    /// handler: the refusal of a body that breaks a rule or a limit, a
    /// [`Rejection`](super::Rejection), or the response to an error, a panic or a deadline. So a
    /// handler around others can add fields to all responses. The default returns `response`.
    ///
    /// The server asks the outermost handler, after its [`handle`](Handler::handle) has ended
    /// without a response. It asks no handler about a request that is refused by its header
    /// section, or that the end of a drain cuts off.
    fn instead(&self, request: &RequestParts<'_>, response: Response) -> Response {
        let _ = request;
        response
    }
}

impl<H: Handler> Handler for &H {
    fn handle<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
    ) -> impl Future<Output = io::Result<Response>> {
        (**self).handle(request)
    }

    fn instead(&self, request: &RequestParts<'_>, response: Response) -> Response {
        (**self).instead(request, response)
    }
}

/// Runs the handler of a request. While the handler waits for something other than this client:
///
/// - Earlier responses go out.
/// - The deadline of the handler runs. It starts again after each read from the client and each
///   write to it. While the handler waits for the client, the deadline of that wait runs instead.
/// - The connection checks whether the client closes. Once the client has left, the handler has the
///   time `LEFT` from its last write to finish, because the client may only have closed its sending
///   side.
///
/// When the time of a handler is over, the deadline of the connection cancels it by an interrupt of
/// its wait. A panic becomes an error, with a line in the log. By then everything that the handler
/// owned has been dropped, including its borrows of the transport, so the connection can still
/// respond.
pub(super) async fn handle<S: Stream, H: Handler>(
    handler: &H,
    request: &mut Request<'_, S>,
    entry: &Entry,
) -> io::Result<Response> {
    let (transport, config) = (request.writer.transport, request.writer.config);
    let mut work = pin!(handler.handle(request));
    // Most handlers need no wait.
    if let Poll::Ready(outcome) = poll_once(work.as_mut()).await {
        return outcome;
    }
    let mut watch = Watch { config, entry, seen: None, left: false };
    Box::pin(async {
        loop {
            watch.until_woken(transport).await;
            if let Poll::Ready(outcome) = poll_once(work.as_mut()).await {
                return watch.end(outcome);
            }
        }
    })
    .await
}

/// Polls the future of a handler once, and turns a panic into an error.
fn poll_once<W>(mut work: Pin<&mut W>) -> impl Future<Output = Poll<W::Output>>
where
    W: Future<Output = io::Result<Response>>,
{
    poll_fn(move |cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        Poll::Ready(polled.unwrap_or_else(|panic| {
            note_warning(format!("a handler panicked: {}", into_panic_message(panic)));
            Poll::Ready(Err(io::Error::other(Gone::Panicked)))
        }))
    })
}

/// The work of the connection while a handler waits: the handler's deadline, and the watch on the
/// client.
struct Watch<'w> {
    config: &'w Config,
    entry: &'w Entry,
    /// The count of moves when the deadline was armed. `None` if it does not limit the handler now.
    seen: Option<u32>,
    /// Whether the client has left.
    left: bool,
}

#[allow(clippy::await_holding_refcell_ref, reason = "it is given back before the handler runs")]
impl Watch<'_> {
    /// Waits until the task of the connection is woken, for any reason.
    async fn until_woken<S: Stream>(&mut self, transport: &RefCell<Transport<S>>) {
        let Ok(mut transport) = transport.try_borrow_mut() else {
            // The handler waits for the client.
            self.seen = None;
            return pause().await;
        };
        if self.seen.replace(transport.moves) != Some(transport.moves) {
            self.arm();
        }
        transport.flush_beside(self.config).await;
        if self.left || self.config.half_close {
            drop(transport);
            return pause().await;
        }
        // An interrupt must not end this wait: the next poll of the handler takes it.
        let mut closed = pin!(shield(transport.closed()));
        let mut is_woken = false;
        let left = poll_fn(|cx| match closed.as_mut().poll(cx) {
            // A stream that fails is closed, too.
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if is_woken => Poll::Ready(false),
            Poll::Pending => {
                is_woken = true;
                Poll::Pending
            }
        });
        if left.await {
            self.left = true;
            self.entry.leaves.set(true);
            self.arm();
        }
    }

    /// Arms the deadline of the connection with the time that the handler has.
    fn arm(&self) {
        let span = self.config.deadlines.handler;
        let span = if self.left { span.min(LEFT) } else { span };
        self.entry.deadline().phase("handler");
        self.entry.deadline().arm(self.entry.now() + span);
    }

    /// Disarms the deadline. Returns the result of the handler, or the reason why it has none. A
    /// response that comes after the client's time is dropped.
    fn end(&self, outcome: io::Result<Response>) -> io::Result<Response> {
        let is_over = self.seen.is_some() && self.entry.deadline().fired();
        self.entry.deadline().disarm();
        let gone = |why| Err(io::Error::new(io::ErrorKind::TimedOut, why));
        match outcome {
            Err(error) if is_cancelled(&error) => Err(error),
            Ok(_) | Err(_) if is_over && self.left => gone(Gone::Left),
            Err(_) if is_over => gone(Gone::Late),
            outcome => outcome,
        }
    }
}

fn is_cancelled(error: &io::Error) -> bool {
    error.interrupt().is_some_and(|interrupt| interrupt.kind() == Kind::Cancelled)
}

/// Waits until the task is woken.
async fn pause() {
    let mut is_woken = false;
    poll_fn(
        |_| if std::mem::replace(&mut is_woken, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await;
}

/// The handler of tests in this crate.
#[cfg(test)]
pub(super) struct Hello;

#[cfg(test)]
impl Handler for Hello {
    async fn handle<S: Stream>(&self, _: &mut Request<'_, S>) -> io::Result<Response> {
        Ok(Response::text("hello"))
    }
}
