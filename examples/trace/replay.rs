//! `replay`: runs a record again up to a line, in a debugger if asked for.
//!
//! A program writes the lines of a poll after the poll, so a breakpoint at the line itself would
//! come too late. The tool therefore replays the record once to find the `run` line of that poll.
//! In the debugger, the replay pauses there, and then at the call site that the line names.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitCode, Stdio};

use clap::{Args, ValueEnum};
use kernel::recorded_program;
use trace_tool::model::{Trace, opens};

use crate::input::say;

/// What to replay, and how.
#[derive(Args)]
pub struct Replay {
    /// The record; see `--record` of the examples
    record: PathBuf,
    /// Stop at this line of the log: 120, or '#0120'
    #[arg(long, value_name = "LINE", value_parser = crate::event_number)]
    until: u64,
    /// Stop in this debugger, in the poll that wrote the line
    #[arg(long, value_name = "NAME")]
    debugger: Option<Debugger>,
    /// The program of the record; without it, the program of that name beside this one
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

/// The debuggers whose commands are known.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Debugger {
    Gdb,
    RustGdb,
    Lldb,
    RustLldb,
}

impl Debugger {
    fn command(self) -> &'static str {
        match self {
            Debugger::Gdb => "gdb",
            Debugger::RustGdb => "rust-gdb",
            Debugger::Lldb => "lldb",
            Debugger::RustLldb => "rust-lldb",
        }
    }

    /// Returns the arguments that run a program to its pause at the symbol, and then to the site.
    fn arguments(self, symbol: &str, site: Option<&str>) -> Vec<String> {
        let is_gdb = matches!(self, Debugger::Gdb | Debugger::RustGdb);
        let mut commands = match is_gdb {
            true => vec![format!("break {symbol}"), "run".to_owned()],
            false => vec![format!("breakpoint set -n {symbol}"), "run".to_owned()],
        };
        if let Some((file, line)) = site.and_then(|site| site.rsplit_once(':')) {
            commands.push(match is_gdb {
                true => format!("tbreak {file}:{line}"),
                false => format!("breakpoint set -o true -f {file} -l {line}"),
            });
            commands.push("continue".to_owned());
        }
        let (quiet, each, program) =
            if is_gdb { (Some("-q"), "-ex", "--args") } else { (None, "-o", "--") };
        let commands = commands.into_iter().flat_map(|command| [each.to_owned(), command]);
        quiet.map(str::to_owned).into_iter().chain(commands).chain([program.to_owned()]).collect()
    }
}

fn wrong(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, what)
}

/// Replays a record.
///
/// # Errors
///
/// Returns an error if there is no such record, program, debugger or line.
pub fn replay(what: &Replay) -> io::Result<ExitCode> {
    let named = |error| wrong(format!("{}: {error}", what.record.display()));
    let name = recorded_program(&what.record).map_err(named)?;
    let program = program(what, &name)?;
    let mut arguments: Vec<OsString> = vec!["--replay".into(), what.record.clone().into()];
    arguments.extend(["--until".into(), format!("#{}", what.until).into()]);
    let mut command = Command::new(&program);
    command.args(&arguments);
    if let Some(debugger) = what.debugger {
        let symbol = symbol(&program)?;
        let run = poll(command, what.until)?;
        let site = run.as_ref().and_then(|(_, site)| site.as_deref());
        command = Command::new(debugger.command());
        command.args(debugger.arguments(&symbol, site)).arg(&program).args(&arguments);
        match run {
            Some((run, _)) => {
                command.arg("--pause").arg(format!("#{run}"));
                let until = what.until;
                say(format_args!(
                    "the poll that wrote #{until:04} began at #{run:04}: pausing there"
                ));
            }
            None => say("this line was not written by a poll: pausing at the line"),
        }
    }
    // In place of this process, so that Ctrl-C reaches the debugger alone.
    let shown = command.get_program().display().to_string();
    Err(wrong(format!("cannot run {shown}: {}", command.exec())))
}

/// The program that has made the record.
fn program(what: &Replay, name: &OsStr) -> io::Result<PathBuf> {
    if let Some(path) = &what.program {
        return Ok(path.clone());
    }
    let beside = env::current_exe()?.with_file_name(name);
    let name = name.display();
    let expected = format!("expected `--program PATH`, because there is no {}", beside.display());
    if beside.exists() {
        Ok(beside)
    } else {
        Err(wrong(format!("the record is of {name}: {expected}")))
    }
}

/// The symbol of the function that is called at a pause. A debugger may know it only in its mangled
/// form, which ends with a hash.
fn symbol(program: &Path) -> io::Result<String> {
    const NAME: &[u8] = b"6kernel6record9stop_here";
    let named = |error| wrong(format!("cannot read {}: {error}", program.display()));
    let bytes = fs::read(program).map_err(named)?;
    let found = bytes.windows(NAME.len()).position(|window| window == NAME).ok_or_else(|| {
        let expected = "expected a program with the symbol kernel::record::stop_here";
        wrong(format!("cannot debug {}: {expected}", program.display()))
    })?;
    let is_in = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_$.".contains(byte);
    let before = bytes[..found].iter().rev().take_while(is_in).count();
    let after = bytes[found..].iter().take_while(is_in).count();
    Ok(String::from_utf8_lossy(&bytes[found - before..found + after]).into_owned())
}

/// Replays a record once. Returns the `run` line of the poll that writes the line, and the call
/// site of the line. If the line has none, returns the call site at which the poll resumes.
/// Returns `None` if no poll has written the line.
fn poll(mut command: Command, until: u64) -> io::Result<Option<(u64, Option<String>)>> {
    let log = env::temp_dir().join(format!("trapline-replay-{}.trace", process::id()));
    let ran = command.arg("--trace").arg(&log).stdin(Stdio::null()).output();
    let text = fs::read(&log);
    drop(fs::remove_file(&log));
    let shown = command.get_program().display();
    let ran = ran.map_err(|error| wrong(format!("cannot run {shown}: {error}")))?;
    let trace = Trace::read(text.unwrap_or_default(), |_| {})?;
    let Some(place) = trace.place(until) else {
        let said = String::from_utf8_lossy(&ran.stderr);
        return Err(wrong(format!("the replay does not reach #{until:04}: {}", said.trim())));
    };
    let task = trace.task_of(place);
    let mut own = trace.lines_back(task).skip_while(|each| *each > place);
    // The lines after the end of the last poll belong to no poll.
    let is_end = |each: usize| each < place && ["block", "exit"].contains(&trace.verb(each));
    let run =
        own.by_ref().take_while(|each| !is_end(*each)).find(|each| trace.verb(*each) == "run");
    let Some(run) = run.filter(|run| *run < place) else { return Ok(None) };
    let site = |place: usize| trace.line(place).key("at").map(str::to_owned);
    let resumes = || own.find(|each| opens(&trace.line(*each))).and_then(site);
    Ok(Some((trace.seq(run), site(place).or_else(resumes))))
}
