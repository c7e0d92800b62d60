//! An HTTP server with 64 descriptors, in a process that was started with that limit: idle
//! connections are closed, working clients are served, and the listener continues.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::TcpStream as StdStream;
use std::rc::Rc;
use std::time::Duration;

use kernel::trace::{Event, Line};
use kernel::{Kernel, Options, Real};
use net::http::{Config, Handler, Request, Response, serve};
use net::{Stream, TcpListener};
use traps::Signal;

const LIMIT: u32 = 64;
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

struct App;

impl Handler for App {
    async fn handle<S: Stream>(&self, _: &mut Request<'_, S>) -> io::Result<Response> {
        Ok(Response::text("well"))
    }
}

/// The process with few descriptors.
fn be_the_server(config: Config) {
    let warnings = Rc::new(RefCell::new(Vec::new()));
    let heard = warnings.clone();
    let options = Options::new().shutdown_on(&[Signal::Terminate]);
    let mut kernel = Kernel::with_options(Real::new().unwrap(), options);
    kernel.observe(move |line: &Line<'_>| {
        if let Event::Warn { text } = &line.event {
            heard.borrow_mut().push(text.to_string());
        }
    });
    let served = kernel.run(async {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        println!("\nlistening on {}", listener.local_addr().unwrap());
        serve(listener, Rc::new(App), Rc::new(config)).await
    });
    served.unwrap().unwrap();
    kernel.shutdown().unwrap();
    let warnings: Vec<String> = warnings.take();
    let begun = warnings.iter().filter(|text| text.contains("Too many open files")).count();
    let ended = warnings.iter().filter(|text| text.contains("goes on")).count();
    assert!(begun > 0 && ended <= begun && begun <= ended + 1, "{warnings:?}");
    let counters = kernel.counters();
    assert!(counters.turns < 20_000, "it does not spin: {} turns", counters.turns);
    let left = (counters.tasks, counters.tickets, counters.registered, counters.handles);
    assert_eq!(left, (0, 0, 0, 0));
}

fn connect(addr: &str) -> StdStream {
    let stream = StdStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn answer(stream: &mut StdStream) -> String {
    let (mut answer, mut buf) = (String::new(), [0; 1024]);
    while !answer.ends_with("\r\n\r\nwell") {
        match stream.read(&mut buf) {
            Ok(0) => break,
            Ok(n) => answer.push_str(std::str::from_utf8(&buf[..n]).unwrap()),
            // As after a stop of the process, where a read has a limit.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => panic!("no answer comes in time: {error}"),
        }
    }
    answer
}

#[test]
fn honest_clients_are_served_by_a_server_that_has_run_out_of_descriptors() {
    if support::limited::is_server() {
        return be_the_server(Config::default());
    }
    let (mut server, lines, addr) = support::limited::start(LIMIT);
    // Far more clients than fit are silent, or have asked once and keep their connection.
    let mut held: Vec<StdStream> = Vec::new();
    for n in 0..200 {
        let mut stream = connect(&addr);
        if n % 2 == 0 {
            stream.write_all(GET).unwrap();
        }
        held.push(stream);
    }
    for _ in 0..20 {
        let mut honest = connect(&addr);
        honest.write_all(GET).unwrap();
        assert!(answer(&mut honest).starts_with("HTTP/1.1 200 OK\r\n"));
    }
    // Half of the others get their responses too.
    for stream in held.iter_mut().step_by(2) {
        assert!(answer(stream).starts_with("HTTP/1.1 200 OK\r\n"));
    }
    drop(held);
    server.send("TERM");
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(server.wait().unwrap().success(), "{rest:#?}");
}

#[test]
fn as_many_idle_connections_close_as_are_needed_and_the_longest_idle_first() {
    if support::limited::is_server() {
        let mut config = Config::default();
        config.deadlines.idle = Duration::from_secs(600);
        return be_the_server(config);
    }
    let (mut server, lines, addr) = support::limited::start(LIMIT);
    let is_closed = |mut stream: &StdStream| {
        stream.set_nonblocking(true).unwrap();
        let read = stream.read(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        matches!(read, Ok(0))
    };
    let (mut idle, mut came_since) = (Vec::new(), 0);
    while came_since < 6 {
        let mut stream = connect(&addr);
        stream.write_all(GET).unwrap();
        assert!(answer(&mut stream).starts_with("HTTP/1.1 200 OK\r\n"));
        idle.push(stream);
        let closed = idle.iter().filter(|stream| is_closed(stream)).count();
        assert_eq!(idle.iter().take_while(|stream| is_closed(stream)).count(), closed);
        came_since += usize::from(closed > 0);
        assert_eq!(closed, came_since, "one for each that comes");
        assert!(idle.len() < 100, "nobody closes");
    }
    drop(idle);
    server.send("TERM");
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(server.wait().unwrap().success(), "{rest:#?}");
}
