//! Interrupted anywhere: each program is cancelled and timed out at each of its traps.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::FutureExt;
use kernel::{Injected, Options, Policy, Sim};
use traps::io::{Direction, Io, Scripted};
use traps::sync::{Event, Mutex};
use traps::{
    Interrupt, Signal, Time, WaitQueue, foreign, ignore_after, join_all, race, run_in_thread,
    shield, sleep, spawn, timeout_after, wait_signal, yield_now,
};

#[allow(dead_code, reason = "its program is what we want")]
#[path = "../../examples/hello.rs"]
mod hello;
#[allow(dead_code, reason = "its program is what we want")]
#[path = "../../examples/linger.rs"]
mod linger;
#[allow(dead_code, reason = "its program is what we want")]
#[path = "../../examples/nested.rs"]
mod nested;
#[allow(dead_code, reason = "its program is what we want")]
#[path = "../../examples/phases.rs"]
mod phases;
#[allow(dead_code, reason = "its program is what we want")]
#[path = "../../examples/worker.rs"]
mod worker;

const MS: Duration = Duration::from_millis(1);

// ---- The lessons -------------------------------------------------------------------------------

#[test]
fn hello_can_be_interrupted_anywhere() {
    let swept = testing::sweep(|| (Sim::new(), hello::hello())).run();
    assert!(swept.plain.output.is_ok());
    assert_eq!((swept.traps, swept.runs), (3, 6));
}

#[test]
fn nested_can_be_interrupted_anywhere() {
    // The lesson asserts its results, which an interrupt from outside changes. Then main ends by a
    // panic in the middle of its scopes, and nothing of them may be left either.
    let main = || async { AssertUnwindSafe(nested::nested()).catch_unwind().await };
    let swept = testing::sweep(|| (Sim::new(), main())).run();
    assert!(matches!(swept.plain.output, Ok(Ok(()))));
}

#[test]
fn phases_can_be_interrupted_anywhere() {
    let main = || async { AssertUnwindSafe(phases::phases()).catch_unwind().await };
    let swept = testing::sweep(|| (Sim::new(), main())).run();
    assert!(matches!(swept.plain.output, Ok(Ok(()))));
}

#[test]
fn linger_can_be_interrupted_anywhere() {
    let ready = |sim: Sim, at| sim.ready_at(Time::ZERO + at * MS, 7, Direction::Read);
    let sim = || [3, 6, 9].into_iter().fold(Sim::new(), ready);
    for policy in [Policy::Lazy, Policy::NextSleep, Policy::Eager] {
        let program = || (sim(), linger::linger(Io::new(Scripted(7)), |_| ()));
        let swept = testing::sweep(program).options(Options::new().policy(policy)).run();
        assert!(swept.plain.output.is_ok());
    }
}

#[test]
fn worker_can_be_interrupted_anywhere() {
    let sim = || Sim::new().jobs_take(20 * MS);
    let swept = testing::sweep(|| (sim(), worker::worker(Duration::ZERO))).run();
    assert!(swept.plain.output.is_ok());
}

// ---- Between tasks -----------------------------------------------------------------------------

/// A task that holds the lock while it waits.
async fn hold(lock: Rc<Mutex<u32>>) -> Result<(), Interrupt> {
    let mut guard = lock.lock().await?;
    yield_now().await?;
    *guard += 1;
    Ok(())
}

#[test]
fn whoever_is_interrupted_a_lock_passes_on() {
    let program = || async {
        let lock = Rc::new(Mutex::new(0));
        let mut tasks = Vec::new();
        for name in ["first", "second", "third"] {
            tasks.push(spawn(name, hold(lock.clone())).await);
        }
        for task in &mut tasks {
            let _ = task.join().await.expect("nobody interrupts main");
        }
        *lock.lock().await.expect("nobody interrupts main")
    };
    let swept = testing::sweep(|| (Sim::new(), program()))
        .only(&["first", "second", "third"])
        // The interrupted task counted nothing, and every other task could count.
        .check(|injection, ran| assert!([2, 3].contains(&ran.output), "{injection}"));
    assert_eq!(swept.plain.output, 3);
}

#[test]
fn a_permit_that_its_waiter_did_not_take_is_for_the_next() {
    let program = || async {
        let (queue, taken) = (Rc::new(WaitQueue::new()), Rc::new(Cell::new(0)));
        let mut tasks = Vec::new();
        for name in ["first", "second"] {
            let (queue, taken) = (queue.clone(), taken.clone());
            let wait = async move {
                queue.wait_for_permit().await?;
                taken.set(taken.get() + 1);
                Ok::<_, Interrupt>(())
            };
            tasks.push(spawn(name, wait).await);
        }
        yield_now().await.expect("nobody interrupts main");
        queue.give_permit();
        queue.give_permit();
        for task in &mut tasks {
            let _ = task.join().await.expect("nobody interrupts main");
        }
        while queue.try_take_permit() {
            taken.set(taken.get() + 1);
        }
        taken.get()
    };
    let swept = testing::sweep(|| (Sim::new(), program()))
        .only(&["first", "second"])
        .check(|injection, ran| assert_eq!(ran.output, 2, "{injection}"));
    assert_eq!(swept.plain.output, 2);
}

/// A bit of everything that waits.
async fn everything() -> Result<(), traps::Error> {
    let event = Rc::new(Event::new());
    let theirs = event.clone();
    let mut child = spawn("child", async move { theirs.wait().await }).await;
    let _ = race(sleep(MS), foreign(std::future::pending::<()>())).await;
    let spans = [3 * MS, Duration::ZERO, 2 * MS];
    for slept in join_all(spans.map(|span| timeout_after(20 * MS, sleep(span)))).await {
        slept?;
    }
    ignore_after(MS, Io::new(Scripted(1)).readable()).await?;
    wait_signal(&[Signal::User1]).await?;
    timeout_after(MS, run_in_thread(|| ())).await.expect_err("a job takes longer");
    // Clean-up that an interrupt from outside does not cut short.
    shield(async {
        sleep(MS).await.expect("a shield is around it");
        event.set();
    })
    .await;
    let _ = child.join().await;
    child.cancel_because("it has ended").await?;
    Ok(())
}

#[test]
fn whatever_it_waits_in_a_task_can_be_interrupted() {
    let sim = || {
        let first = Time::ZERO + MS;
        (1..50).fold(Sim::new().jobs_take(5 * MS), |sim, n| {
            sim.signal_at(first + n * MS, Signal::User1)
        })
    };
    let swept = testing::sweep(|| (sim(), everything())).check(|injection, ran| {
        let Err(traps::Error::Interrupt(why)) = ran.output else { return };
        assert_eq!(why.is_cancelled(), injection.what == Injected::Cancellation, "{why}");
    });
    assert!(swept.plain.output.is_ok());
}

#[test]
fn whatever_the_world_does_the_kernel_keeps_its_promises() {
    let sim = || {
        let first = Time::ZERO + MS;
        (1..1000).fold(Sim::new().jobs_take(5 * MS), |sim, n| {
            sim.signal_at(first + n * MS, Signal::User1)
        })
    };
    // If an assumption of the program fails, it panics, and still leaves nothing behind.
    let main = || AssertUnwindSafe(everything()).catch_unwind();
    testing::explore(1..=100, || (sim(), main())).run();
    let main = || AssertUnwindSafe(phases::phases()).catch_unwind();
    testing::explore(1..=100, || (Sim::new(), main())).run();
    testing::explore(1..=100, || (Sim::new(), hello::hello())).run();
}
