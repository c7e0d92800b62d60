//! What the kernel's small operations cost, on the real machine with the trace off.
//!
//! `cargo bench --bench micro` prints nanoseconds: the median of several rounds. `job_batch`
//! keeps 50 jobs going at a time.
//! `micro CASE COUNT` runs one case so often and prints nothing, for a tool that counts
//! instructions: the difference between two counts, divided, is the cost of one.

use std::hint::black_box;
use std::time::{Duration, Instant};

use kernel::{Kernel, Real};
use traps::admission::Gate;
use traps::{
    Interrupt, clock, connection_deadline, current_task, join_all, run_in_thread, sleep, spawn,
    timeout_after, yield_now,
};

const CASES: [&str; 13] = [
    "nothing",
    "clock",
    "current_task",
    "yield",
    "timeout",
    "timeout_none",
    "rearm",
    "guard",
    "spawn_join",
    "sleepers",
    "gate",
    "job",
    "job_batch",
];

async fn run(case: &str, count: u32) {
    match case {
        "nothing" => {
            for n in 0..count {
                black_box(n);
            }
        }
        "clock" => {
            for _ in 0..count {
                black_box(clock().await);
            }
        }
        "current_task" => {
            for _ in 0..count {
                black_box(current_task().await);
            }
        }
        "yield" => {
            for _ in 0..count {
                yield_now().await.unwrap();
            }
        }
        "timeout" | "timeout_none" => {
            let span = (case == "timeout").then_some(Duration::from_secs(10));
            for n in 0..count {
                let ready = async { Ok::<_, Interrupt>(n) };
                black_box(timeout_after(span, ready).await.unwrap());
            }
        }
        "rearm" => {
            let deadline = connection_deadline().await;
            for _ in 0..count {
                black_box(&deadline).arm(Duration::from_secs(10));
            }
        }
        "guard" => {
            let deadline = connection_deadline().await;
            for n in 0..count {
                let ready = async { Ok::<_, Interrupt>(n) };
                let guard = deadline.guard(Duration::from_secs(10), ready);
                black_box(guard.await.unwrap());
            }
        }
        "spawn_join" => {
            for n in 0..count {
                let mut task = spawn("task", async move { n }).await;
                black_box(task.join().await.unwrap());
            }
        }
        "sleepers" => {
            for _ in 0..count {
                drop(spawn("sleeper", sleep(Duration::from_secs(3600))).await);
            }
            yield_now().await.unwrap();
            yield_now().await.unwrap();
        }
        "gate" => {
            let gate = Gate::new("gate", 1);
            for _ in 0..count {
                drop(black_box(gate.try_enter().unwrap()));
            }
        }
        "job" => {
            for n in 0..count {
                black_box(run_in_thread(move || n).await.unwrap());
            }
        }
        "job_batch" => {
            for n in (0..count).step_by(50) {
                let jobs = (n..n + 50).map(|n| run_in_thread(move || n));
                black_box(join_all(jobs).await);
            }
        }
        other => panic!("no case `{other}`; there are {CASES:?}"),
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [case, count] = &words[..] {
        let count = count.parse().expect("a count");
        Kernel::new(Real::new().unwrap()).run(run(case, count)).unwrap();
        return;
    }
    println!("{:<14} {:>8} {:>8} {:>8}  ns each (least, median, most of 9)", "case", "", "", "");
    for case in CASES {
        let count = if case.starts_with("job") { 10_000 } else { 200_000 };
        let mut spans: Vec<f64> = (0..9)
            .map(|_| {
                let mut kernel = Kernel::new(Real::new().unwrap());
                let start = Instant::now();
                kernel.run(run(case, count)).unwrap();
                start.elapsed().as_secs_f64() * 1e9 / f64::from(count)
            })
            .collect();
        spans.sort_by(f64::total_cmp);
        println!("{case:<14} {:>8.1} {:>8.1} {:>8.1}", spans[0], spans[4], spans[8]);
    }
}
