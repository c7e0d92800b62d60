//! Requests per second and server CPU per request, as ratios to the floor.
//!
//! Every round is a fresh process; the floor runs before and after each, and the ratio is to the
//! mean of the two. The order of the servers is rotated by one each time.

use std::io;
use std::time::Duration;

use super::process::Process;
use super::{Asked, OURS, Target, WORKLOADS, Workload, limits};
use crate::load::{Kind, Load};
use crate::report::{Bar, Row, Spread};
use crate::servers::{FLOOR, MIO, SMALL};
use crate::sys;
use crate::{occasion, out};

/// One round of one server.
#[derive(Clone, Copy)]
struct Round {
    per_second: f64,
    /// Server CPU per answer, in microseconds.
    cpu: f64,
    /// The share of all cores that was busy with something else.
    foreign: f64,
    /// The share of its core that the server used.
    used: f64,
}

/// The length and the number of the rounds.
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

/// One load: the servers next to the floor.
struct Compared {
    found: Vec<Found>,
    floors: Vec<Round>,
}

fn round(target: Target, load: &Workload, span: Duration) -> io::Result<Round> {
    let process = Process::start(target, load.how(target))?;
    let mut clients = Load::connect(process.addr, load.kind, load.connections)?;
    // Each client has had answers before anything counts.
    clients.run((load.connections as u64 * 4 + 400) * load.kind.answers(), span)?;
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
    fn spread(&self, name: &str, of: Timed) -> Option<Spread> {
        let found = self.found.iter().find(|found| found.target.name() == name)?;
        found.failed.is_none().then(|| Spread::of(of.samples(found).clone()))
    }

    /// The peers of a row of ours: those with deadlines if it has deadlines, and mio without.
    fn peers(&self, ours: Target) -> Vec<&Found> {
        let is_peer = |found: &&Found| {
            let bare = found.target.server.name == MIO && !found.target.deadlines;
            let other = found.target.name() != ours.name();
            other && (found.target.deadlines == ours.deadlines || bare) && found.failed.is_none()
        };
        self.found.iter().filter(is_peer).collect()
    }

    /// The runtime that takes the least CPU with deadlines. The bare loops are not runtimes.
    fn best_with_deadlines(&self) -> Option<&'static str> {
        let is_runtime = |found: &&Found| {
            let target = found.target;
            let is_bare = [FLOOR, MIO].contains(&target.server.name);
            target.deadlines && !is_bare && !target.is_ours() && found.failed.is_none()
        };
        let median = |found: &&Found| Spread::of(found.cpu.clone()).median;
        let all = self.found.iter().filter(is_runtime);
        all.min_by(|a, b| median(a).total_cmp(&median(b))).map(|found| found.target.name())
    }

    fn floor(&self, of: fn(&Round) -> f64) -> Spread {
        Spread::of(self.floors.iter().map(of).collect())
    }
}

/// Measures the requested workloads. After an error, the earlier rows are kept.
///
/// # Errors
///
/// Returns an error if the floor does not run. A peer that does not run is left out.
pub fn measure(asked: &Asked, rows: &mut Vec<Row>) -> io::Result<()> {
    let (span, pairs) = (occasion::span(asked.quick), occasion::rounds(asked.quick));
    let measure = Measure { span, pairs };
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
    Ok(())
}

/// Measured times: for each round a multiple of the floor's time.
#[derive(Clone, Copy, PartialEq)]
enum Timed {
    Rate,
    Cpu,
}

impl Timed {
    fn section(self) -> &'static str {
        if self == Timed::Rate { "Requests per second" } else { "Server CPU per request" }
    }

    fn samples(self, found: &Found) -> &Vec<f64> {
        if self == Timed::Rate { &found.per_second } else { &found.cpu }
    }

    fn limits(self, load: &Workload) -> &'static str {
        if self == Timed::Rate { limits::of_rate(load) } else { limits::of_cpu(load) }
    }

    /// The figures of the floor, and the foreign load.
    fn note(self, once: &Compared, twice: &Compared) -> String {
        let foreign = once.floor(|round| round.foreign * 100.0).median;
        let of = |floor: fn(&Round) -> f64| [once, twice].map(|all| all.floor(floor).median);
        match self {
            Timed::Rate => {
                let [one, two] = of(|round| round.per_second);
                format!("floor {one:.0}/s, doubled {two:.0}/s; foreign load {foreign:.0} %")
            }
            Timed::Cpu => {
                let [one, two] = of(|round| round.cpu);
                let used = once.floor(|round| round.used * 100.0).median;
                format!(
                    "floor {one:.2} us, doubled {two:.2} us, {used:.0} % of its core; \
                     foreign load {foreign:.0} %"
                )
            }
        }
    }
}

/// The rows of one of our programs, with deadlines or without: one for each bar.
fn rows_of(
    load: &Workload,
    (name, short): (&str, &str),
    deadlines: bool,
    once: &Compared,
    twice: &Compared,
) -> Vec<Row> {
    let ours = once.found.iter().find(|found| {
        let target = found.target;
        target.server.name == name && target.deadlines == deadlines && found.failed.is_none()
    });
    let Some(ours) = ours else { return Vec::new() };
    let limits = if deadlines { "all deadlines" } else { "no deadlines" };
    let row = |of: Timed, bar| {
        let samples = of.samples(ours);
        let peers = once.peers(ours.target);
        let named = |each: &dyn Fn(&[f64]) -> Spread| -> Vec<(&'static str, Spread)> {
            peers.iter().map(|peer| (peer.target.name(), each(of.samples(peer)))).collect()
        };
        // One for each round: both ran within it, each next to the floor.
        let ratio = |theirs: &[f64]| {
            Spread::of(samples.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect())
        };
        let mut all = named(&|theirs| Spread::of(theirs.to_vec()));
        all.insert(0, (FLOOR, Spread::exact(1.0)));
        Row {
            section: of.section(),
            figure: format!("{short} {}, {limits}", load.name),
            note: of.note(once, twice),
            unit: "x floor",
            bar,
            ours: Spread::of(samples.clone()),
            peers: all,
            ratios: named(&ratio),
            doubled: twice.spread(ours.target.name(), of),
            limits: of.limits(load),
        }
    };
    let small = name == SMALL && deadlines;
    let has_rate_bar = small && matches!(load.kind, Kind::Pipe | Kind::Echo);
    let mut rows = vec![row(Timed::Rate, has_rate_bar.then_some(Bar::AtLeastOf(FLOOR, 0.97)))];
    if !(small && load.kind == Kind::Http && load.connections > 1) {
        rows.push(row(Timed::Cpu, None));
        return rows;
    }
    rows.push(row(Timed::Cpu, Some(Bar::AtMostOf("mio", 1.05))));
    let best = once.best_with_deadlines();
    rows.extend(best.map(|best| row(Timed::Cpu, Some(Bar::AtMostOf(best, 1.0)))));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::named;

    fn found(name: &str, deadlines: bool, cpu: [f64; 3]) -> Found {
        let target = Target { server: named(name).unwrap(), deadlines };
        Found { target, per_second: vec![1.0; 3], cpu: cpu.to_vec(), failed: None }
    }

    #[test]
    fn cpu_is_held_to_mio_and_to_the_best_runtime_with_deadlines_round_by_round() {
        let round = Round { per_second: 1.0, cpu: 1.0, foreign: 0.0, used: 0.5 };
        let all = vec![
            found(SMALL, true, [1.0, 2.0, 3.0]),
            found("mio", false, [1.0, 2.0, 3.0]),
            found("mio", true, [0.1, 0.1, 0.1]),
            found("hyper", true, [9.0, 9.0, 9.0]),
            found("tokio", true, [2.0, 4.0, 6.0]),
            found("smol", false, [0.1, 0.1, 0.1]),
        ];
        let once = Compared { found: all, floors: vec![round] };
        let load = Workload { name: "keep-alive 64", kind: Kind::Http, connections: 64 };
        let rows = rows_of(&load, (SMALL, "(a)"), true, &once, &once);
        let bars: Vec<Option<Bar>> = rows.iter().map(|row| row.bar).collect();
        let [None, Some(Bar::AtMostOf("mio", _)), Some(Bar::AtMostOf("tokio +d", _))] = bars[..]
        else {
            panic!("{bars:?}")
        };
        // Both vary threefold, but together, so their ratio does not vary.
        let (_, ratio) = rows[1].ratios.iter().find(|(name, _)| *name == "mio").unwrap();
        assert!((ratio.low - 1.0).abs() < 1e-9 && (ratio.high - 1.0).abs() < 1e-9, "{ratio:?}");
    }
}
