//! Builds a student's program, and runs it within a time limit.

use std::env;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::work::Ended;

/// A program has so much time.
pub const LIMIT: Duration = Duration::from_secs(10);

/// So much of its output is kept.
const KEPT: u64 = 32 << 20;

/// Where cargo builds: this program lies in it.
pub fn target() -> Result<PathBuf, String> {
    let this = env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
    let target = this.ancestors().nth(3).map(Path::to_path_buf);
    target.ok_or_else(|| format!("expected {} in a folder of cargo", this.display()))
}

/// What came of a build.
pub enum Built {
    /// The program.
    Program(PathBuf),
    /// The first error, in the student's file if there is one.
    Error(String),
}

/// Builds the crate in `folder` into `target`, without the network.
pub fn build(folder: &Path, package: &str, target: &Path) -> Result<Built, String> {
    let mut command = testing::child::cargo();
    command.current_dir(folder).args(["build", "--offline", "--quiet", "--color", "never"]);
    command.args(["--message-format", "short", "--target-dir"]).arg(target);
    let ran = command.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if ran.status.success() {
        return Ok(Built::Program(target.join("debug").join(package)));
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    let errors = || said.lines().filter(|line| line.contains(": error") && line.contains(".rs:"));
    // What was given may not compile because of what the student wrote.
    match errors().find(|line| line.starts_with("src/lab.rs")).or_else(|| errors().next()) {
        Some(error) if error.starts_with("src/given.rs") => Ok(Built::Error(format!(
            "{error} (`given.rs` is right: it uses what `src/lab.rs` is to have)"
        ))),
        Some(error) => Ok(Built::Error(error.to_owned())),
        None => Err(format!("cargo cannot build {}:\n{}", folder.display(), said.trim_end())),
    }
}

/// Runs a program; gives how it ended, and what it printed.
pub fn run(command: &mut Command, limit: Duration) -> Result<(Ended, String), String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("RUST_BACKTRACE", "0");
    let spawned = command.spawn();
    let mut child = spawned.map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let out = thread::spawn(|| read(stdout));
    let err = thread::spawn(|| read(stderr));
    let ended = wait(&mut child, limit).map_err(|error| format!("cannot wait: {error}"))?;
    let log = out.join().unwrap_or_default();
    let status = ended.map_or(String::new(), |status| status.to_string());
    let killed_after = ended.is_none().then_some(limit);
    let is_success = ended.is_some_and(|status| status.success());
    Ok((Ended { is_success, killed_after, status, stderr: err.join().unwrap_or_default() }, log))
}

/// The first part of what comes; the rest is read too, so that the program does not block.
fn read(from: Option<impl Read>) -> String {
    let Some(mut from) = from else { return String::new() };
    let mut bytes = Vec::new();
    // What was read before an error is all there is.
    drop(from.by_ref().take(KEPT).read_to_end(&mut bytes));
    drop(std::io::copy(&mut from, &mut std::io::sink()));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits for the end; kills what does not end, and then gives `None`.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
}
