//! Tests on the virtual clock, with scripted attempts.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

use testing::{Ran, run, sweep};
use traps::{Time, clock, sleep, timeout_after};

use super::*;

const MS: Duration = Duration::from_millis(1);

/// A peer that accepts or refuses a connection after this many milliseconds.
#[derive(Clone, Copy)]
enum Peer {
    Answers(u32),
    Refuses(u32),
}
use Peer::{Answers, Refuses};

const NEVER: Peer = Answers(1 << 20);

/// Makes an IPv6 address. The port identifies it.
fn six(port: u16) -> SocketAddr {
    (std::net::Ipv6Addr::LOCALHOST, port).into()
}

fn four(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// The port and the start, in milliseconds, of each attempt.
type Begun = Rc<RefCell<Vec<(u16, u64)>>>;

fn since_start(now: Time) -> u64 {
    now.since(Time::ZERO).as_millis().try_into().unwrap()
}

/// Connects to the addresses. `peers[port]` is the peer at a port. Returns the port that accepted,
/// and records the start of each attempt.
async fn connect(addresses: Vec<SocketAddr>, peers: &[Peer], begun: Begun) -> io::Result<u16> {
    let alive = Rc::new(());
    let try_one = async |at: SocketAddr| {
        let _alive = alive.clone();
        let now = since_start(clock().await);
        begun.borrow_mut().push((at.port(), now));
        match peers[usize::from(at.port())] {
            Answers(after) => sleep(after * MS).await.map(|_| at.port()).map_err(io::Error::from),
            Refuses(after) => {
                sleep(after * MS).await?;
                Err(io::Error::new(ErrorKind::ConnectionRefused, format!("{} refuses", at.port())))
            }
        }
    };
    let won = first(addresses, Location::caller(), try_one).await;
    assert_eq!(Rc::strong_count(&alive), 1, "all other attempts have ended");
    won
}

fn ran(
    addresses: Vec<SocketAddr>,
    peers: &'static [Peer],
) -> (Ran<io::Result<u16>>, Vec<(u16, u64)>) {
    let begun = Begun::default();
    let ran = run(connect(addresses, peers, begun.clone()));
    (ran, begun.take())
}

#[test]
fn the_versions_take_turns_and_each_try_begins_250_ms_after_the_last() {
    let addresses = vec![six(3), six(4), four(0), six(5), four(1), four(2)];
    let (ran, begun) = ran(addresses, &[NEVER, NEVER, NEVER, NEVER, NEVER, Answers(100)]);
    assert_eq!(begun, [(3, 0), (0, 250), (4, 500), (1, 750), (5, 1000)]);
    assert_eq!(ran.output.unwrap(), 5);
    assert_eq!(ran.took, 1100 * MS);
}

#[test]
fn the_version_of_the_first_address_is_the_first_to_be_tried() {
    let order = |addresses: Vec<SocketAddr>| {
        interleaved(addresses).iter().map(SocketAddr::port).collect::<Vec<_>>()
    };
    assert_eq!(order(vec![four(0), six(1), four(2), six(3)]), [0, 1, 2, 3]);
    assert_eq!(order(vec![six(0), four(1), six(2), four(3)]), [0, 1, 2, 3]);
    assert_eq!(order(vec![four(0), four(1), four(2), six(3)]), [0, 3, 1, 2]);
    assert_eq!(order(vec![six(0), six(1), four(2), six(3)]), [0, 2, 1, 3]);
    assert_eq!(order(vec![four(0), four(1)]), [0, 1]);
    assert!(order(vec![]).is_empty());
}

#[test]
fn a_try_that_fails_lets_the_next_begin_at_once() {
    let (ran, begun) = ran(vec![six(0), four(1), six(2)], &[Refuses(0), Refuses(10), Answers(1)]);
    assert_eq!(begun, [(0, 0), (1, 0), (2, 10)]);
    assert_eq!(ran.output.unwrap(), 2);
}

#[test]
fn a_slow_try_goes_on_and_may_still_win() {
    let (ran, begun) = ran(vec![six(0), four(1), six(2)], &[Answers(300), NEVER, NEVER]);
    assert_eq!(begun, [(0, 0), (1, 250)]);
    assert_eq!(ran.output.unwrap(), 0);
    assert_eq!(ran.took, 300 * MS);
}

#[test]
fn of_errors_the_last_is_given_once_all_have_failed() {
    let (ran, begun) =
        ran(vec![six(0), four(1), six(2)], &[Refuses(900), Refuses(10), Refuses(20)]);
    assert_eq!(begun, [(0, 0), (1, 250), (2, 260)]);
    assert_eq!(ran.output.unwrap_err().to_string(), "0 refuses");
    assert_eq!(ran.took, 900 * MS);
}

#[test]
fn one_address_takes_no_pause_and_no_branch() {
    let (ran, _) = ran(vec![six(0)], &[Answers(400)]);
    assert_eq!(ran.output.unwrap(), 0);
    assert_eq!(ran.trace.matches(" sleep 0.4s ").count(), 1, "{}", ran.trace);
    assert_eq!(ran.trace.matches(" block ").count(), 2, "its own, and that of the kernel's task");
}

#[test]
fn a_timeout_ends_all_tries() {
    let begun = Begun::default();
    let all = connect(vec![six(0), four(1), six(2)], &[NEVER, NEVER, NEVER], begun.clone());
    let ran = run(async { timeout_after(600 * MS, all).await });
    assert!(ran.output.unwrap_err().interrupt().is_some());
    assert_eq!(ran.took, 600 * MS);
    assert_eq!(begun.take(), [(0, 0), (1, 250), (2, 500)]);
}

#[test]
fn an_interrupt_anywhere_ends_all_tries_and_is_what_is_given() {
    let swept = sweep(|| {
        let addresses = vec![six(0), four(1), six(2)];
        let peers = [Refuses(300), Answers(900), Answers(700)];
        (Default::default(), async move { connect(addresses, &peers, Begun::default()).await })
    });
    let swept = swept.check(|_, ran| {
        let error = ran.output.as_ref().unwrap_err();
        assert!(error.interrupt().is_some(), "{error}");
    });
    assert_eq!(swept.plain.output.unwrap(), 2);
}
