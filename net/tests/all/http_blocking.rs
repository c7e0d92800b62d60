//! Handlers that block, and the limit in front of them, on threads that take virtual time.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use http_support::app::{Seen, get, with};
use kernel::{Kernel, Sim};
use net::Stream;
use net::http::{Config, Handler, Method, Request, Response};
use net::http::{Deadlines, Limits, serve_connection};
use net::pipe::duplex;
use net::web::{Blocking, ConcurrencyLimit, Form};
use net::web::{OwnedRequest, Router};
use serde_json::json;
use traps::admission::AdmissionLimit;
use traps::threads::Limiter;
use traps::{Time, clock, spawn};

const JOB: Duration = Duration::from_millis(15);

fn sim() -> Sim {
    Sim::new().jobs_take(JOB)
}

fn work(request: &OwnedRequest) -> io::Result<Response> {
    match request.path() {
        "/panic" => panic!("in a thread"),
        "/fail" => Err(io::Error::other("a file is missing")),
        _ => {
            let first = request.header("x-first").unwrap_or(b"none").to_vec();
            let parts = [first, b" ".to_vec(), request.body().to_vec()].concat();
            assert!(matches!(request.method(), Method::Get | Method::Post));
            Ok(Response::new(200).with_body(parts))
        }
    }
}

fn talk(request: &str) -> Seen {
    let handler = Blocking::new(Limiter::new("block", 2), 5, work);
    http_support::app::talk(sim(), Config::default(), handler, request)
}

#[test]
fn a_blocking_handler_has_the_whole_request_and_a_thread() {
    let chunked = with("POST /", "X-First: one\r\nTransfer-Encoding: chunked");
    let seen = talk(&(chunked + "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n" + &get("GET /")));
    assert_eq!(seen.statuses(), [200, 200]);
    assert!(seen.text.contains("one abcde") && seen.text.ends_with("none "), "{}", seen.text);
    assert_eq!((seen.at, seen.closed), (Time::ZERO + 2 * JOB, false));
    assert_eq!(seen.trace.matches("await    offload ").count(), 2, "{}", seen.trace);
    let seen = talk(&(with("POST /", "Content-Length: 6") + "sixsix"));
    assert_eq!((seen.statuses(), seen.at), (vec![413], Time::ZERO));
}

#[test]
fn a_blocking_handler_parses_json_and_passes_its_rejections_on() {
    fn sum(request: &OwnedRequest) -> io::Result<Response> {
        Response::json(&request.json::<Vec<u64>>()?.iter().sum::<u64>())
    }
    let post = |kind: &str, body: &str| {
        let fields = format!("Content-Type: {kind}\r\nContent-Length: {}", body.len());
        with("POST /", &fields) + body
    };
    let requests = post("application/json", "[1,2]")
        + &post("text/plain", "[1]")
        + &post("application/json", "[1,");
    let handler = Blocking::new(Limiter::new("sum", 2), 5, sum);
    let seen = http_support::app::talk(sim(), Config::default(), handler, &requests);
    assert_eq!(seen.statuses(), [200, 415, 400]);
    for part in ["\r\n\r\n3", "must be application/json", "EOF while parsing a value at line 1"] {
        assert!(seen.text.contains(part), "{part}: {}", seen.text);
    }
}

/// Also for a request whose head is not the first in the buffer, and has another after it.
#[test]
fn a_blocking_handler_has_the_head_and_the_route_of_its_request() {
    fn shown(request: &OwnedRequest) -> io::Result<Response> {
        let of = |name| request.header(name).map(String::from_utf8_lossy);
        let target = (request.path(), request.query(), request.query_value("q"), request.host());
        let route = (request.route(), request.param("name"), request.raw_param("name"));
        let rest = (request.version(), request.is_head(), request.body_length());
        Ok(Response::text(format!("{target:?} {route:?} {rest:?} {:?};", of("X-Last"))))
    }
    let blocking = Blocking::new(Limiter::new("block", 2), 5, shown);
    let handler = Routed(Router::new().post("/{name}", ()), blocking);
    let request = |name, body: &str| {
        let fields = format!("Content-Length: {}\r\nX-Last: {name}", body.len());
        with(&format!("POST /{name}?q=a%20b"), &fields) + body
    };
    let requests = request("a%2fb", "12") + &request("c", "") + &request("d", "12345");
    let seen = http_support::app::talk(sim(), Config::default(), handler, &requests);
    assert_eq!(seen.statuses(), [200; 3]);
    for (name, decoded, length) in [("a%2fb", "a/b", 2), ("c", "c", 0), ("d", "d", 5)] {
        let wanted = format!(
            "(\"/{name}\", Some(\"q=a%20b\"), Some(\"a b\"), Some(\"a\")) \
             (Some(\"/{{name}}\"), Some(\"{decoded}\"), Some(\"{name}\")) \
             (Http11, false, Some({length})) Some(\"{name}\");"
        );
        assert!(seen.text.contains(&wanted), "{wanted}\n{}", seen.text);
    }
}

#[test]
fn what_goes_wrong_in_the_thread_is_a_500_on_that_connection() {
    for path in ["/panic", "/fail"] {
        let seen = talk(&(get("GET /") + &get(&format!("GET {path}"))));
        assert_eq!((seen.statuses(), seen.closed), (vec![200, 500], true), "{path}");
        assert!(seen.trace.contains("conn     exit     ok"), "{path}");
        assert_eq!(seen.trace.matches("warn     a handler failed: ").count(), 1, "{}", seen.trace);
    }
}

#[test]
fn a_late_thread_is_left_behind_and_its_caller_is_answered() {
    let second = Duration::from_secs(1);
    let deadlines = Deadlines { handler: second, ..Deadlines::default() };
    let handler = Blocking::new(Limiter::new("block", 2), 5, work);
    let config = Config::new(Limits::default(), deadlines);
    let seen = http_support::app::talk(sim().jobs_take(3 * second), config, handler, &get("GET /"));
    assert_eq!((seen.statuses(), seen.at), (vec![503], Time::ZERO + second));
}

fn busy(gate: &AdmissionLimit) -> Response {
    let info = format!("the server is too busy: {} at a time", gate.limit());
    Response::json(&json!({ "info": info, "task_waiting": false })).unwrap()
}

/// The response to each of `count` connections that ask at once, and its time.
fn burst(handler: impl Handler + 'static, count: usize) -> (Vec<(String, Time)>, String) {
    let trace = http_support::app::Shared::default();
    let mut kernel = Kernel::new(sim());
    kernel.trace_to(trace.clone());
    let handler = Rc::new(handler);
    let answers = kernel.run(async {
        let mut clients = Vec::new();
        for _ in 0..count {
            let (server, client) = duplex(4096);
            let handler = handler.clone();
            let serve =
                async move { serve_connection(server, &*handler, &Config::default()).await };
            spawn("conn", serve).await;
            clients.push(client);
        }
        let mut answers = Vec::new();
        let asked = clients.into_iter().map(|mut client| async move {
            client.write_all(get("GET /").as_bytes()).await.unwrap();
            let mut buf = [0; 4096];
            let n = client.read(&mut buf).await.unwrap();
            (String::from_utf8_lossy(&buf[..n]).into_owned(), clock().await)
        });
        answers.extend(traps::join_all(asked).await);
        answers
    });
    kernel.shutdown().unwrap();
    (answers.unwrap(), trace.text())
}

#[test]
fn f5_the_sixth_of_five_has_the_answer_that_the_route_promised_in_its_turn() {
    let gate = AdmissionLimit::new("request_task", 5);
    let limit = ConcurrencyLimit::new(gate.clone()).or_else(busy);
    let handler = Blocking::new(Limiter::new("tasks", 5), 0, work).behind(limit);
    let (answers, trace) = burst(handler, 6);
    for (answer, at) in &answers[..5] {
        assert!(answer.ends_with("none ") && *at == Time::ZERO + JOB, "{answer}");
    }
    let (answer, at) = &answers[5];
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"));
    let info = "the server is too busy: 5 at a time";
    let wanted = json!({ "info": info, "task_waiting": false }).to_string();
    assert!(answer.ends_with(&wanted) && *at == Time::ZERO, "{answer}");
    assert_eq!((gate.admitted(), gate.refused(), gate.inside()), (5, 1, 0));
    // The refused request used no thread.
    assert_eq!(trace.matches("await    offload ").count(), 5, "{trace}");
    assert_eq!(trace.matches("cap      name=request_task limit=5").count(), 1);
}

#[test]
fn a_refused_body_is_not_asked_for() {
    let limit = ConcurrencyLimit::new(AdmissionLimit::new("closed", 0));
    let handler = Blocking::new(Limiter::new("block", 1), 5, work).behind(limit);
    let request = with("POST /", "Content-Length: 5\r\nExpect: 100-continue");
    let seen = http_support::app::talk(sim(), Config::default(), handler, &request);
    assert_eq!((seen.statuses(), seen.field("Retry-After")), (vec![503], Some("1")));
    assert!(!seen.text.contains("100 Continue"), "{}", seen.text);
}

/// A limit before a handler that needs no thread.
struct Limited(ConcurrencyLimit);

impl Handler for Limited {
    async fn handle<S: Stream>(&self, _: &mut Request<'_, S>) -> io::Result<Response> {
        let _place = match self.0.try_admit() {
            Ok(place) => place,
            Err(busy) => return Ok(busy),
        };
        traps::sleep(JOB).await?;
        Ok(Response::text("done"))
    }
}

#[test]
fn a_gate_stands_before_any_handler() {
    let (answers, trace) = burst(Limited(ConcurrencyLimit::new(AdmissionLimit::new("few", 2))), 4);
    let statuses: Vec<&str> = answers.iter().map(|(answer, _)| &answer[9..12]).collect();
    assert_eq!(statuses, ["200", "200", "503", "503"]);
    assert_eq!(trace.matches("await    offload ").count(), 0);
}

/// A route of each form before the same handler behind a limit.
struct Routed<F>(Router<()>, Blocking<F>);

impl<F> Handler for Routed<F>
where
    F: Fn(&OwnedRequest) -> io::Result<Response> + Send + Sync + 'static,
{
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        match self.0.find(request) {
            Ok(_) => self.1.handle(request).await,
            Err(answer) => Ok(answer),
        }
    }
}

#[test]
fn f14_whom_a_gate_refuses_is_told_so_in_the_form_of_the_route() {
    for (path, kind, body) in [
        ("/", "text/plain; charset=utf-8", "too busy, ask again later\n"),
        ("/api", "application/json", "{\"error\":\"too busy, ask again later\"}"),
    ] {
        let routes = Router::new().get("/", ()).form(Form::Json).get("/api", ());
        let limit = ConcurrencyLimit::new(AdmissionLimit::new("closed", 0));
        let behind = Blocking::new(Limiter::new("block", 1), 5, work).behind(limit);
        let request = get(&format!("GET {path}"));
        let seen =
            http_support::app::talk(sim(), Config::default(), Routed(routes, behind), &request);
        assert_eq!((seen.statuses(), seen.body()), (vec![503], body), "{path}");
        assert_eq!(seen.field("Content-Type"), Some(kind), "{path}");
        assert_eq!((seen.field("Retry-After"), seen.closed), (Some("1"), false), "{path}");
    }
}
