//! A refusal reaches a client that is still sending. On real sockets, because there a close with
//! unread input is a reset, and a reset discards bytes that the client has not read yet.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream as StdStream};
use std::time::Duration;

use http_support::App;
use kernel::{Kernel, Real};
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::{Stream, TcpListener};
use traps::{join, run_in_thread};

/// Sends all of it, then reads to the end, as simple clients do.
fn send_then_read(addr: SocketAddr, head: &str, body: usize) -> io::Result<String> {
    let mut stream = StdStream::connect(addr)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_write_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(head.as_bytes())?;
    let piece = [b'x'; 16 * 1024];
    let mut left = body;
    while left > 0 {
        left -= stream.write(&piece[..left.min(piece.len())])?;
    }
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[track_caller]
fn is_told(status: u16, head: &'static str, body: usize) {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let answer = kernel.run(async {
        let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let client = run_in_thread(move || send_then_read(addr, head, body));
        // A client on a busy machine may be slow.
        let mut config = Config::default();
        config.deadlines.linger = Duration::from_secs(60);
        let serve = async {
            let (stream, _) = listener.accept().await?;
            serve_connection(stream, &App, &config).await
        };
        let (answer, served) = join(client, serve).await;
        let _: io::Result<()> = served;
        answer.unwrap()
    });
    let answer = answer.unwrap().unwrap_or_else(|error| panic!("{head:?}: {error}"));
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head:?}: {answer}");
    assert!(answer.contains("\r\nConnection: close\r\n"), "{head:?}: {answer}");
}

#[test]
fn a_client_that_sends_a_body_that_is_too_long_reads_413() {
    const BODY: &str = "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n";
    is_told(413, BODY, 9_000_000);
}

#[test]
fn a_client_whose_request_is_refused_reads_why_though_its_body_is_on_its_way() {
    for (status, head) in [
        (400, "POST /count HTTP/1.1\r\nContent-Length: 500000\r\n\r\n"),
        (501, "BREW /pot HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n"),
        (404, "POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n"),
        (413, "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n"),
    ] {
        is_told(status, head, 500_000);
    }
}

/// Sends more while the response is made.
struct Crossing(RefCell<StdStream>);

impl Handler for Crossing {
    async fn handle<S: Stream>(&self, _: &mut Request<'_, S>) -> io::Result<Response> {
        traps::yield_now().await?;
        self.0.borrow_mut().write_all(b"more")?;
        Ok(Response::text("the whole answer"))
    }
}

#[test]
fn a_client_that_sends_on_after_its_last_request_meets_an_end_and_no_reset() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let answer = kernel.run(async {
        let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = StdStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let handler = Crossing(RefCell::new(client.try_clone().unwrap()));
        let (stream, _) = listener.accept().await.unwrap();
        let config = Config::default();
        let serve = async {
            let served = serve_connection(stream, &handler, &config).await;
            drop(handler);
            served
        };
        let read = run_in_thread(move || {
            let mut answer = String::new();
            let read = client.read_to_string(&mut answer);
            client.shutdown(Shutdown::Both).map(|()| read.map(|_| answer))
        });
        let (served, answer) = join(serve, read).await;
        served.unwrap();
        answer.unwrap().unwrap()
    });
    let answer = answer.unwrap().expect("it ends, and is not reset");
    assert!(answer.ends_with("the whole answer"), "{answer}");
}
