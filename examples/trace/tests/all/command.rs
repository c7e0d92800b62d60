//! The trace tool as a user runs it: its exit status, and its output on each stream.

use std::fs;
use std::io::{Seek as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Output};

use support::{examples, golden};
use testing::child;

use crate::tool::SERVER;

fn tool(args: &[&str]) -> Output {
    child::output(Command::new(examples::build("trace")).args(args))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A file of this test.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn check_fails_for_a_log_that_is_not_whole_and_other_commands_warn() {
    let whole = golden("hello");
    let path = file("whole.trace");
    let path = path.to_str().unwrap();
    fs::write(path, &whole).unwrap();
    let ran = tool(&["check", path]);
    assert_eq!((ran.status.code(), text(&ran.stderr).as_str()), (Some(0), ""));
    let end = whole.find(" halt ").and_then(|end| whole[..end].rfind('\n')).unwrap();
    fs::write(path, &whole[..=end]).unwrap();
    let ran = tool(&["check", path]);
    assert_eq!((ran.status.code(), text(&ran.stdout).as_str()), (Some(1), ""));
    let said = text(&ran.stderr);
    assert!(
        said.contains(" without a `halt` line: ") && said.ends_with(" is incomplete\n"),
        "{said}"
    );
    for command in ["tasks", "lanes", "idle"] {
        let ran = tool(&[command, path]);
        assert_eq!(ran.status.code(), Some(0), "{command}");
        assert!(text(&ran.stderr).contains(" without a `halt` line: "), "{command}");
    }
    // This process is writing the file, so the log has no end yet.
    let writer = fs::File::options().append(true).open(path).unwrap();
    let ran = tool(&["check", path]);
    assert_eq!((ran.status.code(), text(&ran.stderr).as_str()), (Some(0), ""));
    let said = text(&ran.stdout);
    let pid = std::process::id();
    assert!(said.ends_with(&format!("; process {pid} is writing the trace\n")), "{said}");
    drop(writer);
}

#[test]
fn a_file_is_being_written_while_a_process_has_it_open_for_that() {
    const CUT: &str = " 5.000000       4  #00";
    let path = file("written.trace");
    let idle = || {
        let ran = tool(&["idle", path.to_str().unwrap()]);
        let first = text(&ran.stdout).lines().next().unwrap_or_default().to_owned();
        (first, text(&ran.stderr))
    };
    let mut writer = fs::File::create(&path).unwrap();
    let _reader = fs::File::open(&path).unwrap();
    writer.write_all(format!("{SERVER}{CUT}").as_bytes()).unwrap();
    let (first, faults) = idle();
    let pid = std::process::id();
    assert!(first.starts_with("Waiting now ("), "{first}");
    assert!(first.ends_with(&format!("; process {pid} is writing the trace:")), "{first}");
    assert_eq!(faults, "", "a line that is not whole is not read");
    writer.set_len(0).unwrap();
    writer.rewind().unwrap();
    writer.write_all(SERVER.replace("clock=real", "clock=virtual").as_bytes()).unwrap();
    let end = "Waiting at the end of the trace (4.000000 s):".to_owned();
    assert_eq!(idle(), (end.clone(), String::new()), "no time passes by itself");
    drop(writer);
    fs::write(&path, format!("{SERVER}{CUT}")).unwrap();
    let (first, faults) = idle();
    assert_eq!(first, end, "a reader is no writer");
    assert!(faults.starts_with("trace: line 27, "), "{faults}");
}

#[test]
fn a_record_and_a_line_without_an_end_have_one_sentence() {
    let path = file("a.record");
    fs::write(&path, "<trapline-record 1\n<command echo\n".to_owned() + &"<now 1\n".repeat(999))
        .unwrap();
    for (path, is_told) in [
        (path.to_str().unwrap(), "this is a record and no log: "),
        ("/dev/zero", "line 1 has 16 MiB and no end: this is no log"),
    ] {
        for command in ["summary", "check", "tasks"] {
            let output = tool(&[command, path]);
            let told = text(&output.stderr);
            assert_eq!((output.status.success(), told.lines().count()), (false, 1), "{told}");
            assert!(told.contains(is_told), "{told}");
        }
    }
    // The found text is cut.
    let path = file("long.trace");
    fs::write(&path, "x".repeat(1 << 20) + "\n").unwrap();
    let told = text(&tool(&["summary", path.to_str().unwrap()]).stderr);
    assert!(told.contains(&format!("`{}...`", "x".repeat(80))) && told.len() < 1000, "{told}");
}

#[cfg(unix)]
#[test]
fn a_picture_is_not_written_over_its_log() {
    let path = file("itself.trace");
    let link = file("itself.link");
    let log = golden("hello");
    fs::write(&path, &log).unwrap();
    drop(fs::remove_file(&link));
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let path = path.to_str().unwrap();
    for (command, output) in
        [("timeline", path), ("perfetto", path), ("timeline", link.to_str().unwrap())]
    {
        let ran = tool(&[command, "-o", output, path]);
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{said}");
        assert!(said.ends_with("that is the trace itself, expected another file\n"), "{said}");
        assert_eq!(fs::read_to_string(path).unwrap(), log);
    }
    let [piped, printed] = [&["timeline", "-o", "-", path][..], &["timeline", path]].map(tool);
    assert_eq!(piped.status.code(), Some(0));
    assert!(piped.stdout == printed.stdout && piped.stdout.starts_with(b"<!doctype html>"));
    assert!(!PathBuf::from("-").exists());
    let full = tool(&["timeline", "-o", "/dev/full", path]);
    assert_eq!(full.status.code(), Some(2));
    assert!(text(&full.stderr).starts_with("trace: cannot write /dev/full: "));
}

#[test]
fn all_gives_what_why_and_state_give_for_each_event() {
    let log = golden("nested");
    let path = file("each.trace");
    fs::write(&path, &log).unwrap();
    let path = path.to_str().unwrap();
    let events = log.lines().filter(|line| !line.starts_with('#'));
    let numbers = events.map(|line| line.split_whitespace().nth(2).unwrap());
    let commands: [(&[&str], &[&str]); 4] = [
        (&["why", "--all"], &["why"]),
        (&["why", "--lines", "--all"], &["why", "--lines"]),
        (&["state", "--all"], &["state", "--at"]),
        (&["state", "--raw", "--all"], &["state", "--raw", "--at"]),
    ];
    for (all, one) in commands {
        let shown = |number| text(&tool(&[one, &[number, path]].concat()).stdout);
        let each = numbers.clone().map(|number| format!("{number}\n{}", shown(number)));
        let said = tool(&[all, &[path]].concat());
        assert_eq!((said.status.code(), text(&said.stdout)), (Some(0), each.collect()), "{all:?}");
    }
    for wrong in
        [&["why", "x", path][..], &["why", "3", "--all", path], &["state", "--all", "--at", "3"]]
    {
        assert_eq!(tool(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
