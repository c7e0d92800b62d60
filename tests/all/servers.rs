//! The servers as a user runs them: they print their address, respond, leave a sound trace, and end
//! cleanly at a signal.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use common::message;
use net::http::{Config, Exchange};
use serving::{access, http_lines};
use testing::child::{self, Child};
use testing::trace;

use support::examples::build;

/// A running server, and its address.
struct Server {
    process: Child,
    addr: String,
    trace: PathBuf,
}

/// Options of `http` with deadlines that do not pass even if a client, the server or the whole
/// machine has stalled for some seconds.
const PATIENT: [&str; 7] = [
    "--deadline-head=off",
    "--deadline-idle=off",
    "--deadline-body=off",
    "--deadline-body-rate=0",
    "--deadline-handler=off",
    "--deadline-linger=off",
    "--drain=off",
];

fn start(name: &str, test: &str) -> Server {
    start_with(name, test, &[])
}

fn start_with(name: &str, test: &str, args: &[&str]) -> Server {
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.trace"));
    let mut command = Command::new(build(name));
    command.arg("--trace").arg(&trace).args(args);
    start_by(&mut command, trace)
}

/// Starts a server by a command that lacks only the address.
fn start_by(command: &mut Command, trace: PathBuf) -> Server {
    command.args(["--addr", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = child::spawn(command);
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let Some(addr) = line.trim_end().strip_prefix("listening on ").map(str::to_owned) else {
        let said = io::read_to_string(process.stderr.take().unwrap()).unwrap();
        panic!("the server does not say where it listens: {said}");
    };
    Server { process, addr, trace }
}

impl Server {
    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.addr).unwrap()
    }

    /// Sends a request on a new connection. Returns the whole response.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn send(&self, signal: &str) {
        self.process.send(signal);
    }

    /// Sends the signal, and checks that the server ends correctly.
    fn stop(self, signal: &str) {
        self.send(signal);
        self.ends_well();
    }

    /// Checks that the server ends with code 0, reports its end in few lines, and leaves a sound
    /// trace.
    fn ends_well(self) {
        let trace = self.trace.clone();
        let log = self.log();
        assert!(log.lines().filter(is_lasting).count() < 10, "{log}");
        assert_sound(&trace);
    }

    /// Sends the signal, and waits until the server ends with code 0. Returns its log.
    fn end(self, signal: &str) -> String {
        self.send(signal);
        self.log()
    }

    /// Returns the log until the server ended, with code 0.
    fn log(self) -> String {
        self.log_of(0)
    }

    /// Returns the log until the server ended, with that code.
    fn log_of(mut self, code: i32) -> String {
        let mut log = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert_eq!(self.process.wait().unwrap().code(), Some(code), "{log}");
        log
    }
}

/// Whether a line of standard error is about something other than a long run. If the machine
/// stalls, a short run becomes a long one.
fn is_lasting(line: &&str) -> bool {
    !line.contains("a run took ") && !line.starts_with("trapline: task ")
}

/// A request that keeps a server busy until its client continues: half of its body has been sent.
struct Busy(TcpStream);

impl Busy {
    fn new(server: &Server) -> Busy {
        let mut stream = server.connect();
        let fields = "Host: here\r\nContent-Length: 4\r\nConnection: close";
        stream.write_all(format!("POST /echo HTTP/1.1\r\n{fields}\r\n\r\nba").as_bytes()).unwrap();
        Busy(stream)
    }

    /// Sends the rest, and reads the response.
    fn end(self) {
        let Busy(mut stream) = self;
        stream.write_all(b"ck").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nback"),
            "{answer}"
        );
    }
}

/// Returns the text of a trace, and checks its end.
fn assert_sound(trace: &Path) -> String {
    let text = fs::read_to_string(trace).unwrap();
    let lines = trace::trace(&text).unwrap();
    if let Err(broken) = trace::check(&lines) {
        panic!("{broken:?}\n{text}");
    }
    assert!(text.lines().last().unwrap().contains("halt     tasks=0 tickets=0 timers=0"));
    text
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
}

#[test]
fn echo_answers_and_ends_at_sigterm() {
    let server = start("echo", "echo");
    let mut idle = server.connect();
    let mut busy = server.connect();
    for text in ["one", "two"] {
        busy.write_all(text.as_bytes()).unwrap();
        let mut back = [0; 3];
        busy.read_exact(&mut back).unwrap();
        assert_eq!(back, text.as_bytes());
    }
    drop(busy);
    server.stop("TERM");
    assert_eq!(idle.read(&mut [0]).unwrap(), 0, "an idle connection is closed");
}

#[test]
fn a_hangup_shuts_a_server_down_as_sigterm_does() {
    for workers in ["1", "2"] {
        // Under `nohup cargo test`, children ignore it.
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP").arg(build("http")).args(["--workers", workers]);
        let server = start_by(&mut command, PathBuf::new());
        let mut busy = server.connect();
        busy.write_all(get("/sleep?ms=200").as_bytes()).unwrap();
        // With one worker, the request has been read by then.
        server.ask(&get("/"));
        let log = server.end("HUP");
        assert!(log.contains("shutting down (SIGHUP): "), "{log}");
        let mut answer = String::new();
        busy.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

#[test]
fn a_server_that_was_told_to_ignore_hangups_goes_on_after_one() {
    let server = start_by(&mut http_after("trap '' HUP"), PathBuf::new());
    server.send("HUP");
    assert!(server.ask(&get("/plaintext")).ends_with("\r\n\r\nHello, World!"));
    let log = server.end("TERM");
    assert!(log.contains("shutting down (SIGTERM): "), "{log}");
}

#[test]
fn the_length_of_the_drain_is_an_option() {
    for (args, span) in [(&[][..], "10s"), (&["--drain", "1"], "1ms")] {
        let server = start_with("http", "drain", args);
        let mut busy = server.connect();
        busy.write_all(get("/sleep?ms=60000").as_bytes()).unwrap();
        server.ask(&get("/"));
        server.send("TERM");
        if args.is_empty() {
            // Another signal ends it.
            while TcpStream::connect(&server.addr).is_ok() {}
            server.send("TERM");
        }
        let log = server.log_of(1);
        assert!(log.ends_with("error: the shutdown cut off work in progress: 1 left\n"), "{log}");
        let left = |rest: &str| rest.ends_with(&format!(" left, at most {span}"));
        let mut drains = log.lines().filter_map(|line| line.strip_prefix("finishing work "));
        assert!(drains.next().is_some_and(left) && drains.next().is_none(), "{log}");
        let why = if args.is_empty() { "a second signal came" } else { "time is up" };
        assert!(log.contains(&format!("{why}: cancelling ")), "{log}");
    }
    let mut server = start_with("http", "drain_off", &PATIENT);
    let busy = Busy::new(&server);
    server.ask(&get("/"));
    server.send("TERM");
    let mut log = BufReader::new(server.process.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(log.any(|line| line == "finishing work in progress: 1 left"));
    busy.end();
    let rest: Vec<String> = log.filter(|line| is_lasting(&line.as_str())).collect();
    assert_eq!(rest, ["stopped"]);
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn http_answers_each_of_its_paths_and_ends_at_sigint() {
    let server = start("http", "http");
    let answer = server.ask(&get("/"));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(server.ask(&get("/plaintext")).ends_with("\r\n\r\nHello, World!"));
    assert!(server.ask(&get("/sleep?ms=1")).starts_with("HTTP/1.1 200 OK"));
    for path in ["/sleep", "/sleep?ms=", "/sleep?ms=-1", "/sleep?ms=99999999999999999999"] {
        assert!(server.ask(&get(path)).starts_with("HTTP/1.1 400 "), "{path}");
    }
    assert!(server.ask(&get("/nothing")).starts_with("HTTP/1.1 404 "));
    let post =
        "POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\nConnection: close\r\n\r\nback";
    assert!(server.ask(post).ends_with("\r\n\r\nback"));
    assert!(server.ask(&post.replace("/echo", "/")).contains("Allow: GET, HEAD"));
    // A client that leaves in the middle of a request, and one that sends nothing.
    server.connect().write_all(b"GET / HT").unwrap();
    let _silent = server.connect();
    server.stop("INT");
}

#[test]
fn http_echo_answers_a_client_that_sends_all_before_it_reads_up_to_the_limit_of_a_body() {
    let post = |server: &Server, length: usize| {
        let fields = format!("Host: here\r\nContent-Length: {length}\r\nConnection: close");
        let body = "x".repeat(length);
        server.ask(&format!("POST /echo HTTP/1.1\r\n{fields}\r\n\r\n{body}"))
    };
    let more = (10 << 20).to_string();
    for (args, most) in [(&[][..], 8 << 20), (&["--limit-body", &more], 10 << 20)] {
        let server = start_with("http", "http_echo", &[&PATIENT[..], args].concat());
        let answer = post(&server, most);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert_eq!(body.len(), most);
        assert!(post(&server, most + 1).starts_with("HTTP/1.1 413 "), "one byte more");
        server.end("TERM");
    }
}

/// The trace of a worker.
fn of_worker(trace: &Path, number: u32) -> PathBuf {
    PathBuf::from(format!("{}.{number}", trace.display()))
}

#[test]
fn several_workers_share_a_port_and_end_together() {
    for (name, signal) in [("echo", "TERM"), ("http", "INT")] {
        let test = format!("{name}_workers");
        let server = start_with(name, &test, &["--workers", "2"]);
        let trace = server.trace.clone();
        // They are distributed by the hash of their ports; the chance that one worker gets all is 1
        // in 2^63.
        let mut all: Vec<TcpStream> = (0..64).map(|_| server.connect()).collect();
        for stream in &mut all {
            stream.write_all(get("/plaintext").as_bytes()).unwrap();
            let mut start = [0; 4];
            stream.read_exact(&mut start).unwrap();
        }
        server.end(signal);
        let texts = [1, 2].map(|number| assert_sound(&of_worker(&trace, number)));
        let is_end = |line: &&str| line.contains(" conn-") && line.contains(" exit ");
        let served = texts.map(|text| text.lines().filter(is_end).count());
        assert!(served.iter().all(|connections| *connections > 0), "{name}: {served:?}");
        assert_eq!(served[0] + served[1], 64, "{name}");
    }
}

#[test]
fn f26_each_worker_says_whose_its_lines_are() {
    let mut server =
        start_with("http", "named_workers", &["--workers", "2", "--limit-connections", "64"]);
    let log = BufReader::new(server.process.stderr.take().unwrap()).lines().map(Result::unwrap);
    server.send("USR1");
    let (mut heads, mut logged) = (Vec::new(), 0);
    for line in log {
        let (worker, rest) = line.split_once(": ").expect("a worker says it");
        assert!(["worker-1", "worker-2"].contains(&worker), "{line}");
        logged += usize::from(rest.starts_with("limits: 64 connections, "));
        if rest.starts_with("id ") {
            heads.push(worker.to_owned());
        }
        if heads.len() == 2 {
            break;
        }
    }
    heads.sort_unstable();
    assert_eq!((heads.join(" ").as_str(), logged), ("worker-1 worker-2", 2));
    server.send("TERM");
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn f15_the_backlog_is_an_option_and_what_came_of_it_is_logged() {
    let most = fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let most: u32 = most.trim().parse().unwrap();
    for asked in [7, most.saturating_add(1).min(1 << 30)] {
        let test = format!("backlog_{asked}");
        let log = start_with("echo", &test, &["--backlog", &asked.to_string()]).end("TERM");
        let cut = if asked > most { format!(", not {asked}: somaxconn") } else { String::new() };
        let wanted = format!(", backlog {}{cut}\n", asked.min(most));
        assert_eq!(log.matches(&wanted).count(), 1, "{log}");
    }
}

#[test]
fn f23_a_worker_that_cannot_begin_ends_all_with_a_clear_error() {
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("f23.trace");
    fs::create_dir_all(of_worker(&trace, 2)).unwrap();
    let args = ["--addr", "127.0.0.1:0", "--workers", "3", "--trace"];
    let ended = child::output(Command::new(build("echo")).args(args).arg(&trace));
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(ended.stdout, b"", "it does not say that it listens");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(errors.contains("error: worker 2: cannot write the trace to "), "{errors}");
}

#[test]
fn f23_a_number_of_workers_that_makes_no_sense_is_a_clear_error() {
    for (args, wanted) in [
        (&["--workers", "0"][..], "'0' for '--workers <N>': expected a number from 1 to 64"),
        (&["--workers", "65"], "'65' for '--workers"),
        (&["--workers", "two"], "'two' for '--workers"),
        (&["--workers"], "a value is required for '--workers <N>'"),
        (&["--workers", "2", "--trace", "-"], "--trace -: each worker has a trace of its own"),
        (&["--backlog", "0"], "'--backlog <N>': expected a number from 1 to 2147483647"),
    ] {
        let ended = child::output(Command::new(build("http")).args(args));
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {errors}");
        assert!(errors.contains(wanted), "{args:?}: {errors}");
    }
}

#[test]
fn a_trace_on_standard_output_is_alone_there() {
    let mut command = Command::new(build("echo"));
    command
        .args(["--addr", "127.0.0.1:0", "--trace", "-"])
        .env_remove("RUST_LOG")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = child::spawn(&mut command);
    let mut log = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
    let found = log.find(|line| line.contains("listening on 127.0.0.1:"));
    assert!(found.is_some(), "the log says where");
    process.send("TERM");
    let ended = process.wait_with_output();
    assert!(ended.status.success());
    let text = String::from_utf8(ended.stdout).unwrap();
    let lines = trace::trace(&text).unwrap();
    assert!(trace::check(&lines).is_ok(), "{text}");
}

/// Even if several workers share it.
#[test]
fn a_port_in_use_is_a_clear_error() {
    let one = &["--workers", "1"][..];
    let two = &["--workers", "2"][..];
    for (first, second) in [(one, one), (one, two), (two, one), (two, two)] {
        let server = start_with("http", "in_use", first);
        let second_has_two = second == two;
        let mut command = Command::new(build("http"));
        let second = child::output(command.args(["--addr", &server.addr]).args(second));
        assert_eq!(second.status.code(), Some(1));
        let errors = String::from_utf8_lossy(&second.stderr);
        let whose = if second_has_two { "worker 1: " } else { "" };
        let wanted = format!("error: {whose}cannot listen on {}: ", server.addr);
        assert!(errors.contains(&wanted) && errors.contains("in use"), "{errors}");
        let lines = errors.lines().filter(is_lasting).count();
        assert_eq!((lines, second.stdout.len()), (1, 0), "{errors}");
        server.end("TERM");
    }
}

/// Returns an address that can be bound. No other process uses its host, and each call returns
/// another port, so no one else takes the address before it is used.
fn free_addr() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(2_000);
    format!("{}:{}", child::own_host(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Only the system decides which server gets the port, because nothing is checked before.
#[test]
fn of_two_servers_with_workers_that_start_at_once_one_has_the_port() {
    let (echo, mut served) = (build("echo"), 0);
    for _ in 0..20 {
        let addr = free_addr();
        let both = [(); 2].map(|()| {
            let mut command = Command::new(&echo);
            command.args(["--addr", &addr, "--workers", "2"]).stdout(Stdio::piped());
            child::spawn(command.stderr(Stdio::piped()))
        });
        let mut here = Vec::new();
        for mut process in both {
            let mut said = String::new();
            BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
            if said.is_empty() {
                let ended = process.wait_with_output();
                let errors = String::from_utf8(ended.stderr).unwrap();
                assert_eq!(ended.status.code(), Some(1), "{errors}");
                assert!(errors.contains("in use"), "{errors}");
            } else {
                assert_eq!(said, format!("listening on {addr}\n"));
                here.push(process);
            }
        }
        // If both make the system call at the same time, both may fail.
        assert!(here.len() <= 1, "both have {addr}");
        served += here.len();
    }
    assert!(served > 10, "{served} of 20");
}

#[test]
fn what_an_option_alone_cannot_do_is_a_clear_error() {
    for (name, args, wanted) in [
        ("echo", &["--timed"][..], "error: --timed adds times to a trace; expected --trace FILE"),
        ("udp_echo", &["--timed"], "error: --timed adds times to a trace; expected --trace FILE"),
        ("hello", &["--timed"], "error: --timed adds times to a trace; expected --trace FILE"),
        ("fetch", &["--head", "--data", "x", "http://a"], "error: the argument '--head' cannot"),
        ("trace", &["idle", "-n", "x"], "'x' for '--most <MOST>': expected a number such as 20"),
        // The text cannot control a terminal.
        ("echo", &["--addr", "a\x1b[2Jb"], "invalid value 'a\u{fffd}[2Jb' for '--addr"),
    ] {
        let mut command = Command::new(build(name));
        let ended = child::output(command.args(args).env_remove("RUST_LOG"));
        let errors = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{name} {args:?}: {errors}");
        assert!(errors.contains(wanted), "{name} {args:?}: {errors}");
    }
    let mut hello = Command::new(build("hello"));
    let timed = child::output(hello.args(["--virtual", "--timed"]));
    let trace = String::from_utf8(timed.stdout).unwrap();
    assert!(timed.status.success() && trace.contains(" ran="), "{trace}");
}

/// Standard output and the log are the same terminal, which `script` makes.
#[test]
fn a_terminal_shows_once_where_a_server_listens() {
    for (name, place) in [("echo", "--addr 127.0.0.1:0"), ("udp_echo", "--addr 127.0.0.1:0")] {
        let run = format!("exec '{}' {place}", build(name).display());
        let mut command = Command::new("script");
        command.args(["-qefc", &run, "/dev/null"]).env_remove("RUST_LOG");
        let mut terminal = child::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut lines = BufReader::new(terminal.stdout.take().unwrap()).lines();
        let mut shown = lines.next().unwrap().unwrap();
        assert!(shown.contains("Z listening on 127.0.0.1:"), "{shown}");
        // Ctrl-C.
        terminal.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
        lines.for_each(|line| shown.push_str(&line.unwrap()));
        assert!(shown.contains("stopped"), "{shown}");
        assert_eq!(shown.matches("listening on").count(), 1, "{shown}");
    }
}

/// `31/Jan/2026:23:59:59 +0000`: the form, with a digit for each digit.
fn is_access_time(text: &str) -> bool {
    let form: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    form.len() == 26 && form.starts_with("00/") && form.ends_with("/0000:00:00:00 +0000")
}

/// The lines of an access log in a log, without their times.
fn access_lines(log: &str) -> Vec<String> {
    let without_time = |line: &str| {
        let (before, rest) = line.split_once(" - - [")?;
        let (time, rest) = rest.split_once("] ").expect("a time ends");
        assert!(is_access_time(time), "{line}");
        Some(format!("{before} {rest}"))
    };
    log.lines().filter_map(without_time).collect()
}

#[test]
fn each_answer_has_a_line_in_the_access_log_also_one_that_refuses() {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("access_files");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("ten.txt"), "0123456789").unwrap();
    let args = ["--access-log", "--log-time", "--limit-body", "3", "--files"];
    let args = [&args[..], &[home.to_str().unwrap()]].concat();
    let server = start_with("http", "access", &args);
    let with = |line: &str, fields: &str| format!("{line}\r\nHost: here\r\n{fields}\r\n");
    let long = format!("GET /{} HTTP/1.1", "x".repeat(9_000));
    let post = "POST /echo HTTP/1.1";
    let last = "Connection: close\r\n";
    for request in [
        get("/plaintext?x=1"),
        get("/nothing").replace("GET", "HEAD"),
        get("/files/ten.txt"),
        get("/stream?chunks=1"),
        with("GET /%22\\ HTTP/1.1", last),
        with("GET /plaintext HTTP/1.1", "No colon\r\n"),
        with(post, "Content-Length: 4\r\n") + "back",
        with(post, "Transfer-Encoding: gzip, chunked\r\n"),
        with(&long, last),
    ] {
        assert!(server.ask(&request).starts_with("HTTP/1.1 "), "{request}");
    }
    let log = server.end("TERM");
    let found = access_lines(&log);
    let status = |line: &String| line.rsplit(' ').nth(1).unwrap().to_owned();
    let statuses: Vec<String> = found.iter().map(status).collect();
    assert_eq!(statuses.join(" "), "200 404 200 200 404 400 413 501 414", "{log}");
    assert!(found.iter().all(|line| line.starts_with("127.0.0.1 \"")), "{log}");
    for line in [
        r#"127.0.0.1 "GET /plaintext?x=1 HTTP/1.1" 200 13"#,
        r#"127.0.0.1 "HEAD /nothing HTTP/1.1" 404 -"#,
        r#"127.0.0.1 "GET /files/ten.txt HTTP/1.1" 200 10"#,
        r#"127.0.0.1 "GET /stream?chunks=1 HTTP/1.1" 200 13"#,
    ] {
        assert!(found.iter().any(|found| found == line), "no {line}: {log}");
    }
    assert!(found[4].starts_with(r#"127.0.0.1 "GET /%22\\ HTTP/1.1" 404 "#), "{log}");
}

/// A response that a deadline made, one without a body, and one without an end.
#[test]
fn an_answer_of_any_kind_has_peer_status_and_length_in_the_access_log() {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("access_kinds");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("ten.txt"), "0123456789").unwrap();
    let files = ["--files", home.to_str().unwrap()];
    let not_modified = get("/files/ten.txt").replace("\r\n\r\n", "\r\nIf-None-Match: *\r\n\r\n");
    let no_body = "POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\n".to_owned();
    for (args, request, answer, wanted) in [
        (&files[..], not_modified, "304", r#""GET /files/ten.txt HTTP/1.1" 304 -"#),
        (
            &files,
            get("/files/ten.txt").replace("GET", "HEAD"),
            "200",
            r#""HEAD /files/ten.txt HTTP/1.1" 200 -"#,
        ),
        (&["--deadline-body", "1"], no_body, "408", r#""POST /echo HTTP/1.1" 408 "#),
        (
            &["--deadline-handler", "1"],
            get("/sleep?ms=60000"),
            "503",
            r#""GET /sleep?ms=60000 HTTP/1.1" 503 "#,
        ),
        (&["--limit-body", "3"], get("/events"), "200", r#""GET /events HTTP/1.1" 200 "#),
    ] {
        let server = start_with("http", "access_kinds", &[&["--access-log"], args].concat());
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head[9..], answer.as_bytes(), "{request}");
        server.send("TERM");
        stream.read_to_end(&mut Vec::new()).unwrap();
        let log = server.log();
        let found = access_lines(&log);
        let [line] = &found[..] else { panic!("{request}: {log}") };
        assert!(line.starts_with(&format!("127.0.0.1 {wanted}")), "{log}");
        let length = line.rsplit(' ').next().unwrap();
        assert!(length == "-" || length.parse::<u64>().is_ok_and(|length| length > 0), "{log}");
    }
}

#[test]
fn a_line_of_the_access_log_has_no_prefix_with_workers_either() {
    let server = start_with("http", "access_workers", &["--access-log", "--workers", "2"]);
    server.ask(&get("/plaintext"));
    let log = server.end("TERM");
    let wanted = r#"127.0.0.1 "GET /plaintext HTTP/1.1" 200 13"#;
    assert_eq!(access_lines(&log), [wanted], "{log}");
}

#[test]
fn what_a_client_sends_ends_neither_its_quotes_nor_its_line_in_the_access_log() {
    let line = |request_line: &[u8], length| {
        let peer = "192.0.2.1:4711".parse().ok();
        let exchange = Exchange { peer, request_line, status: 400, length };
        access::line(&exchange, "31/Jan/2026:23:59:59 +0000")
    };
    let start = "192.0.2.1 - - [31/Jan/2026:23:59:59 +0000] ";
    for (sent, shown) in [
        (&b"GET / HTTP/1.1"[..], "GET / HTTP/1.1"),
        (b"", "-"),
        (b"GET /\" 200 5\n192.0.2.2 - - [", r#"GET /\" 200 5\n192.0.2.2 - - ["#),
        (br#"GET /\"#, r"GET /\\"),
        (br#"GET /\""#, r#"GET /\\\""#),
        (b"\x08\t\x0b\x0c\r\n", r"\b\t\v\x0c\r\n"),
        (b"\0\x1b[2J ~\x7f\x80\xff", r"\x00\x1b[2J ~\x7f\x80\xff"),
        ("caf\u{e9} \u{2028}".as_bytes(), r"caf\xc3\xa9 \xe2\x80\xa8"),
    ] {
        assert_eq!(line(sent, 5), format!("{start}\"{shown}\" 400 5"));
    }
    assert_eq!(line(b"GET / HTTP/1.1", 0), format!("{start}\"GET / HTTP/1.1\" 400 -"));
    // Every byte is shown by printable characters, differently from every other byte.
    let all: BTreeSet<String> = (0..=u8::MAX).map(|byte| line(&[byte, b'.'], 5)).collect();
    assert_eq!(all.len(), 256);
    assert!(all.iter().all(|line| line.bytes().all(|byte| matches!(byte, b' '..=b'~'))));
}

#[test]
fn an_access_log_shows_the_address_of_the_peer_without_its_port() {
    for (peer, shown) in [
        (Some("[2001:db8::1]:80"), "2001:db8::1"),
        // The form in which a listener on `[::]` sees the address.
        (Some("[::ffff:192.0.2.1]:80"), "192.0.2.1"),
        (None, "-"),
    ] {
        let peer = peer.map(|peer| peer.parse().unwrap());
        let exchange = Exchange { peer, request_line: b"", status: 499, length: 0 };
        assert_eq!(access::line(&exchange, "T"), format!("{shown} - - [T] \"-\" 499 -"));
    }
}

#[test]
fn each_line_of_the_log_begins_with_the_time_if_it_is_asked_for() {
    let server = start_with("http", "log_time", &["--log-time", "--limit-request-line", "14"]);
    assert!(server.ask(&get("/plaintext")).starts_with("HTTP/1.1 414 "));
    let log = server.end("TERM");
    let hit = "Z warning: limit reached: request_line_bytes, limit 14 (--limit-request-line), \
               conn 1, peer 127.0.0.1:";
    assert!(log.contains(hit), "{log}");
    for line in log.lines() {
        assert!(line.starts_with("20") && line.as_bytes()[19] == b'Z', "{line}");
    }
    let server = start("http", "no_log_time");
    server.ask(&get("/plaintext"));
    let log = server.end("TERM");
    assert!(!log.contains("plaintext") && log.starts_with("listening on "), "{log}");
}

// ---- SIGTERM during requests -------------------------------------------------------------------

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    /// A complete response; whether the connection continues.
    Answer { status: u16, more: bool },
    /// Not a single byte, because the connection was not accepted, or was idle when it closed.
    Nothing,
}

/// Sends a request and reads its response by its length.
fn ask_on(stream: &mut TcpStream, path: &str) -> Came {
    let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n");
    // The connection may have ended; then the read returns the end.
    let _ = stream.write_all(request.as_bytes());
    let (mut text, mut buf) = (String::new(), [0; 4096]);
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let field = |name| head.lines().find_map(|line: &str| line.strip_prefix(name));
            let length: usize = field("Content-Length: ").unwrap().parse().unwrap();
            assert!(body.len() <= length, "more than one answer: {text}");
            if body.len() == length {
                let status = text["HTTP/1.1 ".len()..][..3].parse().unwrap();
                return Came::Answer { status, more: field("Connection: close").is_none() };
            }
        }
        match stream.read(&mut buf) {
            Ok(n @ 1..) => text.push_str(std::str::from_utf8(&buf[..n]).unwrap()),
            // As after a stop of the process, where a read has a limit.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            ended => {
                assert!(text.is_empty(), "an answer breaks off, by {ended:?}: {text}");
                return Came::Nothing;
            }
        }
    }
}

/// Sends requests until the server has gone, on one connection after the other, and reports each
/// result. With `often`, sends many requests on each connection. Returns how many were refused.
fn hammer(addr: &str, often: usize, answers: &Sender<()>, told: &AtomicBool) -> u64 {
    let mut refused = 0;
    for _ in 0..1_000_000 {
        let Ok(mut stream) = TcpStream::connect(addr) else {
            assert!(told.load(Ordering::SeqCst), "refused by a server that was not told to end");
            return refused;
        };
        for _ in 0..often {
            match ask_on(&mut stream, "/plaintext") {
                Came::Answer { status: 200, more } => {
                    let _ = answers.send(());
                    if !more {
                        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "it said that it closes");
                        break;
                    }
                }
                Came::Answer { status, more } => {
                    assert_eq!((status, more), (503, false));
                    refused += 1;
                    break;
                }
                // The server accepts no more connections, or this one was idle when it closed.
                Came::Nothing => {
                    assert!(told.load(Ordering::SeqCst), "nobody told the server to end");
                    break;
                }
            }
        }
    }
    panic!("the server never ends");
}

/// Every request of an accepted connection gets a complete response or refusal; idle connections
/// close before busy ones are answered.
#[test]
fn f18_sigterm_under_load_answers_or_refuses_and_lets_the_idle_go() {
    const ENOUGH: usize = 600;
    let server = start_with("http", "hammered", &PATIENT);
    let watch = |name: &'static str, mut stream: TcpStream| {
        thread::spawn(move || assert_eq!(stream.read(&mut [0]).unwrap(), 0, "{name}"))
    };
    let busy = Busy::new(&server);
    let mut idle = server.connect();
    assert_eq!(ask_on(&mut idle, "/"), Came::Answer { status: 200, more: true });
    let watchers = [watch("idle", idle), watch("silent", server.connect())];
    let (answers, answered) = mpsc::channel();
    let told = Arc::new(AtomicBool::new(false));
    let hammers: Vec<_> = [1, 1, 1, 50, 50, usize::MAX]
        .map(|often| {
            let (addr, answers) = (server.addr.clone(), answers.clone());
            let told = told.clone();
            thread::spawn(move || hammer(&addr, often, &answers, &told))
        })
        .into_iter()
        .collect();
    answered.iter().take(ENOUGH).for_each(drop);
    told.store(true, Ordering::SeqCst);
    server.send("TERM");
    for hammer in hammers {
        hammer.join().unwrap();
    }
    // The idle ones end while the other one is still busy.
    watchers.into_iter().for_each(|watcher| watcher.join().unwrap());
    busy.end();
    server.ends_well();
}

#[test]
fn f20_a_server_that_is_told_to_end_says_what_it_does_in_plain_words() {
    let mut server = start_with("http", "phases", &["--deadline-idle", "off"]);
    let mut idle = server.connect();
    assert_eq!(ask_on(&mut idle, "/"), Came::Answer { status: 200, more: true });
    server.send("INT");
    let mut log = String::new();
    server.process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(server.process.wait().unwrap().success(), "{log}");
    let lines: Vec<&str> = log.lines().filter(is_lasting).collect();
    let [listening, limits, deadlines, close, drain, stopped] = lines[..] else { panic!("{log}") };
    assert!(listening.starts_with(&format!("listening on {}, backlog ", server.addr)), "{log}");
    assert!(limits.starts_with("limits: 16384 connections, ") && limits.contains("head 64 KiB"));
    assert!(deadlines.starts_with("deadlines: head 10s, body 30s and 240 bytes/s, "), "{log}");
    assert_eq!(close, "shutting down (SIGINT): 2 tasks");
    assert_eq!((drain, stopped), ("finishing work in progress: 1 left, at most 10s", "stopped"));
}

/// With `RUST_LOG=debug` the log has the lines of the trace.
#[test]
fn a_log_of_events_has_them_in_the_form_of_a_trace() {
    let mut command = Command::new(build("echo"));
    let log = start_by(command.env("RUST_LOG", "kernel=debug"), PathBuf::new()).end("INT");
    let verb = |line: &str| trace::line(line).ok().map(|line| line.verb);
    let verbs: Vec<_> = log.lines().filter_map(verb).collect();
    assert!(verbs.contains(&"spawn") && verbs.ends_with(&["phase", "phase", "halt"]), "{log}");
}

/// The important events of the kernel, and their messages.
#[test]
fn each_event_of_importance_has_a_message() {
    let said = |event: &str| message::of(&format!(" 1.500000       6  #0004 {event}"));
    for (event, wanted) in [
        ("  0 kernel   boot     clock=real policy=lazy", None),
        (
            "  0 kernel   phase    close reason=another_worker_ended tasks=1",
            Some("shutting down (another worker ended): 1 task"),
        ),
        ("  0 kernel   phase    drain holds=0 until=11.500000", None),
        ("  0 kernel   phase    cancel tasks=0 after=drained", None),
        (
            "  0 kernel   phase    cancel tasks=2 after=drained",
            Some("no work is in progress: cancelling 2 tasks"),
        ),
        (
            "  0 kernel   phase    cancel tasks=1 after=failure",
            Some("the system failed: cancelling 1 task"),
        ),
        (
            "  0 kernel   phase    cleanup tasks=1 until=6.500000",
            Some("cleaning up: 1 task left, at most 5s"),
        ),
        ("  0 kernel   phase    drop tasks=3", Some("time is up: dropping 3 tasks")),
        (
            "  0 kernel   halt     tasks=0 tickets=0 timers=0 handles=0 threads=1",
            Some("stopped; 1 thread still running a job"),
        ),
        ("  4 conn-2   panic    left == right", Some("panic: left == right (task 4 conn-2)")),
        (
            "  4 conn-2   longrun  ran=0.060000 from=read@a.rs:1 to=exit",
            Some("a run took 60ms, from read@a.rs:1 to exit (task 4 conn-2)"),
        ),
        (
            "  4 conn-2   longrun  ran=0.088000 cpu=0.003000 from=read@a.rs:1 to=exit",
            Some("a run took 88ms, 3ms at most on a CPU, from read@a.rs:1 to exit (task 4 conn-2)"),
        ),
        (
            "  4 conn-2   refuse   c2 no space left",
            Some("cannot wait for c2: no space left (task 4 conn-2)"),
        ),
        (
            "  4 conn-2   cap      name=gate limit=5 refused=7",
            Some("limit reached: gate, limit 5 (--gate), refused 7 (task 4 conn-2)"),
        ),
        ("  4 conn-2   cap      my own words", Some("limit reached: my own words (task 4 conn-2)")),
        ("  0 kernel   warn     jobs find threads again", Some("jobs find threads again")),
    ] {
        assert_eq!(said(event).as_deref(), wanted, "{event}");
    }
    assert_eq!(message::of("listening").as_deref(), Some("listening"));
    let mut config = Config::default();
    config.deadlines.handler = Duration::MAX;
    assert!(http_lines::in_force(&config)[1].contains(", handler off, "));
}

#[test]
fn f26_sigusr1_prints_the_task_table_while_the_server_runs() {
    let mut server = start("echo", "table");
    let mut stream = server.connect();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let mut log = BufReader::new(server.process.stderr.take().unwrap()).lines();
    for _ in 0..2 {
        server.send("USR1");
        let mut table = log.by_ref().map(Result::unwrap).skip_while(|line| !line.contains("since"));
        for (name, parked) in [("main", "io l1 read"), ("conn-1", "io c1 read")] {
            let _head = if name == "main" { table.next() } else { None };
            let row = table.next().unwrap();
            let words: Vec<&str> = row.split_whitespace().collect();
            assert_eq!(
                (words[1], words[2], words[3..6].join(" ").as_str()),
                (name, "parked", parked)
            );
            assert!(row.contains("examples/servers/echo.rs:"), "{row}");
        }
    }
    server.send("TERM");
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn the_kernel_page_shows_the_kernel_and_not_its_own_connection() {
    let off = start("http", "no_kernel_page");
    for path in ["/kernel", "/kernel/events", "/kernel/why?task=3", "/kernel/metrics"] {
        let answer = off.ask(&get(path));
        assert!(answer.starts_with("HTTP/1.1 404 "), "it is off by default: {answer}");
        assert!(answer.ends_with("\r\n\r\nStart the server with --kernel-page\n"), "{answer}");
    }
    off.stop("TERM");
    let server = start_with("http", "kernel_page", &["--kernel-page"]);
    let metrics = server.ask(&get("/kernel/metrics"));
    assert!(metrics.starts_with("HTTP/1.1 200 "), "{metrics}");
    let page = server.ask(&get("/kernel"));
    assert!(page.contains("text/html") && page.contains("The kernel, live"), "{page}");
    // The third connection, so it belongs to the task `conn-3`.
    let mut feed = server.connect();
    feed.write_all(b"GET /kernel/events HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut lines = BufReader::new(&feed).lines().map(Result::unwrap);
    let mut next = || lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    next().unwrap();
    server.ask(&get("/plaintext"));
    // The hits in the meantime; only another connection makes it log again.
    let mut said = String::new();
    while !said.contains("conn-4 exit") {
        let text = next().unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        // A stalled machine can make a run long, which is a lint.
        let common = &value["common"];
        assert!(common["most_ready"].is_u64() && common["lints"].is_array(), "{text}");
        for line in value["lines"].as_array().unwrap() {
            let words: Vec<&str> = line.as_str().unwrap().split_whitespace().collect();
            said += &(words.join(" ") + "\n");
        }
        let tasks = value["rows"].as_array().unwrap();
        assert!(tasks.iter().all(|task| task["name"] != "conn-3"), "{text}");
    }
    assert!(said.contains("conn-4 io c4 read = ") && !said.contains(" conn-3 "), "{said}");
    drop(feed);
    server.stop("TERM");
}

/// The log since then.
#[test]
fn the_kernel_page_explains_a_task_that_parked_long_ago() {
    let flags = ["--kernel-page", "--deadline-idle", "60000"];
    let server = start_with("http", "kernel_page_why", &flags);
    // The first connection, so it belongs to task 3.
    let mut early = server.connect();
    early.write_all(b"GET /plaintext HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut answer = [0; 64];
    early.read_exact(&mut answer).unwrap();
    for _ in 0..60 {
        server.ask(&get("/plaintext"));
    }
    let answer = server.ask(&get("/kernel/why?task=3"));
    let value: serde_json::Value = serde_json::from_str(body(&answer)).unwrap();
    let verb = |line: &serde_json::Value| {
        line.as_str().unwrap().split_whitespace().nth(5).unwrap().to_owned()
    };
    let verbs: Vec<String> = value["lines"].as_array().unwrap().iter().map(verb).collect();
    // The first read may have succeeded at once, or after a wait.
    let ends =
        [&["spawn", "run", "block"][..], &["spawn", "block", "arrive", "wake", "run", "block"]];
    assert!(ends.contains(&&*verbs.iter().map(String::as_str).collect::<Vec<_>>()), "{answer}");
    assert!(server.ask(&get("/kernel/why?task=99999")).starts_with("HTTP/1.1 404 "));
    assert!(server.ask(&get("/kernel/why")).starts_with("HTTP/1.1 400 "));
    assert!(server.ask(&get("/kernel/why?task=3&worker=99")).starts_with("HTTP/1.1 409 "));
    server.stop("TERM");
}

/// The body of a complete response.
fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("it has a head").1
}

#[test]
fn http_streams_blocks_and_guards_its_gate() {
    let server = start_with("http", "http_more", &["--gate", "1", "--deadline-handler", "30000"]);
    let answer = server.ask(&get("/stream?chunks=3"));
    assert!(answer.contains("Transfer-Encoding: chunked\r\n"), "{answer}");
    let chunk = |number| format!("d\r\nchunk {number} of 3\n\r\n");
    assert_eq!(body(&answer), format!("{}{}{}0\r\n\r\n", chunk(1), chunk(2), chunk(3)));
    assert_eq!(body(&server.ask(&get("/stream?chunks=0"))), "0\r\n\r\n");
    assert_eq!(body(&server.ask(&get("/blocking?ms=1"))), "Blocked for 1 ms.\n");
    for path in ["/stream", "/stream?chunks=x", "/blocking", "/blocking?ms=-1", "/gate?ms=x"] {
        assert!(server.ask(&get(path)).starts_with("HTTP/1.1 400 "), "{path}");
    }
    // The error for a too large value names the bound.
    for path in ["/sleep?ms=99999", "/blocking?ms=60001", "/gate?ms=60001"] {
        let answer = server.ask(&get(path));
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("at most 60000"), "{path}");
    }
    assert!(body(&server.ask(&get("/stream?chunks=1000001"))).contains("at most 1000000"));
    let answer = server.ask(&get("/stream?chunks=1").replace("GET", "PUT"));
    assert!(answer.contains("Allow: GET, HEAD, OPTIONS\r\n"), "{answer}");
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let done = json(r#"{"task_waiting":true,"ms":0}"#);
    assert_eq!(json(body(&server.ask(&get("/gate?ms=0")))), done);
    // While one request is inside, others get their responses at once.
    let mut first = server.connect();
    first.write_all(get("/gate?ms=60000").as_bytes()).unwrap();
    let busy = r#"{"task_waiting":false,"info":"the server is too busy: 1 at a time"}"#;
    while json(body(&server.ask(&get("/gate?ms=0")))) != json(busy) {}
    assert_eq!(body(&server.ask(&get("/plaintext"))), "Hello, World!");
    for path in ["/stream?chunks=1000000", "/events"] {
        let head = server.ask(&get(path).replace("GET", "HEAD"));
        assert!(head.starts_with("HTTP/1.1 200 ") && body(&head).is_empty(), "{head}");
    }
    let mut events = BufReader::new(server.connect());
    events.get_mut().write_all(get("/events").as_bytes()).unwrap();
    let mut lines = events.lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "Content-Type: text/event-stream"));
    // Its thread would hold the server up for a minute.
    let Server { mut process, .. } = server;
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn http_serves_the_files_of_a_directory_and_no_others() {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("http_files");
    fs::create_dir_all(home.join("sub")).unwrap();
    let large: String = (0..400_000).map(|number| format!("{number:07}\n")).collect();
    fs::write(home.join("sub/large.txt"), &large).unwrap();
    let server = start_with("http", "http_files", &["--files", home.to_str().unwrap()]);
    assert!(body(&server.ask(&get("/files/sub/large.txt"))) == large, "it comes as it is");
    let range = get("/files/sub/large.txt").replace("\r\n\r\n", "\r\nRange: bytes=8-15\r\n\r\n");
    let part = server.ask(&range);
    assert!(part.starts_with("HTTP/1.1 206 ") && body(&part) == "0000001\n", "{part}");
    for path in ["/files/", "/files/sub", "/files/../http_files/sub/large.txt", "/files/none"] {
        assert!(server.ask(&get(path)).starts_with("HTTP/1.1 404 "), "{path}");
    }
    server.stop("TERM");
    let without = start("http", "http_no_files");
    assert!(without.ask(&get("/files/large.txt")).starts_with("HTTP/1.1 404 "));
    without.stop("TERM");
    let wrong = ["--addr", "127.0.0.1:0", "--files", "/none/such"];
    let ended = child::output(Command::new(build("http")).args(wrong));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(1) && said.contains("/none/such: "), "{said}");
}

/// Returns the output of `fetch` on standard output and on standard error, and whether it
/// succeeded.
fn fetch(args: &[&str]) -> (String, String, bool) {
    let ended = child::output(Command::new(build("fetch")).args(args));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(ended.stdout), text(ended.stderr), ended.status.success())
}

#[test]
fn fetch_keeps_its_connection_and_reads_chunks() {
    let server = start_with("http", "fetch", &["--deadline-idle", "off"]);
    let url = |path: &str| format!("http://{}{path}", server.addr);
    let (stream, plain) = (url("/stream?chunks=2"), url("/plaintext#there"));
    let (out, said, well) = fetch(&[&plain, &stream, &plain]);
    assert!(well, "{said}");
    assert_eq!(out, "Hello, World!chunk 1 of 2\nchunk 2 of 2\nHello, World!");
    let lines: Vec<&str> = said.lines().filter(is_lasting).collect();
    assert_eq!(
        lines,
        [
            "200, 13 bytes, on a new connection",
            "200, 26 bytes, on the same connection",
            "200, 13 bytes, on the same connection",
        ]
    );
    let (out, _, well) = fetch(&["--data", "back", "--include", &url("/echo")]);
    assert!(well && out.starts_with("HTTP/1.1 200 OK\r\n") && out.ends_with("\r\n\r\nback"));
    let (out, _, well) = fetch(&["--head", &url("/").replace("http", "HTTP")]);
    assert!(well && out.contains("Content-Length: 21\r\n") && out.ends_with("\r\n\r\n"));
    // The second request has the same limit, even on a busy machine.
    let (_, said, well) = fetch(&["--piece", "4000", &url("/sleep?ms=60000"), &url("/")]);
    assert!(!well && said.contains("1 of 2 failed") && said.contains("200, 21 bytes"), "{said}");
    let (_, said, well) = fetch(&["--timeout", "10", &url("/sleep?ms=60000")]);
    assert!(!well && said.contains("1 of 1 failed"), "{said}");
    server.stop("TERM");
}

/// Its buffer is full then, and the check before the next request finds the end.
#[test]
fn fetch_goes_on_where_a_server_ends_a_connection_that_was_to_stay() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 1000]).unwrap() > 0);
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 8151\r\n\r\n";
            stream.write_all(format!("{head}{}", "x".repeat(8151)).as_bytes()).unwrap();
            assert_eq!(head.len() + 8151, 8192);
        }
    });
    let (out, said, well) = fetch(&[&url, &url]);
    assert_eq!((out.len(), well), (2 * 8151, true), "{said}");
    server.join().unwrap();
}

#[test]
fn fetch_says_what_is_wrong_with_its_command_line() {
    for (args, said) in [
        (&[][..], "not provided: <URL>..."),
        (&["https://a/"], "there is no TLS here; expected a URL such as http://"),
        (&["HTTPS://a/"], "there is no TLS here"),
        (&["ftp://a/"], "'[URL]...': expected a URL such as"),
        (&["http:///a"], "expected a URL such as"),
        (&["http://u@a/"], "expected a URL such as"),
        (&["http://a/b c"], "expected a URL such as"),
        (&["--virtual"], "unexpected argument '--virtual'"),
        (&["--timeout", "0"], "--timeout"),
    ] {
        let (_, found, well) = fetch(args);
        assert!(!well && found.contains(said), "{args:?}: {found}");
    }
}

#[test]
fn f29_each_limit_and_deadline_of_http_has_its_option() {
    let run = |args: &[&str]| {
        let ran = child::output(Command::new(build("http")).args(args));
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    let help = run(&["--help"]);
    let options = help.lines().filter_map(|line| line.trim().split(' ').next());
    let options: Vec<&str> = options
        .filter(|word| word.starts_with("--limit-") || word.starts_with("--deadline-"))
        .collect();
    let mut bounds = 0;
    for line in run(&["--print-limits"]).lines() {
        let (name, rest) = line.split_once(' ').unwrap();
        if name.starts_with("limit-") || name.starts_with("deadline-") {
            let option = format!("--{name}");
            assert!(options.contains(&option.as_str()), "no {option} for {line}");
            bounds += 1;
            // The values that it sets are in force.
            let shown = run(&[&option, "77", "--print-limits"]);
            let (_, unit) = rest.split_once(' ').unwrap();
            let set = format!("{name} 77 {unit}");
            assert!(shown.lines().any(|line| line == set), "no {set}: {shown}");
        }
    }
    assert_eq!(options.len(), bounds, "{options:?}");
    assert!(bounds > 10, "the page was read");
}

#[test]
fn a_handler_has_thirty_seconds_and_half_closed_clients_are_not_answered_unless_said_otherwise() {
    let shown = |args: &[&str]| {
        let mut command = Command::new(build("http"));
        let shown = child::output(command.args(args).arg("--print-limits"));
        String::from_utf8(shown.stdout).unwrap()
    };
    let plain = shown(&[]);
    assert!(
        plain.contains("\ndeadline-handler 30000 ms\n") && plain.contains("\nhalf-close off -\n"),
        "{plain}"
    );
    let other = shown(&["--deadline-handler", "off", "--half-close", "on"]);
    assert!(
        other.contains("\ndeadline-handler off ms\n") && other.contains("\nhalf-close on -\n"),
        "{other}"
    );
}

#[test]
fn the_help_says_which_limits_are_those_of_each_worker() {
    let help = child::output(Command::new(build("http")).arg("--help"));
    let help = String::from_utf8(help.stdout).unwrap();
    let of_each = help.lines().filter(|line| line.contains("of each worker"));
    let names: Vec<&str> = of_each.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(
        names,
        [
            "--backlog",
            "--file-threads",
            "--blocking-threads",
            "--limit-memory",
            "--limit-connections"
        ]
    );
}

#[test]
fn f29_a_limit_that_makes_no_sense_is_a_clear_error() {
    let number = |least: u64, most: u64| format!("expected a number from {least} to {most}");
    let millis = |least| {
        format!("expected a number of milliseconds from {least}, a time such as 5s, or off")
    };
    for (option, value, said) in [
        ("--file-threads", "0", number(1, 16_384)),
        ("--blocking-threads", "16385", number(1, 16_384)),
        ("--gate", "0", number(1, 16_384)),
        ("--limit-head", "0", number(18, 1 << 30)),
        ("--limit-request-line", "13", number(14, 1 << 30)),
        ("--limit-fields", "0", number(1, 100)),
        ("--limit-fields", "101", number(1, 100)),
        ("--limit-body", "-1", number(0, u64::MAX)),
        ("--limit-drain", "x", number(0, u64::MAX)),
        ("--limit-connections", "0", number(1, usize::MAX as u64)),
        ("--limit-memory", "0", number(1, u64::MAX)),
        ("--limit-requests", "0", number(1, u64::MAX)),
        ("--limit-pipelined", "0", number(1, u64::from(u32::MAX))),
        ("--deadline-head", "0", millis(1)),
        ("--deadline-body-window", "0", millis(1)),
        ("--deadline-body-whole", "0", millis(1)),
        ("--deadline-write-rate", "-1", number(0, u64::MAX)),
        ("--deadline-idle", "never", millis(0)),
        ("--drain", "never", millis(0)),
    ] {
        let given = format!("{option}={value}");
        let ran = child::output(Command::new(build("http")).arg(given));
        let errors = String::from_utf8_lossy(&ran.stderr);
        let named = errors.starts_with(&format!("error: invalid value '{value}' for '{option} "));
        assert!(!ran.status.success() && named, "{option} {value}: {errors}");
        assert!(errors.ends_with(&format!(": {said}\n")), "{said}: {errors}");
    }
}

// ---- The operator's side -----------------------------------------------------------------------

/// A server that logs each decision of its kernel, and more of them than it keeps for a reader.
fn start_and_flood() -> Server {
    let mut command = Command::new(build("http"));
    // If the machine stalls for as long as a connection may be idle, the connection would end.
    command.args(PATIENT).env("RUST_LOG", "kernel=trace");
    let server = start_by(&mut command, PathBuf::new());
    let mut stream = server.connect();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    for number in 1..=4_000 {
        let came = ask_on(&mut stream, "/");
        assert_eq!(came, Came::Answer { status: 200, more: true }, "request {number}");
    }
    server
}

#[test]
fn a_standard_error_that_nobody_reads_holds_up_neither_answers_nor_the_end() {
    let mut server = start_and_flood();
    server.send("TERM");
    assert!(server.process.wait().unwrap().success());
}

/// As for a server that is restarted while its reader hangs.
#[test]
fn a_server_whose_output_is_full_from_the_start_begins_answers_and_ends() {
    for workers in ["1", "2"] {
        let (_unread, full) = UnixStream::pair().unwrap();
        full.set_nonblocking(true).unwrap();
        for piece in [4096, 1] {
            while (&full).write(&vec![b'.'; piece]).is_ok() {}
        }
        full.set_nonblocking(false).unwrap();
        let output = || OwnedFd::from(full.try_clone().unwrap());
        // It cannot report its port.
        let addr = free_addr();
        let mut command = Command::new(build("http"));
        command.args(["--addr", &addr, "--workers", workers]).stdout(output()).stderr(output());
        let process = child::spawn(&mut command);
        let mut server = Server { process, addr, trace: PathBuf::new() };
        while TcpStream::connect(&server.addr).is_err() {
            assert!(server.process.try_wait().unwrap().is_none(), "it has ended");
        }
        assert!(server.ask(&get("/plaintext")).ends_with("\r\n\r\nHello, World!"));
        server.send("TERM");
        assert!(server.process.wait().unwrap().success());
    }
}

#[test]
fn lines_that_standard_error_does_not_take_are_counted_where_they_would_have_stood() {
    let mut server = start_and_flood();
    let number = |line: &str| -> Option<u64> {
        line.split_once(" #").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok())
    };
    let log = BufReader::new(server.process.stderr.take().unwrap()).lines().map(Result::unwrap);
    let (mut last, mut lost, mut ended) = (None, 0, false);
    for line in log {
        if let Some(count) = line.strip_suffix(" lines of the log were lost") {
            let count: u64 = count.parse().unwrap();
            last = last.map(|last| last + count);
            lost += count;
            // There is room again.
            server.send("TERM");
        } else if let Some(number) = number(&line) {
            assert!(last.is_none_or(|last| last + 1 == number), "{last:?}, then {line}");
            last = Some(number);
            ended = line.contains(" halt ");
        }
    }
    assert!(lost > 0 && ended, "{lost} lost, up to {last:?}");
}

#[test]
fn a_server_whose_standard_error_is_closed_goes_on() {
    let mut server = start("http", "closed_stderr");
    drop(server.process.stderr.take());
    server.send("USR1");
    assert!(server.ask(&get("/plaintext")).ends_with("\r\n\r\nHello, World!"));
    server.send("TERM");
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn the_trace_tool_bears_that_nobody_reads_what_it_prints() {
    let broken = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("nobody_reads.trace");
    let golden = support::root().join("tests/golden/hello.trace");
    let text = fs::read_to_string(golden).unwrap();
    fs::write(&broken, text.replace("cause=#0012", "cause=#0013") + "no line\n").unwrap();
    let ends = [(); 2].map(|()| io::pipe().unwrap());
    let [out, err] = ends.map(|(reader, writer)| {
        drop(reader);
        writer
    });
    let mut check = Command::new(build("trace"));
    let mut check = child::spawn(check.arg("check").arg(&broken).stdout(out).stderr(err));
    assert_eq!(check.wait().unwrap().code(), Some(1));
}

/// The HTTP server, started by a shell that runs this command first.
fn http_after(before: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{before} && exec \"$0\" \"$@\"")]).arg(build("http"));
    shell
}

#[test]
fn the_limit_of_open_files_is_raised_as_far_as_it_goes() {
    let server = start_by(&mut http_after("ulimit -Sn 64"), PathBuf::new());
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.process.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert!(words[3] == words[4] && words[3] != "64", "{line}");
    server.end("TERM");
}

#[test]
fn more_connections_than_descriptors_are_left_have_a_line_at_the_start() {
    for (args, seats, wanted) in [
        (&[][..], "20", false),
        (&[], "200", true),
        (&["--workers", "2"], "20", false),
        (&["--workers", "2"], "49", true),
    ] {
        let mut command = http_after("ulimit -n 100");
        let server = command.args(args).args(["--limit-connections", seats]);
        let log = start_by(server, PathBuf::new()).end("TERM");
        let warned = log.lines().filter(|line| {
            line.starts_with("warning: the limit of 100 open files leaves ")
                && line.contains(&format!(" --limit-connections {seats} times --workers "))
        });
        assert_eq!(warned.count(), usize::from(wanted), "{args:?} {seats}: {log}");
    }
}

#[test]
fn a_recorded_server_dumps_its_log_at_a_slow_request_a_signal_and_a_button() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flight");
    drop(fs::remove_dir_all(&folder));
    fs::create_dir(&folder).unwrap();
    let mut command = Command::new(build("http"));
    command.current_dir(&folder).args(["--flight", "64k", "--slow", "5ms", "--kernel-page"]);
    let server = start_by(command.args(PATIENT), PathBuf::new());
    // The second slow request comes within a minute of the first.
    for _ in 0..2 {
        let answer =
            server.ask("GET /sleep?ms=20 HTTP/1.1\r\nConnection: close\r\nHost: a\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    // The button of the page. A page of another site cannot press it, and the second press comes
    // within a minute of the first.
    for (origin, status) in [("evil", 403), ("a", 202), ("a", 202)] {
        let answer = server.ask(&format!(
            "POST /kernel/dump HTTP/1.1\r\nConnection: close\r\nHost: a\r\n\
             Origin: http://{origin}\r\nContent-Length: 0\r\n\r\n"
        ));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    server.process.send("USR1");
    server.ask("GET / HTTP/1.1\r\nConnection: close\r\nHost: a\r\n\r\n");
    server.process.send("TERM");
    assert!(server.process.wait_with_output().status.success());
    let dumps =
        fs::read_dir(&folder).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()));
    let mut causes: Vec<String> = dumps
        .map(|dump| {
            let dump = dump.unwrap();
            let (_, cause) = dump.split_once(" cause=").unwrap();
            trace::check(&trace::trace(&dump).unwrap()).unwrap();
            cause.split(' ').next().unwrap().to_owned()
        })
        .collect();
    causes.sort();
    assert_eq!(causes, ["SIGUSR1", "page", "slow"]);
}
