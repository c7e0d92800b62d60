//! A request with all of its body, owned: what can be taken to another thread.
//!
//! It may not read or wait.

use std::io;

use crate::http::Request;
use crate::http::head::{self, Head, Method, Span, Version};
use crate::stream::Stream;

/// A request that owns what it says, its body too. What [`Request`] says in the
/// same words it says here.
#[derive(Clone, Debug)]
pub struct Whole {
    head: Head,
    bytes: Vec<u8>,
    body: Vec<u8>,
}

impl Whole {
    /// The request with the rest of its body, at most `most` bytes. Copies both.
    ///
    /// # Errors
    ///
    /// As for [`Request::body_to_vec`].
    pub async fn read<S: Stream>(request: &mut Request<'_, S>, most: usize) -> io::Result<Whole> {
        let body = request.body_to_vec(most).await?;
        Ok(Whole { head: *request.head, bytes: request.head_bytes().to_vec(), body })
    }

    fn text(&self, span: Span) -> &str {
        std::str::from_utf8(span.of(&self.bytes)).expect("a target is ASCII")
    }

    /// The method. HEAD is shown as [`Method::Get`].
    #[must_use]
    pub fn method(&self) -> Method {
        self.head.method
    }

    /// Whether only the head of the answer is wanted.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.head.no_body
    }

    /// The version that the client speaks.
    #[must_use]
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// The path, as [`Request::path`] gives it.
    #[must_use]
    pub fn path(&self) -> &str {
        let path = self.head.shown_path(self.head.path.of(&self.bytes));
        std::str::from_utf8(path).expect("a target is ASCII")
    }

    /// What follows the question mark, as it came.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.text(self.head.query).strip_prefix('?')
    }

    /// The value of a query's first `name=value` pair of that name, as it came.
    #[must_use]
    pub fn query_value(&self, name: &str) -> Option<&str> {
        head::query_value(self.query()?, name)
    }

    /// The value of the first field called `name`.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers(name).next()
    }

    /// The values of all fields called `name`, in order.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        head::values(&self.bytes[self.head.fields..], name)
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}
