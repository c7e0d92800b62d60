//! What does not wander: instructions in user space and system calls, by the difference of two
//! runs of different length.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::process::{Process, Tool};
use super::{Asked, OURS, Target, WORKLOADS, Workload};
use crate::load::{Kind, Load};
use crate::out;
use crate::report::{Bar, Row, Spread};
use crate::servers::{FLOOR, HTTP, SMALL};

/// Requests of the shorter and of the longer run: both have as many connections, and in both all
/// has grown to its size: queues, tables, buffers.
fn lengths(load: &Workload) -> [u64; 2] {
    let short = 512.max(4 * load.connections as u64);
    let turn = if load.kind == Kind::Pipe { crate::load::DEPTH } else { 1 };
    [short * turn, 4 * short * turn]
}

/// Where a tool writes what it found.
fn scratch(what: &str) -> PathBuf {
    std::env::temp_dir().join(format!("trapline-bench-{}-{what}", std::process::id()))
}

fn drive(process: &Process, load: &Workload, requests: u64) -> io::Result<()> {
    let mut clients = Load::connect(process.addr, load.kind, load.connections)?;
    clients.run(requests, Duration::from_secs(120)).map(drop)
}

/// Instructions of one run.
fn instructions(target: Target, load: &Workload, requests: u64) -> io::Result<f64> {
    let path = scratch("callgrind");
    let words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let tool = Tool { words: &words, errors: Some(File::create(&path)?), forks: false };
    let process = Process::start_in(target, load.how(target), tool)?;
    drive(&process, load, requests)?;
    process.end()?;
    let text = fs::read_to_string(&path)?;
    fs::remove_file(&path)?;
    let count = text.lines().find_map(|line| line.split("Collected : ").nth(1)?.parse().ok());
    count.ok_or_else(|| io::Error::other("callgrind counted nothing"))
}

/// System calls of one run, by name.
fn calls(target: Target, load: &Workload, requests: u64) -> io::Result<BTreeMap<String, f64>> {
    let path = scratch("strace");
    let out = path.to_string_lossy().into_owned();
    let words = ["strace", "-f", "-c", "-U", "calls,name", "-o", &out];
    let process = Process::start_in(
        target,
        load.how(target),
        Tool { words: &words, errors: None, forks: true },
    )?;
    drive(&process, load, requests)?;
    process.end()?;
    let text = fs::read_to_string(&path)?;
    fs::remove_file(&path)?;
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let (Some(Ok(count)), Some(name)) = (words.next().map(str::parse), words.next()) {
            found.insert(name.to_owned(), count);
        }
    }
    Ok(found)
}

/// What each request of the longer run added.
fn instructions_each(target: Target, load: &Workload) -> io::Result<f64> {
    let [short, long] = lengths(load);
    let [least, most] = [instructions(target, load, short)?, instructions(target, load, long)?];
    Ok((most - least) / (long - short) as f64)
}

/// The same for system calls: of one name, or all.
fn calls_each(target: Target, load: &Workload) -> io::Result<BTreeMap<String, f64>> {
    let [short, long] = lengths(load);
    let [least, most] = [calls(target, load, short)?, calls(target, load, long)?];
    let each = most.into_iter().map(|(name, count)| {
        let before = least.get(&name).copied().unwrap_or(0.0);
        (name, (count - before) / (long - short) as f64)
    });
    Ok(each.filter(|(_, count)| count.abs() > 0.000_5).collect())
}

/// The bars of the issue.
fn bar(target: Target, load: &Workload, calls: bool) -> Option<Bar> {
    if !target.deadlines {
        return None;
    }
    let small = target.server.name == SMALL;
    let most = match (load.kind, calls) {
        (Kind::Http, true) if load.connections == 1 => 3.0,
        (Kind::Http, true) => 2.05,
        (Kind::Close, true) => 5.3,
        (Kind::Pipe | Kind::Echo, true) => return None,
        (Kind::Http, false) if load.connections == 1 => return None,
        (Kind::Http, false) if small => 1200.0,
        (Kind::Http, false) => 2500.0,
        (Kind::Pipe, false) if small => 800.0,
        (Kind::Close, false) if small => 2500.0,
        (Kind::Echo, false) => 300.0,
        (Kind::Pipe | Kind::Close, false) => return None,
    };
    Some(Bar::AtMost(most))
}

/// Measures all targets; leaves out who fails, and says why.
fn measured(
    targets: &[Target],
    load: &Workload,
    measure: impl Fn(Target, &Workload) -> io::Result<f64>,
) -> Vec<(Target, Spread)> {
    let found = targets.iter().filter_map(|target| match measure(*target, load) {
        Ok(count) => Some((*target, Spread::exact(count))),
        Err(error) => {
            out::note(format!("  {} left out of {}: {error}", target.name(), load.name));
            None
        }
    });
    found.collect()
}

/// The rows of the workloads that are asked for.
pub fn rows(asked: &Asked) -> Vec<Row> {
    let mut rows = Vec::new();
    for load in WORKLOADS.iter().filter(|load| asked.wants(load.name)) {
        out::note(format!("counts of {}", load.name));
        let mut targets = asked.targets(load.kind == Kind::Echo);
        targets.insert(0, Asked::floor());
        let of_calls = |target, load: &Workload| {
            let calls = calls_each(target, load)?;
            let name = |(name, count): (&String, &f64)| format!("{name} {count:.3}");
            let listed: Vec<String> =
                calls.iter().filter(|(name, _)| *name != "total").map(name).collect();
            out::note(format!("  {}: {}", target.name(), listed.join(", ")));
            calls.get("total").copied().ok_or_else(|| io::Error::other("strace counted nothing"))
        };
        let one = rows_of(load, &measured(&targets, load, instructions_each), false);
        rows.extend(one);
        rows.extend(rows_of(load, &measured(&targets, load, of_calls), true));
    }
    rows.sort_by_key(|row| row.section);
    rows
}

fn rows_of(load: &Workload, found: &[(Target, Spread)], calls: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let ours = found.iter().filter(|(target, _)| target.is_ours());
    for (target, count) in ours {
        let short = OURS.iter().find(|(name, _)| *name == target.server.name);
        let limits = if target.deadlines { "all deadlines" } else { "no deadlines" };
        let short = short.map_or("", |(_, short)| short);
        let same = |(other, _): &&(Target, Spread)| {
            let same = other.deadlines == target.deadlines || other.server.name == FLOOR;
            same && other.name() != target.name()
        };
        let peers = found.iter().filter(same).map(|(other, count)| (other.name(), *count));
        let why = match target.server.name == HTTP {
            true => "what the handler checks of each request",
            false => "the wait and the two deadlines of each request",
        };
        let twice = Workload { connections: load.connections * 2, ..*load };
        let doubled = if calls {
            calls_each(*target, &twice).map(|calls| calls.get("total").copied().unwrap_or(0.0))
        } else {
            instructions_each(*target, &twice)
        };
        rows.push(Row {
            section: if calls { "System calls" } else { "Instructions in user space" },
            figure: format!("{short} {}, {limits}", load.name),
            unit: "each request",
            bar: bar(*target, load, calls),
            ours: *count,
            peers: peers.collect(),
            ratios: Vec::new(),
            doubled: doubled.ok().map(Spread::exact),
            limits: why,
        });
    }
    rows
}
