//! The live page of a server, and its bounded cost for the server, whatever the number of viewers.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use kernel::{Kernel, Real};
use net::http::{Config, Handler, Request, Response, serve};
use net::{Stream, TcpListener};
use serving::kernel_page;
use testing::child;
use traps::{run_in_thread, sleep, spawn};

struct Page;

impl Handler for Page {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        match request.path() == "/kernel" {
            true => kernel_page::page().await,
            false => kernel_page::feed(request).await,
        }
    }
}

/// Runs a server with the page, and returns what its clients return. All connections end before.
fn serve_while<T: Send + 'static>(clients: impl FnOnce(SocketAddr) -> T + Send + 'static) -> T {
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel_page::watch(&mut kernel);
    let result = kernel.run(async {
        let config = Rc::new(Config::default());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        spawn("server", serve(listener, Rc::new(Page), config.clone())).detached().await;
        let result = run_in_thread(move || clients(addr)).await.unwrap();
        while config.connections() > 0 {
            sleep(Duration::from_millis(1)).await.unwrap();
        }
        sleep(Duration::ZERO).await.unwrap();
        assert_eq!(kernel_page::hidden(), 0);
        result
    });
    kernel.shutdown().unwrap();
    result.unwrap()
}

/// Opens the feed. Returns its status and its first update, if it has one.
fn open(addr: SocketAddr) -> (BufReader<TcpStream>, String, Option<String>) {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(child::LIMIT)).unwrap();
    stream.write_all(b"GET /kernel/events HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        (lines.read_line(&mut line).unwrap() > 0).then_some(line)
    };
    let status = line().unwrap();
    let update = status.contains(" 200 ").then(|| {
        loop {
            let line = line().expect("an update comes");
            if line.starts_with("data: ") {
                break line;
            }
        }
    });
    (lines, status, update)
}

#[test]
fn a_connection_to_the_page_leaves_nothing_behind() {
    serve_while(|addr| {
        for round in 0..20 {
            // The request has arrived before the connection is accepted, or not.
            let mut stream = TcpStream::connect(addr).unwrap();
            if round % 2 == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
            let close = "GET /kernel HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            stream.write_all(close.as_bytes()).unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
            if round % 4 == 0 {
                let feed = open(addr);
                assert!(feed.2.is_some(), "{}", feed.1);
            }
        }
    });
}

#[test]
fn eight_pages_are_open_at_a_time_and_share_their_updates() {
    serve_while(|addr| {
        let pages: Vec<_> = (0..8).map(|_| open(addr)).collect();
        let (_, status, _) = open(addr);
        assert!(status.starts_with("HTTP/1.1 503 "), "{status}");
        // An update is made at most twice a second, and these eight arrived at once, unless the
        // machine stalled.
        let updates: Vec<_> = pages.iter().map(|(_, _, update)| update).collect();
        assert!(updates.windows(2).any(|two| two[0] == two[1]), "{updates:?}");
        drop(pages);
        // A place is free as soon as the server has seen the end of a page.
        while open(addr).1.starts_with("HTTP/1.1 503 ") {}
    });
}
