//! Golden traces: a program runs on the simulated machine, and its log must equal
//! `tests/golden/NAME.trace`.
//!
//! A golden is a trace that parses, with remarks. Lines that start with `# ` are remarks and are
//! not compared. Its sites are not lines of a file: `at=test:3` is the third line of the test,
//! counted from the topmost site in it, so that an edit elsewhere in the file changes nothing.
//! `BLESS=1 cargo test` rewrites the lines that differ and leaves the remarks in place.

pub mod examples;
pub mod kernels;
pub mod limited;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use kernel::{Options, Sim};
use testing::Setup;

/// The result of a program.
#[derive(Debug)]
pub struct Ran<T> {
    /// Main's output.
    pub output: T,
    /// By the kernel clock.
    pub took: Duration,
    /// The whole trace, with sites as in a golden.
    pub trace: String,
}

impl<T> Ran<T> {
    /// Returns how many lines have this verb.
    pub fn count(&self, verb: &str) -> usize {
        self.lines(|line| word_of(line, 5) == verb).len()
    }

    /// Returns the lines that satisfy `wanted`.
    pub fn lines(&self, wanted: impl Fn(&str) -> bool) -> Vec<&str> {
        self.trace.lines().filter(|line| !line.starts_with('#') && wanted(line)).collect()
    }

    /// The names of the tasks that ran in the turn of the first line that contains `text`.
    pub fn runs_in_turn_of(&self, text: &str) -> Vec<&str> {
        let found = self.lines(|line| line.contains(text));
        let turn = word_of(found.first().expect("the trace has such a line"), 1);
        let runs = self.lines(|line| word_of(line, 1) == turn && word_of(line, 5) == "run");
        runs.into_iter().map(|line| word_of(line, 4)).collect()
    }
}

/// The columns are time, turn, number, task, name, verb.
fn word_of(line: &str, column: usize) -> &str {
    line.split_whitespace().nth(column).unwrap_or_default()
}

/// Runs `program` on a kernel over `sim`, shuts down, and checks that nothing is left, that the
/// trace obeys the oracle, and that it is the golden one.
#[track_caller]
pub fn check<F: Future>(name: &str, sim: Sim, program: F) -> Ran<F::Output> {
    check_with(name, sim, options(), program)
}

/// No `longrun` lines, because many programs spend time by hand, and long runs are not their
/// subject.
fn options() -> Options {
    Options::new().longrun(None)
}

/// Checks the trace of a program that runs with those options.
#[track_caller]
pub fn check_with<F: Future>(name: &str, sim: Sim, options: Options, program: F) -> Ran<F::Output> {
    let ran = run(Setup::new().sim(sim).options(options), program);
    compare(name, &ran.trace);
    ran
}

/// Runs a program without a golden trace, because its trace does not matter.
#[track_caller]
pub fn check_quietly<F: Future>(_name: &str, sim: Sim, program: F) -> Ran<F::Output> {
    run(Setup::new().sim(sim).options(options()), program)
}

/// Runs a program in which tasks panic on purpose although no join returns the panic, without a
/// golden trace.
#[track_caller]
pub fn check_with_panics<F: Future>(sim: Sim, options: Options, program: F) -> Ran<F::Output> {
    run(Setup::new().sim(sim).options(options).panics_allowed(), program)
}

#[track_caller]
fn run<F: Future>(setup: Setup, program: F) -> Ran<F::Output> {
    let ran = setup.run(program);
    let trace = with_own_sites(&ran.trace, Location::caller());
    // A failed assertion of a task fails the test, even if a join has returned the panic. (Intended
    // panics have other texts.)
    let failed = trace
        .lines()
        .find(|line| line.contains(" panic    assertion ") || line.contains(" panic    called `"));
    assert_eq!(failed, None, "{trace}");
    Ran { output: ran.output, took: ran.took, trace }
}

// ---- Sites ---------------------------------------------------------------------------------

/// Returns the part before the site in a word such as `at=kernel/tests/all/curio_cases.rs:17`, and
/// the line. `None` for a site in a crate: see [`without_line`].
fn site_in<'a>(word: &'a str, file: &str) -> Option<(&'a str, u32)> {
    let (before, place, line) = site_of(word).filter(|(_, place, _)| !place.contains("/src/"))?;
    assert_eq!(place, file, "a program is written in its test, with its sites");
    Some((before, line.parse().expect("a line is a number")))
}

/// Splits a word that names a site (`at=` or, in a `longrun` line, as in `to=sleep@`) into the part
/// before the site, the file and the line.
fn site_of(word: &str) -> Option<(&str, &str, &str)> {
    let ends = ["at=", "set-at="].into_iter().find(|key| word.starts_with(key)).map(str::len);
    let ends = ends.or_else(|| word.find('@').map(|at| at + 1))?;
    let (before, site) = word.split_at(ends);
    let (place, line) = site.rsplit_once(':').expect("a site has a line");
    Some((before, place, line))
}

/// Returns a site in a crate with line 0, so that an edit of the crate changes no golden.
fn without_line(word: &str) -> Option<String> {
    let (before, place, _) = site_of(word).filter(|(_, place, _)| place.contains("/src/"))?;
    Some(format!("{before}{place}:0"))
}

/// With `test:n` for each site, where line 1 is that of the topmost.
fn with_own_sites(raw: &str, caller: &Location<'_>) -> String {
    let lines = || raw.split_inclusive('\n').filter(|line| !line.starts_with('#'));
    let words = || lines().flat_map(|line| line.split([' ', '\n']));
    let sites = words().filter_map(|word| site_in(word, caller.file()));
    let top = sites.map(|(_, line)| line).min().unwrap_or(1);
    let mut text = String::with_capacity(raw.len());
    for line in raw.lines() {
        let shown: Vec<String> = line
            .split(' ')
            .map(|word| match site_in(word, caller.file()) {
                Some((before, at)) if !line.starts_with('#') => {
                    format!("{before}test:{}", at - top + 1)
                }
                _ => without_line(word).unwrap_or_else(|| word.to_owned()),
            })
            .collect();
        text += &shown.join(" ");
        text.push('\n');
    }
    text
}

// ---- Goldens -------------------------------------------------------------------------------

fn is_remark(line: &str) -> bool {
    line.starts_with("# ") || line == "#"
}

/// The folder of the repository.
pub fn root() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    tests.and_then(Path::parent).expect("this library is two folders below the root")
}

fn path_of(name: &str) -> PathBuf {
    root().join("tests/golden").join(format!("{name}.trace"))
}

/// Compares the trace of a kernel that the test ran by hand, with the sites as they are.
#[track_caller]
pub fn compare_raw(name: &str, raw: &str) {
    compare(name, &with_own_sites(raw, Location::caller()));
}

/// Returns whether tests write the expected results instead of comparing: `BLESS=1`.
pub fn is_blessing() -> bool {
    std::env::var_os("BLESS").is_some_and(|word| word == "1")
}

/// Compares a trace with its golden, or writes it again under `BLESS=1`.
#[track_caller]
pub fn compare(name: &str, trace: &str) {
    let path = path_of(name);
    let golden = fs::read_to_string(&path).ok();
    if is_blessing() {
        let text = match &golden {
            Some(golden) => bless(golden, trace),
            None => trace.to_owned(),
        };
        if golden.as_ref() != Some(&text) {
            fs::write(&path, text).expect("the goldens can be written");
        }
        return;
    }
    let Some(golden) = golden else {
        panic!("there is no tests/golden/{name}.trace; BLESS=1 writes it:\n{trace}");
    };
    if let Err(difference) = difference(&golden, trace) {
        let hint = "`BLESS=1 cargo test -p PACKAGE NAME`, with the name of this test, accepts it";
        panic!("tests/golden/{name}.trace: {difference}\n({hint})");
    }
}

/// Returns the first line in which two traces differ, ignoring remarks.
///
/// # Errors
///
/// The line of both traces.
pub fn difference(golden: &str, trace: &str) -> Result<(), String> {
    let mut golden = golden.lines().filter(|line| !is_remark(line));
    let mut trace = trace.lines().filter(|line| !is_remark(line));
    let mut number = 0;
    loop {
        number += 1;
        let (was, is) = (golden.next(), trace.next());
        if was != is {
            let [was, is] = [was, is].map(|line| line.unwrap_or("(no more lines)"));
            return Err(format!("line {number} differs\n  golden {was}\n  now    {is}"));
        }
        if was.is_none() {
            return Ok(());
        }
    }
}

/// The new trace with the remarks of the old golden, each between its old neighbours.
pub fn bless(golden: &str, trace: &str) -> String {
    let old: Vec<&str> = golden.lines().filter(|line| !is_remark(line)).collect();
    let new: Vec<&str> = trace.lines().filter(|line| !is_remark(line)).collect();
    let twin = twins(&old, &new);
    // Returns the position of remarks: after the twin of the line above, or before the twin of the
    // line below, or after the nearest line above that has a twin.
    let mut remarks: Vec<Vec<&str>> = vec![Vec::new(); new.len() + 1];
    let mut above = 0_usize;
    for line in golden.lines() {
        if !is_remark(line) {
            above += 1;
            continue;
        }
        let behind = |index: &usize| twin[*index].map(|at| at + 1);
        let direct = above.checked_sub(1).map_or(Some(0), |index| behind(&index));
        let before = twin.get(above).copied().flatten();
        let nearest = || (0..above).rev().find_map(|index| behind(&index));
        let place = direct.or(before).or_else(nearest).unwrap_or(0);
        remarks[place].push(line);
    }
    let mut text = String::new();
    for (place, remarks) in remarks.iter().enumerate() {
        for line in remarks.iter().chain(new.get(place)) {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// Returns for each old line the new line that is the same except for event numbers, by a longest
/// common subsequence.
fn twins(old: &[&str], new: &[&str]) -> Vec<Option<usize>> {
    let key = |line: &&str| -> Vec<String> {
        let numbered = |word: &&str| !word.starts_with("#0") && !word.starts_with("cause=");
        line.split_whitespace().filter(numbered).map(str::to_owned).collect()
    };
    let (was, is): (Vec<_>, Vec<_>) =
        (old.iter().map(key).collect(), new.iter().map(key).collect());
    let mut common = vec![vec![0_usize; is.len() + 1]; was.len() + 1];
    for i in (0..was.len()).rev() {
        for j in (0..is.len()).rev() {
            common[i][j] = if was[i] == is[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut twins = vec![None; was.len()];
    while i < was.len() && j < is.len() {
        if was[i] == is[j] {
            twins[i] = Some(j);
            (i, j) = (i + 1, j + 1);
        } else if common[i + 1][j] >= common[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    twins
}

/// Returns the names of all goldens, for the test that none is orphaned. A golden in a folder has
/// a name such as `play/race`.
pub fn goldens() -> BTreeSet<String> {
    fn add(folder: &Path, before: &str, names: &mut BTreeSet<String>) {
        for file in fs::read_dir(folder).expect("the goldens can be listed") {
            let path = file.expect("listed").path();
            let stem = path.file_stem().expect("a name").to_string_lossy();
            let name = format!("{before}{stem}");
            match path.is_dir() {
                true => add(&path, &format!("{name}/"), names),
                false => drop(names.insert(name)),
            }
        }
    }
    let mut names = BTreeSet::new();
    add(path_of("x").parent().expect("it is in a directory"), "", &mut names);
    names
}

/// The text of a golden.
pub fn golden(name: &str) -> String {
    fs::read_to_string(path_of(name)).expect("it was listed")
}

// ---- Helpers of tests -----------------------------------------------------------------------

/// The time this many tenths of a second after the start.
pub fn at(tenth: u64) -> traps::Time {
    traps::Time::ZERO + tenths(tenth)
}

/// An operation that takes this many tenths of a second.
#[track_caller]
pub fn op(n: u64) -> traps::Sleep {
    traps::sleep(tenths(n))
}

/// Tenths of a second, the unit of the cases.
pub fn tenths(n: u64) -> Duration {
    Duration::from_millis(100 * n)
}

/// Milliseconds.
pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A list that tasks of one test append to.
#[derive(Clone, Debug, Default)]
pub struct Notes(Rc<RefCell<Vec<String>>>);

impl Notes {
    /// Appends.
    pub fn add(&self, note: impl Into<String>) {
        self.0.borrow_mut().push(note.into());
    }

    /// All notes in one line.
    pub fn text(&self) -> String {
        self.0.borrow().join(" ")
    }
}

/// The short name of an outcome: `ok`, `TT`, `TCE`, `UTE` or `CAN`.
pub fn short<T, E: traps::Interruptible>(result: &Result<T, E>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(error) => error.interrupt().map_or("other", |why| short_kind(why.kind())),
    }
}

/// The short name of an interrupt.
pub fn short_kind(kind: traps::Kind) -> &'static str {
    match kind {
        traps::Kind::TaskTimeout => "TT",
        traps::Kind::TimeoutCancellation => "TCE",
        traps::Kind::UncaughtTimeout => "UTE",
        traps::Kind::Cancelled => "CAN",
    }
}
