//! Messages from other threads, and jobs for them.

use std::hint::black_box;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use ::traps::universal::UniversalQueue;
use ::traps::{OutsideWaker, outside, run_in_thread};

use super::{Case, OURS, Runner, each, median, on};
use crate::report::Bar;

pub const SECTION: &str = "threads";

pub fn cases() -> Vec<Case> {
    let case = |name, figure, unit, load, count, bars, runners, limits| Case {
        section: SECTION,
        name,
        figure,
        unit,
        load,
        count,
        bars,
        runners,
        limits,
    };
    let wake_up = "the system wakes a thread that sleeps";
    let lock = "one lock each side, and how often the thread finds the kernel asleep";
    let apart = "a lock each side, one and the same only where the other has run out of items";
    vec![
        case("wake", "wake of a sleeping loop from a thread", "us", 1, 200, &[], WAKE, wake_up),
        case("items", "completions from a thread", "ns", 1, 1_000_000, ITEMS_BAR, ITEMS, apart),
        case(
            "ends",
            "waits of 1,000 tasks ended by a thread",
            "ns",
            1000,
            200_000,
            &[],
            ENDS,
            lock,
        ),
        case("job", "run_in_thread, there and back", "us", 1, 1_000, &[], JOB, wake_up),
        case("jobs", "run_in_thread, 1,000 at once", "us", 1000, 10_000, JOBS_BAR, JOBS, lock),
    ]
}

const ITEMS_BAR: &[Bar] = &[Bar::AtMost(80.0)];
const JOBS_BAR: &[Bar] = &[Bar::AtMost(0.7)];
const WAKE: &[(&str, Runner)] =
    &[(OURS, wake), ("tokio", wake_tokio), ("smol", wake_smol), ("std mpsc", wake_std)];
const ITEMS: &[(&str, Runner)] =
    &[(OURS, items), ("tokio", items_tokio), ("smol", items_smol), ("std mpsc", items_std)];
const ENDS: &[(&str, Runner)] = &[(OURS, ends), ("tokio", ends_tokio)];
const JOB: &[(&str, Runner)] = &[(OURS, job), ("tokio", job_tokio), ("smol", job_smol)];
const JOBS: &[(&str, Runner)] = &[(OURS, jobs), ("tokio", jobs_tokio), ("smol", jobs_smol)];

/// Starts this many threads that share `count` sends of the time, each after a pause.
fn clocks(threads: u64, count: u64, send: impl Fn(Instant) + Send + Clone + 'static) {
    for _ in 0..threads {
        let send = send.clone();
        thread::spawn(move || {
            for _ in 0..count / threads {
                // Long enough for the loop to have gone to sleep.
                thread::sleep(Duration::from_micros(300));
                send(Instant::now());
            }
        });
    }
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

fn wake(threads: u64, count: u64) -> f64 {
    on::trapline(async {
        let queue = UniversalQueue::new(1000);
        let far = queue.clone();
        clocks(threads, count, move |now| far.put_blocking(now).expect("it is open"));
        let mut spans = Vec::new();
        for _ in 0..count {
            spans.push(micros(queue.get().await.expect("it is open")));
        }
        median(spans)
    })
}

fn wake_tokio(threads: u64, count: u64) -> f64 {
    on::tokio(async {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        clocks(threads, count, move |now| sender.send(now).expect("it is open"));
        let mut spans = Vec::new();
        for _ in 0..count {
            spans.push(micros(receiver.recv().await.expect("it is open")));
        }
        median(spans)
    })
}

fn wake_smol(threads: u64, count: u64) -> f64 {
    on::smol(|_| async move {
        let (sender, receiver) = async_channel::unbounded();
        clocks(threads, count, move |now| sender.try_send(now).expect("it is open"));
        let mut spans = Vec::new();
        for _ in 0..count {
            spans.push(micros(receiver.recv().await.expect("it is open")));
        }
        median(spans)
    })
}

/// Without any loop: a thread that waits for a thread.
fn wake_std(threads: u64, count: u64) -> f64 {
    let (sender, receiver) = mpsc::channel();
    clocks(threads, count, move |now| sender.send(now).expect("it is open"));
    median((0..count).map(|_| micros(receiver.recv().expect("it is open"))).collect())
}

/// Starts this many threads that share `count` sends, as fast as they can.
fn senders(threads: u64, count: u64, send: impl Fn(u64) + Send + Clone + 'static) {
    for _ in 0..threads {
        let send = send.clone();
        thread::spawn(move || (0..count / threads).for_each(send));
    }
}

fn items(threads: u64, count: u64) -> f64 {
    on::trapline(async {
        let queue = UniversalQueue::new(count as usize);
        let far = queue.clone();
        let start = Instant::now();
        senders(threads, count, move |n| far.put_blocking(n).expect("it is open"));
        for _ in 0..count {
            black_box(queue.get().await.expect("it is open"));
        }
        each(start, count)
    })
}

fn items_tokio(threads: u64, count: u64) -> f64 {
    on::tokio(async {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let start = Instant::now();
        senders(threads, count, move |n| sender.send(n).expect("it is open"));
        for _ in 0..count {
            black_box(receiver.recv().await.expect("it is open"));
        }
        each(start, count)
    })
}

fn items_smol(threads: u64, count: u64) -> f64 {
    on::smol(|_| async move {
        let (sender, receiver) = async_channel::unbounded();
        let start = Instant::now();
        senders(threads, count, move |n| sender.try_send(n).expect("it is open"));
        for _ in 0..count {
            black_box(receiver.recv().await.expect("it is open"));
        }
        each(start, count)
    })
}

fn items_std(threads: u64, count: u64) -> f64 {
    let (sender, receiver) = mpsc::channel();
    let start = Instant::now();
    senders(threads, count, move |n| sender.send(n).expect("it is open"));
    for _ in 0..count {
        black_box(receiver.recv().expect("it is open"));
    }
    each(start, count)
}

/// Tasks that wait again and again, and a thread that ends each wait.
fn ends(tasks: u64, count: u64) -> f64 {
    let waiting: Arc<Mutex<Vec<OutsideWaker>>> = Arc::default();
    let rounds = count / tasks;
    let there = waiting.clone();
    let thread = thread::spawn(move || {
        let mut left = rounds * tasks;
        while left > 0 {
            let found = std::mem::take(&mut *there.lock().expect("no panic under it"));
            left -= found.len() as u64;
            found.iter().for_each(OutsideWaker::wake);
        }
    });
    let figure = on::trapline(async {
        let mut all = Vec::new();
        let start = Instant::now();
        for _ in 0..tasks {
            let waiting = waiting.clone();
            let waits = async move {
                for _ in 0..rounds {
                    let register = |waker| {
                        waiting.lock().expect("no panic under it").push(waker);
                        true
                    };
                    outside("a_thread", register).await.expect("nothing interrupts it");
                }
            };
            all.push(traps::spawn("waits", waits).await);
        }
        for mut task in all {
            task.join().await.expect("it ends");
        }
        each(start, rounds * tasks)
    });
    thread.join().expect("it ends");
    figure
}

/// The ends of waits in tokio, with a `oneshot` for each wait.
fn ends_tokio(tasks: u64, count: u64) -> f64 {
    use tokio::sync::oneshot::{Sender, channel};
    let waiting: Arc<Mutex<Vec<Sender<()>>>> = Arc::default();
    let rounds = count / tasks;
    let there = waiting.clone();
    let thread = thread::spawn(move || {
        let mut left = rounds * tasks;
        while left > 0 {
            let found = std::mem::take(&mut *there.lock().expect("no panic under it"));
            left -= found.len() as u64;
            found.into_iter().for_each(|sender| sender.send(()).expect("it waits"));
        }
    });
    let figure = on::tokio(async {
        let mut all = Vec::new();
        let start = Instant::now();
        for _ in 0..tasks {
            let waiting = waiting.clone();
            all.push(tokio::spawn(async move {
                for _ in 0..rounds {
                    let (sender, receiver) = channel();
                    waiting.lock().expect("no panic under it").push(sender);
                    receiver.await.expect("it is sent");
                }
            }));
        }
        for task in all {
            task.await.expect("it ends");
        }
        each(start, rounds * tasks)
    });
    thread.join().expect("it ends");
    figure
}

/// This many jobs one after the other, by this many tasks at once; in microseconds.
fn job(tasks: u64, count: u64) -> f64 {
    on::trapline(async {
        let jobs = async move |count: u64| {
            for n in 0..count {
                black_box(run_in_thread(move || n).await.expect("it ends"));
            }
        };
        jobs(1).await;
        let start = Instant::now();
        let mut all = Vec::new();
        for _ in 0..tasks {
            all.push(traps::spawn("jobs", async move { jobs(count / tasks).await }).await);
        }
        for mut task in all {
            task.join().await.expect("it ends");
        }
        each(start, count) / 1e3
    })
}

fn job_tokio(_: u64, count: u64) -> f64 {
    on::tokio(async {
        tokio::task::spawn_blocking(|| ()).await.expect("it ends");
        let start = Instant::now();
        for n in 0..count {
            black_box(tokio::task::spawn_blocking(move || n).await.expect("it ends"));
        }
        each(start, count) / 1e3
    })
}

fn job_smol(_: u64, count: u64) -> f64 {
    on::smol(|_| async move {
        blocking::unblock(|| ()).await;
        let start = Instant::now();
        for n in 0..count {
            black_box(blocking::unblock(move || n).await);
        }
        each(start, count) / 1e3
    })
}

/// Batches of this many jobs, each by its own task; in microseconds. The first batch, which starts
/// the threads, is not counted.
fn jobs(batch: u64, count: u64) -> f64 {
    on::trapline(async {
        let mut all = Vec::with_capacity(batch as usize);
        let mut start = Instant::now();
        for round in 0..=count / batch {
            if round == 1 {
                start = Instant::now();
            }
            for n in 0..batch {
                all.push(traps::spawn("job", run_in_thread(move || n)).await);
            }
            for mut task in all.drain(..) {
                black_box(task.join().await.expect("it ends")).expect("it ends");
            }
        }
        each(start, count) / 1e3
    })
}

macro_rules! jobs {
    ($batch:expr, $count:expr, $run:expr, $joined:ident => $join:expr) => {{
        let (batch, count): (u64, u64) = ($batch, $count);
        let mut all = Vec::with_capacity(batch as usize);
        let mut start = Instant::now();
        for round in 0..=count / batch {
            if round == 1 {
                start = Instant::now();
            }
            for n in 0..batch {
                all.push($run(move || n));
            }
            for $joined in all.drain(..) {
                black_box($join);
            }
        }
        each(start, count) / 1e3
    }};
}

fn jobs_tokio(batch: u64, count: u64) -> f64 {
    on::tokio(async {
        jobs!(batch, count, tokio::task::spawn_blocking, task => task.await.expect("it ends"))
    })
}

fn jobs_smol(batch: u64, count: u64) -> f64 {
    on::smol(|_| async move { jobs!(batch, count, blocking::unblock, task => task.await) })
}
