//! The course's tool: starts labs, runs and checks them, gives hints, and shows the states of the
//! kernel in the logs of the steps.

mod class;
mod guard;
mod processes;
mod progress;
mod verdict;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::{Parser, Subcommand};

use course::labs::{Kind, Lab};
use course::program::Built;
use course::{exercises, grade, labs, pages, program, slides, states, student};

use verdict::Verdict;

/// The labs of the course: starts them, runs and checks them, and gives hints. Shows the states of
/// the kernel in the logs of the steps.
///
/// A lab is a folder of yours, in the folder `trapline-labs` or in the folder that the environment
/// variable TRAPLINE_LABS names.
#[derive(Parser)]
#[command(name = "course", max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

const EXIT_CODES: &str = "\
Exit codes: 0 the lab is passed, 1 it is not, 2 it cannot be checked (there is no such lab
or folder, or the command line is wrong).";

#[derive(Subcommand)]
enum Task {
    /// All labs, and which of them you have started and passed
    List,
    /// Writes a lab into a folder of yours: DIR/16_fair
    Start {
        /// Its number
        #[arg(value_parser = lab_number)]
        lab: u32,
        /// Your folder of labs
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
    },
    /// Builds and runs your program, and prints its log
    Run {
        /// Its number
        #[arg(value_parser = lab_number)]
        lab: u32,
        /// The folder of the lab, or your folder of labs
        dir: Option<PathBuf>,
        /// The scenario: 0 is that of the page; `check` names others
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Checks your work, and says in a sentence what is wrong first
    #[command(after_help = class::HELP)]
    Check {
        /// Its number; without it, all labs that you have started
        #[arg(value_parser = lab_number)]
        lab: Option<u32>,
        /// The folder of the lab, or your folder of labs
        #[arg(conflicts_with = "all")]
        dir: Option<PathBuf>,
        /// Grade a folder of submissions, one folder for each student
        #[arg(long, value_name = "DIR")]
        all: Option<PathBuf>,
        /// Print JSON, one object a line
        #[arg(long)]
        json: bool,
        /// Print a table of the class in CSV: a row for each student, a column for each lab
        #[arg(long, requires = "all", conflicts_with = "json")]
        csv: bool,
        /// A further scenario, which no student can prepare for
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
    },
    /// Checks your work now, and after each change of it, until Ctrl-C
    Watch {
        /// Its number
        #[arg(value_parser = lab_number)]
        lab: u32,
        /// The folder of the lab, or your folder of labs
        dir: Option<PathBuf>,
    },
    /// A hint; the later hints say more
    Hint {
        /// Its number
        #[arg(value_parser = lab_number)]
        lab: u32,
        /// Which hint
        #[arg(default_value_t = 1, value_parser = hint_number)]
        nth: u8,
    },
    /// The solution
    Solution {
        /// Its number
        #[arg(value_parser = lab_number)]
        lab: u32,
    },
    /// The state of the kernel at a line of the log of a step
    State {
        /// The number of the step
        #[arg(value_parser = step_number)]
        step: u32,
        /// The line: 21 or '#0021'. The logs of steps 1 to 5 have no numbers: count the lines, but
        /// not those that the program prints
        #[arg(value_parser = line_number)]
        line: u64,
    },
    /// The change of a step from the step before, as a unified diff
    Change {
        /// The number of the step
        #[arg(value_parser = step_number)]
        step: u32,
    },
    /// A page of questions about the log of a step, 8 to 11, for a browser
    Exercise {
        /// The number of the step
        #[arg(value_parser = step_number)]
        step: u32,
    },
    /// The slides of a lecture, 1 or 2, as a page for a browser
    Slides {
        /// The number of the lecture
        #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(slides::LECTURES)))]
        lecture: u32,
    },
    /// The log of a step in the words of the real kernel, for the tool `trace`
    Log {
        /// The number of the step
        #[arg(value_parser = step_number)]
        step: u32,
    },
    /// Runs a program within limits
    #[command(hide = true)]
    Guard(guard::Order),
    /// Becomes a program that has limits
    #[command(hide = true)]
    Confined(guard::Confined),
}

fn step_number(text: &str) -> Result<u32, String> {
    let found = text.parse().ok().filter(|number| (1..=12).contains(number));
    found.ok_or("expected the number of a step, from 1 to 12".to_owned())
}

fn line_number(text: &str) -> Result<u64, String> {
    let found = text.trim_start_matches('#').parse();
    found.map_err(|_| "expected the number of a line, such as 21".to_owned())
}

fn lab_number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "expected the number of a lab, such as 16".to_owned())
}

fn hint_number(text: &str) -> Result<u8, String> {
    let found = text.parse().ok().filter(|number| (1..=3).contains(number));
    found.ok_or("expected 1, 2 or 3".to_owned())
}

/// Prints a line. A closed standard output is not an error.
fn print(line: impl Display) {
    drop(writeln!(io::stdout(), "{line}"));
}

fn list() -> Result<ExitCode, String> {
    let folder = grade::default_folder();
    for lab in labs::all()? {
        let state = progress::state(&lab, &folder.join(&lab.name));
        print(format_args!(
            "{:>2}  {:<52} {:<22} {state}",
            lab.number,
            lab.title,
            lab.kind.named()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn start(lab: &Lab, into: Option<PathBuf>) -> Result<ExitCode, String> {
    let is_elsewhere = into.is_some();
    let folder = into.unwrap_or_else(grade::default_folder).join(&lab.name);
    student::start(lab, &folder, &program::target()?)?;
    let (number, shown) = (lab.number, folder.display());
    let dir = if is_elsewhere { format!(" {shown}") } else { String::new() };
    print(format_args!("Lab {number}, {}, is in {shown}", lab.title));
    print(format_args!("  read    {}", folder.join("lab.md").display()));
    print(format_args!("  write   {}", folder.join(lab.written()).display()));
    if lab.kind != Kind::Answer {
        print(format_args!("  run     cargo run --example course -- run {number}{dir}"));
    }
    print(format_args!("  check   cargo run --example course -- check {number}{dir}"));
    print(format_args!("  stuck?  cargo run --example course -- hint {number}"));
    Ok(ExitCode::SUCCESS)
}

fn run(lab: &Lab, dir: Option<&Path>, seed: u64) -> Result<ExitCode, String> {
    if lab.kind == Kind::Answer {
        return Err(format!("lab {} has no program; write answer.txt, and check it", lab.number));
    }
    let folder = grade::find(lab, dir)?;
    let taken = program::take(grade::place(lab))?;
    match grade::build(lab, &folder)? {
        Built::Error(error) => {
            print(format_args!("it does not compile: {error}"));
            Ok(ExitCode::FAILURE)
        }
        Built::Program(program) => guard::attended(&program, seed, taken)
            .map_err(|error| format!("cannot run {}: {error}", program.display())),
    }
}

fn check(lab: &Lab, dir: Option<&Path>, extra: Option<u64>) -> Verdict {
    let folder = match grade::find(lab, dir) {
        Ok(folder) => folder,
        Err(why) => return Verdict::Unchecked(why),
    };
    note_changes(lab, &folder);
    // The student may save while the check runs.
    let checked = progress::fingerprint(lab, &folder);
    let verdict = Verdict::from(grade::grade(lab, &folder, extra));
    if verdict == Verdict::Passed
        && let Err(error) = checked.and_then(|checked| progress::note(&folder, checked))
    {
        complain(error);
    }
    verdict
}

fn check_one(lab: &Lab, dir: Option<&Path>, json: bool, extra: Option<u64>) -> ExitCode {
    let verdict = check(lab, dir, extra);
    match &verdict {
        _ if json => print(class::as_json(None, Some(lab), &verdict)),
        Verdict::Passed => print(format_args!("lab {} is passed", lab.number)),
        Verdict::Unchecked(why) => complain(why),
        Verdict::Failed(why) | Verdict::NotSubmitted(why) => print(why),
    }
    ExitCode::from(verdict.code())
}

/// Checks all labs that the student has started.
fn check_started(json: bool, extra: Option<u64>) -> Result<ExitCode, String> {
    let folder = grade::default_folder();
    let started = labs::all()?.into_iter().filter(|lab| folder.join(&lab.name).is_dir());
    let mut worst = None;
    for lab in started {
        let verdict = check(&lab, None, extra);
        worst = worst.max(Some(verdict.code()));
        match json {
            true => print(class::as_json(None, Some(&lab), &verdict)),
            false => print(format_args!("{}: {}", lab.name, verdict.says())),
        }
    }
    let folder = folder.display();
    worst.map(ExitCode::from).ok_or_else(|| format!("no lab is started in {folder}"))
}

fn watch(lab: &Lab, dir: Option<&Path>) -> Result<ExitCode, String> {
    let folder = grade::find(lab, dir)?;
    let mut checked = None;
    loop {
        // An editor may be about to replace the file.
        let now = progress::fingerprint(lab, &folder).ok();
        if now.is_some() && now != checked {
            check_one(lab, Some(&folder), false, None);
            checked = now;
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// Warns if a student has changed a given file.
fn note_changes(lab: &Lab, folder: &Path) {
    let given = std::fs::read_to_string(folder.join("src/given.rs"));
    if given.is_ok_and(|given| given != lab.text("given.rs")) {
        complain("src/given.rs was changed; check uses it as it was given");
    }
}

fn hint(lab: &Lab, nth: u8) -> Result<ExitCode, String> {
    let hints = lab.hints();
    let hint = hints.get(usize::from(nth) - 1);
    print(hint.ok_or_else(|| format!("lab {} has {} hints", lab.number, hints.len()))?);
    Ok(ExitCode::SUCCESS)
}

/// What the guard cannot do on this system.
const WITHOUT_LINUX: &str = "\
this is not Linux: nothing limits how many processes a program has and how much memory they use, \
and a process that leaves the group of its program does not end with it; check only your own work";

fn perform(task: Task) -> Result<ExitCode, String> {
    if matches!(task, Task::Run { .. } | Task::Check { .. } | Task::Watch { .. })
        && !processes::ARE_FOUND
    {
        complain(WITHOUT_LINUX);
    }
    match task {
        Task::List => list(),
        Task::Start { lab, into } => start(&labs::find(lab)?, into),
        Task::Run { lab, dir, seed } => run(&labs::find(lab)?, dir.as_deref(), seed),
        Task::Check { lab, dir, all, json, csv, seed } => {
            let form = class::Form::of(json, csv);
            match (all, lab) {
                (Some(all), lab) => class::check(&all, lab, form, seed),
                (None, Some(lab)) => Ok(check_one(&labs::find(lab)?, dir.as_deref(), json, seed)),
                (None, None) => check_started(json, seed),
            }
        }
        Task::Watch { lab, dir } => watch(&labs::find(lab)?, dir.as_deref()),
        Task::Guard(order) => guard::guard(&order),
        Task::Confined(order) => guard::confined(&order),
        Task::Hint { lab, nth } => hint(&labs::find(lab)?, nth),
        Task::Solution { lab } => {
            let lab = labs::find(lab)?;
            print(lab.text(&format!("solution.{}", lab.ending())).trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Task::State { step, line } => {
            print(states::state(step, line)?.trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Task::Change { step } => {
            let files = pages::change(step).into_iter().flatten();
            let diffs: String = files.map(|file| file.diff).collect();
            print(diffs.trim_end_matches('\n'));
            Ok(ExitCode::SUCCESS)
        }
        Task::Exercise { step } => {
            print(exercises::document(step)?);
            Ok(ExitCode::SUCCESS)
        }
        Task::Slides { lecture } => {
            print(slides::document(lecture)?);
            Ok(ExitCode::SUCCESS)
        }
        Task::Log { step } => {
            print(states::log(step).trim_end());
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn complain(what: impl Display) {
    drop(writeln!(io::stderr(), "course: {what}"));
}

fn main() -> ExitCode {
    perform(Cli::parse().command).unwrap_or_else(|error| {
        complain(error);
        ExitCode::from(2)
    })
}
