//! Ticks in a fixed period, and the three rules for late ticks; tasks that are awaited; `join3`.

use std::cell::RefCell;
use std::future::Future;
use std::time::Duration;

use kernel::{Kernel, Sim};
use support::kernels::Shared;
use traps::{
    Error, MissedTick, Time, clock, ignore_after, interval, join3, sleep, spawn, timeout_after,
};

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// Returns the ticks of a period of 10 s, as (due, taken). The task is busy from 10 s to 37 s.
fn ticks(rule: MissedTick) -> Vec<(Time, Time)> {
    let program = async {
        let mut ticks = interval(10 * SECOND).missed(rule);
        let mut taken = Vec::new();
        for nth in 0..6 {
            let due = ticks.tick().await.unwrap();
            taken.push((due, clock().await));
            if nth == 0 {
                sleep(37 * SECOND).await.unwrap();
            }
        }
        taken
    };
    testing::Setup::new().sim(Sim::new()).run(program).output
}

#[test]
fn a_late_task_gets_the_ticks_of_its_rule() {
    let of = |pairs: [(u64, u64); 6]| pairs.map(|(due, taken)| (at(due), at(taken))).to_vec();
    let burst = [(0, 0), (10, 37), (20, 37), (30, 37), (40, 40), (50, 50)];
    assert_eq!(ticks(MissedTick::Burst), of(burst));
    let delay = [(0, 0), (10, 37), (47, 47), (57, 57), (67, 67), (77, 77)];
    assert_eq!(ticks(MissedTick::Delay), of(delay));
    let skip = [(0, 0), (10, 37), (40, 40), (50, 50), (60, 60), (70, 70)];
    assert_eq!(ticks(MissedTick::Skip), of(skip));
}

#[test]
fn a_tick_that_was_not_waited_for_to_the_end_is_still_to_come() {
    let ran = testing::run(async {
        let mut ticks = interval(10 * SECOND);
        ticks.tick().await.unwrap();
        assert!(ignore_after(3 * SECOND, ticks.tick()).await.unwrap().is_none());
        drop(ticks.tick());
        ticks.tick().await.unwrap()
    });
    assert_eq!((ran.output, ran.took), (at(10), 10 * SECOND));
}

#[test]
#[should_panic(expected = "rule: the period of an interval is not zero")]
fn an_interval_has_a_period() {
    let _ = interval(Duration::ZERO);
}

#[test]
fn a_handle_is_awaited_by_value_or_again_by_reference() {
    let ran = testing::run(async {
        let slow = async {
            sleep(5 * SECOND).await.unwrap();
            7
        };
        assert_eq!(spawn("by value", slow).await.await, Ok(7));
        let mut task = spawn("by reference", slow_again()).await;
        let waited = timeout_after(SECOND, async { (&mut task).await }).await;
        assert!(matches!(waited, Err(Error::Interrupt(_))), "{waited:?}");
        assert_eq!((&mut task).await, Ok(8));
        assert_eq!(task.await, Err(Error::Taken));
    });
    assert!(!ran.trace.contains(" warn "), "{}", ran.trace);
    // The log has the line of the await.
    let block = ran.trace.lines().find(|line| line.contains("block    join 3")).unwrap();
    assert!(block.contains("at=traps/tests/all/interval.rs:"), "{block}");
}

async fn slow_again() -> u32 {
    sleep(5 * SECOND).await.unwrap();
    8
}

#[test]
fn a_task_is_cancelled_without_a_reason() {
    let ran = testing::run(async {
        let mut task = spawn("child", sleep(5 * SECOND)).await;
        task.cancel().await.unwrap();
        task.join().await.unwrap().unwrap_err().reason()
    });
    assert_eq!(ran.output, "");
    assert!(!ran.trace.contains("reason="), "{}", ran.trace);
}

#[test]
fn three_futures_are_joined_in_the_time_of_the_slowest() {
    let ran = testing::run(async {
        let (a, b, c) = join3(sleep(3 * SECOND), async { 2 }, sleep(SECOND)).await;
        (a.unwrap(), b, c.unwrap())
    });
    assert_eq!((ran.output, ran.took), ((at(3), 2, at(1)), 3 * SECOND));
}

/// Runs `first` on a kernel whose clock is at ten seconds, and then `second` on a new kernel.
/// Returns the time that `second` took.
fn in_two_kernels(first: impl Future<Output = ()>, second: impl Future<Output = ()>) -> Time {
    let mut kernel = Kernel::new(Sim::new());
    let late = async {
        sleep(10 * SECOND).await.unwrap();
        first.await;
    };
    kernel.run(late).unwrap();
    drop(kernel);
    let taken = async {
        second.await;
        clock().await
    };
    Kernel::new(Sim::new()).run(taken).unwrap()
}

#[test]
fn a_primitive_that_outlives_its_kernel_begins_again_in_the_next() {
    let kept = RefCell::new(None);
    let first = async {
        let mut ticks = interval(SECOND);
        assert_eq!(ticks.tick().await, Ok(at(10)));
        kept.replace(Some(ticks));
    };
    let second = async {
        let mut ticks = kept.take().unwrap();
        assert_eq!(ticks.tick().await, Ok(at(0)));
        assert_eq!(ticks.tick().await, Ok(at(1)));
    };
    assert_eq!(in_two_kernels(first, second), at(1));

    let begun = Shared::new(sleep(3 * SECOND));
    let first = async { assert!(begun.poll_once().await.is_pending()) };
    let second = async { assert_eq!(begun.wait().await, Ok(at(3))) };
    assert_eq!(in_two_kernels(first, second), at(3));

    let begun = Shared::new(timeout_after(3 * SECOND, sleep(99 * SECOND)));
    let first = async { assert!(begun.poll_once().await.is_pending()) };
    let second = async { assert!(begun.wait().await.is_err()) };
    assert_eq!(in_two_kernels(first, second), at(3));
}
