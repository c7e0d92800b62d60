//! One connection on the simulated machine, under whatever the fuzzer sends.
//!
//! `cargo +nightly fuzz run connection`. The first byte says in pieces of which size the rest is
//! read. A panic, a connection that no deadline ends, or an answer that depends on the pieces is a
//! finding.

#![no_main]

use std::io;
use std::time::Duration;

use kernel::{Kernel, Sim};
use libfuzzer_sys::fuzz_target;
use net::Stream;
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::pipe::duplex;
use traps::{ignore_after, spawn};

/// Reads some bodies and not others, and says what it saw.
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

/// All that is answered, and whether the connection ended by itself.
fn answers(bytes: &[u8], most: usize) -> (Vec<u8>, bool) {
    let mut kernel = Kernel::new(Sim::new());
    let talked = kernel.run(async {
        let (mut server, mut client) = duplex(1 << 20);
        server.set_short_reads(most);
        spawn("conn", async move { serve_connection(server, &App, &Config::default()).await })
            .await;
        let (mut all, mut buf) = (Vec::new(), [0; 4096]);
        client.write(bytes).await.expect("the pipe has room");
        loop {
            // Longer than all deadlines together.
            match ignore_after(Duration::from_secs(120), client.read(&mut buf)).await {
                Ok(Some(n @ 1..)) => all.extend_from_slice(&buf[..n]),
                Ok(Some(0)) | Err(_) => return (all, true),
                Ok(None) => return (all, false),
            }
        }
    });
    kernel.shutdown().expect("it shuts down");
    talked.expect("nothing hangs")
}

fuzz_target!(|data: &[u8]| {
    let Some((most, bytes)) = data.split_first() else { return };
    let bytes = &bytes[..bytes.len().min(1 << 16)];
    let whole = answers(bytes, usize::MAX);
    assert!(whole.1, "no deadline ended it");
    assert!(whole.0.is_empty() || whole.0.starts_with(b"HTTP/1.1 "));
    // A client that waits is told to go on, and one that sends in pieces may seem to wait.
    if !bytes.to_ascii_lowercase().windows(6).any(|word| word == b"expect") {
        assert_eq!(answers(bytes, usize::from(*most) + 1), whole);
    }
});
