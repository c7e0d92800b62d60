//! The servers `chat` and `proxy` as a user runs them, over the loopback interface.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use net::Stream;
use net::pipe::duplex;
use testing::child::{self, Child};
use testing::trace;

use support::examples::build;
use traps::{clock, sleep, spawn};

#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/servers/proxy.rs"]
mod proxy;

/// A running server, and its address.
struct Server {
    process: Child,
    addr: String,
    trace: PathBuf,
}

fn start(name: &str, test: &str, args: &[&str]) -> Server {
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.trace"));
    let mut command = Command::new(build(name));
    command
        .arg("--trace")
        .arg(&trace)
        .args(["--addr", "127.0.0.1:0"])
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = child::spawn(&mut command);
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim_end().strip_prefix("listening on ").expect("it says where it listens");
    Server { process, addr: addr.to_owned(), trace }
}

impl Server {
    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.addr).unwrap()
    }

    fn send(&self, signal: &str) {
        self.process.send(signal);
    }

    /// Waits until it ends with code 0, and checks its trace. Returns its log.
    fn ends_well(self) -> String {
        self.ends(0)
    }

    /// Waits until it ends with this code, and checks its trace. Returns its log.
    fn ends(mut self, code: i32) -> String {
        let mut log = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert_eq!(self.process.wait().unwrap().code(), Some(code), "{log}");
        let text = fs::read_to_string(&self.trace).unwrap();
        let lines = trace::trace(&text).unwrap();
        if let Err(broken) = trace::check(&lines) {
            panic!("{broken:?}\n{text}");
        }
        assert!(text.lines().last().unwrap().contains("halt     tasks=0 tickets=0 timers=0"));
        log
    }
}

// ---- Chat --------------------------------------------------------------------------------------

/// Someone in the chat.
struct Client(BufReader<TcpStream>);

impl Client {
    /// Enters the chat, and receives the announcement.
    fn new(server: &Server, name: &str) -> Client {
        let mut client = Client(BufReader::new(server.connect()));
        client.say(&format!("{name}\r\n"));
        client.hears(&format!("{name} is here"));
        client
    }

    fn say(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    #[track_caller]
    fn hears(&mut self, wanted: &str) {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{wanted}\n"));
    }

    #[track_caller]
    fn hears_the_end(&mut self) {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}

#[test]
fn what_one_says_in_the_chat_goes_to_all_until_a_signal_ends_it() {
    let server = start("chat", "chat", &[]);
    let mut ann = Client::new(&server, "ann");
    let mut ben = Client::new(&server, "ben");
    ann.hears("ben is here");
    ben.say("hello\nand");
    for client in [&mut ann, &mut ben] {
        client.hears("ben: hello");
    }
    ann.say("hello, ben\n");
    ben.say(" good bye\n");
    for client in [&mut ann, &mut ben] {
        // In the same order for all clients, which may be either order.
        let mut lines: Vec<_> = client.0.by_ref().lines().take(2).map(Result::unwrap).collect();
        lines.sort();
        assert_eq!(lines, ["ann: hello, ben", "ben: and good bye"]);
    }
    drop(ben);
    ann.hears("ben has left");
    server.send("INT");
    ann.hears_the_end();
    let log = server.ends_well();
    assert!(!log.contains(": cancelling"), "{log}");
}

#[test]
fn no_client_of_the_chat_writes_the_line_of_another() {
    let server = start("chat", "chat_forged", &[]);
    let mut ann = Client::new(&server, "ann");
    let mut eve = Client(BufReader::new(server.connect()));
    eve.say("eve\rben is here\x1b[1A\n");
    let name = "eve ben is here\u{fffd}[1A";
    ann.hears(&format!("{name} is here"));
    let forged = [
        ("hi\rann: bye\r\n", "hi ann: bye"),
        ("\x1b[2K\x1b[Gann: bye\n", "\u{fffd}[2K\u{fffd}[Gann: bye"),
        ("a\u{8}\u{7f}\0b\u{9b}2K\tc\n", "a\u{fffd}\u{fffd}\u{fffd}b\u{fffd}2K c"),
        ("a\u{2028}ann: b\u{85}ann: c\u{202e}d\n", "a ann: b ann: c\u{fffd}d"),
        ("grüße, ann\n", "grüße, ann"),
    ];
    for (said, heard) in forged {
        eve.say(said);
        ann.hears(&format!("{name}: {heard}"));
    }
    server.send("TERM");
    server.ends_well();
}

#[test]
fn who_says_too_much_at_once_or_nothing_leaves_the_chat() {
    let server = start("chat", "chat_limits", &[]);
    let mut ann = Client::new(&server, "ann");
    let mut ben = Client::new(&server, "ben");
    ann.hears("ben is here");
    ben.say(&"x".repeat(1024));
    ann.hears("ben has left");
    server.send("TERM");
    server.ends_well();

    let server = start("chat", "chat_silence", &["--patience", "300"]);
    // One without a name, and one with.
    let mut nobody = Client(BufReader::new(server.connect()));
    nobody.hears_the_end();
    Client::new(&server, "ann").hears_the_end();
    server.send("TERM");
    server.ends_well();
}

// ---- Proxy -------------------------------------------------------------------------------------

/// Starts a server that handles each connection with `treat`, one after the other. Returns its
/// address.
fn upstream(mut treat: impl FnMut(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    thread::spawn(move || listener.incoming().for_each(|stream| treat(stream.unwrap())));
    addr
}

#[test]
fn a_proxy_passes_on_all_bytes_and_each_end_by_itself() {
    // Replies after the end of the question.
    let addr = upstream(|mut stream| {
        let mut question = Vec::new();
        stream.read_to_end(&mut question).unwrap();
        question.reverse();
        stream.write_all(&question).unwrap();
    });
    let server = start("proxy", "proxy", &[&addr]);
    for size in [0, 5, 2_000_000] {
        let question: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
        let mut stream = server.connect();
        stream.write_all(&question).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer.reverse();
        assert!(answer == question, "{size}");
    }
    server.send("INT");
    let log = server.ends_well();
    assert!(!log.contains(": cancelling"), "{log}");
}

#[test]
fn what_the_proxy_cannot_finish_is_reset_and_the_proxy_goes_on() {
    // Greets, and leaves without reading its input, which is a reset.
    let addr = upstream(|mut stream| {
        stream.write_all(b"!").unwrap();
        let _ = stream.peek(&mut [0]);
    });
    let server = start("proxy", "proxy_reset", &[&addr, "--drain", "1"]);
    let greeted = || {
        let mut stream = server.connect();
        stream.read_exact(&mut [0]).unwrap();
        stream
    };
    let met = |mut stream: TcpStream| stream.read(&mut [0]).unwrap_err().kind();
    for _ in 0..2 {
        let mut stream = greeted();
        stream.write_all(b"x").unwrap();
        assert_eq!(met(stream), ErrorKind::ConnectionReset);
    }
    // Neither side sends anything until the drain ends.
    let silent = greeted();
    server.send("TERM");
    assert_eq!(met(silent), ErrorKind::ConnectionReset);
    let log = server.ends(1);
    assert!(log.contains("time is up: cancelling "), "{log}");
    assert!(log.ends_with("error: the shutdown cut off work in progress: 1 left\n"), "{log}");
}

#[test]
fn a_proxy_whose_server_is_not_there_closes_each_connection() {
    // The system never assigns port 1 to another test.
    let server = start("proxy", "proxy_refused", &["127.0.0.1:1"]);
    for _ in 0..2 {
        assert_eq!(server.connect().read(&mut [0]).unwrap(), 0);
    }
    server.send("TERM");
    server.ends_well();
}

/// Half of the time of silence passes between two bytes, in one direction alone.
#[test]
fn a_pair_that_is_silent_for_long_ends_and_one_that_talks_does_not() {
    let idle = Duration::from_secs(300);
    let ran = testing::run(async move {
        let (mut client, mut near) = duplex(1000);
        let (mut far, mut server) = duplex(1000);
        let exchange = async move { proxy::exchange(&mut near, &mut far, idle).await };
        let mut proxy = spawn("proxy", exchange).await;
        for _ in 0..5 {
            sleep(idle / 2).await.unwrap();
            client.write_all(b"x").await.unwrap();
            server.read_exact(&mut [0]).await.unwrap();
        }
        let last = clock().await;
        let ended = proxy.join().await.unwrap().unwrap();
        (ended, clock().await.since(last))
    });
    let (ended, after) = ran.output;
    assert!(!ended && after >= idle && after < idle * 2, "{after:?}");
}

#[test]
fn a_silent_pair_is_reset_on_both_sides() {
    let (tell, told) = mpsc::channel();
    let addr = upstream(move |mut stream| {
        stream.write_all(b"!").unwrap();
        tell.send(stream.read(&mut [0]).unwrap_err().kind()).unwrap();
    });
    let server = start("proxy", "proxy_idle", &[&addr, "--idle", "100"]);
    let mut stream = server.connect();
    stream.read_exact(&mut [0]).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(told.recv_timeout(child::LIMIT), Ok(ErrorKind::ConnectionReset));
    server.send("TERM");
    server.ends_well();
}
