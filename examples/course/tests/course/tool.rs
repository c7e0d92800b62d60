//! The tool, as a student and an instructor use it.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use course::labs::Kind;
use course::{labs, limits, program, student};
use testing::child;

use crate::solutions::{course, says, without_says};

/// A folder for one test.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
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

/// Runs the tool in a folder. Returns its exit code and its output.
pub fn course_in(folder: &Path, args: &[&str]) -> (i32, String) {
    let mut command = course();
    command.current_dir(folder).env_remove("TRAPLINE_LABS").args(args);
    let Output { status, stdout, stderr } = child::output_within(child::BUILD, &mut command);
    let said = String::from_utf8([stdout, stderr].concat()).unwrap();
    // Another test may build a lab at the same time.
    let said: Vec<&str> = said.lines().filter(|line| !line.ends_with("; waiting")).collect();
    (status.code().unwrap(), said.join("\n").trim_end().to_owned())
}

/// Puts a variant in the place of the student's file.
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
        let (code, said) = course_in(folder, &["start", number]);
        assert_eq!(code, 0, "{said}");
        let (code, said) = course_in(folder, &["check", number]);
        assert!(said.starts_with(&format!("still missing: {missing}")), "{said}");
        assert_eq!(code, 1);
        hand_in(&labs, number.parse().unwrap(), "solution");
        let (code, said) = course_in(folder, &["check", number]);
        assert_eq!((code, said), (0, format!("lab {number} is passed")));
    }
    let (code, said) = course_in(folder, &["run", "16"]);
    assert!(code == 0 && said.starts_with("#trace v3 clock=virtual"), "{said}");
    let listed = course_in(folder, &["list"]).1;
    assert!(listed.contains("passed, in trapline-labs/16_fair"), "{listed}");
    // The crate also builds on its own.
    let own = labs.join("16_fair");
    let mut cargo = child::cargo();
    cargo.args(["run", "--quiet", "--offline"]).current_dir(&own);
    let ran = child::output_within(child::BUILD, &mut cargo);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));

    // A compile error is reported in one short line.
    fs::write(own.join("src/lab.rs"), "pub fn pump() -> u8 { \"\" }\n").unwrap();
    let (code, said) = course_in(folder, &["check", "16"]);
    assert!(said.starts_with("it does not compile: src/lab.rs:1:"), "{said}");
    assert_eq!((code, said.lines().count()), (1, 1), "{said}");
    let (code, said) = course_in(folder, &["start", "16"]);
    assert!(code == 2 && said.contains("is there already"), "{said}");
}

#[test]
fn a_panic_of_the_library_and_an_endless_loop_are_placed_in_the_students_file() {
    let scratch = Scratch::new("placed");
    course_in(&scratch.0, &["start", "16"]);
    let solution = labs::find(16).unwrap().text("solution.rs");
    let said = |harm: &str| {
        let source = solution.replacen("        match", &format!("{harm}\n        match"), 1);
        fs::write(scratch.0.join("trapline-labs/16_fair/src/lab.rs"), source).unwrap();
        course_in(&scratch.0, &["check", "16"]).1
    };
    assert_eq!(
        said("drop(std::time::Duration::ZERO - std::time::Duration::MAX);"),
        "your program panicked at src/lab.rs:11, `drop(std::time::Duration::ZERO - \
         std::time::Duration::MAX);`: overflow when subtracting durations"
    );
    assert_eq!(
        said("while true { yield_now().await? }"),
        "your program does not come to an end: its task 4 `pump` repeats `yield` at src/lab.rs:11"
    );
}

/// A class that hands in lab 13: ann is right, bob is not, eve has no lab, and the text of "joe,
/// jr" cannot be read.
fn class(scratch: &Scratch) -> String {
    for (student, variant) in [("ann", "solution"), ("bob", "wrong_1"), ("joe, jr", "solution")] {
        let folder = scratch.0.join(student);
        fs::create_dir_all(folder.join("13_predict")).unwrap();
        hand_in(&folder, 13, variant);
    }
    let unread = scratch.0.join("joe, jr/13_predict/answer.txt");
    fs::write(&unread, "x".repeat(2 << 20)).unwrap();
    fs::create_dir(scratch.0.join("eve")).unwrap();
    scratch.0.to_str().unwrap().to_owned()
}

#[test]
fn an_instructor_grades_a_folder_of_submissions() {
    let scratch = Scratch::new("class");
    let all = class(&scratch);
    let (code, said) = course_in(&scratch.0, &["check", "--all", &all, "--json"]);
    assert_eq!(code, 2, "a file cannot be read");
    let parsed = said.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let results: Vec<_> = parsed.collect();
    let row = |nth: usize| {
        let result = &results[nth];
        let text = |key: &str| result[key].as_str().unwrap();
        (text("student"), result["lab"].as_u64(), text("status"))
    };
    assert_eq!(row(0), ("ann", Some(13), "passed"));
    assert_eq!(row(1), ("bob", Some(13), "failed"));
    assert_eq!(row(2), ("eve", None, "not submitted"));
    assert_eq!(row(3), ("joe, jr", Some(13), "could not be checked"));
    let lab = labs::find(13).unwrap();
    assert_eq!(results[1]["says"].as_str(), says(&lab.text("wrong_1.txt")));
    let (_, said) = course_in(&scratch.0, &["check", "13", "--all", &all]);
    assert!(said.contains("ann 13_predict: passed\n"), "{said}");
    fs::remove_dir_all(scratch.0.join("joe, jr")).unwrap();
    assert_eq!(course_in(&scratch.0, &["check", "13", "--all", &all]).0, 1, "some are not passed");
}

#[test]
fn a_class_is_a_table_in_csv() {
    let scratch = Scratch::new("csv");
    let all = class(&scratch);
    let (_, said) = course_in(&scratch.0, &["check", "--all", &all, "--csv"]);
    let expected = "student,13_predict\nann,passed\nbob,failed\neve,not submitted\n\
                    \"joe, jr\",could not be checked\n";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn the_labs_of_a_student_know_what_has_passed() {
    let scratch = Scratch::new("progress");
    let (folder, labs) = (&scratch.0, scratch.0.join("trapline-labs"));
    assert_eq!(course_in(folder, &["check"]).1, "course: no lab is started in trapline-labs");
    course_in(folder, &["start", "13"]);
    course_in(folder, &["start", "14"]);
    hand_in(&labs, 13, "solution");
    let (code, said) = course_in(folder, &["check"]);
    assert!(code == 1 && said.starts_with("13_predict: passed\n14_order: still missing"), "{said}");
    let listed = || course_in(folder, &["list"]).1;
    let has = |text: &str| listed().lines().any(|line| line.ends_with(text));
    assert!(has(" passed, in trapline-labs/13_predict"), "{}", listed());
    assert!(has(" started in trapline-labs/14_order"), "{}", listed());
    hand_in(&labs, 13, "wrong_1");
    assert!(has(" passed, but changed since, in trapline-labs/13_predict"), "{}", listed());
}

#[test]
fn a_lab_is_checked_at_each_save() {
    let scratch = Scratch::new("watch");
    let folder = &scratch.0;
    course_in(folder, &["start", "13"]);
    let mut command = course();
    command.args(["watch", "13"]).current_dir(folder).stdout(Stdio::piped());
    let mut tool = child::spawn(&mut command);
    let mut lines = BufReader::new(tool.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("still missing: "));
    hand_in(&folder.join("trapline-labs"), 13, "solution");
    assert_eq!(lines.next().unwrap(), "lab 13 is passed");
    tool.kill().unwrap();
}

#[test]
fn a_lab_builds_only_the_crates_that_its_files_name() {
    let scratch = Scratch::new("crates");
    let programs = labs::all().unwrap().into_iter().filter(|lab| lab.kind != Kind::Answer);
    for lab in programs.filter(|lab| lab.kind != Kind::Patched) {
        let folder = scratch.0.join(&lab.name);
        student::start(&lab, &folder, &program::target().unwrap()).unwrap();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let is_real = lab.kind == Kind::Program;
        assert_eq!(manifest.contains("trapline-kernel"), is_real, "{}", lab.name);
        assert_eq!(manifest.contains("trapline-net"), lab.number == 20, "{}", lab.name);
    }
}

#[test]
fn two_checks_of_a_lab_take_turns() {
    let scratch = Scratch::new("turns");
    course_in(&scratch.0, &["start", "18"]);
    let held = program::take("18_race").unwrap();
    let mut command = course();
    command.args(["check", "18"]).current_dir(&scratch.0);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = child::spawn_within(child::BUILD, &mut command);
    let mut notes = BufReader::new(tool.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = notes.next().unwrap();
    assert_eq!(first, "course: another check of this lab is running; waiting");
    drop(held);
    let said = tool.wait_with_output();
    assert!(said.stdout.starts_with(b"still missing: "), "{said:?}");
}

#[test]
fn ctrl_c_ends_a_program_that_a_student_runs() {
    let scratch = Scratch::new("ctrl-c");
    course_in(&scratch.0, &["start", "16"]);
    let lab = labs::find(16).unwrap();
    let endless =
        "    println!(\"ready\");\n    loop {}\n    #[allow(unreachable_code)]\n    loop {";
    let source = lab.text("solution.rs").replacen("    loop {", endless, 1);
    fs::write(scratch.0.join("trapline-labs/16_fair/src/lab.rs"), source).unwrap();
    let mut command = course();
    command.args(["run", "16"]).current_dir(&scratch.0).env("TMPDIR", scratch.0.join("tmp"));
    fs::create_dir(scratch.0.join("tmp")).unwrap();
    let mut tool = child::spawn_within(child::BUILD, command.stdout(Stdio::piped()));
    let mut lines = BufReader::new(tool.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "ready");
    child::send("INT", tool.id());
    assert_eq!((tool.wait().unwrap().code(), lines.next()), (Some(1), None));
    assert_eq!(fs::read_dir(scratch.0.join("tmp")).unwrap().count(), 0, "its folder is removed");
}

#[test]
fn the_page_for_instructors_has_the_limits() {
    let page = fs::read_to_string(labs::root().join("examples/course/INSTRUCTOR.md")).unwrap();
    for ((what, run), (_, build)) in limits::RUN.rows().into_iter().zip(limits::BUILD.rows()) {
        let row = format!("| {what} | {run} | {build} |");
        assert!(page.contains(&row), "there is no line {row}");
    }
}

#[test]
fn bad_input_gets_a_sentence() {
    let scratch = Scratch::new("bad");
    fs::create_dir_all(scratch.0.join("empty")).unwrap();
    fs::create_dir_all(scratch.0.join("other/src")).unwrap();
    fs::write(scratch.0.join("other/src/lab.rs"), "").unwrap();
    fs::write(scratch.0.join("other/lab.md"), "# 13. Predict").unwrap();
    for (args, expected) in [
        (&["check", "99"][..], "course: there is no lab 99; `list` shows the labs: "),
        (
            &["check", "16"],
            "course: lab 16 is not started: there is no folder trapline-labs/16_fair",
        ),
        (&["check", "16", "nowhere"], "course: there is no folder nowhere"),
        (&["check", "16", "other"], "course: other is lab 13, not lab 16"),
        (&["check", "16", "empty"], "course: empty has no src/lab.rs, which lab 16 is about"),
        (
            &["check", "--all", "empty"],
            "course: empty has no folders; expected one for each student",
        ),
        (&["check", "--all", "nowhere"], "course: cannot read nowhere: "),
        (&["run", "13"], "course: lab 13 has no program; write answer.txt, and check it"),
        (&["hint", "16", "4"], "error: invalid value '4' for '[NTH]': expected 1, 2 or 3"),
        (
            &["check", "x"],
            "error: invalid value 'x' for '[LAB]': expected the number of a lab, such as 16",
        ),
        (&["run", "-1"], "error: "),
        (&["check"], "course: no lab is started in trapline-labs"),
        (&["check", "--csv"], "error: the following required arguments were not provided"),
    ] {
        let (code, said) = course_in(&scratch.0, args);
        assert!(code == 2 && said.starts_with(expected), "{args:?}: {code}, {said}");
    }
}
