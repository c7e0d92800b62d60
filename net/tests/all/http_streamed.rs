//! Streamed responses, and an interrupt, a spent budget, a fault or the end of the server at any
//! point of them.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::time::Duration;

use http_support::app::{get, talk, with};
use kernel::{Kernel, Sim};
use net::Stream;
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::pipe::{PipeEnd, duplex};
use traps::{Time, clock, ignore_after, sleep, spawn, yield_now};

const SECOND: Duration = Duration::from_secs(1);

/// Runs `client` with a connection over a pipe of that capacity.
fn beside<F: Future>(
    handler: impl Handler + 'static,
    capacity: usize,
    client: impl FnOnce(PipeEnd, Rc<Config>) -> F,
) -> F::Output {
    let mut kernel = Kernel::new(Sim::new());
    let (server, ours) = duplex(capacity);
    let config = Rc::new(Config::default());
    let theirs = config.clone();
    let serve = async move { serve_connection(server, &handler, &theirs).await };
    let output = kernel.run(async {
        spawn("conn", serve).detached().await;
        client(ours, config).await
    });
    kernel.shutdown().unwrap();
    output.unwrap()
}

/// Everything received until the end, or until it ends with this text.
async fn hear(client: &mut PipeEnd, until: &str) -> String {
    let (mut text, mut buf) = (String::new(), [0; 4096]);
    while until.is_empty() || !text.ends_with(until) {
        match client.read(&mut buf).await.unwrap() {
            0 => break,
            n => text.push_str(&String::from_utf8_lossy(&buf[..n])),
        }
    }
    text
}

/// Sends everything back, and continues after a second in which the client took nothing.
struct Patient;

impl Handler for Patient {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let mut answer = request.start(Response::new(200)).await?;
        while ignore_after(SECOND, answer.forward()).await? != Some(false) {}
        answer.finish()
    }
}

#[test]
fn a_piece_whose_forwarding_was_interrupted_is_not_lost() {
    // More than the pipe back holds; the pieces are small, and of what the pipe there holds at first
    // much is head, so that more of them are here when it is full.
    let text = beside(Patient, 65_536, |mut client, _| async move {
        let piece = format!("3e8\r\n{}\r\n", "x".repeat(1000));
        let body = piece.repeat(80) + "0\r\n\r\n";
        let fields = format!("X: {}\r\nTransfer-Encoding: chunked", "y".repeat(40_000));
        let request = with("POST /", &fields) + &body;
        client.write_all(request.as_bytes()).await.unwrap();
        sleep(SECOND * 5 / 2).await.unwrap();
        hear(&mut client, "0\r\n\r\n").await
    });
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    assert_eq!(body.matches('x').count(), 80_000);
}

/// Begins a response, and ends it late.
struct Slow;

impl Handler for Slow {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let mut answer = request.start(Response::new(200)).await?;
        answer.write(b"begun").await?;
        sleep(2 * SECOND).await?;
        answer.finish()
    }
}

#[test]
fn f17_a_request_behind_a_streamed_answer_is_answered() {
    let text = beside(Slow, 1 << 20, |mut client, config| async move {
        let request = get("GET /");
        client.write_all(request.as_bytes()).await.unwrap();
        sleep(SECOND).await.unwrap();
        config.drain();
        client.write_all(request.as_bytes()).await.unwrap();
        hear(&mut client, "").await
    });
    let statuses: Vec<&str> = text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "200"], "{text}");
}

/// Writes enough at once to spend the budget, then a little, and waits.
struct Spender;

impl Handler for Spender {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let mut answer = request.start(Response::new(200)).await?;
        answer.write(&[b'x'; 300_000]).await?;
        answer.write(b"tail").await?;
        sleep(60 * SECOND).await?;
        answer.finish()
    }
}

#[test]
fn what_was_gathered_goes_out_also_where_the_budget_is_spent() {
    let at = beside(Spender, 1 << 20, |mut client, _| async move {
        client.write_all(get("GET /").as_bytes()).await.unwrap();
        hear(&mut client, "tail\r\n").await;
        clock().await
    });
    assert_eq!(at, Time::ZERO);
}

/// Responds by itself, in pieces, to a body that breaks a rule.
struct Own;

impl Handler for Own {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let refused = loop {
            match request.read_chunk().await {
                Ok(Some(_)) => {}
                other => break other.map(drop).unwrap_err(),
            }
        };
        assert_eq!(refused.kind(), ErrorKind::InvalidData);
        let mut answer = request.start(Response::new(400)).await?;
        answer.write(b"not so").await?;
        answer.finish()
    }
}

#[test]
fn an_answer_after_a_refused_body_says_that_it_is_the_last() {
    let broken = with("POST /", "Transfer-Encoding: chunked") + "3\r\nabcd\r\n" + &get("GET /");
    let seen = talk(Sim::new(), Config::default(), Own, &broken);
    assert_eq!((seen.statuses(), seen.field("Connection")), (vec![400], Some("close")));
    assert!(seen.closed && seen.body().contains("not so"), "{seen:?}");
}

/// Passes on the result of a cancelled task.
struct Passes;

impl Handler for Passes {
    async fn handle<S: Stream>(&self, _: &mut Request<'_, S>) -> io::Result<Response> {
        let helper = async { Ok::<_, io::Error>(sleep(60 * SECOND).await?) };
        let mut helper = spawn("helper", helper).await;
        helper.cancel_because("enough").await?;
        helper.join().await.map_err(io::Error::other)??;
        Ok(Response::text("not so"))
    }
}

#[test]
fn the_cancellation_of_another_task_is_a_failure_of_the_handler() {
    let seen = talk(Sim::new(), Config::default(), Passes, &get("GET /"));
    assert_eq!(seen.statuses(), [500], "{seen:?}");
    assert!(seen.trace.contains("a handler failed: cancelled by task"), "{}", seen.trace);
}

/// Writes until an error shows that the client has left, and gives up late if there is none.
#[derive(Clone, Default)]
struct Endless {
    told: Rc<Cell<Option<ErrorKind>>>,
}

impl Handler for Endless {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        if !request.is_head() {
            return Ok(Response::text("the next"));
        }
        let mut answer = request.start(Response::new(200)).await?;
        for _ in 0..10_000 {
            let written = answer.write(&[b'x'; 1000]).await;
            self.told.set(written.as_ref().err().map(io::Error::kind));
            written?;
        }
        answer.finish()
    }
}

#[test]
fn f16_a_body_without_end_that_nobody_wants_comes_to_one_and_holds_up_nobody() {
    let (handler, turns) = (Endless::default(), Rc::new(Cell::new(0)));
    let (told, seen) = (handler.told.clone(), turns.clone());
    let text = beside(handler, 1 << 20, |mut client, _| async move {
        let counts = async move {
            loop {
                yield_now().await.unwrap();
                seen.set(seen.get() + 1);
            }
        };
        let _counter = spawn("counter", counts).await;
        client.write_all((with("HEAD /", "") + &get("GET /")).as_bytes()).await.unwrap();
        hear(&mut client, "the next").await
    });
    assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("\r\n\r\nthe next"), "{text}");
    assert_eq!(told.get(), Some(ErrorKind::BrokenPipe));
    assert!(turns.get() > 5, "{}", turns.get());
}

/// Finishes its response, and then fails.
struct Late;

impl Handler for Late {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let mut answer = request.start(Response::new(200)).await?;
        answer.write(b"done").await?;
        let _sent = answer.finish()?;
        Err(io::Error::other("too late"))
    }
}

#[test]
fn who_still_sends_has_an_answer_that_was_complete_before_its_handler_failed() {
    let text = beside(Late, 4096, |mut client, _| async move {
        let body = vec![b'x'; 100_000];
        client.write_all(with("POST /", "Content-Length: 100000").as_bytes()).await.unwrap();
        sleep(SECOND / 100).await.unwrap();
        client.write_all(&body).await.unwrap();
        hear(&mut client, "").await
    });
    assert!(text.ends_with("4\r\ndone\r\n0\r\n\r\n"), "{text}");
}

/// Sends bytes back while they arrive.
struct Echo;

impl Handler for Echo {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let mut answer = request.start(Response::new(200)).await?;
        while answer.forward().await? {}
        answer.finish()
    }
}

#[test]
fn a_fault_of_the_body_is_answered_while_nothing_of_a_streamed_answer_has_gone_out() {
    let chunked = |body: &str| with("POST /", "Transfer-Encoding: chunked") + body;
    let small = || {
        let mut config = Config::default();
        config.limits.body = 10;
        config.deadlines.body = SECOND;
        config
    };
    for (body, status) in [
        ("z\r\n", 400),
        ("3;=\r\nabc\r\n", 400),
        ("b\r\n0123456789a\r\n0\r\n\r\n", 413),
        ("3\r\n", 408),
    ] {
        let seen = talk(Sim::new(), small(), Echo, &chunked(body));
        assert_eq!((seen.statuses(), seen.field("Connection")), (vec![status], Some("close")));
        assert!(seen.closed, "{body:?}");
    }
    // Then it breaks off.
    for body in ["3\r\nabc\r\nz\r\n", "3\r\nabc\r\n"] {
        let seen = talk(Sim::new(), small(), Echo, &chunked(body));
        assert_eq!(seen.statuses(), [200], "{body:?}");
        assert!(seen.closed && seen.body().ends_with("3\r\nabc\r\n"), "{seen:?}");
    }
}

/// Begins a response, and fails before its first piece.
struct FailsEarly;

impl Handler for FailsEarly {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let _answer = request.start(Response::new(200)).await?;
        Err(io::Error::other("a file is missing"))
    }
}

#[test]
fn a_handler_that_fails_before_the_first_piece_is_a_500() {
    let seen = talk(Sim::new(), Config::default(), FailsEarly, &get("GET /"));
    assert_eq!((seen.statuses(), seen.closed), (vec![500], true), "{seen:?}");
    let old = "GET / HTTP/1.0\r\n\r\n";
    let seen = talk(Sim::new(), Config::default(), FailsEarly, old);
    assert_eq!((seen.statuses(), seen.closed), (vec![500], true), "{seen:?}");
}

/// Keeps the result of its first streamed response, and returns it for the second request.
struct Keeper(RefCell<Option<Response>>);

impl Handler for Keeper {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        if let Some(kept) = self.0.take() {
            return Ok(kept);
        }
        let answer = request.start(Response::new(200)).await?;
        self.0.replace(Some(answer.finish()?));
        Ok(Response::text("the response was streamed"))
    }
}

#[test]
fn each_request_has_a_response_even_if_the_handler_returns_the_result_of_an_earlier_answer() {
    let text = beside(Keeper(RefCell::default()), 1 << 20, |mut client, _| async move {
        let requests = get("GET /") + &with("GET /", "Connection: close");
        client.write_all(requests.as_bytes()).await.unwrap();
        hear(&mut client, "").await
    });
    let statuses: Vec<&str> = text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "200"], "{text}");
    assert!(!text.contains("the response was streamed"), "{text}");
}
