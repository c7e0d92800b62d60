//! Signals of the process on the operating system: a test binary of its own, for they reach all
//! of a process.

use support::kernels::*;
use traps::{Signal, spawn, timeout_after, wait_signal, yield_now};

/// Sends SIGUSR1 to this process.
fn raise() {
    testing::child::send("USR1", std::process::id());
}

/// One test: two would share the process and its signals.
#[test]
fn a_signal_ends_the_wait_for_it_and_one_between_two_waits_is_kept() {
    let (ends, trace) = on_real(async {
        let mut waiter = spawn("waiter", wait_signal(&[Signal::User1, Signal::Hangup])).await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        raise();
        let first = waiter.join().await.unwrap().unwrap();
        raise(); // nobody waits now, and the process lives
        let second = wait_signal(&[Signal::User1]).await.unwrap();
        // A wait that ends early takes nothing.
        let third = timeout_after(tenths(0), wait_signal(&[Signal::User1])).await;
        assert!(third.is_err());
        raise();
        (first, second, wait_signal(&[Signal::User1]).await.unwrap())
    });
    assert_eq!(ends, (Signal::User1, Signal::User1, Signal::User1));
    assert_lines(&trace, "arrive   SIGUSR1", 3);
}
