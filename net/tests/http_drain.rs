//! An HTTP connection while the kernel shuts down, on a virtual clock (rows F17, F19, F20, X9).

mod common;

use std::cell::RefCell;
use std::future::{pending, poll_fn};
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use common::App;
use kernel::{Kernel, Options, Sim};
use net::Stream;
use net::http::{Config, serve_connection};
use net::pipe::{PipeEnd, duplex};
use traps::{Signal, Time, clock, shutdown, spawn};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const SLEEP: &[u8] = b"GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n"; // 0.5 s

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What a client saw of its connection.
#[derive(Debug, Default)]
struct Seen {
    text: String,
    /// When each piece came, and the end.
    reads: Vec<u64>,
    ended: Option<u64>,
    error: Option<io::ErrorKind>,
}

impl Seen {
    fn statuses(&self) -> Vec<&str> {
        self.text.split("HTTP/1.1 ").skip(1).map(|rest| &rest[..3]).collect()
    }
}

async fn now_ms() -> u64 {
    clock().await.as_micros() / 1000
}

/// Sends each piece at its time, in milliseconds, and reads to the end.
async fn client(mut end: PipeEnd, script: &[(u64, &[u8])], seen: &RefCell<Seen>) {
    let mut buf = [0; 4096];
    for (at, bytes) in script.iter().chain([&(u64::MAX, &b""[..])]) {
        let until = Time::ZERO + ms((*at).min(1_000_000));
        loop {
            match traps::ignore_at(until, end.read(&mut buf)).await {
                Ok(None) => break,
                Ok(Some(0)) => {
                    let now = now_ms().await;
                    return seen.borrow_mut().ended = Some(now);
                }
                Ok(Some(n)) => {
                    let (now, mut seen) = (now_ms().await, seen.borrow_mut());
                    seen.text.push_str(&String::from_utf8_lossy(&buf[..n]));
                    seen.reads.push(now);
                }
                Err(error) => return seen.borrow_mut().error = Some(error.kind()),
            }
        }
        if end.write_all(bytes).await.is_err() {
            continue;
        }
    }
}

/// A server with one connection for each script; SIGTERM comes after one second. What each client
/// saw, and when the kernel had shut down.
fn serve(options: Options, scripts: &[&[(u64, &[u8])]]) -> (Vec<Seen>, u64) {
    let sim = Sim::new().signal_at(Time::ZERO + ms(1000), Signal::Terminate);
    let clock = sim.clock();
    let mut kernel = Kernel::with_options(sim, options.shutdown_on(&[Signal::Terminate]));
    let all: Vec<Rc<RefCell<Seen>>> = scripts.iter().map(|_| Rc::default()).collect();
    let config = Rc::new(Config::default());
    kernel
        .run(async {
            for (script, seen) in scripts.iter().zip(&all) {
                let (server, end) = duplex(1 << 16);
                let (config, seen) = (config.clone(), seen.clone());
                let script: Vec<(u64, Vec<u8>)> =
                    script.iter().map(|(at, bytes)| (*at, bytes.to_vec())).collect();
                let conn = async move { serve_connection(server, &App, &config).await };
                spawn("conn", conn).await;
                // Clients live elsewhere: the shutdown of this kernel is not theirs.
                let client = async move {
                    let script: Vec<(u64, &[u8])> =
                        script.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
                    traps::shield(client(end, &script, &seen)).await;
                };
                spawn("client", client).await;
            }
            shutdown::begun().await.unwrap();
        })
        .unwrap();
    kernel.shutdown().unwrap();
    let took = clock.now().as_micros() / 1000;
    (all.into_iter().map(|seen| seen.take()).collect(), took)
}

fn serve_one(script: &[(u64, &[u8])]) -> Seen {
    serve(Options::new(), &[script]).0.remove(0)
}

#[test]
fn f20_idle_connections_close_at_once_and_the_rest_is_answered_to_its_end() {
    let idle: &[(u64, &[u8])] = &[(0, GET)];
    let busy: &[(u64, &[u8])] = &[(800, SLEEP)];
    let (seen, took) = serve(Options::new(), &[idle, busy, idle]);
    for idle in [&seen[0], &seen[2]] {
        assert_eq!((idle.statuses(), idle.ended), (vec!["200"], Some(1000)), "{idle:?}");
        assert!(!idle.text.contains("Connection: close"));
    }
    assert_eq!((seen[1].statuses(), seen[1].ended), (vec!["200"], Some(1300)));
    assert!(seen[1].text.contains("\r\nConnection: close\r\n"), "{}", seen[1].text);
    assert_eq!(took, 1300, "and nothing waits for the limit");
}

#[test]
fn f17_a_request_that_comes_later_is_refused_with_the_time_to_come_again() {
    // The head began before the gate and ends after it.
    let seen = serve_one(&[(0, GET), (900, &GET[..9]), (1100, &GET[9..])]);
    assert_eq!(seen.statuses(), ["200", "503"]);
    let refusal = seen.text.rsplit("HTTP/1.1 ").next().unwrap();
    for field in ["\r\nRetry-After: 5\r\n", "\r\nConnection: close\r\n", "\r\nContent-Length: "] {
        assert!(refusal.contains(field), "{refusal}");
    }
    assert!(refusal.ends_with("\r\n\r\nthe server is shutting down\n"), "{refusal}");
    assert_eq!(seen.ended, Some(1100));
}

/// The client is woken at the gate before the connection, and sends just then.
#[test]
fn f17_x9_a_request_that_has_just_come_is_seen_by_the_last_look() {
    let sim = Sim::new().signal_at(Time::ZERO + ms(1000), Signal::Terminate);
    let options = Options::new().shutdown_on(&[Signal::Terminate]);
    let mut kernel = Kernel::with_options(sim, options);
    let text = kernel.run(async {
        let mut gate = Box::pin(shutdown::until_begun(pending::<()>()));
        // Its place among the watchers is before that of the connection.
        poll_fn(|cx| Poll::Ready(gate.as_mut().poll(cx).is_ready())).await;
        let (server, mut end) = duplex(1 << 16);
        let conn = async move { serve_connection(server, &App, &Config::default()).await };
        spawn("conn", conn).await;
        let (mut buf, mut text) = ([0; 4096], String::new());
        end.write_all(GET).await.unwrap();
        let n = end.read(&mut buf).await.unwrap();
        text.push_str(&String::from_utf8_lossy(&buf[..n]));
        assert!(gate.await.is_none());
        end.write_all(GET).await.unwrap();
        while let n @ 1.. = end.read(&mut buf).await.unwrap() {
            text.push_str(&String::from_utf8_lossy(&buf[..n]));
        }
        text
    });
    let text = text.unwrap();
    assert_eq!(text.matches("HTTP/1.1 200").count(), 1, "{text}");
    assert_eq!(text.matches("HTTP/1.1 503").count(), 1, "{text}");
    kernel.shutdown().unwrap();
}

#[test]
fn f19_the_refusal_comes_before_any_of_the_body() {
    let post = b"POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n";
    let seen = serve_one(&[(0, GET), (900, post), (1100, b"\r\n"), (1200, &[b'x'; 1000])]);
    assert_eq!(seen.statuses(), ["200", "503"]);
    assert_eq!(seen.reads.last(), Some(&1100), "it is not waited for");
    let expects =
        b"POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n";
    let seen = serve_one(&[(0, GET), (900, expects), (1100, b"\r\n")]);
    assert_eq!(seen.statuses(), ["200", "503"], "and not asked for");
}

#[test]
fn f17_pipelined_requests_end_with_the_answer_in_hand() {
    let both = [SLEEP, GET].concat();
    let seen = serve_one(&[(700, &both)]);
    assert_eq!((seen.statuses(), seen.error), (vec!["200"], None));
    assert!(seen.text.contains("\r\nConnection: close\r\n"));
}

#[test]
fn f17_a_connection_that_has_said_nothing_has_a_moment_for_its_first_request() {
    let late: &[(u64, &[u8])] = &[(1050, GET)];
    let silent: &[(u64, &[u8])] = &[];
    let (seen, took) = serve(Options::new(), &[late, silent]);
    assert_eq!((seen[0].statuses(), seen[0].ended), (vec!["503"], Some(1050)));
    assert_eq!((seen[1].text.as_str(), seen[1].ended), ("", Some(1100)));
    assert_eq!(took, 1100);
}

#[test]
fn f20_a_handler_that_is_cut_when_the_drain_is_over_is_answered_for() {
    let slow = b"POST /slowly HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"; // 8 s
    let (seen, took) = serve(Options::new().drain(ms(700)), &[&[(900, slow)]]);
    assert_eq!((seen[0].statuses(), seen[0].error), (vec!["503"], None), "{seen:?}");
    assert_eq!(seen[0].ended, Some(1700));
    assert_eq!(took, 1700);
}

#[test]
fn f20_a_body_that_is_on_its_way_is_waited_for() {
    let head = b"POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";
    let seen = serve_one(&[(900, head), (1200, b"1234")]);
    assert_eq!((seen.statuses(), seen.ended), (vec!["200"], Some(1200)), "{seen:?}");
    assert!(seen.text.contains("\r\nConnection: close\r\n") && seen.text.ends_with("4"));
}
