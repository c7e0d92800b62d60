//! The fields that say how a message is framed and how its connection goes on (RFC 9112, 6 and 9).
//!
//! Pure. It may not look at other fields.

use super::head::{Framing, Version};
use super::limits::Limits;
use super::status::{Refusal, check};
use super::target::is_host;

const TWO_LENGTHS: Refusal = Refusal::bad("there is more than one Content-Length field\n");
const TWO_FRAMINGS: Refusal =
    Refusal::bad("there are both Content-Length and Transfer-Encoding fields\n");
const NOT_CHUNKED: Refusal =
    Refusal::bad("the Transfer-Encoding field does not end in one chunked\n");
const UNKNOWN_CODING: Refusal = Refusal::new(501, "no transfer coding but chunked is known here\n");
const UNEXPECTED: Refusal = Refusal::new(417, "the expectation is not known here\n");

/// What the fields that matter said so far.
#[derive(Default)]
pub(crate) struct Seen {
    host: bool,
    length: Option<u64>,
    /// The transfer codings, in all fields together (RFC 9110, 5.3).
    codings: usize,
    /// How many of them are `chunked`, the only one that is known.
    chunked: usize,
    /// Whether the last one is.
    ends_chunked: bool,
    close: bool,
    keep_alive: bool,
    /// Whether the client waits for a 100.
    pub(crate) expects: bool,
    /// The first thing that was wrong.
    pub(crate) wrong: Option<Refusal>,
}

impl Seen {
    /// Reads a field, which most often does not matter.
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
            check(is_host(value), Refusal::bad("the Host field is malformed\n"))?;
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

    /// How the body is framed, and whether the connection may go on after the answer.
    pub(crate) fn finish(
        &self,
        version: Version,
        limits: &Limits,
    ) -> Result<(Framing, bool), Refusal> {
        let is_new = version == Version::Http11;
        check(self.host || !is_new, Refusal::bad("there is no Host field\n"))?;
        let keep_alive = !self.close && (is_new || self.keep_alive);
        if self.codings > 0 {
            check(self.length.is_none(), TWO_FRAMINGS)?;
            // Else nobody knows where the body ends (RFC 9112, 6.3).
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

/// The members of a list; empty ones do not count.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let members = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    members.filter(|member| !member.is_empty())
}

pub(crate) fn body_too_long(most: u64) -> Refusal {
    Refusal::over(413, "the body is too long\n", "body_bytes", most)
}

/// A length is digits alone: `parse` would also take a sign.
fn length(value: &[u8]) -> Result<u64, Refusal> {
    let text = std::str::from_utf8(value).ok();
    let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let length = digits.and_then(|digits| digits.parse().ok());
    length.ok_or(Refusal::bad("the Content-Length field is malformed\n"))
}
