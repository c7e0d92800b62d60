//! What an access log is told: every answer, once.

mod common;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use common::{Act, App, deadlines, limits, talk_to};
use net::http::{Config, Exchange};

/// What is told of a conversation, as `line status length`.
fn told(mut config: Config, acts: &[Act<'_>]) -> Vec<String> {
    let told = Rc::new(RefCell::new(Vec::new()));
    let log = told.clone();
    config.on_answer(move |exchange: &Exchange<'_>| {
        let Exchange { peer, request_line, status, length } = exchange;
        assert_eq!(*peer, None, "a pipe has no address");
        let line = String::from_utf8_lossy(request_line);
        log.borrow_mut().push(format!("{line} {status} {length}"));
    });
    talk_to(App, config, 1 << 20, usize::MAX, acts);
    told.take()
}

fn send(text: &str) -> Vec<String> {
    told(Config::default(), &[Act::Send(text.as_bytes())])
}

#[test]
fn every_answer_is_told_once_with_its_status_and_its_length() {
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(
        send(&[get("/"), get("/big"), get("/none"), get("/stream"), get("/x?y=\"z\"")].concat()),
        [
            "GET / HTTP/1.1 200 13",
            "GET /big HTTP/1.1 200 100000",
            "GET /none HTTP/1.1 204 0",
            "GET /stream HTTP/1.1 200 11",
            "GET /x?y=\"z\" HTTP/1.1 404 9",
        ]
    );
    let head = send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\nHEAD /stream HTTP/1.0\r\n\r\n");
    assert_eq!(head, ["HEAD / HTTP/1.1 200 0", "HEAD /stream HTTP/1.0 200 0"]);
    assert_eq!(send(&get("/fail")), ["GET /fail HTTP/1.1 500 21"]);
}

#[test]
fn what_is_refused_is_told_as_it_came() {
    assert_eq!(send("\r\nnonsense\r\n\r\n"), ["nonsense 400 30"]);
    assert_eq!(send("GET / HTTP/1.1\r\n\r\n"), ["GET / HTTP/1.1 400 23"]);
    assert_eq!(send("BREW / HTTP/1.1\r\nHost: a\r\n\r\n"), ["BREW / HTTP/1.1 501 29"]);
    let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(9_000));
    assert_eq!(send(&long), [format!("{} 414 29", &long[..8_192])]);
    let chunked = "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n";
    let body = "x".repeat(100);
    let config = || limits(|limits| limits.body = 50);
    let acts = [Act::Send(chunked.as_bytes()), Act::Send(body.as_bytes())];
    assert_eq!(told(config(), &acts), ["POST /count HTTP/1.1 413 21"]);
    let length = b"POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 51\r\n\r\n";
    assert_eq!(told(config(), &[Act::Send(length)]), ["POST /count HTTP/1.1 413 21"]);
    let brief = deadlines(|deadlines| deadlines.head = Duration::from_secs(1));
    let acts = [Act::Send(b"GET / HT"), Act::Sleep(Duration::from_secs(3))];
    assert_eq!(told(brief, &acts), ["GET / HT 408 23"]);
    // Silence is no answer.
    assert_eq!(told(Config::default(), &[Act::Finish]), [""; 0]);
}

#[test]
fn a_body_that_breaks_off_is_told_too() {
    let acts = [
        Act::Send(b"POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"),
        Act::Finish,
    ];
    assert_eq!(told(Config::default(), &acts), ["POST /count HTTP/1.1 400 20"]);
}
