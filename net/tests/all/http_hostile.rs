//! Hostile clients, on the virtual clock: the server closes each in bounded time, and no other
//! client waits for that.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use http_support::hostile::{Enemy, comes_and_goes, idle, round, slow_body, slow_head, slow_read};
use http_support::{Act, App, deadlines, kernel_with_caps, limits, talk, talk_with};
use kernel::{Counters, Kernel, Sim};
use net::Stream;
use net::http::{Config, Deadlines, Handler, Request, Response, reject, serve_connection};
use net::pipe::{PipeEnd, duplex};
use traps::{Time, clock, sleep, spawn, yield_now};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const SECOND: Duration = Duration::from_secs(1);

/// Requests of every kind; each ends in another phase.
const CORPUS: [&[u8]; 7] = [
    GET,
    b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde",
    b"POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nabcde",
    b"POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789",
    b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost : a\r\n\r\nand more",
];

/// The resources of the server after the last of its connections has ended.
fn nothing_is_left(counters: &Counters) {
    let Counters { tasks, tickets, scopes, timers, deadlines, pending, .. } = *counters;
    assert_eq!((tasks, tickets, scopes, timers, deadlines, pending), (0, 0, 0, 0, 0, 0));
}

/// The time at which a connection ends if its peer sends this much of `request`, reads this many
/// bytes, and then does nothing forever. `None` if the connection never ends.
fn left_at(config: &Rc<Config>, request: &[u8], sent: usize, reads: usize) -> Option<Time> {
    let mut kernel = Kernel::new(Sim::new());
    let (server, mut client) = duplex(500);
    let config = config.clone();
    let end = kernel.run(async {
        let serve = async move { serve_connection(server, &App, &config).await };
        let mut conn = spawn("conn", serve).await;
        client.write_all(&request[..sent]).await.unwrap();
        let (mut left, mut buf) = (reads, [0; 100]);
        while left > 0 {
            let most = left.min(buf.len());
            // The server may send fewer bytes than that, and then sends no more.
            match traps::ignore_after(SECOND, client.read(&mut buf[..most])).await.unwrap() {
                None | Some(0) => break,
                Some(n) => left -= n,
            }
        }
        conn.join().await.unwrap().unwrap();
        let end = clock().await;
        drop(client);
        end
    });
    kernel.shutdown().unwrap();
    nothing_is_left(&kernel.counters());
    end.ok()
}

/// The latest end over all points at which a peer may stop; `None` if the server waits without a
/// deadline at one of them.
fn latest_end(config: Config) -> Option<Time> {
    let config = Rc::new(config);
    let mut latest = Time::ZERO;
    for request in CORPUS {
        for sent in 0..=request.len() {
            for reads in [0, 50, usize::MAX] {
                latest = latest.max(left_at(&config, request, sent, reads)?);
            }
        }
    }
    assert_eq!(config.connections(), 0);
    Some(latest)
}

#[test]
fn d23_a_peer_that_stops_anywhere_is_left() {
    let latest = latest_end(Config::default()).expect("every phase has a deadline");
    // Two phases may follow each other, a body and its response; none is longer than 30 s.
    assert!(latest <= Time::ZERO + 45 * SECOND, "{latest:?}");
}

/// Removes the deadline of a phase.
type Without = fn(&mut Deadlines);

/// If a phase had no deadline, the test above would fail, because it reaches all of them.
#[test]
fn d23_each_phase_needs_its_own_deadline() {
    let never = Duration::MAX;
    let phases: [(&str, Without); 5] = [
        ("head", |all| all.head = Duration::MAX),
        ("body", |all| (all.body, all.body_rate) = (Duration::MAX, 0)),
        ("write", |all| all.write = Duration::MAX),
        ("idle", |all| all.idle = Duration::MAX),
        ("linger", |all| all.linger = Duration::MAX),
    ];
    for (name, without) in phases {
        assert_eq!(latest_end(deadlines(without)), None, "{name}");
    }
    // These are all deadlines: a new one does not compile until it is listed here.
    let Deadlines {
        head,
        body,
        body_rate: _,
        body_window: _,
        body_whole,
        handler,
        write,
        write_rate: _,
        idle,
        linger,
    } = Deadlines::default();
    assert!(
        [head, body, body_whole, handler, write, idle, linger].iter().all(|span| *span < never)
    );
}

#[test]
fn the_last_request_that_a_connection_may_make_ends_it() {
    let config = limits(|limits| limits.requests = 3);
    let seen = talk_with(config, 1 << 20, &[Act::Send(&GET.repeat(10))]);
    assert_eq!(seen.statuses(), [200, 200, 200]);
    assert_eq!(seen.text.matches("Connection: close\r\n").count(), 1);
    assert!(seen.closed_at.is_some());
    assert_eq!(talk(&[Act::Send(&GET.repeat(10))]).statuses(), [200; 10]);
}

/// Sends requests without end, and reads responses so that 500 are always outstanding, until
/// `go_on` returns false. Returns the number of responses.
async fn flood(mut client: PipeEnd, answer: usize, go_on: Rc<Cell<bool>>) -> io::Result<usize> {
    let (requests, mut buf, mut sent, mut bytes) = (GET.repeat(500), vec![0; 1 << 16], 0, 0);
    while go_on.get() {
        client.write_all(&requests).await?;
        sent += 500;
        while bytes < (sent - 500) * answer {
            bytes += client.read(&mut buf).await?;
        }
    }
    Ok(bytes / answer)
}

#[test]
fn d26_a_peer_that_pipelines_without_end_gives_way_to_the_others() {
    let answer = talk(&[Act::Send(GET)]).text.len();
    let (mut kernel, caps) = kernel_with_caps();
    let asked = kernel.run(async {
        let config = Rc::new(Config::default());
        let go_on = Rc::new(Cell::new(true));
        let (server, client) = duplex(1 << 20);
        let theirs = config.clone();
        spawn("conn", async move { serve_connection(server, &App, &theirs).await }).await;
        let mut greedy = spawn("greedy", flood(client, answer, go_on.clone())).await;
        let (server, mut client) = duplex(1 << 16);
        let theirs = config.clone();
        spawn("conn", async move { serve_connection(server, &App, &theirs).await }).await;
        let mut turns = 0;
        for _ in 0..200 {
            client.write_all(GET).await.unwrap();
            let mut buf = [0; 4096];
            assert!(client.read(&mut buf).await.unwrap() > 0);
            turns += 1;
        }
        go_on.set(false);
        // For each request of the honest client it got one burst, not everything that it asked for.
        let answers = greedy.join().await.unwrap().unwrap();
        assert!((64 * 100..=64 * 1000).contains(&answers), "{answers}");
        config.drain();
        turns
    });
    assert_eq!(asked.unwrap(), 200);
    // The virtual clock did not move, so all of that was only a matter of taking turns.
    kernel.shutdown().unwrap();
    let caps = caps.borrow();
    assert_eq!(caps[0], "name=pipelined limit=64 conn=1", "{caps:?}");
    // It continues in the same way, and the last line has the sum.
    assert!(hits_in(&caps[1]) > 100, "{caps:?}");
    assert_eq!(caps.len(), 2, "{caps:?}");
}

/// Writes eight megabytes, and reports its progress.
struct Bulk(Rc<Cell<usize>>);

impl Handler for Bulk {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let mut answer = request.start(Response::new(200)).await?;
        for kilobytes in 1..=8_000 {
            answer.write(&[b'x'; 1000]).await?;
            self.0.set(1000 * kilobytes);
        }
        answer.finish()
    }
}

#[test]
fn a_stream_for_which_there_is_always_room_gives_way_to_the_others() {
    let mut kernel = Kernel::new(Sim::new());
    let most = kernel.run(async {
        let (server, mut client) = duplex(1 << 24);
        client.write_all(GET).await.unwrap();
        let written = Rc::new(Cell::new(0));
        let bulk = Bulk(written.clone());
        let conn = async move { serve_connection(server, &bulk, &Config::default()).await };
        spawn("conn", conn).detached().await;
        let mut most = 0;
        while written.get() < 8_000_000 {
            let before = written.get();
            yield_now().await.unwrap();
            most = most.max(written.get() - before);
        }
        drop(client);
        most
    });
    let most = most.unwrap();
    assert!((1..=288 << 10).contains(&most), "{most} bytes in one turn");
    kernel.shutdown().unwrap();
}

/// Handles small pieces: writes or reads as many as the path says, and counts them.
struct Small(Rc<Cell<usize>>);

impl Handler for Small {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let more = || self.0.set(self.0.get() + 1);
        match request.path() {
            "/read" => {
                while request.read_chunk().await?.is_some() {
                    more();
                }
            }
            "/forward" => {
                let mut answer = request.start(Response::new(200)).await?;
                while answer.forward().await? {
                    more();
                }
                return answer.finish();
            }
            _ => {
                let mut answer = request.start(Response::new(200)).await?;
                for _ in 0..20_000 {
                    answer.write(b"x").await?;
                    more();
                }
                return answer.finish();
            }
        }
        Ok(Response::new(200))
    }
}

/// A piece costs as much to handle as a system call, and thousands of them fit into a buffer.
#[test]
fn a_handler_of_small_pieces_gives_way_after_a_hundred_of_them() {
    for request in ["GET /write", "HEAD /write", "POST /read", "POST /forward"] {
        let mut kernel = Kernel::new(Sim::new());
        let most = kernel.run(async {
            let (server, mut client) = duplex(1 << 20);
            let framing = "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n";
            client.write_all(format!("{request} HTTP/1.1\r\n{framing}").as_bytes()).await.unwrap();
            let chunks = if request.starts_with("POST") { 20_000 } else { 0 };
            client.write_all(&b"1\r\nx\r\n".repeat(chunks)).await.unwrap();
            client.write_all(b"0\r\n\r\n").await.unwrap();
            let pieces = Rc::new(Cell::new(0));
            let small = Small(pieces.clone());
            let conn = async move { serve_connection(server, &small, &Config::default()).await };
            spawn("conn", conn).detached().await;
            let mut most = 0;
            while pieces.get() < 20_000 {
                let before = pieces.get();
                yield_now().await.unwrap();
                most = most.max(pieces.get() - before);
            }
            drop(client);
            most
        });
        let most = most.unwrap();
        assert!((1..=128).contains(&most), "{request}: {most} pieces in one turn");
        kernel.shutdown().unwrap();
    }
}

/// Refuses this many connections at intervals; after each, another one is served.
async fn refuse_in_turn(config: &Config, times: u32, span: Duration) {
    for _ in 0..times {
        let (server, mut client) = duplex(1000);
        client.shutdown().unwrap();
        reject(server, config).await.unwrap();
        let (server, mut client) = duplex(1000);
        client.shutdown().unwrap();
        serve_connection(server, &App, config).await.unwrap();
        sleep(span).await.unwrap();
    }
}

#[test]
fn d26_connections_that_are_refused_in_turn_with_others_do_not_fill_the_log() {
    let (mut kernel, caps) = kernel_with_caps();
    kernel
        .run(async {
            let config = limits(|limits| limits.connections = 1);
            refuse_in_turn(&config, 3_000, Duration::from_millis(10)).await;
            config.drain();
        })
        .unwrap();
    let caps = caps.borrow();
    // In 30 seconds: one in each second, and the rest.
    assert!((30..=32).contains(&caps.len()), "{caps:?}");
    assert_eq!(caps[0], "name=connections limit=1 conn=1");
    assert_eq!(caps.iter().map(|line| hits_in(line)).sum::<u64>(), 3_000, "{caps:?}");
}

#[test]
fn a_burst_of_requests_is_answered_in_few_writes_and_no_more_than_it_may_hold_others_up() {
    // A client that sends 64 at once is not greedy, one that sends 65 is.
    for (burst, wanted) in [(64, 0), (65, 1), (128, 1), (129, 2)] {
        let (mut kernel, caps) = kernel_with_caps();
        kernel
            .run(async {
                let (server, mut client) = duplex(1 << 20);
                let serve = async {
                    let config = Config::default();
                    serve_connection(server, &App, &config).await.unwrap();
                    config.drain();
                };
                let ask = async {
                    client.write_all(&GET.repeat(burst)).await.unwrap();
                    sleep(SECOND).await.unwrap();
                    let mut buf = vec![0; 1 << 20];
                    let n = client.read(&mut buf).await.unwrap();
                    let text = String::from_utf8_lossy(&buf[..n]);
                    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), burst);
                    drop(client);
                };
                traps::join(serve, ask).await;
            })
            .unwrap();
        let said = caps.borrow();
        let hits: u64 = said.iter().map(|line| hits_in(line)).sum();
        assert_eq!(hits, wanted, "{burst}: {said:?}");
    }
}

/// The number of hits that a `cap` line reports.
fn hits_in(line: &str) -> u64 {
    line.split("more=").nth(1).map_or(1, |more| more.parse().unwrap())
}

// ---- Turned away -------------------------------------------------------------------------------

/// Turns one connection away. Returns the result of `client` with the other end, and the time at
/// which that was over.
fn rejected<T>(capacity: usize, client: impl AsyncFnOnce(PipeEnd) -> T) -> (T, Time) {
    let mut kernel = Kernel::new(Sim::new());
    let (server, end) = duplex(capacity);
    let seen = kernel.run(async {
        let config = Rc::new(Config::default());
        let serve = async {
            // A reset by either side is an error of the connection.
            let _ = reject(server, &config).await;
            clock().await
        };
        let (over, seen) = traps::join(serve, client(end)).await;
        assert_eq!(config.connections(), 0);
        (seen, over)
    });
    kernel.shutdown().unwrap();
    seen.unwrap()
}

async fn read_all(client: &mut PipeEnd) -> String {
    let (mut text, mut buf) = (String::new(), [0; 100]);
    loop {
        match client.read(&mut buf).await.unwrap() {
            0 => return text,
            n => text.push_str(std::str::from_utf8(&buf[..n]).unwrap()),
        }
    }
}

#[test]
fn d27_who_is_turned_away_reads_why_however_narrow_the_way() {
    for capacity in [1, 17, 1 << 16] {
        let (text, over) =
            rejected(capacity, async |mut client: PipeEnd| read_all(&mut client).await);
        assert!(text.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{text}");
        assert!(text.contains("\r\nRetry-After: 1\r\n"), "{text}");
        assert!(text.contains("\r\nConnection: close\r\n"), "{text}");
        assert!(text.contains("\r\nContent-Length: 0\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\n"), "{text}");
        assert_eq!(over, Time::ZERO, "{capacity}");
    }
}

#[test]
fn d27_who_is_turned_away_is_left_whatever_it_does() {
    let silent = async |client: PipeEnd| {
        sleep(100 * SECOND).await.unwrap();
        drop(client);
    };
    // If the client reads nothing, the deadline of a write ends it. If it reads but does not close,
    // the deadline of the lingering does.
    assert_eq!(rejected(10, silent).1, Time::ZERO + 30 * SECOND);
    assert_eq!(rejected(1 << 16, silent).1, Time::ZERO + 2 * SECOND);
    let (sent, over) = rejected(1000, async |mut client: PipeEnd| {
        let mut sent = 0;
        while let Ok(n) = client.write(&[b'x'; 500]).await {
            sent += n;
        }
        sent
    });
    assert!((65_536..80_000).contains(&sent), "{sent}");
    assert_eq!(over, Time::ZERO);
}

// ---- Many at once ------------------------------------------------------------------------------

/// Honest clients are served during an attack of this many; afterwards nothing is left.
fn served_throughout(enemies: usize, enemy: Enemy) {
    let mut kernel = Kernel::new(Sim::new());
    kernel.run(async { round(&Rc::new(Config::default()), enemies, enemy).await }).unwrap();
    nothing_is_left(&kernel.counters());
    kernel.shutdown().unwrap();
}

#[test]
fn honest_clients_are_served_through_slow_heads() {
    served_throughout(200, slow_head);
}

#[test]
fn honest_clients_are_served_through_slow_bodies() {
    served_throughout(200, slow_body);
}

#[test]
fn honest_clients_are_served_through_slow_readers() {
    served_throughout(200, slow_read);
}

#[test]
fn honest_clients_are_served_through_five_thousand_idle_connections() {
    served_throughout(5_000, idle);
}

#[test]
fn honest_clients_are_served_through_a_storm_of_connections() {
    served_throughout(1_000, comes_and_goes);
}
