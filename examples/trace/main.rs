//! Reads traces for you: why a line is there, who waits, what took long, and a picture of it all.

mod file;
mod input;
mod keys;
#[cfg(unix)]
mod replay;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use crossterm::terminal;
use testing::trace::{Checker, Flight, Line};
use traps::Time;

use input::{Over, open, say};
use trace_tool::idle::Idle;
use trace_tool::look::{Look, Writer, time};
use trace_tool::model::Trace;
use trace_tool::now::Now;
use trace_tool::query::{self, Query};
use trace_tool::select::{Lengths, REMARK, Select};
use trace_tool::slow::Slow;
use trace_tool::style::Paint;
use trace_tool::summary::Summary;
use trace_tool::tally::{Order, Tally};
use trace_tool::tree::Tree;
use trace_tool::{chain, diff, lanes, life, page, perfetto, sources, state};

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
    /// Where to write it; - is standard output, as is nothing unless that is a terminal
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
    /// Makes a reader with the time to look at, and passes the lines and remarks to it.
    fn at<R>(
        &self,
        new: impl FnOnce(Look) -> R,
        line: impl FnMut(&mut R, &Line<'_>),
        remark: impl FnMut(&mut R, &str),
    ) -> io::Result<R> {
        let source = open(self.input.file.as_deref())?;
        let mut made = new(Look::new(self.at, source.goes_on()));
        source.lines(&mut made, line, remark)?;
        Ok(made)
    }
}

#[derive(Subcommand)]
enum Command {
    /// Why a line is there: its chain of causes, back to something from outside
    Why {
        /// The number of an event: 42, or #0042; without it the last line, or the line of the cause
        /// of a dump
        #[arg(value_parser = event_or_file)]
        seq: Option<EventOrFile>,
        #[command(flatten)]
        input: Input,
        /// Show the lines themselves
        #[arg(long)]
        lines: bool,
        /// Answer for every event of this trace instead, each answer below the event's number
        #[arg(long, value_name = "FILE", conflicts_with = "seq")]
        all: Option<PathBuf>,
    },
    /// The lines that a line caused: the way forward from `why`
    Effects {
        /// The number of an event: 42, or #0042
        #[arg(value_parser = event_number)]
        seq: u64,
        #[command(flatten)]
        input: Input,
        /// Show the lines themselves
        #[arg(long)]
        lines: bool,
    },
    /// The state of the kernel at a line: what runs, is ready, waits, and which timers are set
    State {
        #[command(flatten)]
        input: Input,
        /// The number of an event, or a time: 812, '#0812', 0.5, 250ms; without it the last line,
        /// or the line of the cause of a dump
        #[arg(long, value_name = "LINE|TIME", value_parser = state::at)]
        at: Option<state::At>,
        /// Print the text that the kernel itself prints in tests, and what only the log knows
        #[arg(long)]
        raw: bool,
        /// Print the state at every line, each below the number of its event
        #[arg(long, conflicts_with = "at")]
        all: bool,
    },
    /// Walks through the trace as a debugger does, and shows the state at each line
    ///
    /// Left and Right go by line, Up and Down by run, Page Up and Page Down by turn, Home and End
    /// to the ends. Enter goes to the cause of the line, e to what it caused, Backspace back. `/`
    /// searches for a text (n and N again), `:` goes to a line or a time, b stops at the next line
    /// that a query of `select` takes (c and C again). `?` lists the keys; q or Esc quits. Without
    /// a terminal, prints each line with what it changed.
    Step {
        #[command(flatten)]
        input: Input,
        /// Where to begin; as `--at` of `state`
        #[arg(long, value_name = "LINE|TIME", value_parser = state::at)]
        at: Option<state::At>,
    },
    /// One task's life, and how long it ran, was ready and was blocked
    Task {
        /// Its number or its name; if several tasks have the name, they are listed
        task: String,
        #[command(flatten)]
        input: Input,
    },
    /// All tasks; when more than 1,000 have ended, those by family of names
    Tasks {
        #[command(flatten)]
        input: Input,
        /// What to sort by
        #[arg(long, default_value = "id", value_parser = order())]
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
        #[arg(short = 'n', long, default_value_t = 20, value_parser = count)]
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
        #[arg(short = 'n', long, default_value_t = 20, value_parser = count)]
        most: usize,
    },
    /// The longest runs, the longest waits for the CPU, the timers that fired latest
    ///
    /// A trace knows how long a run took if it was recorded with `--timed`.
    Slow {
        #[command(flatten)]
        input: Input,
        /// How many of each to show
        #[arg(short = 'n', long, default_value_t = 10, value_parser = count)]
        most: usize,
    },
    /// What the kernel did and how each task spent its time
    Summary {
        #[command(flatten)]
        input: Input,
    },
    /// Prints the lines that a query takes, as a log that the other commands read
    ///
    /// `trace select 'verb=block task~conn-* for>1s' http.trace` prints the waits of connections
    /// that lasted more than a second. Without FILE it reads standard input, so commands can be
    /// joined: `trace select 'task~conn-*' http.trace | trace summary -`. What such a log does not
    /// have, another command cannot tell: `why` ends where a cause is missing, `state` knows only
    /// the lines that are there, and `check` refuses it. Select whole tasks for `summary`, `tasks`,
    /// `slow`, `lanes` and `timeline`.
    #[command(after_long_help = query::HELP)]
    Select {
        /// Conditions such as verb=block task~conn-* for>1s, all of which must hold
        #[arg(value_parser = Query::parse)]
        query: Query,
        #[command(flatten)]
        input: Input,
        /// Print how many lines it takes
        #[arg(long, conflicts_with = "percentiles")]
        count: bool,
        /// Print how long their waits and runs lasted: the percentiles of each kind
        #[arg(long)]
        percentiles: bool,
    },
    /// A lane a task as text, the turns across
    Lanes {
        #[command(flatten)]
        input: Input,
        /// Columns of a page
        #[arg(long, default_value_t = 100, value_parser = count)]
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
    /// Runs the program of a record again up to a line, in a debugger if asked for
    ///
    /// `trace replay http.record --until '#0120' --debugger gdb` stops in the poll that wrote line
    /// 120, at its call site. Build the program with `CARGO_PROFILE_DEV_DEBUG=full` to see its
    /// variables. Without a debugger it prints the tasks at the line.
    #[cfg(unix)]
    Replay(replay::Replay),
    /// A picture: one HTML file that needs nothing else
    ///
    /// It also steps through the states of the kernel. `page.html#0012` opens it at that line.
    Timeline {
        #[command(flatten)]
        output: Output,
        /// Put the files below DIR that the trace names into the page, which shows their lines
        #[arg(long, value_name = "DIR")]
        source: Option<PathBuf>,
    },
    /// The Chrome trace event format, for ui.perfetto.dev
    ///
    /// `chrome://tracing`, a page inside Chrome, opens the file too, without a network. Recent
    /// versions show it once `chrome://chrome-urls` has enabled the internal debugging pages. Flows
    /// lead from a run to the lines that woke its task, and on to all that they woke; a timer leads
    /// from the line that set it. Percentiles are those of the viewer, over the slices of one name.
    Perfetto(Output),
}

fn event_number(text: &str) -> Result<u64, String> {
    let number = text.trim_start_matches('#').parse();
    number.map_err(|_| format!("expected the number of an event such as 42, not `{text}`"))
}

/// The first word after `why`, which may leave out the number.
#[derive(Clone)]
enum EventOrFile {
    Event(u64),
    File(PathBuf),
}

fn event_or_file(text: &str) -> Result<EventOrFile, String> {
    Ok(event_number(text).map_or_else(|_| EventOrFile::File(text.into()), EventOrFile::Event))
}

/// Parses the name of an order. The help lists all of them.
fn order() -> impl TypedValueParser<Value = Order> {
    let names = Order::ALL.map(|(_, name, meaning)| PossibleValue::new(name).help(meaning));
    PossibleValuesParser::new(names).map(|given| {
        let order = Order::ALL.into_iter().find(|(_, name, _)| *name == given);
        order.expect("the parser takes only these names").0
    })
}

fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a number such as 20".to_owned())
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

/// Whether an output is the input file, under this or another name.
fn is_input(output: &Path, input: Option<&Path>) -> bool {
    let input = input.filter(|path| *path != Path::new("-")).unwrap_or(Path::new("/dev/stdin"));
    file::is_same(output, input)
}

/// Prints a text that may be long, a piece at a time.
fn stream(make: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<ExitCode> {
    let mut out = BufWriter::new(io::stdout().lock());
    make(&mut out).and_then(|()| out.flush())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a picture of a trace to where its options say. Its files end with `extension`.
fn write(
    output: &Output,
    extension: &str,
    make: impl FnOnce(&Trace, &mut dyn Write) -> io::Result<()>,
) -> io::Result<ExitCode> {
    let file = output.output.as_deref().filter(|path| *path != Path::new("-"));
    if let Some(path) = file
        && is_input(path, output.input.file.as_deref())
    {
        let what = "that is the trace itself, expected another file";
        return Err(wrong(format!("cannot write {}: {what}", path.display())));
    }
    if output.output.is_none() && io::stdout().is_terminal() {
        let named = output.input.file.as_deref().and_then(Path::file_stem);
        let name = Path::new(named.unwrap_or("trace".as_ref())).with_extension(extension);
        let name = name.display();
        let what = format!("expected a file for it, such as `-o {name}`; `-o -` prints it here");
        return Err(wrong(format!("the output is not meant for a terminal: {what}")));
    }
    let trace = read(output.input.file.as_deref())?;
    match file {
        None => return stream(|out| make(&trace, out)),
        Some(path) => {
            let named = |error| wrong(format!("cannot write {}: {error}", path.display()));
            let mut out = BufWriter::new(File::create(path).map_err(named)?);
            make(&trace, &mut out).and_then(|()| out.flush()).map_err(named)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn timeline(output: &Output, source: Option<&Path>) -> io::Result<ExitCode> {
    write(output, "html", |trace, out| {
        let files = source.map(|dir| sources::sources(trace, dir)).transpose()?;
        if let (Some(dir), Some(true)) = (source, files.as_ref().map(BTreeMap::is_empty)) {
            say(format_args!("no file that the trace names is below {}", dir.display()));
        }
        page::page(trace, &files.unwrap_or_default(), out)
    })
}

/// Passes each line of the input to a command.
fn each(input: &Input, mut line: impl FnMut(&Line<'_>)) -> io::Result<Over> {
    open(input.file.as_deref())?.lines(&mut (), |(), each| line(each), |(), _| {})
}

/// The oracle, in one pass.
fn check(input: &Input) -> io::Result<ExitCode> {
    let mut checker = Checker::default();
    let source = open(input.file.as_deref())?;
    let over = source.lines(&mut checker, Checker::line, Checker::remark)?;
    let count = over.count;
    if over.is_selection {
        let what = "a selection of lines: expected the whole log that `trace select` has read";
        return Err(wrong(format!("cannot check {what}")));
    }
    let violations = checker.end().err().unwrap_or_default();
    let shown: String = violations.iter().take(100).map(|each| format!("{each}\n")).collect();
    let events = match over.dump {
        Some((Flight { from, .. }, head)) => {
            let before = match head {
                0 => String::new(),
                _ => format!(", and {head} lines of those before"),
            };
            format!("a dump with {} events from #{from:04} on{before}", count - head)
        }
        None => format!("{count} events"),
    };
    let text = match (violations.is_empty(), over.is_whole, over.writer) {
        (true, true, None) => format!("{events}, every promise is kept\n"),
        (true, true, Some(Writer { pid, .. })) => format!(
            "{count} events so far, every promise is kept; process {pid} is writing the trace\n"
        ),
        _ => shown,
    };
    // Report this failure rather than that of printing.
    let printed = print(&text);
    match (violations.len(), over.is_whole) {
        (0, true) => return printed,
        (0, false) => say(format_args!("{count} events: the log is incomplete")),
        (broken, _) => say(format_args!("{broken} of {count} events break a promise")),
    }
    Ok(ExitCode::FAILURE)
}

/// Prints the lines that a query takes, below the header of the log.
fn select(query: &Query, input: &Input) -> io::Result<ExitCode> {
    stream(|out| {
        let mut printed = Printed { out, result: Ok(()) };
        let mut select = Select::new(query.clone(), false);
        let source = open(input.file.as_deref())?;
        let source = if io::stdout().is_terminal() { source.in_silence() } else { source };
        let line = |printed: &mut Printed<'_>, line: &Line<'_>| {
            select.line(line, || line.to_string());
            printed.all(&mut select);
        };
        source.lines(&mut printed, line, |printed, remark| {
            printed.line(remark);
            if remark.starts_with("#trace ") {
                printed.line(&format!("{REMARK}{query}"));
            }
        })?;
        select.end();
        printed.all(&mut select);
        printed.result
    })
}

/// An output, and its first error.
struct Printed<'o> {
    out: &'o mut dyn Write,
    result: io::Result<()>,
}

impl Printed<'_> {
    fn line(&mut self, text: &str) {
        if self.result.is_ok() {
            self.result = writeln!(self.out, "{text}");
        }
    }

    fn all(&mut self, select: &mut Select<String>) {
        while let Some((text, _)) = select.pop() {
            self.line(&text);
        }
    }
}

/// Counts the lines that a query takes.
fn count_selected(query: &Query, input: &Input) -> io::Result<ExitCode> {
    let (mut select, mut count) = (Select::new(query.clone(), false), 0_u64);
    each(input, |line| {
        select.line(line, || ());
        while select.pop().is_some() {
            count += 1;
        }
    })?;
    select.end();
    while select.pop().is_some() {
        count += 1;
    }
    print(&format!("{count}\n"))
}

/// Prints the lengths of the waits and runs that begin at the lines that a query takes.
fn percentiles(query: &Query, input: &Input, paint: Paint) -> io::Result<ExitCode> {
    let (mut select, mut lengths) = (Select::new(query.clone(), true), Lengths::default());
    each(input, |line| {
        select.line(line, || (Lengths::kind(line), line.seq));
        lengths.take(&mut select);
    })?;
    select.end();
    lengths.take(&mut select);
    print(&lengths.show(paint))
}

fn place(trace: &Trace, seq: u64) -> io::Result<usize> {
    trace.place(seq).ok_or_else(|| wrong(state::missing(trace, seq)))
}

fn tell_task(trace: &Trace, task: &str, paint: Paint) -> io::Result<ExitCode> {
    let found = trace.find(task);
    if found.is_empty() {
        return Err(wrong(format!("there is no task `{task}`; `trace tasks` lists them")));
    }
    match found[..] {
        [task] => print(&life::task(trace, &Now::of(trace), task, paint)),
        _ => print(&life::tasks(trace, &found, paint)),
    }
}

fn run(command: &Command, paint: Paint) -> io::Result<ExitCode> {
    let of = |input: &Input| read(input.file.as_deref());
    match command {
        Command::Why { all: Some(file), lines, .. } => {
            let trace = read(Some(file))?;
            stream(|out| chain::why_all(&trace, *lines, paint, out))
        }
        Command::Why { seq, input, lines, all: None } => {
            let (seq, file) = match (seq, &input.file) {
                (Some(EventOrFile::Event(seq)), file) => (Some(*seq), file.as_deref()),
                (None, file) => (None, file.as_deref()),
                (Some(EventOrFile::File(file)), None) => (None, Some(file.as_path())),
                (Some(EventOrFile::File(other)), Some(_)) => {
                    let other = other.display().to_string();
                    return Err(wrong(event_number(&other).expect_err("it is no number")));
                }
            };
            let trace = read(file)?;
            let last = trace.cause_of_dump().unwrap_or(trace.len() - 1);
            let place = seq.map_or(Ok(last), |seq| place(&trace, seq))?;
            print(&(chain::why(&trace, place, *lines, paint) + chain::hint(&trace, place)))
        }
        Command::Effects { seq, input, lines } => {
            let trace = of(input)?;
            print(&chain::tell_effects(&trace, place(&trace, *seq)?, *lines, paint))
        }
        Command::State { input, at, raw, all } => {
            let trace = of(input)?;
            let show = |place| match raw {
                true => state::raw(&trace, place),
                false => state::state(&trace, place, paint),
            };
            if *all {
                return stream(|out| {
                    (0..state::count(&trace)).try_for_each(|place| {
                        write!(out, "#{:04}\n{}", trace.seq(place), show(place))
                    })
                });
            }
            let last = trace.cause_of_dump().unwrap_or(state::count(&trace) - 1);
            let place = at.map_or(Ok(last), |at| state::place(&trace, at));
            print(&show(place.map_err(wrong)?))
        }
        Command::Step { input, at } => {
            let trace = of(input)?;
            let first = trace.cause_of_dump().unwrap_or(0);
            let place = at.map_or(Ok(first), |at| state::place(&trace, at)).map_err(wrong)?;
            keys::step(&trace, place, paint)
        }
        Command::Task { task, input } => tell_task(&of(input)?, task, paint),
        Command::Tasks { input, sort } => {
            let mut tally = Tally::default();
            let source = open(input.file.as_deref())?;
            tally.writer = source.lines(&mut tally, Tally::line, Tally::remark)?.goes_on;
            print(&tally.tasks(*sort, paint))
        }
        Command::Idle { look, most } => {
            let idle = look.at(|look| Idle::new(look, *most), Idle::line, Idle::remark)?;
            print(&idle.show(paint).map_err(wrong)?)
        }
        Command::Tree { look, most } => {
            let tree = look.at(|look| Tree::new(look, *most), Tree::line, Tree::remark)?;
            print(&tree.show(paint).map_err(wrong)?)
        }
        Command::Slow { input, most } => {
            let mut slow = Slow::new(*most);
            let source = open(input.file.as_deref())?;
            let over = source.lines(&mut slow, Slow::line, Slow::remark)?;
            print(&slow.show(over.header.as_deref(), paint))
        }
        Command::Summary { input } => {
            let mut summary = Summary::default();
            let source = open(input.file.as_deref())?;
            let over = source.lines(&mut summary, Summary::line, Summary::remark)?;
            summary.tally.writer = over.goes_on;
            print(&summary.show(paint))
        }
        Command::Select { query, input, count: true, .. } => count_selected(query, input),
        Command::Select { query, input, percentiles: true, .. } => percentiles(query, input, paint),
        Command::Select { query, input, .. } => select(query, input),
        Command::Lanes { input, width } => {
            let trace = of(input)?;
            stream(|out| lanes::lanes(&trace, *width, out))
        }
        Command::Diff { first, second } => {
            let (a, b) = (read(Some(first))?, read(Some(second))?);
            match diff::diff(&a, &b, paint) {
                None => print("no difference\n"),
                Some(text) => print(&text).map(|_| ExitCode::FAILURE),
            }
        }
        Command::Check { input } => check(input),
        #[cfg(unix)]
        Command::Replay(what) => replay::replay(what),
        Command::Timeline { output, source } => timeline(output, source.as_deref()),
        Command::Perfetto(output) => write(output, "json", perfetto::perfetto),
    }
}

/// Colours, if standard output is a terminal, and its width.
fn paint() -> Paint {
    let size = if io::stdout().is_terminal() { terminal::size().ok() } else { None };
    Paint { width: size.map(|(columns, _)| columns.into()), ..Paint::of_standard_output() }
}

fn main() -> ExitCode {
    match run(&Cli::parse().command, paint()) {
        Ok(code) => code,
        // The reader of the pipe has closed it, which is not an error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            say(error);
            ExitCode::from(2)
        }
    }
}
