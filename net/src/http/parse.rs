//! How the head of a request is parsed: once, and checked strictly.
//!
//! Pure functions over bytes. It may not read, write or wait.

use std::mem::MaybeUninit;

use httparse::{Error, Status};

use super::config::Config;
use super::fields::Seen;
use super::head::{Framing, Head, Method, Span, Version};
use super::limits::Limits;
use super::plain::plain;
use super::status::Refusal;
use super::target::target;
use crate::limits::FIELDS;

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

/// Parses any head, and refuses what is none.
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
