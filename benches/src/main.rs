//! trapline beside its peers. `bench --help` says how.

mod beside;
mod counts;
mod load;
mod micro;
mod report;
mod servers;
mod sys;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use beside::{Asked, memory, speed};
use report::Row;

const HELP: &str = "\
bench [OPTION]...             measure, print one table, write the same as JSON
  --quick                     3 rounds of a quarter of a second, instead of 11 of a second
  --counts                    count instructions and system calls too (valgrind, strace)
  --counts-only               and measure nothing else
  --wrk                       a cross-check by wrk
  --only TEXT                 figures whose name contains it
  --peers NAME,NAME...        these servers (the floor always runs)
  --json FILE                 where the JSON goes (bench.json)
bench serve SERVER [--deadlines] [--echo] [--core N] [--with-parent] [--addr ADDR]
                              one server, until it is killed
bench load ADDR [--kind http|pipe|close|echo] [--connections N] [--requests R] [--seconds S]
                              one load, its answers a second
bench micro [--quick] [--json] [WORD]
                              the small operations, beside peers; only those with WORD
bench micro PEER CASE COUNT   one of them, silently, for a tool that counts instructions
bench micro cases             the names of all peers and cases
bench counts [--write] [WORD] what does not wander, beside counts.txt; --write writes it anew
bench counts --without-trace PROGRAM
                              this build with its trace off, beside a bench without a trace
";

type Words<'w> = std::slice::Iter<'w, String>;

/// The word after an option.
fn value<T: FromStr>(option: &str, words: &mut Words<'_>) -> Result<T, String> {
    let word = words.next().ok_or_else(|| format!("{option} wants a value"))?;
    word.parse().map_err(|_| format!("{option}: `{word}` is none"))
}

fn serve(words: &mut Words<'_>) -> Result<(), String> {
    let name: String = value("serve", words)?;
    let server = servers::SERVERS.iter().find(|server| server.name == name);
    let server = server.ok_or_else(|| format!("no server `{name}`"))?;
    let mut how = servers::How { deadlines: false, echo: false };
    let mut addr = SocketAddr::from(([127, 0, 0, 1], 0));
    while let Some(word) = words.next() {
        match word.as_str() {
            "--deadlines" => how.deadlines = true,
            "--echo" => how.echo = true,
            "--addr" => addr = value(word, words)?,
            // For a run that was broken off: it leaves nobody behind.
            "--with-parent" => sys::end_with_parent().map_err(|error| error.to_string())?,
            "--core" => sys::pin(value(word, words)?).map_err(|error| error.to_string())?,
            other => return Err(format!("no option `{other}`")),
        }
    }
    if how.echo && !server.echoes {
        return Err(format!("{name} serves HTTP alone"));
    }
    servers::serve(server, how, addr).map_err(|error| format!("{name}: {error}"))
}

fn load(words: &mut Words<'_>) -> Result<(), String> {
    let addr = value("load", words)?;
    let (mut kind, mut connections) = (load::Kind::Http, 64);
    let (mut requests, mut seconds) = (u64::MAX / 2, 10);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--kind" => kind = load::Kind::named(&value::<String>(word, words)?)?,
            "--connections" => connections = value(word, words)?,
            "--requests" => requests = value(word, words)?,
            "--seconds" => seconds = value(word, words)?,
            other => return Err(format!("no option `{other}`")),
        }
    }
    let span = Duration::from_secs(seconds);
    let clients = load::Load::connect(addr, kind, connections);
    let done = clients.and_then(|mut clients| clients.run(requests, span));
    let done = done.map_err(|error| error.to_string())?;
    let rate = done.answers as f64 / done.seconds;
    println!("{} answers in {:.3} s: {rate:.0} a second", done.answers, done.seconds);
    Ok(())
}

/// What is to be measured, and where the JSON goes.
struct Command {
    asked: Asked,
    timed: bool,
    counted: bool,
    wrk: bool,
    json: String,
}

fn command(words: &mut Words<'_>) -> Result<Command, String> {
    let asked = Asked { quick: false, only: None, peers: Vec::new() };
    let json = "bench.json".to_owned();
    let mut found = Command { asked, timed: true, counted: false, wrk: false, json };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => found.asked.quick = true,
            "--counts" => found.counted = true,
            "--counts-only" => (found.counted, found.timed) = (true, false),
            "--wrk" => found.wrk = true,
            "--only" => found.asked.only = Some(value(word, words)?),
            "--json" => found.json = value(word, words)?,
            "--peers" => {
                let names: String = value(word, words)?;
                found.asked.peers = names.split(',').map(str::to_owned).collect();
                for name in &found.asked.peers {
                    let known = servers::SERVERS.iter().any(|server| server.name == name);
                    known.then_some(()).ok_or_else(|| format!("no server `{name}`"))?;
                }
            }
            other => return Err(format!("no option `{other}`; see --help")),
        }
    }
    Ok(found)
}

fn measure(words: &mut Words<'_>) -> Result<(), String> {
    let Command { asked, timed, counted, wrk, json } = command(words)?;
    let say = |error: std::io::Error| error.to_string();
    sys::raise_descriptors().map_err(say)?;
    let mut rows: Vec<Row> = Vec::new();
    if timed && asked.peers.is_empty() {
        // Before this thread is pinned: what these start would be pinned with it.
        rows.extend(micro::rows(asked.only.as_deref(), asked.quick));
    }
    // The load, and whatever measures, on the first core; servers on the last.
    sys::pin(0).map_err(say)?;
    if sys::cores() < 2 {
        eprintln!("one core alone: the load and the server share it, so the times mean little");
    }
    if counted {
        rows.extend(beside::counts::rows(&asked));
    }
    if timed {
        rows.extend(memory::rows(&asked).map_err(say)?);
        rows.extend(speed::rows(&asked).map_err(say)?);
    }
    let order = |row: &Row| {
        let sections = ["Instructions in user space", "System calls", "Memory"];
        sections.iter().position(|name| *name == row.section).unwrap_or(sections.len())
    };
    rows.sort_by_key(|row| (order(row), row.section));
    print!("{}", report::table(&rows));
    if wrk {
        print!("{}", beside::wrk::table(&asked).map_err(say)?);
    }
    std::fs::write(&json, report::json(&rows)).map_err(|error| format!("{json}: {error}"))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rest = || words.iter().skip(1).map(String::as_str).collect::<Vec<_>>();
    let done = match words.first().map(String::as_str) {
        Some("micro") => return micro::command(&rest()),
        Some("counts") => return counts::command(&rest()),
        Some("--help") => {
            print!("{HELP}");
            Ok(())
        }
        Some("serve") => serve(&mut words[1..].iter()),
        Some("load") => load(&mut words[1..].iter()),
        _ => measure(&mut words.iter()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
