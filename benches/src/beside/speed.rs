//! Requests per second and server CPU per request, as ratios to the floor.
//!
//! Every round is a fresh process; the floor runs before and after each, and the ratio is to the
//! mean of the two. The order of the servers is turned by one each time.

use std::io;
use std::time::Duration;

use super::process::Process;
use super::{Asked, OURS, Target, WORKLOADS, Workload, limits};
use crate::load::{Kind, Load};
use crate::out;
use crate::report::{Bar, Row, Spread};
use crate::servers::FLOOR;
use crate::sys;

/// One round of one server.
#[derive(Clone, Copy)]
struct Round {
    per_second: f64,
    /// Server CPU per answer, in microseconds.
    cpu: f64,
    /// Of all cores, what was busy with something else.
    foreign: f64,
    /// Of its core, what the server used.
    used: f64,
}

/// How long and how often.
struct Measure {
    span: Duration,
    pairs: usize,
}

/// All rounds of one server under one load.
struct Found {
    target: Target,
    per_second: Vec<f64>,
    cpu: Vec<f64>,
    failed: Option<io::Error>,
}

/// One load: the servers beside the floor.
struct Compared {
    found: Vec<Found>,
    floors: Vec<Round>,
}

fn round(target: Target, load: &Workload, span: Duration) -> io::Result<Round> {
    let process = Process::start(target, load.how(target))?;
    let mut clients = Load::connect(process.addr, load.kind, load.connections)?;
    // Each client has had answers before anything counts.
    clients.run(load.connections as u64 * 4 + 400, span)?;
    let before = (sys::cpu_nanos(process.pid)?, sys::cpu_nanos(std::process::id())?);
    let busy = sys::busy_seconds()?;
    let done = clients.run(u64::MAX / 2, span)?;
    let busy = sys::busy_seconds()? - busy;
    let server = (sys::cpu_nanos(process.pid)? - before.0) as f64 / 1e9;
    let ours = (sys::cpu_nanos(std::process::id())? - before.1) as f64 / 1e9;
    Ok(Round {
        per_second: done.answers as f64 / done.seconds,
        cpu: server * 1e6 / done.answers as f64,
        foreign: ((busy - server - ours) / (done.seconds * sys::cores() as f64)).max(0.0),
        used: server / done.seconds,
    })
}

fn compare(targets: &[Target], load: &Workload, measure: &Measure) -> io::Result<Compared> {
    let empty = |target: &Target| Found {
        target: *target,
        per_second: Vec::new(),
        cpu: Vec::new(),
        failed: None,
    };
    let mut found: Vec<Found> = targets.iter().map(empty).collect();
    let floor = || round(Asked::floor(), load, measure.span);
    let mut floors = vec![floor()?];
    for pair in 0..measure.pairs {
        for place in 0..found.len() {
            let count = found.len();
            let one = &mut found[(place + pair) % count];
            if one.failed.is_some() {
                continue;
            }
            let got = match round(one.target, load, measure.span) {
                Ok(got) => got,
                Err(error) => {
                    out::note(format!(
                        "  {} left out of {}: {error}",
                        one.target.name(),
                        load.name
                    ));
                    one.failed = Some(error);
                    continue;
                }
            };
            let before = *floors.last().expect("it ran before the first");
            let after = floor()?;
            floors.push(after);
            one.per_second
                .push(got.per_second / f64::midpoint(before.per_second, after.per_second));
            one.cpu.push(got.cpu / f64::midpoint(before.cpu, after.cpu));
        }
    }
    Ok(Compared { found, floors })
}

impl Compared {
    fn spread(&self, name: &str, of: fn(&Found) -> &Vec<f64>) -> Option<Spread> {
        let found = self.found.iter().find(|found| found.target.name() == name)?;
        found.failed.is_none().then(|| Spread::of(of(found).clone()))
    }

    fn floor(&self, of: fn(&Round) -> f64) -> Spread {
        Spread::of(self.floors.iter().map(of).collect())
    }
}

/// The rows of the workloads that are asked for.
///
/// # Errors
///
/// The floor does not run; a peer that does not is left out.
pub fn rows(asked: &Asked) -> io::Result<Vec<Row>> {
    let millis = if asked.quick { 250 } else { 1000 };
    let pairs = if asked.quick { 3 } else { 11 };
    let measure = Measure { span: Duration::from_millis(millis), pairs };
    let mut rows = Vec::new();
    for load in WORKLOADS.iter().filter(|load| asked.wants(load.name)) {
        out::note(load.name);
        let targets = asked.targets(load.kind == Kind::Echo);
        let once = compare(&targets, load, &measure)?;
        let ours: Vec<Target> = targets.iter().copied().filter(Target::is_ours).collect();
        let twice = Workload { connections: load.connections * 2, ..*load };
        let twice = compare(&ours, &twice, &measure)?;
        for server in OURS {
            for deadlines in [true, false] {
                rows.extend(rows_of(load, server, deadlines, &once, &twice));
            }
        }
    }
    Ok(rows)
}

/// The two rows of one of our programs, with deadlines or without.
fn rows_of(
    load: &Workload,
    (name, short): (&str, &str),
    deadlines: bool,
    once: &Compared,
    twice: &Compared,
) -> Vec<Row> {
    let server = crate::servers::SERVERS.iter().find(|server| server.name == name);
    let Some(server) = server else { return Vec::new() };
    let ours = Target { server, deadlines };
    let limits = if deadlines { "all deadlines" } else { "no deadlines" };
    let row = |section, of: fn(&Found) -> &Vec<f64>, floor: String, bar, why| {
        let peers = once.found.iter().filter(|found| {
            let bare = found.target.server.name == "mio" && !found.target.deadlines;
            let other = found.target.name() != ours.name();
            other && (found.target.deadlines == deadlines || bare) && found.failed.is_none()
        });
        let mut peers: Vec<(&'static str, Spread)> =
            peers.map(|found| (found.target.name(), Spread::of(of(found).clone()))).collect();
        peers.insert(0, (FLOOR, Spread::exact(1.0)));
        Some(Row {
            section,
            figure: format!("{short} {}, {limits} (floor {floor})", load.name),
            unit: "x floor",
            bar,
            ours: once.spread(ours.name(), of)?,
            peers,
            ratios: Vec::new(),
            doubled: twice.spread(ours.name(), of),
            limits: why,
        })
    };
    let small = name == crate::servers::SMALL && deadlines;
    let at_least = small && matches!(load.kind, Kind::Pipe | Kind::Echo);
    let rate_bar = at_least.then_some(Bar::AtLeastOf(FLOOR, 0.97));
    let at_most = small && load.kind == Kind::Http && load.connections > 1;
    let cpu_bar = at_most.then_some(Bar::AtMostOf("mio", 1.05));
    let per_second = [once, twice].map(|c| c.floor(|round| round.per_second).median);
    let cpu = [once, twice].map(|c| c.floor(|round| round.cpu).median);
    let foreign = once.floor(|round| round.foreign * 100.0).median;
    let noted = format!("; foreign load {foreign:.0} %");
    let rates = format!("{:.0}/s, doubled {:.0}/s{noted}", per_second[0], per_second[1]);
    let used = once.floor(|round| round.used * 100.0).median;
    let cpus =
        format!("{:.2} us, doubled {:.2} us, {used:.0} % of its core{noted}", cpu[0], cpu[1]);
    let why = limits::of_rate(load);
    let rate = row("Requests per second", |found| &found.per_second, rates, rate_bar, why);
    let why = limits::of_cpu(load);
    let cpu = row("Server CPU per request", |found| &found.cpu, cpus, cpu_bar, why);
    rate.into_iter().chain(cpu).collect()
}
