//! Requests of a client. This module must not use a stream.

use crate::http::grammar::head::is_host_field;
use crate::http::grammar::head::{TOKEN, run};
use crate::http::{InvalidHeader, Response};

/// A request to be sent.
///
/// ```
/// use net::web::ClientRequest;
///
/// let request = ClientRequest::new("POST", "a.example", "/tasks").unwrap().with_body("one");
/// assert!(ClientRequest::new("GET", "a.example", "/a b").is_err());
/// assert!(request.header("X-Name", "a\r\nb").is_err());
/// ```
#[derive(Clone, Debug)]
#[must_use = "a request is sent by `Client::send`"]
pub struct ClientRequest {
    /// The request line and the field lines, without the empty line at the end.
    pub(super) head: Vec<u8>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) is_head: bool,
}

impl ClientRequest {
    /// Makes a request. It has no body, or an empty body if the method expects one (POST, PUT,
    /// PATCH). `host` is the host of a URL, with its port unless the port is 80. It is empty if the
    /// target names no host. `target` is the path and the query, percent-encoded if needed.
    ///
    /// # Errors
    ///
    /// Returns an error if the method is not a token, or if the host or the target contains white
    /// space or another forbidden byte.
    pub fn new(method: &str, host: &str, target: &str) -> Result<ClientRequest, InvalidHeader> {
        if method.is_empty() || run(TOKEN, method.as_bytes()) < method.len() {
            return Err(InvalidHeader::Name);
        }
        let plain = target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        let is_target = plain && (target == "*" || target.starts_with('/'));
        if !is_target || !is_host_field(host.as_bytes()) {
            return Err(InvalidHeader::Value);
        }
        let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n").into_bytes();
        // RFC 9110, 8.6.
        let body = matches!(method, "POST" | "PUT" | "PATCH").then(Vec::new);
        Ok(ClientRequest { head, body, is_head: method == "HEAD" })
    }

    /// Adds a field.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Response::header`]. The names that are reserved there are reserved
    /// here too, and so is `Host`, because [`ClientRequest::new`] writes it.
    pub fn header(
        mut self,
        name: &str,
        value: impl AsRef<[u8]>,
    ) -> Result<ClientRequest, InvalidHeader> {
        if name.eq_ignore_ascii_case("host") {
            return Err(InvalidHeader::Reserved);
        }
        let line = Response::new(200).header(name, value)?;
        self.head.extend_from_slice(line.fields());
        Ok(self)
    }

    /// Sets the body. The request has a `Content-Length` field with its length.
    pub fn with_body(mut self, body: impl Into<Vec<u8>>) -> ClientRequest {
        self.body = Some(body.into());
        self
    }
}
