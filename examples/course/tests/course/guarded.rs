//! The guard holds a program to its limits, and nothing of the program remains.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use course::limits::{self, Limits};
use course::program;
use course::work::Ended;
use testing::child;

use crate::solutions::course;
use crate::tool::Scratch;

/// The result of a shell script under the guard.
struct Ran {
    ended: Ended,
    log: String,
    /// The files that the guard has left.
    files: Vec<String>,
    /// The processes that the guard has left, if they have `MARK` as an argument.
    processes: Vec<String>,
}

impl Ran {
    /// The reason why the guard has stopped the script.
    #[track_caller]
    fn stopped(&self) -> &str {
        self.ended.stopped.as_deref().expect("it was stopped")
    }
}

/// Runs a script. `MARK` is replaced by a sleep time that no other process of the machine uses.
fn run(name: &str, millis: u64, script: &str) -> Ran {
    course();
    let scratch = Scratch::new(&format!("guarded-{name}"));
    // Tests run side by side, and each looks for its own mark.
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let nth = RUNS.fetch_add(1, Ordering::Relaxed);
    let mark = format!("86399.{}{nth:03}", std::process::id());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script.replace("MARK", &mark)]).env("TMPDIR", &scratch.0);
    let (ended, log) = program::run(&command, Duration::from_millis(millis)).unwrap();
    let (files, processes) = (left_files(&scratch), left_processes(&mark));
    Ran { ended, log, files, processes }
}

fn left_files(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(&scratch.0).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// The processes that have `mark` in their arguments.
pub fn left_processes(mark: &str) -> Vec<String> {
    let folders = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = folders.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(mark)).collect()
}

/// Long enough for each script, however busy the machine is.
const AMPLE: u64 = 60_000;

#[test]
fn a_program_that_ignores_all_signals_is_killed_at_the_limit() {
    let ran =
        run("deaf", 2000, "echo '#trace v3'; trap '' TERM INT HUP; while :; do sleep 0.1; done");
    assert_eq!(ran.ended.killed_after, Some(Duration::from_millis(2000)));
    assert_eq!(ran.log, "#trace v3\n", "what it printed before is there");
    assert_eq!(ran.files, [""; 0]);
}

#[test]
fn a_child_that_holds_standard_output_ends_with_the_program() {
    let ran = run("holder", AMPLE, "sleep MARK & echo done");
    assert!(ran.ended.is_success, "{:?}", ran.ended);
    assert_eq!((&*ran.log, ran.processes), ("done\n", vec![]));
}

#[test]
fn a_grandchild_that_leaves_the_session_ends_with_the_program() {
    let script = "setsid sh -c 'setsid sleep MARK & echo away' & wait; echo done";
    let ran = run("daemon", AMPLE, script);
    assert!(ran.ended.is_success, "{:?}", ran.ended);
    assert_eq!((&*ran.log, ran.processes), ("away\ndone\n", vec![]));
}

#[test]
fn endless_output_stops_the_program() {
    let ran = run("chatter", AMPLE, "while :; do head -c 1M /dev/zero; done");
    let Limits { output, .. } = limits::RUN;
    assert_eq!(ran.stopped(), format!("has printed more than {output} MiB"));
    assert!(ran.log.len() < 1 << 20, "only the end is reported");
}

#[test]
fn too_many_processes_stop_the_program() {
    // Start 100 processes at most, in case the limit fails.
    let script = "for one in 1 2 3 4 5 6 7 8 9 10; do for two in 1 2 3 4 5 6 7 8 9 10; do
        sleep MARK & done; done; wait";
    let ran = run("bomb", AMPLE, script);
    let Limits { tasks, .. } = limits::RUN;
    assert_eq!(ran.stopped(), format!("has more than {tasks} processes and threads"));
    assert_eq!(ran.processes, [""; 0]);
}

#[test]
fn the_memory_of_a_program_is_limited() {
    // `tail` keeps what it may have to print.
    let ran = run("glutton", AMPLE, "head -c 1G /dev/zero | tail -c 1G | wc -c");
    let is_refused = ran.ended.stderr.contains("memory exhausted");
    let is_stopped = ran.ended.stopped.is_some_and(|why| why.ends_with(" MiB of memory"));
    assert!(is_refused || is_stopped, "{}", ran.ended.stderr);
}

#[test]
fn the_size_of_a_file_is_limited() {
    let Limits { file, .. } = limits::RUN;
    let ran = run("filler", AMPLE, &format!("exec head -c {}M /dev/zero > big", 2 * file));
    assert_eq!(ran.stopped(), format!("has written a file of more than {file} MiB"));
    assert_eq!(ran.files, [""; 0]);
}

#[test]
fn files_go_into_a_folder_that_is_removed() {
    let script = "echo 1 > here; echo 2 > $HOME/home; mktemp > /dev/null; ls | wc -l";
    let ran = run("writer", AMPLE, script);
    assert_eq!((ran.log.trim(), ran.files), ("3", vec![]));
}

#[test]
fn a_program_can_delete_its_folders_and_is_judged_by_what_it_prints() {
    let ran = run("remover", AMPLE, "echo before; rm -rf \"$(dirname \"$PWD\")\"; echo after");
    assert!(ran.ended.is_success, "{:?}", ran.ended);
    assert_eq!(ran.log, "before\nafter\n");
}

#[test]
fn a_program_does_not_see_the_environment_of_the_grader() {
    course();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "env"]).env("TRAPLINE_SECRET", "1");
    let (_, log) = program::run(&command, Duration::from_millis(AMPLE)).unwrap();
    assert!(log.contains("TMPDIR=") && !log.contains("TRAPLINE_SECRET"), "{log}");
}

#[test]
fn a_program_ends_when_its_grader_is_gone() {
    let scratch = Scratch::new("orphan");
    let mark = format!("86398.{}", std::process::id());
    let mut guard = course();
    // The guard believes that its grader is dead, because its parent is another process.
    guard.args(["guard", "--parent", "1", "--millis", "60000", "--", "/bin/sleep", &mark]);
    guard.env("TMPDIR", &scratch.0);
    let ran = child::output(&mut guard);
    assert_eq!((ran.status.code(), ran.stdout.len()), (Some(1), 0));
    assert_eq!((left_files(&scratch), left_processes(&mark)), (vec![], vec![]));
}

#[test]
fn a_program_that_cannot_be_executed_is_not_a_failure_of_the_student() {
    course();
    let error = program::run(&Command::new("/proc/self/status"), Duration::from_secs(60));
    assert!(error.as_ref().is_err_and(|why| why.starts_with("cannot execute ")), "{error:?}");
}
