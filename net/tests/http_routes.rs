//! Routes: which one a request takes, what it is answered where there is none, and in what form.

mod app;

use std::io;
use std::time::Duration;

use app::{Seen, get, with};
use kernel::{Kernel, Sim};
use net::Stream;
use net::http::{Config, Deadlines, Handler, Limits, Method, Request};
use net::http::{Response, serve_connection};
use net::pipe::duplex;
use net::web::Router;
use net::web::{Form, Object};
use traps::spawn;

#[derive(Clone, Copy)]
enum Route {
    Home,
    Made,
    Rest,
    Panic,
    Bomb,
    Half,
    HalfFail,
    Flood,
    Read,
    Slow,
    Fail,
}

struct App(Router<Route>);

/// What panics, and panics again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a payload");
    }
}

fn app() -> App {
    let text = Router::new()
        .get("/", Route::Home)
        .get("/files/*", Route::Rest)
        .get("/panic", Route::Panic)
        .get("/bomb", Route::Bomb)
        .get("/half", Route::Half)
        .get("/half-fail", Route::HalfFail)
        .get("/flood", Route::Flood)
        .get("/slow", Route::Slow);
    let json = text
        .form(Form::Json)
        .post("/api/made", Route::Made)
        .on(Method::Put, "/api/made", Route::Made)
        .get("/api/panic", Route::Panic)
        .get("/api/slow", Route::Slow)
        .get("/api/fail", Route::Fail)
        .post("/api/read", Route::Read)
        .form(Form::Text);
    App(json)
}

impl Handler for App {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let found = match self.0.find(request) {
            Ok(found) => found,
            Err(answer) => return Ok(answer),
        };
        match found.route {
            Route::Home => Ok(Response::text("home")),
            Route::Made => Ok(Response::json(Object::new().field("made", true))),
            Route::Rest => Ok(Response::text(found.rest(request).to_owned())),
            Route::Panic => panic!("a broken handler"),
            Route::Bomb => std::panic::panic_any(Bomb),
            Route::Half => {
                let mut answer = request.start(Response::new(200)).await?;
                answer.write(b"half").await?;
                traps::sleep(Duration::from_secs(1)).await?;
                panic!("a broken\nhandler")
            }
            Route::HalfFail => {
                let mut answer = request.start(Response::new(200)).await?;
                answer.write(b"half").await?;
                Err(io::Error::other("a file has ended"))
            }
            Route::Flood => {
                let mut answer = request.start(Response::new(200)).await?;
                loop {
                    answer.write(&[b'x'; 1000]).await?;
                }
            }
            Route::Read => {
                let body = request.body_to_vec(3).await?;
                Ok(Response::new(200).with_body(body))
            }
            Route::Slow => {
                traps::sleep(Duration::from_secs(2)).await?;
                Ok(Response::text("slow"))
            }
            Route::Fail => Err(io::Error::other("a file is missing")),
        }
    }
}

fn talk(request: &str) -> Seen {
    app::talk(Sim::new(), Config::default(), app(), request)
}

#[test]
fn a_request_takes_the_route_of_its_path_and_method() {
    for (line, status, body) in [
        ("GET /", 200, "home"),
        ("HEAD /", 200, ""),
        ("GET /?a=/api/made", 200, "home"),
        ("GET http://a/", 200, "home"),
        ("GET http://a", 200, "home"),
        ("GET /files/a/%2e%2e/b", 200, "a/%2e%2e/b"),
        ("GET /%66iles/x", 200, "x"),
        ("POST /api/made", 200, "{\"made\":true}"),
        ("PUT /api/made", 200, "{\"made\":true}"),
        ("GET /nowhere", 404, "there is nothing here\n"),
        ("GET /files", 404, "there is nothing here\n"),
        ("GET //", 404, "there is nothing here\n"),
        ("OPTIONS /nowhere", 404, "there is nothing here\n"),
    ] {
        let seen = talk(&get(line));
        assert_eq!((seen.statuses(), seen.body()), (vec![status], body), "{line}");
        assert!(!seen.closed, "{line}");
    }
}

#[test]
fn a_method_that_a_path_has_not_is_told_which_it_has() {
    for (line, status, allow) in [
        ("POST /", 405, "GET, HEAD, OPTIONS"),
        ("TRACE /", 405, "GET, HEAD, OPTIONS"),
        ("OPTIONS /", 204, "GET, HEAD, OPTIONS"),
        ("GET /api/made", 405, "POST, PUT, OPTIONS"),
        ("HEAD /api/made", 405, "POST, PUT, OPTIONS"),
        ("OPTIONS /api/made", 204, "POST, PUT, OPTIONS"),
        ("OPTIONS *", 204, "GET, HEAD, POST, PUT, OPTIONS"),
    ] {
        let seen = talk(&get(line));
        assert_eq!((seen.statuses(), seen.field("Allow")), (vec![status], Some(allow)), "{line}");
    }
}

#[test]
fn f24_what_a_json_route_refuses_it_refuses_in_json() {
    let long = with("POST /api/read", "Content-Length: 4") + "long";
    for (request, status, error) in [
        (get("GET /api/made"), 405, "the method is not allowed here"),
        (get("GET /api/fail"), 500, "something went wrong"),
        (get("GET /api/panic"), 500, "something went wrong"),
        (long, 413, "the body is too long"),
    ] {
        let seen = talk(&request);
        let wanted = Object::new().field("error", error).text();
        assert_eq!((seen.statuses(), seen.body()), (vec![status], &*wanted), "{request}");
        assert_eq!(seen.field("Content-Type"), Some("application/json"), "{request}");
    }
    let seen = talk(&get("GET /panic"));
    assert_eq!(seen.body(), "something went wrong\n");
    assert_eq!(seen.field("Content-Type"), Some("text/plain; charset=utf-8"));
}

#[test]
fn a_handler_that_panics_ends_its_connection_and_nothing_more() {
    let seen = talk(&(get("GET /") + &get("GET /panic") + &get("GET /")));
    assert_eq!((seen.statuses(), seen.closed), (vec![200, 500], true), "{}", seen.text);
    assert!(seen.text.contains("Connection: close\r\n"), "{}", seen.text);
    assert_eq!(seen.trace.matches("warn     a handler panicked: a broken handler").count(), 1);
    assert!(seen.trace.contains("conn     exit     ok"), "{}", seen.trace);
    let seen = talk(&get("GET /bomb"));
    assert_eq!(seen.statuses(), [500], "{}", seen.trace);
    assert!(seen.trace.contains("conn     exit     ok"), "{}", seen.trace);
    // One that has begun breaks off, and the client can tell.
    let seen = talk(&get("GET /half"));
    assert!(seen.closed && seen.body().starts_with("4\r\nhalf\r\n"), "{}", seen.text);
    assert!(!seen.text.contains("0\r\n\r\n"), "{}", seen.text);
}

#[test]
fn the_error_of_a_handler_is_said_once_and_that_of_a_connection_is_not() {
    let failed = "warn     a handler failed: ";
    for (path, status, why) in [
        ("/api/fail", 500, "a file is missing"),
        // It had begun, and breaks off.
        ("/half-fail", 200, "a file has ended"),
    ] {
        let seen = talk(&get(&format!("GET {path}")));
        assert_eq!((seen.statuses(), seen.closed), (vec![status], true), "{path}");
        assert_eq!(seen.trace.matches(&format!("{failed}{why}\n")).count(), 1, "{}", seen.trace);
        assert_eq!(seen.trace.matches(failed).count(), 1, "{}", seen.trace);
    }
    // Also where nobody wants the body.
    let seen = talk(&get("HEAD /half-fail"));
    assert_eq!(seen.trace.matches(failed).count(), 1, "{}", seen.trace);
    // What a client can bring about, and what has a line of its own.
    let long = with("POST /api/read", "Content-Length: 4") + "long";
    let bad = with("POST /api/read", "Transfer-Encoding: chunked") + "x\r\n";
    let silent = with("POST /api/read", "Content-Length: 3") + "si";
    for request in [long, bad, silent, get("GET /api/panic"), get("GET /half"), get("GET /none")] {
        let seen = talk(&request);
        assert!(!seen.trace.contains(failed), "{request}: {}", seen.trace);
    }
    let deadlines = Deadlines { handler: Duration::from_secs(1), ..Deadlines::default() };
    let config = Config::new(Limits::default(), deadlines);
    let seen = app::talk(Sim::new(), config, app(), &get("GET /slow"));
    assert!(!seen.trace.contains(failed), "{}", seen.trace);
}

#[test]
fn who_leaves_in_the_midst_of_an_answer_or_of_a_body_writes_no_line() {
    let body = with("POST /api/read", "Content-Length: 3") + "x";
    for request in [get("GET /flood"), body] {
        for resets in [false, true] {
            let trace = app::Shared::default();
            let mut kernel = Kernel::new(Sim::new());
            kernel.trace_to(trace.clone());
            let (server, mut client) = duplex(500);
            let ran = kernel.run(async {
                let (app, config) = (app(), Config::default());
                let serve = async move { serve_connection(server, &app, &config).await };
                let mut conn = spawn("conn", serve).await;
                client.write_all(request.as_bytes()).await.unwrap();
                traps::sleep(Duration::from_secs(1)).await.unwrap();
                if resets {
                    client.reset().unwrap();
                }
                drop(client);
                conn.join().await.expect("the task of the connection does not panic").ok();
            });
            ran.expect("nothing hangs");
            kernel.shutdown().expect("it shuts down");
            drop(kernel);
            let trace = trace.text();
            assert!(trace.contains("conn     exit     ok"), "{trace}");
            assert!(!trace.contains(" warn     "), "{request} {resets}: {trace}");
        }
    }
}

#[test]
fn a_handler_has_its_deadline_if_it_is_given_one() {
    let late = |span, request: &str| {
        let deadlines = Deadlines { handler: span, ..Deadlines::default() };
        app::talk(Sim::new(), Config::new(Limits::default(), deadlines), app(), request)
    };
    let seen = late(Duration::from_secs(1), &(get("GET /") + &get("GET /api/slow")));
    assert_eq!((seen.statuses(), seen.closed), (vec![200, 503], true), "{}", seen.text);
    assert!(seen.text.contains("\r\nRetry-After: 1\r\n"), "{}", seen.text);
    assert!(seen.text.ends_with("{\"error\":\"the answer took too long\"}"), "{}", seen.text);
    assert_eq!(seen.at, traps::Time::ZERO + Duration::from_secs(1));
    assert_eq!(seen.trace.matches("cap      name=handler_wait limit=1s conn=1").count(), 1);
    let seen = late(Duration::from_secs(3), &get("GET /slow"));
    assert_eq!((seen.statuses(), seen.body()), (vec![200], "slow"));
    // One that has begun breaks off.
    let seen = late(Duration::from_millis(10), &get("GET /half"));
    assert!(seen.closed && !seen.text.contains("0\r\n\r\n"), "{}", seen.text);
}
