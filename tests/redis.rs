//! The example `redis`: the bytes of each command, and what it refuses, on the virtual clock.

#[allow(dead_code)]
#[path = "../examples/redis.rs"]
mod redis;

use std::time::Duration;

use kernel::{Kernel, Sim};
use net::Stream;
use net::pipe::{PipeEnd, duplex};
use traps::{ignore_after, sleep, spawn};

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: redis::Patience = [Duration::from_secs(60), SECOND];

/// Runs a client's part of a talk with the server.
fn with_server<F: Future<Output = ()>>(talk: impl FnOnce(Connect) -> F) {
    let mut kernel = Kernel::new(Sim::new());
    kernel.run(async { talk(Connect(redis::data().await)).await }).unwrap();
}

/// The server, for new connections.
struct Connect(std::rc::Rc<std::cell::RefCell<redis::Data>>);

impl Connect {
    async fn client(&self) -> Client {
        let (server, ours) = duplex(1 << 20);
        spawn("conn", redis::client(server, self.0.clone(), PATIENCE)).detached().await;
        Client(ours)
    }
}

struct Client(PipeEnd);

impl Client {
    async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.0.write_all(text.as_ref()).await.unwrap();
    }

    /// Reads what the server has to say, until it is silent for a moment or has closed.
    async fn hears(&mut self) -> (String, bool) {
        let (mut text, mut buf) = (Vec::new(), [0; 4096]);
        let is_closed = loop {
            let read = ignore_after(Duration::from_millis(1), self.0.read(&mut buf)).await;
            match read.unwrap() {
                None => break false,
                Some(0) => break true,
                Some(n) => text.extend_from_slice(&buf[..n]),
            }
        };
        (String::from_utf8(text).unwrap(), is_closed)
    }

    /// Sends a line, and compares the answer.
    #[track_caller]
    fn asks(&mut self, line: &str, wanted: &str) -> impl Future<Output = ()> {
        let site = std::panic::Location::caller();
        async move {
            self.send(format!("{line}\r\n")).await;
            assert_eq!(self.hears().await, (wanted.to_owned(), false), "{line} at {site}");
        }
    }
}

#[test]
fn each_command_has_the_answer_that_redis_gives() {
    with_server(async |server| {
        let mut client = server.client().await;
        for (line, answer) in [
            ("PING", "+PONG\r\n"),
            ("ping hello", "$5\r\nhello\r\n"),
            ("ECHO hello", "$5\r\nhello\r\n"),
            ("GET a", "$-1\r\n"),
            ("SET a 41", "+OK\r\n"),
            ("GET a", "$2\r\n41\r\n"),
            ("INCR a", ":42\r\n"),
            ("INCR new", ":1\r\n"),
            ("SET b words", "+OK\r\n"),
            ("INCR b", "-ERR value is not an integer or out of range\r\n"),
            ("SET b 9223372036854775807", "+OK\r\n"),
            ("INCR b", "-ERR value is not an integer or out of range\r\n"),
            ("TTL a", ":-1\r\n"),
            ("TTL none", ":-2\r\n"),
            ("EXPIRE none 1", ":0\r\n"),
            ("DEL a b none", ":2\r\n"),
            ("DEL a", ":0\r\n"),
            ("SET a 1 EX soon", "-ERR value is not an integer or out of range\r\n"),
            ("PUBLISH news hello", ":0\r\n"),
            ("NOTHING", "-ERR unknown command\r\n"),
            ("CONFIG GET save", "-ERR unknown command\r\n"),
            ("", ""),
        ] {
            client.asks(line, answer).await;
        }
        for wrong in ["GET", "SET a", "SET a 1 NX", "SET a 1 XX 1", "DEL", "PUBLISH a"] {
            let answer = "-ERR wrong number of arguments, or an option that is not known\r\n";
            client.asks(wrong, answer).await;
        }
        client.send("QUIT\r\n").await;
        assert_eq!(client.hears().await, ("+OK\r\n".to_owned(), true));
    });
}

#[test]
fn counted_words_may_have_any_bytes_and_come_in_pieces() {
    with_server(async |server| {
        let mut client = server.client().await;
        let (set, get) =
            ("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\n\r\n *\r\n", "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
        for byte in set.as_bytes() {
            assert_eq!(client.hears().await, (String::new(), false));
            client.send([*byte]).await;
        }
        assert_eq!(client.hears().await.0, "+OK\r\n");
        client.asks(get.trim_end(), "$4\r\n\r\n *\r\n").await;
    });
}

#[test]
fn pipelined_requests_are_answered_in_order_whatever_their_number() {
    with_server(async |server| {
        let mut client = server.client().await;
        let value = "v".repeat(1000);
        client.asks(&format!("SET k {value}"), "+OK\r\n").await;
        // More than the answers that are kept before they are written.
        client.send("INCR n\nGET k\n".repeat(200)).await;
        let wanted: String = (1..=200).map(|n| format!(":{n}\r\n$1000\r\n{value}\r\n")).collect();
        assert_eq!(client.hears().await, (wanted, false));
    });
}

#[test]
fn a_value_expires_at_its_time_and_not_before() {
    with_server(async |server| {
        let mut client = server.client().await;
        client.asks("SET a 1 EX 10", "+OK\r\n").await;
        client.asks("SET b 1 PX 10000", "+OK\r\n").await;
        client.asks("SET c 1", "+OK\r\n").await;
        client.asks("EXPIRE c 10", ":1\r\n").await;
        // Without its expiry.
        client.asks("SET d 1 EX 10", "+OK\r\n").await;
        client.asks("SET d 2", "+OK\r\n").await;
        // Keeps its expiry.
        client.asks("INCR a", ":2\r\n").await;
        client.asks("TTL a", ":10\r\n").await;
        sleep(9 * SECOND).await.unwrap();
        client.asks("TTL a", ":1\r\n").await;
        client.asks("GET b", "$1\r\n1\r\n").await;
        sleep(SECOND).await.unwrap();
        client.asks("GET a", "$-1\r\n").await;
        client.asks("TTL b", ":-2\r\n").await;
        client.asks("DEL c", ":0\r\n").await;
        client.asks("GET d", "$1\r\n2\r\n").await;
    });
}

#[test]
fn the_memory_of_expired_values_is_free_again() {
    with_server(async |server| {
        let mut client = server.client().await;
        let value = "v".repeat(500_000);
        let fill = async |client: &mut Client| {
            let mut stored = 0;
            loop {
                let key = format!("{stored:03}");
                let head = format!("*5\r\n$3\r\nSET\r\n$3\r\n{key}\r\n$500000\r\n{value}");
                client.send(head + "\r\n$2\r\nEX\r\n$2\r\n10\r\n").await;
                match &client.hears().await.0[..] {
                    "+OK\r\n" => stored += 1,
                    full => {
                        assert!(full.starts_with("-OOM "), "{full}");
                        return stored;
                    }
                }
            }
        };
        let stored = fill(&mut client).await;
        assert_eq!(stored, 134, "64 MiB of values");
        sleep(12 * SECOND).await.unwrap();
        assert_eq!(fill(&mut client).await, stored);
    });
}

#[test]
fn a_published_message_goes_to_the_subscribers_of_its_channel() {
    with_server(async |server| {
        let [mut ann, mut ben] = [server.client().await, server.client().await];
        let told = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:2\r\n";
        ann.asks("SUBSCRIBE news a", told).await;
        ben.asks("PUBLISH news hello", ":1\r\n").await;
        ben.asks("PUBLISH other hello", ":0\r\n").await;
        let message = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n".to_owned();
        assert_eq!(ann.hears().await, (message, false));
        // A subscriber may be silent for longer than others.
        sleep(2 * PATIENCE[0]).await.unwrap();
        ann.asks("PING", "+PONG\r\n").await;
        let mut ben = server.client().await;
        drop(ann);
        sleep(SECOND).await.unwrap();
        ben.asks("PUBLISH news hello", ":0\r\n").await;
    });
}

#[test]
fn a_subscriber_that_does_not_keep_up_is_disconnected() {
    with_server(async |server| {
        let [mut ann, mut ben] = [server.client().await, server.client().await];
        ann.send("SUBSCRIBE news\n").await;
        sleep(Duration::from_millis(1)).await.unwrap();
        // In one poll of the server's, so the subscriber has no chance to read.
        ben.send("PUBLISH news hello\n".repeat(101)).await;
        let counts = ":1\r\n".repeat(100) + ":0\r\n";
        assert_eq!(ben.hears().await, (counts, false));
        let (heard, is_closed) = ann.hears().await;
        assert_eq!((heard.matches("hello").count(), is_closed), (100, true));
    });
}

#[test]
fn what_is_no_request_or_too_large_gets_an_error_and_an_end() {
    let long = "x".repeat(512 * 1024);
    for (sent, why) in [
        ("*x\r\n", "invalid multibulk length"),
        ("*1025\r\n", "invalid multibulk length"),
        ("*1\r\nGET\r\n", "expected '$'"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$524289\r\n", "invalid bulk length"),
        ("*1\r\n$99999999999999999999\r\n", "invalid bulk length"),
        ("*1\r\n$4\r\nPINGPING", "expected an end of line"),
        (&long, "too big request"),
        (&format!("*2\r\n$4\r\nECHO\r\n$524280\r\n{long}"), "too big request"),
    ] {
        with_server(async |server| {
            let mut client = server.client().await;
            client.send(format!("PING\r\n{sent}")).await;
            let wanted = format!("+PONG\r\n-ERR Protocol error: {why}\r\n");
            assert_eq!(client.hears().await, (wanted, true), "{:.40}", sent);
        });
    }
    with_server(async |server| {
        let mut client = server.client().await;
        client.asks(&format!("SET {} 1", "k".repeat(1025)), "-ERR the key is too long\r\n").await;
        let names = " a".repeat(3) + " " + &"n".repeat(1025);
        client.send(format!("SUBSCRIBE{names}\r\n")).await;
        let heard = client.hears().await.0;
        assert!(heard.ends_with("-ERR too many channels, or too long a name\r\n"), "{heard}");
    });
}

#[test]
fn a_silent_client_and_one_that_does_not_read_are_disconnected() {
    with_server(async |server| {
        let mut silent = server.client().await;
        silent.asks("PING", "+PONG\r\n").await;
        sleep(PATIENCE[0] - SECOND).await.unwrap();
        assert_eq!(silent.hears().await, (String::new(), false));
        sleep(SECOND).await.unwrap();
        assert_eq!(silent.hears().await, (String::new(), true));
        let mut deaf = server.client().await;
        deaf.send(format!("SET k {}\n", "v".repeat(400_000))).await;
        deaf.send("GET k\n".repeat(4)).await;
        sleep(2 * SECOND).await.unwrap();
        let (heard, is_closed) = deaf.hears().await;
        assert!(is_closed && heard.len() < 1_200_000, "{}", heard.len());
    });
}
