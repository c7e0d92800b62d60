//! The servers as a user runs them: they say where they listen, answer, leave a sound trace, and
//! end cleanly at a signal.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kernel::trace;

/// A server that runs, and where.
struct Server {
    process: Child,
    addr: String,
    trace: PathBuf,
}

/// Builds an example with the profile of this test and gives its path.
fn build(name: &str) -> PathBuf {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    // What the test itself was built from is there already: the network is not needed.
    let mut build = Command::new(cargo);
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    build.args(["build", "--quiet", "--offline", "--example", name]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success());
    let deps = std::env::current_exe().unwrap();
    deps.parent().unwrap().parent().unwrap().join("examples").join(name)
}

fn start(name: &str, test: &str) -> Server {
    start_with(name, test, &[])
}

fn start_with(name: &str, test: &str, args: &[&str]) -> Server {
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.trace"));
    let mut process = Command::new(build(name))
        .args(["--addr", "127.0.0.1:0", "--trace"])
        .arg(&trace)
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim_end().strip_prefix("listening on ").expect("it says where it listens");
    Server { process, addr: addr.to_owned(), trace }
}

impl Server {
    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.addr).unwrap()
    }

    /// Sends a request on a connection of its own; gives the whole answer.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends the signal; the server ends with code 0, says so in few lines, and its trace is sound.
    fn stop(self, signal: &str) {
        let trace = self.trace.clone();
        let log = self.end(signal);
        assert!(log.lines().count() < 10, "{log}");
        assert_sound(&trace);
    }

    /// Sends the signal; the server ends with code 0. Gives what it logged.
    fn end(mut self, signal: &str) -> String {
        let command = format!("kill -{signal} {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
        let mut log = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert!(self.process.wait().unwrap().success(), "{log}");
        log
    }
}

/// Gives the text of a trace that ends as it should.
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
    // One that leaves in the middle of a request, and one that says nothing.
    server.connect().write_all(b"GET / HT").unwrap();
    let _silent = server.connect();
    server.stop("INT");
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
        // By the hash of their ports; that one worker gets all has a chance of 1 in 2^63.
        let mut all: Vec<TcpStream> = (0..64).map(|_| server.connect()).collect();
        for stream in &mut all {
            stream.write_all(get("/plaintext").as_bytes()).unwrap();
            let mut start = [0; 4];
            stream.read_exact(&mut start).unwrap();
        }
        server.end(signal);
        let texts = [1, 2].map(|number| assert_sound(&of_worker(&trace, number)));
        let served = texts.map(|text| text.matches(" conn     exit ").count());
        assert!(served.iter().all(|connections| *connections > 0), "{name}: {served:?}");
        assert_eq!(served[0] + served[1], 64, "{name}");
    }
}

#[test]
fn f15_the_backlog_is_an_option_and_what_came_of_it_is_logged() {
    let most = fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let most: u32 = most.trim().parse().unwrap();
    for asked in [7, most.saturating_add(1).min(1 << 30)] {
        let test = format!("backlog_{asked}");
        let log = start_with("echo", &test, &["--backlog", &asked.to_string()]).end("TERM");
        let wanted = format!(" backlog={} asked={asked}", asked.min(most));
        assert_eq!(log.matches(&wanted).count(), 1, "{log}");
    }
}

#[test]
fn f23_a_worker_that_cannot_begin_ends_all_with_a_clear_error() {
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("f23.trace");
    fs::create_dir_all(of_worker(&trace, 2)).unwrap();
    let args = ["--addr", "127.0.0.1:0", "--workers", "3", "--trace"];
    let ended = Command::new(build("echo")).args(args).arg(&trace).output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(ended.stdout, b"", "it does not say that it listens");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(errors.contains("error: worker 2: cannot write the trace to "), "{errors}");
}

#[test]
fn f23_a_number_of_workers_that_makes_no_sense_is_a_clear_error() {
    for (args, wanted) in [
        (&["--workers", "0"][..], "--workers: expected a number from 1 to 64, not `0`"),
        (&["--workers", "65"], "not `65`"),
        (&["--workers", "two"], "not `two`"),
        (&["--workers"], "expected a value after --workers"),
        (&["--workers", "2", "--trace", "-"], "--trace -: each worker has a trace of its own"),
        (&["--backlog", "0"], "--backlog: expected a number from 1 to 2147483647, not `0`"),
    ] {
        let ended = Command::new(build("http")).args(args).output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {errors}");
        assert!(errors.contains(wanted), "{args:?}: {errors}");
    }
}

#[test]
fn a_port_in_use_is_a_clear_error() {
    let server = start("http", "in_use");
    let second = Command::new(build("http")).args(["--addr", &server.addr]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&second.stderr);
    assert!(errors.contains(&server.addr) && errors.contains("in use"), "{errors}");
    server.stop("TERM");
}
