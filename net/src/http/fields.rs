//! The fields that say how a message is framed and how its connection goes on (RFC 9112, 6 and 9).
//!
//! Pure. It may not look at other fields.

use super::head::{Framing, Version};
use super::limits::Limits;
use super::status::Refusal;
use super::target::is_host;

/// What the fields that matter said so far.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) host: bool,
    length: Option<u64>,
    codings: Codings,
    pub(crate) close: bool,
    keep_alive: bool,
    pub(crate) expects: bool,
}

impl Seen {
    /// The name's length tells most fields apart, the others cost one comparison.
    #[inline]
    pub(crate) fn field(
        &mut self,
        name: &[u8],
        value: &[u8],
        version: Version,
    ) -> Result<(), Refusal> {
        match name.len() {
            4 if is(name, b"host") => {
                if self.host {
                    return Err(Refusal::bad("there is more than one Host field\n"));
                }
                if !is_host(value) {
                    return Err(Refusal::bad("the Host field is malformed\n"));
                }
                self.host = true;
            }
            6 if is(name, b"expect") && version == Version::Http11 => {
                for member in list(value) {
                    if !member.eq_ignore_ascii_case(b"100-continue") {
                        return Err(Refusal::new(417, "the expectation is not known here\n"));
                    }
                    self.expects = true;
                }
            }
            // As nearly all say it, alone.
            10 if is(name, b"connection") && is(value, b"close") => self.close = true,
            10 if is(name, b"connection") && is(value, b"keep-alive") => self.keep_alive = true,
            10 if is(name, b"connection") => {
                for option in list(value) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if is(name, b"content-length") => {
                if self.length.is_some() {
                    return Err(Refusal::bad("there is more than one Content-Length field\n"));
                }
                self.length = Some(digits(value)?);
            }
            17 if is(name, b"transfer-encoding") => {
                if version == Version::Http10 {
                    return Err(Refusal::bad("HTTP/1.0 has no Transfer-Encoding\n"));
                }
                value.split(|byte| *byte == b',').for_each(|coding| self.codings.add(coding));
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn finish(
        &self,
        version: Version,
        limits: &Limits,
    ) -> Result<(Framing, bool), Refusal> {
        let keep_alive = match version {
            Version::Http11 if !self.host => {
                return Err(Refusal::bad("there is no Host field\n"));
            }
            Version::Http11 => !self.close,
            Version::Http10 => self.keep_alive && !self.close,
        };
        let framing = match (self.codings, self.length) {
            (Codings::None, length) => Framing::Length(length.unwrap_or(0)),
            (_, Some(_)) => {
                return Err(Refusal::bad(
                    "there are both Content-Length and Transfer-Encoding fields\n",
                ));
            }
            (Codings::Chunked, None) => Framing::Chunked,
            (Codings::OtherThenChunked, None) => {
                const WHY: &str = "no transfer coding but chunked is known here\n";
                return Err(Refusal::new(501, WHY));
            }
            (Codings::Others | Codings::Broken, None) => {
                const WHY: &str = "the Transfer-Encoding field does not end in one chunked\n";
                return Err(Refusal::bad(WHY));
            }
        };
        match framing {
            Framing::Length(length) if length > limits.body => Err(body_too_long(limits)),
            _ => Ok((framing, keep_alive)),
        }
    }
}

/// Whether a name or a value, neither of which has a CR, is `lower` in any case. No other byte
/// becomes a small letter or a hyphen by this bit, so there is no branch for each of them.
#[inline]
fn is<const N: usize>(text: &[u8], lower: &[u8; N]) -> bool {
    let Ok(text) = <&[u8; N]>::try_from(text) else { return false };
    let others = text.iter().zip(lower).map(|(byte, lower)| (byte | 0x20) ^ lower);
    others.fold(0, |all, other| all | other) == 0
}

/// The members of a list; empty ones do not count.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let members = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    members.filter(|member| !member.is_empty())
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

/// The transfer codings of a request, in all its fields together (RFC 9110, 5.3).
///
/// Only `chunked` is known. `identity` was a coding until RFC 7230 and is none now, so it is as
/// unknown as any other (RFC 9112, 7). Where `chunked` is not the last one, or not the only one of
/// its kind, nobody knows where the body ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Codings {
    #[default]
    None,
    Chunked,
    Others,
    OtherThenChunked,
    Broken,
}

impl Codings {
    fn add(&mut self, coding: &[u8]) {
        let coding = coding.trim_ascii();
        let is_chunked = coding.eq_ignore_ascii_case(b"chunked");
        *self = match self {
            Codings::None if is_chunked => Codings::Chunked,
            Codings::Others if is_chunked => Codings::OtherThenChunked,
            Codings::None | Codings::Others => Codings::Others,
            Codings::Chunked | Codings::OtherThenChunked | Codings::Broken => Codings::Broken,
        };
    }
}
