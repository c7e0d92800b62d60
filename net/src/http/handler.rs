//! What answers requests.

use std::future::Future;
use std::io;

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
