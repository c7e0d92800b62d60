//! The servers as a user runs them: they say where they listen, answer, leave a sound trace, and
//! end cleanly at a signal.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
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
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.trace"));
    let mut process = Command::new(build(name))
        .args(["--addr", "127.0.0.1:0", "--trace"])
        .arg(&trace)
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
    fn stop(mut self, signal: &str) {
        let command = format!("kill -{signal} {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
        let mut log = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert!(self.process.wait().unwrap().success(), "{log}");
        assert!(log.lines().count() < 10, "{log}");
        let text = fs::read_to_string(&self.trace).unwrap();
        let lines = trace::trace(&text).unwrap();
        if let Err(broken) = trace::check(&lines) {
            panic!("{broken:?}\n{text}");
        }
        assert!(text.lines().last().unwrap().contains("halt     tasks=0 tickets=0 timers=0"));
    }
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

#[test]
fn a_port_in_use_is_a_clear_error() {
    let server = start("http", "in_use");
    let second = Command::new(build("http")).args(["--addr", &server.addr]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&second.stderr);
    assert!(errors.contains(&server.addr) && errors.contains("in use"), "{errors}");
    server.stop("TERM");
}
