//! How the head of a request is parsed: once, in one pass, and strictly (RFC 9112, 2 to 5).
//!
//! Pure functions over bytes. They may not read, write or wait.

use super::class::{PATH, TARGET, TEXT, TOKEN, WORD, run};
use super::config::Config;
use super::fields::Seen;
use super::head::{Framing, Head, Method, Span, Version};
use super::limits::Limits;
use super::status::{Refusal, check};
use super::target::{BAD_TARGET, authority};
use crate::limits::FIELDS;

const BAD_LINE: Refusal = Refusal::bad("the request line is malformed\n");
const BAD_NAME: Refusal = Refusal::bad("a field name is malformed\n");
const BAD_VALUE: Refusal = Refusal::bad("a field value is malformed\n");
const UNKNOWN_METHOD: Refusal = Refusal::new(501, "the method is not known here\n");
const BARE_LF: Refusal = Refusal::bad("a line does not end in CRLF\n");

const TOO_MANY: &str = "there are too many fields\n";

/// Why bytes are no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// They are the beginning of one.
    Partial,
    /// They can never be one, or not one that is answered.
    Refused(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

/// Parses the head at the beginning of `bytes`. Before an empty line there is none: the reader has
/// to remove those that it allows (RFC 9112, 2.2).
///
/// The same bytes come to the same end however they were cut: what is refused is what the shortest
/// prefix that decides it is refused for.
pub(crate) fn parse(bytes: &[u8], config: &Config) -> Result<Head, Stop> {
    if let [b'\n', ..] | [b'\r'] | [b'\r', b'\n', ..] = bytes {
        return Err(Stop::Partial);
    }
    let limits = &config.limits;
    let bytes = &bytes[..bytes.len().min(limits.head)];
    // In small reads, the limit of the line would be met before what follows it is seen.
    let long_line = bytes.get(..limits.request_line.saturating_add(2));
    let long_line = long_line.filter(|line| !line.contains(&b'\n'));
    match parse_lines(long_line.unwrap_or(bytes), config) {
        Err(Stop::Partial) if long_line.is_some() => Err(line_too_long(bytes, limits).into()),
        Err(Stop::Partial) if bytes.len() >= limits.head => {
            const WHY: &str = "the head is too long\n";
            Err(Refusal::over(431, WHY, "head_bytes", limits.head as u64).into())
        }
        parsed => parsed,
    }
}

/// A line without a space is all method, and too long for one that is known (RFC 9112, 3).
fn line_too_long(bytes: &[u8], limits: &Limits) -> Refusal {
    if !bytes[..limits.request_line.min(bytes.len())].contains(&b' ') {
        return UNKNOWN_METHOD;
    }
    const WHY: &str = "the request line is too long\n";
    Refusal::over(414, WHY, "request_line_bytes", limits.request_line as u64)
}

/// Parses the lines. Whether all of them are well-formed is told first, then what they say.
fn parse_lines(bytes: &[u8], config: &Config) -> Result<Head, Stop> {
    let limits = &config.limits;
    let mut lines = Lines { rest: bytes };
    let name = lines.word(run(TOKEN, bytes), b' ', BAD_LINE)?;
    let start = name.len() + 1;
    let (target, query, end) = lines.target()?;
    let version = lines.version()?;
    let line = bytes.len() - lines.rest.len();
    let is_crlf = lines.line_end(BAD_LINE)?;
    let fields = bytes.len() - lines.rest.len();
    let mut seen = Seen::default();
    lines.fields(&mut seen, version, config)?;
    let len = bytes.len() - lines.rest.len();
    if line > limits.request_line {
        return Err(line_too_long(bytes, limits).into());
    }
    check(config.bare_lf || is_crlf && bytes[..len].ends_with(b"\r\n\r\n"), BARE_LF)?;
    seen.wrong.map_or(Ok(()), Err)?;
    let method = known_method(name)?;
    check(target.len() == end, BAD_TARGET)?;
    let authority = authority(target, start, method)?;
    let (framing, keep_alive) = seen.finish(version, limits)?;
    let has_body = framing != Framing::Length(0);
    check(!has_body || method != Method::Trace, Refusal::bad("a TRACE has no body\n"))?;
    Ok(Head {
        len,
        method,
        no_body: name == b"HEAD",
        version,
        authority,
        path: Span { start: authority.end, end: start + query },
        query: Span { start: start + query, end: start + end },
        fields,
        framing,
        keep_alive,
        expects: seen.expects && has_body,
    })
}

/// What is left of the lines of a head.
struct Lines<'b> {
    rest: &'b [u8],
}

impl<'b> Lines<'b> {
    /// The next `len` bytes, one at least. `end` has to follow them.
    #[inline]
    fn word(&mut self, len: usize, end: u8, why: Refusal) -> Result<&'b [u8], Stop> {
        let (word, rest) = self.rest.split_at(len);
        match rest {
            [byte, rest @ ..] if *byte == end && len > 0 => {
                self.rest = rest;
                Ok(word)
            }
            [] => Err(Stop::Partial),
            _ => Err(Stop::Refused(why)),
        }
    }

    /// The target, where in it the query begins, and where what may stand in it ends.
    #[inline]
    fn target(&mut self) -> Result<(&'b [u8], usize, usize), Stop> {
        let query = run(PATH, self.rest);
        let end = query + run(TARGET, &self.rest[query..]);
        let target = self.word(end + run(WORD, &self.rest[end..]), b' ', BAD_LINE)?;
        check(target.len() == end || std::str::from_utf8(target).is_ok(), BAD_LINE)?;
        Ok((target, query, end))
    }

    /// A later minor version is served as 1.1 (RFC 9110, 2.5). Of any other version, the whole line
    /// tells whether it is one.
    fn version(&mut self) -> Result<Version, Stop> {
        if let Some([minor @ b'0'..=b'9', rest @ ..]) = self.rest.strip_prefix(b"HTTP/1.") {
            self.rest = rest;
            return Ok(if *minor == b'0' { Version::Http10 } else { Version::Http11 });
        }
        let end = self.rest.iter().position(|byte| *byte == b'\n').ok_or(Stop::Partial)?;
        Err(Stop::Refused(match self.rest[..end].trim_ascii_end() {
            [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => {
                Refusal::new(505, "only HTTP/1.0 and HTTP/1.1 are spoken here\n")
            }
            _ => BAD_LINE,
        }))
    }

    /// Reads the field lines and the empty line.
    fn fields(&mut self, seen: &mut Seen, version: Version, config: &Config) -> Result<(), Stop> {
        let most = config.limits.fields.min(FIELDS);
        let mut count = 0;
        while !matches!(self.rest, [b'\r' | b'\n', ..]) {
            let name = self.word(run(TOKEN, self.rest), b':', BAD_NAME)?;
            let (value, rest) = self.rest.split_at(run(TEXT, self.rest));
            self.rest = rest;
            let is_crlf = self.line_end(BAD_VALUE)?;
            count += 1;
            check(count <= most, Refusal::over(431, TOO_MANY, "fields", most as u64))?;
            if seen.wrong.is_some() {
                continue;
            }
            if !is_crlf && !config.bare_lf {
                seen.wrong = Some(BARE_LF);
            } else if let Err(wrong) = seen.field(name, value.trim_ascii(), version) {
                seen.wrong = Some(wrong);
            }
        }
        self.line_end(BAD_LINE).map(drop)
    }

    /// Whether the line ends in CRLF and not in LF alone; it has to end here.
    #[inline]
    fn line_end(&mut self, why: Refusal) -> Result<bool, Stop> {
        let (rest, is_crlf) = match self.rest {
            [b'\r', b'\n', rest @ ..] => (rest, true),
            [b'\n', rest @ ..] => (rest, false),
            [] | [b'\r'] => return Err(Stop::Partial),
            _ => return Err(Stop::Refused(why)),
        };
        self.rest = rest;
        Ok(is_crlf)
    }
}

/// The method of that name. HEAD is shown as GET.
fn known_method(name: &[u8]) -> Result<Method, Refusal> {
    Ok(match name {
        b"GET" | b"HEAD" => Method::Get,
        b"POST" => Method::Post,
        b"PUT" => Method::Put,
        b"DELETE" => Method::Delete,
        b"PATCH" => Method::Patch,
        b"OPTIONS" => Method::Options,
        b"TRACE" => Method::Trace,
        _ => return Err(UNKNOWN_METHOD),
    })
}
