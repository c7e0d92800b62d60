//! Peers that mean no good, over real sockets: what a pipe cannot show.

mod common;
mod served;

use std::cell::Cell;
use std::io::{self, IoSlice, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::rc::Rc;

use common::{App, limits};
use kernel::{Kernel, Real};
use net::http::{Config, serve_connection};
use net::{Stream, TcpListener};
use served::{GET, ask, connect, read_all, serve_while};

// ---- The cap on connections --------------------------------------------------------------------

fn one_too_many(addr: SocketAddr) {
    let (mut first, mut second) = (connect(addr), connect(addr));
    assert_eq!((ask(&mut first).unwrap(), ask(&mut second).unwrap()), (200, 200));
    let post =
        [&b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n"[..], &[b'x'; 30_000]];
    let said: [&[u8]; 4] = [b"", b"GET / HT", GET, &post.concat()];
    for round in 0..30 {
        let mut stream = connect(addr);
        stream.write_all(said[round % said.len()]).unwrap();
        let answer = read_all(stream);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a whole head");
        assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{head}");
        for line in ["Retry-After: 1", "Connection: close", "Content-Length: 0"] {
            assert!(head.split("\r\n").any(|field| field == line), "{line}: {head}");
        }
        assert_eq!(body, "");
        // Those who have a place keep it.
        assert_eq!(ask(&mut first).unwrap(), 200);
    }
    drop(second);
    // Whoever comes again, as it was told to, gets the place that has become free.
    while ask(&mut connect(addr)).unwrap() == 503 {}
    assert_eq!(ask(&mut first).unwrap(), 200);
}

#[test]
fn d27_one_connection_too_many_is_answered_with_503_and_never_reset() {
    let caps = serve_while(limits(|limits| limits.connections = 2), 1, one_too_many, || {});
    assert_eq!(caps[0], "name=connections limit=2 conn=3");
    // The others were counted, and summed up when there was room again.
    assert_eq!(caps.len(), 2, "{:?}", caps);
    let more = caps[1].split("more=").nth(1).and_then(|more| more.parse::<u32>().ok());
    assert!(more.unwrap() >= 29, "{:?}", caps);
}

/// So many at once that all are accepted in few turns: the cap holds within one.
fn a_crowd(addr: SocketAddr) {
    let mut crowd: Vec<StdStream> = (0..200).map(|_| connect(addr)).collect();
    let answers: Vec<u16> = crowd.iter_mut().map(|stream| ask(stream).unwrap()).collect();
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 50);
    assert_eq!(answers.iter().filter(|status| **status == 503).count(), 150);
}

#[test]
fn d27_the_cap_holds_for_those_who_come_at_once() {
    serve_while(limits(|limits| limits.connections = 50), 1, a_crowd, || {});
}

// ---- System calls ------------------------------------------------------------------------------

/// A stream that counts the operations that reach it: each is a system call if it does not wait.
struct Counted {
    stream: net::TcpStream,
    reads: Rc<Cell<u32>>,
    writes: Rc<Cell<u32>>,
}

fn add(count: &Cell<u32>) {
    count.set(count.get() + 1);
}

impl Stream for Counted {
    async fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        add(&self.reads);
        self.stream.read(buf).await
    }
    async fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        add(&self.writes);
        self.stream.write(buf).await
    }
    async fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        add(&self.writes);
        self.stream.write_vectored(bufs).await
    }
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        self.stream.readable()
    }
    fn shutdown(&mut self) -> io::Result<()> {
        Stream::shutdown(&mut self.stream)
    }
}

/// Reads, writes and waits on the poller of a server while so many requests are made one by one.
fn calls(requests: u32) -> (u32, u32, u64) {
    let (reads, writes) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel
        .run(async {
            let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            let client = std::thread::spawn(move || {
                let mut stream = connect(addr);
                for _ in 0..requests {
                    assert_eq!(ask(&mut stream).unwrap(), 200);
                }
            });
            let (stream, _) = listener.accept().await.unwrap();
            let counted = Counted { stream, reads: reads.clone(), writes: writes.clone() };
            serve_connection(counted, &App, &Config::default()).await.unwrap();
            client.join().unwrap();
        })
        .unwrap();
    (reads.get(), writes.get(), kernel.counters().polls)
}

#[test]
fn d33_a_keep_alive_get_makes_three_system_calls() {
    let (few, many) = (calls(100), calls(1100));
    // One read and one write each, and a read for the end of the connection.
    assert_eq!((many.0 - few.0, many.1 - few.1), (1000, 1000));
    // And one wait, sometimes none: the next request may be there when the kernel looks.
    let waits = many.2 - few.2;
    assert!((900..=1010).contains(&waits), "{waits}");
}
