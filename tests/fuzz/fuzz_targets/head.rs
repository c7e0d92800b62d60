//! The parser of HTTP heads, under any bytes.
//!
//! A head that reaches the handler keeps the promises of [`net::http::RequestHead`]. A panic, a
//! broken promise, or a parse that depends on the size of the reads is a finding.

#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use net::Stream;
use net::http::{Handler, Request, Response};
use trapline_fuzz::responses;

const NAMES: [&str; 6] =
    ["Host", "Connection", "Content-Length", "Transfer-Encoding", "Expect", "X"];

/// Checks the head, and responds with all of it.
struct Checks;

impl Handler for Checks {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let visible = |text: &str| text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
        let (path, query) = (request.path(), request.query());
        assert!(path == "*" || path.starts_with('/'), "a path: {path:?}");
        assert!(visible(path) && query.is_none_or(visible), "{path:?} {query:?}");
        assert!(!path.contains(['?', '#']) && query.is_none_or(|query| !query.contains('#')));
        assert!(request.host().is_none_or(visible), "a host: {:?}", request.host());
        let pairs: Vec<_> = request.query_pairs().collect();
        for name in NAMES {
            for value in request.headers(name) {
                assert_eq!(value.trim_ascii(), value, "the value of {name}");
                assert!(!value.iter().any(|byte| b"\r\n\0".contains(byte)), "the value of {name}");
            }
        }
        let framed = request.header("Content-Length").is_some();
        assert!(!framed || request.header("Transfer-Encoding").is_none(), "framed twice");
        Ok(Response::text(format!("{request:?} {pairs:?} {:?}", request.body_length())))
    }
}

fuzz_target!(|data: &[u8]| {
    let data = &data[..data.len().min(1 << 14)];
    let (whole, is_over) = responses(Checks, data, usize::MAX);
    assert!(is_over, "no deadline ended it");
    if !data.to_ascii_lowercase().windows(6).any(|word| word == b"expect") {
        assert_eq!(responses(Checks, data, 1), (whole, true));
    }
});
