//! A request as a client makes it. It may not touch a stream.

use crate::http::class::{TOKEN, run};
use crate::http::target::is_host;
use crate::http::{InvalidHeader, Response};

/// A request to be sent.
///
/// ```
/// use net::web::Call;
///
/// let call = Call::new("POST", "a.example", "/tasks").unwrap().with_body("one");
/// assert!(Call::new("GET", "a.example", "/a b").is_err());
/// assert!(call.header("X-Name", "a\r\nb").is_err());
/// ```
#[derive(Clone, Debug)]
#[must_use = "a call is made by `Client::send`"]
pub struct Call {
    /// Request line and fields, whole lines.
    pub(super) head: Vec<u8>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) is_head: bool,
}

impl Call {
    /// A request without a body, or an empty one where the method wants one (POST, PUT, PATCH).
    /// `host` is as in a URL, with its port if that is not 80; `target` is path and query, with
    /// percent signs where they are needed.
    ///
    /// # Errors
    ///
    /// A method that is no token; a host or a target with white space or another byte that cannot
    /// stand there.
    pub fn new(method: &str, host: &str, target: &str) -> Result<Call, InvalidHeader> {
        if method.is_empty() || run(TOKEN, method.as_bytes()) < method.len() {
            return Err(InvalidHeader::Name);
        }
        let plain = target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        let is_target = plain && (target == "*" || target.starts_with('/'));
        if !is_target || !is_host(host.as_bytes()) {
            return Err(InvalidHeader::Value);
        }
        let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n").into_bytes();
        // RFC 9110, 8.6.
        let body = matches!(method, "POST" | "PUT" | "PATCH").then(Vec::new);
        Ok(Call { head, body, is_head: method == "HEAD" })
    }

    /// Adds a field.
    ///
    /// # Errors
    ///
    /// As for [`Response::header`], whose reserved names are reserved here too; so is `Host`, which
    /// [`Call::new`] has written.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Result<Call, InvalidHeader> {
        if name.eq_ignore_ascii_case("host") {
            return Err(InvalidHeader::Reserved);
        }
        let line = Response::new(200).header(name, value)?;
        self.head.extend_from_slice(line.fields());
        Ok(self)
    }

    /// Gives it a body, whose length is told.
    pub fn with_body(mut self, body: impl Into<Vec<u8>>) -> Call {
        self.body = Some(body.into());
        self
    }
}
