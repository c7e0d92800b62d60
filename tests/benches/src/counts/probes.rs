//! Counted work: each probe runs a pair of lengths of one kind of work.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::drive::{Talk, Work};
use super::file::Mode;
use super::server::{Server, count_program};
use super::tools::{Counted, Tool, on_all_cores};
use crate::out;

/// A count that a probe found.
#[derive(Clone, Debug)]
pub struct Found {
    pub name: String,
    pub count: u64,
    pub mode: Mode,
    /// Whether it is the same each time, because the program runs alone.
    pub repeats: bool,
}

const INSTRUCTIONS: &str = "instructions";
const PACKING: &str = "packing";
const FILES: &str = "files";
const ALLOCATIONS: &str = "allocations_per_100";
const CALLS: &str = "calls_per_100";
const EPOLL_CTL: &str = "epoll_ctl_per_100";

impl Found {
    pub fn is_instructions(&self) -> bool {
        self.name.ends_with(INSTRUCTIONS) || self.name.ends_with(PACKING)
    }
}

/// Work that is counted by one tool.
pub struct Probe {
    name: &'static str,
    tool: Tool,
    kind: Kind,
}

enum Kind {
    /// A case of `bench micro`, with two counts.
    Case { case: &'static str, counts: [u64; 2] },
    /// Sleeps on the simulated machine, two counts of them.
    Sleeps { counts: [u64; 2] },
    /// A server, with two lengths of a client's work.
    Served { server: Server, short: Work, long: Work },
    /// Two servers and one client's work: the additional cost of the first.
    Beside { servers: [Server; 2], short: Work, long: Work },
}

/// Two lengths: the first is warm, and the second long enough.
const CASE: [u64; 2] = [10_000, 20_000];

/// The cases that use real time.
const BY_TIME: [&str; 4] = ["trace_memory", "timeout", "flight_yield", "flight_mutex"];

/// `(name, case of bench micro, allocations too)`.
const CASES: [(&str, &str, bool); 15] = [
    ("answer", "answer", true),
    ("answer5", "answer5", false),
    ("clock", "clock", false),
    ("block", "block", true),
    ("yield1000", "yield1000", false),
    ("spawn_join", "spawn_join", true),
    ("spawn_join1000", "spawn_join1000", true),
    ("timeout", "timeout", true),
    ("rearm", "rearm", true),
    ("rearm_another", "rearm_another", false),
    ("guard", "guard", true),
    ("arm_cancel", "arm_cancel:1000", true),
    ("traced_yield", "trace_memory", true),
    ("flight_yield", "flight_yield", true),
    ("flight_mutex", "flight_mutex", true),
];

/// All probes, in the order of the file.
pub fn all() -> Result<Vec<Probe>, String> {
    let mut all = Vec::new();
    for (name, case, allocations) in CASES {
        // A thousand tasks are started and ended in both lengths.
        let counts = if case.ends_with("1000") { [50_000, 100_000] } else { CASE };
        let kind = || Kind::Case { case, counts };
        all.push(Probe { name, tool: Tool::Callgrind, kind: kind() });
        if allocations {
            all.push(Probe { name, tool: Tool::Memcheck, kind: kind() });
        }
    }
    let kind = Kind::Sleeps { counts: [1_000, 2_000] };
    all.push(Probe { name: "sleep", tool: Tool::Files, kind });
    all.push(timeouts()?);
    let [http, echo] = examples();
    all.extend(served(&http, Talk::Http, ["http", "http_one", "http_conn", "http_close"]));
    all.push(piped("http_piped", http.clone()));
    all.extend(served(&echo, Talk::Echo, ["echo", "echo_one", "echo_conn", "echo_close"]));
    all.extend(recorded("flight_http", http, Talk::Http));
    all.extend(recorded("flight_echo", echo, Talk::Echo));
    all.extend(small_program()?);
    Ok(all)
}

/// The peers' small program on trapline, which this program serves. Except for one count, all its
/// phases are under a deadline.
fn small_program() -> Result<Vec<Probe>, String> {
    let serve = |more: &[&str]| -> Result<Server, String> {
        let mut server = this_program_serves(crate::servers::SMALL)?;
        server.args.extend(more.iter().copied().map(str::to_owned));
        Ok(server)
    };
    let redis = this_program_serves(crate::servers::REDIS[0])?;
    let (armed, bare) = (serve(&["--deadlines"])?, serve(&[])?);
    let mut all = served(&armed, Talk::Http, ["small", "small_one", "small_conn", "small_close"]);
    all.push(piped("small_piped", armed));
    all.push(keep_alive("small_no_deadlines", bare, Talk::Http));
    all.push(keep_alive("small_echo", serve(&["--echo", "--deadlines"])?, Talk::Echo));
    all.push(keep_alive("redis", redis, Talk::Redis));
    Ok(all)
}

/// A server of this program.
pub fn this_program_serves(name: &str) -> Result<Server, String> {
    let args = ["serve", name].map(str::to_owned).to_vec();
    Ok(Server { program: this_program()?, args, is_example: false })
}

/// The cost of a timeout around each read in an echo, with 64 connections.
fn timeouts() -> Result<Probe, String> {
    let serve = |more: &[&str]| -> Result<Server, String> {
        let words = ["counts", "echo"].into_iter().chain(more.iter().copied());
        let (program, args) = (this_program()?, words.map(str::to_owned).collect());
        Ok(Server { program, args, is_example: false })
    };
    let servers = [serve(&["--timeouts"])?, serve(&[])?];
    let work = |rounds| Work { talk: Talk::Echo, connections: 64, depth: 1, rounds };
    let kind = Kind::Beside { servers, short: work(10), long: work(60) };
    Ok(Probe { name: "timeout_read", tool: Tool::Callgrind, kind })
}

/// The instructions of 16 questions in one write, of 64 connections.
fn piped(name: &'static str, server: Server) -> Probe {
    let work = |rounds| Work { talk: Talk::Http, connections: 64, depth: 16, rounds };
    let kind = Kind::Served { server, short: work(5), long: work(15) };
    Probe { name, tool: Tool::Callgrind, kind }
}

/// The instructions of a question, of 64 connections.
fn keep_alive(name: &'static str, server: Server, talk: Talk) -> Probe {
    let work = |rounds| Work { talk, connections: 64, depth: 1, rounds };
    let kind = Kind::Served { server, short: work(10), long: work(60) };
    Probe { name, tool: Tool::Callgrind, kind }
}

/// The counts of a question of 64 connections with the flight recorder on, and the instructions of
/// the recorder alone. The ring is so large that no segment is full: the heads of segments are
/// counted in the cases of `bench micro`.
fn recorded(name: &'static str, mut server: Server, talk: Talk) -> Vec<Probe> {
    server.args.extend(["--flight", "4m"].map(str::to_owned));
    let work = |rounds| Work { talk, connections: 64, depth: 1, rounds };
    let probe = |tool| {
        let kind = Kind::Served { server: server.clone(), short: work(10), long: work(60) };
        Probe { name, tool, kind }
    };
    [Tool::Callgrind, Tool::Packing, Tool::Memcheck].map(probe).into()
}

/// The counts of each server: a question of 64 connections, and of one; a connection that
/// asks four times, with others at the same time; and one that asks once, alone.
fn served(server: &Server, talk: Talk, names: [&'static str; 4]) -> Vec<Probe> {
    use Tool::{Callgrind, Memcheck, Strace};
    let [many, one, conn, close] = names;
    let probe = |name, tool, [short, long]: [Work; 2]| {
        let kind = Kind::Served { server: server.clone(), short, long };
        Probe { name, tool, kind }
    };
    let work = |connections, rounds| Work { talk, connections, depth: 1, rounds };
    let of_many = [Callgrind, Memcheck, Strace].map(|tool| (many, tool, [(64, 10), (64, 60)]));
    let of_conn = [Memcheck, Strace].map(|tool| (conn, tool, [(32, 3), (96, 3)]));
    let of_close = [Callgrind, Memcheck, Strace].map(|tool| (close, tool, [(100, 0), (300, 0)]));
    let all = of_many.into_iter().chain([(one, Strace, [(1, 100), (1, 300)])]);
    let all = all.chain(of_conn).chain(of_close);
    all.map(|(name, tool, lengths)| probe(name, tool, lengths.map(|(n, r)| work(n, r)))).collect()
}

impl Probe {
    /// The names of its counts.
    pub fn names(&self) -> Vec<String> {
        let what: &[&str] = match self.tool {
            Tool::Callgrind => &[INSTRUCTIONS],
            Tool::Packing => &[PACKING],
            Tool::Files => &[FILES],
            Tool::Memcheck => &[ALLOCATIONS],
            Tool::Strace => &[CALLS, EPOLL_CTL],
        };
        what.iter().map(|what| format!("{}.{what}", self.name)).collect()
    }

    /// Whether it counts a server that is an example.
    fn is_of_an_example(&self) -> bool {
        matches!(&self.kind, Kind::Served { server, .. } if server.is_example)
    }

    /// Counts both lengths.
    pub fn take(&self) -> Result<Vec<Found>, String> {
        match &self.kind {
            Kind::Case { case, counts: [few, many] } => {
                let this = this_program()?;
                let count = |count| count_case(self.tool, &this, case, count);
                Ok(self.found(&count(*few)?, &count(*many)?, many - few))
            }
            Kind::Sleeps { counts: [few, many] } => {
                let this = this_program()?;
                let count = |n: &u64| {
                    count_program(self.tool, &this, &["counts", "sleeps", &n.to_string()])
                };
                Ok(self.found(&count(few)?, &count(many)?, many - few))
            }
            Kind::Served { server, short, long } => {
                let count = |work| server.count(self.tool, work);
                Ok(self.found(&count(short)?, &count(long)?, questions(short, long)))
            }
            Kind::Beside { servers: [with, without], short, long } => {
                let count = |work| -> Result<Counted, String> {
                    let (with, without) =
                        (with.count(self.tool, work)?, without.count(self.tool, work)?);
                    Ok(Counted::of(with.all.saturating_sub(without.all)))
                };
                Ok(self.found(&count(short)?, &count(long)?, questions(short, long)))
            }
        }
    }

    /// A program that runs alone does the same each time, except for its use of real time: as text,
    /// or in the position of a tick of the timers. For a server, the date of a second and the order
    /// of two simultaneous arrivals differ too.
    fn mode(&self) -> Mode {
        match &self.kind {
            Kind::Case { case, .. } if !BY_TIME.contains(case) => Mode::Most,
            Kind::Sleeps { .. } => Mode::Most,
            _ => Mode::Near,
        }
    }

    /// Whether the longer one has more connections at the same time.
    fn grows(&self) -> bool {
        let Kind::Served { short, long, .. } = &self.kind else { return false };
        long.rounds > 0 && long.connections > short.connections
    }

    fn found(&self, few: &Counted, many: &Counted, times: u64) -> Vec<Found> {
        let each = |few: u64, many: u64, of: u64| {
            let more = many.saturating_sub(few) * of;
            (more + times / 2) / times
        };
        let found = |what: &str, mode, count| {
            let name = format!("{}.{what}", self.name);
            let repeats = matches!(self.kind, Kind::Case { .. } | Kind::Sleeps { .. });
            Found { name, mode, count, repeats }
        };
        let all = |of| each(few.all, many.all, of);
        match self.tool {
            Tool::Callgrind => vec![found(INSTRUCTIONS, self.mode(), all(1))],
            Tool::Packing => vec![found(PACKING, self.mode(), all(1))],
            // Leave out the files whose code runs only sometimes.
            Tool::Files => {
                let is_ours =
                    |name: &str| ["traps/src/", "kernel/src/"].iter().any(|it| name.contains(it));
                let runs = |(name, many): (&String, &u64)| {
                    is_ours(name) && many - few.named(name) >= times
                };
                let count = many.by_name.iter().filter(|it| runs(*it)).count();
                vec![found(FILES, self.mode(), count as u64)]
            }
            // Per hundred, like the next, so that shared costs are visible. Tables grow as
            // connections arrive.
            Tool::Memcheck => {
                let mode = if self.grows() { Mode::Most } else { Mode::Exact };
                vec![found(ALLOCATIONS, mode, all(100))]
            }
            Tool::Strace => {
                let name = "epoll_ctl";
                let epoll = each(few.named(name), many.named(name), 100);
                vec![found(CALLS, Mode::Exact, all(100)), found(EPOLL_CTL, Mode::Exact, epoll)]
            }
        }
    }
}

/// How many more questions the longer work has, or how many more connections if these differ.
fn questions(short: &Work, long: &Work) -> u64 {
    let more = match long.connections - short.connections {
        0 => long.connections * (long.rounds - short.rounds) * long.depth,
        more => more,
    };
    more as u64
}

fn this_program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("this program: {error}"))
}

fn count_case(tool: Tool, program: &Path, case: &str, count: u64) -> Result<Counted, String> {
    count_program(tool, program, &["micro", crate::micro::OURS, case, &count.to_string()])
}

/// Builds the servers `http` and `echo` as a user would, if one of the probes is of them.
pub fn build(probes: &[Probe]) -> Result<(), String> {
    if !probes.iter().any(Probe::is_of_an_example) {
        return Ok(());
    }
    let built = testing::child::cargo()
        .current_dir(project())
        .args(["build", "--quiet", "--release", "--locked", "-p", "trapline-servers"])
        .args(["--example", "http", "--example", "echo", "--target-dir", "target"])
        .status();
    let built = built.map_err(|error| format!("cargo: {error}"))?;
    if !built.success() {
        return Err("the examples `http` and `echo` do not build".to_owned());
    }
    Ok(())
}

/// The servers `http` and `echo`.
fn examples() -> [Server; 2] {
    ["http", "echo"].map(|name| {
        let args = ["--addr", "127.0.0.1:0"].map(str::to_owned).to_vec();
        let program = project().join("target/release/examples").join(name);
        Server { program, args, is_example: true }
    })
}

/// The folder of the project.
fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Checks that this program is a bench without a trace, which has no cases of the trace.
fn has_no_trace(program: &Path) -> Result<(), String> {
    let listed = Command::new(program).args(["micro", "cases"]).output();
    let listed = listed.map_err(|error| format!("{}: {error}", program.display()))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let has = |case: &str| listed.lines().any(|line| line.starts_with(case));
    if !has("trace_off:") {
        return Err(format!("{} is no bench", program.display()));
    }
    if has("trace_memory:") {
        let how = "build it with --no-default-features";
        return Err(format!("{} has a trace: {how}", program.display()));
    }
    Ok(())
}

/// How much more a build with the trace, switched off, may count than one without: 2 %.
const TRACE_OFF: f64 = 1.02;

/// Compares this build, with its trace off, with one without a trace.
pub fn compare_trace(without: &Path) -> Result<bool, String> {
    if cfg!(not(feature = "trace")) {
        return Err("this program has no trace either: there is nothing to compare".to_owned());
    }
    has_no_trace(without)?;
    let this = this_program()?;
    out::say(&format!("{:<20} {:>8} {:>8} {:>7}\n", "instructions", "with", "without", "ratio"))?;
    let compare = |(name, case, _): &(&str, &str, bool)| {
        let [few, many] = if case.ends_with("1000") { [50_000, 100_000] } else { CASE };
        let each = |program: &Path| -> Result<f64, String> {
            let count = |count| count_case(Tool::Callgrind, program, case, count);
            let more = count(many)?.all.saturating_sub(count(few)?.all);
            Ok(more as f64 / (many - few) as f64)
        };
        let (with, without) = (each(&this)?, each(without)?);
        let ratio = with / without;
        let verdict = if ratio <= TRACE_OFF { "ok" } else { "FAILS: more than 2 %" };
        out::say(&format!("{name:<20} {with:>8.1} {without:>8.1} {ratio:>7.3}  {verdict}\n"))?;
        Ok(ratio <= TRACE_OFF)
    };
    let is_traced = |name: &str| ["traced", "flight"].iter().any(|it| name.starts_with(it));
    let untraced = CASES.iter().filter(|(name, ..)| !is_traced(name));
    let kept = on_all_cores(&untraced.copied().collect::<Vec<_>>(), compare)?;
    Ok(kept.into_iter().all(|kept| kept))
}
