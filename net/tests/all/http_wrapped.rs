//! A server that wraps its streams: during a handshake, all rules for a silent client apply.
//!
//! The handshake of these tests is a line from the client.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::rc::Rc;
use std::time::Duration;

use http_support::App;
use http_support::served::{GET, ask, connect, patient, read_all};
use kernel::trace::{Event, Line};
use kernel::{Counters, Kernel, Real};
use net::http::{Config, serve_wrapped};
use net::{BufReader, TcpListener, TcpStream};
use traps::{run_in_thread, sleep, spawn};

async fn handshake(tcp: TcpStream) -> io::Result<BufReader<TcpStream>> {
    let mut stream = BufReader::new(tcp);
    let mut line = Vec::new();
    stream.read_line(&mut line, 100).await?;
    if line == b"hi" { Ok(stream) } else { Err(ErrorKind::InvalidData.into()) }
}

fn greeted(addr: SocketAddr) -> StdStream {
    let mut stream = connect(addr);
    stream.write_all(b"hi\n").unwrap();
    stream
}

/// The log of a server while `clients` talked to it from a thread.
struct Ran<T> {
    output: T,
    caps: Vec<String>,
    counters: Counters,
}

/// Runs a server, and shuts it down when `clients` return. Their result is dropped after that.
fn serve_while<T: Send + 'static>(
    config: Config,
    clients: impl FnOnce(SocketAddr) -> T + Send + 'static,
) -> Ran<T> {
    let caps = Rc::new(RefCell::new(Vec::new()));
    let heard = caps.clone();
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel.observe(move |line: &Line<'_>| {
        if let Event::Cap { text } = &line.event {
            heard.borrow_mut().push(text.to_string());
        }
    });
    let config = Rc::new(config);
    let theirs = config.clone();
    let main = async move {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let server = serve_wrapped(listener, handshake, Rc::new(App), theirs);
        spawn("server", server).detached().await;
        run_in_thread(move || clients(addr)).await.unwrap()
    };
    let output = kernel.run(main).unwrap();
    kernel.shutdown().unwrap();
    assert_eq!(config.connections(), 0);
    let counters = kernel.counters();
    assert_eq!((counters.tasks, counters.tickets, counters.scopes, counters.timers), (0, 0, 0, 0));
    assert_eq!((counters.registered, counters.handles, counters.deadlines), (0, 0, 0));
    drop(kernel);
    Ran { output, caps: caps.take(), counters }
}

#[test]
fn a_request_goes_over_the_stream_that_the_handshake_makes() {
    serve_while(patient(2), |addr| {
        let mut stream = connect(addr);
        // The request arrives with the handshake.
        stream.write_all(b"hi\n").unwrap();
        assert_eq!(ask(&mut stream).unwrap(), 200);
        assert_eq!(ask(&mut stream).unwrap(), 200);
        // A failed handshake does not affect other connections.
        let mut wrong = connect(addr);
        wrong.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        assert_eq!(read_all(wrong), "");
        assert_eq!(ask(&mut stream).unwrap(), 200);
    });
}

#[test]
fn a_client_without_its_handshake_gives_its_place_to_a_new_one() {
    for said in [&b""[..], b"h", b"hi\n"] {
        let ran = serve_while(patient(2), move |addr| {
            let silent = [(); 2].map(|()| {
                let mut stream = connect(addr);
                stream.write_all(said).unwrap();
                stream
            });
            assert_eq!(ask(&mut greeted(addr)).unwrap(), 200);
            let [longest, _other] = silent;
            assert_eq!(read_all(longest), "");
        });
        assert_eq!(ran.caps, ["name=connections limit=2 conn=1"], "{said:?}");
    }
}

#[test]
fn a_connection_too_many_has_its_handshake_before_it_is_refused() {
    let ran = serve_while(patient(1), |addr| {
        let mut busy = greeted(addr);
        let expects = "Host: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n";
        write!(busy, "POST /echo HTTP/1.1\r\n{expects}\r\n").unwrap();
        let mut told = [0; 25];
        io::Read::read_exact(&mut busy, &mut told).unwrap();
        let mut refused = greeted(addr);
        refused.write_all(GET).unwrap();
        assert!(read_all(refused).starts_with("HTTP/1.1 503 "));
        // A client that never greets is cut off at the end, and delays nothing.
        let silent = connect(addr);
        busy.write_all(b"abc").unwrap();
        (silent, busy)
    });
    assert!(ran.caps[0].starts_with("name=connections limit=1 conn=2"), "{:?}", ran.caps);
}

#[test]
fn the_deadline_of_the_first_head_bounds_the_handshake_too() {
    let mut config = patient(10);
    config.deadlines.head = Duration::from_millis(50);
    serve_while(config, |addr| {
        assert_eq!(read_all(connect(addr)), "");
        assert_eq!(read_all(greeted(addr)), "");
        let mut begun = connect(addr);
        begun.write_all(b"h").unwrap();
        assert_eq!(read_all(begun), "");
    });
}

#[test]
fn fifty_handshakes_that_never_end_are_no_work_that_a_drain_waits_for() {
    let ran = serve_while(patient(100), |addr| {
        let mut clients = Vec::new();
        for n in 0..50 {
            let mut client = connect(addr);
            client.write_all(if n % 2 == 0 { b"" } else { b"h" }).unwrap();
            clients.push(client);
        }
        // They are accepted before this one.
        assert_eq!(ask(&mut greeted(addr)).unwrap(), 200);
        clients
    });
    for client in ran.output {
        assert_eq!(read_all(client), "");
    }
    assert_eq!(ran.counters.cut_off, 0);
}

#[test]
fn a_server_that_ends_in_the_midst_of_a_handshake_keeps_nothing() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let config = Rc::new(patient(10));
    let theirs = config.clone();
    let client = kernel.run(async move {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = connect(listener.local_addr().unwrap());
        let watched = theirs.clone();
        let server = serve_wrapped(listener, handshake, Rc::new(App), theirs);
        spawn("server", server).detached().await;
        while watched.connections() == 0 {
            sleep(Duration::from_millis(1)).await.unwrap();
        }
        client
    });
    drop(kernel);
    assert_eq!(config.connections(), 0);
    assert_eq!(read_all(client.unwrap()), "");
}
