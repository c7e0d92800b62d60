//! Reads traces for you: why a line is there, who waits, what took long, and a picture of it all.

mod input;
mod tool;

use std::cell::RefCell;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use testing::trace::{Checker, Line};
use traps::Time;

use input::{open, say};
use tool::idle::Idle;
use tool::look::{Look, time};
use tool::model::Trace;
use tool::now::Now;
use tool::slow::Slow;
use tool::style::Paint;
use tool::summary::Summary;
use tool::tally::{Order, Tally};
use tool::tree::Tree;
use tool::{chain, diff, lanes, life, page, perfetto};

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

#[derive(Args)]
struct Looked {
    #[command(flatten)]
    input: Input,
    /// Look at this time of the trace: 3.25 (seconds), or 250ms
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<Time>,
}

impl Looked {
    /// Shows the lines to what is made with the time to look at.
    fn at<T>(
        &self,
        new: impl FnOnce(Look) -> T,
        mut line: impl FnMut(&mut T, &Line<'_>),
    ) -> io::Result<T> {
        let source = open(self.input.file.as_deref())?;
        let mut made = new(Look::new(self.at, source.writer));
        source.lines(|each| line(&mut made, each), |_| {})?;
        Ok(made)
    }
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
    /// All tasks; when more than 1,000 have ended, those by family of names
    Tasks {
        #[command(flatten)]
        input: Input,
        /// What to sort by
        #[arg(long, value_enum, default_value_t = Order::Id)]
        sort: Order,
    },
    /// Which tasks have waited longest, for what, and which wait for each other
    ///
    /// At the end of the trace; if a process is still writing FILE, now. The first line says which.
    /// A process of another user is not seen.
    Idle {
        #[command(flatten)]
        look: Looked,
        /// How many to show
        #[arg(short = 'n', long, default_value_t = 20)]
        most: usize,
    },
    /// All tasks that have not ended, below those that spawned them, and what each does
    ///
    /// At the end of the trace; if a process is still writing FILE, now. The first line says which.
    /// A process of another user is not seen.
    Tree {
        #[command(flatten)]
        look: Looked,
        /// How many tasks of one parent and one family of names to show: `conn-*` is one
        #[arg(short = 'n', long, default_value_t = 20)]
        most: usize,
    },
    /// The longest runs, the longest waits for the CPU, the timers that fired latest
    ///
    /// A trace knows how long a run took if it was recorded with `--timed`.
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
    /// The first event in which two traces differ, task by task; one may be timed
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

fn read(file: Option<&Path>) -> io::Result<Trace> {
    open(file)?.whole()
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

/// Shows a command each line of the input.
fn each(input: &Input, line: impl FnMut(&Line<'_>)) -> io::Result<Option<String>> {
    Ok(open(input.file.as_deref())?.lines(line, |_| {})?.header)
}

/// The oracle, in one pass.
fn check(input: &Input) -> io::Result<ExitCode> {
    let checker = RefCell::new(Checker::default());
    let line = |line: &Line<'_>| checker.borrow_mut().line(line);
    let source = open(input.file.as_deref())?;
    let over = source.lines(line, |remark| checker.borrow_mut().remark(remark))?;
    let (checker, count) = (checker.into_inner(), over.count);
    match checker.end() {
        Ok(()) if !over.has_bad => print(&format!("{count} events, every promise is kept\n")),
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
    let now = Now::of(trace);
    let lives: Vec<_> = found.iter().map(|task| life::task(trace, &now, task, paint)).collect();
    print(&lives.join("\n"))
}

fn run(command: &Command, paint: Paint) -> io::Result<ExitCode> {
    let of = |input: &Input| read(input.file.as_deref());
    match command {
        Command::Why { seq, input, lines } => why(&of(input)?, *seq, *lines, paint),
        Command::Task { task, input } => tell_task(&of(input)?, task, paint),
        Command::Tasks { input, sort } => {
            let mut tally = Tally::default();
            each(input, |line| tally.line(line))?;
            print(&tally.tasks(*sort, paint))
        }
        Command::Idle { look, most } => {
            let idle = look.at(|look| Idle::new(look, *most), Idle::line)?;
            print(&idle.show(paint).map_err(wrong)?)
        }
        Command::Tree { look, most } => {
            let tree = look.at(|look| Tree::new(look, *most), Tree::line)?;
            print(&tree.show(paint).map_err(wrong)?)
        }
        Command::Slow { input, most } => {
            let mut slow = Slow::new(*most);
            let header = each(input, |line| slow.line(line))?;
            print(&slow.show(header.as_deref(), paint))
        }
        Command::Summary { input } => {
            let mut summary = Summary::default();
            each(input, |line| summary.line(line))?;
            print(&summary.show(paint))
        }
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
