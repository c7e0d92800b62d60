//! The access log gets every response, once.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::net::TcpStream as StdStream;
use std::rc::Rc;
use std::time::Duration;

use http_support::{Act, App, deadlines, limits, talk, talk_to};
use kernel::{Kernel, Real, Sim};
use net::http::{Config, Exchange, Handler, Request, Response, serve, serve_connection};
use net::pipe::duplex;
use net::{Stream, TcpListener};
use socket2::SockRef;
use traps::sync::Event;

/// The reports of a conversation, as `line status length`.
fn told(mut config: Config, acts: &[Act<'_>]) -> Vec<String> {
    let told = Rc::new(RefCell::new(Vec::new()));
    let log = told.clone();
    config.on_exchange(move |exchange: &Exchange<'_>| {
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

// ---- Answers that are not sent ------------------------------------------------------------------

const SECOND: Duration = Duration::from_secs(1);

/// An [`App`] that counts its requests.
struct Counted(Rc<Cell<u32>>);

impl Handler for Counted {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        self.0.set(self.0.get() + 1);
        App.handle(request).await
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// The reports about a client that sends this and leaves after this time, without reading anything
/// from a pipe of that size; and the number of requests handled.
fn of_one_that_leaves(text: &str, capacity: usize, stays: Option<Duration>) -> (Vec<String>, u32) {
    let (told, handled) = (Rc::new(RefCell::new(Vec::new())), Rc::default());
    let log = told.clone();
    let mut config = Config::default();
    config.on_exchange(move |exchange: &Exchange<'_>| {
        let Exchange { request_line, status, length, .. } = exchange;
        let line = String::from_utf8_lossy(request_line);
        log.borrow_mut().push(format!("{line} {status} {length}"));
    });
    let handler = Counted(Rc::clone(&handled));
    let mut kernel = Kernel::new(Sim::new());
    let served = kernel.run(async {
        let (server, mut client) = duplex(capacity);
        client.write(text.as_bytes()).await.unwrap();
        let leave = async move {
            if let Some(span) = stays {
                traps::sleep(span).await.unwrap();
            }
            drop(client);
        };
        match stays {
            None => leave.await,
            Some(_) => traps::spawn("client", leave).detached().await,
        }
        serve_connection(server, &handler, &config).await
    });
    // If the client has left, that is an error of the stream or not an error at all.
    let _ = served.expect("nothing hangs");
    kernel.shutdown().unwrap();
    (told.take(), handled.get())
}

#[test]
fn an_answer_that_no_client_can_read_is_told_as_499_and_no_request_behind_it_is_handled() {
    for path in ["/", "/none", "/big", "/stream", "/stream?length=11", "/sleep", "/fail"] {
        let three = [get(path), get("/"), get("/stream")].concat();
        let wanted = vec![format!("GET {path} HTTP/1.1 499 0")];
        assert_eq!(of_one_that_leaves(&three, 1 << 20, None), (wanted, 1), "{path}");
    }
    let refused = of_one_that_leaves("nonsense\r\n\r\n", 1 << 20, None);
    assert_eq!(refused, (vec!["nonsense 499 0".to_owned()], 0));
}

#[test]
fn an_answer_is_told_when_the_stream_has_taken_it_whatever_becomes_of_the_one_behind() {
    let two = [get("/"), get("/stream"), get("/sleep"), get("/")].concat();
    let wanted =
        ["GET / HTTP/1.1 200 13", "GET /stream HTTP/1.1 200 11", "GET /sleep HTTP/1.1 499 0"];
    let (told, handled) = of_one_that_leaves(&two, 1 << 20, Some(SECOND / 10));
    assert_eq!((&told[..], handled), (&wanted.map(str::to_owned)[..], 3));
}

#[test]
fn of_an_answer_that_breaks_off_the_bytes_are_told_that_the_stream_has_taken() {
    let whole = talk(&[Act::Send(get("/big").as_bytes())]).text;
    let head = whole.find("\r\n\r\n").unwrap() + 4;
    for taken in [head - 10, head, head + 1, 5000] {
        let (told, _) = of_one_that_leaves(&get("/big"), taken, Some(SECOND));
        let length = taken.saturating_sub(head);
        assert_eq!(told, [format!("GET /big HTTP/1.1 200 {length}")], "{taken}");
    }
    // The beginning of the second answer is taken, and nothing of the third.
    let small = talk(&[Act::Send(get("/").as_bytes())]).text.len();
    let (told, _) = of_one_that_leaves(&get("/").repeat(3), small * 2 - 3, Some(SECOND));
    let line = |status, length| format!("GET / HTTP/1.1 {status} {length}");
    assert_eq!(told, [line(200, 13), line(200, 10), line(499, 0)]);
}

/// Over a real socket: the client has gone before it is accepted.
#[test]
fn a_client_that_resets_at_once_is_told_with_its_address() {
    let (told, handled) = (Rc::new(RefCell::new(Vec::new())), Rc::default());
    let (log, is_told) = (told.clone(), Rc::new(Event::new()));
    let mut config = Config::default();
    let tell = is_told.clone();
    config.on_exchange(move |exchange: &Exchange<'_>| {
        let Exchange { peer, status, length, .. } = exchange;
        log.borrow_mut().push((peer.unwrap(), *status, *length));
        tell.set();
    });
    let handler = Counted(Rc::clone(&handled));
    let mut kernel = Kernel::new(Real::new().unwrap());
    let client = kernel.run(async move {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = StdStream::connect(listener.local_addr().unwrap()).unwrap();
        let peer = client.local_addr().unwrap();
        client.write_all(get("/").repeat(3).as_bytes()).unwrap();
        SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        let serve = serve(listener, Rc::new(handler), Rc::new(config));
        traps::spawn("server", serve).detached().await;
        traps::timeout_after(60 * SECOND, is_told.wait()).await.unwrap();
        peer
    });
    kernel.shutdown().unwrap();
    assert_eq!((told.take(), handled.get()), (vec![(client.unwrap(), 499, 0)], 1));
}

/// A request line is kept until its response has been sent, and the client chooses its length.
#[test]
fn responses_to_long_request_lines_are_out_before_many_more_are_answered() {
    let (handled, kept) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (ours, most) = (handled.clone(), kept.clone());
    let told = Cell::new(0);
    let mut config = Config::default();
    config.on_exchange(move |_: &Exchange<'_>| {
        most.set(most.get().max(ours.get() - told.get()));
        told.set(told.get() + 1);
    });
    let long = get(&format!("/none?{}", "x".repeat(8_000)));
    let seen = talk_to(
        Counted(handled.clone()),
        config,
        1 << 20,
        usize::MAX,
        &[Act::Send(long.repeat(20).as_bytes())],
    );
    assert_eq!((seen.statuses(), handled.get()), (vec![204; 20], 20));
    // Three of them are more than 16 KiB. They are reported when the fourth has been handled.
    assert_eq!(kept.get(), 4);
}
