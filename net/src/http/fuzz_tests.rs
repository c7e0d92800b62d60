//! Tests of the parsers with random bytes: well-formed requests with mistakes, and noise.

use proptest::prelude::*;

use super::config::Config;
use super::grammar::chunked::{Chunks, Piece};
use super::grammar::head::{Head, HeadLines, Span, Stop, parse, values};
use super::limits::Deadlines;
use super::limits::Limits;

/// Makes a configuration with small limits, so that short requests exceed them. The limit of the
/// request line may be larger than that of a head.
fn config(request_line: usize, bare_lf: bool) -> Config {
    let limits =
        Limits { head: 160, request_line, fields: 4, body: 64, drain: 8, ..Limits::default() };
    let mut config = Config::new(limits, Deadlines::default());
    config.bare_lf = bare_lf;
    config
}

/// The words that make up random heads. A random row of these words is seldom a valid head.
const WORDS: &[&str] = &[
    "GET",
    "HEAD",
    "POST",
    "OPTIONS",
    "CONNECT",
    "BREW",
    " ",
    " ",
    "/",
    "/x?y",
    "*",
    "http://a",
    "https://[::1]:80/x",
    "HTTP/1.1",
    "HTTP/1.0",
    "HTTP/1.7",
    "HTTP/2.0",
    "HTTQ",
    "\r\n",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    "Host: a",
    "Host:",
    "Content-Length: 3",
    "Content-Length: 99",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: x",
    "Connection: close",
    "Expect: ",
    ":",
    "100-continue",
    "X: y",
    "X",
    "\t",
    "\0",
    "\u{7f}",
    "\u{e9}",
    "xxxxxxxxxxxxxxxx",
];

const STATUS_LINES: &[&str] = &[
    "HTTP/1.1 200 OK",
    "HTTP/1.0 404 Not  \u{e9}",
    "HTTP/1.1 204",
    "HTTP/1.1 999 ",
    "HTTP/1.1  200 OK",
    "HTTP/1.1 20 OK",
    "HTTP/2.0 200 OK",
    "",
];

const CHUNK_WORDS: &[&str] = &[
    "0",
    "1",
    "5",
    "A",
    "f",
    "\r\n",
    "\r\n",
    "\r\n",
    "\r",
    "\n",
    ";",
    "a",
    "=",
    "\"",
    "\\",
    " ",
    "\t",
    "hello",
    "x",
    ":",
    "X: y",
    "0\r\n\r\n",
    "1\r\nx\r\n",
    "5\r\nhello\r\n",
    "\0",
    "\u{e9}",
];

fn words(of: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let words = prop::collection::vec(prop::sample::select(of), 0..30);
    words.prop_map(|words| words.concat().into_bytes())
}

/// Makes heads in which up to two bytes are replaced by random bytes.
fn with_mistakes() -> impl Strategy<Value = Vec<u8>> {
    let lines = prop::collection::vec(prop::sample::select(&WORDS[23..35]), 0..6);
    let mistakes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (prop::sample::select(&WORDS[..5]), prop::sample::select(&WORDS[8..18]), lines, mistakes)
        .prop_map(|(method, target, lines, mistakes)| {
            let mut head = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n").into_bytes();
            for line in lines {
                head.extend_from_slice(line.as_bytes());
                head.extend_from_slice(b"\r\n");
            }
            head.extend_from_slice(b"\r\n");
            for (place, byte) in mistakes {
                let place = place.index(head.len());
                head[place] = byte;
            }
            head
        })
}

fn heads() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![words(WORDS), with_mistakes(), prop::collection::vec(any::<u8>(), 0..200)]
}

/// Returns the bytes after the empty lines at the beginning, which the connection skips before it
/// parses.
fn behind_empty_lines(mut bytes: &[u8]) -> &[u8] {
    while let Some(rest) = bytes.strip_prefix(b"\r\n").or(bytes.strip_prefix(b"\n")) {
        bytes = rest;
    }
    bytes
}

/// Checks an accepted head against its own bytes: its ranges, its fields and its line ends.
fn check(head: &Head, bytes: &[u8], config: &Config) {
    assert!(head.len <= bytes.len() && head.len <= config.limits.head);
    assert!(bytes[..head.len].ends_with(b"\n"));
    let within = |span: Span| span.start <= span.end && span.end <= head.len;
    for span in [head.authority, head.path, head.query] {
        assert!(within(span));
        assert!(span.of(bytes).iter().all(u8::is_ascii_graphic));
    }
    assert_eq!(head.path.end, head.query.start);
    let fields = &bytes[head.fields..head.len];
    assert!(values(fields, "host").count() <= 1 && values(fields, "content-length").count() <= 1);
    let both = ["content-length", "transfer-encoding"].map(|name| values(fields, name).count());
    assert_ne!(both, [1, 1]);
    if !config.bare_lf {
        let lines = bytes[..head.len].split_inclusive(|byte| *byte == b'\n');
        assert!(lines.into_iter().all(|line| line.ends_with(b"\r\n")));
    }
}

/// A decoded body: the data, the trailer lines, and the number of bytes used. Then whether the body
/// has ended, or the status of its refusal.
type Decoded = (Vec<u8>, Vec<u8>, usize, Result<bool, u16>);

fn decode(mut bytes: &[u8], step: usize) -> Decoded {
    let (mut chunks, mut data, mut lines, mut used) = (Chunks::new(), Vec::new(), Vec::new(), 0);
    loop {
        let there = &bytes[..bytes.len().min(step)];
        let (taken, end) = match chunks.next(there) {
            Err(refusal) => return (data, lines, 0, Err(refusal.status)),
            Ok(Piece::Data { skip, len }) => {
                data.extend_from_slice(&there[skip..skip + len]);
                (skip + len, false)
            }
            Ok(Piece::Trailers { skip, trailers }) => {
                lines.extend_from_slice(&there[trailers..skip]);
                (skip, false)
            }
            Ok(Piece::End { skip, trailers }) => {
                lines.extend_from_slice(&there[trailers..skip]);
                (skip, true)
            }
        };
        (used, bytes) = (used + taken, &bytes[taken..]);
        if end || taken == 0 {
            return (data, lines, used, Ok(end));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A longer prefix must not change the decision. Otherwise the result would depend on how the
    /// bytes were cut.
    #[test]
    fn what_a_prefix_decides_stands(
        bytes in heads(),
        line in prop::sample::select(&[48, 158, 159, 8192][..]),
        bare_lf in any::<bool>(),
    ) {
        let config = config(line, bare_lf);
        let bytes = behind_empty_lines(&bytes);
        let whole = parse(bytes, &config.limits, bare_lf);
        let mut decided = None;
        for len in 0..=bytes.len() {
            let parsed = parse(&bytes[..len], &config.limits, bare_lf);
            match (parsed, decided) {
                (Err(Stop::Partial), None) => prop_assert!(len < config.limits.head, "no end"),
                (parsed, None) => decided = Some(parsed),
                (parsed, Some(before)) => prop_assert_eq!(parsed, before, "at {}", len),
            }
            if let Ok(head) = parsed {
                check(&head, &bytes[..len], &config);
            }
        }
        prop_assert_eq!(decided.unwrap_or(Err(Stop::Partial)), whole);
    }

    /// Compares the parser of heads with `httparse`. Our parser refuses more heads, and accepts
    /// later versions.
    #[test]
    fn a_head_has_the_parts_that_httparse_finds(bytes in heads()) {
        let bytes = behind_empty_lines(&bytes);
        let bytes = &bytes[..bytes.len().min(159)];
        let mut fields = [httparse::EMPTY_HEADER; 4];
        let mut request = httparse::Request::new(&mut fields);
        let theirs = request.parse(bytes);
        let ours = parse(bytes, &config(8192, true).limits, true);
        match (theirs, ours) {
            (Ok(httparse::Status::Complete(len)), Ok(head)) => {
                prop_assert_eq!(head.len, len);
                let target = request.path.expect("it is whole").as_bytes();
                let start = if head.authority.of(bytes).is_empty() { 0 } else { 7 };
                let parts = [head.authority, head.path, head.query].map(|part| part.of(bytes));
                prop_assert_eq!(&parts.concat()[..], &target[start..]);
                for field in &*request.headers {
                    let found = values(&bytes[head.fields..len], field.name);
                    prop_assert!(found.into_iter().any(|value| value == field.value));
                }
            }
            (Ok(httparse::Status::Complete(_)), ours) => {
                prop_assert!(matches!(ours, Err(Stop::Refused(_))));
            }
            (Ok(httparse::Status::Partial), ours) => prop_assert_eq!(ours, Err(Stop::Partial)),
            (Err(httparse::Error::Version), _) => {}
            (Err(_), ours) => prop_assert!(matches!(ours, Err(Stop::Refused(_)))),
        }
    }

    /// Compares the lines of whole responses with `httparse`, which accepts LF as a line end.
    #[test]
    fn a_response_has_the_parts_that_httparse_finds(
        line in prop::sample::select(STATUS_LINES),
        lines in prop::collection::vec(prop::sample::select(&WORDS[23..]), 0..4),
        mistake in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut head = [&[line][..], &lines, &["\r\n"]].concat().join("\r\n").into_bytes();
        if let Some((place, byte)) = mistake {
            let place = place.index(head.len());
            head[place] = byte;
        }
        // `httparse` knows no later minor version.
        if let Some(minor @ b'2'..=b'9') = head.get_mut("HTTP/1.".len()) {
            *minor = b'1';
        }
        let mut fields = [httparse::EMPTY_HEADER; 4];
        let mut response = httparse::Response::new(&mut fields);
        let theirs = response.parse(&head);
        let mut lines = HeadLines { rest: &head };
        let (line, mut count) = (lines.status_line(), 0);
        let read = |_: &[u8], _: &[u8]| {
            count += 1;
            Ok(())
        };
        let ours = line.and_then(|line| match lines.fields(4, false, read) {
            Ok(None) => Some((line.1, head.len() - lines.rest.len())),
            Ok(Some(_)) | Err(_) => None,
        });
        let theirs = theirs.ok().filter(|_| {
            let mut ends = head.split_inclusive(|byte| *byte == b'\n');
            // An empty line before the status line is refused.
            ends.all(|line| line.ends_with(b"\r\n")) && !head.starts_with(b"\r\n")
        });
        match theirs {
            Some(httparse::Status::Complete(len)) => {
                prop_assert_eq!(ours, Some((response.code.expect("it is whole"), len)));
                prop_assert_eq!(count, response.headers.len());
            }
            _ => prop_assert_eq!(ours, None),
        }
    }

    #[test]
    fn chunks_are_the_same_however_they_are_cut(
        bytes in prop_oneof![words(CHUNK_WORDS), prop::collection::vec(any::<u8>(), 0..100)],
    ) {
        let whole = decode(&bytes, usize::MAX);
        for step in [1, 2, 3, 7] {
            let cut = decode(&bytes, step);
            // Data before a mistake is handed out or not, as it was cut.
            match whole.3 {
                Ok(_) => prop_assert_eq!(&cut, &whole, "{}", step),
                Err(_) => prop_assert_eq!(cut.3, whole.3, "{}", step),
            }
        }
        prop_assert!(whole.2 <= bytes.len() && whole.0.len() + whole.1.len() <= bytes.len());
    }
}
