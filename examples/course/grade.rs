//! From a student's folder to a judgement.

use std::env;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::checks;
use crate::labs::{Kind, Lab};
use crate::limits;
use crate::own_tests;
use crate::program::{self, Built};
use crate::student;
use crate::work::{Ended, Work, judge};

/// The first step that writes version 3 of the log.
const FIRST_OF_VERSION_3: u32 = 6;

/// Passed, or a sentence about the fault.
pub type Judgement = Result<(), String>;

/// The default folder of a student's labs.
pub fn default_folder() -> PathBuf {
    env::var_os("TRAPLINE_LABS").map_or_else(|| PathBuf::from("trapline-labs"), PathBuf::from)
}

/// Finds a lab that was started: in a folder of labs, or that folder itself.
pub fn find(lab: &Lab, named: Option<&Path>) -> Result<PathBuf, String> {
    let (number, written) = (lab.number, lab.written());
    let folder = named.map_or_else(default_folder, Path::to_path_buf);
    let inner = folder.join(&lab.name);
    if named.is_none() && !inner.is_dir() {
        let inner = inner.display();
        return Err(format!(
            "lab {number} is not started: there is no folder {inner}; `start {number}` makes it"
        ));
    }
    if !folder.is_dir() {
        return Err(format!("there is no folder {}", folder.display()));
    }
    let found = if inner.is_dir() { inner } else { folder };
    if found.join(&written).is_file() {
        let text = source(&found, "lab.md").unwrap_or_default();
        let head = text.strip_prefix("# ").and_then(|text| text.split('.').next());
        return match head.and_then(|other| other.parse::<u32>().ok()) {
            Some(other) if other != number => {
                Err(format!("{} is lab {other}, not lab {number}", found.display()))
            }
            _ => Ok(found),
        };
    }
    let written = written.display();
    Err(format!("{} has no {written}, which lab {number} is about", found.display()))
}

/// Whether a student has submitted something that may be this lab.
pub fn is_there(lab: &Lab, folder: &Path) -> bool {
    let written = lab.written();
    [folder.join(&lab.name), folder.to_owned()].iter().any(|place| place.join(&written).exists())
}

/// The folder in which a lab is built. A build must take it first.
pub fn place(lab: &Lab) -> &str {
    // Cargo cannot distinguish a patched copy of a crate from the crate itself, because both have
    // the same path in their workspace. So all patched copies are in one folder, with a separate
    // target folder. Otherwise the next build of another lab would use a student's kernel.
    if lab.kind == Kind::Patched { "patched" } else { &lab.name }
}

/// The program of a lab, from the student's files and the given ones. It is the crate of `check`,
/// so that other files in the folder, and the place of the folder, do not matter.
pub fn build(lab: &Lab, folder: &Path) -> Result<Built, String> {
    let package = format!("check_{}", lab.name);
    let scratch = program::labs()?.join(place(lab));
    let target = match lab.kind {
        Kind::Patched => scratch.join("target"),
        _ => program::target()?,
    };
    let has_source = lab.folder.join("skeleton.rs").exists();
    let own = if has_source { Some(source(folder, "src/lab.rs")?) } else { None };
    let mut others = &[][..];
    if lab.kind == Kind::Patched {
        own_tests::write(&scratch)?;
        others = &own_tests::PACKAGES;
    }
    student::write_crate(lab, &scratch, &package, others)?;
    if !program::built(&package, &target).exists() {
        if has_source {
            student::put(&scratch.join("src/lab.rs"), lab.text("skeleton.rs"))?;
        }
        if lab.kind == Kind::Patched {
            student::copy_crates(&scratch, None)?;
            // The given program uses names that only this patch adds. Without it, cargo would
            // report an error that the student has not made.
            student::patch(lab, "skeleton.patch", &scratch)?;
        }
        program::prepare(&scratch, &target)?;
    }
    if lab.kind == Kind::Patched {
        student::copy_crates(&scratch, Some(folder))?;
    }
    if let Some(own) = own {
        student::put(&scratch.join("src/lab.rs"), own)?;
    }
    let limit = match lab.kind {
        Kind::Patched => limits::BUILD_OF_CRATES,
        _ => limits::BUILD.time,
    };
    program::build(&scratch, &package, &target, limit)
}

/// Reads a file of a student.
fn source(folder: &Path, file: impl AsRef<Path>) -> Result<String, String> {
    let (path, file) = (folder.join(&file), file.as_ref().display());
    let failed = |error| format!("cannot read {}: {error}", path.display());
    let found = fs::symlink_metadata(&path).map_err(failed)?;
    let is_inside = fs::canonicalize(&path)
        .map_err(failed)?
        .starts_with(fs::canonicalize(folder).map_err(failed)?);
    // A link may name a file or a folder of another student, and reading a pipe would wait.
    if !found.is_file() || !is_inside {
        return Err(format!("{file} is a link or a device; a file was expected"));
    }
    if found.len() > student::LARGEST {
        return Err(format!("{file} has more than {} KiB", student::LARGEST >> 10));
    }
    // The compiler rejects a file that is not text.
    Ok(String::from_utf8_lossy(&fs::read(&path).map_err(failed)?).into_owned())
}

/// Judges the contents of a student's folder of that lab. A program runs in each of
/// [`Lab::scenarios`]. The outer error means that the lab cannot be judged.
pub fn grade(lab: &Lab, folder: &Path, extra: Option<u64>) -> Result<Judgement, String> {
    let source = source(folder, lab.written())?;
    if lab.kind == Kind::Answer {
        return judge_answer(lab, source);
    }
    let _taken = program::take(place(lab))?;
    let judged = match build(lab, folder)? {
        Built::Error(error) => Ok(Err(format!("it does not compile: {error}"))),
        Built::Program(program) => judge_scenarios(lab, &source, extra, |seed| {
            program::run(Command::new(&program).arg(seed.to_string()), program::LIMIT)
        }),
    };
    if lab.kind == Kind::Patched && judged == Ok(Ok(())) { own_tests::run(lab) } else { judged }
}

/// Judges an answer.
pub fn judge_answer(lab: &Lab, source: String) -> Result<Judgement, String> {
    // Some editors begin a file with a byte order mark.
    let source = source.trim_start_matches('\u{feff}').to_owned();
    let work = Work { source, golden: lab.text("golden.trace"), ..Work::default() };
    own(lab, &work)
}

/// Judges a program in all scenarios. The first failing scenario decides.
pub fn judge_scenarios(
    lab: &Lab,
    source: &str,
    extra: Option<u64>,
    mut run: impl FnMut(u64) -> Result<(Ended, String), String>,
) -> Result<Judgement, String> {
    for seed in lab.scenarios(extra) {
        let (ended, log) = run(seed)?;
        if let Err(why) = judge_program(lab, source, seed, &ended, log)? {
            return Ok(Err(match seed {
                0 => why,
                _ => format!("{why}{}", again(lab, seed)),
            }));
        }
    }
    Ok(Ok(()))
}

/// Describes how a student can run a scenario that is not on the page.
pub fn again(lab: &Lab, seed: u64) -> String {
    format!(" (in scenario {seed}; `run {} --seed {seed}` shows it)", lab.number)
}

/// Judges a program that has run in one scenario.
fn judge_program(
    lab: &Lab,
    source: &str,
    seed: u64,
    ended: &Ended,
    log: String,
) -> Result<Judgement, String> {
    let work = Work { source: source.to_owned(), seed, log, golden: lab.text("golden.trace") };
    if let (Kind::Program | Kind::Step(_), Err(why)) = (lab.kind, is_alone(&work)) {
        return Ok(Err(why));
    }
    match judge(ended, &work, !matches!(lab.kind, Kind::Step(..FIRST_OF_VERSION_3))) {
        Ok(()) => own(lab, &work),
        wrong => Ok(wrong),
    }
}

/// A lab looks for words in `src/lab.rs` alone, and a program that knows the scenario can print the
/// log of a right one.
fn is_alone(work: &Work) -> Judgement {
    if let Some(number) = work.line_of_other_file() {
        return Err(format!(
            "line {number} of src/lab.rs takes code from another file; `check` judges src/lab.rs \
             alone, so write all of your code there"
        ));
    }
    match work.line_of("scenario") {
        None => Ok(()),
        Some(number) => Err(format!(
            "line {number} of src/lab.rs uses `scenario`; your code must be right without a look \
             at what `check` draws"
        )),
    }
}

/// The lab's own judgement.
fn own(lab: &Lab, work: &Work) -> Result<Judgement, String> {
    // A program may print text that no check expects. That must not end the grading of a class.
    let judged = panic::catch_unwind(|| checks::check(lab.number, work));
    judged
        .map_err(|_| format!("the check of lab {} panicked", lab.number))?
        .ok_or_else(|| format!("lab {} is not in the list of examples/course/list.rs", lab.number))
}
