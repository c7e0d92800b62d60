//! A dump of the flight recorder, which begins in the middle of a log.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kernel::{Kernel, Sim};
use support::examples;
use testing::child;
use testing::trace::trace;
use trace_tool::locks::{deadlock, links};
use trace_tool::model::State::{Blocked, Ready, Run};
use trace_tool::model::Trace;
use traps::sync::Mutex;
use traps::{sleep, spawn, timeout_after};

const SECOND: Duration = Duration::from_secs(1);

/// Writes a dump of a program that hangs, and its whole log. One task has held a lock for an hour.
fn written(name: &str) -> (PathBuf, PathBuf) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [dump, whole] =
        ["dump", "whole"].map(|part| folder.join(format!("flight-{name}-{part}.trace")));
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

/// A dump on the real clock, cut by hand.
const CUT: &str = include_str!("../cut.trace");

#[test]
fn no_command_says_of_the_time_before_a_dump_what_its_lines_do_not_say() {
    let cut = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cut.trace");
    let said = |args: &[&str]| print(args, &cut);
    let has = |args: &[&str], parts: &[&str]| {
        let said = said(args);
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        parts.iter().for_each(|part| assert!(words.contains(part), "{args:?}: {part}\n{said}"));
    };
    let since = "all lines from #0500 on, and of those before only what was in force there";
    // From its spawn to its block, `c` has run at times that the dump does not have.
    has(&["task", "c"], &["unknown 1.7s", "ready 0s", "blocked 2.3s", since]);
    has(&["tasks"], &["5 c in sleep 1 - 1.7s 0s 2.3s", since]);
    has(
        &["summary"],
        &[
            "The kernel, since the dump begins at #0500 events 5 ",
            "end nowhere 0",
            "5 c 4s - 42.5% 0.0% 57.5% 1 1",
            since,
        ],
    );
    has(&["slow"], &["made the task ready none took any time", since]);
    // The locks of `b` and `a` have other holders than when these waits began.
    has(&["idle"], &["mutex y, held by task 3 `a`, who took it at a.rs:7", "an unknown task"]);
    for command in ["idle", "summary"] {
        assert!(!said(&[command]).contains("deadlock of"), "{command}");
    }
    let trace = Trace::read(CUT.as_bytes().to_vec(), |_| {}).unwrap();
    assert!(deadlock(&trace).circles.is_empty());
    // The page draws no piece that begins with the `spawn`.
    let pieces = trace.pieces(trace.task(5).unwrap());
    let states: Vec<_> = pieces.iter().map(|piece| (piece.state, trace.seq(piece.from))).collect();
    let wanted = [(Blocked, 47), (Ready, 499), (Run, 500), (Blocked, 502)];
    assert_eq!(states, wanted);
    let held: Vec<_> = links(&trace).iter().map(|it| (trace.seq(it.wait), it.holder)).collect();
    assert_eq!(held, [(40, 3), (46, 4)]);
    // No line of the head was made by the `spawn` of its task.
    let unknown = "(what is behind that was before #0500, where the dump begins)";
    for seq in ["22", "30", "45", "47", "60", "499", "500", "501", "504"] {
        has(&["why", seq], &[unknown]);
    }
    has(&["why", "500"], &["because the wait of task 5 `c` for `sleep` was over"]);
    has(&["effects", "20"], &["Of what this caused, the dump has no line."]);
    has(&["effects", "499"], &["#0500"]);
    // Without a number, the line of the cause.
    assert_eq!(said(&["why"]), said(&["why", "502"]));
    assert!(said(&["why"]).ends_with("\nEvery task waits; `trace idle` says for what.\n"));
    assert!(!said(&["why", "501"]).contains("trace idle"));
    has(&["state", "--at", "45"], &[since]);
    has(&["state", "--at", "500"], &["3 a", "mutex y"]);
    has(&["step"], &["#0045 3 a block mutex q9"]);
    let unknown = "unknown: the dump has all lines from #0500 on, and of those before only what \
                   was in force there\n";
    assert_eq!(said(&["state", "--raw", "--at", "#499"]), unknown);
    let stepped = said(&["step"]);
    let (head, rest) = stepped.split_once(&format!("    {unknown}")).unwrap();
    assert!(!head.contains("\n    "), "{head}");
    assert!(rest.contains("\n    + cpu 5\n"), "{rest}");
    let check =
        "a dump with 5 events from #0500 on, and 14 lines of those before, every promise is kept";
    has(&["check"], &[check]);
    has(&["select", "verb=block for>1s", "--count"], &["4"]);
    let head = "there is no event 46000; expected one from 500 to 504, or one of the 14 in the \
                dump's head";
    for (args, expected) in [
        (
            &["idle", "--at", "3"][..],
            "expected a later time: this is before the recorder's first line",
        ),
        (&["why", "46000"], head),
        (&["state", "--at", "#46000"], head),
    ] {
        let mut command = std::process::Command::new(examples::build("trace"));
        let late = child::output(command.args(args).arg(&cut));
        assert!(String::from_utf8_lossy(&late.stderr).contains(expected), "{args:?}");
    }
}

#[test]
fn a_dump_from_the_first_line_on_has_no_lines_of_before() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("from_the_first.trace");
    let log = support::golden("hello");
    let (first, rest) = log.split_once('\n').unwrap();
    fs::write(&path, format!("{first}\n# flight from=#0001 cause=call at=#0003\n{rest}")).unwrap();
    let said = print(&["check"], &path);
    let (count, rest) = said.strip_prefix("a dump with ").unwrap().split_once(' ').unwrap();
    assert!(count.parse::<u32>().is_ok_and(|count| count > 3), "{said}");
    assert_eq!(rest, "events from #0001 on, every promise is kept\n");
}

#[test]
fn the_run_that_the_watchdog_saw_is_the_first_that_is_slow() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("watchdog.trace");
    let run = CUT.find(" 5.000000      20  #0501").unwrap();
    let of = |cause: &str| CUT[..run].replace("cause=hang at=#0502", cause);
    fs::write(&path, of("cause=watchdog at=#0500")).unwrap();
    let endless = "A run has not ended: that of task 5 `c`, since 5.000000 s (#0500); `trace why \
                   500` says from where.\n";
    let said = print(&["slow"], &path);
    assert!(said.find(endless).unwrap() < said.find("Longest runs").unwrap(), "{said}");
    let said = print(&["why"], &path);
    let hint =
        "\nThe run had not ended when the watchdog made the dump; `trace slow` says whose.\n";
    assert!(said.ends_with(hint), "{said}");
    fs::write(&path, of("cause=panic at=#0500")).unwrap();
    assert!(!print(&["slow"], &path).contains("A run has not ended"));
}

/// While one task gives a lock to another, two tasks begin to wait for it: their lines name no
/// holder.
const HANDED: &str = include_str!("../handed.trace");

#[test]
fn the_holder_of_a_lock_is_the_task_that_took_it_last_for_every_command() {
    let said = |args: &[&str]| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/handed.trace");
        let mut command = std::process::Command::new(examples::build("trace"));
        let out = child::output(command.args(args).arg(path));
        let said = String::from_utf8(out.stdout).unwrap();
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let has = |args: &[&str], part: &str| {
        let said = said(args);
        assert!(said.contains(part), "{args:?}: {part}\n{said}");
    };
    let [at_4, at_6, at_7] = [("2 `main`", 4), ("3 `a`", 6), ("2 `main`", 7)]
        .map(|(who, at)| format!("mutex stock, held by task {who}, who took it at a.rs:{at}"));
    for (time, now) in [("2", &at_6), ("3", &at_7)] {
        has(&["idle", "--at", time], &format!("4 b {now}"));
        has(&["tree", "--at", time], &format!("for {now}"));
    }
    has(&["tasks"], &format!("4 b in {at_7}"));
    has(&["state"], "k=4 mutex stock at a.rs:8, #0017, held by 2 main");
    // Of the whole wait, the first holder.
    has(&["idle"], &format!("1s 0.000000 #0009 3 a {at_4} a.rs:6 wake #0014"));
    has(&["idle"], &format!("2s 1.000000 #0015 2 main {at_6} a.rs:7 wake #0025"));
    for (seq, first) in [("9", &at_4), ("14", &at_4), ("15", &at_6), ("17", &at_6), ("25", &at_6)] {
        has(&["why", seq], &format!("for {first}"));
    }
    let caused = "This caused this line, whose `cause` is the whole run, #0012: #0014";
    has(&["effects", "13"], caused);
    has(&["effects", "19"], "This caused no line.");
    has(&["idle"], "deadlock of 2 tasks: 2 main waits for join 4, held by 4 b 4 b waits for mutex");
    let trace = Trace::read(HANDED.as_bytes().to_vec(), |_| {}).unwrap();
    let held: Vec<_> = links(&trace).iter().map(|it| (trace.seq(it.wait), it.holder)).collect();
    assert_eq!(held, [(9, 2), (15, 3), (17, 3), (17, 2)]);
}

/// Returns the answer for each line, by its number.
fn all(command: &str, file: &Path) -> BTreeMap<u64, String> {
    let said = print(&["why", command, "--all"], file);
    let blocks = said.split("\n#").map(|block| block.split_once('\n').unwrap());
    blocks
        .map(|(seq, said)| (seq.trim_start_matches('#').parse().unwrap(), said.to_owned()))
        .collect()
}

#[test]
fn the_causes_of_a_dump_are_the_first_causes_of_the_whole_log() {
    let (dump, whole) = written("causes");
    let (dump, whole) = (all("--lines", &dump), all("--lines", &whole));
    let chain = |said: &str| {
        let (_, chain) = said.split_once("\n\n").unwrap();
        chain.trim_end().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut cut = 0;
    for (seq, said) in &dump {
        let (mut said, whole) = (chain(said), chain(&whole[seq]));
        if said.last().unwrap().contains("what is behind that was before #") {
            said.pop();
            cut += 1;
        } else {
            assert_eq!(said.len(), whole.len(), "#{seq}");
        }
        assert!(whole.starts_with(&said), "#{seq}: {said:?}\n{whole:?}");
    }
    assert!(cut > 3 && cut < 20, "{cut}");
}

#[test]
fn each_command_reads_a_dump_as_a_part_of_the_whole_log() {
    let (dump, whole) = written("commands");
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
    assert!(lanes.contains(&format!("\nThe dump begins at #{from:04}; ")), "{lanes}");
    let turns = lanes.lines().find(|row| row.starts_with("turn ")).unwrap();
    assert!(turns.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() > 100, "{turns}");
}
