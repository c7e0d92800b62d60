//! The head of a request: how it is parsed, and what it says. The client parses the lines of a
//! response by the same [`HeadLines`].
//!
//! A *head* is the request line, the field lines and the empty line (RFC 9112, 2 to 6). [`parse`]
//! reads it in one pass, strictly. The result, [`Head`], keeps offsets into the bytes and copies
//! nothing. A head that breaks a rule becomes a [`Refusal`], which has the status of the server's
//! response.
//!
//! Pure functions over bytes. They must not read, write or wait.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use crate::http::limits::Limits;
use crate::limits::FIELDS;

/// A method that the server knows. Any other method is answered with 501.
///
/// HEAD is not listed: the handler sees [`Method::Get`], and the connection leaves out the body of
/// the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET, which asks for a resource. Also used for HEAD.
    Get,
    /// POST, which submits data.
    Post,
    /// PUT, which replaces a resource.
    Put,
    /// DELETE, which removes a resource.
    Delete,
    /// PATCH, which changes a part of a resource.
    Patch,
    /// OPTIONS, which asks for the methods of a resource.
    Options,
    /// TRACE, which asks for the request back, as the server received it.
    Trace,
}

/// The version that a client speaks. The server responds as 1.1, within what the client can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: no chunks, closes unless asked to keep alive.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// Whether the sender of a head wants the connection to continue (RFC 9112, 9.3). `close` and
/// `keep_alive` are set if a `Connection` field has that option.
pub(crate) fn wants_more(version: Version, close: bool, keep_alive: bool) -> bool {
    !close && (version == Version::Http11 || keep_alive)
}

/// The framing of a request's body: how its end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
}

/// A range of bytes of a head, counted from its first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start..self.end]
    }
}

/// A head that passed all checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The length of the head in bytes, with the empty line at its end.
    pub(crate) len: usize,
    pub(crate) method: Method,
    /// Whether the method was HEAD.
    pub(crate) no_body: bool,
    pub(crate) version: Version,
    /// The authority of an absolute target; otherwise empty.
    pub(crate) authority: Span,
    /// The path; empty for an absolute target without one.
    pub(crate) path: Span,
    /// The query with its question mark; empty if there is none.
    pub(crate) query: Span,
    /// The place where the field lines begin.
    pub(crate) fields: usize,
    pub(crate) framing: Framing,
    pub(crate) keep_alive: bool,
    /// Whether the client waits for a `100 Continue` before it sends the body.
    pub(crate) expects: bool,
}

impl Head {
    /// A placeholder for a head that was refused.
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

    /// The path to show to a handler, given the path in the request. For an absolute target without
    /// a path, that is `/` or `*`.
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

/// The names and the values of a query, decoded.
pub(crate) fn query_pairs(
    query: Option<&str>,
) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    form_urlencoded::parse(query.unwrap_or_default().as_bytes())
}

/// The part of a path that a parameter of its route matches, not decoded. A parameter is a whole
/// segment: `{name}`, or, at the end, `{*name}` for all remaining segments.
pub(crate) fn param<'p>(route: &str, path: &'p str, name: &str) -> Option<&'p str> {
    let mut rest = path;
    for segment in route.split('/') {
        let found = segment.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        match found.map(|it| it.strip_prefix('*').ok_or(it)) {
            Some(Ok(found)) if found == name => return Some(rest),
            Some(Err(found)) if found == name => return rest.split('/').next(),
            _ => {}
        }
        rest = rest.split_once('/').map_or("", |(_, rest)| rest);
    }
    None
}

/// The values of the fields called `name`, among the field lines of a head that was accepted.
pub(crate) fn values<'h>(fields: &'h [u8], name: &str) -> impl Iterator<Item = &'h [u8]> {
    fields.split(|byte| *byte == b'\n').filter_map(move |line| {
        let (found, rest) = line.split_at_checked(name.len())?;
        let [b':', value @ ..] = rest else { return None };
        found.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
    })
}

// ---- Refusals -----------------------------------------------------------------------------------

/// The refusal of a request: the response that the server sends instead of the handler's. The
/// connection closes after this response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// One sentence, which is the body of the response.
    pub(crate) why: &'static str,
    /// The limit that the request hit, for the log. `None` if the refusal has another reason.
    pub(crate) cap: Option<Cap>,
}

/// The name and the value of a limit that was hit, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cap {
    pub(crate) name: &'static str,
    pub(crate) limit: u64,
}

impl Refusal {
    pub(crate) const fn new(status: u16, why: &'static str) -> Refusal {
        Refusal { status, why, cap: None }
    }

    /// Makes the refusal of a request that breaks a rule, with status 400.
    pub(crate) const fn bad(why: &'static str) -> Refusal {
        Refusal::new(400, why)
    }

    pub(crate) const fn over(
        status: u16,
        why: &'static str,
        name: &'static str,
        limit: u64,
    ) -> Refusal {
        Refusal { status, why, cap: Some(Cap { name, limit }) }
    }
}

/// The refusal of a request that arrives after the grace of a drain, or that the end of the drain
/// cuts off.
pub(crate) const STOPS: Refusal = Refusal::new(503, "the server stops\n");

/// The refusal of a connection over the limit. It has no body, because the server has not read
/// whether the request is a HEAD.
pub(crate) const FULL: Refusal = Refusal::new(503, "");

/// The refusal of a request that gives way to another connection.
pub(crate) const CROWDED: Refusal = Refusal::new(503, "there are too many connections\n");

/// Returns the refusal `otherwise` unless the condition holds.
#[inline(always)]
pub(crate) fn check(holds: bool, otherwise: Refusal) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(otherwise) }
}

// ---- Classes of bytes ---------------------------------------------------------------------------

/// The class of the bytes of a token, such as a method or a field name (RFC 9110, 5.6.2).
pub(crate) const TOKEN: u8 = 1;
/// The class of the bytes of a field value, or of text in quotes (RFC 9110, 5.5).
pub(crate) const TEXT: u8 = 2;
/// The class of the bytes that the parser of the request line counts as the target, valid or not.
pub(crate) const WORD: u8 = 4;
/// The class of the bytes of a target (RFC 9112, 3.2). Of visible ASCII, only `#` is not allowed.
pub(crate) const TARGET: u8 = 8;
/// The class of the bytes of a target before its query.
pub(crate) const PATH: u8 = 16;
/// The class of the bytes of a host name: unreserved and sub-delims (RFC 3986, 2.2 and 2.3).
pub(crate) const HOST: u8 = 32;

static CLASSES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = classes(byte as u8);
        byte += 1;
    }
    table
};

const fn classes(byte: u8) -> u8 {
    let others = match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => TOKEN | HOST,
        b'!' | b'$' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'_' | b'~' => TOKEN | HOST,
        b'#' | b'%' | b'^' | b'`' | b'|' => TOKEN,
        b'(' | b')' | b',' | b';' | b'=' => HOST,
        _ => 0,
    };
    match byte {
        b'#' | 0x80.. => others | TEXT | WORD,
        b'?' => others | TEXT | WORD | TARGET,
        b'!'..=b'~' => others | TEXT | WORD | TARGET | PATH,
        b' ' | b'\t' => TEXT,
        _ => 0,
    }
}

/// Whether `byte` is in the class `class`.
pub(crate) fn is(class: u8, byte: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// The number of bytes at the beginning of `bytes` that are in the class `class`.
#[inline]
pub(crate) fn run(class: u8, bytes: &[u8]) -> usize {
    let end = |bytes: &[u8]| bytes.iter().position(|byte| !is(class, *byte));
    // The compiler unrolls a loop of fixed length, so a byte takes half of the instructions.
    let (pieces, rest) = bytes.as_chunks::<4>();
    for (n, piece) in pieces.iter().enumerate() {
        if let Some(end) = end(piece) {
            return 4 * n + end;
        }
    }
    4 * pieces.len() + end(rest).unwrap_or(rest.len())
}

/// The number of bytes at the beginning of `bytes` that are in the class [`TEXT`].
///
/// A byte other than a tab is text if it passes two comparisons. In a piece of fixed length the
/// compiler makes them for all bytes at once, because no branch is among them. Values of browsers
/// have hundreds of bytes.
#[inline]
fn run_of_text(bytes: &[u8]) -> usize {
    let is_plain = |piece: &&[u8; 16]| {
        let is_text = |byte: &u8| *byte >= b' ' && *byte != 0x7f;
        piece.iter().fold(true, |all, byte| all & is_text(byte))
    };
    let pieces = bytes.as_chunks().0;
    let plain = 16 * pieces.iter().take_while(is_plain).count();
    plain + run(TEXT, &bytes[plain..])
}

// ---- Fields -------------------------------------------------------------------------------------

const TWO_LENGTHS: Refusal = Refusal::bad("there is more than one Content-Length field\n");
const TWO_FRAMINGS: Refusal =
    Refusal::bad("there are both Content-Length and Transfer-Encoding fields\n");
const NOT_CHUNKED: Refusal =
    Refusal::bad("the Transfer-Encoding field does not end in one chunked\n");
const UNKNOWN_CODING: Refusal = Refusal::new(501, "no transfer coding but chunked is known here\n");
const UNEXPECTED: Refusal = Refusal::new(417, "the expectation is not known here\n");

/// The content of the fields that the server itself interprets, as far as they have been read.
#[derive(Default)]
pub(crate) struct Seen {
    host: bool,
    length: Option<u64>,
    /// The number of transfer codings, in all `Transfer-Encoding` fields together (RFC 9110, 5.3).
    codings: usize,
    /// The number of transfer codings that are `chunked`, the only known coding.
    chunked: usize,
    /// Whether the last coding is `chunked`.
    ends_chunked: bool,
    close: bool,
    keep_alive: bool,
    /// Whether the client waits for a `100 Continue`.
    pub(crate) expects: bool,
}

impl Seen {
    /// Reads a field, and notes its content if the server itself interprets the field.
    #[inline(never)]
    pub(crate) fn field(
        &mut self,
        name: &[u8],
        value: &[u8],
        version: Version,
    ) -> Result<(), Refusal> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("host") {
            check(!self.host, Refusal::bad("there is more than one Host field\n"))?;
            check(is_host_field(value), Refusal::bad("the Host field is malformed\n"))?;
            self.host = true;
        } else if is("connection") {
            for option in list(value) {
                self.close |= option.eq_ignore_ascii_case(b"close");
                self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if is("content-length") {
            check(self.length.is_none(), TWO_LENGTHS)?;
            self.length = Some(length(value)?);
        } else if is("transfer-encoding") {
            check(version == Version::Http11, Refusal::bad("HTTP/1.0 has no Transfer-Encoding\n"))?;
            for coding in value.split(|byte| *byte == b',') {
                self.ends_chunked = coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
                self.chunked += usize::from(self.ends_chunked);
                self.codings += 1;
            }
        } else if is("expect") && version == Version::Http11 {
            for member in list(value) {
                check(member.eq_ignore_ascii_case(b"100-continue"), UNEXPECTED)?;
                self.expects = true;
            }
        }
        Ok(())
    }

    /// The framing of the body, and whether the connection may continue after the response.
    pub(crate) fn finish(
        &self,
        version: Version,
        limits: &Limits,
    ) -> Result<(Framing, bool), Refusal> {
        let is_new = version == Version::Http11;
        check(self.host || !is_new, Refusal::bad("there is no Host field\n"))?;
        let keep_alive = wants_more(version, self.close, self.keep_alive);
        if self.codings > 0 {
            check(self.length.is_none(), TWO_FRAMINGS)?;
            // Otherwise the end of the body would not be known (RFC 9112, 6.3).
            check(self.ends_chunked && self.chunked == 1, NOT_CHUNKED)?;
            // `identity` was a coding until RFC 7230 and is none now (RFC 9112, 7).
            check(self.codings == 1, UNKNOWN_CODING)?;
            return Ok((Framing::Chunked, keep_alive));
        }
        let length = self.length.unwrap_or(0);
        check(length <= limits.body, body_too_long(limits.body))?;
        Ok((Framing::Length(length), keep_alive))
    }
}

/// The members of a field value that is a list. Leaves out empty members.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let members = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    members.filter(|member| !member.is_empty())
}

pub(crate) fn body_too_long(most: u64) -> Refusal {
    Refusal::over(413, "the body is too long\n", "body_bytes", most)
}

/// Parses a `Content-Length` value, which consists of digits only. `parse` alone would also accept
/// a sign.
pub(crate) fn length(value: &[u8]) -> Result<u64, Refusal> {
    let text = std::str::from_utf8(value).ok();
    let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let length = digits.and_then(|digits| digits.parse().ok());
    length.ok_or(Refusal::bad("the Content-Length field is malformed\n"))
}

// ---- Targets ------------------------------------------------------------------------------------

pub(crate) const BAD_TARGET: Refusal = Refusal::bad("the request target is malformed\n");

const HTTPS: Refusal = Refusal::new(421, "https is not spoken on this connection\n");

/// Returns the place of the authority in a target that begins at `at`. Without an authority, the
/// path begins at once. CONNECT is the only method with an authority alone, and is not known here.
pub(crate) fn authority(target: &[u8], at: usize, method: Method) -> Result<Span, Refusal> {
    if target[0] == b'/' || (target == b"*" && method == Method::Options) {
        return Ok(Span { start: at, end: at });
    }
    let begins = |scheme: &[u8]| {
        target.get(..scheme.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(scheme))
    };
    // RFC 9110, 7.4: no such response over a connection that is not secured.
    check(!begins(b"https://"), HTTPS)?;
    check(begins(b"http://"), BAD_TARGET)?;
    let start = "http://".len();
    let rest = &target[start..];
    let len = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    check(is_host(&rest[..len]), BAD_TARGET)?;
    Ok(Span { start: at + start, end: at + start + len })
}

/// Whether `value` is a valid Host field: a host and perhaps a port, or nothing, from a client
/// whose target has no host (RFC 9112, 3.2).
pub(crate) fn is_host_field(value: &[u8]) -> bool {
    value.is_empty() || is_host(value)
}

/// Whether `value` is a host and perhaps a port. `http` has no empty host (RFC 9110, 4.2.1).
pub(crate) fn is_host(mut value: &[u8]) -> bool {
    if let [] | [b':', ..] = value {
        return false;
    }
    if let [b'[', rest @ ..] = value {
        let Some(end) = rest.iter().position(|byte| *byte == b']') else { return false };
        return is_address(&rest[..end]) && is_port(&rest[end + 1..]);
    }
    loop {
        match &value[run(HOST, value)..] {
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                value = rest;
            }
            port => return is_port(port),
        }
    }
}

/// Whether `port` is empty, or a colon and digits up to 65535 (RFC 3986, 3.2.3). The colon may have
/// no digit after it, or any number of leading zeros.
fn is_port(port: &[u8]) -> bool {
    let Some((b':', digits)) = port.split_first() else { return port.is_empty() };
    let number = digits.iter().try_fold(0, |number: u32, digit| {
        let number = number * 10 + char::from(*digit).to_digit(10)?;
        (number <= u16::MAX.into()).then_some(number)
    });
    number.is_some()
}

/// Whether `address` is allowed in the brackets of a host: an address of IPv6, or of a later
/// version.
fn is_address(address: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(address) else { return false };
    let Some(later) = text.strip_prefix(['v', 'V']) else {
        return text.parse::<Ipv6Addr>().is_ok();
    };
    later.split_once('.').is_some_and(|(version, rest)| {
        let is_hexadecimal = version.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_plain = rest.bytes().all(|byte| is(HOST, byte) || byte == b':');
        !version.is_empty() && is_hexadecimal && !rest.is_empty() && is_plain
    })
}

// ---- Parsing ------------------------------------------------------------------------------------

const BAD_LINE: Refusal = Refusal::bad("the request line is malformed\n");
const BAD_NAME: Refusal = Refusal::bad("a field name is malformed\n");
const BAD_VALUE: Refusal = Refusal::bad("a field value is malformed\n");
const UNKNOWN_METHOD: Refusal = Refusal::new(501, "the method is not known here\n");
const BARE_LF: Refusal = Refusal::bad("a line does not end in CRLF\n");

const TOO_MANY: &str = "there are too many fields\n";

/// The size, in bytes, below which a head counts as small.
const SMALL: usize = 2048;

/// Whether to parse an incomplete head again, after its first `seen` bytes were parsed. A small
/// head is parsed again after every read. A large head is parsed again after every line, so that
/// the work is not quadratic.
pub(crate) fn is_worth_parsing(rest: &[u8], seen: usize, limits: &Limits) -> bool {
    let line = limits.request_line.saturating_add(1);
    rest.len() < SMALL
        || rest[seen..].contains(&b'\n')
        || (seen <= line && rest.len() > line)
        || rest.len() >= limits.head
}

/// The reason why [`parse`] returns no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The bytes are the beginning of a head.
    Partial,
    /// The bytes can never be a head, or the head is refused.
    Refused(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

/// Parses the head at the beginning of `bytes`. The caller must remove the empty lines that it
/// allows (RFC 9112, 2.2).
///
/// The result does not depend on how the bytes were split, because the shortest prefix that decides
/// a refusal also decides its reason.
pub(crate) fn parse(bytes: &[u8], limits: &Limits, bare_lf: bool) -> Result<Head, Stop> {
    if let [b'\n', ..] | [b'\r'] | [b'\r', b'\n', ..] = bytes {
        return Err(Stop::Partial);
    }
    let bytes = &bytes[..bytes.len().min(limits.head)];
    // With small reads, the limit of the line would be reached before the bytes after it.
    let long_line = bytes.get(..limits.request_line.saturating_add(2));
    let long_line = long_line.filter(|line| !line.contains(&b'\n'));
    match parse_lines(long_line.unwrap_or(bytes), limits, bare_lf) {
        Err(Stop::Partial) if long_line.is_some() => Err(line_too_long(bytes, limits).into()),
        Err(Stop::Partial) if bytes.len() >= limits.head => {
            const WHY: &str = "the head is too long\n";
            Err(Refusal::over(431, WHY, "head_bytes", limits.head as u64).into())
        }
        parsed => parsed,
    }
}

/// The refusal of a request line that is too long. A line without a space is a method only, and is
/// too long for a known method (RFC 9112, 3).
fn line_too_long(bytes: &[u8], limits: &Limits) -> Refusal {
    if !bytes[..limits.request_line.min(bytes.len())].contains(&b' ') {
        return UNKNOWN_METHOD;
    }
    const WHY: &str = "the request line is too long\n";
    Refusal::over(414, WHY, "request_line_bytes", limits.request_line as u64)
}

/// Parses the lines of a head. First checks that all lines are well-formed, and then their content.
fn parse_lines(bytes: &[u8], limits: &Limits, bare_lf: bool) -> Result<Head, Stop> {
    let mut lines = HeadLines { rest: bytes };
    let name = lines.word(run(TOKEN, bytes), b' ', BAD_LINE)?;
    let start = name.len() + 1;
    let (target, query, end) = lines.target()?;
    let version = lines.version()?;
    let line = bytes.len() - lines.rest.len();
    let is_crlf = lines.line_end(BAD_LINE)?;
    let fields = bytes.len() - lines.rest.len();
    let mut seen = Seen::default();
    let read = |name: &[u8], value: &[u8]| seen.field(name, value, version);
    let wrong = lines.fields(limits.fields.min(FIELDS), bare_lf, read)?;
    let len = bytes.len() - lines.rest.len();
    if line > limits.request_line {
        return Err(line_too_long(bytes, limits).into());
    }
    check(bare_lf || is_crlf, BARE_LF)?;
    wrong.map_or(Ok(()), Err)?;
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

/// The lines of a head that are not parsed yet: of a request, or of a response, which a client
/// reads.
pub(crate) struct HeadLines<'b> {
    pub(crate) rest: &'b [u8],
}

impl<'b> HeadLines<'b> {
    /// Takes the status line of a response. The status is any three digits. The reason can be
    /// missing, even with the space before it. Returns `None` if the line is malformed.
    pub(crate) fn status_line(&mut self) -> Option<(Version, u16)> {
        let version = self.version().ok()?;
        let (code, rest) = self.rest.strip_prefix(b" ")?.split_at_checked(3)?;
        let digits = code.iter().map(|byte| char::from(*byte).to_digit(10));
        let status = digits.reduce(|status, digit| Some(status? * 10 + digit?))??;
        let reason = if rest.starts_with(b" ") { run(TEXT, rest) } else { 0 };
        self.rest = &rest[reason..];
        let is_crlf = self.line_end(BAD_LINE).ok()?;
        is_crlf.then_some((version, status as u16))
    }

    /// Takes the next word, which has `len` bytes, at least one. The byte `end` must follow the
    /// word.
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

    /// Takes the target of the request line. Returns the target, the place of its query, and the
    /// place of the first byte that is not allowed.
    #[inline]
    fn target(&mut self) -> Result<(&'b [u8], usize, usize), Stop> {
        let query = run(PATH, self.rest);
        let end = query + run(TARGET, &self.rest[query..]);
        let target = self.word(end + run(WORD, &self.rest[end..]), b' ', BAD_LINE)?;
        check(target.len() == end || std::str::from_utf8(target).is_ok(), BAD_LINE)?;
        Ok((target, query, end))
    }

    /// Takes the version of the request line. A later minor version is served as 1.1 (RFC 9110,
    /// 2.5). For other bytes, the whole rest of the line decides whether they are a version.
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

    /// Reads the field lines, at most `most`, and the empty line. Passes each name and value to
    /// `read` until a line breaks a rule. Returns the refusal of the first such line.
    #[inline]
    pub(crate) fn fields(
        &mut self,
        most: usize,
        bare_lf: bool,
        mut read: impl FnMut(&[u8], &[u8]) -> Result<(), Refusal>,
    ) -> Result<Option<Refusal>, Stop> {
        let (mut count, mut wrong) = (0, None);
        while !matches!(self.rest, [b'\r' | b'\n', ..]) {
            let name = self.word(run(TOKEN, self.rest), b':', BAD_NAME)?;
            let (value, rest) = self.rest.split_at(run_of_text(self.rest));
            self.rest = rest;
            let is_crlf = self.line_end(BAD_VALUE)?;
            count += 1;
            check(count <= most, Refusal::over(431, TOO_MANY, "fields", most as u64))?;
            if wrong.is_some() {
                continue;
            }
            if !is_crlf && !bare_lf {
                wrong = Some(BARE_LF);
            } else if let Err(refusal) = read(name, value.trim_ascii()) {
                wrong = Some(refusal);
            }
        }
        if !self.line_end(BAD_LINE)? && !bare_lf {
            wrong = wrong.or(Some(BARE_LF));
        }
        Ok(wrong)
    }

    /// Takes the end of the line, which must come next. Returns whether the line ends in CRLF, and
    /// not in LF alone.
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

/// The method called `name`. HEAD becomes GET.
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

#[cfg(test)]
mod tests {
    use super::{Version, is_host, is_host_field, wants_more};

    #[test]
    fn hosts_are_names_addresses_and_ports_and_nothing_else() {
        for good in [
            "a",
            "a.example:80",
            "a:0",
            "a:65535",
            "a:000080",
            "[::1]:0000065535",
            "127.0.0.1:",
            "[::1]",
            "[::1]:8080",
            "%41b",
            "a_b",
            "[v1.a:b]",
        ] {
            assert!(is_host(good.as_bytes()) && is_host_field(good.as_bytes()), "{good}");
        }
        for bad in [
            ":",
            ":80",
            "a b",
            "a/b",
            "u@a",
            "a:b",
            "a:65536",
            "a:123456",
            "a:99999999999999999999",
            "a:+80",
            "a:-1",
            "a:80:80",
            "[::1]:65536",
            "[::1",
            "[]",
            "[::1]x",
            "%4",
            "a,b c",
            "[:::]",
            "[1]",
            "[::1%25eth0]",
            "[v.a]",
            "[v1]",
            "[v1.]",
            "[\u{e9}]",
            "a\u{e9}",
        ] {
            assert!(!is_host(bad.as_bytes()) && !is_host_field(bad.as_bytes()), "{bad}");
        }
        // Only a field may be empty.
        assert!(!is_host(b"") && is_host_field(b""));
    }

    #[test]
    fn a_head_says_whether_its_sender_wants_more() {
        use Version::{Http10, Http11};
        let table = [
            (Http11, false, false, true),
            (Http11, false, true, true),
            (Http11, true, true, false),
            (Http10, false, false, false),
            (Http10, false, true, true),
            (Http10, true, true, false),
        ];
        for (version, close, keep_alive, wants) in table {
            assert_eq!(wants_more(version, close, keep_alive), wants);
        }
    }

    #[test]
    fn a_run_ends_at_the_first_byte_of_another_class_wherever_it_is() {
        use super::{TARGET, TEXT, is, run, run_of_text};

        for byte in 0..=u8::MAX {
            for (len, at) in (0..40).flat_map(|len| (0..len).map(move |at| (len, at))) {
                let mut bytes = vec![b'x'; len];
                bytes[at] = byte;
                let end = |class| if is(class, byte) { len } else { at };
                assert_eq!(run_of_text(&bytes), end(TEXT), "{byte} at {at} of {len}");
                assert_eq!(run(TARGET, &bytes), end(TARGET), "{byte} at {at} of {len}");
            }
        }
    }
}
