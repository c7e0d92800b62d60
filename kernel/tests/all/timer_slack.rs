//! The timer slack: no timer is early, each is late by at most the slack, and timers share turns.

use std::time::Duration;

use kernel::{Kernel, Options, Real, Sim};
use traps::io::{Direction, Io, Scripted};
use traps::{Interrupt, Time, clock, sleep, spawn, timeout_after};

const MS: Duration = Duration::from_millis(1);

const SLEEPS: u32 = 10_000;
/// The time over which the deadlines of the sleeps are spread.
const SPREAD: Duration = Duration::from_millis(400);

fn with_slack(millis: u32) -> Options {
    Options::new().timer_slack(MS * millis)
}

/// Sleeps in 10,000 tasks, each to a point of its own. Returns how late each woke, and how
/// often the kernel waited for the machine.
fn sleep_spread(options: Options) -> (Vec<Duration>, u64) {
    let mut kernel = Kernel::with_options(Sim::new(), options);
    let main = async {
        let mut tasks = Vec::new();
        for n in 0..SLEEPS {
            let span = SPREAD * (n + 1) / SLEEPS;
            let late = async move {
                // All tasks begin at time zero.
                let (due, woke) = (Time::ZERO + span, sleep(span).await.unwrap());
                assert!(due <= woke, "no sleep is early");
                woke.since(due)
            };
            tasks.push(spawn("sleeps", late).await);
        }
        let mut late = Vec::new();
        for task in &mut tasks {
            late.push(task.join().await.unwrap());
        }
        late
    };
    let late = kernel.run(main).unwrap();
    (late, kernel.counters().polls)
}

#[test]
fn without_a_slack_each_sleep_ends_when_it_is_due_in_a_wait_of_its_own() {
    let (late, polls) = sleep_spread(Options::new());
    assert!(late.iter().all(Duration::is_zero));
    assert!((10_000..10_100).contains(&polls), "{polls}");
}

#[test]
fn with_a_slack_sleeps_are_late_by_at_most_that_and_share_waits() {
    let (late, polls) = sleep_spread(with_slack(1));
    assert!(late.iter().all(|late| *late <= MS));
    assert!(late.contains(&MS), "the first of those that share a wait is as late as can be");
    // The sleeps end 40 us apart, so 26 of them share a wait of 1 ms.
    assert!((385..485).contains(&polls), "{polls}");
}

#[test]
fn a_timeout_is_late_by_the_slack_too() {
    let mut kernel = Kernel::with_options(Sim::new(), with_slack(3));
    let main = async {
        let ended = timeout_after(20 * MS, sleep(3600 * 1000 * MS)).await;
        (ended.is_err_and(|why: Interrupt| !why.is_cancelled()), clock().await)
    };
    assert_eq!(kernel.run(main).unwrap(), (true, Time::ZERO + 23 * MS));
}

#[test]
fn a_turn_that_comes_for_another_reason_fires_the_timers_that_are_due() {
    let at = Time::ZERO + 12 * MS;
    let machine = Sim::new().ready_at(at, 1, Direction::Read);
    let mut kernel = Kernel::with_options(machine, with_slack(50));
    let main = async {
        let reads = async {
            Io::new(Scripted(1)).readable().await.unwrap();
            clock().await
        };
        let mut reads = spawn("reads", reads).await;
        (sleep(10 * MS).await.unwrap(), reads.join().await.unwrap())
    };
    assert_eq!(kernel.run(main).unwrap(), (at, at));
}

#[test]
fn on_the_real_clock_no_sleep_is_early_with_a_slack() {
    let mut kernel = Kernel::with_options(Real::new().unwrap(), with_slack(2));
    let main = async {
        for n in 0..20_u32 {
            let (before, span) = (clock().await, MS * n / 8);
            assert!(before + span <= sleep(span).await.unwrap());
        }
    };
    kernel.run(main).unwrap();
}
