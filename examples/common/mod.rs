//! What every example shares: its command line, its trace, its way to a kernel.
//!
//! Nothing here is about tasks; read the example first.

#![allow(dead_code, reason = "each user takes a part")]

pub mod http_flags;
pub mod workers;

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use kernel::{Kernel, Machine, Options, Policy, Real, Sim};
use traps::Signal;
use traps::limits::Bound;

/// `eprintln!` for those who may have closed our standard error: they do not want to know.
macro_rules! complain {
    ($($text:tt)*) => {
        drop(std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("{}\n", format_args!($($text)*)),
        ))
    };
}
#[allow(unused_imports, reason = "each user takes a part")]
pub(crate) use complain;

/// A parsed command line.
#[derive(Clone)]
pub struct Args {
    pub addr: SocketAddr,
    pub policy: Policy,
    pub trace: Option<String>,
    pub virtual_clock: bool,
    pub timed: bool,
    pub watchdog: Option<Duration>,
    pub workers: u32,
    pub backlog: u32,
    pub server: bool,
    /// For jobs, if the flags want more of them than a kernel has by itself.
    pub threads: usize,
}

/// What an example is, for its `--help`.
pub struct About {
    pub name: &'static str,
    pub what: &'static str,
    /// Listens on `--addr`; else it is a lesson and has `--virtual`.
    pub server: bool,
    /// Has `--policy`.
    pub policy: bool,
}

/// Options of one example alone.
pub trait Flags {
    /// Their lines of the help.
    fn usage(&self) -> String {
        String::new()
    }

    /// Takes one, with the word after it if it needs that; false if it is not one of these.
    fn take(
        &mut self,
        _option: &str,
        _value: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<bool, String> {
        Ok(false)
    }

    /// Whether an example that is no server is a lesson, which has `--virtual`.
    fn is_lesson(&self) -> bool {
        true
    }

    /// What HTTP goes by.
    fn config(&self) -> net::http::Config {
        net::http::Config::default()
    }

    /// How many threads what they name takes at one time.
    fn threads(&self) -> usize {
        0
    }

    /// What these options bound beside that.
    fn bounds(&self) -> Vec<Bound> {
        Vec::new()
    }
}

/// None.
impl Flags for () {}

impl About {
    fn usage(&self, flags: &dyn Flags) -> String {
        let mut text = format!("{}: {}\n\nOptions:\n", self.name, self.what);
        if self.server {
            text +=
                "  --addr HOST:PORT  where to listen (127.0.0.1:8080; port 0 picks a free one)\n";
            text +=
                "  --workers N       threads that share the port, each with its own kernel (1);\n";
            text +=
                "                    with more than one, --trace FILE writes FILE.1, FILE.2, ...\n";
            text += "  --backlog N       connections that may wait to be accepted (4096)\n";
        } else if flags.is_lesson() {
            text += "  --virtual         run on a virtual clock and print the stable trace\n";
        }
        if self.policy {
            text += "  --policy NAME     when to unregister: lazy (default), next-sleep, eager\n";
        }
        text += &flags.usage();
        text += "  --trace FILE      write the trace to FILE (`-`: standard output)\n";
        text += "  --timed           add measured spans to the trace\n";
        text += "  --watchdog MS     a thread says on standard error when a task holds the CPU\n";
        text += "                    for longer, while it does\n";
        text += "  --print-limits    print every number that bounds something, and end\n";
        text += "  --list-traps      print all that a task can ask of its kernel, and end\n";
        text += "  --help            print this\n";
        text
    }

    /// Parses the command line; prints help or a clear error and ends the process where asked.
    pub fn parse(&self) -> Args {
        self.parse_with(&mut ())
    }

    /// The same with options of its own.
    pub fn parse_with(&self, flags: &mut dyn Flags) -> Args {
        let usage = self.usage(flags);
        let words: Result<Vec<String>, _> =
            std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect();
        let parsed = match words {
            Ok(words) => self.try_parse(words.into_iter(), flags),
            Err(word) => Err(format!("expected words in UTF-8, not `{}`", word.display())),
        };
        match parsed {
            Ok(Some(args)) => args,
            Ok(None) => {
                // Whoever closed our standard output does not want to know.
                let _ = io::stdout().write_all(usage.as_bytes());
                std::process::exit(0);
            }
            Err(message) => {
                complain!("{}: {message}\n\n{}", self.name, usage);
                std::process::exit(2);
            }
        }
    }

    fn try_parse(
        &self,
        words: impl Iterator<Item = String>,
        flags: &mut dyn Flags,
    ) -> Result<Option<Args>, String> {
        let (mut words, mut print_limits) = (words, false);
        let mut args = Args {
            addr: SocketAddr::from(([127, 0, 0, 1], 8080)),
            policy: Policy::Lazy,
            trace: None,
            virtual_clock: false,
            timed: false,
            watchdog: None,
            workers: 1,
            backlog: net::listener::Options::default().backlog,
            server: self.server,
            threads: 0,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("expected a value after {word}"));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--print-limits" => print_limits = true,
                "--list-traps" => print_all(&kernel::trace::listed()),
                "--trace" => args.trace = Some(value()?),
                "--timed" => args.timed = true,
                "--workers" if self.server => args.workers = count(&word, &value()?, 1, 64)?,
                "--backlog" if self.server => {
                    args.backlog = count(&word, &value()?, 1, i32::MAX as u32)?
                }
                "--watchdog" => args.watchdog = Some(millis(&word, &value()?)?),
                "--addr" if self.server => args.addr = address(&value()?)?,
                "--policy" if self.policy => {
                    let found = Policy::from_str(&value()?);
                    args.policy = found.map_err(|error| format!("--policy: {error}"))?;
                }
                "--virtual" if !self.server && flags.is_lesson() => args.virtual_clock = true,
                other if flags.take(other, &mut value)? => {}
                other => return Err(format!("unknown option `{other}`")),
            }
        }
        args.threads = flags.threads();
        if print_limits {
            args.print_limits(flags);
        }
        if args.workers > 1 && args.trace.as_deref() == Some("-") {
            return Err("--trace -: each worker has a trace of its own; give a file".to_owned());
        }
        if args.virtual_clock && args.trace.is_none() {
            args.trace = Some("-".to_owned());
        }
        if !self.server && flags.is_lesson() && args.trace.is_none() && args.watchdog.is_none() {
            complain!("{}: to see what it does, add `--trace -` or `--virtual`", self.name);
        }
        Ok(Some(args))
    }
}

/// Prints a list, a line each, and ends the process.
fn print_all(list: &[impl Display]) -> ! {
    let text: String = list.iter().map(|each| format!("{each}\n")).collect();
    // Whoever closed our standard output does not want to know.
    let _ = io::stdout().write_all(text.as_bytes());
    std::process::exit(0);
}

/// A number within bounds.
pub fn count<N>(option: &str, text: &str, least: N, most: N) -> Result<N, String>
where
    N: FromStr + PartialOrd + Display + Copy,
{
    let found = text.parse().ok().filter(|count| (least..=most).contains(count));
    found.ok_or_else(|| format!("{option}: expected a number from {least} to {most}, not `{text}`"))
}

/// A span in milliseconds, from 1.
pub fn millis(option: &str, text: &str) -> Result<Duration, String> {
    let found = text.parse().ok().filter(|millis| *millis > 0).map(Duration::from_millis);
    found.ok_or(format!("{option}: expected a number of milliseconds from 1, not `{text}`"))
}

/// The first address of a host and a port, by number or by name.
fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.ok_or(format!("--addr: expected an address such as 127.0.0.1:8080, not `{text}`"))
}

impl Args {
    /// The same for one of several workers, whose traces are in files of their own.
    fn of_worker(&self, number: u32) -> Args {
        let trace = self.trace.as_ref().map(|path| format!("{path}.{number}"));
        Args { trace, ..self.clone() }
    }

    fn options(&self) -> Options {
        let options = Options::new().policy(self.policy).watchdog(self.watchdog);
        let threads = self.threads.max(options.threads);
        let options = options.threads(threads);
        match self.server {
            true => options.shutdown_on(&[Signal::Interrupt, Signal::Terminate]),
            false => options,
        }
    }

    /// How to listen.
    fn listener(&self) -> net::listener::Options {
        let backlog = self.backlog;
        net::listener::Options { backlog, ..net::listener::Options::default() }
    }

    /// Prints what bounds what, with these options, and ends the process.
    fn print_limits(&self, flags: &dyn Flags) -> ! {
        let mut all = traps::limits::limits();
        all.extend(kernel::limits(&self.options()));
        all.extend(net::limits(&self.listener(), &flags.config()));
        all.extend(flags.bounds());
        print_all(&all)
    }

    /// The operating system below, with these options.
    pub fn real_kernel(&self) -> io::Result<Kernel<Real>> {
        self.kernel(Real::new()?)
    }

    /// A kernel over any machine, with these options and this trace.
    pub fn kernel<M: Machine>(&self, machine: M) -> io::Result<Kernel<M>> {
        let mut kernel = Kernel::with_options(machine, self.options());
        let (whose, also) = (whose(), whose());
        kernel.on_stuck(move |stuck| complain!("{whose}{stuck}"));
        kernel.on_signal(Signal::User1, move |table| {
            let table = table.to_string();
            let lines = table.lines().map(|line| format!("{also}{line}\n"));
            // In one piece, among those of other workers. Whoever closed our standard error does
            // not want to know.
            let _ = io::stderr().write_all(lines.collect::<String>().as_bytes());
        });
        if self.timed {
            kernel.time_the_trace();
        }
        match self.trace.as_deref() {
            None => {}
            Some("-") => {
                kernel.trace_to(Complaining(io::stdout(), "standard output".to_owned(), false))
            }
            Some(path) => {
                let file = File::create(path).map_err(|error| {
                    io::Error::new(
                        error.kind(),
                        format!("cannot write the trace to {path}: {error}"),
                    )
                })?;
                kernel.trace_to(BufWriter::new(Complaining(file, path.to_owned(), false)));
            }
        }
        Ok(kernel)
    }

    /// Runs a lesson on the real clock, or on `sim` if `--virtual` asks for it.
    #[track_caller]
    pub fn run_lesson<F: Future>(&self, sim: Sim, lesson: F) -> ExitCode
    where
        F::Output: Outcome,
    {
        if self.virtual_clock {
            run(self.kernel(sim), lesson)
        } else {
            run(self.real_kernel(), lesson)
        }
    }
}

/// Runs a main future to its end, shuts down, and says what went wrong if something did.
#[track_caller]
pub fn run<M: Machine, F: Future>(kernel: io::Result<Kernel<M>>, main: F) -> ExitCode
where
    F::Output: Outcome,
{
    report(outcome(kernel, main))
}

/// The same, and gives what went wrong.
#[track_caller]
fn outcome<M: Machine, F: Future>(kernel: io::Result<Kernel<M>>, main: F) -> Option<String>
where
    F::Output: Outcome,
{
    match kernel {
        Err(error) => Some(error.to_string()),
        Ok(mut kernel) => match kernel.run(main) {
            Err(error) => {
                // What is left is ended, and the log says so.
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
            complain!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Says `listening on ADDR` on standard output, for whoever waits for it.
pub fn say_listening(addr: SocketAddr) {
    let mut out = io::stdout().lock();
    // Whoever closed our standard output does not want to know.
    let _ = writeln!(out, "listening on {addr}").and_then(|()| out.flush());
}

/// What a line on standard error begins with: `worker-2: ` on the thread of a worker, nothing where
/// there is one kernel.
fn whose() -> String {
    let thread = std::thread::current();
    let worker = thread.name().filter(|name| name.starts_with("worker-"));
    worker.map_or(String::new(), |name| format!("{name}: "))
}

/// Logs to standard error, at `info` unless `RUST_LOG` says otherwise.
pub fn log_to_stderr() {
    let level = env_logger::Env::default().default_filter_or("info");
    env_logger::Builder::from_env(level)
        .format(|out, record| match std::thread::current().name() {
            // What the watchdog says, a kernel's hook has said, which knows whose it is.
            Some("trapline-watchdog") => Ok(()),
            _ => writeln!(out, "{}{}", whose(), record.args()),
        })
        .init();
}

/// What a main future may come to.
pub trait Outcome {
    fn error(self) -> Option<String>;
}

impl Outcome for () {
    fn error(self) -> Option<String> {
        None
    }
}

impl<E: std::fmt::Display> Outcome for Result<(), E> {
    fn error(self) -> Option<String> {
        self.err().map(|error| error.to_string())
    }
}

/// A writer that says once, on standard error, that it cannot write. A reader that went away is
/// no news.
struct Complaining<W>(W, String, bool);

impl<W: Write> Complaining<W> {
    fn complain<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            let news = error.kind() != io::ErrorKind::BrokenPipe && !self.2;
            if news {
                complain!("warning: the trace to {} is not complete: {error}", self.1);
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
