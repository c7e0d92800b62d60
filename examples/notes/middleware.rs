//! Handlers around a handler: one numbers the requests, the other authenticates the user.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;

use net::Stream;
use net::http::{Handler, Rejection, Request, RequestHead, RequestParts, Response};

/// The number of a request, among the data of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(pub u64);

/// Gives each request a [`RequestId`], and each response a field `X-Request-Id` with the same
/// number, including responses that the server makes for the handler. The header section of a
/// streamed response is sent before its handler returns, so it has no such field.
#[derive(Debug)]
pub struct Numbered<H> {
    inner: H,
    last: Cell<u64>,
}

impl<H> Numbered<H> {
    pub fn new(inner: H) -> Numbered<H> {
        Numbered { inner, last: Cell::new(0) }
    }
}

impl<H: Handler> Handler for Numbered<H> {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let id = self.last.get() + 1;
        self.last.set(id);
        request.set_data(RequestId(id));
        let response = self.inner.handle(request).await?;
        Ok(numbered(response, RequestId(id)))
    }

    fn instead(&self, request: &RequestParts<'_>, response: Response) -> Response {
        match request.data() {
            Some(id) => numbered(self.inner.instead(request, response), *id),
            None => response,
        }
    }
}

fn numbered(response: Response, RequestId(id): RequestId) -> Response {
    response.header("X-Request-Id", id.to_string()).expect("a number is a valid value")
}

/// The name of the client that sent a request, among the data of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User(pub String);

/// Finds the [`User`] of a request by its bearer token (RFC 6750). Any other client gets 401.
#[derive(Debug)]
pub struct Authenticated<H> {
    inner: H,
    /// The name of each user, by token.
    users: BTreeMap<String, String>,
}

impl<H> Authenticated<H> {
    pub fn new(inner: H, users: BTreeMap<String, String>) -> Authenticated<H> {
        Authenticated { inner, users }
    }

    fn user(&self, head: &RequestHead) -> Option<User> {
        let field = std::str::from_utf8(head.header("Authorization")?).ok()?;
        let (scheme, token) = field.split_once(' ')?;
        let user = self.users.get(token.trim_start())?;
        scheme.eq_ignore_ascii_case("bearer").then(|| User(user.clone()))
    }
}

impl<H: Handler> Handler for Authenticated<H> {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let Some(user) = self.user(request) else {
            let response = request.error_page()(401, "a bearer token is needed\n");
            return Ok(response.header("WWW-Authenticate", "Bearer")?);
        };
        request.set_data(user);
        self.inner.handle(request).await
    }
}

/// Returns the user that [`Authenticated`] has found.
///
/// # Errors
///
/// Returns a rejection with 401 if the handler is not inside this middleware.
pub fn user<'p>(parts: &'p RequestParts<'_>) -> io::Result<&'p User> {
    Ok(parts.data().ok_or(Rejection::new(401, "a bearer token is needed\n"))?)
}
