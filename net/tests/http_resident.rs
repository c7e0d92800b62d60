//! Resident memory: a second round of the same load does not make the process larger.
//!
//! One test, because the whole process is measured.

use std::io::Write;
use std::net::SocketAddr;

use http_support::served::{GET, ask, connect, patient, serve_while};
use net::http::Config;

/// Clients that come and go, and clients that leave in the middle of their response, while one
/// client asks.
fn storm(addr: SocketAddr) {
    let mut honest = connect(addr);
    for n in 0..500 {
        let mut stream = connect(addr);
        match n % 4 {
            0 => {}
            1 => stream.write_all(&GET[..n % GET.len()]).unwrap(),
            // Closing with unread bytes in the socket sends a reset.
            2 => stream.write_all(&b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20)).unwrap(),
            _ => assert_eq!(ask(&mut stream).unwrap(), 200),
        }
        drop(stream);
        assert_eq!(ask(&mut honest).unwrap(), 200, "the honest one is served throughout");
    }
}

fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap()
}

/// The resident memory after each round does not grow from the second to the last.
fn does_not_grow(rounds: usize, clients: fn(SocketAddr)) {
    let mut after = Vec::new();
    // All connections of a round exist at once, however long it takes to make them.
    let config = patient(Config::default().limits.connections);
    serve_while(config, rounds, clients, || after.push(resident()));
    let growth = after[rounds - 1].saturating_sub(after[0]);
    assert!(growth < 1 << 20, "{growth} bytes: {after:?}");
}

/// Thousands of clients that are silent or have asked once, and one that asks.
fn idle(addr: SocketAddr) {
    let mut honest = connect(addr);
    let mut idle = Vec::new();
    for n in 0..5_000 {
        let mut stream = connect(addr);
        if n % 2 == 0 {
            assert_eq!(ask(&mut stream).unwrap(), 200);
        }
        idle.push(stream);
        if n % 50 == 0 {
            assert_eq!(ask(&mut honest).unwrap(), 200);
        }
    }
    drop(idle);
    assert_eq!(ask(&mut honest).unwrap(), 200);
}

#[test]
fn storms_and_five_thousand_idle_connections_leave_nothing() {
    does_not_grow(4, storm);
    let most = net::raise_descriptor_limit().unwrap();
    assert!(most >= 10_500, "too few descriptors for both ends of 5,000 connections: {most}");
    does_not_grow(2, idle);
}
