//! A class of 30, with hostile submissions. Not part of a plain `cargo test`, because it takes
//! minutes: `cargo test --test course class:: -- --ignored --nocapture`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use course::labs;
use serde_json::Value;
use testing::child;

use crate::guarded::left_processes;
use crate::solutions::{course, none_of, says, without_says};
use crate::tool::{Scratch, course_in};

/// The lab that the class hands in.
const LAB: u32 = 16;

/// How many students the class has.
const CLASS: usize = 30;

/// The submissions of the students, and the beginning of each verdict: its status, a colon, and its
/// text.
#[derive(Default)]
struct Class(BTreeMap<String, (Option<String>, String)>);

impl Class {
    fn new(mark: &str) -> Class {
        let (lab, mut class) = (labs::find(LAB).unwrap(), Class::default());
        let solution = lab.text("solution.rs");
        let folder = labs::root().join("examples/course/hostile");
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap().replace("MARK", mark);
            let (expected, harm) = text.split_once('\n').unwrap();
            let source =
                solution.replacen("    loop {", "    harm();\n    loop {", 1) + "\n" + harm;
            let name = path.file_stem().unwrap().to_string_lossy();
            class.add(&name, Some(source), expected.trim_start_matches("// "));
        }
        for wrong in lab.others("wrong").iter().take(4) {
            let text = lab.text(&format!("{wrong}.rs"));
            let expected = format!("failed: {}", says(&text).unwrap());
            class.add(wrong, Some(without_says(&text)), &expected);
        }
        class.add("skeleton", Some(lab.text("skeleton.rs")), "failed: still missing: ");
        class.add("empty", Some(String::new()), "failed: it does not compile: ");
        class.add("absent", None, "not submitted: ");
        // Its file is a link to that of another student.
        class.add("link", None, "could not be checked: src/lab.rs is a link");
        for nth in class.0.len()..CLASS {
            class.add(&format!("right_{nth}"), Some(solution.clone()), "passed");
        }
        class
    }

    fn add(&mut self, student: &str, source: Option<String>, expected: &str) {
        self.0.insert(student.to_owned(), (source, expected.to_owned()));
    }

    fn hand_in(&self, folder: &Path) {
        let name = labs::find(LAB).unwrap().name;
        for (student, (source, _)) in &self.0 {
            let sources = folder.join(student).join(&name).join("src");
            fs::create_dir_all(&sources).unwrap();
            match source {
                Some(source) => fs::write(sources.join("lab.rs"), source).unwrap(),
                None if student == "link" => {
                    let other = "../../../wrong_1/16_fair/src/lab.rs";
                    std::os::unix::fs::symlink(other, sources.join("lab.rs")).unwrap();
                }
                None => {}
            }
        }
    }
}

/// All files below a folder, with what they contain.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => drop(found.insert(path.display().to_string(), fs::read(&path).unwrap())),
        }
    }
    found
}

#[test]
#[ignore = "takes minutes; the gate runs it"]
fn a_class_with_hostile_submissions_is_graded_and_nothing_is_left() {
    let mark = format!("86397.{}", std::process::id());
    let (class, scratch) = (Class::new(&mark), Scratch::new("hostile"));
    assert_eq!(class.0.len(), CLASS);
    let (folder, temporary) = (scratch.0.join("class"), scratch.0.join("tmp"));
    fs::create_dir(&temporary).unwrap();
    class.hand_in(&folder);
    let before = files(&folder);
    // Build the common part first, as for the first student of a year.
    course_in(&scratch.0, &["start", "16"]);
    course_in(&scratch.0, &["check", "16"]);
    let start = Instant::now();
    let mut command = course();
    command.args(["check", "16", "--json", "--all"]).arg(&folder);
    command.current_dir(&scratch.0).env("TMPDIR", &temporary);
    let said = child::output_within(child::BUILD, &mut command);
    println!("a class of {CLASS} took {:.0} s", start.elapsed().as_secs_f64());
    assert_eq!(said.status.code(), Some(2), "one could not be checked");
    let said = String::from_utf8(said.stdout).unwrap();
    let mut wrong = Vec::new();
    for line in said.lines() {
        let result: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| result[key].as_str().unwrap().to_owned();
        let verdict = match text("status").as_str() {
            "passed" => "passed".to_owned(),
            status => format!("{status}: {}", text("says")),
        };
        println!("{}: {verdict}", text("student"));
        let (_, expected) = &class.0[&text("student")];
        if !verdict.starts_with(expected.as_str()) {
            wrong.push(format!("{}: {verdict}\n    expected {expected}", text("student")));
        }
    }
    none_of(&wrong);
    assert_eq!(said.lines().count(), CLASS);
    assert_eq!(left_processes(&mark), [""; 0]);
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "files are left");
    assert!(files(&folder) == before, "a submission has changed");
}
