//! Runs a program on a kernel, and keeps its log.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;
#[cfg(unix)]
use std::time::Instant;

#[cfg(unix)]
use kernel::Real;
use kernel::{Kernel, Machine, Sim};
use testing::{Liberty, Text};
use traps::internal::liberty::explored;

use super::Problem;
use super::frame::Variables;
use super::program::Program;
use super::statements::task;
use super::world::World;

/// What a run leaves.
#[derive(Debug, Default)]
pub struct Ran {
    /// The log. Its sites are lines of `program`. Empty if it was written during the run.
    pub log: String,
    /// What went wrong, and in which lines of the program.
    pub problems: Vec<Problem>,
    /// The kernel's report, if all tasks waited forever.
    pub report: Option<String>,
    /// The line of the program for each `note` and `notify` line of the log, by the number of that
    /// event. These lines have no `at=`.
    pub lines: BTreeMap<u64, usize>,
}

/// Runs a program on the simulated machine: the same log on each machine.
#[must_use]
pub fn run(program: Program) -> Ran {
    run_simulated(program, false)
}

/// Runs a program as [`run`] does. Its log also says how long each run of a task took, so that a
/// timeline can draw what `spin` uses. It has one event more, `boot`, at its beginning.
#[must_use]
pub fn run_timed(program: Program) -> Ran {
    run_simulated(program, true)
}

fn run_simulated(program: Program, is_timed: bool) -> Ran {
    let late = Duration::from_millis(program.late);
    let sim = Sim::new().seed(program.seed).late_by(late);
    let clock = sim.clock();
    let mut kernel = Kernel::new(sim);
    if is_timed {
        kernel.time_the_trace();
    }
    let text = Text::default();
    let (mut ran, sites) = run_on(kernel, move |span| clock.advance(span), program, text.clone());
    ran.log = text.take();
    ran.lines = numbered(&ran.log, sites);
    ran
}

/// Runs a program on this machine and its clock. `late` has no effect. The log goes to `out` while
/// the program runs, so the result has none.
///
/// # Errors
///
/// Returns an error if the operating system refuses a poller.
#[cfg(unix)]
pub fn run_real(program: Program, out: impl Write + 'static) -> io::Result<Ran> {
    let spin = |span| {
        let start = Instant::now();
        while start.elapsed() < span {}
    };
    Ok(run_on(Kernel::new(Real::new()?), spin, program, out).0)
}

/// Runs a program, with its log to `out`. Returns the lines of its `note` and `notify` calls too.
fn run_on<M: Machine>(
    mut kernel: Kernel<M>,
    spin: impl Fn(Duration) + 'static,
    program: Program,
    out: impl Write + 'static,
) -> (Ran, Vec<usize>) {
    let (seed, site) = (program.seed, Location::caller());
    let main = format!("{}:{}", site.file(), site.line());
    let with_sites =
        move |text: &str| text.replace(&table(), "program:").replace(&main, "program:1");
    // Without this remark a checker expects first come, first served.
    let remark = (seed != 0).then(|| format!("# explored seed={seed} liberties=order\n"));
    kernel.trace_to(Lines { out, remark, rest: Vec::new(), changed: with_sites.clone() });
    let world = Rc::new(World::new(&program, spin));
    let main = task("main".to_owned(), Variables::new(), Rc::new(program.main), world.clone());
    let run = || {
        let ended = kernel.run_from(main, site);
        // If the run has failed, so does the shutdown, and the first report is the better one.
        let _ = kernel.shutdown();
        ended
    };
    let ended = if seed == 0 { run() } else { explored(drawn_order(seed), run) };
    let (problems, sites) = world.take();
    let report = ended.err().map(|error| with_sites(&error.to_string()));
    (Ran { problems, report, ..Ran::default() }, sites)
}

/// Writes each line to `out` as soon as it is whole, changed, and a remark after the first.
struct Lines<W, F> {
    out: W,
    remark: Option<String>,
    /// The beginning of the next line.
    rest: Vec<u8>,
    changed: F,
}

impl<W: Write, F: Fn(&str) -> String> Write for Lines<W, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = (self.changed)(&String::from_utf8_lossy(&line));
            self.out.write_all(line.as_bytes())?;
            self.out.write_all(self.remark.take().unwrap_or_default().as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The path of the table of lines, as sites have it. See `statements.rs`.
fn table() -> String {
    file!().replace("run.rs", "program:")
}

/// Finds the number of each `note` and `notify` line in the log. `sites` has the line of the
/// program for each, in the same order.
fn numbered(log: &str, sites: Vec<usize>) -> BTreeMap<u64, usize> {
    let events = log.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        // Time, turn, number, task, name, verb.
        let words: Vec<_> = line.split_whitespace().take(6).collect();
        matches!(words[5], "note" | "notify").then(|| words[2][1..].parse().ok())?
    });
    events.zip(sites).collect()
}

/// Draws which ready task is next. All other choices are the usual ones.
///
/// This is what `testing::explore` does with `only(&[Liberty::Order])`, but that is for programs
/// that must not fail: it runs a program without a seed first, and refuses one that hangs. So this
/// calls the function below it, which is not public.
fn drawn_order(seed: u64) -> Rc<dyn Fn(Liberty, u64) -> u64> {
    let state = Cell::new(seed);
    Rc::new(move |liberty, most| {
        if liberty != Liberty::Order {
            return 0;
        }
        // SplitMix64.
        state.set(state.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut z = state.get();
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % (most + 1)
    })
}
