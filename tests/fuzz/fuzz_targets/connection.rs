//! One connection on the simulated machine, under any bytes.
//!
//! The first byte is the size of the pieces that the server reads. A panic, a connection that no
//! deadline ends, or a response that depends on the pieces is a finding.

#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use net::Stream;
use net::http::{Handler, Request, Response};
use trapline_fuzz::responses;

/// Reads some bodies and not others, and describes what it saw.
struct App;

impl Handler for App {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let mut length = 0;
        if request.path() != "/ignore" {
            while let Some(piece) = request.read_chunk().await? {
                length += piece.len();
            }
        }
        let trailers = request.trailers("x").count();
        Ok(Response::text(format!("{request:?} {length} {trailers}")))
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((most, bytes)) = data.split_first() else { return };
    let bytes = &bytes[..bytes.len().min(1 << 16)];
    let whole = responses(App, bytes, usize::MAX);
    assert!(whole.1, "no deadline ended it");
    assert!(whole.0.is_empty() || whole.0.starts_with(b"HTTP/1.1 "));
    // A waiting client gets a 100, and a client that sends in pieces may seem to wait.
    if !bytes.to_ascii_lowercase().windows(6).any(|word| word == b"expect") {
        assert_eq!(responses(App, bytes, usize::from(*most) + 1), whole);
    }
});
