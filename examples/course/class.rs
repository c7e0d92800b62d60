//! Grades a class: a folder of submissions, one folder for each student.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use course::labs::{self, Lab};
use course::{grade, student};
use serde_json::json;

use crate::verdict::Verdict;
use crate::{complain, print};

/// The help of `check` for instructors.
pub const HELP: &str = "\
To grade a class, put the students' folders of labs side by side:

  DIR/ann/16_fair   DIR/bob/16_fair   ...

`check 16 --all DIR` grades one lab, and `check --all DIR` grades every lab that is there.
Only what a student writes is taken from DIR; what was given is used as it was given.

With --json each result is one object on a line of its own. Its keys are student, lab, name,
status and says. The status is passed, failed, not submitted or could not be checked; lab and
name are null for a student without labs. Without --all there is no key student.
With --csv the statuses are a table: a row for each student, a column for each lab.

Each program runs in a scratch folder, with limits on its time, output, memory and processes.
It can use the network and read files: grade in a container.

Exit codes: 0 all are passed, 1 some are not, 2 some could not be checked.";

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A sentence for each result.
    Text,
    /// An object for each result.
    Json,
    /// A table of all results.
    Csv,
}

impl Form {
    /// The form that the options name.
    pub fn of(json: bool, csv: bool) -> Form {
        match (json, csv) {
            (true, _) => Form::Json,
            (false, true) => Form::Csv,
            (false, false) => Form::Text,
        }
    }
}

/// One lab of one student.
struct Graded {
    student: String,
    /// `None` if the student has no lab at all.
    lab: Option<Lab>,
    verdict: Verdict,
}

impl Graded {
    fn print(&self) {
        print(as_json(Some(&self.student), self.lab.as_ref(), &self.verdict));
    }

    fn line(&self) -> String {
        let name = self.lab.as_ref().map_or("-", |lab| &lab.name);
        format!("{} {name}: {}", self.student, self.verdict.says())
    }
}

/// A result as JSON.
pub fn as_json(student: Option<&str>, lab: Option<&Lab>, verdict: &Verdict) -> String {
    let mut object = json!({
        "lab": lab.map(|lab| lab.number),
        "name": lab.map(|lab| &lab.name),
        "status": verdict.status(),
        "says": verdict.says(),
    });
    if let Some(student) = student {
        object["student"] = json!(student);
    }
    object.to_string()
}

/// Grades a folder of submissions, and prints each result as soon as it is known. A table follows
/// at the end. All students have the same scenarios.
pub fn check(
    folder: &Path,
    lab: Option<u32>,
    form: Form,
    extra: Option<u64>,
) -> Result<ExitCode, String> {
    let labs = match lab {
        Some(number) => vec![labs::find(number)?],
        None => labs::all()?,
    };
    let names = student::entries(folder)?;
    if let Some(name) = names.iter().find(|name| name.contains(char::REPLACEMENT_CHARACTER)) {
        return Err(format!("the name of the folder {name:?} is not UTF-8; give it another name"));
    }
    // A folder such as .git belongs to no student.
    let is_student = |name: &String| !name.starts_with('.') && folder.join(name).is_dir();
    let students: Vec<String> = names.into_iter().filter(is_student).collect();
    if students.is_empty() {
        return Err(format!("{} has no folders; expected one for each student", folder.display()));
    }
    let mut all = Vec::new();
    for student in students {
        grade_student(&folder.join(&student), &labs, lab.is_some(), extra, |lab, verdict| {
            let graded = Graded { student: student.clone(), lab: lab.cloned(), verdict };
            match form {
                Form::Text => print(graded.line()),
                Form::Json => graded.print(),
                // Standard output is for the table alone.
                Form::Csv => complain(graded.line()),
            }
            all.push(graded);
        });
    }
    if form == Form::Csv {
        table(&all).iter().for_each(print);
    }
    let worst = all.iter().map(|graded| graded.verdict.code()).max();
    Ok(ExitCode::from(worst.unwrap_or(0)))
}

/// Grades a student's labs: all that were submitted, or the requested ones.
fn grade_student(
    folder: &Path,
    labs: &[Lab],
    is_asked_for: bool,
    extra: Option<u64>,
    mut tell: impl FnMut(Option<&Lab>, Verdict),
) {
    let mut is_empty = true;
    for lab in labs {
        if folder.join(&lab.name).is_dir() || is_asked_for {
            is_empty = false;
            tell(Some(lab), verdict(lab, folder, extra));
        }
    }
    if is_empty {
        let why = "there is no lab in it; a lab is a folder such as 16_fair";
        tell(None, Verdict::NotSubmitted(why.to_owned()));
    }
}

fn verdict(lab: &Lab, folder: &Path, extra: Option<u64>) -> Verdict {
    let place = folder.join(&lab.name);
    if place.is_symlink() {
        // It may lead to the folder of another student.
        return Verdict::Unchecked(format!("{} is a link; a folder was expected", place.display()));
    }
    match grade::find(lab, Some(folder)) {
        Ok(found) => grade::grade(lab, &found, extra).into(),
        Err(why) if grade::is_there(lab, folder) => Verdict::Unchecked(why),
        Err(why) => Verdict::NotSubmitted(why),
    }
}

/// The lines of a table in CSV: a row for each student, and a column for each lab.
fn table(all: &[Graded]) -> Vec<String> {
    let labs: BTreeSet<&str> =
        all.iter().filter_map(|graded| Some(&*graded.lab.as_ref()?.name)).collect();
    let students: BTreeSet<&str> = all.iter().map(|graded| &*graded.student).collect();
    let status = |student: &str, lab: &str| {
        let is_it = |graded: &&Graded| {
            graded.student == student && graded.lab.as_ref().is_some_and(|each| each.name == lab)
        };
        let missing = "not submitted";
        all.iter().find(is_it).map_or(missing, |graded| graded.verdict.status()).to_owned()
    };
    let head = ["student"].into_iter().chain(labs.iter().copied());
    let mut lines = vec![head.collect::<Vec<_>>().join(",")];
    for student in students {
        let cells = labs.iter().map(|lab| status(student, lab));
        lines.push([cell(student)].into_iter().chain(cells).collect::<Vec<_>>().join(","));
    }
    lines
}

/// A cell of CSV: RFC 4180 quotes a text that has a comma, a quote or the end of a line.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
