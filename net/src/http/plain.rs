//! Heads as nearly all are: told in one pass over the request line, without a doubt left.
//!
//! Pure, and only a short cut: what is not plain is [`parse`](super::head::parse)'s, and what is,
//! that one would take for the same.

use httparse::Status;

use super::config::Config;
use super::fields::Seen;
use super::head::{Framing, Head, Method, Span, Version, read_fields};

/// Field lines that such a head has at most. They lie on the stack, and are made each time.
const LINES: usize = 16;

/// The head at the beginning of `window`, if it is whole and plain: GET, HEAD or POST of a path, in
/// lines that end as they must, and nothing to be refused.
pub(crate) fn plain(window: &[u8], config: &Config) -> Option<Head> {
    let (method, no_body, at) = match window {
        [b'G', b'E', b'T', b' ', b'/', ..] => (Method::Get, false, 4),
        [b'H', b'E', b'A', b'D', b' ', b'/', ..] => (Method::Get, true, 5),
        [b'P', b'O', b'S', b'T', b' ', b'/', ..] => (Method::Post, false, 5),
        _ => return None,
    };
    let query = at + count(&window[at..], |byte| TARGET[byte as usize] && byte != b'?');
    let end = query + count(&window[query..], |byte| TARGET[byte as usize]);
    let version = match window.get(end..end + 11)? {
        b" HTTP/1.1\r\n" => Version::Http11,
        b" HTTP/1.0\r\n" => Version::Http10,
        _ => return None,
    };
    let start = end + 11;
    let (limits, strict) = (&config.limits, !config.bare_lf);
    if end + 9 > limits.request_line {
        return None;
    }
    let mut lines = [httparse::EMPTY_HEADER; LINES];
    let lines = &mut lines[..limits.fields.min(LINES)];
    let Ok(Status::Complete((len, lines))) = httparse::parse_headers(&window[start..], lines)
    else {
        return None;
    };
    let bytes = &window[..start + len];
    if strict && !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let mut seen = Seen::default();
    read_fields(bytes, lines, strict, version, &mut seen).ok()?;
    let (framing, keep_alive) = seen.finish(version, limits).ok()?;
    u32::try_from(bytes.len()).ok()?;
    Some(Head {
        len: bytes.len(),
        method,
        no_body,
        version,
        authority: Span::default(),
        path: Span { start: at as u32, end: query as u32 },
        query: Span { start: query as u32, end: end as u32 },
        fields: start as u32,
        framing,
        keep_alive,
        expects: seen.expects && version == Version::Http11 && framing != Framing::Length(0),
    })
}

/// How many bytes there are until one is not `such`.
fn count(bytes: &[u8], such: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| such(**byte)).count()
}

/// Visible ASCII but for what begins a fragment.
static TARGET: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        table[byte as usize] = byte != b'#';
        byte += 1;
    }
    table
};

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
}
