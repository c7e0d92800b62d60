//! The one promise about the real clock that a test can hold: nothing is early.

use std::time::{Duration, Instant};

use kernel::{Kernel, Real};
use traps::{Interrupt, connection_deadline, sleep};

/// The span is counted from before the arm, so that the check is the strictest there is; how late
/// the machine was does not matter.
#[test]
fn d12_on_the_real_clock_no_deadline_is_early() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let main = async {
        let deadline = connection_deadline().await;
        let mut early = Vec::new();
        // Spans that are no multiple of a tick, and arms anywhere in one, also late in a turn.
        for n in 0..150_u32 {
            let span = Duration::from_micros(u64::from(700 + n * 13));
            let busy = Instant::now();
            while n % 3 == 0 && busy.elapsed() < Duration::from_micros(u64::from(n * 31)) {}
            // Read after the arm would be too late; the guard arms at its first poll.
            let armed = Instant::now();
            let end = deadline.guard(span, sleep(Duration::from_secs(60))).await;
            assert!(end.is_err_and(|why: Interrupt| !why.is_cancelled()));
            let passed = armed.elapsed();
            if passed < span {
                early.push((span, passed));
            }
        }
        early
    };
    assert_eq!(kernel.run(main).unwrap(), []);
}
