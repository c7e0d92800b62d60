//! trapline next to its peers; see `bench --help`.

mod beside;
mod counts;
mod load;
mod measure;
mod micro;
mod occasion;
mod out;
mod report;
mod servers;
mod summary;
mod sys;
mod tied;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

const HELP: &str = "\
bench [OPTION]...             measure, print one table, write the same as JSON
  --quick                     3 rounds of a quarter of a second, instead of 11 of a second
  --counts                    count instructions and system calls too (valgrind, strace)
  --counts-only               and measure nothing else
  --wrk                       a cross-check by wrk
  --only TEXT                 figures whose name is TEXT or, if there is none, contains it
  --peers NAME,NAME...        servers alone: these, beside the floor and trapline's own, which
                              always run
  --json FILE                 where the JSON goes (bench.json)
bench figures                 the names of all figures
bench serve SERVER [--deadlines] [--echo] [--core N] [--addr ADDR]
                              one server, until it is killed
bench load ADDR [--kind http|pipe|close|echo] [--connections N] [--requests R] [--seconds S]
                              one load, its answers a second
bench micro [--quick] [--json] [WORD]
                              the small operations, beside peers; only those with WORD
bench micro PEER CASE COUNT   one of them, silently, for a tool that counts instructions;
                              CASE is a name, or NAME:LOAD
bench micro cases             the names of all peers and cases
bench counts [--write] [WORD] what does not wander, beside counts.txt; --write writes it anew;
                              only those with WORD
bench counts --list           the names of all counts
bench counts --without-trace PROGRAM
                              this build with its trace off, beside a bench without a trace
bench counts redis-beside     the example `redis` beside the same program on tokio: instructions
                              and CPU of a GET
bench help                    this; also --help or -h, behind each of them
";

type Words<'w> = std::slice::Iter<'w, String>;

/// The word after an option, or an error that says what was expected.
fn value<T: FromStr>(option: &str, expected: &str, words: &mut Words<'_>) -> Result<T, String> {
    let word = words.next().ok_or_else(|| format!("{option}: expected {expected} after it"))?;
    word.parse().map_err(|_| format!("{option}: expected {expected}, not `{word}`"))
}

/// The number after an option; 0 is an error.
fn number(option: &str, words: &mut Words<'_>) -> Result<u64, String> {
    let expected = "a number, 1 or more";
    match value(option, expected, words)? {
        0 => Err(format!("{option}: expected {expected}, not `0`")),
        number => Ok(number),
    }
}

const ADDR: &str = "an IP address and a port, such as 127.0.0.1:8080";

fn serve(words: &mut Words<'_>) -> Result<(), String> {
    let name: String = value("serve", "the name of a server", words)?;
    let server = servers::named(&name)?;
    let mut how = servers::How { deadlines: false, echo: false };
    let mut addr = SocketAddr::from(([127, 0, 0, 1], 0));
    while let Some(word) = words.next() {
        match word.as_str() {
            "--deadlines" => how.deadlines = true,
            "--echo" => how.echo = true,
            "--addr" => addr = value(word, ADDR, words)?,
            "--core" => {
                let expected = format!("a core, 0 to {}", sys::cores() - 1);
                let core = value(word, &expected, words)?;
                if core >= sys::cores() {
                    return Err(format!("{word}: expected {expected}, not `{core}`"));
                }
                sys::pin(core).map_err(|error| format!("{word} {core}: {error}"))?;
            }
            other => return Err(format!("no option `{other}`; see --help")),
        }
    }
    if how.echo && !server.echoes {
        return Err(format!("{name} serves HTTP alone"));
    }
    servers::serve(server, how, addr).map_err(|error| format!("{name} at {addr}: {error}"))
}

fn load(words: &mut Words<'_>) -> Result<(), String> {
    let addr: SocketAddr = value("load", ADDR, words)?;
    let (mut kind, mut connections) = (load::Kind::Http, 64);
    let (mut requests, mut seconds) = (u64::MAX / 2, 10);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--kind" => kind = load::Kind::named(&value::<String>(word, load::KINDS, words)?)?,
            "--connections" => connections = number(word, words)? as usize,
            "--requests" => requests = number(word, words)?,
            "--seconds" => seconds = number(word, words)?,
            other => return Err(format!("no option `{other}`; see --help")),
        }
    }
    let span = Duration::from_secs(seconds);
    let clients = load::Load::connect(addr, kind, connections);
    let done = clients.and_then(|mut clients| clients.run(requests, span));
    let done = done.map_err(|error| format!("{addr}: {error}"))?;
    let rate = done.answers as f64 / done.seconds;
    out::say(&format!("{} answers in {:.3} s: {rate:.0} a second\n", done.answers, done.seconds))
}

/// Whether the words ask for the help, after any command.
fn asks_for_help(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let named = matches!(words[..], ["help", ..] | ["micro" | "counts" | "serve" | "load", "help"]);
    named || words.iter().any(|word| ["--help", "-h"].contains(word))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rest = || words.iter().skip(1).map(String::as_str).collect::<Vec<_>>();
    let done = match words.first().map(String::as_str) {
        Some(command) if command != "tied" && asks_for_help(&words) => out::say(HELP),
        Some("micro") => return micro::command(&rest()),
        Some("counts") => return counts::command(&rest()),
        Some("serve") => serve(&mut words[1..].iter()),
        Some("load") => load(&mut words[1..].iter()),
        // Not in the help: a bench starts the processes that must end with it by this command.
        Some("tied") => tied::become_program(&rest()),
        Some("figures") => measure::figures(&rest()),
        _ => measure::measure(&mut words.iter()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out::note(format!("bench: {error}"));
            ExitCode::FAILURE
        }
    }
}
