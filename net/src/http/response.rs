//! A response in memory: a status, fields and a body. It is written by `writer`.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, ErrorKind, Write};

use super::grammar::date::Date;
use super::grammar::head::{Refusal, TEXT, TOKEN, Version, run};
use super::guard::memory::free;

// ---- Responses ----------------------------------------------------------------------------------

/// A response: a status, fields, and a body in memory.
///
/// The fields that frame the message or belong to the connection (`Content-Length`,
/// `Transfer-Encoding`, `Connection`, `Date`) are the server's. A body that is not in memory is
/// written by [`Request::start`](super::Request::start).
///
/// ```
/// use net::http::Response;
///
/// let page = Response::text("Hello\n").header("Cache-Control", "no-store").unwrap();
/// assert_eq!(page.status(), 200);
/// assert!(Response::new(302).header("Location", "/\r\nSet-Cookie: a=b").is_err());
/// ```
#[derive(Debug)]
#[must_use = "a response is sent by returning it from the handler"]
pub struct Response {
    status: u16,
    /// The `Content-Type` line; empty if `fields` contains one.
    content_type: Option<&'static str>,
    /// The fields that were added, as whole lines.
    fields: Vec<u8>,
    pub(crate) length: Option<u64>,
    pub(crate) body: Cow<'static, [u8]>,
    pub(crate) close: bool,
}

impl Response {
    /// Makes an empty response.
    ///
    /// # Panics
    ///
    /// If `status` is not from 200 to 599, because only the server sends interim responses.
    pub fn new(status: u16) -> Response {
        assert!((200..600).contains(&status), "rule: a final status is from 200 to 599");
        Response {
            status,
            content_type: None,
            fields: Vec::new(),
            length: None,
            body: Cow::Borrowed(&[]),
            close: false,
        }
    }

    /// Makes a placeholder for a response that was streamed.
    pub(crate) fn sent() -> Response {
        Response::new(200)
    }

    /// Makes a response with status 200 and a text body.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Response {
        Response::new(200).with_text(text)
    }

    /// Makes a response with status 200 and a page of HTML as its body.
    pub fn html(page: impl Into<Cow<'static, str>>) -> Response {
        Response::new(200).with_html(page)
    }

    /// Makes a response with status 405. `allow` lists the allowed methods, as in `"GET, HEAD"`.
    ///
    /// # Errors
    ///
    /// As for [`Response::header`].
    pub fn method_not_allowed(allow: &str) -> Result<Response, InvalidHeader> {
        Response::new(405).with_text("method not allowed\n").header("Allow", allow)
    }

    /// Sets the body to a text. The type is `text/plain`, unless a [field](Response::header) sets
    /// another.
    pub fn with_text(self, text: impl Into<Cow<'static, str>>) -> Response {
        self.of_type("Content-Type: text/plain; charset=utf-8\r\n").with_body(text.into())
    }

    /// Sets the body to a page of HTML. The type is `text/html`, unless a
    /// [field](Response::header) sets another.
    pub fn with_html(self, page: impl Into<Cow<'static, str>>) -> Response {
        self.of_type("Content-Type: text/html; charset=utf-8\r\n").with_body(page.into())
    }

    /// Sets the `Content-Type` line, unless a field sets the type.
    pub(crate) fn of_type(mut self, line: &'static str) -> Response {
        if self.content_type != Some("") {
            self.content_type = Some(line);
        }
        self
    }

    /// Sets the body to bytes or a text. Set its type with [`Response::header`].
    pub fn with_body(mut self, body: impl Into<Body>) -> Response {
        self.body = body.into().0;
        self
    }

    /// Announces the length of a streamed body. Without a length, the body goes in chunks.
    pub fn with_length(mut self, length: u64) -> Response {
        self.length = Some(length);
        self
    }

    /// Closes the connection after this response.
    pub fn and_close(mut self) -> Response {
        self.close = true;
        self
    }

    /// Adds a header field. A `Content-Type` field replaces the type set by
    /// [`Response::with_text`].
    ///
    /// # Errors
    ///
    /// Returns an error if the name is not a token or belongs to the server, if the value has CR,
    /// LF, NUL or another control byte, or if it has white space around it.
    pub fn header(
        mut self,
        name: &str,
        value: impl AsRef<[u8]>,
    ) -> Result<Response, InvalidHeader> {
        let value = value.as_ref();
        let ours = ["content-length", "transfer-encoding", "connection", "date"];
        if name.is_empty() || run(TOKEN, name.as_bytes()) < name.len() {
            return Err(InvalidHeader::Name);
        }
        if ours.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
            return Err(InvalidHeader::Reserved);
        }
        if run(TEXT, value) < value.len() || value.trim_ascii().len() != value.len() {
            return Err(InvalidHeader::Value);
        }
        if name.eq_ignore_ascii_case("content-type") {
            self.content_type = Some("");
        }
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            self.fields.extend_from_slice(part);
        }
        Ok(self)
    }

    /// The status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The fields that were added, as whole lines.
    pub(crate) fn fields(&self) -> &[u8] {
        &self.fields
    }

    /// Adds `Retry-After: 1`, which asks the client to try again after a second (RFC 9110, 10.2.3).
    pub(crate) fn ask_again(mut self) -> Response {
        self.fields.extend_from_slice(b"Retry-After: 1\r\n");
        self
    }

    /// Makes the response that reports a refusal to the client.
    pub(crate) fn from(refusal: Refusal) -> Response {
        let response = Response::new(refusal.status).with_text(refusal.why).and_close();
        if refusal.status == 503 { response.ask_again() } else { response }
    }

    /// Drops the response, and returns the memory of a large body to the system.
    #[inline]
    pub(crate) fn free(self) {
        if let Cow::Owned(body) = self.body {
            free(body);
        }
    }

    /// Whether the status of this response allows a body.
    pub(crate) fn has_body(&self) -> bool {
        !matches!(self.status, 204 | 205 | 304)
    }

    /// The framing field of a response with a status that allows no body. A 205 announces a length
    /// of zero, because the client would otherwise read a body.
    pub(crate) fn no_body_field(&self) -> BodyField {
        if self.status == 205 { BodyField::Length(0) } else { BodyField::None }
    }

    /// Appends the head of the response to `out`. The head says whether the connection continues,
    /// unless the version of the client implies it.
    pub(crate) fn write_head(
        &self,
        out: &mut Vec<u8>,
        date: &Date,
        body: BodyField,
        goes_on: (bool, Version),
    ) {
        match status_line(self.status) {
            "" => write!(out, "HTTP/1.1 {} \r\n", self.status).expect("memory takes all"),
            line => out.extend_from_slice(line.as_bytes()),
        }
        out.extend_from_slice(self.content_type.unwrap_or_default().as_bytes());
        match body {
            BodyField::Length(length) => {
                out.extend_from_slice(b"Content-Length: ");
                write_number(out, length, 10);
            }
            BodyField::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            BodyField::None => {}
        }
        match goes_on {
            // As the version implies.
            (true, Version::Http11) => {}
            (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
            (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        }
        out.extend_from_slice(&self.fields);
        out.extend_from_slice(&date.tail());
    }
}

/// A body in memory, for [`Response::with_body`]: bytes or a text, static or owned.
#[derive(Clone, Debug)]
pub struct Body(Cow<'static, [u8]>);

macro_rules! body {
    ($($from:ty: $body:ident => $bytes:expr;)*) => {$(
        impl From<$from> for Body {
            fn from($body: $from) -> Body {
                Body($bytes)
            }
        }
    )*};
}

body! {
    &'static [u8]: bytes => Cow::Borrowed(bytes);
    Vec<u8>: bytes => Cow::Owned(bytes);
    Cow<'static, [u8]>: bytes => bytes;
    &'static str: text => Cow::Borrowed(text.as_bytes());
    String: text => Cow::Owned(text.into_bytes());
}

impl<const N: usize> From<&'static [u8; N]> for Body {
    fn from(bytes: &'static [u8; N]) -> Body {
        Body(Cow::Borrowed(bytes))
    }
}

impl From<Cow<'static, str>> for Body {
    fn from(text: Cow<'static, str>) -> Body {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}

/// The field that frames the body of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyField {
    /// No field, because the response has no body or its body ends with the connection.
    None,
    Length(u64),
    Chunked,
}

/// The reason why a header field was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidHeader {
    /// The name is not a token.
    Name,
    /// Only trapline may write this field.
    Reserved,
    /// The value has a byte that a field cannot carry.
    Value,
}

impl fmt::Display for InvalidHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InvalidHeader::Name => "a field name must be a token",
            InvalidHeader::Reserved => "trapline writes that field itself",
            InvalidHeader::Value => {
                "a field value has no control bytes and no outer white space, a host or target has \
                 none at all"
            }
        })
    }
}

impl std::error::Error for InvalidHeader {}

impl From<InvalidHeader> for io::Error {
    fn from(error: InvalidHeader) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidInput, error)
    }
}

/// Appends `n`, in a base from 10 to 16, and a line end to `out`.
pub(crate) fn write_number(out: &mut Vec<u8>, mut n: u64, base: u64) {
    // The longest number has 20 digits in base 10.
    let mut line = *b"00000000000000000000\r\n";
    let mut at = 20;
    loop {
        at -= 1;
        line[at] = b"0123456789abcdef"[(n % base) as usize];
        n /= base;
        if n == 0 {
            return out.extend_from_slice(&line[at..]);
        }
    }
}

/// Appends the size line of a chunk of `n` bytes to `out`.
pub(crate) fn write_chunk_size(out: &mut Vec<u8>, n: usize) {
    write_number(out, n as u64, 16);
}

// ---- Handlers without a result ------------------------------------------------------------------

/// The reason why a handler ended without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Panicked,
    /// The handler took longer than its deadline.
    Late,
    /// The client has left.
    Left,
}

impl Gone {
    /// The reason inside the error of a handler, if the error contains a [`Gone`].
    pub(crate) fn of(error: &io::Error) -> Option<Gone> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Gone::Panicked => "a handler panicked",
            Gone::Late => "the answer took too long",
            Gone::Left => "the client has left",
        })
    }
}

impl std::error::Error for Gone {}

/// The error of a handler, or of one of its helpers, that refuses the request. The client gets the
/// status and the sentence, in the form of the [error page](super::Request::set_error_page). The
/// connection continues. The rejection is not logged, because the client is at fault.
///
/// ```
/// use std::io;
/// use net::http::{Rejection, RequestHead};
///
/// fn id(head: &RequestHead) -> io::Result<u64> {
///     let id = head.param("id").and_then(|id| id.parse().ok());
///     Ok(id.ok_or(Rejection::new(404, "there is no such task\n"))?)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Rejection {
    status: u16,
    why: Cow<'static, str>,
}

impl Rejection {
    /// Makes a rejection from a status and one sentence.
    ///
    /// # Panics
    ///
    /// Panics if the status is not from 400 to 599.
    pub fn new(status: u16, why: impl Into<Cow<'static, str>>) -> Rejection {
        assert!((400..600).contains(&status), "rule: a rejection has a status from 400 to 599");
        Rejection { status, why: why.into() }
    }

    pub(crate) fn of(error: &io::Error) -> Option<&Rejection> {
        error.get_ref()?.downcast_ref()
    }

    pub(crate) fn response(&self, page: ErrorPage) -> Response {
        page(self.status, &self.why)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.why.trim_end())
    }
}

impl std::error::Error for Rejection {}

impl From<Rejection> for io::Error {
    fn from(rejection: Rejection) -> io::Error {
        io::Error::new(ErrorKind::InvalidData, rejection)
    }
}

// ---- The responses of the server ----------------------------------------------------------------

/// A function that makes the response to an error from a status and a sentence.
pub type ErrorPage = fn(u16, &str) -> Response;

/// Makes an error response with the sentence `why` as its body, as `text/plain`.
pub(crate) fn text_page(status: u16, why: &str) -> Response {
    Response::new(status).with_text(why.to_owned())
}

/// The status line of `status` with its line end, or an empty string if no reason is registered for
/// the status (RFC 9110, 15).
fn status_line(status: u16) -> &'static str {
    match status {
        200 => "HTTP/1.1 200 OK\r\n",
        201 => "HTTP/1.1 201 Created\r\n",
        202 => "HTTP/1.1 202 Accepted\r\n",
        204 => "HTTP/1.1 204 No Content\r\n",
        206 => "HTTP/1.1 206 Partial Content\r\n",
        301 => "HTTP/1.1 301 Moved Permanently\r\n",
        302 => "HTTP/1.1 302 Found\r\n",
        303 => "HTTP/1.1 303 See Other\r\n",
        304 => "HTTP/1.1 304 Not Modified\r\n",
        307 => "HTTP/1.1 307 Temporary Redirect\r\n",
        308 => "HTTP/1.1 308 Permanent Redirect\r\n",
        400 => "HTTP/1.1 400 Bad Request\r\n",
        401 => "HTTP/1.1 401 Unauthorized\r\n",
        403 => "HTTP/1.1 403 Forbidden\r\n",
        404 => "HTTP/1.1 404 Not Found\r\n",
        405 => "HTTP/1.1 405 Method Not Allowed\r\n",
        406 => "HTTP/1.1 406 Not Acceptable\r\n",
        408 => "HTTP/1.1 408 Request Timeout\r\n",
        409 => "HTTP/1.1 409 Conflict\r\n",
        410 => "HTTP/1.1 410 Gone\r\n",
        411 => "HTTP/1.1 411 Length Required\r\n",
        412 => "HTTP/1.1 412 Precondition Failed\r\n",
        413 => "HTTP/1.1 413 Content Too Large\r\n",
        414 => "HTTP/1.1 414 URI Too Long\r\n",
        415 => "HTTP/1.1 415 Unsupported Media Type\r\n",
        416 => "HTTP/1.1 416 Range Not Satisfiable\r\n",
        417 => "HTTP/1.1 417 Expectation Failed\r\n",
        421 => "HTTP/1.1 421 Misdirected Request\r\n",
        422 => "HTTP/1.1 422 Unprocessable Content\r\n",
        429 => "HTTP/1.1 429 Too Many Requests\r\n",
        431 => "HTTP/1.1 431 Request Header Fields Too Large\r\n",
        500 => "HTTP/1.1 500 Internal Server Error\r\n",
        501 => "HTTP/1.1 501 Not Implemented\r\n",
        502 => "HTTP/1.1 502 Bad Gateway\r\n",
        503 => "HTTP/1.1 503 Service Unavailable\r\n",
        504 => "HTTP/1.1 504 Gateway Timeout\r\n",
        505 => "HTTP/1.1 505 HTTP Version Not Supported\r\n",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_are_printed() {
        for n in [0, 9, 10, 255, 256, 4095, 65_536, usize::MAX] {
            let mut out = Vec::new();
            write_number(&mut out, n as u64, 10);
            write_chunk_size(&mut out, n);
            assert_eq!(out, format!("{n}\r\n{n:x}\r\n").as_bytes());
        }
    }

    #[test]
    fn a_field_cannot_break_out_of_its_line() {
        let with = |name, value: &str| Response::new(200).header(name, value).err();
        for value in ["a\r\nb", "a\nb", "a\rb", "a\0b", " a", "a\t", "\u{7f}"] {
            assert_eq!(with("X", value), Some(InvalidHeader::Value), "{value:?}");
        }
        for name in ["", "a b", "a:", "a\r\nb", "\u{e9}"] {
            assert_eq!(with(name, "v"), Some(InvalidHeader::Name), "{name:?}");
        }
        assert_eq!(with("Content-length", "1"), Some(InvalidHeader::Reserved));
        assert_eq!(with("X", "caf\u{e9}\tau lait"), None);
    }

    #[test]
    fn a_body_is_text_or_bytes_and_a_page_has_its_type() {
        for body in [
            Body::from("abc"),
            String::from("abc").into(),
            b"abc".into(),
            (&b"abc"[..]).into(),
            vec![b'a', b'b', b'c'].into(),
            Cow::Borrowed("abc").into(),
        ] {
            assert_eq!(&*Response::new(200).with_body(body).body, b"abc");
        }
        let page = Response::html("<p>");
        let line = "Content-Type: text/html; charset=utf-8\r\n";
        assert_eq!((&*page.body, page.content_type), (&b"<p>"[..], Some(line)));
        let own = Response::new(200).header("Content-Type", "text/xml").unwrap();
        assert_eq!(own.with_html("<p>").content_type, Some(""), "that of the field");
    }

    #[test]
    fn a_status_line_says_its_code() {
        for status in 200..600 {
            let line = status_line(status);
            assert!(line.is_empty() || line.starts_with(&format!("HTTP/1.1 {status} ")), "{line}");
            assert!(line.is_empty() || line.ends_with("\r\n"), "{line}");
        }
    }
}
