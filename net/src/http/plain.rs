//! Heads as nearly all are: told in one pass, without a doubt left.
//!
//! Pure, and only a short cut: what is not plain is [`parse`](super::parse::parse)'s, and what is,
//! that one would take for the same. Nothing is kept of a field but what it says of the message.
//! It looks at eight bytes at a time where what ends a run of them is simple to tell.

use super::chunked::TOKEN;
use super::config::Config;
use super::fields::Seen;
use super::head::{Framing, Head, Method, Span, Version};
use super::target::{plain_host, run_of};
use crate::limits::FIELDS;

/// The head at the beginning of `window`, if it is whole and plain: GET, HEAD or POST of a path, in
/// lines that end as they must, and nothing to be refused.
#[inline]
pub(crate) fn plain(window: &[u8], config: &Config) -> Option<Head> {
    // As arrays, which are compared by the word.
    let (method, no_body, at) = if window.first_chunk() == Some(b"GET /") {
        (Method::Get, false, 4)
    } else if window.first_chunk() == Some(b"HEAD /") {
        (Method::Get, true, 5)
    } else if window.first_chunk() == Some(b"POST /") {
        (Method::Post, false, 5)
    } else {
        return None;
    };
    let query = run(window, at, |word| no_target(word) | equal(word, b'?'));
    let end = match window.get(query)? {
        b'?' => run(window, query, no_target),
        _ => query,
    };
    let start = end + 11;
    let line: &[u8; 11] = window.get(end..start)?.try_into().ok()?;
    if line.first_chunk() != Some(b" HTTP/1.") || line.last_chunk() != Some(b"\r\n") {
        return None;
    }
    let version = match line[8] {
        b'0' => Version::Http10,
        b'1' => Version::Http11,
        _ => return None,
    };
    let limits = &config.limits;
    if end + 9 > limits.request_line {
        return None;
    }
    let mut seen = Seen::default();
    let len = fields(window, start, limits.fields.min(FIELDS), version, &mut seen)?;
    let (framing, keep_alive) = seen.finish(version, limits).ok()?;
    u32::try_from(len).ok()?;
    Some(Head {
        len,
        method,
        no_body,
        version,
        authority: Span::default(),
        path: Span { start: at as u32, end: query as u32 },
        query: Span { start: query as u32, end: end as u32 },
        fields: start as u32,
        framing,
        keep_alive,
        expects: seen.expects && framing != Framing::Length(0),
    })
}

/// Reads the field lines from `at` on, `most` at most, and the empty line. Gives where that ends.
#[inline]
fn fields(
    window: &[u8],
    mut at: usize,
    most: usize,
    version: Version,
    seen: &mut Seen,
) -> Option<usize> {
    let mut left = most;
    loop {
        let line = window.get(at..)?;
        let len = match line.first()? {
            b'\r' => return (line.get(1) == Some(&b'\n')).then_some(at + 2),
            b'H' => host(line, seen),
            b'C' => close(line, seen),
            _ => None,
        };
        left = left.checked_sub(1)?;
        at += match len {
            Some(len) => len,
            None => field(line, version, seen)?,
        };
    }
}

/// Reads the line. Gives its length. Not inlined: there it has the registers to itself.
#[inline(never)]
fn field(line: &[u8], version: Version, seen: &mut Seen) -> Option<usize> {
    let colon = run_of(&TOKEN, line);
    if colon == 0 || line.get(colon) != Some(&b':') {
        return None;
    }
    let mut value = colon + 1;
    while let Some(b' ' | b'\t') = line.get(value) {
        value += 1;
    }
    let end = run(line, value, no_value);
    if line.get(end..end + 2)? != b"\r\n" {
        return None;
    }
    seen.field(&line[..colon], trim_end(line.get(value..end)?), version).ok()?;
    Some(end + 2)
}

/// Reads the line if it is the host, as most write it. Gives its length.
#[inline]
fn host(line: &[u8], seen: &mut Seen) -> Option<usize> {
    if line.first_chunk() != Some(b"Host: ") || seen.host {
        return None;
    }
    let end = 6 + plain_host(&line[6..]);
    seen.host = line.get(end..end + 2)? == b"\r\n";
    seen.host.then_some(end + 2)
}

/// Reads the line if it is the wish to close, as most write it. Gives its length.
#[inline]
fn close(line: &[u8], seen: &mut Seen) -> Option<usize> {
    const CLOSE: &[u8; 19] = b"Connection: close\r\n";
    let closes = line.first_chunk() == Some(CLOSE);
    seen.close |= closes;
    closes.then_some(CLOSE.len())
}

#[inline]
fn trim_end(mut text: &[u8]) -> &[u8] {
    while let [before @ .., b' ' | b'\t'] = text {
        text = before;
    }
    text
}

/// The place of the first byte from `at` on that `ends` marks, or of the end.
#[inline]
fn run(bytes: &[u8], mut at: usize, ends: impl Fn(u64) -> u64) -> usize {
    while let Some(word) = bytes.get(at..at + 8) {
        let marks = ends(u64::from_le_bytes(word.try_into().expect("it is eight")));
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let (Some(last), left @ 1..) = (bytes.last_chunk(), bytes.len().saturating_sub(at)) else {
        return bytes.len();
    };
    // Zeros follow the end, and end every run.
    let marks = ends(u64::from_le_bytes(*last) >> (8 * (8 - left)));
    at + (marks.trailing_zeros() / 8) as usize
}

const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGH: u64 = u64::from_le_bytes([0x80; 8]);

/// Marks, by its high bit, the first byte of a word that is below `bound`, and perhaps some after
/// it; none where there is none. `bound` is ASCII.
#[inline]
fn below(word: u64, bound: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(bound)) & !word & HIGH
}

/// Marks the first byte of a word that is `byte`, and perhaps some after it.
#[inline]
fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

/// Marks what is no part of a target: all but visible ASCII, and what begins a fragment.
#[inline]
fn no_target(word: u64) -> u64 {
    below(word, b'!') | equal(word, b'#') | equal(word, 0x7f) | word & HIGH
}

/// Marks what ends a value. A tab is among it: it is seldom there, and another's matter.
#[inline]
fn no_value(word: u64) -> u64 {
    below(word, b' ') | equal(word, 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_what_nearly_all_heads_are() {
        let config = Config::default();
        for line in ["GET /", "HEAD /a/b?c=d&e=%20", "POST /?", "GET //x:y@z"] {
            let head = format!("{line} HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\nmore");
            assert!(plain(head.as_bytes(), &config).is_some(), "{line}");
        }
        for line in ["PUT /", "GET x", "GET *", "GET /#a", "GET / ", "GET /\u{e9}", "get /"] {
            let head = format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(plain(head.as_bytes(), &config), None, "{line}");
        }
    }

    #[test]
    fn a_run_ends_where_it_does_byte_by_byte() {
        let is_target = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
        let is_value = |byte: u8| byte >= b' ' && byte != 0x7f;
        for len in 8..28 {
            for place in 0..len {
                for byte in 0..=255 {
                    let mut bytes = vec![b'~'; len];
                    bytes[place] = byte;
                    bytes[len - 1 - place / 2] = 0x80 | byte;
                    for at in 0..=len.min(place + 2) {
                        let end = |such: &dyn Fn(u8) -> bool| {
                            at + bytes[at..].iter().take_while(|byte| such(**byte)).count()
                        };
                        assert_eq!(run(&bytes, at, no_target), end(&is_target), "{bytes:?}");
                        assert_eq!(run(&bytes, at, no_value), end(&is_value), "{bytes:?}");
                    }
                }
            }
        }
    }
}
