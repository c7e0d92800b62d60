//! What a handler answers with, and how its head is written.
//!
//! Bytes in memory. It may not write to a stream or know the request.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use super::class::{TEXT, TOKEN, run};
use super::date::Date;
use super::head::Version;
use super::status::{Refusal, line};

/// An answer: a status, fields, and a body in memory.
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
    /// The line that says what a body is; empty if it is among the fields.
    content_type: Option<&'static str>,
    /// Whole lines.
    fields: Vec<u8>,
    pub(crate) length: Option<u64>,
    pub(crate) body: Cow<'static, [u8]>,
    pub(crate) close: bool,
    /// The answer was streamed; there is nothing left to send.
    pub(crate) sent: bool,
}

impl Response {
    /// An empty answer.
    ///
    /// # Panics
    ///
    /// If `status` is not from 200 to 599: interim answers are the server's.
    pub fn new(status: u16) -> Response {
        assert!((200..600).contains(&status), "rule: a final status is from 200 to 599");
        Response {
            status,
            content_type: None,
            fields: Vec::new(),
            length: None,
            body: Cow::Borrowed(&[]),
            close: false,
            sent: false,
        }
    }

    /// Stands for an answer that was streamed.
    pub(crate) fn sent() -> Response {
        Response { sent: true, ..Response::new(200) }
    }

    /// 200 and a text.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Response {
        Response::new(200).with_text(text)
    }

    /// 405, and which methods there are, as in `"GET, HEAD"`.
    ///
    /// # Errors
    ///
    /// As for [`Response::header`].
    pub fn method_not_allowed(allow: &str) -> Result<Response, InvalidHeader> {
        Response::new(405).with_text("method not allowed\n").header("Allow", allow)
    }

    /// Puts a text into the body, as `text/plain` unless a [field](Response::header) says what it
    /// is.
    pub fn with_text(self, text: impl Into<Cow<'static, str>>) -> Response {
        let body = match text.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        self.of_type("Content-Type: text/plain; charset=utf-8\r\n").with_body(body)
    }

    /// Puts JSON text into the body, as `application/json` unless a field says what it is.
    pub(crate) fn with_json_text(self, text: String) -> Response {
        self.of_type("Content-Type: application/json\r\n").with_body(text.into_bytes())
    }

    fn of_type(mut self, line: &'static str) -> Response {
        if self.content_type != Some("") {
            self.content_type = Some(line);
        }
        self
    }

    /// Puts bytes into the body. Say what they are by [`Response::header`].
    pub fn with_body(mut self, body: impl Into<Cow<'static, [u8]>>) -> Response {
        self.body = body.into();
        self
    }

    /// Says how long a streamed body will be. Without it, it goes in chunks.
    pub fn with_length(mut self, length: u64) -> Response {
        self.length = Some(length);
        self
    }

    /// Closes the connection after this answer.
    pub fn and_close(mut self) -> Response {
        self.close = true;
        self
    }

    /// Adds a field. `Content-Type` replaces the one that a text has.
    ///
    /// # Errors
    ///
    /// A name that is no token or belongs to the server; CR, LF, NUL or another control byte in
    /// the value, or white space around it.
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

    /// The code that it was made with.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The fields that were added, whole lines.
    pub(crate) fn fields(&self) -> &[u8] {
        &self.fields
    }

    /// Says when to come again: after a second (RFC 9110, 10.2.3).
    pub(crate) fn ask_again(mut self) -> Response {
        self.fields.extend_from_slice(b"Retry-After: 1\r\n");
        self
    }

    /// What the server itself answers.
    pub(crate) fn from(refusal: Refusal) -> Response {
        let response = Response::new(refusal.status).with_text(refusal.why).and_close();
        if refusal.status == 503 { response.ask_again() } else { response }
    }

    /// Whether the status has a body at all.
    pub(crate) fn has_body(&self) -> bool {
        !matches!(self.status, 204 | 205 | 304)
    }

    /// How the body is framed that the status has not. After a 205 the client would read one.
    pub(crate) fn no_body_field(&self) -> BodyField {
        if self.status == 205 { BodyField::Length(0) } else { BodyField::None }
    }

    /// Writes the head behind what is in `out`. It says whether the connection goes on, unless the
    /// client's version implies that.
    pub(crate) fn write_head(
        &self,
        out: &mut Vec<u8>,
        date: &Date,
        body: BodyField,
        goes_on: (bool, Version),
    ) {
        match line(self.status) {
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

/// Which field frames the body of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyField {
    /// There is no body, or it ends with the connection.
    None,
    Length(u64),
    Chunked,
}

/// Why a field was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidHeader {
    /// The name is not a token.
    Name,
    /// The field belongs to the server.
    Reserved,
    /// The value has a byte that a field cannot carry.
    Value,
}

impl fmt::Display for InvalidHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InvalidHeader::Name => "a field name must be a token",
            InvalidHeader::Reserved => "the server writes that field itself",
            InvalidHeader::Value => "a field value cannot carry control bytes or outer white space",
        })
    }
}

impl std::error::Error for InvalidHeader {}

impl From<InvalidHeader> for io::Error {
    fn from(error: InvalidHeader) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidInput, error)
    }
}

/// Writes `n` in digits of a base from 10 to 16, and the end of the line.
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

/// Writes the line before a chunk of `n` bytes.
pub(crate) fn write_chunk_size(out: &mut Vec<u8>, n: usize) {
    write_number(out, n as u64, 16);
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
}
