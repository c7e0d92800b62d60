//! Counts of allocations: each call of the allocator by the thread of a test.
//!
//! The tables of a kernel grow with the number of living records, and are then reused. So each
//! operation runs a few times before the counting begins.

use std::future::ready;
use std::time::Duration;

use kernel::{Kernel, Sim};
use traps::{
    ConnectionDeadline, Interrupt, clock, connection_deadline, ignore_after, sleep, spawn,
    timeout_after, yield_now,
};

const SECOND: Duration = Duration::from_secs(1);

/// Returns how many more times `run` calls the allocator for `times` rounds than for a warm-up
/// alone, on a kernel without an observer.
fn beyond_warm_up(times: u64, mut run: impl FnMut(&mut Kernel<Sim>, u64)) -> u64 {
    let mut count = |times| {
        let run = || run(&mut Kernel::new(Sim::new()), times);
        allocation_counter::measure(run).count_total
    };
    // The first round makes everything that a thread makes once.
    let [_, warm_up] = [10, 10].map(&mut count);
    count(10 + times) - warm_up
}

fn calls<P: AsyncFnMut()>(times: u64, mut round: P) -> u64 {
    beyond_warm_up(times, |kernel, times| {
        let main = async {
            for _ in 0..times {
                round().await;
            }
        };
        kernel.run(main).unwrap();
    })
}

/// Returns the number of allocations of `times` rounds on one connection deadline.
fn guarded<P: AsyncFnMut(&ConnectionDeadline)>(times: u64, mut round: P) -> u64 {
    beyond_warm_up(times, |kernel, times| {
        let main = async {
            let deadline = connection_deadline().await;
            for _ in 0..times {
                round(&deadline).await;
            }
        };
        kernel.run(main).unwrap();
    })
}

#[test]
fn the_allocator_is_counted() {
    assert_eq!(calls(100, async || drop(std::hint::black_box(Box::new(7)))), 100);
    let grow = async || {
        let mut list = vec![1_u8];
        list.reserve_exact(std::hint::black_box(1_000));
    };
    assert_eq!(calls(100, grow), 200);
}

#[test]
fn d19_a_million_re_arms_allocate_nothing() {
    let mut n = 0;
    let counted = guarded(1_000_000, async |deadline| {
        // Farther and nearer, and disarmed from time to time.
        n += 1;
        deadline.arm(SECOND * (1 + n % 30));
        if n % 100 == 0 {
            deadline.disarm();
        }
    });
    assert_eq!(counted, 0);
}

#[test]
fn d5_guards_around_a_ready_future_allocate_nothing() {
    let counted = guarded(10_000, async |deadline| {
        deadline.guard(10 * SECOND, ready(Ok::<(), Interrupt>(()))).await.unwrap();
    });
    assert_eq!(counted, 0);
}

#[test]
fn a_timeout_around_a_ready_future_allocates_nothing() {
    let round = async || timeout_after(10 * SECOND, ready(Ok::<(), Interrupt>(()))).await.unwrap();
    assert_eq!(calls(10_000, round), 0);
}

#[test]
fn clock_traps_and_yields_allocate_nothing() {
    let reading = async || {
        clock().await;
    };
    assert_eq!(calls(10_000, reading), 0);
    assert_eq!(calls(10_000, async || yield_now().await.unwrap()), 0);
}

#[test]
fn sleeps_allocate_nothing() {
    // Near and far.
    for span in [Duration::from_millis(1), 10 * SECOND] {
        let round = async || {
            sleep(span).await.unwrap();
        };
        assert_eq!(calls(10_000, round), 0, "{span:?}");
    }
}

#[test]
fn a_task_is_one_allocation_and_a_handle_is_one_more() {
    let joined = async || spawn("child", ready(7)).await.join().await.map(drop).unwrap();
    assert_eq!(calls(100, joined), 200);
    let detached = async || {
        spawn("child", ready(7)).detached().await;
        yield_now().await.unwrap();
    };
    assert_eq!(calls(100, detached), 100);
    // A name in a new `String` is one more allocation.
    let name = || String::from("child");
    let own = async || {
        spawn(name(), ready(7)).detached().await;
        yield_now().await.unwrap();
    };
    assert_eq!(calls(100, own), 200);
}

#[test]
fn a_wait_in_time_allocates_nothing() {
    let wait = || sleep(Duration::from_millis(1));
    let round = async || {
        timeout_after(10 * SECOND, wait()).await.unwrap();
    };
    assert_eq!(calls(10_000, round), 0);
    let round = async || {
        timeout_after(10 * SECOND, timeout_after(5 * SECOND, wait())).await.unwrap();
    };
    assert_eq!(calls(10_000, round), 0, "nested");
    let counted = guarded(10_000, async |deadline| {
        deadline.guard(10 * SECOND, wait()).await.unwrap();
    });
    assert_eq!(counted, 0, "guards");
}

/// A timeout that fires is not a common path. It allocates the interrupt, which its holders share;
/// the notes of its delivery, until it is read; and lists of its task's scopes and tickets, to
/// find the waits that it reaches, and to check that it has no wait on a bare waker. Each firing
/// costs the same, and the thousandth no more.
#[test]
fn a_timeout_that_fires_allocates_a_small_constant() {
    const EACH: u64 = 6;
    // Far and near.
    for span in [SECOND, Duration::from_millis(10)] {
        let round = async || assert_eq!(ignore_after(span, sleep(60 * SECOND)).await, Ok(None));
        let (few, many) = (calls(10, round), calls(1_000, round));
        assert!(many <= 1_000 * EACH, "{many} for 1,000 timeouts of {span:?}");
        assert_eq!(many, 100 * few, "{span:?}");
        let counted = guarded(1_000, async |deadline| {
            deadline.guard(span, sleep(60 * SECOND)).await.unwrap_err();
        });
        assert!(counted <= 1_000 * EACH, "{counted} for 1,000 guards of {span:?}");
    }
}

/// Returns the bytes that are allocated while `count` tasks sleep, each with a handle.
fn live_with_sleepers(count: usize) -> i64 {
    let mut kernel = Kernel::new(Sim::new());
    let mut tasks = Vec::with_capacity(count);
    let start = || {
        let main = async {
            for _ in 0..count {
                tasks.push(spawn("sleeps", sleep(3600 * SECOND)).await);
            }
            yield_now().await.unwrap();
        };
        kernel.run(main).unwrap();
    };
    allocation_counter::measure(start).bytes_current
}

#[test]
fn a_sleeping_task_with_a_handle_takes_no_more_than_it_did() {
    // Nearly as many tasks as fill the tables of a kernel, which double, and twice as many tasks.
    const FULL: usize = 1 << 14;
    const MOST: i64 = 388;
    let [_, full, twice] = [FULL, FULL, 2 * FULL].map(|full| live_with_sleepers(full - 64));
    let each = (twice - full) / FULL as i64;
    println!("a sleeping task: {each} bytes");
    assert!(each <= MOST, "{each} bytes");
}
