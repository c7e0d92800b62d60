//! A server that stops, and the responses on each connection, on the virtual clock.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use http_support::App;
use kernel::{Kernel, Options, Sim};
use net::Stream;
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::pipe::duplex;
use traps::{Time, clock, sleep, spawn};

const MS: Duration = Duration::from_millis(1);
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const SLOW: &[u8] = b"GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n";

/// The pieces that the client sends, and their times.
type Sent<'a> = (Duration, &'a [u8]);

/// All received bytes, and the time of the end.
struct Got {
    text: String,
    end: Time,
}

impl Got {
    fn statuses(&self) -> Vec<&str> {
        self.text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect()
    }
}

/// One connection to a server that stops after a second.
fn stop_during(sent: &[Sent<'_>]) -> Got {
    let mut kernel = Kernel::new(Sim::new());
    let (server, mut client) = duplex(1 << 20);
    let got = kernel.run(async {
        let config = Rc::new(Config::default());
        let theirs = config.clone();
        let serve = async move { serve_connection(server, &App, &theirs).await };
        let mut conn = spawn("conn", serve).await;
        let stopper = config.clone();
        let mut stop = spawn("stop", async move {
            sleep(1000 * MS).await.unwrap();
            assert_eq!((stopper.connections(), stopper.is_draining()), (1, false));
            stopper.drain();
        })
        .await;
        let mut got = Got { text: String::new(), end: Time::ZERO };
        let mut buf = [0; 4096];
        for (at, bytes) in sent.iter().copied().chain([(Duration::MAX, &b""[..])]) {
            loop {
                match traps::ignore_at(Time::ZERO + at, client.read(&mut buf)).await {
                    Ok(None) => break,
                    Ok(Some(0)) => {
                        got.end = clock().await;
                        break;
                    }
                    Ok(Some(n)) => got.text.push_str(&String::from_utf8_lossy(&buf[..n])),
                    Err(error) => panic!("{error}"),
                }
            }
            if got.end != Time::ZERO {
                break;
            }
            client.write(bytes).await.unwrap();
        }
        drop(client);
        conn.join().await.unwrap().unwrap();
        stop.join().await.unwrap();
        assert_eq!(config.connections(), 0);
        got
    });
    kernel.shutdown().unwrap();
    got.unwrap()
}

fn at(millis: u32) -> Time {
    Time::ZERO + millis * MS
}

#[test]
fn f17_a_connection_that_waits_for_its_next_request_ends_at_once() {
    let got = stop_during(&[(500 * MS, GET)]);
    assert_eq!(got.statuses(), ["200"]);
    assert_eq!(got.end, at(1000));
}

#[test]
fn f17_a_request_that_comes_within_the_grace_is_answered_and_is_the_last() {
    let got = stop_during(&[(1100 * MS, GET)]);
    assert_eq!(got.statuses(), ["200"]);
    assert!(got.text.contains("\r\nConnection: close\r\n"), "{}", got.text);
    assert_eq!(got.end, at(1100));
}

#[test]
fn f17_a_request_that_comes_after_the_grace_is_refused_and_may_be_sent_again() {
    let got = stop_during(&[(900 * MS, &GET[..9]), (1600 * MS, &GET[9..])]);
    assert_eq!(got.statuses(), ["503"]);
    assert!(got.text.contains("\r\nConnection: close\r\n"), "{}", got.text);
    assert!(got.text.contains("\r\nRetry-After: 1\r\n"), "{}", got.text);
    assert!(got.text.ends_with("\r\n\r\nthe server stops\n"), "{}", got.text);
    assert_eq!(got.end, at(1500));
}

#[test]
fn f17_a_head_that_is_not_whole_when_the_grace_ends_is_refused_then() {
    // A head that begins before the drain, in it, or long before its own deadline, with one byte or
    // with several.
    let drops = GET.iter().take(20).enumerate();
    let drops: Vec<_> =
        drops.map(|(n, byte)| ((500 + 100 * n as u32) * MS, std::slice::from_ref(byte))).collect();
    for sent in [&[(900 * MS, &GET[..9])][..], &[(1400 * MS, &GET[..1])], &drops] {
        let got = stop_during(sent);
        assert_eq!((got.statuses(), got.end), (vec!["503"], at(1500)));
        assert!(got.text.contains("\r\nRetry-After: 1\r\n"), "{}", got.text);
    }
}

#[test]
fn f17_a_head_that_is_whole_when_the_grace_ends_is_answered() {
    let got = stop_during(&[(900 * MS, &GET[..9]), (1499 * MS, &GET[9..])]);
    assert_eq!((got.statuses(), got.end), (vec!["200"], at(1499)));
}

/// The grace, and then two seconds for each wait.
#[test]
fn f17_a_body_that_does_not_come_on_is_refused_before_its_own_deadline() {
    let head = b"POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc";
    let got = stop_during(&[(900 * MS, head)]);
    assert_eq!((got.statuses(), got.end), (vec!["408"], at(3500)));
    let got = stop_during(&[(900 * MS, head), (3000 * MS, b"def")]);
    assert_eq!((got.statuses(), got.end), (vec!["408"], at(5000)));
}

#[test]
fn f17_a_body_that_finds_no_room_is_refused_before_its_own_deadline() {
    let (mut kernel, caps) = http_support::kernel_with_caps();
    let config =
        Rc::new(http_support::limits(|limits| (limits.memory, limits.body) = (40_000, 20_000)));
    kernel
        .run(async {
            let mut clients = Vec::new();
            for _ in 0..3 {
                let (server, mut client) = duplex(1 << 20);
                let theirs = config.clone();
                let serve = async move { serve_connection(server, &Keeps, &theirs).await };
                spawn("conn", serve).detached().await;
                let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n";
                client.write_all(head).await.unwrap();
                client.write_all(&[b'x'; 20_000]).await.unwrap();
                clients.push(client);
            }
            sleep(1000 * MS).await.unwrap();
            config.drain();
            let mut buf = [0; 1000];
            let n = clients[2].read(&mut buf).await.unwrap();
            assert!(buf[..n].ends_with(b"there is no room for the body\n"));
            assert_eq!(clock().await, at(3500));
        })
        .unwrap();
    assert_eq!(*caps.borrow(), ["name=memory_bytes limit=40000 conn=3"]);
}

/// Keeps the body of a request for long.
struct Keeps;

impl Handler for Keeps {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let body = request.body_to_vec(usize::MAX).await?;
        sleep(20_000 * MS).await?;
        Ok(Response::new(200).with_body(body))
    }
}

/// A response that is begun when the drain begins, and one that begins in it.
#[test]
fn f17_a_response_that_is_not_taken_ends_before_its_own_deadline() {
    for (asked, wanted) in [(900, 3500), (1450, 3500)] {
        let (mut kernel, caps) = http_support::kernel_with_caps();
        let end = kernel.run(async {
            let config = Rc::new(Config::default());
            let (server, mut client) = duplex(1000);
            let theirs = config.clone();
            let serve = async move { serve_connection(server, &App, &theirs).await };
            let mut conn = spawn("conn", serve).await;
            sleep(asked.min(1000) * MS).await.unwrap();
            if asked > 1000 {
                config.drain();
            }
            sleep((asked - asked.min(1000)) * MS).await.unwrap();
            client.write(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
            if asked < 1000 {
                sleep((1000 - asked) * MS).await.unwrap();
                config.drain();
            }
            conn.join().await.unwrap().unwrap();
            clock().await
        });
        assert_eq!(end.unwrap(), at(wanted), "{asked}");
        assert_eq!(*caps.borrow(), ["name=drain_wait limit=2s conn=1"]);
    }
}

#[test]
fn f18_a_new_connection_without_a_request_has_half_a_second() {
    let got = stop_during(&[]);
    assert_eq!((got.statuses(), got.end), (vec![], at(1500)));
}

#[test]
fn f17_a_head_that_begins_within_the_half_second_has_the_rest_of_it() {
    let got = stop_during(&[(1400 * MS, &GET[..9]), (1490 * MS, &GET[9..])]);
    assert_eq!((got.statuses(), got.end), (vec!["200"], at(1490)));
}

#[test]
fn f17_a_request_in_hand_is_answered_and_the_connection_closed() {
    let got = stop_during(&[(700 * MS, SLOW)]);
    assert_eq!(got.statuses(), ["200"]);
    assert!(got.text.contains("\r\nConnection: close\r\n"), "{}", got.text);
    assert!(got.text.ends_with("slept"), "{}", got.text);
    assert_eq!(got.end, at(1200));
}

#[test]
fn f17_requests_that_are_queued_are_answered_and_the_last_of_them_closes() {
    let got = stop_during(&[(900 * MS, &[SLOW, GET, SLOW].concat())]);
    assert_eq!(got.statuses(), ["200"; 3]);
    let (_, last) = got.text.rsplit_once("HTTP/1.1 200 OK").unwrap();
    assert!(last.contains("\r\nConnection: close\r\n"), "{}", got.text);
    assert_eq!(got.text.matches("\r\nConnection: close\r\n").count(), 1, "{}", got.text);
    assert_eq!(got.end, at(1900));
}

#[test]
fn f17_a_client_that_is_idle_after_much_does_not_delay_the_end() {
    let got = stop_during(&[(500 * MS, b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")]);
    assert_eq!((got.statuses(), got.end), (vec!["200"], at(1000)));
}

#[test]
fn f17_a_body_that_is_on_its_way_is_read_to_its_end() {
    let head = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc";
    let got = stop_during(&[(900 * MS, head), (1500 * MS, b"def")]);
    assert_eq!(got.statuses(), ["200"]);
    assert!(got.text.ends_with("abcdef"), "{}", got.text);
}

#[test]
fn f17_a_request_that_crosses_the_end_is_answered() {
    // The bytes arrive at the same instant at which the deadline of the wait is brought forward.
    // The last look finds them, whichever of the two is first in the turn.
    let got = stop_during(&[(500 * MS, GET), (1000 * MS, GET)]);
    assert_eq!(got.statuses(), ["200", "200"]);
    assert!(got.text.matches("\r\nConnection: close\r\n").count() == 1, "{}", got.text);
    assert_eq!(got.end, at(1000));
}

/// It begins to stop while the client takes a response; the last piece may cost all of the budget.
#[test]
fn f17_a_request_that_crosses_the_end_is_found_whatever_is_left_of_the_budget() {
    for budget in [2, 8, 128] {
        let mut kernel = Kernel::with_options(Sim::new(), Options::new().budget(budget));
        let (server, mut client) = duplex(34_000);
        let text = kernel.run(async {
            let config = Rc::new(Config::default());
            let theirs = config.clone();
            let serve = async move { serve_connection(server, &App, &theirs).await };
            spawn("conn", serve).detached().await;
            client.write(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
            sleep(MS).await.unwrap();
            config.drain();
            client.write(GET).await.unwrap();
            let (mut text, mut buf) = (String::new(), [0; 34_000]);
            loop {
                match client.read(&mut buf).await.unwrap() {
                    0 => break text,
                    n => text.push_str(&String::from_utf8_lossy(&buf[..n])),
                }
            }
        });
        let got = Got { text: text.unwrap(), end: Time::ZERO };
        assert_eq!(got.statuses(), ["200", "200"], "{budget}");
        kernel.shutdown().unwrap();
    }
}

#[test]
fn f19_refusal_comes_before_the_body_is_asked_for() {
    let head =
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n";
    let (begun, rest) = head.split_at(9);
    let got = stop_during(&[(1100 * MS, begun), (1600 * MS, rest)]);
    assert_eq!(got.statuses(), ["503"]);
}

/// The bytes filled the read buffer completely, so there may be more.
#[test]
fn f17_a_connection_whose_requests_filled_the_buffer_waits_like_any_other() {
    let one = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(96));
    assert_eq!(128 * one.len(), 16_384);
    let got = stop_during(&[(500 * MS, one.repeat(128).as_bytes())]);
    assert_eq!(got.statuses(), ["200"; 128]);
    assert_eq!(got.end, at(1000));
}

/// Streams the response to `/stream`, and makes all others in memory.
struct Both;

impl Handler for Both {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        if request.path() != "/stream" {
            return Ok(Response::text("whole"));
        }
        let mut answer = request.start(Response::new(200)).await?;
        answer.write(b"streamed").await?;
        answer.finish()
    }
}

/// Both requests arrive before the drain looks for them.
#[test]
fn f17_a_request_behind_a_response_is_answered_however_that_response_is_written() {
    for first in ["/", "/stream"] {
        let mut kernel = Kernel::new(Sim::new());
        let text = kernel.run(async {
            let (server, mut client) = duplex(1 << 16);
            let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
            client.write_all([get(first), get("/")].concat().as_bytes()).await.unwrap();
            let config = Config::default();
            config.drain();
            serve_connection(server, &Both, &config).await.unwrap();
            let mut all = Vec::new();
            client.read_to_end(&mut all, 1 << 16).await.unwrap();
            String::from_utf8(all).unwrap()
        });
        let got = Got { text: text.unwrap(), end: Time::ZERO };
        assert_eq!(got.statuses(), ["200", "200"], "{first}");
        let (_, last) = got.text.rsplit_once("HTTP/1.1 200 OK").unwrap();
        assert!(last.contains("\r\nConnection: close\r\n"), "{first}: {}", got.text);
        assert_eq!(got.text.matches("\r\nConnection: close\r\n").count(), 1, "{}", got.text);
    }
}
