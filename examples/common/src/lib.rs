//! The code that all examples share: it parses the command line, writes the trace, and makes the
//! kernel.
//!
//! Read the example first: nothing here is about tasks.

pub mod flight;
pub mod limits;
pub mod log;
pub mod message;
pub mod signals;
pub mod stderr;
#[cfg(unix)]
pub mod taped;
pub mod values;

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{ArgMatches, Command};
#[cfg(unix)]
use kernel::Real;
use kernel::{Kernel, Machine, Options, RunError, Sim};
use stderr::FlushAtEnd;
use traps::Signal;

/// Writes a message to standard error, without waiting for its reader.
pub fn complain(message: impl Display) {
    log::say("", &message);
}

/// The options that every example has.
#[derive(clap::Args, Clone, Debug)]
pub struct Common {
    /// Write the trace to FILE; - is standard output
    #[arg(long, value_name = "FILE")]
    pub trace: Option<String>,
    /// Add measured times to the trace
    #[arg(long)]
    timed: bool,
    /// Keep the last SIZE bytes of trace, to be dumped at a failure or at SIGUSR1
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    flight: Option<usize>,
    /// Report a task while a run of it lasts for more than MS milliseconds
    #[arg(long, value_name = "MS", value_parser = values::millis)]
    pub watchdog: Option<Duration>,
    // `help =`: in a doc comment rustdoc would take the brackets for a link.
    #[arg(long, help = "Print the limits in force, each as NAME VALUE UNIT, and exit")]
    print_limits: bool,
    /// Print everything that a task can ask of its kernel, and exit
    #[arg(long)]
    list_traps: bool,
}

/// Parses the command line. If it asks for the help or the version, prints the text and ends the
/// process. If it has an error, prints the error in one line and ends the process.
pub fn parse<T: clap::Args>(name: &'static str, about: &'static str) -> T {
    let command = T::augment_args(Command::new(name));
    let command = command.about(about).version(env!("CARGO_PKG_VERSION"));
    #[cfg(unix)]
    let is_taped = command.get_arguments().any(|arg| arg.get_id() == "replay");
    let own = || std::env::args_os().collect();
    #[cfg(unix)]
    let arguments = if is_taped { taped::arguments(name) } else { own() };
    #[cfg(not(unix))]
    let arguments: Vec<_> = own();
    // An option of the replay overrides the recorded one.
    let command = command.args_override_self(arguments.len() > std::env::args_os().count());
    let parsed = command.try_get_matches_from(arguments);
    let parsed = parsed.and_then(|found: ArgMatches| T::from_arg_matches(&found));
    parsed.unwrap_or_else(|error| {
        let text = error.to_string();
        if error.use_stderr() {
            fail(one_line(&text));
        }
        print(&text)
    })
}

/// Returns the message of a command-line error in one line, without clap's hints about usage.
fn one_line(text: &str) -> String {
    let is_message = |line: &&str| {
        !line.is_empty() && !line.starts_with("Usage:") && !line.starts_with("For more information")
    };
    let lines: Vec<_> = text.lines().map(str::trim).filter(is_message).collect();
    lines.join(" ").replace(" tip:", ";")
}

/// Writes an error of the command line to standard error, and ends the process.
pub fn fail(message: impl Display) -> ! {
    complain(message);
    stderr::flush();
    std::process::exit(2);
}

/// Prints a text to standard output, and ends the process. A closed standard output is not an
/// error.
fn print(text: &str) -> ! {
    let _ = io::stdout().write_all(text.as_bytes());
    std::process::exit(0);
}

/// The [timer slack](Options::timer_slack) of the examples that serve: their sleeps and timeouts
/// need not be exact to less than a millisecond.
pub const TIMER_SLACK: Duration = Duration::from_millis(1);

impl Common {
    /// Returns the options of a kernel, as far as these command-line options set them.
    pub fn options(&self) -> Options {
        Options::new().watchdog(self.watchdog)
    }

    /// Checks these options. If they ask for a list, prints the list and ends the process. `own`
    /// has the example's own limits, in addition to the limits of its kernel.
    pub fn print_lists(&self, options: &Options, own: &[limits::Limit]) {
        // A log of events has the times too.
        let is_traced = self.trace.is_some() || self.flight.is_some();
        if self.timed && !is_traced && std::env::var_os("RUST_LOG").is_none() {
            fail("error: --timed adds times to a trace; expected --trace FILE as well");
        }
        if self.list_traps {
            let list = kernel::trace::listed();
            print(&list.iter().map(|line| format!("{line}\n")).collect::<String>());
        }
        if self.print_limits {
            print(&limits::text(&[own, &limits::of_kernel(options)].concat()));
        }
    }

    /// Returns a kernel that a signal shuts down, for an example that serves but does not use
    /// `server`. If these options ask for a list, prints the list and ends the process instead.
    // Compiled in the crate that calls it. If this library had a copy of the kernel too, the core
    // of both would lose inlining: a yield would cost 4 % more.
    #[cfg(unix)]
    #[inline]
    pub fn until_signal(&self) -> io::Result<Kernel<Real>> {
        let options = self.options().timer_slack(TIMER_SLACK);
        let options = options.shutdown_on(signals::of_shutdown());
        self.print_lists(&options, &[]);
        log::prepare(false);
        self.kernel(Real::new()?, options)
    }

    /// Starts the log, and logs where the example listens. Prints this to standard output too, for
    /// a program that waits for it, unless standard output has the trace or the same text. A closed
    /// standard output is not an error.
    pub fn say_where(&self, place: impl Display) {
        log::start();
        ::log::info!("listening on {place}");
        if self.is_out_for_a_greeting() {
            let _ = writeln!(io::stdout(), "listening on {place}");
        }
    }

    /// Returns whether to print to standard output where a server listens. Returns `false` if the
    /// trace goes there, or if it is a terminal that already shows the same line from the log.
    pub fn is_out_for_a_greeting(&self) -> bool {
        let is_said = ::log::log_enabled!(::log::Level::Info)
            && io::stdout().is_terminal()
            && io::stderr().is_terminal();
        self.trace.as_deref() != Some("-") && !is_said
    }

    /// Makes a kernel over any machine, with the trace that these options ask for.
    pub fn kernel<M: Machine>(&self, machine: M, options: Options) -> io::Result<Kernel<M>> {
        let mut kernel = Kernel::with_options(machine, options);
        if self.timed {
            kernel.time_the_trace();
        }
        self.observed(kernel)
    }

    /// Adds the trace and the reports that these options ask for.
    fn observed<M: Machine>(&self, mut kernel: Kernel<M>) -> io::Result<Kernel<M>> {
        let (worker, also) = (log::worker(), log::worker());
        kernel.on_stuck(move |stuck| log::say(&worker, stuck));
        kernel.on_signal(Signal::User1, move |table| log::say(&also, table));
        if let Some(bytes) = self.flight {
            flight::record(&mut kernel, bytes);
        }
        match self.trace.as_deref() {
            None => {}
            Some("-") => {
                kernel.trace_to(Complaining(io::stdout(), "standard output".to_owned(), false));
            }
            Some(path) => {
                let wrong = |error: io::Error| {
                    let text = format!("cannot write the trace to {path}: {error}");
                    io::Error::new(error.kind(), text)
                };
                let file = File::create(path).map_err(wrong)?;
                kernel.trace_to(BufWriter::new(Complaining(file, path.to_owned(), false)));
            }
        }
        Ok(kernel)
    }
}

/// The command line of a lesson: a program that ends by itself and exists for its trace.
#[derive(clap::Args, Clone, Debug)]
pub struct Lesson {
    /// Run on a virtual clock and print the stable trace
    #[arg(long = "virtual")]
    pub virtual_clock: bool,
    #[command(flatten)]
    pub common: Common,
}

impl Lesson {
    /// Parses the command line of a lesson without additional options.
    pub fn parse(name: &'static str, about: &'static str) -> Lesson {
        parse::<Lesson>(name, about).ready(name)
    }

    /// Checks the options, and prints the list that they ask for. Prints a hint if the options make
    /// the lesson show nothing.
    pub fn ready(mut self, name: &str) -> Lesson {
        if self.virtual_clock && self.common.trace.is_none() {
            self.common.trace = Some("-".to_owned());
        }
        self.common.print_lists(&self.common.options(), &[]);
        let Common { trace, watchdog, flight, .. } = &self.common;
        if trace.is_none() && watchdog.is_none() && flight.is_none() {
            complain(format_args!("{name}: to see what it does, add `--trace -` or `--virtual`"));
        }
        self
    }

    /// Runs the lesson on the real clock, or on `sim` if `--virtual` asks for it.
    #[track_caller]
    pub fn run<F: Future>(&self, sim: Sim, lesson: F) -> ExitCode
    where
        F::Output: Outcome,
    {
        let (common, options) = (&self.common, self.common.options());
        match self.virtual_clock {
            true => run(common.kernel(sim, options), lesson),
            #[cfg(unix)]
            false => run(Real::new().and_then(|real| common.kernel(real, options)), lesson),
            #[cfg(not(unix))]
            false => report(Some("the real clock needs Unix; expected --virtual".to_owned())),
        }
    }
}

/// Runs a main future to its end, shuts the kernel down, and reports the error, if there is one.
#[track_caller]
pub fn run<M: Machine, F: Future>(kernel: io::Result<Kernel<M>>, main: F) -> ExitCode
where
    F::Output: Outcome,
{
    let _flush = FlushAtEnd;
    report(outcome(kernel, main))
}

/// Runs a main future to its end, and shuts the kernel down. Returns the text of the error, if
/// there is one.
#[track_caller]
pub fn outcome<M: Machine, F: Future>(kernel: io::Result<Kernel<M>>, main: F) -> Option<String>
where
    F::Output: Outcome,
{
    match kernel {
        Err(error) => Some(error.to_string()),
        Ok(mut kernel) => match kernel.run(main) {
            // The shutdown ends the remaining tasks, and logs that.
            Err(error) => both(text(error), kernel.shutdown().err().and_then(text)),
            Ok(output) => {
                let error = output.error();
                let error = both(error, kernel.shutdown().err().and_then(text));
                error.or_else(|| cut_off(kernel.counters().cut_off))
            }
        },
    }
}

/// Returns the texts of two errors as one.
fn both(one: Option<String>, two: Option<String>) -> Option<String> {
    match (one, two) {
        (Some(one), Some(two)) => Some(format!("{one}\nerror: {two}")),
        (one, two) => one.or(two),
    }
}

/// Returns the text of the error of a kernel. A replay that `--until` has stopped is not an error:
/// prints its report instead.
fn text(error: RunError) -> Option<String> {
    match error {
        RunError::Stopped(report) => {
            let _ = writeln!(io::stdout(), "{report}");
            None
        }
        error => Some(error.to_string()),
    }
}

/// Returns the error text for work that a shutdown did not wait for, if there is any.
fn cut_off(left: u64) -> Option<String> {
    (left > 0).then(|| format!("the shutdown cut off work in progress: {left} left"))
}

/// Writes the error to standard error, if there is one, and returns the exit code. An incomplete
/// trace is an error, which the trace's writer has already reported.
pub fn report(error: Option<String>) -> ExitCode {
    match error {
        None if IS_INCOMPLETE.load(Ordering::Relaxed) => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
        Some(error) => {
            complain(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// A value that a main future may return.
pub trait Outcome {
    fn error(self) -> Option<String>;
}

impl Outcome for () {
    fn error(self) -> Option<String> {
        None
    }
}

impl<E: Display> Outcome for Result<(), E> {
    fn error(self) -> Option<String> {
        self.err().map(|error| error.to_string())
    }
}

/// Whether a trace could not be written.
static IS_INCOMPLETE: AtomicBool = AtomicBool::new(false);

/// A writer that reports once, on standard error, that it cannot write. The program continues, and
/// fails when it ends. A reader that has gone is not an error.
struct Complaining<W>(W, String, bool);

impl<W: Write> Complaining<W> {
    fn complain<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            if error.kind() != io::ErrorKind::BrokenPipe && !self.2 {
                let to = &self.1;
                complain(format_args!("error: the trace to {to} is not complete: {error}"));
                IS_INCOMPLETE.store(true, Ordering::Relaxed);
            }
            self.2 = true;
        }
        result
    }
}

impl<W: Write> Write for Complaining<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let result = self.0.write(buf);
        self.complain(result)
    }
    fn flush(&mut self) -> io::Result<()> {
        let result = self.0.flush();
        self.complain(result)
    }
}
