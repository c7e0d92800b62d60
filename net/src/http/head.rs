//! The head of a request: parsed once, checked strictly, and kept as offsets into its bytes.
//!
//! Pure functions over bytes. It may not read, write or wait.

use std::mem::MaybeUninit;

use httparse::{Error, Status};

use super::config::Config;
use super::fields::Seen;
use super::limits::Limits;
use super::plain::plain;
use super::status::Refusal;
use super::target::target;
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
    /// Of an absolute target, else empty.
    pub(crate) authority: Span,
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

impl Head {
    /// Stands for a head that was refused.
    pub(crate) const REFUSED: Head = Head {
        len: 0,
        method: Method::Get,
        no_body: false,
        version: Version::Http11,
        authority: Span { start: 0, end: 0 },
        path: Span { start: 0, end: 0 },
        query: Span { start: 0, end: 0 },
        fields: 0,
        framing: Framing::Length(0),
        keep_alive: false,
        expects: false,
    };

    /// The path as it is to be seen, of the one that came: an absolute target may have none.
    #[inline]
    pub(crate) fn shown_path<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        let has_query = self.query.start != self.query.end;
        match path {
            [] if self.method == Method::Options && !has_query => b"*",
            [] => b"/",
            path => path,
        }
    }
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
pub(crate) fn parse(bytes: &[u8], config: &Config) -> Parsed {
    let window = within(bytes, config);
    match plain(window, config) {
        Some(head) => Parsed::Head(head),
        None => parse_any(window, config),
    }
}

/// Of `bytes`, what can be a head.
#[inline]
pub(crate) fn within<'b>(bytes: &'b [u8], config: &Config) -> &'b [u8] {
    &bytes[..bytes.len().min(config.limits.head)]
}

/// As above, for any head, or for what is none.
pub(crate) fn parse_any(window: &[u8], config: &Config) -> Parsed {
    let limits = &config.limits;
    let mut lines = [const { MaybeUninit::uninit() }; FIELDS];
    let mut request = httparse::Request::new(&mut []);
    let lines = &mut lines[..limits.fields.min(FIELDS)];
    let refusal = match request.parse_with_uninit_headers(window, lines) {
        Ok(Status::Complete(len)) => match inspect(&window[..len], &request, config) {
            Ok(head) => return Parsed::Head(head),
            Err(refusal) => refusal,
        },
        Ok(Status::Partial) => match unfinished(window, limits) {
            Some(refusal) => refusal,
            None => return Parsed::Partial,
        },
        Err(error) => {
            if let Some(copy) = as_http11(window, error) {
                return parse_any(&copy, config);
            }
            match refused(window, error, limits) {
                Some(refusal) => refusal,
                None => return Parsed::Partial,
            }
        }
    };
    Parsed::Refused { refusal, no_body: window.starts_with(b"HEAD ") }
}

/// A later minor version is served as 1.1 (RFC 9110, 2.5); the bytes keep their places.
#[cold]
fn as_http11(window: &[u8], error: Error) -> Option<Vec<u8>> {
    let begins =
        |word: &[u8]| matches!(word, [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9', ..]);
    let mut spaces = window.iter().enumerate().filter(|(_, byte)| **byte == b' ');
    let version = spaces.nth(1).map(|(place, _)| place + 1)?;
    if error != Error::Version || !begins(&window[version..]) {
        return None;
    }
    let mut copy = window.to_vec();
    copy[version + 7] = b'1';
    Some(copy)
}

fn line_too_long(window: &[u8], limits: &Limits) -> Refusal {
    if !window[..limits.request_line.min(window.len())].contains(&b' ') {
        return Refusal::new(501, "the method is not known here\n");
    }
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
        return Some(line_too_long(window, limits));
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
            return Some(line_too_long(window, limits));
        }
    }
    Some(match error {
        Error::TooManyHeaders => {
            const WHY: &str = "there are too many fields\n";
            Refusal::over(431, WHY, "fields", limits.fields.min(FIELDS) as u64)
        }
        Error::Version if is_line_too_long(window, limits) => line_too_long(window, limits),
        Error::Version => {
            // Its limit may be the sooner one.
            let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
                return unfinished(window, limits);
            };
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
    config: &Config,
) -> Result<Head, Refusal> {
    let (Some(name), Some(uri), Some(minor)) = (request.method, request.path, request.version)
    else {
        unreachable!("a complete head has a request line")
    };
    let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
    let at = name.len() + 1;
    let line = at + uri.len() + 9;
    if line > config.limits.request_line {
        return Err(line_too_long(bytes, &config.limits));
    }
    let strict = !config.bare_lf;
    let cr = bytes.get(line) == Some(&b'\r');
    if strict && (!cr || !bytes.ends_with(b"\r\n\r\n")) {
        return Err(Refusal::bad("a line does not end in CRLF\n"));
    }
    let mut seen = Seen::default();
    read_fields(bytes, request.headers, strict, version, &mut seen)?;
    let (method, no_body) = known_method(name)?;
    let target = target(uri.as_bytes(), method)?;
    let (framing, keep_alive) = seen.finish(version, &config.limits)?;
    if method == Method::Trace && framing != Framing::Length(0) {
        return Err(Refusal::bad("a TRACE has no body\n"));
    }
    assert!(u32::try_from(bytes.len()).is_ok(), "a head's limit is below 4 GiB");
    let part =
        |start: usize, end: usize| Span { start: (at + start) as u32, end: (at + end) as u32 };
    let authority = match target.authority {
        (_, 0) => Span::default(),
        (start, end) => part(start, end),
    };
    Ok(Head {
        len: bytes.len(),
        method,
        no_body,
        version,
        authority,
        path: part(target.path, target.query),
        query: part(target.query, uri.len()),
        fields: (line + 1 + usize::from(cr)) as u32,
        framing,
        keep_alive,
        expects: seen.expects && version == Version::Http11 && framing != Framing::Length(0),
    })
}

/// Reads the fields of a head.
fn read_fields(
    bytes: &[u8],
    fields: &[httparse::Header<'_>],
    strict: bool,
    version: Version,
    seen: &mut Seen,
) -> Result<(), Refusal> {
    for field in fields {
        let value = field.value;
        if strict {
            check_line_end(bytes, value.as_ptr() as usize - bytes.as_ptr() as usize + value.len())?;
        }
        seen.field(field.name.as_bytes(), value, version)?;
    }
    Ok(())
}

/// The method of that name, and whether it asks for no body.
fn known_method(name: &str) -> Result<(Method, bool), Refusal> {
    Ok(match name {
        "GET" => (Method::Get, false),
        "HEAD" => (Method::Get, true),
        "POST" => (Method::Post, false),
        "PUT" => (Method::Put, false),
        "DELETE" => (Method::Delete, false),
        "PATCH" => (Method::Patch, false),
        "OPTIONS" => (Method::Options, false),
        "TRACE" => (Method::Trace, false),
        _ => return Err(Refusal::new(501, "the method is not known here\n")),
    })
}

/// Whether the line whose value ends at `end` ends as it must. The parser is content with LF.
#[inline]
fn check_line_end(bytes: &[u8], end: usize) -> Result<(), Refusal> {
    let mut rest = bytes.get(end..).unwrap_or_default();
    while let [b' ' | b'\t', behind @ ..] = rest {
        rest = behind;
    }
    match rest {
        [b'\r', b'\n', ..] => Ok(()),
        _ => Err(Refusal::bad("a line does not end in CRLF\n")),
    }
}

/// The value of a query's first `name=value` pair of that name.
pub(crate) fn query_value<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// The values of the fields called `name`, among the field lines of a head that was accepted.
pub(crate) fn values<'h>(fields: &'h [u8], name: &str) -> impl Iterator<Item = &'h [u8]> {
    fields.split(|byte| *byte == b'\n').filter_map(move |line| {
        let (found, rest) = line.split_at_checked(name.len())?;
        let [b':', value @ ..] = rest else { return None };
        found.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
    })
}
