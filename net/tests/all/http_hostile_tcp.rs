//! Hostile clients over real sockets: effects that a pipe cannot show.

use std::cell::Cell;
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use http_support::App;
use http_support::served::{GET, ask, connect, patient, read_all, serve_while};
use kernel::{Kernel, Real};
use net::http::{Config, Handler, Request, Response, serve, serve_connection};
use net::{Stream, TcpListener};
use traps::Site;

// ---- The cap on connections --------------------------------------------------------------------

/// A connection in the middle of a request.
fn busy(addr: SocketAddr) -> StdStream {
    let mut stream = connect(addr);
    let expects = "Host: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n";
    write!(stream, "POST /echo HTTP/1.1\r\n{expects}\r\n").unwrap();
    let mut told = [0; 25];
    stream.read_exact(&mut told).unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

/// The answer to it.
fn finish(mut stream: StdStream) -> String {
    stream.write_all(b"abc").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    read_all(stream)
}

fn one_too_many(addr: SocketAddr) {
    let (first, second) = (busy(addr), busy(addr));
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
    }
    drop(second);
    // A client that comes again, as the response asked, gets the place that has become free.
    while ask(&mut connect(addr)).unwrap() == 503 {}
    // Clients with a place keep it.
    assert!(finish(first).starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn d27_one_connection_too_many_is_answered_with_503_and_never_reset() {
    let caps = serve_while(patient(2), 1, one_too_many, || {});
    assert!(caps[0].starts_with("name=connections limit=2 conn=3 peer=127.0.0.1:"), "{caps:?}");
    // The other refusals were counted, and are reported once a second.
    let more = |line: &String| line.split("more=").nth(1).map_or(0, |n| n.parse::<u32>().unwrap());
    assert!(caps.len() < 10 && caps.iter().map(more).sum::<u32>() >= 29, "{caps:?}");
}

/// A connection that waits for its next request gives its place to a new client.
fn one_more(addr: SocketAddr) {
    let mut idle: Vec<StdStream> = (0..2).map(|_| connect(addr)).collect();
    for stream in &mut idle {
        assert_eq!(ask(stream).unwrap(), 200);
    }
    let mut third = connect(addr);
    assert_eq!(ask(&mut third).unwrap(), 200);
    assert_eq!(idle[0].read(&mut [0]).unwrap(), 0, "the longest idle closes");
    assert_eq!(ask(&mut idle[1]).unwrap(), 200);
    assert_eq!(ask(&mut third).unwrap(), 200);
}

#[test]
fn d27_an_idle_connection_gives_its_place_to_a_new_one() {
    let caps = serve_while(patient(2), 1, one_more, || {});
    assert_eq!(caps, ["name=connections limit=2 conn=1"]);
}

/// So many at once that all are accepted in few turns: the cap holds within one turn. Earlier
/// connections are in the middle of a request, so none gives its place up.
fn a_crowd(addr: SocketAddr) {
    let busy: Vec<StdStream> = (0..50).map(|_| busy(addr)).collect();
    let crowd: Vec<StdStream> = (0..150).map(|_| connect(addr)).collect();
    for refused in crowd {
        assert!(read_all(refused).starts_with("HTTP/1.1 503 "));
    }
    for served in busy {
        assert!(finish(served).starts_with("HTTP/1.1 200 OK\r\n"));
    }
}

#[test]
fn d27_the_cap_holds_for_those_who_come_at_once() {
    serve_while(patient(50), 1, a_crowd, || {});
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
    async fn read_from(&mut self, buf: &mut [u8], site: Site) -> io::Result<usize> {
        add(&self.reads);
        self.stream.read_from(buf, site).await
    }
    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
        add(&self.writes);
        self.stream.write_from(bufs, site).await
    }
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        self.stream.readable()
    }
    fn shutdown(&mut self) -> io::Result<()> {
        Stream::shutdown(&mut self.stream)
    }
}

/// The reads, writes and waits on the poller of a server while this many requests are made one by
/// one.
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
            serve_connection(counted, &App, &patient(1)).await.unwrap();
            client.join().unwrap();
        })
        .unwrap();
    (reads.get(), writes.get(), kernel.counters().polls)
}

#[test]
fn d33_a_keep_alive_get_makes_three_system_calls() {
    let (few, many) = (calls(100), calls(1100));
    // One read and one write each, and a read for the end of the connection. The first read of all
    // may come before the first request.
    assert!((999..=1001).contains(&(many.0 - few.0)), "{many:?} {few:?}");
    assert_eq!(many.1 - few.1, 1000);
    // And one wait at most: the next request may have arrived when the kernel looks, and on a busy
    // machine it often has.
    let waits = many.2.saturating_sub(few.2);
    assert!(waits <= 1010, "{waits}");
}

// ---- Slow readers ------------------------------------------------------------------------------

/// Responds with more bytes than all buffers on the way hold.
struct Large;

impl Handler for Large {
    async fn handle<S: Stream>(&self, _: &mut Request<'_, S>) -> io::Result<Response> {
        Ok(Response::new(200).with_body(vec![b'x'; 32 << 20]))
    }
}

/// The system reports room when a third of its buffer is free, which is later than the deadline
/// here; but there is room before that, so the reader makes progress.
#[test]
fn d21_a_slow_reader_is_seen_to_move_on_a_real_socket() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let taken = kernel.run(async {
        let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let client = thread::spawn(move || {
            let (mut stream, mut buf, mut taken) = (connect(addr), vec![0; 1 << 20], 0);
            stream.write_all(GET).unwrap();
            // Lets the buffers on the way grow, then reads little by little. Real time is the
            // subject here: several periods of the deadline.
            for step in 0..28 {
                let piece = if step < 12 { 1 << 20 } else { 200_000 };
                stream.read_exact(&mut buf[..piece])?;
                taken += piece;
                thread::sleep(Duration::from_millis(if step < 12 { 1 } else { 500 }));
            }
            io::Result::Ok(taken)
        });
        let (stream, _) = listener.accept().await.unwrap();
        let mut config = Config::default();
        config.deadlines.write = Duration::from_secs(2);
        let served = serve_connection(stream, &Large, &config).await;
        (client.join().unwrap(), served)
    });
    let (taken, served) = taken.unwrap();
    assert_eq!(taken.unwrap(), (12 << 20) + 16 * 200_000);
    // It ended after the client had read enough; an end by the deadline is not an error either.
    assert!(served.is_err());
}

// ---- Clients that leave, say nothing, or read late -----------------------------------------------

/// Sleeps for an hour. Counts the requests inside it, and those that have cleaned up by waiting.
#[derive(Default)]
struct Sleeper {
    inside: Cell<u32>,
    cleaned: Cell<u32>,
    clients_leave: Cell<bool>,
}

impl Sleeper {
    async fn outlasts_its_client(&self) -> Result<traps::Time, traps::Interrupt> {
        while !self.clients_leave.get() {
            traps::sleep(Duration::from_millis(1)).await?;
        }
        traps::sleep(Duration::from_millis(600)).await
    }
}

impl Handler for Sleeper {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        add(&self.inside);
        let hour = traps::sleep(Duration::from_secs(3600));
        let slept = match request.path() {
            "/shielded" => traps::shield(self.outlasts_its_client()).await,
            _ => hour.await,
        };
        if slept.is_err() {
            traps::yield_now().await?;
            add(&self.cleaned);
        }
        self.inside.set(self.inside.get() - 1);
        Ok(Response::text(format!("{}", slept.is_ok())))
    }
}

#[test]
fn a_client_that_leaves_has_its_handler_cancelled_and_its_seat_given_back() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel
        .run(async {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            let (sleeper, config) = (Rc::new(Sleeper::default()), Rc::new(Config::default()));
            let server =
                traps::spawn("server", serve(listener, sleeper.clone(), config.clone())).await;
            let ask = |path: &str| {
                let mut stream = connect(addr);
                // Bytes after the request do not hide its end.
                write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
                stream.write_all(GET).unwrap();
                stream
            };
            let mut clients: Vec<StdStream> = (0..100).map(|_| ask("/")).collect();
            clients.push(ask("/shielded"));
            while sleeper.inside.get() < 101 {
                traps::sleep(Duration::from_millis(1)).await.unwrap();
            }
            sleeper.clients_leave.set(true);
            drop(clients);
            while config.connections() > 0 {
                traps::sleep(Duration::from_millis(1)).await.unwrap();
            }
            // All of them, because a shielded handler ends by itself.
            assert_eq!((sleeper.inside.get(), sleeper.cleaned.get()), (0, 100));
            server.cancel_because("enough").await.unwrap();
        })
        .unwrap();
    kernel.shutdown().unwrap();
}

/// A client that has never sent anything gives its place to a new one, the longest silent first;
/// clients that are served keep theirs.
fn silence_and_a_guest(addr: SocketAddr) {
    let mut idle = connect(addr);
    assert_eq!(ask(&mut idle).unwrap(), 200);
    let mut silent: Vec<StdStream> = (0..3).map(|_| connect(addr)).collect();
    // Much longer than half a second, because the server must have seen each of them for that long.
    std::thread::sleep(Duration::from_millis(2_000));
    for _ in 0..2 {
        assert_eq!(ask(&mut connect(addr)).unwrap(), 200);
    }
    for stream in &mut silent[..1] {
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "it has been silent longest");
    }
    assert_eq!(ask(&mut idle).unwrap(), 200, "it keeps its seat");
}

#[test]
fn silent_clients_give_way_before_those_that_have_asked() {
    let caps = serve_while(patient(4), 1, silence_and_a_guest, || {});
    // At the fifth connection and at the sixth.
    assert_eq!(caps[0], "name=connections limit=4 conn=2");
    assert!(caps.len() <= 2, "{caps:?}");
}

/// Reads a response larger than all buffers only after the idle deadline has passed, and asks again
/// in the middle of it.
fn reads_late(addr: SocketAddr) {
    let mut stream = connect(addr);
    write!(stream, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let (mut read, mut buf) = (0, vec![0; 64 * 1024]);
    while read < LARGE {
        if read < 1_000_000 {
            std::thread::sleep(Duration::from_millis(20));
        } else if read < 1_100_000 {
            // The server lingers, or has closed.
            let _ = stream.write_all(GET);
        }
        match stream.read(&mut buf).expect("what is queued is not destroyed") {
            0 => panic!("an end after {read} bytes"),
            n => read += n,
        }
    }
}

const LARGE: usize = 2_000_000;

/// Answers with much.
struct Much;

impl Handler for Much {
    async fn handle<S: Stream>(&self, _: &mut Request<'_, S>) -> io::Result<Response> {
        Ok(Response::new(200).with_body(vec![b'x'; LARGE]))
    }
}

#[test]
fn a_close_never_destroys_an_answer_that_is_queued() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel
        .run(async {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            let mut config = Config::default();
            config.deadlines.idle = Duration::from_millis(1);
            let server =
                traps::spawn("server", serve(listener, Rc::new(Much), Rc::new(config))).await;
            traps::run_in_thread(move || reads_late(addr)).await.unwrap();
            server.cancel_because("enough").await.unwrap();
        })
        .unwrap();
    kernel.shutdown().unwrap();
}
