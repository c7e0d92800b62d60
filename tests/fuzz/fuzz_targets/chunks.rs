//! The decoder of bodies in chunks, under any bytes.
//!
//! The bytes follow a head that announces chunks. A body that the server accepts is the one that a
//! plain decoder finds. A panic, another body, or one that depends on the size of the reads is a
//! finding.

#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use net::Stream;
use net::http::{Handler, Request, Response};
use trapline_fuzz::responses;

/// The connection ends after the first request, so what follows its body is never read as one.
const HEAD: &[u8] =
    b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Decodes a body without any check: the data of each chunk, up to one of size 0.
fn decoded(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let digits = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let digits = std::str::from_utf8(&bytes[..digits]).ok()?;
        let size = usize::from_str_radix(digits, 16).ok()?;
        bytes = &bytes[end + 1..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(bytes.get(..size)?);
        bytes = bytes.get(size + 2..)?;
    }
}

/// Reads the whole body and compares it.
struct Compares(Option<Vec<u8>>);

impl Handler for Compares {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let mut body = Vec::new();
        while let Some(piece) = request.read_chunk().await? {
            assert!(!piece.is_empty(), "an empty piece");
            body.extend_from_slice(piece);
        }
        let length = body.len();
        assert_eq!(Some(body), self.0, "the body");
        Ok(Response::text(format!("{length} {}", request.trailers("x").count())))
    }
}

fuzz_target!(|data: &[u8]| {
    let data = &data[..data.len().min(1 << 14)];
    let body = decoded(data);
    let bytes = [HEAD, data].concat();
    let (whole, is_over) = responses(Compares(body.clone()), &bytes, usize::MAX);
    assert!(is_over, "no deadline ended it");
    assert_eq!(responses(Compares(body), &bytes, 1), (whole, true));
});
