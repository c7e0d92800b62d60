//! The small operations of a runtime, one by one, ours and the peers' in turn.
//!
//! A case is measured in rounds: each round runs ours, each peer's and ours with twice the load,
//! one after the other and each in its own runtime, so that other load of the machine affects all
//! of them. Work that one thread does without sleeping is timed by the clock of that thread, so
//! that other load costs it only cache misses; work that waits is timed by the real clock. The
//! measured time does not include setting up, so a counting tool gets the cost of one operation as
//! the difference of two counts of the same case.

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

use crate::occasion::{Occasion, rounds};
use crate::out;
use crate::report::{Bar, Row, Spread, json, table};

/// Runs an operation `count` times under a load and returns the figure of one.
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
    /// The size of the load: tasks, timers, depth. 0 cannot be doubled.
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

/// A point on the clock of this thread, which does not advance while other threads have the
/// processor. For work that never sleeps. On an idle machine it agrees with any other clock.
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

impl Case {
    fn has(&self, word: &str) -> bool {
        [self.section, self.name, self.figure].iter().any(|text| text.contains(word))
    }

    /// Checks whether the case can be run this often under that load. The error has the accepted
    /// values.
    fn takes(&self, load: u64, count: u64) -> Result<(), String> {
        let (name, depths) = (self.name, depth::DEPTHS);
        if self.section == traps::SECTION && !depths.contains(&load) {
            return Err(format!("`{name}`: expected a depth of {depths:?}, not {load}"));
        }
        if self.load > 0 && load == 0 {
            return Err(format!("`{name}`: expected a load of 1 or more, not 0"));
        }
        if count == 0 {
            return Err(format!("`{name}`: expected a count of 1 or more, not 0"));
        }
        // There the load is tasks, threads or a batch, each with its part of the count.
        let sections = [tasks::SECTION, threads::SECTION, trace::SECTION];
        let parts = if sections.contains(&self.section) { load } else { 1 };
        if !count.is_multiple_of(parts) {
            return Err(format!("`{name}`: expected a count that {parts} divides, not {count}"));
        }
        Ok(())
    }
}

/// Whether a case has `word` in its name, its figure or its section.
pub fn has(word: &str) -> bool {
    cases().iter().any(|case| case.has(word))
}

/// The figures of all cases.
pub fn figures() -> impl Iterator<Item = &'static str> {
    cases().into_iter().map(|case| case.figure)
}

/// Measures every case with `filter` in its name or figure.
pub fn rows(filter: Option<&str>, quick: bool) -> Vec<Row> {
    let wanted = |case: &Case| filter.is_none_or(|word| case.has(word));
    let rounds = rounds(quick);
    cases().into_iter().filter(wanted).flat_map(|case| measure(&case, rounds)).collect()
}

/// One case: a row for each of its bars, or one without.
fn measure(case: &Case, rounds: usize) -> Vec<Row> {
    out::note(format!("{} ...", case.figure));
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); case.runners.len()];
    let mut doubled = Vec::new();
    for _ in 0..rounds {
        for ((_, runner), samples) in case.runners.iter().zip(&mut samples) {
            samples.push(runner(case.load, case.count));
        }
        if case.load > 0 && case.takes(case.load * 2, case.count).is_ok() {
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
        note: String::new(),
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
    let case = found.ok_or_else(|| format!("no case `{name}`; `bench micro cases` lists them"))?;
    let load = load.unwrap_or(case.load);
    Ok((case, load))
}

/// `PEER CASE COUNT`: runs that and prints nothing.
///
/// # Errors
///
/// An error in the words.
pub fn child(words: &[&str]) -> Result<f64, String> {
    let [peer, name, count] = words else {
        return Err("expected PEER CASE COUNT".to_owned());
    };
    let (case, load) = find(name)?;
    let runner = case.runners.iter().find(|(name, _)| name == peer);
    let list = "`bench micro cases` lists them";
    let (_, runner) = runner.ok_or_else(|| format!("`{name}` has no peer `{peer}`; {list}"))?;
    let count = count.parse().map_err(|_| format!("expected a count, not `{count}`"))?;
    case.takes(load, count)?;
    Ok(runner(load, count))
}

/// Parses the words after `bench micro`.
#[derive(Debug, Default)]
struct Asked<'w> {
    quick: bool,
    json: bool,
    filter: Option<&'w str>,
}

fn parse<'w>(words: &[&'w str]) -> Result<Asked<'w>, String> {
    let mut asked = Asked::default();
    for word in words {
        match *word {
            "--quick" => asked.quick = true,
            "--json" => asked.json = true,
            option if option.starts_with('-') => {
                return Err(format!("no option `{option}`; see --help"));
            }
            word if asked.filter.is_none() => asked.filter = Some(word),
            word => {
                return Err(format!("expected one WORD, or PEER CASE COUNT alone; not `{word}`"));
            }
        }
    }
    match asked.filter {
        Some(word) if !has(word) => {
            Err(format!("no case has `{word}` in its name; `bench micro cases` lists them"))
        }
        _ => Ok(asked),
    }
}

/// The command `bench micro`.
pub fn command(words: &[&str]) -> ExitCode {
    let is_plain = |word: &&str| !word.starts_with('-');
    let done = match words {
        ["cases"] => cases().into_iter().try_for_each(|case| {
            let peers: Vec<&str> = case.runners.iter().map(|(name, _)| *name).collect();
            let (name, load, figure) = (case.name, case.load, case.figure);
            out::say(&format!("{name}:{load} {figure} ({})\n", peers.join(", ")))
        }),
        ["figure", rest @ ..] => memory::figure(rest),
        [_, _, _] if words.iter().all(is_plain) => child(words).map(drop),
        _ => parse(words).and_then(|asked| {
            out::warn_of_debugging();
            let occasion = Occasion::begin(asked.quick);
            let rows = rows(asked.filter, asked.quick);
            match asked.json {
                true => out::say(&json(&occasion.json(), &rows)),
                false => out::say(&(occasion.line() + &table(&rows))),
            }
        }),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            out::note(format!("bench micro: {message}"));
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_a_word_come_in_any_order() {
        let asked = parse(&["--quick", "yield", "--json"]).unwrap();
        assert!(asked.quick && asked.json && asked.filter == Some("yield"));
    }

    #[test]
    fn what_matches_nothing_is_unknown_or_too_much_is_an_error_that_names_it() {
        for (words, named) in [
            (&["nosuch"][..], "`nosuch`"),
            (&["--nosuch"], "`--nosuch`"),
            (&["yield", "spawn"], "`spawn`"),
        ] {
            let error = parse(words).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_load_or_a_count_that_a_case_does_not_take_is_an_error() {
        for words in [
            ["trapline", "answer:3", "10"],
            ["trapline", "spawn_join:0", "10"],
            ["trapline", "yield1000", "100"],
            ["trapline", "wake:3", "200"],
            ["trapline", "rearm", "0"],
            ["trapline", "rearm", "x"],
            ["nosuch", "rearm", "10"],
        ] {
            assert!(child(&words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn every_case_takes_its_own_load_and_count() {
        for case in cases() {
            case.takes(case.load, case.count).unwrap();
        }
    }

    #[test]
    fn every_depth_that_is_taken_can_be_run() {
        for depth in depth::DEPTHS {
            let answer = |name: &str| child(&["trapline", &format!("{name}:{depth}"), "1"]);
            assert!(answer("answer").is_ok());
        }
    }
}
