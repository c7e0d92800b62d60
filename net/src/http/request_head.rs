//! A request without its body and its stream, as a handler sees it: the header section with the
//! route, and the data that outer handlers have stored.
//!
//! This module must not use a stream, so that a helper of a handler needs no type parameter for
//! one.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut, Range};

use super::grammar::head::{Framing, Head, Method, Span, Version, param, query_pairs, values};
use super::input::Input;

/// The header section of a request, and its route.
///
/// A [`Request`](super::Request) dereferences to its head, and so does an
/// [`OwnedRequest`](crate::web::OwnedRequest). A function that needs no body takes a
/// `&RequestHead`, and so it needs no type parameter for the stream:
///
/// ```
/// use std::io;
/// use net::Stream;
/// use net::http::{Handler, Request, RequestHead, Response};
///
/// struct App {
///     greeting: String,
/// }
///
/// impl App {
///     fn greet(&self, head: &RequestHead) -> Response {
///         let name = head.query_value("name").unwrap_or("you".into());
///         Response::text(format!("{}, {name}\n", self.greeting))
///     }
/// }
///
/// impl Handler for App {
///     async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
///         Ok(self.greet(request))
///     }
/// }
/// ```
pub struct RequestHead {
    pub(crate) head: Head,
    /// The bytes of the head. For a [`Request`](super::Request), the bytes after it too.
    pub(crate) input: Input,
    /// The pattern of the route. Empty until a router has found it.
    route: &'static str,
}

/// The [head](RequestHead) of a request, and the data that handlers have stored with the request.
///
/// A [`Request`](super::Request) dereferences to its parts, and these to the head. A function that
/// needs the data takes a `&RequestParts`.
pub struct RequestParts<'r> {
    pub(super) of: &'r mut RequestHead,
    /// Boxed, and absent in most requests, so that a request is small and cheap to move.
    rare: Option<Box<Rare>>,
}

/// The parts that few requests have.
#[derive(Default)]
struct Rare {
    /// The data of the request, one value per type.
    data: Vec<Box<dyn Any>>,
    /// The trailer fields as whole lines, once the body is over.
    trailers: Vec<u8>,
}

impl fmt::Debug for RequestHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHead")
            .field("method", &self.head.method)
            .field("path", &self.path())
            .field("query", &self.query())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RequestParts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestParts").field("head", &**self).finish_non_exhaustive()
    }
}

impl Deref for RequestParts<'_> {
    type Target = RequestHead;

    fn deref(&self) -> &RequestHead {
        self.of
    }
}

impl DerefMut for RequestParts<'_> {
    fn deref_mut(&mut self) -> &mut RequestHead {
        self.of
    }
}

impl<'r> RequestParts<'r> {
    /// Makes the parts of a new request from its head.
    pub(super) fn new(of: &'r mut RequestHead) -> RequestParts<'r> {
        of.route = "";
        RequestParts { of, rare: None }
    }

    /// Keeps a range of the bytes that are not used yet as trailer fields.
    pub(super) fn keep_trailers(&mut self, lines: Range<usize>) {
        if !lines.is_empty() {
            let trailers = &mut self.rare.get_or_insert_default().trailers;
            trailers.extend_from_slice(&self.of.input.rest()[lines]);
        }
    }

    pub(super) fn trailer_lines(&self) -> &[u8] {
        self.rare.as_ref().map_or(&[], |rare| &rare.trailers)
    }

    /// Stores a value with the request, for the handlers inside this one: who the client is, for
    /// example. Replaces the value of the same type. Allocates.
    pub fn set_data<T: 'static>(&mut self, value: T) {
        let all = &mut self.rare.get_or_insert_default().data;
        match all.iter_mut().find_map(|data| data.downcast_mut()) {
            Some(data) => *data = value,
            None => all.push(Box::new(value)),
        }
    }

    /// The value of this type that a handler outside of this one has stored.
    #[must_use]
    pub fn data<T: 'static>(&self) -> Option<&T> {
        self.rare.as_ref()?.data.iter().find_map(|data| data.downcast_ref())
    }
}

impl RequestHead {
    /// Makes the head of a connection that has read nothing.
    pub(super) fn empty() -> RequestHead {
        RequestHead { head: Head::REFUSED, input: Input::default(), route: "" }
    }

    /// Copies the head, without the bytes after it.
    pub(crate) fn copied(&self) -> RequestHead {
        RequestHead { input: self.input.copy_of_head(self.head.len), ..*self }
    }

    pub(crate) fn head_bytes(&self) -> &[u8] {
        self.input.head(self.head.len)
    }

    fn text(&self, span: Span) -> &str {
        std::str::from_utf8(self.input.span(span)).expect("a target is ASCII")
    }

    /// The path as bytes. Cheaper than [`RequestHead::path`], which checks that it is UTF-8.
    pub(crate) fn path_bytes(&self) -> &[u8] {
        self.head.shown_path(self.input.span(self.head.path))
    }

    /// The method. HEAD is shown as [`Method::Get`].
    #[must_use]
    pub fn method(&self) -> Method {
        self.head.method
    }

    /// Whether the client wants only the head of the response. A handler can ignore this: the
    /// server leaves the body out.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.head.no_body
    }

    /// The version that the client speaks.
    #[must_use]
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// The path as the client sent it: percent signs are not decoded. `*` asks about the server
    /// itself, as OPTIONS does for an absolute target without path and query.
    ///
    /// The result borrows the request, as the results of all these functions do. Reading the body
    /// or starting the response needs the request mutably, so copy what you need (`to_owned`)
    /// first.
    #[must_use]
    pub fn path(&self) -> &str {
        std::str::from_utf8(self.path_bytes()).expect("a target is ASCII")
    }

    /// The host, with its port if there is one. An absolute target has its own host, whatever the
    /// Host field says. `None` only for HTTP/1.0. The host may be empty.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        match self.text(self.head.authority) {
            "" => self.header("host").map(|host| std::str::from_utf8(host).expect("it is ASCII")),
            host => Some(host),
        }
    }

    /// The query, which is the part after the question mark, not decoded.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.text(self.head.query).strip_prefix('?')
    }

    /// The names and the values of the query, in order and decoded: `a=1&b=x+%26+y` is `a`, `1` and
    /// `b`, `x & y`. Bytes that are not UTF-8 become U+FFFD. A pair without `=` has an empty value.
    pub fn query_pairs(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        query_pairs(self.query())
    }

    /// The first value of the query with this name, decoded as in [`RequestHead::query_pairs`].
    #[must_use]
    pub fn query_value(&self, name: &str) -> Option<Cow<'_, str>> {
        self.query_pairs().find(|(found, _)| found == name).map(|(_, value)| value)
    }

    /// The value of the first field called `name`, without white space around it. Searches the head
    /// once per call. Copy the value (`to_vec`) before the body is read, as for
    /// [`RequestHead::path`].
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers(name).next()
    }

    /// The values of all fields called `name`, in order.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        values(&self.head_bytes()[self.head.fields..], name)
    }

    /// The length of the whole body, if the client announced it. A body in chunks has no length.
    #[must_use]
    pub fn body_length(&self) -> Option<u64> {
        match self.head.framing {
            Framing::Length(length) => Some(length),
            Framing::Chunked => None,
        }
    }

    pub(crate) fn set_route(&mut self, pattern: &'static str) {
        self.route = pattern;
    }

    /// The pattern of the route that a [`Router`](crate::web::Router) has found, such as
    /// `/tasks/{id}`. `None` before that.
    #[must_use]
    pub fn route(&self) -> Option<&'static str> {
        (!self.route.is_empty()).then_some(self.route)
    }

    /// The value of a parameter of the [route](RequestHead::route), decoded: for the route
    /// `/tasks/{id}` and the path `/tasks/a%20b`, `id` is `a b`. Bytes that are not UTF-8 become
    /// U+FFFD. `None` if the route has no such parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Cow<'_, str>> {
        Some(percent_encoding::percent_decode_str(self.raw_param(name)?).decode_utf8_lossy())
    }

    /// The value of a parameter like [`RequestHead::param`], not decoded. So a slash in the value
    /// of `{*name}` separates two segments, and an encoded slash is part of one.
    #[must_use]
    pub fn raw_param(&self, name: &str) -> Option<&str> {
        param(self.route, self.path(), name)
    }
}
