//! Time, beside tokio, in one run: re-arm, a timeout around a ready future, a full scan, lateness.
//!
//! `cargo bench --bench beside_tokio`. The two take turns, round by round, and medians are printed
//! with their ratio; on a shared machine trust the ratio more than the figure.

use std::hint::black_box;
use std::pin::Pin;
use std::time::{Duration, Instant};

use kernel::{Kernel, Real};
use traps::deadline_table::DeadlineTable;
use traps::{Interrupt, Time, connection_deadline, timeout_after};

const ROUNDS: usize = 11;
const FAR: Duration = Duration::from_secs(30);

fn median(mut spans: Vec<f64>) -> f64 {
    spans.sort_by(f64::total_cmp);
    spans[spans.len() / 2]
}

fn row(name: &str, unit: &str, ours: Vec<f64>, theirs: Vec<f64>) {
    let (ours, theirs) = (median(ours), median(theirs));
    println!("{name:<44} {ours:>10.1} {theirs:>10.1} {unit:<3} {:>6.2} x", ours / theirs);
}

/// Runs both in turn; each gives one figure a round.
fn compare(name: &str, unit: &str, ours: impl Fn() -> f64, theirs: impl Fn() -> f64) {
    let rounds: Vec<(f64, f64)> = (0..ROUNDS).map(|_| (ours(), theirs())).collect();
    let (ours, theirs) = rounds.into_iter().unzip();
    row(name, unit, ours, theirs);
}

fn on_trapline<F: Future>(main: F) -> F::Output {
    Kernel::new(Real::new().unwrap()).run(main).unwrap()
}

fn on_tokio<F: Future>(main: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(main)
}

fn each(start: Instant, count: u32) -> f64 {
    start.elapsed().as_secs_f64() * 1e9 / f64::from(count)
}

fn rearm(others: usize) {
    const COUNT: u32 = 200_000;
    let ours = || {
        on_trapline(async {
            let mut all = Vec::with_capacity(others);
            for _ in 0..others {
                let deadline = connection_deadline().await;
                deadline.arm(2 * FAR);
                all.push(deadline);
            }
            let deadline = connection_deadline().await;
            let start = Instant::now();
            for _ in 0..COUNT {
                black_box(&deadline).arm(FAR);
            }
            each(start, COUNT)
        })
    };
    let theirs = || {
        on_tokio(async {
            let mut all: Vec<Pin<Box<tokio::time::Sleep>>> = Vec::with_capacity(others);
            for _ in 0..others {
                let mut sleep = Box::pin(tokio::time::sleep(2 * FAR));
                assert!(futures_util::poll!(&mut sleep).is_pending());
                all.push(sleep);
            }
            let mut sleep = Box::pin(tokio::time::sleep(FAR));
            assert!(futures_util::poll!(&mut sleep).is_pending());
            let start = Instant::now();
            for _ in 0..COUNT {
                sleep.as_mut().reset(tokio::time::Instant::now() + FAR);
            }
            each(start, COUNT)
        })
    };
    compare(&format!("re-arm, {others} others"), "ns", ours, theirs);
}

fn around_a_ready_future() {
    const COUNT: u32 = 200_000;
    let ours = || {
        on_trapline(async {
            let start = Instant::now();
            for n in 0..COUNT {
                let ready = async { Ok::<_, Interrupt>(n) };
                black_box(timeout_after(FAR, ready).await.unwrap());
            }
            each(start, COUNT)
        })
    };
    let guard = || {
        on_trapline(async {
            let deadline = connection_deadline().await;
            let start = Instant::now();
            for n in 0..COUNT {
                let ready = async { Ok::<_, Interrupt>(n) };
                black_box(deadline.guard(FAR, ready).await.unwrap());
            }
            each(start, COUNT)
        })
    };
    let theirs = || {
        on_tokio(async {
            let start = Instant::now();
            for n in 0..COUNT {
                black_box(tokio::time::timeout(FAR, async { n }).await.unwrap());
            }
            each(start, COUNT)
        })
    };
    compare("timeout_after around a ready future", "ns", ours, theirs);
    compare("a guard around a ready future", "ns", guard, theirs);
}

/// There is no such thing in tokio: beside a plain pass over as many times.
fn full_scan() {
    const COUNT: u32 = 1_000_000;
    let table = DeadlineTable::new(Duration::from_millis(300), Box::new(|_| Time::ZERO));
    for n in 0..COUNT {
        let slot = table.columns().claim(n, n + 1);
        table.columns().store(slot, Time::from_micros(60_000_000 + u64::from(n)));
    }
    let plain: Vec<u64> = (0..u64::from(COUNT)).map(|n| 60_000_000 + n).collect();
    let ours = || {
        let start = Instant::now();
        table.columns().scan(Time::ZERO, |_, _, _, _| unreachable!("nothing is due"));
        start.elapsed().as_secs_f64() * 1e6
    };
    let theirs = || {
        let start = Instant::now();
        black_box(black_box(&plain).iter().fold(u64::MAX, |first, at| first.min(*at)));
        start.elapsed().as_secs_f64() * 1e6
    };
    compare("scan of 1,000,000 (a plain pass beside it)", "us", ours, theirs);
}

fn lateness(span: Duration, count: u32) {
    let late = |start: Instant| (start.elapsed() - span).as_secs_f64() * 1e6;
    let ours = || {
        on_trapline(async {
            let mut spans = Vec::new();
            for _ in 0..count {
                let start = Instant::now();
                traps::sleep(span).await.unwrap();
                spans.push(late(start));
            }
            median(spans)
        })
    };
    let theirs = || {
        on_tokio(async {
            let mut spans = Vec::new();
            for _ in 0..count {
                let start = Instant::now();
                tokio::time::sleep(span).await;
                spans.push(late(start));
            }
            median(spans)
        })
    };
    compare(&format!("lateness of sleep({span:?})"), "us", ours, theirs);
}

fn main() {
    println!("{:<44} {:>10} {:>10}", "median of 11 rounds", "trapline", "tokio");
    rearm(0);
    rearm(10_000);
    rearm(1_000_000);
    around_a_ready_future();
    full_scan();
    lateness(Duration::from_millis(1), 50);
    lateness(Duration::from_secs(1), 1);
}
