//! The head of a request: parsed once, checked strictly, and kept as offsets into its bytes.
//!
//! Pure functions over bytes. It may not read, write or wait.

use std::mem::MaybeUninit;

use httparse::{Error, Status};

use super::config::Limits;
use super::host::is_host;
use super::status::Refusal;
use crate::limits::FIELDS;

/// A method that the server knows; any other is answered with 501.
///
/// There is no HEAD: a handler is asked for it as for [`Method::Get`], and the connection leaves
/// the body out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Also stands for HEAD.
    Get,
    /// Hands something in.
    Post,
    /// Replaces.
    Put,
    /// Removes.
    Delete,
    /// Changes a part.
    Patch,
    /// Asks what can be asked.
    Options,
    /// Asks for the request itself.
    Trace,
}

/// The version that a client speaks. The server answers as 1.1, within what the client can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: no chunks, closes unless asked to keep alive.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// How the end of a request's body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
}

/// Bytes of a head, counted from its first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }
}

/// A head that may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// With the empty line.
    pub(crate) len: usize,
    pub(crate) method: Method,
    /// Whether the method was HEAD.
    pub(crate) no_body: bool,
    pub(crate) version: Version,
    /// Empty for an absolute target without one.
    pub(crate) path: Span,
    /// With its question mark, empty without one.
    pub(crate) query: Span,
    /// Where the field lines begin.
    pub(crate) fields: u32,
    pub(crate) framing: Framing,
    pub(crate) keep_alive: bool,
    /// Whether the client waits for a 100 before it sends the body.
    pub(crate) expects: bool,
}

/// What the bytes so far are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// The beginning of a head.
    Partial,
    /// A whole head.
    Head(Head),
    /// Not a head that can be answered; `no_body` if it asked for none.
    Refused { refusal: Refusal, no_body: bool },
}

/// Parses the head at the beginning of `bytes`.
///
/// The same bytes come to the same end however they were cut: what is refused is what the shortest
/// prefix that decides it is refused for.
pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Parsed {
    let window = &bytes[..bytes.len().min(limits.head)];
    let mut lines = [const { MaybeUninit::uninit() }; FIELDS];
    let mut request = httparse::Request::new(&mut []);
    let lines = &mut lines[..limits.fields.min(FIELDS)];
    let refusal = match request.parse_with_uninit_headers(window, lines) {
        Ok(Status::Complete(len)) => match inspect(&window[..len], &request, limits) {
            Ok(head) => return Parsed::Head(head),
            Err(refusal) => refusal,
        },
        Ok(Status::Partial) => match unfinished(window, limits) {
            Some(refusal) => refusal,
            None => return Parsed::Partial,
        },
        Err(error) => match refused(window, error, limits) {
            Some(refusal) => refusal,
            None => return Parsed::Partial,
        },
    };
    Parsed::Refused { refusal, no_body: window.starts_with(b"HEAD ") }
}

fn line_too_long(limits: &Limits) -> Refusal {
    const WHY: &str = "the request line is too long\n";
    Refusal::over(414, WHY, "request_line_bytes", limits.request_line as u64)
}

/// Whether the request line, begun or whole, is longer than it may be.
fn is_line_too_long(window: &[u8], limits: &Limits) -> bool {
    let most = limits.request_line.saturating_add(2);
    window.len() >= most && !window[..most].contains(&b'\n')
}

#[cold]
fn unfinished(window: &[u8], limits: &Limits) -> Option<Refusal> {
    if is_line_too_long(window, limits) {
        return Some(line_too_long(limits));
    }
    const WHY: &str = "the head is too long\n";
    (window.len() >= limits.head).then(|| Refusal::over(431, WHY, "head_bytes", limits.head as u64))
}

/// What to answer to bytes that the parser does not take; `None`: more are needed to tell.
#[cold]
fn refused(window: &[u8], error: Error, limits: &Limits) -> Option<Refusal> {
    if is_line_too_long(window, limits) {
        // Read in small pieces, the limit would have been met before whatever is wrong after it.
        let within = &window[..limits.request_line.saturating_add(2)];
        let mut none = [];
        let parsed = httparse::Request::new(&mut none).parse(within);
        if parsed.err().is_none_or(|error| error == Error::TooManyHeaders) {
            return Some(line_too_long(limits));
        }
    }
    Some(match error {
        Error::TooManyHeaders => {
            const WHY: &str = "there are too many fields\n";
            Refusal::over(431, WHY, "fields", limits.fields.min(FIELDS) as u64)
        }
        Error::Version => {
            let end = window.iter().position(|byte| *byte == b'\n')?;
            match window[..end].trim_ascii_end().splitn(3, |byte| *byte == b' ').nth(2) {
                Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor])
                    if major.is_ascii_digit() && minor.is_ascii_digit() =>
                {
                    Refusal::new(505, "only HTTP/1.0 and HTTP/1.1 are spoken here\n")
                }
                _ => Refusal::bad("the request line is malformed\n"),
            }
        }
        Error::HeaderName => Refusal::bad("a field name is malformed\n"),
        Error::HeaderValue => Refusal::bad("a field value is malformed\n"),
        Error::NewLine | Error::Status | Error::Token => {
            Refusal::bad("the request line is malformed\n")
        }
    })
}

/// Checks what the parser leaves open, and reads the fields that say how the connection goes on.
fn inspect(
    bytes: &[u8],
    request: &httparse::Request<'_, '_>,
    limits: &Limits,
) -> Result<Head, Refusal> {
    let (Some(name), Some(target), Some(minor)) = (request.method, request.path, request.version)
    else {
        unreachable!("a complete head has a request line")
    };
    let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
    let line = name.len() + 1 + target.len() + 9;
    if line > limits.request_line {
        return Err(line_too_long(limits));
    }
    if bytes.get(line) != Some(&b'\r') || !bytes.ends_with(b"\r\n\r\n") {
        return Err(Refusal::bad("a line does not end in CRLF\n"));
    }
    let mut seen = Seen::default();
    for field in &*request.headers {
        let value = field.value;
        check_line_end(bytes, value.as_ptr() as usize - bytes.as_ptr() as usize + value.len())?;
        seen.field(field.name.as_bytes(), value, version)?;
    }
    let (method, no_body) = match name {
        "GET" => (Method::Get, false),
        "HEAD" => (Method::Get, true),
        "POST" => (Method::Post, false),
        "PUT" => (Method::Put, false),
        "DELETE" => (Method::Delete, false),
        "PATCH" => (Method::Patch, false),
        "OPTIONS" => (Method::Options, false),
        "TRACE" => (Method::Trace, false),
        _ => return Err(Refusal::new(501, "the method is not known here\n")),
    };
    let target = target.as_bytes();
    let path = resource(target, method)?;
    let query = target[path..].iter().position(|byte| *byte == b'?');
    let query = query.map_or(target.len(), |place| path + place);
    let (framing, keep_alive) = seen.finish(version, limits)?;
    let at = name.len() + 1;
    let span = |n: usize| u32::try_from(n).expect("a head's limit is below 4 GiB");
    Ok(Head {
        len: bytes.len(),
        method,
        no_body,
        version,
        path: Span { start: span(at + path), end: span(at + query) },
        query: Span { start: span(at + query), end: span(at + target.len()) },
        fields: span(line + 2),
        framing,
        keep_alive,
        expects: seen.expects && version == Version::Http11 && framing != Framing::Length(0),
    })
}

/// Whether the line whose value ends at `end` ends as it must. The parser is content with LF.
#[inline]
fn check_line_end(bytes: &[u8], mut end: usize) -> Result<(), Refusal> {
    while let Some(b' ' | b'\t') = bytes.get(end) {
        end += 1;
    }
    match bytes.get(end..end + 2) {
        Some(b"\r\n") => Ok(()),
        _ => Err(Refusal::bad("a line does not end in CRLF\n")),
    }
}

/// Where in the target the path begins, or its end if an absolute one has none.
fn resource(target: &[u8], method: Method) -> Result<usize, Refusal> {
    const BAD: Refusal = Refusal::bad("the request target is malformed\n");
    if !target.iter().all(|byte| byte.is_ascii() && *byte != b'#') {
        return Err(BAD);
    }
    if target[0] == b'/' {
        return Ok(0);
    }
    if target == b"*" {
        return if method == Method::Options { Ok(0) } else { Err(BAD) };
    }
    let scheme = |name: &[u8]| {
        let prefix = target.get(..name.len())?;
        prefix.eq_ignore_ascii_case(name).then_some(name.len())
    };
    let start = scheme(b"http://").or_else(|| scheme(b"https://")).ok_or(BAD)?;
    let rest = &target[start..];
    let len = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    if len == 0 || rest[0] == b':' || !is_host(&rest[..len]) {
        return Err(BAD);
    }
    Ok(start + len)
}

/// What the fields that matter said so far.
#[derive(Default)]
struct Seen {
    host: bool,
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    expects: bool,
}

impl Seen {
    /// The name's length tells most fields apart, the others cost one comparison.
    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8], version: Version) -> Result<(), Refusal> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => {
                if self.host {
                    return Err(Refusal::bad("there is more than one Host field\n"));
                }
                if !is_host(value) {
                    return Err(Refusal::bad("the Host field is malformed\n"));
                }
                self.host = true;
            }
            6 if name.eq_ignore_ascii_case(b"expect") && version == Version::Http11 => {
                if !value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(Refusal::new(417, "the expectation is not known here\n"));
                }
                self.expects = true;
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                if self.length.is_some() {
                    return Err(Refusal::bad("there is more than one Content-Length field\n"));
                }
                self.length = Some(digits(value)?);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if self.chunked {
                    return Err(Refusal::bad("there is more than one Transfer-Encoding field\n"));
                }
                coding(value, version)?;
                self.chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&self, version: Version, limits: &Limits) -> Result<(Framing, bool), Refusal> {
        let keep_alive = match version {
            Version::Http11 if !self.host => {
                return Err(Refusal::bad("there is no Host field\n"));
            }
            Version::Http11 => !self.close,
            Version::Http10 => self.keep_alive && !self.close,
        };
        let framing = match (self.chunked, self.length) {
            (true, Some(_)) => {
                return Err(Refusal::bad(
                    "there are both Content-Length and Transfer-Encoding fields\n",
                ));
            }
            (true, None) => Framing::Chunked,
            (false, length) => Framing::Length(length.unwrap_or(0)),
        };
        match framing {
            Framing::Length(length) if length > limits.body => Err(body_too_long(limits)),
            _ => Ok((framing, keep_alive)),
        }
    }
}

pub(crate) fn body_too_long(limits: &Limits) -> Refusal {
    Refusal::over(413, "the body is too long\n", "body_bytes", limits.body)
}

fn digits(value: &[u8]) -> Result<u64, Refusal> {
    const BAD: Refusal = Refusal::bad("the Content-Length field is malformed\n");
    if value.is_empty() {
        return Err(BAD);
    }
    value.iter().try_fold(0u64, |sum, byte| {
        if !byte.is_ascii_digit() {
            return Err(BAD);
        }
        let next = sum.checked_mul(10).and_then(|sum| sum.checked_add(u64::from(byte - b'0')));
        next.ok_or(BAD)
    })
}

/// Only `chunked` is spoken. Where it is not the last coding, nobody knows where the body ends.
fn coding(value: &[u8], version: Version) -> Result<(), Refusal> {
    if version == Version::Http10 {
        return Err(Refusal::bad("HTTP/1.0 has no Transfer-Encoding\n"));
    }
    if value.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let mut codings = value.rsplit(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    let last = codings.next().is_some_and(is_chunked);
    if !last || codings.any(is_chunked) {
        return Err(Refusal::bad("the Transfer-Encoding field does not end in one chunked\n"));
    }
    Err(Refusal::new(501, "no transfer coding but chunked is known here\n"))
}

/// The values of the fields called `name`, among the field lines of a head that was accepted.
pub(crate) fn values<'h>(fields: &'h [u8], name: &str) -> impl Iterator<Item = &'h [u8]> {
    fields.split(|byte| *byte == b'\n').filter_map(move |line| {
        let (found, rest) = line.split_at_checked(name.len())?;
        let [b':', value @ ..] = rest else { return None };
        found.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
    })
}
