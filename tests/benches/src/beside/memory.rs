//! Bytes in memory for each idle keep-alive connection.

use std::io;
use std::time::Duration;

use super::process::Process;
use super::{Asked, OURS, Target};
use crate::load::{Kind, Load};
use crate::out;
use crate::report::{Row, Spread};
use crate::servers::{FLOOR, How};
use crate::sys;

pub const FIGURE: &str = "idle keep-alive connection";
const CONNECTIONS: usize = 10_000;
/// This many connect at a time, ask once, and fall silent.
const BATCH: usize = 50;

/// The growth of the process for each connection.
fn bytes(target: Target, connections: usize) -> io::Result<f64> {
    let process = Process::start(target, How { deadlines: target.deadlines, echo: false })?;
    let span = Duration::from_secs(60);
    // The allocations of the first connections are made before anything counts.
    let mut warm = Load::connect(process.addr, Kind::Http, BATCH)?;
    warm.run(BATCH as u64 * 4, span)?;
    let before = sys::resident(process.pid)?;
    let mut load = Load::connect(process.addr, Kind::Http, 0)?;
    for first in (0..connections).step_by(BATCH) {
        load.grow(BATCH)?;
        load.run_from(first, BATCH as u64, span)?;
    }
    let after = sys::resident(process.pid)?;
    drop(warm);
    Ok((after as f64 - before as f64) / connections as f64)
}

/// Returns the bytes of a connection, or `None` and says why on standard error. On a busy machine
/// the first connections are idle for too long before the last ones ask.
fn measured(target: Target, connections: usize) -> Option<Spread> {
    match bytes(target, connections) {
        Ok(bytes) => Some(Spread::exact(bytes)),
        Err(error) => {
            let name = target.name();
            out::note(format!("  {name} with {connections} connections left out: {error}"));
            None
        }
    }
}

/// The rows of our two programs, with deadlines and without.
///
/// # Errors
///
/// Returns the system's error if it does not report the limit of descriptors.
pub fn rows(asked: &Asked) -> io::Result<Vec<Row>> {
    if !asked.wants(FIGURE) {
        return Ok(Vec::new());
    }
    out::note(FIGURE);
    let mut targets = asked.targets(false);
    targets.insert(0, Asked::floor());
    let each = |target: &Target| Some((*target, measured(*target, CONNECTIONS)?));
    let all: Vec<(Target, Spread)> = targets.iter().filter_map(each).collect();
    let limit = usize::try_from(sys::raise_descriptors()?).unwrap_or(usize::MAX);
    let twice = (2 * CONNECTIONS).min(limit.saturating_sub(500) / BATCH * BATCH);
    if twice < 2 * CONNECTIONS {
        out::note(format!("  no more than {limit} descriptors: doubled is {twice} connections"));
    }
    let mut rows = Vec::new();
    for (target, ours) in all.iter().filter(|(target, _)| target.is_ours()) {
        let same = |(other, _): &&(Target, Spread)| {
            let floor = other.server.name == FLOOR;
            (other.deadlines == target.deadlines || floor) && other.name() != target.name()
        };
        let peers = all.iter().filter(same).map(|(other, bytes)| (other.name(), *bytes));
        let short = OURS.iter().find(|(name, _)| *name == target.server.name);
        let short = short.map_or("", |(_, short)| short);
        let limits = if target.deadlines { "all deadlines" } else { "no deadlines" };
        rows.push(Row {
            section: "Memory",
            figure: format!("{short} {FIGURE}, {limits}"),
            note: String::new(),
            unit: "bytes",
            bar: None,
            ours: *ours,
            peers: peers.collect(),
            ratios: Vec::new(),
            doubled: measured(*target, twice),
            limits: "the task's future, its place in the kernel's tables",
        });
    }
    Ok(rows)
}
