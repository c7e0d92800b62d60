//! An owned request with its whole body, to be taken to another thread.
//!
//! This module must not wait, except for the body.

use std::borrow::Cow;
use std::io;

use crate::http::Request;
use crate::http::head::{self, Head, Method, Span, Version};
use crate::http::memory::Growing;
use crate::stream::Stream;

/// A request that owns its header section and its body. Its methods work like those of
/// [`RequestHead`](crate::http::RequestHead) with the same names.
#[derive(Clone, Debug)]
pub struct Whole {
    head: Head,
    route: &'static str,
    bytes: Vec<u8>,
    body: Growing,
}

impl Whole {
    /// Reads the rest of the body, at most `most` bytes, and copies it with the header section.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Request::body_to_vec`].
    pub async fn read<S: Stream>(request: &mut Request<'_, S>, most: usize) -> io::Result<Whole> {
        let body = Growing(request.body_to_vec(most).await?);
        let (head, route) = (*request.head, request.route().unwrap_or_default());
        Ok(Whole { head, route, bytes: request.head_bytes().to_vec(), body })
    }

    fn text(&self, span: Span) -> &str {
        std::str::from_utf8(span.of(&self.bytes)).expect("a target is ASCII")
    }

    /// Returns the method. For HEAD, returns [`Method::Get`].
    #[must_use]
    pub fn method(&self) -> Method {
        self.head.method
    }

    /// Returns whether the client wants the response without its body.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.head.no_body
    }

    /// Returns the version of HTTP that the client speaks.
    #[must_use]
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// Returns the path, like [`RequestHead::path`](crate::http::RequestHead::path).
    #[must_use]
    pub fn path(&self) -> &str {
        let path = self.head.shown_path(self.head.path.of(&self.bytes));
        std::str::from_utf8(path).expect("a target is ASCII")
    }

    /// Returns the query, which is the part after the question mark, not decoded.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.text(self.head.query).strip_prefix('?')
    }

    /// Returns the names and the values of the query, in order and decoded.
    pub fn query_pairs(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        head::query_pairs(self.query())
    }

    /// Returns the first value of the query with this name, decoded.
    #[must_use]
    pub fn query_value(&self, name: &str) -> Option<Cow<'_, str>> {
        self.query_pairs().find(|(found, _)| found == name).map(|(_, value)| value)
    }

    /// Returns the value of a parameter of the route, decoded.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Cow<'_, str>> {
        let value = head::param(self.route, self.path(), name)?;
        Some(percent_encoding::percent_decode_str(value).decode_utf8_lossy())
    }

    /// Returns the value of the first field with this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers(name).next()
    }

    /// Returns the values of all fields with this name, in order.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        head::values(&self.bytes[self.head.fields..], name)
    }

    /// Returns the body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body.0
    }
}
