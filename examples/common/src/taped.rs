//! `--record`, `--replay` and `--until`: a server that records its run, or runs a record again.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use kernel::{Kernel, Options, Record, Taped, recorded_command, recorded_program};

use super::{Common, complain, fail};

/// The options of a run with a record.
#[derive(clap::Args, Clone, Debug)]
pub struct Tape {
    /// Record the run in FILE, with the log if --trace asks for one
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Run the record in FILE again, with the options that it was made with
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    replay: Option<PathBuf>,
    /// Stop the replay at this line of the log, and print the tasks
    #[arg(long, value_name = "LINE", requires = "replay", value_parser = line)]
    until: Option<u64>,
    /// Call `kernel::record::stop_here` at this line of the replay, for `trace replay --debugger`
    #[arg(long, value_name = "LINE", requires = "replay", value_parser = line, hide = true)]
    pause: Option<u64>,
}

/// Parses the number of a line, as the log has it or without its `#`.
fn line(text: &str) -> Result<u64, String> {
    let found = text.trim_start_matches('#').parse().ok().filter(|line| *line > 0);
    found.ok_or_else(|| "expected the number of a line of the log, such as #0012".to_owned())
}

impl Tape {
    /// Returns whether the run has a tape.
    pub fn is_on(&self) -> bool {
        self.record.is_some() || self.replay.is_some()
    }

    /// Returns whether a record is run again.
    pub fn is_played(&self) -> bool {
        self.replay.is_some()
    }

    /// Makes the kernel that records its run, or runs a record again.
    // Compiled in the caller's crate; see `Common::until_signal`.
    #[inline]
    pub fn kernel(&self, common: &Common, options: Options) -> io::Result<Kernel<Taped>> {
        let named = |path: &PathBuf, error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        if let Some(path) = &self.replay {
            let kernel = Kernel::replay(path, options).map_err(|error| named(path, error))?;
            let mut kernel = common.observed(kernel)?;
            if let Some(line) = self.pause {
                kernel.pause_at(line);
            }
            if let Some(line) = self.until {
                kernel.stop_at(line);
            }
            return Ok(kernel);
        }
        let path = self.record.as_ref().expect("a tape is asked for");
        let record = Record { is_timed: common.timed, ..Record::from(path) };
        let kernel = Kernel::record_to(record, options).map_err(|error| named(path, error))?;
        complain(format_args!(
            "recording in {}, which will hold what clients send; only you can read it",
            path.display()
        ));
        if common.trace.as_ref().is_some_and(|trace| path.as_os_str() == trace.as_str()) {
            let mut common = common.clone();
            common.trace = None;
            let mut kernel = common.observed(kernel)?;
            kernel.trace_to(io::sink());
            return Ok(kernel);
        }
        common.observed(kernel)
    }
}

/// Returns the arguments of this process. For a replay, the recorded arguments come first, without
/// `--record`, `--trace` and `--timed`. If another program than `name` has made the record, ends
/// the process with an error.
pub fn arguments(name: &str) -> Vec<OsString> {
    let own: Vec<OsString> = std::env::args_os().collect();
    let Some(path) = value_of("--replay", &own) else { return own };
    let named = path.to_string_lossy();
    let wrong = |error: io::Error| -> ! { fail(format_args!("error: {named}: {error}")) };
    let program = recorded_program(&path).unwrap_or_else(|error| wrong(error));
    if program != name {
        let program = program.to_string_lossy();
        fail(format_args!("error: {named}: expected a record of {name}, found one of {program}"));
    }
    let recorded = recorded_command(&path).unwrap_or_else(|error| wrong(error));
    let mut all = vec![own[0].clone()];
    let mut recorded = recorded.into_iter();
    while let Some(arg) = recorded.next() {
        let text = arg.to_string_lossy();
        match text.split_once('=').map_or(&*text, |(name, _)| name) {
            "--record" | "--trace" => {
                if !text.contains('=') {
                    recorded.next();
                }
            }
            "--timed" => {}
            _ => all.push(arg),
        }
    }
    all.extend_from_slice(&own[1..]);
    all
}

/// Returns the value of an option, if it is among the arguments.
fn value_of(option: &str, arguments: &[OsString]) -> Option<OsString> {
    let at = arguments.iter().position(|arg| arg == option);
    let after = at.and_then(|at| arguments.get(at + 1).cloned());
    let with = |arg: &OsString| {
        let text = arg.to_str()?.strip_prefix(option)?.strip_prefix('=')?;
        Some(text.into())
    };
    after.or_else(|| arguments.iter().find_map(with))
}
