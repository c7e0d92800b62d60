//! A server over real sockets, and clients of it in a thread.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::rc::Rc;
use std::time::Duration;

use kernel::trace::{Event, Line};
use kernel::{Counters, Kernel, Real};
use net::TcpListener;
use net::http::{Config, serve};
use traps::{run_in_thread, sleep, spawn};

use crate::App;

pub const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Runs a server while `clients` talk to it from a thread, `rounds` times; after each round all
/// connections end by themselves, and `settled` checks the process. Returns the `cap` lines.
pub fn serve_while(
    config: Config,
    rounds: usize,
    clients: fn(SocketAddr),
    mut settled: impl FnMut(),
) -> Vec<String> {
    let caps = Rc::new(RefCell::new(Vec::new()));
    let heard = caps.clone();
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel.observe(move |line: &Line<'_>| {
        if let Event::Cap { text } = &line.event {
            heard.borrow_mut().push(text.to_string());
        }
    });
    kernel
        .run(async {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            let config = Rc::new(config);
            let server = spawn("server", serve(listener, Rc::new(App), config.clone())).await;
            for _ in 0..rounds {
                run_in_thread(move || clients(addr)).await.unwrap();
                while config.connections() > 0 {
                    sleep(Duration::from_millis(1)).await.unwrap();
                }
                settled();
            }
            // Refusals that were only counted are reported.
            config.drain();
            server.cancel_because("enough").await.unwrap();
        })
        .unwrap();
    kernel.shutdown().unwrap();
    let counters = kernel.counters();
    let Counters { tasks, tickets, scopes, timers, deadlines, .. } = counters;
    assert_eq!((tasks, tickets, scopes, timers, deadlines), (0, 0, 0, 0, 0));
    assert_eq!((counters.registered, counters.handles, counters.jobs), (0, 0, 0));
    drop(kernel);
    caps.take()
}

/// A configuration with a limit of connections, and with deadlines that do not pass even if a
/// client, the server or the whole machine has stalled for some seconds.
pub fn patient(connections: usize) -> Config {
    let mut config = Config::default();
    config.limits.connections = connections;
    let hour = Duration::from_secs(3600);
    let deadlines = &mut config.deadlines;
    (deadlines.head, deadlines.idle, deadlines.body_window) = (hour, hour, hour);
    config
}

pub fn connect(addr: SocketAddr) -> StdStream {
    let stream = StdStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Sends a request on a connection that stays open.
pub fn ask(stream: &mut StdStream) -> io::Result<u16> {
    stream.write_all(GET)?;
    let (mut answer, mut buf) = (Vec::new(), [0; 1024]);
    while !answer.ends_with(b"Hello, World!") {
        match stream.read(&mut buf) {
            Ok(0) => break,
            Ok(n) => answer.extend_from_slice(&buf[..n]),
            // As after a stop of the process, where a read has a limit.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let status = answer.get(9..12).and_then(|status| std::str::from_utf8(status).ok());
    status.and_then(|status| status.parse().ok()).ok_or(ErrorKind::UnexpectedEof.into())
}

/// Everything received until the end; an error if the end is a reset.
pub fn read_all(mut stream: StdStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it ends, and is not reset");
    answer
}
