//! Whole connections under requests with mistakes, and under noise: no panic, no hang, memory
//! within bounds, and well-formed responses.

use std::time::Duration;

use allocation_counter::measure;
use http_support::corpus::corpus;
use http_support::mistakes::requests;
use http_support::{Act, Seen, talk_in_pieces};
use kernel::{Kernel, Sim};
use net::Stream;
use net::http::{Config, serve_connection};
use net::pipe::duplex;
use proptest::prelude::*;
use proptest::sample::Index;
use traps::spawn;

/// Asserts that the received bytes begin with a response; tests with known requests read the rest.
fn check(seen: &Seen) {
    if seen.text.is_empty() {
        return;
    }
    let known =
        [100, 200, 204, 205, 304, 400, 403, 404, 405, 408, 413, 414, 417, 431, 500, 501, 503, 505];
    let status = seen.text.strip_prefix("HTTP/1.1 ").and_then(|line| line[..3].parse::<u16>().ok());
    assert!(status.is_some_and(|status| known.contains(&status)), "{}", seen.text);
    assert!(seen.text.contains("\r\n\r\n"), "{}", seen.text);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_request_brings_a_connection_down_or_keeps_it_up(
        request in requests(corpus()),
        cut in any::<Index>(),
        finish in any::<bool>(),
        most in prop_oneof![1_usize..40, Just(usize::MAX)],
    ) {
        let (before, after) = request.split_at(cut.index(request.len() + 1));
        let mut acts = vec![Act::Send(before), Act::Sleep(Duration::from_micros(1))];
        acts.push(Act::Send(after));
        if finish {
            acts.push(Act::Finish);
        }
        // Longer than every deadline of a connection together.
        acts.push(Act::Sleep(Duration::from_secs(120)));
        let mut seen = None;
        let talk = || seen = Some(talk_in_pieces(Config::default(), 1 << 16, most, &acts));
        let bytes = measure(talk).bytes_max;
        let seen = seen.expect("it was talked to");
        prop_assert!(seen.closed_at.is_some(), "it is still up");
        check(&seen);
        prop_assert!(bytes < 1 << 20, "{} bytes", bytes);
    }
}

/// The most memory of one connection while the client sends `begin`, and then `again` until the
/// connection closes or 4 MiB were sent.
fn held(begin: &str, again: &str) -> u64 {
    const PIPE: usize = 16 * 1024;
    let flood = move || {
        let mut kernel = Kernel::new(Sim::new());
        let (server, mut client) = duplex(PIPE);
        let done = kernel.run(async move {
            spawn("conn", async move {
                serve_connection(server, &http_support::App, &Config::default()).await
            })
            .await;
            let mut sent = 0;
            let words = std::iter::once(begin.as_bytes());
            'sending: for word in words.chain(std::iter::repeat(again.as_bytes())) {
                let mut rest = word;
                while !rest.is_empty() {
                    match client.write(rest).await {
                        Ok(n) => (sent, rest) = (sent + n, &rest[n..]),
                        Err(_) => break 'sending,
                    }
                }
                if sent > 4 << 20 {
                    break;
                }
            }
        });
        done.expect("nothing hangs");
        kernel.shutdown().expect("it shuts down");
    };
    measure(flood).bytes_max
}

#[test]
fn what_is_sent_without_end_is_not_kept() {
    let chunked = "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let trailers = chunked.replace("/count", "/trailers") + "0\r\n";
    let long = "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n";
    let floods = [
        ("GET / HTTQ", "x"),
        ("GET /", "x"),
        ("", "X"),
        ("", "\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: ", "y"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "X: y\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "X"),
        (chunked, "1\r\nx\r\n"),
        (chunked, "1;a=b\r\nx\r\n"),
        (chunked, "0"),
        (&trailers, "X: y\r\n"),
        (&trailers, "x"),
        (long, "x"),
        (&long.replace("/count", "/ignore"), "x"),
        (&long.replace("/count", "/small"), "x"),
        (&long.replace("8000000", "9000000"), "x"),
        (&chunked.replace("/count", "/ignore"), "5\r\nhello\r\n"),
    ];
    for (begin, again) in floods {
        let held = held(begin, &again.repeat(1000));
        assert!(held < 400_000, "{begin:?} and then {again:?}: {held} bytes");
    }
}
