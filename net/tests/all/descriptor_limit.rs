//! Accepting without a free descriptor, in a process that was started with a low limit.

use std::cell::RefCell;
use std::io::Read;
use std::net::TcpStream as StdStream;
use std::rc::Rc;
use std::time::Duration;

use kernel::trace::{Event, Line};
use kernel::{Kernel, Real};
use net::TcpListener;
use traps::ignore_after;

const CLIENTS: usize = 20;
const LIMIT: u32 = 16;

/// The process with few descriptors: serves all clients, although they do not fit at once.
fn serve() {
    let warnings = Rc::new(RefCell::new(Vec::new()));
    let heard = warnings.clone();
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel.observe(move |line: &Line<'_>| {
        if let Event::Warn { text } = &line.event {
            heard.borrow_mut().push(text.to_string());
        }
    });
    kernel
        .run(async {
            let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
            println!("\nlistening on {}", listener.local_addr().unwrap());
            let (mut served, mut held) = (0, Vec::new());
            while served < CLIENTS {
                match ignore_after(Duration::from_millis(50), listener.accept()).await.unwrap() {
                    Some((mut stream, _)) => {
                        stream.write_all(b"!").await.unwrap();
                        served += 1;
                        held.push(stream);
                    }
                    // No descriptor is left, or no client has connected yet, so make room.
                    None => held.clear(),
                }
            }
        })
        .unwrap();
    let warnings = warnings.borrow();
    // One line when an episode begins and one when it ends, however often it tries in between.
    for (place, text) in warnings.iter().enumerate() {
        let wanted = if place % 2 == 0 { "Too many open files" } else { "goes on" };
        assert!(text.contains(wanted), "{warnings:?}");
    }
    assert!(!warnings.is_empty() && warnings.len() < CLIENTS, "{warnings:?}");
    let turns = kernel.counters().turns;
    assert!(turns < 2_000, "it does not spin: {turns} turns");
}

#[test]
fn curio_d10_a_listener_without_descriptors_backs_off_says_so_and_goes_on() {
    if support::limited::is_server() {
        return serve();
    }
    let (mut server, lines, addr) = support::limited::start(LIMIT);
    let clients: Vec<StdStream> =
        (0..CLIENTS).map(|_| StdStream::connect(&addr).unwrap()).collect();
    for mut client in clients {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"!");
    }
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(server.wait().unwrap().success(), "{rest:#?}");
}
