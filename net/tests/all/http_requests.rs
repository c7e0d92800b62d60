//! Requests, and their effect on the connection.

use std::io;
use std::time::Duration;

use http_support::{Act, App, limits, talk, talk_in_pieces, talk_to, talk_with};
use kernel::{Kernel, Options, Sim};
use net::Stream;
use net::http::{Config, Handler, Limits, Request, Response, serve_connection};
use net::pipe::duplex;
use net::web::OwnedRequest;
use traps::{Either, race, spawn, yield_now};

/// The statuses of the answers, and whether the server closed.
fn fate(request: &[u8]) -> (Vec<u16>, bool) {
    let seen = talk(&[Act::Send(request)]);
    (seen.statuses(), seen.closed_at.is_some())
}

const KEPT: bool = false;
const CLOSED: bool = true;

#[test]
fn each_request_has_its_status_and_its_connection_its_fate() {
    let table: &[(&str, u16, bool)] = &[
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200, KEPT),
        ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 200, KEPT),
        ("\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n", 200, CLOSED),
        ("GET /bye HTTP/1.1\r\nHost: a\r\n\r\n", 200, CLOSED),
        ("GET / HTTP/1.0\r\n\r\n", 200, CLOSED),
        ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", 200, KEPT),
        ("GET /?a=b HTTP/1.1\r\nHost: a\r\n\r\n", 200, KEPT),
        ("GET http://a.example:80/ HTTP/1.1\r\nHost: a\r\n\r\n", 200, KEPT),
        ("GET HTTPS://a.example HTTP/1.1\r\nHost: a\r\n\r\n", 421, CLOSED),
        ("GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("GET /#f HTTP/1.1\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 204, KEPT),
        ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", 405, KEPT),
        ("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", 404, KEPT),
        ("GET /fail HTTP/1.1\r\nHost: a\r\n\r\n", 500, CLOSED),
        ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501, CLOSED),
        ("get / HTTP/1.1\r\nHost: a\r\n\r\n", 501, CLOSED),
        ("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 501, CLOSED),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, CLOSED),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, CLOSED),
        ("GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("GET / http/1.1\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("GET /\r\n\r\n", 400, CLOSED),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", 200, KEPT),
        ("GET / HTTP/1.1\r\nHost: a \t\r\n\r\n", 200, KEPT),
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a \nX: y\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\nX:\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: a\u{1}b\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\n X: a\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\n X: a\r\nHost: a\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", 400, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\n: a\r\n\r\n", 400, CLOSED),
        ("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 200, KEPT),
        ("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 003\r\n\r\nabc", 200, KEPT),
        ("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400, CLOSED),
        ("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", 400, CLOSED),
        ("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc", 400, CLOSED),
        ("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n\r\nabc", 400, CLOSED),
        (
            "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n",
            400,
            CLOSED,
        ),
        (
            "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n",
            413,
            CLOSED,
        ),
        (
            "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
            400,
            CLOSED,
        ),
        (
            "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            CLOSED,
        ),
        (
            "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            200,
            KEPT,
        ),
        ("POST /count HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, CLOSED),
        (
            "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            501,
            CLOSED,
        ),
        (
            "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
            400,
            CLOSED,
        ),
        (
            "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
            400,
            CLOSED,
        ),
        (
            "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            400,
            CLOSED,
        ),
        ("POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 400, CLOSED),
        ("POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", 400, CLOSED),
        (
            "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            CLOSED,
        ),
        ("POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", 400, CLOSED),
        ("POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 200, KEPT),
        ("POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nabc", 200, CLOSED),
        (
            "POST /ignore HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
            200,
            CLOSED,
        ),
        ("POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789", 200, KEPT),
        ("POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n0123456789a", 413, CLOSED),
        ("GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417, CLOSED),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\nExpect: tea\r\n\r\n", 200, KEPT),
        (
            "POST /ignore HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
            200,
            CLOSED,
        ),
    ];
    for (request, status, closed) in table {
        assert_eq!(fate(request.as_bytes()), (vec![*status], *closed), "{request:?}");
    }
}

#[test]
fn a_request_cut_at_any_byte_has_the_same_answer() {
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(40));
    let corpus: &[&str] = &[
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nHEAD /stream HTTP/1.1\r\nHost: a\r\n\r\nGET /none HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: x/y\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.0\r\n\r\n",
        "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n00A\r\n0123456789\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n",
        "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n\r\n",
        &long,
        "GET /\0xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx HTTP/1.1\r\n",
        "GET /xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\0xxxxxxxxxxx HTTP/1.1\r\n",
    ];
    let config =
        || limits(|limits| (limits.request_line, limits.fields, limits.head) = (40, 4, 100));
    for request in corpus {
        let request = request.as_bytes();
        let whole = talk_with(config(), 1 << 20, &[Act::Send(request)]);
        assert!(!whole.text.is_empty(), "{request:?}");
        let pause = Duration::from_micros(1);
        let mut cuts: Vec<Vec<&[u8]>> =
            vec![request.chunks(1).collect(), request.chunks(7).collect()];
        cuts.extend((1..request.len()).map(|at| vec![&request[..at], &request[at..]]));
        for cut in cuts {
            let acts: Vec<Act<'_>> =
                cut.iter().flat_map(|piece| [Act::Send(piece), Act::Sleep(pause)]).collect();
            let seen = talk_with(config(), 1 << 20, &acts);
            assert_eq!(
                seen.text,
                whole.text,
                "{:?}",
                cut.iter().map(|c| c.len()).collect::<Vec<_>>()
            );
            assert_eq!(seen.closed_at.is_some(), whole.closed_at.is_some());
        }
        for most in [1, 2, 3, 50] {
            let short = talk_in_pieces(config(), 1 << 20, most, &[Act::Send(request)]);
            assert_eq!(short.text, whole.text, "{most} bytes at a time");
        }
    }
}

#[test]
fn pipelined_requests_are_answered_in_order_and_in_one_write() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nabGET /path HTTP/1.1\r\nHost: a\r\n\r\nGET /none HTTP/1.1\r\nHost: a\r\n\r\n";
    let seen = talk(&[Act::Send(request.as_bytes())]);
    assert_eq!(seen.statuses(), [200, 200, 200, 204]);
    assert_eq!(seen.reads.len(), 1, "one write");
    let order = ["Hello, World!", "\r\n\r\n2", "path: \"/path\""].map(|part| seen.text.find(part));
    assert!(order.is_sorted() && order[0].is_some(), "{}", seen.text);
}

#[test]
fn answers_are_not_held_back_by_a_handler_that_waits() {
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /sleep HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let seen = talk(&[Act::Send(request), Act::Sleep(Duration::from_secs(1))]);
    assert_eq!(seen.statuses(), [200, 200, 200]);
    let at: Vec<u64> = seen.reads.iter().map(|(at, _)| at.as_micros()).collect();
    assert_eq!(at, [0, 500_000]);
}

#[test]
fn head_has_the_fields_of_get_and_no_body() {
    for path in ["/", "/nowhere", "/big", "/stream", "/stream?length=11", "/none"] {
        let ask = |method: &str| {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n");
            talk(&[Act::Send(request.as_bytes())])
        };
        let (get, head) = (ask("GET"), ask("HEAD"));
        let end = get.text.find("\r\n\r\n").expect("a head") + 4;
        assert_eq!(head.text, get.text[..end], "{path}");
        assert_eq!(head.closed_at, None);
    }
    let refused = talk(&[Act::Send(b"HEAD / HTTP/1.1\r\n\r\n")]);
    assert!(refused.text.starts_with("HTTP/1.1 400") && refused.text.ends_with("\r\n\r\n"));
}

#[test]
fn an_answer_reads_as_it_should() {
    let seen = talk(&[Act::Send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")]);
    let (head, body) = seen.text.split_once("\r\n\r\n").expect("a head");
    let mut lines: Vec<&str> = head.split("\r\n").collect();
    let date = lines.pop().expect("a date");
    assert!(date.starts_with("Date: ") && date.ends_with(" GMT") && date.len() == 35, "{date}");
    let text = "Content-Type: text/plain; charset=utf-8";
    assert_eq!(lines, ["HTTP/1.1 200 OK", text, "Content-Length: 13"]);
    assert_eq!(body, "Hello, World!");
    let seen = talk(&[Act::Send(b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n")]);
    assert!(!seen.text.contains("Content-Length"), "{}", seen.text);
    let seen = talk(&[Act::Send(b"POST / HTTP/1.1\r\nHost: a\r\n\r\n")]);
    assert!(seen.text.contains("\r\nAllow: GET, HEAD\r\n"), "{}", seen.text);
}

#[test]
fn a_streamed_body_is_framed_as_the_client_can_read_it() {
    let body = |request: &str| {
        let seen = talk(&[Act::Send(request.as_bytes())]);
        let (head, body) = seen.text.split_once("\r\n\r\n").expect("a head");
        (head.contains("chunked"), body.to_string(), seen.closed_at.is_some())
    };
    let new = body("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(new, (true, "3\r\none\r\n8\r\n and two\r\n0\r\n\r\n".into(), KEPT));
    let known = body("GET /stream?length=11 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(known, (false, "one and two".into(), KEPT));
    let old = body("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(old, (false, "one and two".into(), CLOSED));
    let broken = body("GET /stream?length=9 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(broken, (false, "one".into(), CLOSED), "more than was announced");
}

#[test]
fn a_body_is_echoed_in_pieces_however_it_is_framed() {
    let long = "0123456789abcdef".repeat(10_000);
    let request = format!(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: x/y\r\nContent-Length: {}\r\n\r\n{long}GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        long.len()
    );
    let seen = talk(&[Act::Send(request.as_bytes())]);
    assert!(seen.text.contains("\r\nContent-Length: 160000\r\nContent-Type: x/y\r\n"));
    assert!(seen.text.contains(&format!("\r\n\r\n{long}HTTP/1.1 200 OK")));
    let chunked = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nb;x\r\n0123456789a\r\n0\r\nT: x\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let seen = talk(&[Act::Send(chunked)]);
    assert!(
        seen.text.contains("\r\n\r\n5\r\nhello\r\nb\r\n0123456789a\r\n0\r\n\r\nHTTP/1.1 200"),
        "{}",
        seen.text
    );
    assert_eq!(seen.closed_at, None);
}

#[test]
fn a_client_that_waits_for_it_is_told_to_go_on_when_the_handler_reads() {
    let head =
        b"POST /count HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n";
    let seen = talk(&[Act::Send(head), Act::Sleep(Duration::from_millis(1)), Act::Send(b"abc")]);
    assert_eq!(seen.statuses(), [100, 200]);
    assert!(seen.text.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
    let echo =
        b"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    let seen = talk(&[Act::Send(echo), Act::Sleep(Duration::from_millis(1)), Act::Send(b"abc")]);
    assert_eq!(seen.statuses(), [100, 200]);
    assert_eq!(seen.reads[0].1, "HTTP/1.1 100 Continue\r\n\r\n".len(), "by a write of its own");
    let all = [&head[..], b"abc"].concat();
    assert_eq!(talk(&[Act::Send(&all)]).statuses(), [200], "it did not wait");
    let all = [&echo[..], b"abc"].concat();
    assert_eq!(talk(&[Act::Send(&all)]).statuses(), [200], "it did not wait");
    let long = b"POST /count HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9000000\r\n\r\n";
    assert_eq!(fate(long), (vec![413], CLOSED), "before any 100");
}

#[test]
fn limits_are_exact() {
    let line = |n: usize| format!("GET /?{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(n - 15));
    assert_eq!(fate(line(8192).as_bytes()), (vec![200], KEPT));
    assert_eq!(fate(line(8193).as_bytes()), (vec![414], CLOSED));
    assert_eq!(fate(&line(9000).as_bytes()[..8300]), (vec![414], CLOSED));
    let fields =
        |n: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(n - 1));
    assert_eq!(fate(fields(100).as_bytes()), (vec![200], KEPT));
    assert_eq!(fate(fields(101).as_bytes()), (vec![431], CLOSED));
    let many = |most: usize, n: usize| {
        let config: Config = limits(|limits| limits.fields = most);
        talk_with(config, 1 << 20, &[Act::Send(fields(n).as_bytes())]).statuses()
    };
    assert_eq!((many(3, 3), many(3, 4)), (vec![200], vec![431]));
    for most in [101, usize::MAX] {
        assert_eq!((many(most, 100), many(most, 101)), (vec![200], vec![431]), "{most}");
    }
    let head = |n: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", "b".repeat(n - 32));
    assert_eq!(head(65_536).len(), 65_536);
    assert_eq!(fate(head(65_536).as_bytes()), (vec![200], KEPT));
    assert_eq!(fate(head(65_537).as_bytes()), (vec![431], CLOSED));
    let body = |n: usize| {
        format!(
            "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{n:x}\r\n{}\r\n0\r\n\r\n",
            "x".repeat(n)
        )
    };
    let small = |request: String| {
        let config: Config = limits(|limits| limits.body = 1000);
        talk_with(config, 1 << 20, &[Act::Send(request.as_bytes())]).statuses()
    };
    assert_eq!(small(body(1000)), [200]);
    assert_eq!(small(body(1001)), [413]);
}

#[test]
fn limits_of_usize_max_are_none() {
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", "b".repeat(20_000));
    let changes: [fn(&mut Limits); 3] = [
        |limits| limits.request_line = usize::MAX,
        |limits| limits.head = usize::MAX,
        |limits| limits.fields = usize::MAX,
    ];
    for change in changes {
        let acts = [Act::Send(head.as_bytes())];
        let seen = talk_in_pieces(limits(change), 1 << 20, 1000, &acts);
        assert_eq!(seen.statuses(), [200]);
    }
}

#[test]
fn a_request_line_without_end_is_refused_whichever_limit_is_the_sooner_one() {
    for (head, status) in [(8_194, 414), (8_193, 431), (4_096, 431), (100, 431)] {
        for begin in ["GET / HTTP/9", "GET / SMTP", "GET / HTTP/2.0", "GET /"] {
            let config = limits(|limits| limits.head = head);
            let request = format!("{begin}{}", "a".repeat(100_000));
            let seen = talk_with(config, 1 << 20, &[Act::Send(request.as_bytes())]);
            assert_eq!(seen.statuses(), [status], "{head}: {begin}");
        }
    }
}

/// Reads a whole body for a second, then again. Responds with both results.
#[derive(Clone)]
struct Again;

impl Handler for Again {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let whole = traps::ignore_after(Duration::from_secs(1), request.body_to_vec(100)).await;
        let again = match request.path() {
            "/whole" => OwnedRequest::read(request, 100).await.map(|whole| whole.body().to_vec()),
            "/pieces" => request.read_chunk().await.map(|piece| piece.unwrap().to_vec()),
            "/forward" => request.start(Response::new(200)).await?.forward().await.map(|_| vec![]),
            _ => request.body_to_vec(100).await,
        };
        let again = again.map_err(|error| error.to_string());
        Ok(Response::text(format!("{whole:?} {again:?}")))
    }
}

#[test]
fn a_body_that_an_interrupt_took_a_part_of_is_never_taken_for_a_whole_one() {
    let read = |path: &str, first: &[u8], then: &[u8]| {
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n");
        let pause = Act::Sleep(Duration::from_secs(2));
        let acts = [Act::Send(head.as_bytes()), Act::Send(first), pause, Act::Send(then)];
        let seen = talk_to(Again, Config::default(), 1 << 20, usize::MAX, &acts);
        seen.text.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned()
    };
    let lost =
        r#"Ok(None) Err("a read of the whole body did not end, and 3 bytes of it are lost")"#;
    for path in ["/", "/whole", "/pieces", "/forward"] {
        assert_eq!(read(path, b"abc", b"def"), lost, "{path}");
    }
    // Nothing had arrived, so nothing is lost.
    let all = format!("Ok(None) Ok({:?})", b"abcdef");
    for path in ["/", "/whole", "/pieces"] {
        assert_eq!(read(path, b"", b"abcdef"), all, "{path}");
    }
    assert_eq!(read("/", b"abcdef", b""), format!("Ok(Some({:?})) Ok([])", b"abcdef"));
}

#[test]
fn a_half_closed_client_gets_its_answers() {
    let both = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /sleep HTTP/1.1\r\nHost: a\r\n\r\n";
    let acts = [Act::Send(both), Act::Finish, Act::Sleep(Duration::from_secs(1))];
    let mut config = Config::default();
    config.half_close = true;
    let seen = talk_with(config, 1 << 20, &acts);
    assert_eq!(seen.statuses(), [200, 200]);
    assert_eq!(seen.closed_at.map(|at| at.as_micros()), Some(500_000));
    // Without that option, the client has left, and its handler has a quarter of a second.
    let seen = talk(&acts);
    assert_eq!(seen.statuses(), [200]);
    assert!(seen.closed_at.is_some_and(|at| at.as_micros() < 500_000), "{:?}", seen.closed_at);
    let silent = talk(&[Act::Finish]);
    assert_eq!((silent.text.as_str(), silent.closed_at.is_some()), ("", true));
    let mid = talk(&[Act::Send(b"GET / HT"), Act::Finish]);
    assert_eq!((mid.statuses(), mid.closed_at.is_some()), (vec![400], true));
    let body = b"POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc";
    let mid = talk(&[Act::Send(body), Act::Finish]);
    assert_eq!((mid.statuses(), mid.closed_at.is_some()), (vec![400], true));
}

#[test]
fn a_connection_that_waits_is_small() {
    let (server, _client) = net::pipe::duplex(1);
    let config = Config::default();
    let serving = net::http::serve_connection(server, &http_support::App, &config);
    let size = size_of_val(&serving);
    assert!(size <= 1024, "{size} bytes, and no buffer beside them");
}

/// Checking for bytes and reading them are two operations.
#[test]
fn a_connection_gets_on_with_the_smallest_budget() {
    let mut kernel = Kernel::with_options(Sim::new(), Options::new().budget(1));
    let (server, mut client) = duplex(64);
    let talked = kernel.run(async {
        let serve = async move { serve_connection(server, &App, &Config::default()).await };
        spawn("conn", serve).detached().await;
        let talk = async {
            let (mut text, mut buf) = (String::new(), [0; 64]);
            for part in
                ["POST /echo HTTP/1.1\r\n", "Host: a\r\nContent-Length: 6\r\n\r\nabc", "def"]
            {
                client.write(part.as_bytes()).await.unwrap();
                yield_now().await.unwrap();
            }
            while !text.ends_with("abcdef") {
                let n = client.read(&mut buf).await.unwrap();
                text.push_str(&String::from_utf8_lossy(&buf[..n]));
            }
        };
        let patience = async {
            for _ in 0..1000 {
                yield_now().await.unwrap();
            }
        };
        matches!(race(talk, patience).await, Either::Left(()))
    });
    assert!(talked.unwrap(), "it does not turn round and round");
    // No shutdown, because the spinning task does not end.
    drop(kernel);
}

/// The statuses of the responses, and whether the server closed, if at most ten bytes of the rest
/// of a body are thrown away.
fn fate_by_ten(request: &str) -> (Vec<u16>, bool) {
    let seen =
        talk_with(limits(|limits| limits.drain = 10), 1 << 20, &[Act::Send(request.as_bytes())]);
    (seen.statuses(), seen.closed_at.is_some())
}

#[test]
fn the_rest_of_a_body_is_thrown_away_up_to_its_limit_whatever_the_handler_has_read() {
    let length = |n: usize| {
        let rest = "x".repeat(n);
        format!("POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: {n}\r\n\r\n{rest}")
    };
    let chunk = |n: usize| format!("{n:x}\r\n{}\r\n", "x".repeat(n));
    let chunked = |path: &str, chunks: String| {
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        head + &chunks + "0\r\n\r\n"
    };
    for (rest, closed) in [(9, KEPT), (10, KEPT), (11, CLOSED)] {
        let wanted = (vec![200], closed);
        assert_eq!(fate_by_ten(&length(rest)), wanted, "{rest}");
        assert_eq!(fate_by_ten(&chunked("/ignore", chunk(rest))), wanted, "{rest}");
        // It reads the first chunk.
        let after_a_chunk = chunked("/patient", chunk(100) + &chunk(rest));
        assert_eq!(fate_by_ten(&after_a_chunk), wanted, "{rest}");
    }
}

/// Refuses, but still reads the body.
struct ReadsOn;

impl Handler for ReadsOn {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let mut answer = request.start(Response::new(403).with_length(2)).await?;
        answer.write(b"no").await?;
        answer.flush().await?;
        while answer.request().read_chunk().await?.is_some() {}
        answer.finish()
    }
}

#[test]
fn no_client_is_told_to_go_on_when_its_response_has_begun() {
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    let acts = [Act::Send(head), Act::Sleep(Duration::from_millis(1)), Act::Send(b"abc")];
    let seen = talk_to(ReadsOn, Config::default(), 1 << 20, usize::MAX, &acts);
    assert_eq!(seen.statuses(), [403], "{}", seen.text);
    assert!(seen.text.ends_with("\r\n\r\nno"), "{}", seen.text);
}

#[test]
fn a_client_that_sends_much_of_its_body_with_the_head_still_gets_100_before_the_rest() {
    struct Length;

    impl Handler for Length {
        async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
            let body = request.body_to_vec(1 << 20).await?;
            Ok(Response::text(body.len().to_string()))
        }
    }

    let text = Kernel::new(Sim::new()).run(async {
        let (mut client, server) = duplex(1 << 16);
        let serving = async move { serve_connection(server, &Length, &Config::default()).await };
        let _serving = spawn("server", serving).await;
        let head =
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 30000\r\n\r\n";
        client.write_all(&[head.as_bytes(), &[b'x'; 10_000]].concat()).await.unwrap();
        let mut start = [0; 25];
        client.read_exact(&mut start).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 100 Continue\r\n\r\n");
        client.write_all(&[b'x'; 20_000]).await.unwrap();
        client.shutdown().unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text, 1 << 10).await.unwrap();
        text
    });
    assert!(text.as_deref().unwrap().ends_with("\r\n\r\n30000"), "{text:?}");
}
