//! A dump of the flight recorder, which begins in the middle of a log.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kernel::{Kernel, Sim};
use support::examples;
use testing::child;
use testing::trace::trace;
use traps::sync::Mutex;
use traps::{sleep, spawn, timeout_after};

const SECOND: Duration = Duration::from_secs(1);

/// Writes a dump of a program that hangs, and its whole log. One task has held a lock for an hour.
fn written() -> (PathBuf, PathBuf) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (dump, whole) = (folder.join("flight-dump.trace"), folder.join("flight-whole.trace"));
    let mut kernel = Kernel::new(Sim::new());
    kernel.trace_to(fs::File::create(&whole).unwrap());
    let to = dump.clone();
    kernel.flight(16 << 10).on_dump(move |dump| {
        dump.write_to(&mut fs::File::create(&to).unwrap()).unwrap();
    });
    let lock = std::rc::Rc::new(Mutex::named("door", ()));
    let hangs = kernel.run(async {
        let theirs = lock.clone();
        let holder = async move {
            let _held = theirs.lock().await;
            std::future::pending::<()>().await;
        };
        spawn("holder", holder).detached().await;
        sleep(3600 * SECOND).await.unwrap();
        for _ in 0..2000 {
            drop(timeout_after(SECOND, sleep(9 * SECOND)).await);
        }
        lock.lock().await
    });
    assert!(hangs.is_err());
    // The whole log has an end.
    kernel.shutdown().unwrap();
    drop(kernel);
    (dump, whole)
}

/// Returns what a command of the tool prints.
fn print(args: &[&str], file: &Path) -> String {
    let mut command = std::process::Command::new(examples::build("trace"));
    let out = child::output(command.args(args).arg(file));
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && errors.is_empty(), "{args:?}: {errors}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn each_command_reads_a_dump_as_a_part_of_the_whole_log() {
    let (dump, whole) = written();
    let text = fs::read_to_string(&dump).unwrap();
    let remark = text.lines().find_map(|row| row.strip_prefix("# flight from=#")).unwrap();
    let (from, cause) = remark.split_once(' ').unwrap();
    let last = trace(&text).unwrap().last().unwrap().seq;
    assert_eq!(cause, format!("cause=hang at=#{last:04}"));
    let from: u64 = from.parse().unwrap();
    assert!(from > 1000, "{from}");
    for at in [from, from + 1, (from + last) / 2, last] {
        let state = |file| print(&["state", "--raw", "--at", &at.to_string()], file);
        assert_eq!(state(&dump), state(&whole), "at #{at}");
    }
    assert!(print(&["check"], &dump).contains("every promise is kept"));
    // Without `--at`, the state is that of the line of the cause.
    assert_eq!(print(&["state"], &dump), print(&["state", "--at", &last.to_string()], &dump));
    assert!(print(&["idle"], &dump).contains("mutex door"));
    let summary = print(&["summary"], &dump);
    let events = summary.lines().find(|row| row.contains("events")).unwrap();
    let digits: String = events.chars().filter(char::is_ascii_digit).collect();
    assert_eq!(digits, (last - from + 1).to_string(), "{summary}");
    for command in ["tree", "tasks", "slow", "lanes", "timeline"] {
        assert!(print(&[command], &dump).len() > 100, "{command}");
    }
    // The lines of the head are an hour older, and the lanes do not begin there.
    let lanes = print(&["lanes"], &dump);
    let turns = lanes.lines().find(|row| row.starts_with("turn ")).unwrap();
    assert!(turns.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() > 100, "{turns}");
}
