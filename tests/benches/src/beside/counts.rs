//! Counts that repeat: instructions in user space and system calls, as the difference of two runs
//! of different length.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use super::process::Process;
use super::{Asked, OURS, Target, WORKLOADS, Workload, limits};
use crate::counts::tools::{Counted, Report, Tool};
use crate::load::{Kind, Load};
use crate::out;
use crate::report::{Bar, Row, Spread};
use crate::servers::FLOOR;

/// Requests of the shorter and of the longer run: both have the same number of connections, and in
/// both queues, tables and buffers have reached their size. The longer one is long enough that the
/// grouping of the last turns does not matter.
fn lengths(load: &Workload) -> [u64; 2] {
    let short = 512.max(4 * load.connections as u64);
    let turn = if load.kind == Kind::Pipe { crate::load::DEPTH } else { 1 };
    [short * turn, short * turn + (3 * short * turn).max(8192)]
}

const INSTRUCTIONS: &str = "Instructions in user space";

fn drive(process: &Process, load: &Workload, requests: u64) -> io::Result<()> {
    let mut clients = Load::connect(process.addr, load.kind, load.connections)?;
    let done = clients.run(requests, Duration::from_secs(120))?;
    // A run that broke off would look cheap.
    if done.answers < requests { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
}

/// The counts of a tool in one run.
fn count(tool: Tool, target: Target, load: &Workload, requests: u64) -> io::Result<Counted> {
    let report = Report::new()?;
    let process = Process::start_in(tool.words(), target, load.how(target), report.errors()?)?;
    drive(&process, load, requests)?;
    process.end()?;
    report.read(tool)
}

/// The cost of each additional request of the longer run.
fn instructions_each(target: Target, load: &Workload) -> io::Result<f64> {
    let [short, long] = lengths(load);
    let [least, most] = both_lengths(Tool::Callgrind, target, load)?;
    Ok((most.all as f64 - least.all as f64) / (long - short) as f64)
}

/// System calls of one request: by name, and in all.
fn calls_each(target: Target, load: &Workload) -> io::Result<BTreeMap<String, f64>> {
    let [short, long] = lengths(load);
    let [least, most] = both_lengths(Tool::Strace, target, load)?;
    let each = |most: u64, least: u64| (most as f64 - least as f64) / (long - short) as f64;
    let named =
        most.by_name.iter().map(|(name, count)| (name.clone(), each(*count, least.named(name))));
    let mut found: BTreeMap<String, f64> =
        named.filter(|(_, count)| count.abs() > 0.000_5).collect();
    found.insert("total".to_owned(), each(most.all, least.all));
    Ok(found)
}

fn both_lengths(tool: Tool, target: Target, load: &Workload) -> io::Result<[Counted; 2]> {
    let [short, long] = lengths(load);
    Ok([count(tool, target, load, short)?, count(tool, target, load, long)?])
}

/// The most system calls that a request may make. Instructions are compared with the peers'.
fn bar(target: Target, load: &Workload) -> Option<Bar> {
    if !target.deadlines {
        return None;
    }
    match load.kind {
        Kind::Http if load.connections == 1 => Some(Bar::AtMost(3.0)),
        Kind::Http => Some(Bar::AtMost(2.05)),
        Kind::Close => Some(Bar::AtMost(5.3)),
        Kind::Pipe | Kind::Echo => None,
    }
}

/// Measures all targets. Leaves out those that fail, and reports the reason.
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

/// Returns the rows of the requested workloads.
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
        let instructions = measured(&targets, load, instructions_each);
        let of_instructions = rows_of(load, &instructions, false);
        let of_deadlines = rows_of_deadlines(load, &instructions, &of_instructions);
        rows.extend(of_instructions.into_iter().chain(of_deadlines));
        rows.extend(rows_of(load, &measured(&targets, load, of_calls), true));
    }
    rows.sort_by_key(|row| row.section);
    rows
}

fn figure(target: Target, load: &Workload) -> String {
    let short = OURS.iter().find(|(name, _)| *name == target.server.name);
    let short = short.map_or("", |(_, short)| short);
    let limits = if target.deadlines { "all deadlines" } else { "no deadlines" };
    format!("{short} {}, {limits}", load.name)
}

/// The cost of the deadlines in instructions, from the rows of one load.
fn rows_of_deadlines(load: &Workload, found: &[(Target, Spread)], rows: &[Row]) -> Vec<Row> {
    let added = |with: &Target| {
        let count = |deadlines| {
            let same = |(other, _): &&(Target, Spread)| {
                other.server.name == with.server.name && other.deadlines == deadlines
            };
            found.iter().find(same).map(|(_, count)| count.median)
        };
        Some(Spread::exact(count(true)? - count(false)?))
    };
    let doubled = |target: Target| {
        let row = rows.iter().find(|row| row.figure == figure(target, load));
        row.and_then(|row| row.doubled).map(|twice| twice.median)
    };
    let limited: Vec<Target> =
        found.iter().map(|(target, _)| *target).filter(|target| target.deadlines).collect();
    let row = |ours: &Target| {
        let others = limited.iter().filter(|other| other.server.name != ours.server.name);
        let bare = Target { deadlines: false, ..*ours };
        Some(Row {
            section: INSTRUCTIONS,
            figure: format!("{}, less those with none", figure(*ours, load)),
            note: String::new(),
            unit: "each request",
            bar: None,
            ours: added(ours)?,
            peers: others.filter_map(|other| Some((other.name(), added(other)?))).collect(),
            ratios: Vec::new(),
            doubled: doubled(*ours)
                .zip(doubled(bare))
                .map(|(with, without)| Spread::exact(with - without)),
            limits: "an arm for each phase; what the vDSO does for its clock is not counted",
        })
    };
    limited.iter().filter(|target| target.is_ours()).filter_map(row).collect()
}

fn rows_of(load: &Workload, found: &[(Target, Spread)], calls: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let ours = found.iter().filter(|(target, _)| target.is_ours());
    for (target, count) in ours {
        let same = |(other, _): &&(Target, Spread)| {
            let same = other.deadlines == target.deadlines || other.server.name == FLOOR;
            same && other.name() != target.name()
        };
        let peers = found.iter().filter(same).map(|(other, count)| (other.name(), *count));
        let why = match calls {
            true => limits::of_calls(load),
            false => limits::of_instructions(*target, load),
        };
        let twice = Workload { connections: load.connections * 2, ..*load };
        let doubled = if calls {
            calls_each(*target, &twice).map(|calls| calls.get("total").copied().unwrap_or(0.0))
        } else {
            instructions_each(*target, &twice)
        };
        rows.push(Row {
            section: if calls { "System calls" } else { INSTRUCTIONS },
            figure: figure(*target, load),
            note: String::new(),
            unit: "each request",
            bar: if calls { bar(*target, load) } else { None },
            ours: *count,
            peers: peers.collect(),
            ratios: Vec::new(),
            doubled: doubled.ok().map(Spread::exact),
            limits: why,
        });
    }
    rows
}
