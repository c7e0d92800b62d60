//! The course's tool: starts labs, runs and checks them, gives hints, and shows the states of the
//! kernel in the logs of the steps.

mod checks;
mod compare;
mod early;
mod grade;
mod labs;
mod list;
mod own_tests;
mod program;
mod states;
mod student;
#[path = "../trace/tool/mod.rs"]
#[allow(dead_code, reason = "the tool `trace` uses the rest")]
mod tool;
mod work;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};
use serde_json::json;

use grade::{Graded, Judgement};
use labs::{Kind, Lab};
use program::Built;

/// The labs of the course: starts them, runs and checks them, and gives hints. Shows the states of
/// the kernel in the logs of the steps.
///
/// A lab is a folder of yours, in the folder `trapline-labs` or in that which the environment
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

const FOR_INSTRUCTORS: &str = "\
To grade a class, put the students' folders of labs side by side:

  DIR/ann/16_fair   DIR/bob/16_fair   ...

`check 16 --all DIR` grades one lab, and whoever has not handed it in is not passed.
`check --all DIR` grades every lab that is there. Only what a student writes is taken from
DIR; what was given is used as it was given.

With --json each result is one object on a line of its own. Its keys are student, lab, name,
passed and says; lab and name are null for a student without labs. Without --all there is one
object, without the key student.

The programs of students run as they are, for 10 s at most: grade in a container. Two checks
of the same lab at the same time disturb each other.

Exit codes: 0 all are passed, 1 some are not, 2 some cannot be checked (no such folder, say).";

#[derive(Subcommand)]
enum Task {
    /// All labs, and which of them you have started
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
    #[command(after_help = FOR_INSTRUCTORS)]
    Check {
        /// Its number
        #[arg(required_unless_present = "all", value_parser = lab_number)]
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
        /// The seed of the hidden scenario, which is drawn otherwise
        #[arg(long)]
        seed: Option<u64>,
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
    /// The log of a step in the words of the real kernel, for the tool `trace`
    Log {
        /// The number of the step
        #[arg(value_parser = step_number)]
        step: u32,
    },
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

/// Prints a line. Whoever has closed standard output has seen enough.
fn print(line: impl Display) {
    drop(writeln!(io::stdout(), "{line}"));
}

fn list() -> Result<ExitCode, String> {
    let folder = grade::default_folder();
    for lab in labs::all()? {
        let place = folder.join(&lab.name);
        let state = match place.is_dir() {
            true => format!("started in {}", place.display()),
            false => "not started".to_owned(),
        };
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
    match grade::build(lab, &grade::find(lab, dir)?)? {
        Built::Error(error) => {
            print(format_args!("it does not compile: {error}"));
            Ok(ExitCode::FAILURE)
        }
        Built::Program(program) => {
            // Without a time limit: the user sees the log, and can end the program.
            let ran = Command::new(program).arg(seed.to_string()).status();
            let status = ran.map_err(|error| error.to_string())?;
            Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

fn as_json(student: Option<&str>, lab: Option<&Lab>, result: &Result<Judgement, String>) -> String {
    let says = match result {
        Ok(Ok(())) => "passed",
        Ok(Err(why)) | Err(why) => why,
    };
    let mut object = json!({
        "lab": lab.map(|lab| lab.number),
        "name": lab.map(|lab| &lab.name),
        "passed": matches!(result, Ok(Ok(()))),
        "says": says,
    });
    if let Some(student) = student {
        object["student"] = json!(student);
    }
    object.to_string()
}

fn code(result: &Result<Judgement, String>) -> u8 {
    match result {
        Ok(Ok(())) => 0,
        Ok(Err(_)) => 1,
        Err(_) => 2,
    }
}

fn check(lab: &Lab, dir: Option<&Path>, json: bool, hidden: u64) -> ExitCode {
    let found = grade::find(lab, dir);
    if let Ok(folder) = &found {
        note_changes(lab, folder);
    }
    let result = found.and_then(|folder| grade::grade(lab, &folder, hidden));
    match &result {
        _ if json => print(as_json(None, Some(lab), &result)),
        Ok(Ok(())) => print(format_args!("lab {} is passed", lab.number)),
        Ok(Err(why)) => print(why),
        Err(why) => complain(why),
    }
    ExitCode::from(code(&result))
}

/// Says so if a student has changed what was given.
fn note_changes(lab: &Lab, folder: &Path) {
    let given = std::fs::read_to_string(folder.join("src/given.rs"));
    if given.is_ok_and(|given| given != lab.text("given.rs")) {
        complain("src/given.rs was changed; check uses it as it was given");
    }
}

fn check_all(folder: &Path, lab: Option<u32>, json: bool, hidden: u64) -> Result<ExitCode, String> {
    let labs = match lab {
        Some(number) => vec![labs::find(number)?],
        None => labs::all()?,
    };
    let mut worst = 0;
    grade::all(folder, &labs, hidden, |graded| {
        let Graded { student, lab, judgement } = graded;
        worst = worst.max(code(judgement));
        if json {
            return print(as_json(Some(student), lab.as_ref(), judgement));
        }
        let name = lab.as_ref().map_or("-", |lab| &lab.name);
        match judgement {
            Ok(Ok(())) => print(format_args!("{student} {name}: passed")),
            Ok(Err(why)) | Err(why) => print(format_args!("{student} {name}: {why}")),
        }
    })?;
    Ok(ExitCode::from(worst))
}

fn hint(lab: &Lab, nth: u8) -> Result<ExitCode, String> {
    let hints = lab.hints();
    let hint = hints.get(usize::from(nth) - 1);
    print(hint.ok_or_else(|| format!("lab {} has {} hints", lab.number, hints.len()))?);
    Ok(ExitCode::SUCCESS)
}

fn perform(task: Task) -> Result<ExitCode, String> {
    match task {
        Task::List => list(),
        Task::Start { lab, into } => start(&labs::find(lab)?, into),
        Task::Run { lab, dir, seed } => run(&labs::find(lab)?, dir.as_deref(), seed),
        Task::Check { lab, all: Some(all), json, seed, .. } => {
            check_all(&all, lab, json, seed.unwrap_or_else(grade::draw))
        }
        Task::Check { lab, dir, json, seed, .. } => {
            let lab = labs::find(lab.ok_or("expected the number of a lab")?)?;
            Ok(check(&lab, dir.as_deref(), json, seed.unwrap_or_else(grade::draw)))
        }
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
        Task::Log { step } => {
            print(states::log(step)?.trim_end());
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
