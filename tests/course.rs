//! The labs of the course: solutions pass, skeletons say what is missing, and each wrong solution
//! gets the sentence that was written for it. And the tool, as a student uses it.

#[path = "../examples/course/checks.rs"]
mod checks;
#[path = "../examples/course/compare.rs"]
mod compare;
mod example;
#[path = "../examples/course/grade.rs"]
#[allow(dead_code, reason = "the tool uses the rest")]
mod grade;
#[path = "../examples/course/labs.rs"]
#[allow(dead_code, reason = "the tool uses the rest")]
mod labs;
#[path = "../examples/course/list.rs"]
mod list;
#[path = "../examples/course/program.rs"]
#[allow(dead_code, reason = "the tool uses the rest")]
mod program;
#[path = "../examples/course/student.rs"]
#[allow(dead_code, reason = "the tool uses the rest")]
mod student;
#[path = "../examples/course/work.rs"]
mod work;

#[path = "../examples/course/labs/13_predict/given/program.rs"]
mod breakfast;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use labs::{Kind, Lab};
use program::Built;

/// An example, built once for all tests.
fn built(name: &'static str, place: &'static OnceLock<PathBuf>) -> Command {
    Command::new(place.get_or_init(|| example::build(name)))
}

static VARIANTS: OnceLock<PathBuf> = OnceLock::new();
static COURSE: OnceLock<PathBuf> = OnceLock::new();

/// What check says of a variant: `solution`, `skeleton`, `wrong_1`.
fn said(lab: &Lab, variant: &str, says: Option<&str>) -> Result<(), String> {
    let source = lab.text(&format!("{variant}.{}", lab.ending()));
    let judged = match lab.kind {
        Kind::Answer => grade::judge_answer(lab, without_says(&source)),
        Kind::Patched => patched(lab, variant),
        Kind::Program | Kind::Step(_) => {
            let mut command = built("course_variants", &VARIANTS);
            command.args([&lab.number.to_string(), variant]);
            let (ended, log) = run(&mut command, says);
            grade::judge_program(lab, without_says(&source), &ended, log)
        }
    };
    judged.unwrap_or_else(|error| panic!("{} {variant}: {error}", lab.name))
}

/// Whoever is said not to end is not waited for as long.
fn run(command: &mut Command, says: Option<&str>) -> (work::Ended, String) {
    let is_endless = says.is_some_and(|says| says.starts_with("your program did not end"));
    let limit = if is_endless { Duration::from_secs(1) } else { program::LIMIT };
    let (mut ended, log) = program::run(command, limit).unwrap();
    ended.killed_after = ended.killed_after.map(|_| program::LIMIT);
    (ended, log)
}

/// A variant of a lab that changes the crates: in the crate of `check` itself.
fn patched(lab: &Lab, variant: &str) -> Result<grade::Judgement, String> {
    let folder = Scratch::new(&format!("{}_{variant}", lab.name));
    student::start(lab, &folder.0.join("student"), &program::target()?)?;
    let folder = folder.0.join("student");
    if variant != "skeleton" {
        student::copy_crates(&folder, None)?;
        student::patch(lab, &format!("{variant}.patch"), &folder)?;
    }
    grade::grade(lab, &folder)
}

/// The first line of a wrong solution, if it says what check says.
fn says(source: &str) -> Option<&str> {
    let first = source.lines().next()?;
    first.trim_start_matches("// ").strip_prefix("says: ")
}

fn without_says(source: &str) -> String {
    let rest = source.split_once('\n').map_or("", |(_, rest)| rest);
    if says(source).is_some() { rest.to_owned() } else { source.to_owned() }
}

/// All labs; those that build the kernel anew only if COURSE=all.
fn labs() -> Vec<Lab> {
    let is_all = env::var("COURSE").is_ok_and(|labs| labs == "all");
    let labs = labs::all().unwrap().into_iter();
    labs.filter(|lab| is_all || lab.kind != Kind::Patched).collect()
}

/// Says all that is wrong, not the first thing only.
#[track_caller]
fn none_of(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn solutions_pass() {
    let wrong = |lab: Lab| {
        let why = said(&lab, "solution", None).err()?;
        Some(format!("{}: {why}", lab.name))
    };
    none_of(&labs().into_iter().filter_map(wrong).collect::<Vec<_>>());
}

#[test]
fn a_skeleton_is_told_what_is_missing() {
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
    let mut wrong = Vec::new();
    for lab in labs() {
        for variant in lab.wrongs() {
            let source = lab.text(&format!("{variant}.{}", lab.ending()));
            let said = said(&lab, &variant, says(&source));
            if said.as_ref().err().map(String::as_str) != says(&source) {
                wrong.push(format!("{} {variant}: {said:?}", lab.name));
            }
        }
    }
    none_of(&wrong);
}

#[test]
fn each_lab_has_three_hints_and_three_wrong_solutions_at_least() {
    let mut wrong = Vec::new();
    for lab in labs::all().unwrap() {
        let (hints, wrongs) = (lab.hints(), lab.wrongs());
        if hints.len() != 3 || hints.iter().any(String::is_empty) {
            wrong.push(format!("{} has {} hints", lab.name, hints.len()));
        }
        if wrongs.len() < 3 {
            wrong.push(format!("{} has {} wrong solutions", lab.name, wrongs.len()));
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
fn the_log_of_lab_13_is_that_of_its_program() {
    let lab = labs::find(13).unwrap();
    let folder = "tests/../examples/course/labs/13_predict/given/";
    let log = breakfast::log().replace(folder, "");
    let shown = lab.text("given/log.txt") + &lab.text("golden.trace");
    assert!(!shown.is_empty() && log.starts_with(&shown), "{log}");
}

/// A folder for one test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = env::temp_dir().join(format!("course-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The tool, in that folder: its exit code, and all that it said.
fn course(folder: &Path, args: &[&str]) -> (i32, String) {
    let mut command = built("course", &COURSE);
    let Output { status, stdout, stderr } =
        command.current_dir(folder).env_remove("TRAPLINE_LABS").args(args).output().unwrap();
    let said = String::from_utf8([stdout, stderr].concat()).unwrap();
    (status.code().unwrap(), said.trim_end().to_owned())
}

/// Puts a variant where the student writes.
fn hand_in(folder: &Path, number: u32, variant: &str) {
    let lab = labs::find(number).unwrap();
    let text = without_says(&lab.text(&format!("{variant}.{}", lab.ending())));
    fs::write(folder.join(&lab.name).join(lab.written()), text).unwrap();
}

#[test]
fn a_student_starts_a_program_and_an_answer_and_has_them_checked() {
    let scratch = Scratch::new("student");
    let (folder, labs) = (&scratch.0, scratch.0.join("trapline-labs"));
    for (number, missing) in [("13", "what happens in"), ("16", "what lets `ticker` run")] {
        let (code, said) = course(folder, &["start", number]);
        assert_eq!(code, 0, "{said}");
        let (code, said) = course(folder, &["check", number]);
        assert!(said.starts_with(&format!("still missing: {missing}")), "{said}");
        assert_eq!(code, 1);
        hand_in(&labs, number.parse().unwrap(), "solution");
        let (code, said) = course(folder, &["check", number]);
        assert_eq!((code, said), (0, format!("lab {number} is passed")));
    }
    let (code, said) = course(folder, &["run", "16"]);
    assert!(code == 0 && said.starts_with("#trace v2 clock=virtual"), "{said}");
    let listed = course(folder, &["list"]).1;
    assert!(listed.contains("started in trapline-labs/16_fair"), "{listed}");
    // The crate stands on its own, too.
    let own = labs.join("16_fair");
    let mut cargo = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    let ran = cargo.args(["run", "--quiet", "--offline"]).current_dir(&own).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));

    // What does not compile is one short line.
    fs::write(own.join("src/lab.rs"), "pub fn pump() -> u8 { \"\" }\n").unwrap();
    let (code, said) = course(folder, &["check", "16"]);
    assert!(said.starts_with("it does not compile: src/lab.rs:1:"), "{said}");
    assert_eq!((code, said.lines().count()), (1, 1), "{said}");
    let (code, said) = course(folder, &["start", "16"]);
    assert!(code == 2 && said.contains("is there already"), "{said}");
}

#[test]
fn an_instructor_grades_a_folder_of_submissions() {
    let scratch = Scratch::new("class");
    for (student, variant) in [("ann", "solution"), ("bob", "wrong_1")] {
        let folder = scratch.0.join(student);
        fs::create_dir_all(folder.join("13_predict")).unwrap();
        hand_in(&folder, 13, variant);
    }
    fs::create_dir(scratch.0.join("eve")).unwrap();
    let all = scratch.0.to_str().unwrap();
    let (code, said) = course(&scratch.0, &["check", "--all", all, "--json"]);
    assert_eq!(code, 2, "eve has no lab");
    let parsed = said.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let results: Vec<_> = parsed.collect();
    let row = |nth: usize| {
        let result = &results[nth];
        (result["student"].as_str().unwrap(), result["lab"].as_u64(), &result["passed"])
    };
    assert_eq!(row(0), ("ann", Some(13), &true.into()));
    assert_eq!(row(1), ("bob", Some(13), &false.into()));
    assert_eq!(row(2), ("eve", None, &false.into()));
    let lab = labs::find(13).unwrap();
    assert_eq!(results[1]["says"].as_str(), says(&lab.text("wrong_1.txt")));
    let (_, said) = course(&scratch.0, &["check", "13", "--all", all]);
    assert!(said.contains("ann 13_predict: passed\n"), "{said}");
}

#[test]
fn bad_input_gets_a_sentence() {
    let scratch = Scratch::new("bad");
    fs::create_dir_all(scratch.0.join("empty")).unwrap();
    for (args, expected) in [
        (&["check", "99"][..], "course: there is no lab 99; `list` shows the labs: "),
        (
            &["check", "16"],
            "course: lab 16 is not started: there is no folder trapline-labs/16_fair",
        ),
        (&["check", "16", "nowhere"], "course: there is no folder nowhere"),
        (&["check", "16", "empty"], "course: empty has no src/lab.rs, which lab 16 is about"),
        (
            &["check", "--all", "empty"],
            "course: empty has no folders; expected one for each student",
        ),
        (&["check", "--all", "nowhere"], "course: cannot read nowhere: "),
        (&["run", "13"], "course: lab 13 has no program; write answer.txt, and check it"),
        (&["hint", "16", "4"], "error: invalid value '4' for '[NTH]'"),
        (&["check"], "error: the following required arguments were not provided"),
    ] {
        let (code, said) = course(&scratch.0, args);
        assert!(code == 2 && said.starts_with(expected), "{args:?}: {code}, {said}");
    }
}

#[test]
fn a_program_that_does_not_end_is_killed() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo '#trace v2'; exec tail -f /dev/null"]);
    let (ended, log) = program::run(&mut command, Duration::from_millis(50)).unwrap();
    assert_eq!(ended.killed_after, Some(Duration::from_millis(50)));
    assert_eq!(log, "#trace v2\n");
}

#[test]
fn a_patched_lab_is_built_from_the_students_copies() {
    let Some(lab) = labs().into_iter().find(|lab| lab.kind == Kind::Patched) else { return };
    let scratch = Scratch::new("patched");
    let folder = scratch.0.join("lab");
    student::start(&lab, &folder, &program::target().unwrap()).unwrap();
    fs::write(folder.join("kernel/src/lib.rs"), "compile_error!(\"mine\");").unwrap();
    assert!(matches!(grade::build(&lab, &folder), Ok(Built::Error(_))));
}
