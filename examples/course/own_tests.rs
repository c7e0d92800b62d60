//! The crates' own tests, with the change of a student.
//!
//! The program of a lab shows that a new part works. These tests show that the old parts still
//! work: the unit tests of `traps` and `kernel`, and some tests of the repository that need nothing
//! else.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::grade::{self, Judgement};
use crate::labs::{Lab, root};
use crate::program;
use crate::student;

/// The folder of the repository that has these tests. Among the copies it is a package, so that a
/// student sees the place of a test in the repository.
const FOLDER: &str = "kernel/tests/all";

/// Their files.
const TESTS: [&str; 2] = ["registrations", "curio_task"];

/// The package that these tests use.
const SUPPORT: &str = "tests/support";

/// The logs that they compare with.
const GOLDEN: &str = "tests/golden";

/// The name of that package and of its program.
const OWN: &str = "own_tests";

const MANIFEST: &str = "\
[package]
name = \"own_tests\"
version = \"0.0.0\"
edition = \"2024\"
publish = false

[dependencies]
traps.workspace = true
kernel = { workspace = true, features = [\"default\"] }
testing = { workspace = true, features = [\"default\"] }
support.workspace = true

[[test]]
name = \"own_tests\"
path = \"main.rs\"
";

/// The packages that the workspace of the copies has for these tests.
pub const PACKAGES: [&str; 2] = [SUPPORT, FOLDER];

/// The first build also builds the libraries of the tests, which takes minutes on a busy machine.
const BUILD: Duration = Duration::from_secs(600);

/// The tests take a few seconds. Tests that hang are killed after this time.
const LIMIT: Duration = Duration::from_secs(120);

/// Writes the tests of the repository to a folder with copies of the crates.
pub fn write(folder: &Path) -> Result<(), String> {
    for name in [SUPPORT, GOLDEN] {
        student::mirror(&root().join(name), &folder.join(name))?;
    }
    let package = folder.join(FOLDER);
    let mut main = String::new();
    for name in TESTS {
        let file = format!("{FOLDER}/{name}.rs");
        let text =
            fs::read_to_string(root().join(&file)).map_err(|why| format!("{file}: {why}"))?;
        student::put(&folder.join(&file), text)?;
        main += &format!("mod {name};\n");
    }
    student::put(&package.join("main.rs"), main)?;
    student::put(&package.join("Cargo.toml"), MANIFEST)
}

/// Builds and runs the tests of the copies of the crates that the lab was just built from. The
/// outer error means that they cannot be built, and the student is not the reason.
pub fn run(lab: &Lab) -> Result<Judgement, String> {
    let folder = &program::labs()?.join(grade::place(lab));
    let target = &folder.join("target");
    eprintln!("course: building the crates' own tests, which takes minutes the first time");
    let (built, _) = program::run_cargo(cargo(folder, target).arg("--no-run"), BUILD)?;
    if !built.is_success {
        let said = &built.stderr;
        let error = said.lines().find(|line| line.contains(": error") && line.contains(".rs:"));
        return match error {
            Some(error) => Ok(Err(format!("the crates' own tests do not compile: {error}"))),
            None => Err(format!("cargo cannot build the crates' own tests:\n{}", said.trim_end())),
        };
    }
    let mut tests = cargo(folder, target);
    // The tests of the real machine measure CPU time, so they depend on what else runs.
    tests.args(["--", "--skip", "machine::"]);
    let (ended, said) = program::run_cargo(&tests, LIMIT)?;
    if ended.killed_after.is_some() {
        // The dots of other tests may precede it.
        let name = |line: &str| {
            let (line, _) = line.split_once(" has been running for over ")?;
            line.rsplit_once("test ").map(|(_, name)| format!(": `{name}` hangs"))
        };
        return Ok(Err(format!(
            "your change breaks the crates' own tests, which did not end in {} s{}",
            LIMIT.as_secs(),
            said.lines().rev().find_map(name).unwrap_or_default()
        )));
    }
    if let Some(why) = ended.stopped {
        return Ok(Err(format!("with your change a test of the crates {why}")));
    }
    match failure(&said) {
        Some(failure) => Ok(Err(failure)),
        None if ended.is_success => Ok(all_ran(folder, &said)),
        None => Err(format!("the crates' own tests failed ({}):\n{}", ended.status, ended.stderr)),
    }
}

/// Whether all tests of the crates still exist and have run. Most are in the folders that the
/// student hands in.
fn all_ran(folder: &Path, said: &str) -> Judgement {
    for (name, path) in [("traps", "traps/src"), ("kernel", "kernel/src")] {
        let (before, now) = (tests_in(&root().join(path)), tests_in(&folder.join(path)));
        if now < before {
            return Err(format!("the crate {name} had {before} tests of its own, and has {now}"));
        }
    }
    // Two crates, and the tests of the repository.
    let (ran, all) = (said.matches("test result: ok. ").count(), 3);
    if ran < all {
        return Err(format!("only {ran} of the {all} programs with the crates' own tests ended"));
    }
    Ok(())
}

/// The number of tests in the files below a folder.
fn tests_in(folder: &Path) -> usize {
    let names = student::entries(folder).unwrap_or_default().into_iter();
    let count = |name: String| match folder.join(&name) {
        path if path.is_dir() => tests_in(&path),
        path => fs::read_to_string(path).unwrap_or_default().matches("#[test]").count(),
    };
    names.map(count).sum()
}

/// The command that builds and runs the tests.
fn cargo(folder: &Path, target: &Path) -> Command {
    let mut command = testing::child::cargo();
    command.current_dir(folder).args(["test", "--offline", "--quiet", "--color", "never"]);
    command.args(["--message-format", "short", "--no-fail-fast", "--target-dir"]).arg(target);
    command.args(["-p", OWN, "-p", "trapline-traps", "-p", "trapline-kernel"]);
    command.args(["--lib", "--test", OWN]);
    command
}

/// The failed test whose name comes first, in a sentence. The order in which tests end is not the
/// same in each run.
fn failure(said: &str) -> Option<String> {
    let failed = said.split("\n---- ").skip(1).filter_map(|test| test.split_once(" stdout ----"));
    let (name, rest) = failed.min_by_key(|(name, _)| *name)?;
    let message = rest.split_once(" panicked at ").and_then(|(_, rest)| rest.split_once(":\n"));
    let (place, message) = message.unwrap_or_default();
    let file = place.split(':').next().unwrap_or_default();
    // A message may continue with a log.
    let message = message.lines().next().unwrap_or_default();
    let message = message.split(": #trace").next().unwrap_or_default().trim();
    Some(format!(
        "your change does what the lab asks, but it breaks a test of the crates: `{name}` fails in \
         {file}: {message}"
    ))
}
