//! One trap, there and back.

use std::hint::black_box;
use std::time::Instant;

use super::{Case, Cpu, OURS, depth, on};

pub const SECTION: &str = "traps";
const COUNT: u64 = 200_000;

pub fn cases() -> Vec<Case> {
    let case = |name, figure, load, runners, limits| Case {
        section: SECTION,
        name,
        figure,
        unit: "ns",
        load,
        count: COUNT,
        bars: &[],
        runners,
        limits,
    };
    let depth = "each await above a trap is entered again at every poll";
    vec![
        case("answer", "answering trap (clock), depth 1", 1, &[(OURS, answer)], depth),
        case("answer5", "answering trap (clock), depth 5", 5, &[(OURS, answer)], depth),
        case(
            "clock",
            "answering trap (clock), depth 1",
            1,
            &[(OURS, clock), ("Instant::now", instant)],
            "one reading of the exact clock",
        ),
        case("block", "blocking trap (yield), depth 1", 1, YIELDS, "a turn for each"),
        case("block5", "blocking trap (yield), depth 5", 5, YIELDS, depth),
    ]
}

const YIELDS: &[(&str, super::Runner)] =
    &[(OURS, block), ("tokio", block_tokio), ("smol", block_smol), ("monoio", block_monoio)];

async fn timed<L: AsyncFn()>(leaf: L, depth: u64, count: u64) -> f64 {
    let start = Cpu::now();
    depth::run(leaf, depth, count).await;
    start.each(count)
}

fn answer(depth: u64, count: u64) -> f64 {
    let leaf = async || {
        black_box(traps::clock().await);
    };
    on::trapline(timed(leaf, depth, count))
}

fn clock(depth: u64, count: u64) -> f64 {
    let leaf = async || {
        black_box(traps::clock().await);
    };
    on::trapline(timed(leaf, depth, count))
}

/// The cost of a reading without a trap.
fn instant(_: u64, count: u64) -> f64 {
    let start = Cpu::now();
    for _ in 0..count {
        black_box(Instant::now());
    }
    start.each(count)
}

fn block(depth: u64, count: u64) -> f64 {
    let leaf = async || traps::yield_now().await.expect("nothing interrupts it");
    on::trapline(timed(leaf, depth, count))
}

// In a peer the main future is not a task, and its path is shorter than that of a task. So the
// peers' futures run in a task, as all except one do in a program. Here main is a task like others.

fn block_tokio(depth: u64, count: u64) -> f64 {
    on::tokio_local(async move {
        let yields = timed(async || tokio::task::yield_now().await, depth, count);
        tokio::task::spawn_local(yields).await.expect("it ends")
    })
}

fn block_smol(depth: u64, count: u64) -> f64 {
    on::smol(|executor| async move {
        let leaf = async || futures_lite::future::yield_now().await;
        executor.spawn(timed(leaf, depth, count)).await
    })
}

/// monoio has no yield, so this future wakes itself and yields.
fn block_monoio(depth: u64, count: u64) -> f64 {
    on::monoio(async move {
        let leaf = async || futures_lite::future::yield_now().await;
        monoio::spawn(timed(leaf, depth, count)).await
    })
}
