//! Builds a student's program, and runs it, both under the guard.

use std::env;
use std::fs::{self, File, TryLockError};
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::limits;
use crate::work::Ended;

/// The time limit of a program.
pub const LIMIT: Duration = limits::RUN.time;

/// The folder of this program as cargo built it: `target/debug`.
fn profile() -> Result<PathBuf, String> {
    let this = env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
    let profile = this.ancestors().nth(2).map(Path::to_path_buf);
    profile.ok_or_else(|| format!("expected {} in a folder of cargo", this.display()))
}

/// The folder of all builds for labs. It is separate from cargo's target folder, so that a lab and
/// the repository do not wait for each other, and no crate of a student is used elsewhere.
pub fn labs() -> Result<PathBuf, String> {
    let profile = profile()?;
    Ok(profile.parent().unwrap_or(&profile).join("labs"))
}

/// The target folder that the labs share.
pub fn target() -> Result<PathBuf, String> {
    Ok(labs()?.join("target"))
}

/// Takes the folder of a lab, because only one check at a time can build there. Dropping the result
/// frees it.
pub fn take(place: &str) -> Result<File, String> {
    let path = labs()?.join(format!("{place}.lock"));
    let failed = |error| format!("cannot lock {}: {error}", path.display());
    fs::create_dir_all(labs()?).map_err(failed)?;
    let file = File::create(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
        Err(TryLockError::WouldBlock) => {
            eprintln!("course: another check of this lab is running; waiting");
        }
    }
    file.lock().map_err(failed)?;
    Ok(file)
}

/// The result of a build.
pub enum Built {
    /// The program.
    Program(PathBuf),
    /// The first error, in the student's file if there is one.
    Error(String),
}

/// The program that [`build`] makes.
pub fn built(package: &str, target: &Path) -> PathBuf {
    target.join("debug").join(package)
}

fn cargo(folder: &Path, target: &Path, format: &str) -> Command {
    let mut command = testing::child::cargo();
    command.current_dir(folder).args(["build", "--offline", "--color", "never"]);
    command.args(["--message-format", format, "--target-dir"]).arg(target);
    // The manifest of a lab asks for the lines that a backtrace names.
    command.env_remove("CARGO_PROFILE_DEV_DEBUG");
    command
}

/// Builds the given code, once, without a limit, so that a student's build has only the student's
/// part to do.
pub fn prepare(folder: &Path, target: &Path) -> Result<(), String> {
    // On standard error, cargo shows how many crates are built. Diagnostics in JSON go to standard
    // output. The following build reports an error.
    let mut command = cargo(folder, target, "json");
    let done = command.stdout(Stdio::null()).status();
    done.map(drop).map_err(|error| format!("cannot run cargo: {error}"))
}

/// Builds the crate in `folder` into `target`, without the network.
pub fn build(
    folder: &Path,
    package: &str,
    target: &Path,
    limit: Duration,
) -> Result<Built, String> {
    let (ended, _) = run_cargo(&cargo(folder, target, "short"), limit)?;
    if ended.is_success {
        return Ok(Built::Program(built(package, target)));
    }
    let said = &ended.stderr;
    let errors = || said.lines().filter(|line| line.contains(": error") && line.contains(".rs:"));
    // The student's code can be the reason why given code does not compile.
    match errors().find(|line| line.starts_with("src/lab.rs")).or_else(|| errors().next()) {
        Some(error) if error.starts_with("src/given.rs") => Ok(Built::Error(format!(
            "{error} (`given.rs` is right: it uses what `src/lab.rs` is to have)"
        ))),
        Some(error) => Ok(Built::Error(error.to_owned())),
        None => match why_endless(&ended) {
            Some(why) => Ok(Built::Error(why)),
            None => Err(format!("cargo cannot build {}:\n{}", folder.display(), said.trim_end())),
        },
    }
}

/// The reason why a build was stopped.
fn why_endless(ended: &Ended) -> Option<String> {
    let limit = |seconds| format!("the build did not end in {seconds} s");
    if let Some(time) = ended.killed_after {
        return Some(limit(time.as_secs()));
    }
    // Cargo names the signal that ended the compiler by its number: SIGXCPU.
    if ended.stderr.contains("(signal: 24") {
        return Some(limit(limits::BUILD.cpu) + " of CPU time");
    }
    ended.stopped.as_ref().map(|why| format!("the build {why}"))
}

/// Runs a program within a time limit. Returns how it ended, and its output.
pub fn run(command: &Command, limit: Duration) -> Result<(Ended, String), String> {
    guarded(command, limit, &[])
}

/// Runs cargo within a time limit, and with the other limits of a build.
pub fn run_cargo(command: &Command, limit: Duration) -> Result<(Ended, String), String> {
    guarded(command, limit, &["--build"])
}

/// Runs a command under the guard.
fn guarded(command: &Command, limit: Duration, kind: &[&str]) -> Result<(Ended, String), String> {
    let mut guard = Command::new(profile()?.join("examples/course"));
    guard.args(["guard", "--parent", &std::process::id().to_string()]).args(kind);
    guard.args(["--millis", &limit.as_millis().to_string()]);
    guard.arg("--").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => guard.env(name, value),
            None => guard.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        guard.current_dir(folder);
    }
    // Ctrl-C ends the grader. The guard sees that, and still ends the program.
    #[cfg(unix)]
    guard.process_group(0);
    guard.stdin(Stdio::null()).stderr(Stdio::inherit());
    let ran = guard.output().map_err(|error| format!("cannot start the guard: {error}"))?;
    if !ran.status.success() {
        let name = command.get_program().display();
        return Err(format!("the guard of {name} failed ({})", ran.status));
    }
    report(&ran.stdout, limit)
}

/// Reads the report of the guard.
fn report(text: &[u8], limit: Duration) -> Result<(Ended, String), String> {
    let report: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let text = |key: &str| report[key].as_str().unwrap_or_default().to_owned();
    let (is, stderr) = (|key: &str| report[key] == true, text("stderr"));
    if report["code"] == limits::NOT_EXECUTED && stderr.starts_with("cannot execute ") {
        return Err(stderr.trim_end().to_owned());
    }
    let ended = Ended {
        is_success: is("is_success"),
        killed_after: is("is_late").then_some(limit),
        stopped: report["stopped"].as_str().map(str::to_owned),
        status: text("status"),
        stderr,
    };
    Ok((ended, text("stdout")))
}
