//! Deadlines: setting, clearing, scanning and firing.

use std::hint::black_box;
use std::pin::Pin;
use std::time::Duration;

use ::traps::internal::deadlines::DeadlineTable;
use ::traps::internal::table::ScopeId;
use ::traps::{ConnectionDeadline, Interrupt, Time, connection_deadline, timeout_after};
use futures_util::poll;

use super::{Case, Cpu, OURS, Runner, late, on, time_queue};
use crate::report::Bar;

const SECTION: &str = "timers";
const COUNT: u64 = 200_000;
pub const FAR: Duration = Duration::from_secs(30);

pub fn cases() -> Vec<Case> {
    let case = |name, figure, load, bars, runners, limits| {
        let (section, unit, count) = (SECTION, "ns", COUNT);
        Case { section, name, figure, unit, load, count, bars, runners, limits }
    };
    let clock = "one reading of the coarse clock";
    let held = "a few comparisons: the run's end, which reads the clock anyway, stores the last";
    let stored = "a store, and the sixteenth part of a reading of the coarse clock";
    let store = "three stores and a free list";
    let scope =
        "a name and a place for its scope, taken and given back; two readings of the coarse clock";
    let memory = "cache misses: one of the table's columns each";
    let mut all = vec![
        case("timeout", "timeout_after, ready future, 0 others", 0, &[], TIMEOUT, scope),
        case(
            "timeout10k",
            "timeout_after, ready future, 10,000 others",
            10_000,
            &[],
            TIMEOUT,
            scope,
        ),
        case("guard", "ConnectionDeadline::guard, ready future", 0, &[], GUARD, clock),
        case("rearm", "ConnectionDeadline re-arm, the same in one run", 0, &[], REARM, held),
        case(
            "rearm_another",
            "ConnectionDeadline re-arm, stored, 0 others",
            0,
            REARM_BAR,
            ANOTHER,
            stored,
        ),
        case(
            "rearm_another10k",
            "ConnectionDeadline re-arm, stored, 10,000 others",
            10_000,
            REARM_BAR,
            ANOTHER,
            stored,
        ),
        case(
            "rearm_another1m",
            "ConnectionDeadline re-arm, stored, 1,000,000 others",
            1_000_000,
            REARM_BAR,
            ANOTHER,
            stored,
        ),
        case("rearm_random", "re-arm one of 1,000,000 at random", 1_000_000, &[], RANDOM, memory),
        case("arm_cancel", "TimeQueue arm + cancel, 0 others", 0, ARM_BAR, ARM, store),
        case("arm_cancel10k", "TimeQueue arm + cancel, 10,000 others", 10_000, ARM_BAR, ARM, store),
        case(
            "arm_cancel1m",
            "TimeQueue arm + cancel, 1,000,000 others",
            1_000_000,
            ARM_BAR,
            ARM,
            store,
        ),
    ];
    let figure = "scan of 1,000,000 armed";
    let scan = case("scan", figure, 1_000_000, &[Bar::AtMost(500.0)], SCAN, "the memory it reads");
    all.push(Case { unit: "us", count: 5, ..scan });
    all.extend(late::cases(SECTION));
    all
}

const REARM_BAR: &[Bar] = &[Bar::AtMost(10.0), Bar::AtMostOf("tokio", 0.25)];
const ARM_BAR: &[Bar] = &[Bar::AtMost(10.0)];
const TIMEOUT: &[(&str, Runner)] =
    &[(OURS, timeout), ("tokio", timeout_tokio), ("monoio", timeout_monoio)];
const GUARD: &[(&str, Runner)] = &[(OURS, guard), ("tokio", timeout_tokio)];
const REARM: &[(&str, Runner)] = &[(OURS, rearm)];
const ANOTHER: &[(&str, Runner)] = &[
    (OURS, rearm_another),
    ("tokio", rearm_tokio),
    ("smol", rearm_smol),
    ("monoio", rearm_monoio),
];
const RANDOM: &[(&str, Runner)] = &[(OURS, random), ("tokio", random_tokio)];
const ARM: &[(&str, Runner)] = &[
    (OURS, time_queue::set_and_cancel),
    ("tokio", arm_tokio),
    ("smol", arm_smol),
    ("monoio", arm_monoio),
];
const SCAN: &[(&str, Runner)] = &[(OURS, scan), ("plain pass", plain_pass)];

type TokioSleep = Pin<Box<tokio::time::Sleep>>;
type MonoioSleep = Pin<Box<monoio::time::Sleep>>;

async fn others(count: u64) -> Vec<ConnectionDeadline> {
    let mut all = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let deadline = connection_deadline().await;
        deadline.arm(2 * FAR);
        all.push(deadline);
    }
    all
}

/// Sleeps in progress: each was polled once.
macro_rules! others {
    ($count:expr, $sleep:expr) => {{
        let mut all = Vec::with_capacity($count as usize);
        for _ in 0..$count {
            let mut sleep = Box::pin($sleep(2 * FAR));
            assert!(poll!(&mut sleep).is_pending());
            all.push(sleep);
        }
        all
    }};
}

fn timeout(load: u64, count: u64) -> f64 {
    on::trapline(async {
        let _others = others(load).await;
        let start = Cpu::now();
        for n in 0..count {
            let ready = async { Ok::<_, Interrupt>(n) };
            black_box(timeout_after(FAR, ready).await).expect("it is ready");
        }
        start.each(count)
    })
}

fn timeout_tokio(load: u64, count: u64) -> f64 {
    on::tokio(async {
        let _others: Vec<TokioSleep> = others!(load, tokio::time::sleep);
        let start = Cpu::now();
        for n in 0..count {
            black_box(tokio::time::timeout(FAR, async { n }).await).expect("it is ready");
        }
        start.each(count)
    })
}

fn timeout_monoio(load: u64, count: u64) -> f64 {
    on::monoio(async {
        let _others: Vec<MonoioSleep> = others!(load, monoio::time::sleep);
        let start = Cpu::now();
        for n in 0..count {
            black_box(monoio::time::timeout(FAR, async { n }).await).expect("it is ready");
        }
        start.each(count)
    })
}

fn guard(load: u64, count: u64) -> f64 {
    on::trapline(async {
        let _others = others(load).await;
        let deadline = connection_deadline().await;
        let start = Cpu::now();
        for n in 0..count {
            let ready = async { Ok::<_, Interrupt>(n) };
            black_box(deadline.guard(FAR, ready).await).expect("it is ready");
        }
        start.each(count)
    })
}

fn rearm(load: u64, count: u64) -> f64 {
    on::trapline(async {
        let _others = others(load).await;
        let deadline = connection_deadline().await;
        let start = Cpu::now();
        for _ in 0..count {
            black_box(&deadline).arm(FAR);
        }
        start.each(count)
    })
}

/// Each arm is stored, because no two in a row are for the same deadline.
fn rearm_another(load: u64, count: u64) -> f64 {
    on::trapline(async {
        let _others = others(load).await;
        let two = [connection_deadline().await, connection_deadline().await];
        let start = Cpu::now();
        for n in 0..count {
            black_box(&two)[n as usize % 2].arm(FAR);
        }
        start.each(count)
    })
}

fn rearm_tokio(load: u64, count: u64) -> f64 {
    on::tokio(async {
        let _others: Vec<TokioSleep> = others!(load, tokio::time::sleep);
        let mut sleep = Box::pin(tokio::time::sleep(FAR));
        assert!(poll!(&mut sleep).is_pending());
        let start = Cpu::now();
        for _ in 0..count {
            sleep.as_mut().reset(tokio::time::Instant::now() + FAR);
        }
        start.each(count)
    })
}

fn rearm_smol(load: u64, count: u64) -> f64 {
    on::smol(|_| async move {
        let _others: Vec<Pin<Box<async_io::Timer>>> = others!(load, async_io::Timer::after);
        let mut timer = async_io::Timer::after(FAR);
        assert!(poll!(&mut timer).is_pending());
        let start = Cpu::now();
        for _ in 0..count {
            timer.set_after(FAR);
            assert!(poll!(&mut timer).is_pending());
        }
        start.each(count)
    })
}

fn rearm_monoio(load: u64, count: u64) -> f64 {
    on::monoio(async {
        let _others: Vec<MonoioSleep> = others!(load, monoio::time::sleep);
        let mut sleep = Box::pin(monoio::time::sleep(FAR));
        assert!(poll!(&mut sleep).is_pending());
        let start = Cpu::now();
        for _ in 0..count {
            sleep.as_mut().reset(monoio::time::Instant::now() + FAR);
        }
        start.each(count)
    })
}

/// The next of a row of numbers without much order (Knuth's MMIX), below `below`.
fn next(state: &mut u64, below: u64) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    ((*state >> 33) % below) as usize
}

fn random(load: u64, count: u64) -> f64 {
    on::trapline(async {
        let all = others(load).await;
        let mut state = 1;
        let start = Cpu::now();
        for _ in 0..count {
            all[next(&mut state, load)].arm(FAR);
        }
        start.each(count)
    })
}

fn random_tokio(load: u64, count: u64) -> f64 {
    on::tokio(async {
        let mut all: Vec<TokioSleep> = others!(load, tokio::time::sleep);
        let mut state = 1;
        let start = Cpu::now();
        for _ in 0..count {
            let at = tokio::time::Instant::now() + FAR;
            all[next(&mut state, load)].as_mut().reset(at);
        }
        start.each(count)
    })
}

fn arm_tokio(load: u64, count: u64) -> f64 {
    on::tokio(async {
        let _others: Vec<TokioSleep> = others!(load, tokio::time::sleep);
        // Due before all others, so that no arm interrupts the driver.
        let mut first = Box::pin(tokio::time::sleep(FAR / 2));
        assert!(poll!(&mut first).is_pending());
        let start = Cpu::now();
        for _ in 0..count {
            let mut sleep = std::pin::pin!(tokio::time::sleep(FAR));
            assert!(poll!(&mut sleep).is_pending());
        }
        start.each(count)
    })
}

fn arm_smol(load: u64, count: u64) -> f64 {
    on::smol(|_| async move {
        let _others: Vec<Pin<Box<async_io::Timer>>> = others!(load, async_io::Timer::after);
        let start = Cpu::now();
        for _ in 0..count {
            let mut timer = async_io::Timer::after(FAR);
            assert!(poll!(&mut timer).is_pending());
        }
        start.each(count)
    })
}

fn arm_monoio(load: u64, count: u64) -> f64 {
    on::monoio(async {
        let _others: Vec<MonoioSleep> = others!(load, monoio::time::sleep);
        let start = Cpu::now();
        for _ in 0..count {
            let mut sleep = std::pin::pin!(monoio::time::sleep(FAR));
            assert!(poll!(&mut sleep).is_pending());
        }
        start.each(count)
    })
}

/// A pass over the far table, where nothing is due; in microseconds.
fn scan(load: u64, count: u64) -> f64 {
    let table = DeadlineTable::default();
    for n in 0..load {
        let (slot, _) = table.make(ScopeId::NONE);
        table.set(slot, Time::from_micros(60_000_000 + n));
    }
    let mut due = Vec::new();
    let start = Cpu::now();
    for _ in 0..count {
        table.scan(Time::ZERO, &mut due);
    }
    assert!(due.is_empty());
    start.each(count) / 1e3
}

/// The least of as many numbers; in microseconds.
fn plain_pass(load: u64, count: u64) -> f64 {
    let all: Vec<u64> = (0..load).map(|n| 60_000_000 + n).collect();
    let start = Cpu::now();
    for _ in 0..count {
        black_box(black_box(&all).iter().fold(u64::MAX, |first, at| first.min(*at)));
    }
    start.each(count) / 1e3
}
