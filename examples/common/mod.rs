//! What every example shares: its command line, its trace, its way to a kernel.
//!
//! Nothing here is about tasks; read the example first.

#![allow(dead_code, reason = "each example uses a part")]

pub mod access;
pub mod http_flags;
pub mod kernel_page;
pub mod log;
pub mod message;
pub mod server;
pub mod stderr;
pub mod values;

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgMatches, Command};
use kernel::{Kernel, Machine, Options, Real, Sim};
use stderr::FlushAtEnd;
use traps::Signal;

/// Says something on standard error, without waiting for its reader.
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
    /// Report a task while it holds the CPU for more than MS milliseconds
    #[arg(long, value_name = "MS", value_parser = values::millis)]
    pub watchdog: Option<Duration>,
    /// Print the options in force, and exit
    #[arg(long)]
    print_limits: bool,
    /// Print everything that a task can ask of its kernel, and exit
    #[arg(long)]
    list_traps: bool,
}

/// Parses the command line. Prints the help, the version, or an error of one line, and ends the
/// process, where that is what was asked for.
pub fn parse<T: clap::Args>(name: &'static str, about: &'static str) -> T {
    let command = T::augment_args(Command::new(name));
    let command = command.about(about).version(env!("CARGO_PKG_VERSION"));
    let parsed =
        command.try_get_matches().and_then(|found: ArgMatches| T::from_arg_matches(&found));
    parsed.unwrap_or_else(|error| {
        let text = error.to_string();
        if error.use_stderr() {
            fail(one_line(&text));
        }
        print(&text)
    })
}

/// The message of an error of the command line, without what clap says about usage.
fn one_line(text: &str) -> String {
    let is_message = |line: &&str| {
        !line.is_empty() && !line.starts_with("Usage:") && !line.starts_with("For more information")
    };
    let lines: Vec<_> = text.lines().map(str::trim).filter(is_message).collect();
    lines.join(" ").replace(" tip:", ";")
}

/// Says what is wrong with the command line, and ends the process.
pub fn fail(message: impl Display) -> ! {
    complain(message);
    stderr::flush();
    std::process::exit(2);
}

/// Prints a text and ends the process. A closed standard output is no error.
fn print(text: &str) -> ! {
    let _ = io::stdout().write_all(text.as_bytes());
    std::process::exit(0);
}

impl Common {
    /// The options of a kernel, as far as these say.
    pub fn options(&self) -> Options {
        Options::new().watchdog(self.watchdog)
    }

    /// Prints the list that was asked for and ends the process, if one was.
    pub fn print_lists(
        &self,
        options: &Options,
        listener: &net::listener::Options,
        config: &net::http::Config,
        own: &str,
    ) {
        if self.list_traps {
            let list = kernel::trace::listed();
            print(&list.iter().map(|line| format!("{line}\n")).collect::<String>());
        }
        if self.print_limits {
            let net::http::Config { limits, deadlines, bare_lf, half_close, .. } = config;
            let shown = format!(
                "kernel::{options:#?}\nlistener::{listener:#?}\n{limits:#?}\n{deadlines:#?}\n\
                 bare_lf: {bare_lf}\nhalf_close: {half_close}\n{own}"
            );
            // What is off is a span without an end.
            print(&shown.replace(&format!("{:?}", Duration::MAX), "off"));
        }
    }

    /// [`Common::print_lists`] for an example that is no server.
    pub fn print_default_lists(&self) {
        let (listener, config) = Default::default();
        self.print_lists(&self.options(), &listener, &config, "");
    }

    /// Prints the list that was asked for, or gives a kernel that a signal shuts down: that of an
    /// example that serves, and is not one of the [`server`]s.
    pub fn until_signal(&self) -> io::Result<Kernel<Real>> {
        self.print_default_lists();
        log::prepare(false);
        let options = self.options().shutdown_on(server::signals());
        self.kernel(Real::new()?, options)
    }

    /// Starts the log, and says where it listens on standard output, unless that is the trace's. A
    /// closed standard output is no error.
    pub fn say_where(&self, place: impl Display) {
        log::start();
        ::log::info!("listening on {place}");
        if self.trace.as_deref() != Some("-") {
            let _ = writeln!(io::stdout(), "listening on {place}");
        }
    }

    /// A kernel over any machine, with this trace.
    pub fn kernel<M: Machine>(&self, machine: M, options: Options) -> io::Result<Kernel<M>> {
        let mut kernel = Kernel::with_options(machine, options);
        let (worker, also) = (log::worker(), log::worker());
        kernel.on_stuck(move |stuck| log::say(&worker, stuck));
        kernel.on_signal(Signal::User1, move |table| log::say(&also, table));
        if self.timed {
            kernel.time_the_trace();
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
    /// Parses the command line of a lesson that has no options of its own.
    pub fn parse(name: &'static str, about: &'static str) -> Lesson {
        parse::<Lesson>(name, about).ready(name)
    }

    /// Prints what was asked for, and says how to see something if nothing was.
    pub fn ready(mut self, name: &str) -> Lesson {
        self.common.print_default_lists();
        if self.virtual_clock && self.common.trace.is_none() {
            self.common.trace = Some("-".to_owned());
        }
        if self.common.trace.is_none() && self.common.watchdog.is_none() {
            complain(format_args!("{name}: to see what it does, add `--trace -` or `--virtual`"));
        }
        self
    }

    /// Runs it on the real clock, or on `sim` if `--virtual` asks for it.
    #[track_caller]
    pub fn run<F: Future>(&self, sim: Sim, lesson: F) -> ExitCode
    where
        F::Output: Outcome,
    {
        let (common, options) = (&self.common, self.common.options());
        match self.virtual_clock {
            true => run(common.kernel(sim, options), lesson),
            false => run(Real::new().and_then(|real| common.kernel(real, options)), lesson),
        }
    }
}

/// Runs a main future to its end, shuts down, and says what went wrong if something did.
#[track_caller]
pub fn run<M: Machine, F: Future>(kernel: io::Result<Kernel<M>>, main: F) -> ExitCode
where
    F::Output: Outcome,
{
    let _flush = FlushAtEnd;
    report(outcome(kernel, main))
}

/// Runs a main future to its end and shuts down. Gives what went wrong.
#[track_caller]
fn outcome<M: Machine, F: Future>(kernel: io::Result<Kernel<M>>, main: F) -> Option<String>
where
    F::Output: Outcome,
{
    match kernel {
        Err(error) => Some(error.to_string()),
        Ok(mut kernel) => match kernel.run(main) {
            Err(error) => {
                // Ends the tasks that are left, and the log says so.
                drop(kernel.shutdown());
                Some(error.to_string())
            }
            Ok(output) => {
                let output = output.error();
                output.or(kernel.shutdown().err().map(|error| error.to_string()))
            }
        },
    }
}

/// Says on standard error what went wrong, if something did.
fn report(error: Option<String>) -> ExitCode {
    match error {
        None => ExitCode::SUCCESS,
        Some(error) => {
            complain(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// What a main future may return.
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

/// A writer that says once, on standard error, that it cannot write. A reader that went away is
/// not worth a line.
struct Complaining<W>(W, String, bool);

impl<W: Write> Complaining<W> {
    fn complain<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            if error.kind() != io::ErrorKind::BrokenPipe && !self.2 {
                let to = &self.1;
                complain(format_args!("warning: the trace to {to} is not complete: {error}"));
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
