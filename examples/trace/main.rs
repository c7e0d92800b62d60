//! Reads traces for you: why a line is there, who waits, what took long, and a picture of it all.

mod tool;

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use testing::trace::{Checker, Line};

use tool::life::Order;
use tool::model::{Bad, Read, Trace, read_lines};
use tool::style::Paint;
use tool::{chain, diff, lanes, life, page, perfetto, tables};

/// Reads a trace of trapline and answers questions about it.
///
/// A trace comes from `--trace FILE` of any example. Lines that cannot be read are reported, and
/// the rest is used.
#[derive(Parser)]
#[command(name = "trace", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Args)]
struct Input {
    /// The trace; standard input without it
    file: Option<PathBuf>,
}

#[derive(Args)]
struct Output {
    #[command(flatten)]
    input: Input,
    /// Where to write it; standard output without it
    #[arg(short, long)]
    output: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Why a line is there: its chain of causes, back to something from outside
    Why {
        /// The number of an event: 42, or #0042
        #[arg(value_parser = event_number)]
        seq: u64,
        #[command(flatten)]
        input: Input,
        /// Show the lines themselves
        #[arg(long)]
        lines: bool,
    },
    /// One task's life, and how long it ran, was ready and was blocked
    Task {
        /// Its number or its name
        task: String,
        #[command(flatten)]
        input: Input,
    },
    /// All tasks
    Tasks {
        #[command(flatten)]
        input: Input,
        /// What to sort by
        #[arg(long, value_enum, default_value_t = Order::Id)]
        sort: Order,
    },
    /// Which tasks have waited longest at the end of the trace, and which wait for each other
    Idle {
        #[command(flatten)]
        input: Input,
        /// How many to show
        #[arg(short = 'n', long, default_value_t = 20)]
        most: usize,
    },
    /// The longest runs, the longest waits for the CPU, the timers that fired latest
    Slow {
        #[command(flatten)]
        input: Input,
        /// How many of each to show
        #[arg(short = 'n', long, default_value_t = 10)]
        most: usize,
    },
    /// What the kernel did and how each task spent its time
    Summary {
        #[command(flatten)]
        input: Input,
    },
    /// A lane a task as text, the turns across
    Lanes {
        #[command(flatten)]
        input: Input,
        /// Columns of a page
        #[arg(long, default_value_t = 100)]
        width: usize,
    },
    /// The first event in which two traces differ, task by task
    Diff {
        /// One trace
        first: PathBuf,
        /// The other
        second: PathBuf,
    },
    /// Checks every promise that the grammar of the log makes
    Check {
        #[command(flatten)]
        input: Input,
    },
    /// A picture: one HTML file that needs nothing else
    Timeline(Output),
    /// The Chrome trace event format, for ui.perfetto.dev
    Perfetto(Output),
}

fn event_number(text: &str) -> Result<u64, String> {
    let number = text.trim_start_matches('#').parse();
    number.map_err(|_| format!("expected the number of an event such as 42, not `{text}`"))
}

/// A file of more than this gets a progress bar.
const LARGE: u64 = 50_000_000;

/// What to read, and a bar that shows how far that is.
fn open(file: Option<&Path>) -> io::Result<(Box<dyn BufRead>, ProgressBar)> {
    let Some(path) = file.filter(|path| *path != Path::new("-")) else {
        if io::stdin().is_terminal() {
            say("reading standard input; give a file to read that");
        }
        return Ok((Box::new(io::stdin().lock()), ProgressBar::hidden()));
    };
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))
    };
    let file = File::open(path).map_err(named)?;
    let about = file.metadata().map_err(named)?;
    if about.is_dir() {
        return Err(named(io::Error::other("it is a directory, expected the file of a trace")));
    }
    let bar = match about.len() > LARGE && io::stderr().is_terminal() {
        true => ProgressBar::new(about.len()),
        false => ProgressBar::hidden(),
    };
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {eta}");
    bar.set_style(style.expect("the template is right"));
    Ok((Box::new(BufReader::with_capacity(1 << 16, file)), bar))
}

/// Says something on standard error. A closed one is no error.
fn say(what: impl Display) {
    drop(writeln!(io::stderr(), "trace: {what}"));
}

/// So many wrong lines are reported one by one.
const SHOWN: usize = 10;

fn report(bad: &[Bad]) {
    for each in bad.iter().take(SHOWN) {
        say(each);
    }
    if bad.len() > SHOWN {
        say(format_args!("and {} more lines that cannot be read", bad.len() - SHOWN));
    }
}

fn read(file: Option<&Path>) -> io::Result<Trace> {
    let (input, bar) = open(file)?;
    let mut since = 0;
    let seen = |size| {
        since += size as u64;
        if since > 1 << 20 {
            bar.inc(std::mem::take(&mut since));
        }
    };
    let trace = Trace::read(input, seen)?;
    bar.finish_and_clear();
    report(&trace.bad);
    if trace.lines.is_empty() { Err(no_line()) } else { Ok(trace) }
}

fn no_line() -> io::Error {
    let what = "there is no line of a trace in it; record one with `--trace FILE`";
    io::Error::new(ErrorKind::InvalidData, what)
}

fn print(text: &str) -> io::Result<ExitCode> {
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn wrong(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, what)
}

fn write(output: &Output, make: impl FnOnce(&Trace) -> String) -> io::Result<ExitCode> {
    let text = make(&read(output.input.file.as_deref())?);
    match &output.output {
        None => print(&text),
        Some(path) => {
            let named = |error| wrong(format!("cannot write {}: {error}", path.display()));
            std::fs::write(path, text).map_err(named)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The oracle, in one pass.
fn check(input: &Input) -> io::Result<ExitCode> {
    let (text, bar) = open(input.file.as_deref())?;
    let (mut checker, mut count, mut since) = (Checker::default(), 0_u64, 0);
    let mut bad = Vec::new();
    read_lines(text, |read| match read {
        Read::Line(line, size) => {
            checker.line(&line);
            count += 1;
            since += size as u64;
            if since > 1 << 20 {
                bar.inc(std::mem::take(&mut since));
            }
        }
        Read::Remark(remark) => checker.remark(remark),
        Read::Bad(each) => bad.push(each),
    })?;
    bar.finish_and_clear();
    report(&bad);
    if count == 0 {
        return Err(no_line());
    }
    match checker.end() {
        Ok(()) if bad.is_empty() => print(&format!("{count} events, every promise is kept\n")),
        Ok(()) => Ok(ExitCode::FAILURE),
        Err(violations) => {
            let shown = violations.iter().take(100).map(|each| format!("{each}\n"));
            // That it cannot be printed is the lesser failure.
            drop(print(&shown.collect::<String>()));
            say(format_args!("{} of {count} events break a promise", violations.len()));
            Ok(ExitCode::FAILURE)
        }
    }
}

fn why(trace: &Trace, seq: u64, lines: bool, paint: Paint) -> io::Result<ExitCode> {
    let place = trace.place(seq).ok_or_else(|| {
        let number = |line: Option<&Line<'_>>| line.map_or(0, |line| line.seq);
        let (first, last) = (number(trace.lines.first()), number(trace.lines.last()));
        wrong(format!("there is no event {seq}; expected one from {first} to {last}"))
    })?;
    print(&chain::why(trace, place, lines, paint))
}

fn tell_task(trace: &Trace, task: &str, paint: Paint) -> io::Result<ExitCode> {
    let found = trace.find(task);
    if found.is_empty() {
        return Err(wrong(format!("there is no task `{task}`; `trace tasks` lists them")));
    }
    let lives: Vec<_> = found.iter().map(|task| life::task(trace, task, paint)).collect();
    print(&lives.join("\n"))
}

fn run(command: &Command, paint: Paint) -> io::Result<ExitCode> {
    let of = |input: &Input| read(input.file.as_deref());
    match command {
        Command::Why { seq, input, lines } => why(&of(input)?, *seq, *lines, paint),
        Command::Task { task, input } => tell_task(&of(input)?, task, paint),
        Command::Tasks { input, sort } => print(&life::tasks(&of(input)?, *sort, paint)),
        Command::Idle { input, most } => {
            print(&life::idle(&of(input)?.until_failure(), *most, paint))
        }
        Command::Slow { input, most } => print(&life::slow(&of(input)?, *most, paint)),
        Command::Summary { input } => print(&tables::summary(&of(input)?, paint)),
        Command::Lanes { input, width } => print(&lanes::lanes(&of(input)?, *width)),
        Command::Diff { first, second } => {
            let (a, b) = (read(Some(first))?, read(Some(second))?);
            match diff::diff(&a, &b, paint) {
                None => print("no difference\n"),
                Some(text) => print(&text).map(|_| ExitCode::FAILURE),
            }
        }
        Command::Check { input } => check(input),
        Command::Timeline(output) => write(output, page::page),
        Command::Perfetto(output) => write(output, perfetto::perfetto),
    }
}

fn main() -> ExitCode {
    match run(&Cli::parse().command, Paint::of_standard_output()) {
        Ok(code) => code,
        // Whoever closed the pipe has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            say(error);
            ExitCode::from(2)
        }
    }
}
