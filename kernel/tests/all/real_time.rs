//! The only promise about the real clock that a test can check: nothing is early.

use std::time::{Duration, Instant};

use kernel::{Kernel, Options, Real};
use traps::{Interrupt, WaitQueue, clock, connection_deadline, sleep, timeout_after, yield_now};

const ARMS: u32 = 60;
const TICK: Duration = Duration::from_millis(10);

fn busy(span: Duration) {
    let began = Instant::now();
    while began.elapsed() < span {}
}

/// No deadline fires before its point, which is a whole span after the arm.
#[test]
fn d12_on_the_real_clock_no_deadline_is_early() {
    let mut kernel = Kernel::with_options(Real::new().unwrap(), Options::new().tick(TICK));
    let main = async {
        let deadline = connection_deadline().await;
        let mut early = Vec::new();
        // Spans that are no multiple of a tick, and arms anywhere in one, also late in a turn.
        for n in 0..ARMS {
            let span = Duration::from_micros(u64::from(700 + n * 13));
            if n % 3 == 0 {
                busy(Duration::from_micros(u64::from(n * 93)));
            }
            let before = clock().await;
            // The guard arms at its first poll.
            let end = deadline.guard(span, sleep(Duration::from_secs(60))).await;
            assert!(end.is_err_and(|why: Interrupt| !why.is_cancelled()));
            let fired = clock().await;
            if fired < deadline.until() || deadline.until() < before + span {
                early.push((span, before, deadline.until(), fired));
            }
        }
        early
    };
    assert_eq!(kernel.run(main).unwrap(), []);
}

#[test]
fn d12_on_the_real_clock_no_arm_is_early_whatever_its_run_did_before_and_after() {
    let mut kernel = Kernel::with_options(Real::new().unwrap(), Options::new().tick(TICK));
    let main = async {
        let queue = WaitQueue::new();
        let mut early = Vec::new();
        for n in 0..12 {
            let deadline = connection_deadline().await;
            yield_now().await.unwrap();
            let (span, long) = (TICK + Duration::from_micros(n * 131), TICK * (n % 3) as u32);
            busy(long);
            let armed = Instant::now();
            deadline.arm(span);
            busy(long / 2);
            let end = queue.wait().await;
            let waited = armed.elapsed();
            assert!(end.is_err_and(|why| !why.is_cancelled()));
            if waited < span || clock().await < deadline.until() {
                early.push((span, long, waited));
            }
        }
        early
    };
    assert_eq!(kernel.run(main).unwrap(), []);
}

#[test]
fn d2_an_arm_outside_of_a_run_counts_from_there() {
    let span = Duration::from_secs(9);
    let mut kernel = Kernel::new(Real::new().unwrap());
    let deadline = kernel.run(async { connection_deadline().await }).unwrap();
    // A deadline that is not set, and one that is.
    for _ in 0..2 {
        deadline.arm(span);
        let latest = deadline.now() + span;
        busy(Duration::from_millis(30));
        kernel.run(async {}).unwrap();
        assert!(deadline.until() <= latest);
    }
}

/// By the kernel's clock, and also by the system's.
#[test]
fn c5_on_the_real_clock_no_sleep_and_no_timeout_is_short() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let main = async {
        let nanos = [1, 999, 1_000, 1_001, 999_999, 1_000_001, 2_345_678, 100_000_000];
        let mut short = Vec::new();
        for span in nanos.map(Duration::from_nanos) {
            for sleeps in [true, false] {
                let (began, before) = (Instant::now(), clock().await);
                let ended = match sleeps {
                    true => sleep(span).await.unwrap(),
                    false => {
                        let cut = timeout_after(span, sleep(Duration::from_secs(60))).await;
                        cut.unwrap_err().reading()
                    }
                };
                if ended < before + span || began.elapsed() < span {
                    short.push((span, sleeps, ended.since(before)));
                }
            }
        }
        short
    };
    assert_eq!(kernel.run(main).unwrap(), []);
}
