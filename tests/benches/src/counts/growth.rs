//! How the instructions of an operation grow with the number of things: the cost for each thing
//! must not depend on their number.
//!
//! Each operation runs with [`FEW`] and with [`MANY`], each time in a separate process under
//! callgrind, on the simulated machine. The counts repeat. The instructions of a process with
//! [`LEAST`] are taken off, because starting and ending it would be a fifth of the smaller count.

use std::future::{Future, pending};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use kernel::{Kernel, Sim};
use rustix::process::{Resource, Rlimit, setrlimit};
use traps::channel::mpsc;
use traps::sync::{Event, Mutex};
use traps::{
    Either, Interrupt, Task, TaskGroup, WaitQueue, connection_deadline, join_all, race, sleep,
    spawn, timeout_after, yield_now,
};

use super::server::count_program;
use super::tools::{self, Tool};
use crate::out;

const LEAST: u64 = 2;
const FEW: u64 = 1_000;
const MANY: u64 = 64_000;
/// The most instructions for each of [`MANY`], in percent of those for each of [`FEW`]. A heap's
/// logarithm stays below it, because sifting is a small part of an operation. What grows with the
/// square is far above it.
const MOST: u64 = 130;
/// The limit of the CPU time of one process, in seconds, under callgrind.
const PATIENCE: u64 = 100;

const SECOND: Duration = Duration::from_secs(1);

/// An operation on this many things at once.
type Operation = fn(u64);

/// The operations, by name.
const OPERATIONS: [(&str, Operation); 25] = [
    ("event_cancel", cancel_waiters_of_an_event),
    ("lock_timeout", time_out_waiters_of_a_lock),
    ("timeouts_fire", fire_timeouts_of_one_task),
    ("timeouts_close", close_timeouts_of_one_task),
    ("group_cancel", cancel_a_group),
    ("spawn_join", spawn_and_join),
    ("joiners_cancel", cancel_joiners_of_one_task),
    ("sleep_together", sleep_to_one_deadline),
    ("queue_wake", wake_a_queue),
    ("join_all_drop", drop_a_join_half_way),
    ("join_all_timeout", time_out_one_join),
    ("join_all_cancel", cancel_one_join),
    ("ready_drop", drop_ready_tasks),
    ("asleep_drop", drop_sleeping_tasks),
    ("group_drop", drop_a_group),
    ("bare_timeouts", fire_nested_timeouts_around_wakers),
    ("bare_branches", fire_timeouts_around_branches),
    ("guards_fire", fire_connection_deadlines),
    ("senders_cancel", cancel_senders_of_a_channel),
    ("unordered", poll_sleeps_unordered),
    ("traced_timeouts_close", |n| traced(n, close_timeouts)),
    ("traced_timeouts_fire", |n| traced(n, fire_timeouts)),
    ("traced_join_all_cancel", |n| traced(n, cancel_join)),
    ("traced_group_cancel", |n| traced(n, cancel_group)),
    ("traced_spawn_join", |n| traced(n, spawn_all)),
];

pub fn names() -> impl Iterator<Item = String> {
    OPERATIONS.iter().map(|(name, _)| format!("growth.{name}"))
}

/// `NAME N`: runs that and prints nothing.
///
/// # Errors
///
/// An error in the words, or the system's.
pub fn child(name: &str, n: &str) -> Result<bool, String> {
    let found = OPERATIONS.iter().find(|(known, _)| *known == name);
    let (_, operation) = found.ok_or_else(|| format!("no growth of `{name}`"))?;
    let n = n.parse().map_err(|_| format!("expected a number, not `{n}`"))?;
    let limit = Rlimit { current: Some(PATIENCE), maximum: None };
    setrlimit(Resource::Cpu, limit).map_err(|error| format!("the limit of CPU time: {error}"))?;
    operation(n);
    Ok(true)
}

/// Counts the operations that have `filter` in their names, and reports the growth of each.
///
/// # Errors
///
/// Returns an error if this program cannot be found.
pub fn check(filter: Option<&str>) -> Result<bool, String> {
    tools::check(["valgrind"])?;
    let this = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let wanted = |(_, name): &(_, String)| filter.is_none_or(|word| name.contains(word));
    let all: Vec<_> = OPERATIONS.iter().zip(names()).filter(wanted).collect();
    let grow =
        |((operation, _), name): &(&(&str, Operation), String)| grows_well(&this, operation, name);
    Ok(tools::on_all_cores(&all, grow)?.into_iter().all(|sound| sound))
}

fn grows_well(program: &Path, operation: &str, name: &str) -> Result<bool, String> {
    let count = |n: u64| {
        let words = ["counts", "growth", operation, &n.to_string()];
        count_program(Tool::Callgrind, program, &words).map(|counted| counted.all)
    };
    let each = |n: u64| -> Result<u64, String> {
        Ok(count(n)?.saturating_sub(count(LEAST)?) / (n - LEAST))
    };
    let (few, many) = match (each(FEW), each(MANY)) {
        (Ok(few), Ok(many)) => (few, many),
        (Err(error), _) | (_, Err(error)) => {
            let limit = format!("it has {PATIENCE} s of CPU time");
            out::say(&format!("{name:<28} FAILS\n    {error}; {limit}\n"))?;
            return Ok(false);
        }
    };
    let is_sound = many * 100 <= few * MOST;
    let verdict = if is_sound { "ok" } else { "FAILS" };
    let ratio = many as f64 / few as f64;
    out::say(&format!(
        "{name:<29} {few:>8} each of {FEW}, {many:>8} of {MANY}: {ratio:>5.2} times  {verdict}\n"
    ))?;
    Ok(is_sound)
}

// ---- The operations ----------------------------------------------------------------------------

fn run<F: Future>(main: F) -> F::Output {
    Kernel::new(Sim::new()).run(main).expect("main ends")
}

/// `n` tasks that wait.
async fn spawn_many<F: Future + 'static>(n: u64, wait: impl Fn() -> F) -> Vec<Task<F::Output>> {
    let mut tasks = Vec::new();
    for _ in 0..n {
        tasks.push(spawn("waits", wait()).await);
    }
    yield_now().await.expect("nothing interrupts it");
    tasks
}

async fn join_each<T: 'static>(tasks: Vec<Task<T>>) {
    for mut task in tasks {
        let _ = task.join().await;
    }
}

async fn cancel_each<T: 'static>(tasks: Vec<Task<T>>) {
    for task in &tasks {
        task.cancel_now("all");
    }
    join_each(tasks).await;
}

fn cancel_waiters_of_an_event(n: u64) {
    let event = Rc::new(Event::new());
    let wait = || {
        let event = event.clone();
        async move { event.wait().await }
    };
    run(async { cancel_each(spawn_many(n, wait).await).await });
}

fn time_out_waiters_of_a_lock(n: u64) {
    let lock = Rc::new(Mutex::new(()));
    let _held = lock.try_lock();
    let wait = || {
        let lock = lock.clone();
        async move { timeout_after(SECOND, async { lock.lock().await.map(drop) }).await }
    };
    run(async { join_each(spawn_many(n, wait).await).await });
}

fn fire_timeouts_of_one_task(n: u64) {
    run(fire_timeouts(n));
}

async fn fire_timeouts(n: u64) {
    let queue = WaitQueue::new();
    let waits = (0..n).map(|_| timeout_after(SECOND, queue.wait())).collect::<Vec<_>>();
    assert!(join_all(waits).await.iter().all(Result::is_err));
}

fn close_timeouts_of_one_task(n: u64) {
    run(close_timeouts(n));
}

async fn close_timeouts(n: u64) {
    let waits = (0..n).map(|_| timeout_after(2 * SECOND, sleep(SECOND))).collect::<Vec<_>>();
    assert!(join_all(waits).await.iter().all(Result::is_ok));
}

fn cancel_a_group(n: u64) {
    run(cancel_group(n));
}

async fn cancel_group(n: u64) {
    let mut group = group_of(n).await;
    assert!(timeout_after(SECOND, async { group.join().await }).await.is_err());
}

fn drop_a_group(n: u64) {
    run(async { drop(group_of(n).await) });
}

async fn group_of(n: u64) -> TaskGroup<(), traps::Error> {
    let group = TaskGroup::new();
    for _ in 0..n {
        let member = async {
            sleep(2 * SECOND).await?;
            Ok(())
        };
        group.spawn("member", member).await;
    }
    group
}

fn spawn_and_join(n: u64) {
    run(spawn_all(n));
}

async fn spawn_all(n: u64) {
    join_each(spawn_many(n, || async {}).await).await;
}

fn cancel_joiners_of_one_task(n: u64) {
    run(async {
        let long = Rc::new(spawn("long", sleep(SECOND)).await);
        let wait = || {
            let long = long.clone();
            async move { long.wait().await }
        };
        cancel_each(spawn_many(n, wait).await).await;
    });
}

fn sleep_to_one_deadline(n: u64) {
    run(async { join_each(spawn_many(n, || sleep(SECOND)).await).await });
}

fn wake_a_queue(n: u64) {
    let queue = WaitQueue::new();
    run(async {
        let tasks = spawn_many(n, || queue.wait()).await;
        queue.wake(n);
        join_each(tasks).await;
    });
}

fn drop_a_join_half_way(n: u64) {
    run(async {
        let spans = (0..n).map(|place| SECOND * u32::try_from(1 + place % 2).unwrap_or(1));
        let all = join_all(spans.map(sleep).collect::<Vec<_>>());
        let half = race(all, sleep(SECOND * 3 / 2)).await;
        assert!(matches!(half, Either::Right(Ok(_))), "half of them are over");
        sleep(SECOND).await.expect("nothing interrupts it");
    });
}

fn time_out_one_join(n: u64) {
    let all = async move { Ok::<_, Interrupt>(sleep_in_branches(n).await) };
    run(async { assert!(timeout_after(SECOND, all).await.is_ok_and(|errors| errors == n)) });
}

fn cancel_one_join(n: u64) {
    run(cancel_join(n));
}

async fn cancel_join(n: u64) {
    let mut task = spawn("joins", sleep_in_branches(n)).await;
    yield_now().await.expect("nothing interrupts it");
    task.cancel_now("all");
    assert_eq!(task.join().await.ok(), Some(n));
}

/// Sleeps for two seconds in each of `n` branches, and returns the number of errors.
async fn sleep_in_branches(n: u64) -> u64 {
    let ended = join_all((0..n).map(|_| sleep(2 * SECOND)).collect::<Vec<_>>()).await;
    ended.iter().filter(|ended| ended.is_err()).count() as u64
}

fn drop_ready_tasks(n: u64) {
    run(async {
        for _ in 0..n {
            spawn("ready", async {}).detached().await;
        }
    });
}

fn drop_sleeping_tasks(n: u64) {
    run(async { spawn_many(n, || sleep(SECOND)).await });
}

fn fire_nested_timeouts_around_wakers(n: u64) {
    let wait =
        || timeout_after(SECOND, timeout_after(2 * SECOND, pending::<Result<(), Interrupt>>()));
    run(async { join_each(spawn_many(n, wait).await).await });
}

fn fire_timeouts_around_branches(n: u64) {
    let wait = || {
        timeout_after(SECOND, async {
            race(pending::<()>(), pending::<()>()).await;
            Ok::<(), Interrupt>(())
        })
    };
    run(async { join_each(spawn_many(n, wait).await).await });
}

fn fire_connection_deadlines(n: u64) {
    let wait = || async {
        let deadline = connection_deadline().await;
        deadline.guard(SECOND, sleep(2 * SECOND)).await
    };
    run(async { join_each(spawn_many(n, wait).await).await });
}

fn cancel_senders_of_a_channel(n: u64) {
    let (sender, receiver) = mpsc::channel(1);
    let wait = || {
        let sender = sender.clone();
        async move { sender.send(()).await.is_ok() }
    };
    run(async { cancel_each(spawn_many(n, wait).await).await });
    drop(receiver);
}

fn poll_sleeps_unordered(n: u64) {
    run(async {
        let mut all: FuturesUnordered<_> = (0..n).map(|_| sleep(SECOND)).collect();
        while all.next().await.is_some() {}
    });
}

/// Runs an operation while the log is written.
fn traced<F: Future<Output = ()>>(n: u64, operation: fn(u64) -> F) {
    let mut kernel = Kernel::new(Sim::new());
    kernel.trace_to(std::io::sink());
    kernel.run(operation(n)).expect("main ends");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_ends() {
        for (_, operation) in OPERATIONS {
            operation(20);
        }
    }

    #[test]
    fn what_it_cannot_run_is_named() {
        assert!(child("nosuch", "5").unwrap_err().contains("`nosuch`"));
        assert!(child("spawn_join", "x").unwrap_err().contains("`x`"));
    }
}
