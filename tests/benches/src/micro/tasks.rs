//! Tasks: yielding, spawning and joining.

use std::hint::black_box;

use super::{Case, Cpu, OURS, Runner, on};

pub const SECTION: &str = "tasks";

pub fn cases() -> Vec<Case> {
    let case = |name, figure, load, count, bars, runners, limits| Case {
        section: SECTION,
        name,
        figure,
        unit: "ns",
        load,
        count,
        bars,
        runners,
        limits,
    };
    let turn = "one turn for each, and what a turn looks at";
    let task = "seven events with a number, places in five tables, a turn";
    vec![
        case("yield", "yield, 1 task", 1, 200_000, &[], YIELD, turn),
        case(
            "yield1000",
            "yield, 1,000 tasks",
            1000,
            1_000_000,
            &[],
            YIELD,
            "the task's way through the queue and the table",
        ),
        case("spawn_join", "spawn + join, one at a time", 1, 200_000, &[], SPAWN, task),
        case("spawn_join1000", "spawn + join, batches of 1,000", 1000, 200_000, &[], SPAWN, task),
    ]
}

const YIELD: &[(&str, Runner)] = &[
    (OURS, yields),
    ("tokio", yields_tokio),
    ("tokio LocalSet", yields_tokio_local),
    ("smol", yields_smol),
    ("monoio", yields_monoio),
];

const SPAWN: &[(&str, Runner)] = &[
    (OURS, spawns),
    ("tokio", spawns_tokio),
    ("tokio LocalSet", spawns_tokio_local),
    ("smol", spawns_smol),
    ("monoio", spawns_monoio),
];

fn yields(tasks: u64, count: u64) -> f64 {
    on::trapline(async {
        let start = Cpu::now();
        let mut all = Vec::new();
        for _ in 0..tasks {
            let yields = async move {
                for _ in 0..count / tasks {
                    traps::yield_now().await.expect("nothing interrupts it");
                }
            };
            all.push(traps::spawn("yields", yields).await);
        }
        for task in &mut all {
            task.join().await.expect("it ends");
        }
        start.each(count)
    })
}

/// Measures yields in another runtime: its yield, and how it spawns and joins.
macro_rules! yields {
    ($tasks:expr, $count:expr, $yield_now:expr, $spawn:expr, $joined:ident => $join:expr) => {{
        let (tasks, count): (u64, u64) = ($tasks, $count);
        let start = Cpu::now();
        let mut all = Vec::new();
        for _ in 0..tasks {
            let yields = async move {
                for _ in 0..count / tasks {
                    $yield_now.await;
                }
            };
            all.push($spawn(yields));
        }
        for $joined in all {
            $join;
        }
        start.each(count)
    }};
}

fn yields_tokio(tasks: u64, count: u64) -> f64 {
    on::tokio(async {
        let spawn = |future| tokio::spawn(future);
        yields!(tasks, count, tokio::task::yield_now(), spawn, task => task.await.expect("it ends"))
    })
}

fn yields_tokio_local(tasks: u64, count: u64) -> f64 {
    on::tokio_local(async {
        let spawn = |future| tokio::task::spawn_local(future);
        yields!(tasks, count, tokio::task::yield_now(), spawn, task => task.await.expect("it ends"))
    })
}

fn yields_smol(tasks: u64, count: u64) -> f64 {
    on::smol(|executor| async move {
        let spawn = |future| executor.spawn(future);
        yields!(tasks, count, futures_lite::future::yield_now(), spawn, task => task.await)
    })
}

/// With monoio a task that wakes itself is the next to run: of a thousand, each runs to its end.
fn yields_monoio(tasks: u64, count: u64) -> f64 {
    on::monoio(async {
        let spawn = |future| monoio::spawn(future);
        yields!(tasks, count, futures_lite::future::yield_now(), spawn, task => task.await)
    })
}

fn spawns(batch: u64, count: u64) -> f64 {
    on::trapline(async {
        let mut all = Vec::with_capacity(batch as usize);
        let start = Cpu::now();
        for _ in 0..count / batch {
            for n in 0..batch {
                all.push(traps::spawn("task", async move { n }).await);
            }
            for mut task in all.drain(..) {
                black_box(task.join().await.expect("it ends"));
            }
        }
        start.each(count)
    })
}

macro_rules! spawns {
    ($batch:expr, $count:expr, $spawn:expr, $joined:ident => $join:expr) => {{
        let (batch, count): (u64, u64) = ($batch, $count);
        let mut all = Vec::with_capacity(batch as usize);
        let start = Cpu::now();
        for _ in 0..count / batch {
            for n in 0..batch {
                all.push($spawn(async move { n }));
            }
            for $joined in all.drain(..) {
                black_box($join);
            }
        }
        start.each(count)
    }};
}

fn spawns_tokio(batch: u64, count: u64) -> f64 {
    on::tokio(async {
        let spawn = |future| tokio::spawn(future);
        spawns!(batch, count, spawn, task => task.await.expect("it ends"))
    })
}

fn spawns_tokio_local(batch: u64, count: u64) -> f64 {
    on::tokio_local(async {
        let spawn = |future| tokio::task::spawn_local(future);
        spawns!(batch, count, spawn, task => task.await.expect("it ends"))
    })
}

fn spawns_smol(batch: u64, count: u64) -> f64 {
    on::smol(|executor| async move {
        let spawn = |future| executor.spawn(future);
        spawns!(batch, count, spawn, task => task.await)
    })
}

fn spawns_monoio(batch: u64, count: u64) -> f64 {
    on::monoio(async {
        let spawn = |future| monoio::spawn(future);
        spawns!(batch, count, spawn, task => task.await)
    })
}
