//! How late a sleep ends, by the real clock.

use std::time::{Duration, Instant};

use super::{Case, OURS, Runner, median, on};
use crate::report::Bar;

/// Each task makes `count` sleeps, one after the other.
pub fn cases(section: &'static str) -> Vec<Case> {
    let case = |name, figure, count, bars, runners| {
        let limits = "the way from the timer's interrupt to this thread";
        Case { section, name, figure, unit: "us", load: 1, count, bars, runners, limits }
    };
    let [ms1, ms10, ms100, s1] = RUNNERS;
    vec![
        case("late1", "lateness of sleep, 1 ms", 50, &[Bar::AtMost(75.0)], ms1),
        case("late10", "lateness of sleep, 10 ms", 5, &[], ms10),
        case("late100", "lateness of sleep, 100 ms", 2, &[Bar::AtMost(150.0)], ms100),
        case("late1000", "lateness of sleep, 1 s", 1, &[Bar::AtMost(150.0)], s1),
    ]
}

type Runners = &'static [(&'static str, Runner)];

macro_rules! runners {
    ($millis:literal) => {
        &[
            (OURS, ours::<$millis>),
            ("tokio", tokio::<$millis>),
            ("smol", smol::<$millis>),
            ("monoio", monoio::<$millis>),
        ]
    };
}

const RUNNERS: [Runners; 4] = [runners!(1), runners!(10), runners!(100), runners!(1000)];

fn late(start: Instant, span: Duration) -> f64 {
    start.elapsed().saturating_sub(span).as_secs_f64() * 1e6
}

/// The median over all sleeps of this many tasks at once.
fn ours<const MILLIS: u64>(tasks: u64, count: u64) -> f64 {
    let span = Duration::from_millis(MILLIS);
    on::trapline(async {
        let mut all = Vec::new();
        for _ in 0..tasks {
            let sleeps = async move {
                let mut spans = Vec::new();
                for _ in 0..count {
                    let start = Instant::now();
                    traps::sleep(span).await.expect("nothing interrupts it");
                    spans.push(late(start, span));
                }
                spans
            };
            all.push(traps::spawn("sleeps", sleeps).await);
        }
        let mut spans = Vec::new();
        for mut task in all {
            spans.extend(task.join().await.expect("it ends"));
        }
        median(spans)
    })
}

macro_rules! sleeps {
    ($count:expr, $sleep:expr) => {{
        let span = Duration::from_millis(MILLIS);
        let mut spans = Vec::new();
        for _ in 0..$count {
            let start = Instant::now();
            $sleep(span).await;
            spans.push(late(start, span));
        }
        median(spans)
    }};
}

fn tokio<const MILLIS: u64>(_: u64, count: u64) -> f64 {
    on::tokio(async { sleeps!(count, tokio::time::sleep) })
}

fn smol<const MILLIS: u64>(_: u64, count: u64) -> f64 {
    on::smol(|_| async move { sleeps!(count, async_io::Timer::after) })
}

fn monoio<const MILLIS: u64>(_: u64, count: u64) -> f64 {
    on::monoio(async { sleeps!(count, monoio::time::sleep) })
}
