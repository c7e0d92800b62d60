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
    /// too; an interrupt from further out ends the connection.
    ///
    /// A handler whose client leaves is cancelled, as one is for which
    /// [`Deadlines::handler`](super::Deadlines::handler) passes: what it waits for ends with an
    /// interrupt, so that it can still clean up. What may not be interrupted goes into a
    /// [shield](traps::shield()).
    fn handle<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
    ) -> impl Future<Output = io::Result<Response>>;
}

impl<H: Handler> Handler for &H {
    fn handle<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
    ) -> impl Future<Output = io::Result<Response>> {
        (**self).handle(request)
    }
}
