//! A limit of descriptors that is hit while accepting. A process of its own: the limit is shared.

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

fn set_limit(limit: u64) -> u64 {
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a pointer to a live rlimit of ours, for the length of the call.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut old), 0);
        let new = libc::rlimit { rlim_cur: limit, rlim_max: old.rlim_max };
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &new), 0);
    }
    old.rlim_cur
}

/// The lowest free descriptor number: one above the limit that leaves no room at all.
fn lowest_free() -> u64 {
    use std::os::fd::AsRawFd;
    std::fs::File::open("/dev/null").unwrap().as_raw_fd().try_into().unwrap()
}

#[test]
fn a_listener_without_descriptors_backs_off_says_so_and_goes_on() {
    let warnings = Rc::new(RefCell::new(Vec::new()));
    let heard = warnings.clone();
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel.observe(move |line: &Line<'_>| {
        if let Event::Warn { text } = &line.event {
            heard.borrow_mut().push(text.to_string());
        }
    });
    let turns = kernel
        .run(async {
            let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            let mut clients: Vec<StdStream> =
                (0..CLIENTS).map(|_| StdStream::connect(addr).unwrap()).collect();
            let old = set_limit(lowest_free() + 2);
            let mut served = 0;
            let mut held = Vec::new();
            while served < CLIENTS {
                // Two fit; the third accept backs off until one of them is closed.
                let accepted = ignore_after(Duration::from_millis(50), listener.accept());
                match accepted.await.unwrap() {
                    Some((mut stream, _)) => {
                        stream.write_all(b"!").await.unwrap();
                        served += 1;
                        held.push(stream);
                    }
                    None => held.clear(),
                }
            }
            set_limit(old);
            for client in &mut clients {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
            }
        })
        .map(|()| kernel.counters().turns)
        .unwrap();
    let warnings = warnings.borrow();
    assert!(warnings[0].contains("Too many open files"), "{warnings:?}");
    assert!(turns < 2_000, "it does not spin: {turns} turns");
}
