//! Routes: which one a request takes, and the response and its form if there is none.

use std::io;
use std::time::Duration;

use http_support::app::{Seen, get, with};
use kernel::{Kernel, Sim};
use net::Stream;
use net::http::{Config, Deadlines, Handler, Limits, Method, Rejection};
use net::http::{Request, RequestHead, RequestParts, Response, serve_connection};
use net::pipe::duplex;
use net::web::{Form, Router};
use serde_json::json;
use traps::spawn;

#[derive(Clone, Copy)]
enum Route {
    Home,
    Made,
    Rest,
    Task,
    Sum,
    Reject,
    RejectLate,
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

/// A value that panics when used, and again when dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a payload");
    }
}

fn app() -> App {
    let text = Router::new()
        .get("/", Route::Home)
        .get("/files/{*name}", Route::Rest)
        .get("/tasks/{id}/of/{list}", Route::Task)
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
        .post("/api/sum", Route::Sum)
        .post("/api/reject", Route::Reject)
        .get("/api/reject-late", Route::RejectLate)
        .form(Form::Text);
    App(json)
}

impl Handler for App {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let route = match self.0.find(request) {
            Ok(route) => route,
            Err(answer) => return Ok(answer),
        };
        match route {
            Route::Home => Ok(Response::text("home")),
            Route::Made => Response::json(&json!({ "made": true })),
            Route::Rest => Ok(Response::text(request.raw_param("name").unwrap().to_owned())),
            Route::Task => Ok(Response::text(task(request))),
            Route::Sum => {
                let numbers: Vec<u64> = request.json(20).await?;
                Response::json(&numbers.iter().sum::<u64>())
            }
            Route::Reject => Err(Rejection::new(409, "it is there already\n").into()),
            Route::RejectLate => {
                let mut answer = request.start(Response::new(200)).await?;
                answer.write(b"half").await?;
                answer.flush().await?;
                // As an outer handler does.
                request.rejected(Rejection::new(409, "it is there already\n").into())
            }
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

/// A helper's view of a request, without the type of its stream.
fn task(head: &RequestHead) -> String {
    let param = |name| head.param(name).unwrap_or("none".into());
    format!("{}|{}|{}|{:?}", param("id"), param("list"), param("of"), head.route())
}

fn talk(request: &str) -> Seen {
    http_support::app::talk(Sim::new(), Config::default(), app(), request)
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
        ("GET /tasks/7/of/a", 200, "7|a|none|Some(\"/tasks/{id}/of/{list}\")"),
        ("GET /t%61sks/a%20b/of/c%2Fd", 200, "a b|c/d|none|Some(\"/tasks/{id}/of/{list}\")"),
        ("GET /tasks/%ff/of/%", 200, "\u{fffd}|%|none|Some(\"/tasks/{id}/of/{list}\")"),
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
        let wanted = json!({ "error": error }).to_string();
        assert_eq!((seen.statuses(), seen.body()), (vec![status], &*wanted), "{request}");
        assert_eq!(seen.field("Content-Type"), Some("application/json"), "{request}");
    }
    let seen = talk(&get("GET /panic"));
    assert_eq!(seen.body(), "something went wrong\n");
    assert_eq!(seen.field("Content-Type"), Some("text/plain; charset=utf-8"));
}

#[test]
fn a_body_is_json_of_the_type_that_is_wanted_or_the_client_is_told_why_not() {
    let post = |kind: &str, body: &str| {
        let length = body.len();
        with("POST /api/sum", &format!("{kind}Content-Length: {length}")) + body
    };
    let json = "Content-Type: application/json\r\n";
    let other = "Content-Type: application/a+json; charset=utf-8\r\n";
    let media = "{\"error\":\"the body must be application/json\"}";
    let type_of = "invalid type: string \\\"a\\\", expected u64 at line 1 column 4";
    let syntax = "EOF while parsing a list at line 1 column 2";
    let trail = "trailing characters at line 1 column 4";
    for (request, status, body) in [
        (post(json, "[1,2]"), 200, "3".to_owned()),
        (post(other, "[]"), 200, "0".to_owned()),
        (post("", "[1,2]"), 415, media.to_owned()),
        (post("Content-Type: text/plain\r\n", "[1,2]"), 415, media.to_owned()),
        (post(json, "[\"a\"]"), 400, told(type_of)),
        (post(json, "[1"), 400, told(syntax)),
        (post(json, "[1]x"), 400, told(trail)),
    ] {
        let seen = talk(&(request.clone() + &get("GET /")));
        assert_eq!(seen.statuses(), [status, 200], "{request}: {}", seen.text);
        let first = seen.body().split("HTTP/1.1").next().unwrap();
        assert_eq!(first, body, "{request}");
        assert!(!seen.trace.contains(" warn "), "{}", seen.trace);
    }
    let seen = talk(&post(json, "[1,2,3,4,5,6,7,8,9,10]"));
    assert_eq!((seen.statuses(), seen.closed), (vec![413], true));
    // A client that waits for a 100 gets none if its body has the wrong type.
    let seen = talk(&with("POST /api/sum", "Content-Length: 5\r\nExpect: 100-continue"));
    assert!(seen.statuses() == [415] && !seen.text.contains("100 Continue"), "{}", seen.text);
}

/// The response to the JSON of a body.
fn told(why: &str) -> String {
    format!("{{\"error\":\"the JSON of the body: {why}\"}}")
}

/// The user, as an outer handler has found out.
struct User(String);

struct Known<H>(H);

impl<H: Handler> Handler for Known<H> {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let name = request.query_value("name").map(|name| name.into_owned());
        request.set_data(0_u8);
        request.set_data(User("nobody".to_owned()));
        if let Some(name) = name {
            request.set_data(User(name));
        }
        self.0.handle(request).await?.header("X-Known", "yes").map_err(io::Error::from)
    }
}

struct Greeter;

impl Handler for Greeter {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let pairs: Vec<_> = request.query_pairs().map(|(a, b)| format!("{a}={b}")).collect();
        let (user, count) = (request.data::<User>(), request.data::<u8>());
        let user = user.map(|user| &*user.0);
        let other = request.data::<String>();
        Ok(Response::text(format!("{user:?} {count:?} {other:?} {}", pairs.join("|"))))
    }
}

#[test]
fn what_an_outer_handler_stores_with_a_request_its_inner_handlers_find() {
    for (path, body) in [
        ("/", "Some(\"nobody\") Some(0) None "),
        ("/?name=a%20b+c", "Some(\"a b c\") Some(0) None name=a b c"),
        ("/?x&name=%26%3D&name=2", "Some(\"&=\") Some(0) None x=|name=&=|name=2"),
        ("/?%6eame=%ff%zz&", "Some(\"\u{fffd}%zz\") Some(0) None name=\u{fffd}%zz"),
    ] {
        // The next request of the connection has no data of the previous one.
        let requests = get(&format!("GET {path}")) + &get("GET /");
        let seen =
            http_support::app::talk(Sim::new(), Config::default(), Known(Greeter), &requests);
        let first = seen.body().split("HTTP/1.1").next().unwrap();
        assert_eq!((first, seen.field("X-Known")), (body, Some("yes")), "{path}");
        assert!(seen.text.ends_with("Some(\"nobody\") Some(0) None "), "{}", seen.text);
    }
}

#[test]
fn a_rejection_is_answered_in_the_form_of_the_route_and_the_connection_continues() {
    let rejected = with("POST /api/reject", "Content-Length: 2") + "{}";
    let seen = talk(&(rejected + &get("GET /")));
    assert_eq!((seen.statuses(), seen.closed), (vec![409, 200], false), "{}", seen.text);
    assert!(seen.body().starts_with("{\"error\":\"it is there already\"}"), "{}", seen.text);
    assert!(!seen.trace.contains(" warn "), "{}", seen.trace);
    // After the response has begun it is a failure like any other.
    let seen = talk(&get("GET /api/reject-late"));
    assert_eq!((seen.statuses(), seen.closed), (vec![200], true), "{}", seen.text);
    let line = "warn     a handler failed: 409: it is there already";
    assert_eq!(seen.trace.matches(line).count(), 1, "{}", seen.trace);
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
    // A response that has begun breaks off, and the client can detect that.
    let seen = talk(&get("GET /half"));
    assert!(seen.closed && seen.body().starts_with("4\r\nhalf\r\n"), "{}", seen.text);
    assert!(!seen.text.contains("0\r\n\r\n"), "{}", seen.text);
}

#[test]
fn the_error_of_a_handler_is_said_once_and_that_of_a_connection_is_not() {
    let failed = "warn     a handler failed: ";
    for (path, status, why) in [
        ("/api/fail", 500, "a file is missing"),
        // The response had begun, so it breaks off.
        ("/half-fail", 200, "a file has ended"),
    ] {
        let seen = talk(&get(&format!("GET {path}")));
        assert_eq!((seen.statuses(), seen.closed), (vec![status], true), "{path}");
        assert_eq!(seen.trace.matches(&format!("{failed}{why}\n")).count(), 1, "{}", seen.trace);
        assert_eq!(seen.trace.matches(failed).count(), 1, "{}", seen.trace);
    }
    // Even if the client wants no body.
    let seen = talk(&get("HEAD /half-fail"));
    assert_eq!(seen.trace.matches(failed).count(), 1, "{}", seen.trace);
    // Failures that a client can cause, and failures that are logged elsewhere.
    let long = with("POST /api/read", "Content-Length: 4") + "long";
    let bad = with("POST /api/read", "Transfer-Encoding: chunked") + "x\r\n";
    let silent = with("POST /api/read", "Content-Length: 3") + "si";
    for request in [long, bad, silent, get("GET /api/panic"), get("GET /half"), get("GET /none")] {
        let seen = talk(&request);
        assert!(!seen.trace.contains(failed), "{request}: {}", seen.trace);
    }
    let deadlines = Deadlines { handler: Duration::from_secs(1), ..Deadlines::default() };
    let config = Config::new(Limits::default(), deadlines);
    let seen = http_support::app::talk(Sim::new(), config, app(), &get("GET /slow"));
    assert!(!seen.trace.contains(failed), "{}", seen.trace);
}

#[test]
fn who_leaves_in_the_midst_of_an_answer_or_of_a_body_writes_no_line() {
    let body = with("POST /api/read", "Content-Length: 3") + "x";
    for request in [get("GET /flood"), body] {
        for resets in [false, true] {
            let trace = http_support::app::Shared::default();
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
        http_support::app::talk(
            Sim::new(),
            Config::new(Limits::default(), deadlines),
            app(),
            request,
        )
    };
    let seen = late(Duration::from_secs(1), &(get("GET /") + &get("GET /api/slow")));
    assert_eq!((seen.statuses(), seen.closed), (vec![200, 503], true), "{}", seen.text);
    assert!(seen.text.contains("\r\nRetry-After: 1\r\n"), "{}", seen.text);
    assert!(seen.text.ends_with("{\"error\":\"the answer took too long\"}"), "{}", seen.text);
    assert_eq!(seen.at, traps::Time::ZERO + Duration::from_secs(1));
    assert_eq!(seen.trace.matches("cap      name=handler_wait limit=1s conn=1").count(), 1);
    let seen = late(Duration::from_secs(3), &get("GET /slow"));
    assert_eq!((seen.statuses(), seen.body()), (vec![200], "slow"));
    // A response that has begun breaks off.
    let seen = late(Duration::from_millis(10), &get("GET /half"));
    assert!(seen.closed && !seen.text.contains("0\r\n\r\n"), "{}", seen.text);
}

/// Marks each response.
struct Marks<H>(H);

impl<H: Handler> Handler for Marks<H> {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        Ok(self.0.handle(request).await?.header("X-Mark", "handled")?)
    }

    fn instead(&self, request: &RequestParts<'_>, response: Response) -> Response {
        let mark = format!("{} instead", request.path());
        self.0.instead(request, response).header("X-Mark", mark).unwrap()
    }
}

#[test]
fn the_outermost_handler_sees_each_response_that_the_server_makes_for_it() {
    const CHUNKED: &str = "Transfer-Encoding: chunked";
    for (request, status, mark) in [
        (get("GET /"), 200, Some("handled")),
        (get("GET /nowhere"), 404, Some("handled")),
        (get("GET /api/fail"), 500, Some("/api/fail instead")),
        (get("GET /panic"), 500, Some("/panic instead")),
        (get("GET /slow"), 503, Some("/slow instead")),
        (get("POST /api/reject"), 409, Some("/api/reject instead")),
        (with("POST /api/read", "Content-Length: 9"), 413, Some("/api/read instead")),
        (with("POST /api/read", CHUNKED) + "x\r\n", 400, Some("/api/read instead")),
        (with("POST /api/read", CHUNKED) + "9\r\n", 408, Some("/api/read instead")),
        (get("GET /half-fail"), 200, None),
        ("GET / HTTP/3.1\r\n\r\n".to_owned(), 505, None),
    ] {
        let second = Duration::from_secs(1);
        let deadlines = Deadlines { body: second, handler: second, ..Deadlines::default() };
        let config = Config::new(Limits::default(), deadlines);
        let seen = http_support::app::talk(Sim::new(), config, Marks(app()), &request);
        let wanted = (&[status][..], mark);
        assert_eq!((&seen.statuses()[..], seen.field("X-Mark")), wanted, "{request}");
    }
}
