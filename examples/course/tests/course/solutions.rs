//! The labs of the course: solutions pass, skeletons name the missing part, and each wrong
//! solution gets the sentence that was written for it.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use course::checks::lab_13;
use course::labs::{Kind, Lab};
use course::program::Built;
use course::{grade, labs, program, student, work};
use support::examples;

use crate::tool::Scratch;

/// An example, built once for all tests.
fn built(name: &'static str, place: &'static OnceLock<PathBuf>) -> Command {
    Command::new(place.get_or_init(|| examples::build(name)))
}

static VARIANTS: OnceLock<PathBuf> = OnceLock::new();
static COURSE: OnceLock<PathBuf> = OnceLock::new();

/// The tool. It is also the guard of the programs that are run here.
pub fn course() -> Command {
    let mut tool = built("course", &COURSE);
    // The first build of a lab would print its crates among what a test compares.
    tool.env("CARGO_TERM_QUIET", "true");
    tool
}

/// The verdict of `check` about a variant: `solution`, `skeleton`, `wrong_1`.
fn said(lab: &Lab, variant: &str, says: Option<&str>) -> Result<(), String> {
    let source = lab.text(&format!("{variant}.{}", lab.ending()));
    let judged = match lab.kind {
        Kind::Answer => grade::judge_answer(lab, without_says(&source)),
        Kind::Patched => patched(lab, variant),
        Kind::Program | Kind::Step(_) => {
            let source = without_says(&source);
            grade::judge_scenarios(lab, &source, None, |seed| {
                let mut command = built("course_variants", &VARIANTS);
                command.args([&lab.number.to_string(), variant, &seed.to_string()]);
                Ok(run(&mut command, says))
            })
        }
    };
    let judged = judged.unwrap_or_else(|error| panic!("{} {variant}: {error}", lab.name));
    judged.map_err(|why| match why.split_once(" (in scenario ") {
        Some((why, _)) => why.to_owned(),
        None => why,
    })
}

/// Do not wait long for a program that is expected not to end.
fn run(command: &mut Command, says: Option<&str>) -> (work::Ended, String) {
    let is_endless = says.is_some_and(|says| says.starts_with("your program did not end"));
    let limit = if is_endless { Duration::from_secs(4) } else { program::LIMIT };
    course();
    let (mut ended, log) = program::run(command, limit).unwrap();
    ended.killed_after = ended.killed_after.map(|_| program::LIMIT);
    (ended, log)
}

/// `check` has one copy of the crates, so two tests cannot use it at once.
static PATCHED: Mutex<()> = Mutex::new(());

/// A variant of a lab that changes the crates.
fn patched(lab: &Lab, variant: &str) -> Result<grade::Judgement, String> {
    course();
    let _one = PATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Scratch::new(&format!("{}_{variant}", lab.name));
    student::start(lab, &folder.0.join("student"), &program::target()?)?;
    let folder = folder.0.join("student");
    if variant != "skeleton" {
        student::copy_crates(&folder, None)?;
        student::patch(lab, &format!("{variant}.patch"), &folder)?;
    }
    grade::grade(lab, &folder, None)
}

/// The value of a line `KEY: VALUE` at the head of a wrong solution. The first line is what check
/// says, and the second is the demand of the page that the solution misses.
fn header<'s>(source: &'s str, key: &str) -> Option<&'s str> {
    let mut lines = source.lines().take(2).map(|line| line.trim_start_matches("// "));
    lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
}

/// The verdict of `check` about a wrong solution.
pub fn says(source: &str) -> Option<&str> {
    header(source, "says")
}

/// Blanks the head of a wrong solution, so that its lines keep their numbers.
pub fn without_says(source: &str) -> String {
    let count = usize::from(says(source).is_some()) + usize::from(demand(source).is_some());
    let rest = source.lines().skip(count).map(|line| format!("{line}\n"));
    "\n".repeat(count) + &rest.collect::<String>()
}

/// The demand that a wrong solution misses.
fn demand(source: &str) -> Option<&str> {
    header(source, "demand")
}

/// The demands of a page: the bold names in the list of what check wants to see.
fn demands(page: &str) -> Vec<&str> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("- **"));
    lines.filter_map(|line| Some(line.split_once("**")?.0)).collect()
}

/// All labs; those that build the kernel again only if COURSE=all. COURSE=9,10 is only these.
fn labs() -> Vec<Lab> {
    let chosen = env::var("COURSE").unwrap_or_default();
    let numbers: Vec<u32> = chosen.split(',').filter_map(|number| number.parse().ok()).collect();
    let is_chosen = |lab: &Lab| match numbers.is_empty() {
        true => chosen == "all" || lab.kind != Kind::Patched,
        false => numbers.contains(&lab.number),
    };
    labs::all().unwrap().into_iter().filter(is_chosen).collect()
}

/// Reports all errors, not only the first.
#[track_caller]
pub fn none_of(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// The faults of all labs. Several are judged at a time, because each starts one process after the
/// other.
fn faults_of_labs(faults: impl Fn(&Lab) -> Vec<String> + Sync) -> Vec<String> {
    let labs = Mutex::new(labs().into_iter());
    let next = || labs.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || std::iter::from_fn(next).flat_map(|lab| faults(&lab)).collect::<Vec<_>>();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

#[test]
fn right_solutions_pass() {
    let wrong = faults_of_labs(|lab| {
        let variants = [vec!["solution".to_owned()], lab.others("right")].concat();
        let fault = |variant: String| {
            let why = said(lab, &variant, None).err()?;
            Some(format!("{} {variant}: {why}", lab.name))
        };
        variants.into_iter().filter_map(fault).collect()
    });
    none_of(&wrong);
}

#[test]
fn check_names_the_missing_part_of_a_skeleton() {
    let mut wrong = Vec::new();
    for lab in labs() {
        let said = said(&lab, "skeleton", None);
        if !said.as_ref().is_err_and(|why| why.starts_with("still missing: ")) {
            wrong.push(format!("{}: {said:?}", lab.name));
        }
    }
    none_of(&wrong);
}

#[test]
fn each_wrong_solution_gets_its_sentence() {
    let wrong = faults_of_labs(|lab| {
        let fault = |variant: String| {
            let source = lab.text(&format!("{variant}.{}", lab.ending()));
            let said = said(lab, &variant, says(&source));
            let is_right = said.as_ref().err().map(String::as_str) == says(&source);
            (!is_right).then(|| format!("{} {variant}: {said:?}", lab.name))
        };
        lab.others("wrong").into_iter().filter_map(fault).collect()
    });
    none_of(&wrong);
}

#[test]
fn a_program_that_fails_in_one_scenario_fails_in_each_check() {
    let lab = labs::find(16).unwrap();
    let verdict = |fails_in: u64, extra| {
        let judged = grade::judge_scenarios(&lab, "", extra, |seed| {
            let mut command = built("course_variants", &VARIANTS);
            let variant = if seed == fails_in { "skeleton" } else { "solution" };
            command.args(["16", variant, &seed.to_string()]);
            Ok(run(&mut command, None))
        });
        judged.unwrap().map_err(|why| why.split_once(" (in ").unwrap_or_default().1.to_owned())
    };
    let last = labs::SCENARIOS - 1;
    let again = format!("scenario {last}; `run 16 --seed {last}` shows it)");
    for _ in 0..2 {
        assert_eq!(verdict(last, None), Err(again.clone()));
    }
    assert_eq!(verdict(4711, None), Ok(()));
    let extra = "scenario 4711; `run 16 --seed 4711` shows it)".to_owned();
    assert_eq!(verdict(4711, Some(4711)), Err(extra));
}

#[test]
fn each_lab_has_three_hints_and_six_wrong_and_two_more_right_solutions_at_least() {
    let mut wrong = Vec::new();
    for lab in labs::all().unwrap() {
        let (hints, wrongs) = (lab.hints(), lab.others("wrong"));
        if hints.len() != 3 || hints.iter().any(String::is_empty) {
            wrong.push(format!("{} has {} hints", lab.name, hints.len()));
        }
        if wrongs.len() < 6 {
            wrong.push(format!("{} has {} wrong solutions", lab.name, wrongs.len()));
        }
        let rights = lab.others("right").len();
        if rights < 2 {
            wrong.push(format!("{} has {rights} right solutions besides its own", lab.name));
        }
        // A patch says it on a line before the first `---`, as programs do.
        for name in wrongs.iter().map(|name| format!("{name}.{}", lab.ending())) {
            if says(&lab.text(&name)).is_none() {
                wrong.push(format!("{} {name} does not begin with `says: `", lab.name));
            }
        }
    }
    none_of(&wrong);
}

#[test]
fn each_demand_has_a_wrong_solution_that_fails_at_it() {
    let mut wrong = Vec::new();
    for lab in labs::all().unwrap() {
        let page = lab.text("lab.md");
        let demands = demands(&page);
        let files = lab.others("wrong").into_iter();
        let sources = files.map(|name| (lab.text(&format!("{name}.{}", lab.ending())), name));
        let sources: Vec<(String, String)> = sources.collect();
        let missed: Vec<_> = sources
            .iter()
            .map(|(source, name)| (demand(source).unwrap_or_default(), name))
            .collect();
        if demands.len() < 3 {
            wrong.push(format!("{} has {} demands", lab.name, demands.len()));
        }
        for demand in &demands {
            if !missed.iter().any(|(missed, _)| missed == demand) {
                wrong.push(format!("{}: no wrong solution misses `{demand}`", lab.name));
            }
        }
        for (missed, name) in missed.iter().filter(|(missed, _)| !demands.contains(missed)) {
            wrong.push(format!("{} {name}: `{missed}` is no demand of the page", lab.name));
        }
    }
    none_of(&wrong);
}

#[test]
fn the_log_of_lab_13_is_that_of_its_program() {
    let lab = labs::find(13).unwrap();
    let folder = "examples/course/labs/13_predict/given/";
    let log = lab_13::given::program::log().replace(folder, "");
    let shown = lab.text("given/log.txt") + &lab.text("golden.trace");
    assert!(!shown.is_empty() && log.starts_with(&shown), "{log}");
}

#[test]
fn a_patched_lab_is_built_from_the_students_copies() {
    let Some(lab) = labs().into_iter().find(|lab| lab.kind == Kind::Patched) else { return };
    course();
    let _one = PATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("patched");
    let folder = scratch.0.join("lab");
    student::start(&lab, &folder, &program::target().unwrap()).unwrap();
    let Ok(Built::Program(program)) = grade::build(&lab, &folder) else { panic!("it builds") };
    assert!(program.components().any(|part| part.as_os_str() == "patched"), "{program:?}");
    fs::write(folder.join("kernel/src/lib.rs"), "compile_error!(\"mine\");").unwrap();
    assert!(matches!(grade::build(&lab, &folder), Ok(Built::Error(_))));
}
