//! Kernels that record a run, or run a record again.
//!
//! The tape (`traps::internal::tape`) is between the program and the outside, and the machine
//! `Taped` is between the kernel and the outside. This file makes kernels over that machine. It
//! also compares the log of a replay with the log in the record, and ends a replay that has
//! stopped.
//!
//! A replay stops where the program differs from its record, where the record ends, or at a line
//! that its user has chosen. The place may be in the middle of a step of the kernel. So the tape
//! unwinds the run with a panic, and [`Kernel::until_stop`] turns the panic into an error with the
//! table of tasks. The kernel has then no further step to take.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions, Permissions};
#[cfg(unix)]
use std::hint;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
#[cfg(unix)]
use std::os::unix::ffi::{OsStrExt, OsStringExt};
#[cfg(unix)]
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use traps::internal::tape::{self, Answer, Mode, Words, escaped, unescaped};

use crate::kernel::Kernel;
use crate::log::lines::announce;
use crate::log::{Activation, KERNEL, Log};
use crate::machine::Machine;
#[cfg(unix)]
use crate::machine::{Real, Taped, command, sealed, survive_file_limit};
use crate::options::{Options, RunError};
use crate::trace::{Event, Line};

/// The version of the form of a record.
const VERSION: &str = "trapline-record 1";

/// The file of a record, and its form. A path alone stands for the defaults.
#[derive(Clone, Debug)]
pub struct Record {
    /// The path of the file.
    pub path: PathBuf,
    /// The largest size of the file in bytes, 1 GiB by default. A record that reaches it ends with
    /// a line, and the program goes on.
    pub limit: u64,
    /// Whether the trace is timed. Set this instead of calling [`Kernel::time_the_trace`], which
    /// must not be called on a recording kernel: the record needs the readings of the clock for
    /// the trace from its start. Needs [`Kernel::trace_to`]. The replay is then timed as well.
    pub is_timed: bool,
}

impl<P: Into<PathBuf>> From<P> for Record {
    fn from(path: P) -> Record {
        Record { path: path.into(), limit: 1 << 30, is_timed: false }
    }
}

#[cfg(unix)]
impl Kernel<Taped> {
    /// Makes a kernel on the operating system that records its run. The record has everything that
    /// the program and the kernel take from outside: readings of clocks, arrivals, the results of
    /// `net`'s system calls with the bytes that were read. After [`Kernel::trace_to`] it has the
    /// log, too. Only its owner can read the file, because it has what clients have sent.
    ///
    /// The record begins here. What the program takes from outside before, on another thread, or
    /// not through a kernel or `net`, is not in it. See the [guide](crate::guide::replay).
    ///
    /// If the file cannot be written, or has reached its limit, the program goes on without a
    /// record, and the log has a warning. For this, `SIGXFSZ` gets a handler if it has none.
    ///
    /// # Errors
    ///
    /// Returns the error of the file, and the errors of [`Real::new`].
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Kernel::new`].
    pub fn record_to(record: impl Into<Record>, options: Options) -> io::Result<Kernel<Taped>> {
        tape::claim();
        let Record { path, limit, is_timed } = record.into();
        let real = Real::new()?;
        survive_file_limit()?;
        let mut how = OpenOptions::new();
        let file = how.write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        // The file may have been there before. It may also be a device, which has no owner.
        if file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        tape::record(Box::new(file), limit, path.display().to_string());
        let tick = sealed::Driver::tick(&real);
        let machine = Taped::new(Some(real), tick);
        head(is_timed, tick, &options);
        Ok(Kernel::taped(machine, options, is_timed))
    }

    /// Makes a kernel that runs a record again. There is no socket, poller, clock or worker thread:
    /// the record has all answers. Only jobs have threads, because they run again. The same program
    /// with the same options writes the same log.
    ///
    /// A replay compares each question of the program, and each line of its log, with the record.
    /// Added notes and spans, and other locations in the source, are not differences. At the first
    /// difference, a run or a shutdown returns [`RunError::Diverged`]; if the record ends before
    /// the program does, it returns [`RunError::Stopped`]. A difference in the drop of a kernel
    /// that was not shut down panics.
    ///
    /// # Errors
    ///
    /// Returns the error of the file. Returns `InvalidData` if it is no record of this version, or
    /// was made with other options.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Kernel::new`].
    pub fn replay(path: impl AsRef<Path>, options: Options) -> io::Result<Kernel<Taped>> {
        tape::claim();
        tape::play(Box::new(BufReader::new(File::open(path)?)));
        let (is_timed, tick) = head(false, None, &options);
        if let Some(stop) = tape::stopped() {
            tape::end()?;
            return Err(io::Error::new(ErrorKind::InvalidData, stop.report));
        }
        let mut kernel = Kernel::taped(Taped::new(None, tick), options, is_timed);
        kernel.observe(Follower::default());
        Ok(kernel)
    }

    fn taped(machine: Taped, options: Options, is_timed: bool) -> Kernel<Taped> {
        let mut kernel = Kernel::with_options(machine, options);
        if is_timed {
            kernel.time_the_trace();
        }
        kernel
    }

    /// Makes a replay call `kernel::record::stop_here` at this line of the log, so that a debugger
    /// with a breakpoint there stops the program. The replay then continues. The lines of a poll
    /// are written after it, except for its `run` line: pause there to be in time for the poll.
    pub fn pause_at(&mut self, line: u64) {
        self.observe(move |event: &Line<'_>| {
            if event.seq == line {
                stop_here(line);
            }
        });
    }

    /// Makes a replay stop at this line of the log, counted from 1. The run then returns
    /// [`RunError::Stopped`] with the table of tasks. If the log ends before that line, the
    /// shutdown returns [`RunError::Unreached`]. To have that line in a trace, call this after
    /// [`Kernel::trace_to`].
    ///
    /// ```
    /// use kernel::{Kernel, Options, RunError};
    ///
    /// let path = std::env::temp_dir().join(format!("stopped-{}.record", std::process::id()));
    /// let mut kernel = Kernel::record_to(&path, Options::new())?;
    /// kernel.run(traps::yield_now())?.unwrap();
    /// kernel.shutdown()?;
    /// drop(kernel);
    ///
    /// let mut kernel = Kernel::replay(&path, Options::new())?;
    /// kernel.stop_at(3);
    /// let Err(RunError::Stopped(report)) = kernel.run(traps::yield_now()) else { panic!() };
    /// assert!(report.starts_with("the replay has stopped at line #0003"));
    /// std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop_at(&mut self, line: u64) {
        self.core.sched.log.until = line;
        self.observe(move |event: &Line<'_>| {
            if event.seq >= line && tape::mode() == Mode::Plays {
                stop_here(line);
                tape::stop(false, format!("the replay has stopped at line #{line:04}"));
            }
        });
    }
}

/// The place of a debugger's breakpoint: called at the lines of [`Kernel::pause_at`] and
/// [`Kernel::stop_at`]. `trace replay --debugger` looks for its symbol.
#[cfg(unix)]
#[inline(never)]
fn stop_here(line: u64) {
    // Otherwise the optimizer removes the call.
    hint::black_box(line);
}

impl<M: Machine> Kernel<M> {
    /// Calls `code`. If the tape stops meanwhile, returns an error with its report.
    pub(crate) fn until_stop<T>(
        &mut self,
        code: impl FnOnce(&mut Self) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let stop = match tape::until_stop(|| code(self)) {
            Ok(ended) => return ended,
            Err(stop) => stop,
        };
        self.halt_at_once();
        if stop.is_divergence {
            let mut report = stop.report;
            if let Some(task) =
                self.core.sched.run.task.filter(|task| self.core.sched.tasks.state(*task).is_some())
            {
                let (number, name) = self.core.sched.tasks.label(task);
                let _ = write!(report, "\ntask {number} is {name}");
            }
            if stop.last > 0 {
                let _ = write!(report, "\nthe last line of the log is #{:04}", stop.last);
            }
            return Err(RunError::Diverged(report));
        }
        Err(RunError::Stopped(
            format!("{}\n{}", stop.report, self.task_table()).trim_end().to_owned(),
        ))
    }

    /// Ends the tape of a kernel that has halted.
    pub(crate) fn end_tape(&mut self, ended: Result<(), RunError>) -> Result<(), RunError> {
        let marked = self.until_stop(|_| {
            tape::mark("end");
            Ok(())
        });
        let Log { until, seq, .. } = self.core.sched.log;
        ended.and(marked).and(tape::end().map_err(RunError::Machine))?;
        if seq >= until {
            return Ok(());
        }
        let text = format!("the log of the replay ends at line #{seq:04}, before line #{until:04}");
        Err(RunError::Unreached(text))
    }

    /// Warns once if the record ends before the program.
    pub(crate) fn warn_of_tape(&mut self) {
        if tape::has_lost()
            && let Some(why) = tape::lost()
        {
            let text = format!("{why}; the program goes on without a record");
            announce!(self.core.sched, KERNEL, Event::Warn { text: text.into() });
        }
    }

    /// Drops what the kernel has left. The tape's last report has no result to be returned in: a
    /// difference panics, and everything else is written to standard error.
    pub(crate) fn drop_taped(&mut self) {
        let has_stopped = tape::mode() == Mode::Stopped;
        let drop_all = |kernel: &mut Self| {
            kernel.drop_all();
            Ok(())
        };
        let dropped = if has_stopped { Ok(()) } else { self.until_stop(drop_all) };
        if tape::mode() == Mode::Stopped {
            self.drop_futures();
        }
        match dropped.and(tape::end().map_err(RunError::Machine)) {
            Err(error @ RunError::Diverged(_)) if !thread::panicking() => panic!("{error}"),
            Err(error) => _ = writeln!(io::stderr(), "trapline: {error}"),
            Ok(()) => {}
        }
    }
}

/// Whether the trace is timed, and the deadline tick that the environment has set.
type Facts = (bool, Option<Duration>);

/// Records the head of a record, or reads it: its version, the command line, the facts, the
/// options. Returns the facts.
#[cfg(unix)]
fn head(is_timed: bool, tick: Option<Duration>, options: &Options) -> Facts {
    tape::mark(VERSION);
    let put = |args: &Vec<OsString>, words: &mut Words| {
        args.iter().for_each(|arg| words.word(&escaped(arg.as_bytes())));
    };
    // A replay has a command line of its own.
    let get = |answer: &mut Answer<'_>| {
        while !answer.is_empty() {
            answer.word();
        }
        Vec::new()
    };
    tape::input("command", command, put, get);
    let text = format!("{options:?}");
    let put = |(is_timed, tick): &Facts, words: &mut Words| {
        words.word(if *is_timed { "timed" } else { "untimed" });
        match tick {
            Some(tick) => words.number(tick.as_millis() as u64),
            None => words.word("-"),
        }
        words.bytes(text.as_bytes());
    };
    let get = |answer: &mut Answer<'_>| {
        let (is_timed, tick) = (answer.word() == "timed", answer.word().parse().ok());
        if answer.bytes() != text.as_bytes() {
            tape::diverge(&format!("the options of the program are:\n  {text}"));
        }
        (is_timed, tick.map(Duration::from_millis))
    };
    tape::input("options", || (is_timed, tick), put, get)
}

/// Returns the command line of the program that made a record, without the program's name.
///
/// # Errors
///
/// Returns the error of the file, and `InvalidData` if it is no record.
///
/// ```
/// use kernel::{Kernel, Options, recorded_command};
///
/// let path = std::env::temp_dir().join(format!("command-{}.record", std::process::id()));
/// Kernel::record_to(&path, Options::new())?.shutdown()?;
/// assert!(recorded_command(&path)?.into_iter().eq(std::env::args_os().skip(1)));
/// std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(unix)]
pub fn recorded_command(path: impl AsRef<Path>) -> io::Result<Vec<OsString>> {
    Ok(recorded_arguments(path.as_ref())?.skip(1).collect())
}

/// Returns the name of the program that made a record.
///
/// # Errors
///
/// Returns the errors of [`recorded_command`].
#[cfg(unix)]
pub fn recorded_program(path: impl AsRef<Path>) -> io::Result<OsString> {
    Ok(recorded_arguments(path.as_ref())?.next().unwrap_or_default())
}

/// Returns the words of the command line in a record: the program's name, and its arguments.
#[cfg(unix)]
fn recorded_arguments(path: &Path) -> io::Result<impl Iterator<Item = OsString>> {
    let mut line = Vec::new();
    // Linux allows 6 MiB of arguments, and a byte takes four characters at most.
    let mut file = BufReader::new(File::open(path)?.take(1 << 25));
    for start in ["<trapline-record ", "<command"] {
        line.clear();
        file.read_until(b'\n', &mut line)?;
        if !line.starts_with(start.as_bytes()) {
            return Err(io::Error::new(ErrorKind::InvalidData, "this is no record"));
        }
    }
    let words = line.trim_ascii_end().split(|byte| *byte == b' ').skip(1);
    let words: Vec<_> = words.map(|word| OsString::from_vec(unescaped(word))).collect();
    Ok(words.into_iter())
}

/// An observer of a replay: it compares the log with the record, and unwinds a run whose tape has
/// stopped.
///
/// Notes and spans may be added, so the numbers of lines may differ. `shifts` has the differences:
/// from the first number on, add the second one to get the number in the record. A number before
/// the first shift is the same in both.
#[derive(Default)]
struct Follower {
    shifts: Vec<(u64, i64)>,
}

impl Activation for Follower {
    fn event(&mut self, line: &Line<'_>) {
        tape::unwind_if_stopped();
        self.follow(line);
    }
}

impl Follower {
    fn follow(&mut self, line: &Line<'_>) {
        let text = line.to_string();
        let verb = match &line.event {
            Event::Note { .. } => Some("note"),
            Event::Enter { .. } => Some("enter"),
            Event::Leave { .. } => Some("leave"),
            _ => None,
        };
        tape::follow(line.seq, &text, |recorded| match (verb, std::str::from_utf8(recorded)) {
            (_, Ok(recorded)) if recorded == text && self.shifts.is_empty() => Some(true),
            (Some(verb), recorded) => {
                let recorded = recorded.unwrap_or_default().split_ascii_whitespace();
                match recorded.take(6).nth(5) {
                    Some(found) if found == verb => Some(true),
                    _ => {
                        let before = self.shifts.last().map_or(0, |(_, shift)| *shift);
                        self.shifts.push((line.seq, before - 1));
                        None
                    }
                }
            }
            (None, Ok(recorded)) if self.are_same(recorded, &text) => Some(true),
            _ => Some(false),
        });
    }

    /// Compares two lines word by word. Numbers of lines may differ by the shift, and locations in
    /// the source may differ: a note in the source shifts the lines below it.
    fn are_same(&self, recorded: &str, text: &str) -> bool {
        let mut recorded = recorded.split_ascii_whitespace();
        let is_same = |word: &str| {
            recorded.next().is_some_and(|recorded| {
                without_site(recorded) == without_site(word)
                    || self.are_numbers_of_one_line(recorded, word).unwrap_or(false)
            })
        };
        text.split_ascii_whitespace().all(is_same) && recorded.next().is_none()
    }

    fn are_numbers_of_one_line(&self, recorded: &str, word: &str) -> Option<bool> {
        let (before, number) = word.split_once('#')?;
        let recorded: i64 = recorded.strip_prefix(before)?.strip_prefix('#')?.parse().ok()?;
        let number: u64 = number.parse().ok()?;
        let at = self.shifts.partition_point(|(from, _)| *from <= number);
        let shift = at.checked_sub(1).map_or(0, |at| self.shifts[at].1);
        Some(number.checked_add_signed(shift)?.cast_signed() == recorded)
    }
}

/// Returns a word of the log without a location in the source: `at=` for `at=FILE:LINE`, and
/// `from=sleep` for `from=sleep@FILE:LINE`.
fn without_site(word: &str) -> &str {
    let ends = if word.starts_with("from=") || word.starts_with("to=") { "@" } else { "at=" };
    match word.split_once(ends) {
        Some((before, _)) if ends == "@" || before.is_empty() || before.ends_with('-') => before,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use traps::run_in_thread;

    use super::*;

    #[test]
    fn a_job_that_does_not_end_in_a_replay_ends_the_replay_with_its_name() {
        let path = Path::new("/tmp").join(format!("trapline_{}.record", std::process::id()));
        let mut kernel = Kernel::record_to(&path, Options::new()).unwrap();
        kernel.run(async { run_in_thread(|| ()).await.unwrap() }).unwrap();
        kernel.shutdown().unwrap();
        drop(kernel);
        let (sender, never) = mpsc::channel::<()>();
        let mut kernel = Kernel::replay(&path, Options::new()).unwrap();
        kernel.services.threads.patience = Duration::from_millis(250);
        let waits = run_in_thread(move || _ = never.recv());
        let ended = kernel.run(async { waits.await.unwrap() });
        let Err(RunError::Diverged(report)) = ended else { panic!("{ended:?}") };
        let text = "the job o1 of task 2, called at ";
        assert!(report.starts_with(text) && report.contains("when it runs again"), "{report}");
        drop((kernel, sender));
        std::fs::remove_file(path).unwrap();
    }
}
