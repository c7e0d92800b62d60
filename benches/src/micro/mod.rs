//! The small operations of a runtime, one by one, ours and the peers' in turn.
//!
//! A case is measured in rounds: each round runs ours, each peer's and ours with twice the load,
//! one after the other and each in a runtime of its own, so that what else the machine does hits
//! all of them. What one thread does without sleeping is timed by that thread's own clock, so that
//! other load costs it no more than its caches; what waits is timed by the real one. Setting up is
//! outside the measured span, so the same case, run by a tool that counts, gives the cost of one
//! operation as the difference of two counts.

mod depth;
mod late;
mod memory;
mod on;
mod tasks;
mod threads;
mod time_queue;
mod timers;
mod trace;
mod traps;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::report::{Bar, Row, Spread, json, table};

/// Runs an operation `count` times under a load and gives the figure of one.
pub type Runner = fn(load: u64, count: u64) -> f64;

/// Ours, where the runners of a case are named.
pub const OURS: &str = "trapline";

/// One operation, at one load.
pub struct Case {
    pub section: &'static str,
    /// For the command line.
    pub name: &'static str,
    pub figure: &'static str,
    pub unit: &'static str,
    /// What there is of it at once: tasks, timers, depth. 0 cannot be doubled.
    pub load: u64,
    /// Operations in one sample.
    pub count: u64,
    pub bars: &'static [Bar],
    /// Ours first.
    pub runners: &'static [(&'static str, Runner)],
    pub limits: &'static str,
}

/// All cases, in the order of the table.
fn cases() -> Vec<Case> {
    let groups = [traps::cases, tasks::cases, timers::cases, threads::cases, trace::cases];
    let groups = groups.into_iter().chain([memory::cases as fn() -> Vec<Case>]);
    groups.flat_map(|cases| cases()).collect()
}

/// Nanoseconds since `start` for each of `count`.
fn each(start: Instant, count: u64) -> f64 {
    start.elapsed().as_secs_f64() * 1e9 / count.max(1) as f64
}

/// A point on the clock of this thread, which stands still while others have the processor: for
/// work that never sleeps. On an idle machine it says what any clock says.
#[derive(Clone, Copy)]
struct Cpu(Duration);

impl Cpu {
    fn now() -> Cpu {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
        Cpu(Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), nanos))
    }

    fn elapsed(self) -> Duration {
        Cpu::now().0.saturating_sub(self.0)
    }

    /// Nanoseconds since then for each of `count`.
    fn each(self, count: u64) -> f64 {
        self.elapsed().as_secs_f64() * 1e9 / count.max(1) as f64
    }
}

fn median(samples: Vec<f64>) -> f64 {
    Spread::of(samples).median
}

const ROUNDS: usize = 11;
const FEW_ROUNDS: usize = 3;

/// Measures every case whose name or figure has `filter` in it.
pub fn rows(filter: Option<&str>, quick: bool) -> Vec<Row> {
    let wanted = |case: &Case| {
        filter.is_none_or(|word| {
            [case.section, case.name, case.figure].iter().any(|text| text.contains(word))
        })
    };
    let rounds = if quick { FEW_ROUNDS } else { ROUNDS };
    cases().iter().filter(|case| wanted(case)).flat_map(|case| measure(case, rounds)).collect()
}

/// One case: a row for each of its bars, or one without.
fn measure(case: &Case, rounds: usize) -> Vec<Row> {
    eprintln!("{} ...", case.figure);
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); case.runners.len()];
    let mut doubled = Vec::new();
    for _ in 0..rounds {
        for ((_, runner), samples) in case.runners.iter().zip(&mut samples) {
            samples.push(runner(case.load, case.count));
        }
        if case.load > 0 {
            doubled.push(case.runners[0].1(case.load * 2, case.count));
        }
    }
    let ratio = |peer: &[f64]| {
        Spread::of(samples[0].iter().zip(peer).map(|(ours, theirs)| ours / theirs).collect())
    };
    let named = |of: &dyn Fn(&[f64]) -> Spread| -> Vec<(&'static str, Spread)> {
        let peers = case.runners.iter().zip(&samples).skip(1);
        peers.map(|((name, _), samples)| (*name, of(samples))).collect()
    };
    let row = |bar: Option<Bar>| Row {
        section: case.section,
        figure: case.figure.to_owned(),
        unit: case.unit,
        bar,
        ours: Spread::of(samples[0].clone()),
        peers: named(&|samples| Spread::of(samples.to_vec())),
        ratios: named(&ratio),
        doubled: (!doubled.is_empty()).then(|| Spread::of(doubled.clone())),
        limits: case.limits,
    };
    match case.bars {
        [] => vec![row(None)],
        bars => bars.iter().map(|bar| row(Some(*bar))).collect(),
    }
}

/// The case of that name, and its load: `NAME`, or `NAME:LOAD` for another than the first.
fn find(name: &str) -> Result<(Case, u64), String> {
    let (name, load) = match name.split_once(':') {
        None => (name, None),
        Some((name, load)) => {
            let load = load.parse().map_err(|_| format!("expected a load, not `{load}`"))?;
            (name, Some(load))
        }
    };
    let found = cases().into_iter().find(|case| case.name == name);
    let case = found.ok_or(format!("no case `{name}`; `bench micro cases` lists them"))?;
    let load = load.unwrap_or(case.load);
    Ok((case, load))
}

/// `PEER CASE COUNT`: runs that and prints nothing.
///
/// # Errors
///
/// What is wrong with the words.
pub fn child(words: &[&str]) -> Result<f64, String> {
    let [peer, name, count] = words else {
        return Err("expected PEER CASE COUNT".to_owned());
    };
    let (case, load) = find(name)?;
    let count = count.parse().map_err(|_| format!("expected a count, not `{count}`"))?;
    let runner = case.runners.iter().find(|(name, _)| name == peer);
    let (_, runner) = runner.ok_or(format!("`{name}` has no peer `{peer}`"))?;
    Ok(runner(load, count))
}

/// The command `bench micro`.
pub fn command(words: &[&str]) -> ExitCode {
    let done = match words {
        ["cases"] => {
            for case in cases() {
                let peers: Vec<&str> = case.runners.iter().map(|(name, _)| *name).collect();
                println!("{}:{} {} ({})", case.name, case.load, case.figure, peers.join(" "));
            }
            Ok(())
        }
        ["figure", rest @ ..] => memory::figure(rest),
        [_, _, _] => child(words).map(drop),
        _ => {
            let quick = words.contains(&"--quick");
            let filter = words.iter().find(|word| !word.starts_with("--")).copied();
            let rows = rows(filter, quick);
            print!("{}", if words.contains(&"--json") { json(&rows) } else { table(&rows) });
            Ok(())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench micro: {message}");
            ExitCode::from(2)
        }
    }
}
