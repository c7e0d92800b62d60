//! The lessons: their output equals the text on the pages, byte for byte.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use testing::{child, trace};

const LESSONS: [&str; 8] =
    ["hello", "nested", "phases", "linger", "worker", "spin", "producer", "crowd"];

fn file(path: &str) -> PathBuf {
    support::root().join(path)
}

/// Runs `cargo run --example NAME -- ARGS` to its end.
fn run(name: &str, args: &[&str]) -> Output {
    let mut cargo = child::cargo();
    cargo.current_dir(support::root());
    cargo.args(["run", "--quiet", "--offline", "--example", name, "--"]).args(args);
    child::output_within(child::BUILD, &mut cargo)
}

/// The output.
fn output(name: &str, args: &[&str]) -> String {
    let ran = run(name, args);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{name} {args:?} failed: {errors}");
    String::from_utf8(ran.stdout).unwrap()
}

fn assert_checks(name: &str, text: &str) {
    let lines = trace::trace(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    if let Err(violations) = trace::check(&lines) {
        panic!("{name}: {violations:?}\n{text}");
    }
}

#[test]
fn every_lesson_prints_its_golden_trace() {
    for name in LESSONS {
        let printed = output(name, &["--virtual"]);
        assert_checks(name, &printed);
        support::compare(name, &printed);
    }
}

/// The report of the kernel is on standard error, in readable form.
#[test]
fn the_philosophers_are_told_who_waits_for_whom() {
    for args in [&["--virtual"][..], &[]] {
        let ran = run("philosophers", args);
        assert_eq!(ran.status.code(), Some(1));
        let said = String::from_utf8(ran.stderr).unwrap();
        let (_, circle) = said.split_once("deadlock of 5 tasks:").expect("it is told");
        let expected = "
 3 Aristotle waits for mutex fork-1, held by 4 Kant
 4 Kant waits for mutex fork-2, held by 5 Marx
 5 Marx waits for mutex fork-3, held by 6 Russell
 6 Russell waits for mutex fork-4, held by 7 Spinoza
 7 Spinoza waits for mutex fork-0, held by 3 Aristotle
";
        assert_eq!(circle, expected, "{said}");
    }
    assert_checks("philosophers", &output("philosophers", &["--virtual", "--ordered"]));
    // The log of a failed run shows the tasks that were waiting, although all were dropped.
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("philosophers.trace");
    let trace = trace.to_str().unwrap();
    run("philosophers", &["--virtual", "--trace", trace]);
    assert!(output("trace", &["idle", trace]).contains("deadlock of 5 tasks:\n"));
}

#[test]
fn every_policy_of_linger_passes_the_checker() {
    for policy in ["lazy", "next-sleep", "eager"] {
        assert_checks(policy, &output("linger", &["--virtual", "--policy", policy]));
    }
}

/// `BLESS=1` writes the trace into the README.
#[test]
fn the_trace_in_the_readme_is_what_hello_prints() {
    let readme = fs::read_to_string(file("README.md")).unwrap();
    let (before, rest) = readme.split_once("<!-- trace: hello -->\n```text\n").expect("a trace");
    let (block, after) = rest.split_once("```").expect("a block ends");
    let printed = output("hello", &["--virtual"]);
    if support::is_blessing() {
        let text = format!("{before}<!-- trace: hello -->\n```text\n{printed}```{after}");
        return fs::write(file("README.md"), text).unwrap();
    }
    assert_eq!(block, printed);
}

/// The real clock is the subject here. If the machine stalls, a lesson can be late enough to change
/// the order, so it has three tries.
#[test]
fn on_the_real_machine_the_lessons_differ_in_times_only() {
    for name in ["hello", "nested", "phases", "worker"] {
        let wanted = trace::mask_times(&output(name, &["--virtual"]));
        let wanted = wanted.replace("clock=virtual", "clock=real");
        let mut seen = String::new();
        let same = (0..3).any(|_| {
            // A try may fail if the machine stalls for longer than the lesson waits.
            let ran = run(name, &["--trace", "-"]);
            if !ran.status.success() {
                seen = String::from_utf8(ran.stderr).unwrap();
                return false;
            }
            let printed = String::from_utf8(ran.stdout).unwrap();
            assert_checks(name, &printed);
            seen = trace::mask_times(&printed);
            seen == wanted
        });
        assert!(same, "{name}: wanted\n{wanted}\nsaw\n{seen}");
    }
}

#[test]
fn the_real_linger_passes_the_checker() {
    // It has one more task than the virtual one: the task writes the bytes that the script provides
    // there.
    assert_checks("linger", &output("linger", &["--trace", "-"]));
}

#[test]
fn a_lesson_that_shows_nothing_says_how_to_see_it() {
    let hint = "hello: to see what it does, add `--trace -` or `--virtual`\n";
    let plain = run("hello", &[]);
    assert_eq!((plain.stdout.len(), &*String::from_utf8_lossy(&plain.stderr)), (0, hint));
    let seen = run("hello", &["--virtual"]);
    assert!(!seen.stdout.is_empty() && seen.stderr.is_empty());
    // A recorder shows what it keeps when something goes wrong.
    assert!(run("hello", &["--flight", "1m"]).stderr.is_empty());
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error_that_is_told_once() {
    let ran = run("hello", &["--virtual", "--trace", "/dev/full"]);
    let errors = String::from_utf8_lossy(&ran.stderr);
    let told = "error: the trace to /dev/full is not complete: ";
    assert!(errors.starts_with(told) && errors.lines().count() == 1, "{errors}");
    assert_eq!(ran.status.code(), Some(1));
}

/// A name this long is not sent to any server.
const NO_HOST: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx:80";

#[test]
fn bad_command_lines_get_a_clear_error() {
    let cases: [(&str, &[&str], &str); 9] = [
        ("hello", &["--nonsense"], "unexpected argument '--nonsense' found"),
        ("hello", &["--traces", "x"], "found; a similar argument exists: '--trace'"),
        ("hello", &["--trace"], "a value is required for '--trace <FILE>'"),
        ("linger", &["--policy", "never"], "expected eager, next-sleep or lazy, not `never`"),
        ("hello", &["--watchdog", "0"], "expected a number of milliseconds from 1"),
        ("echo", &["--addr", "nowhere"], "expected an address"),
        ("echo", &["--addr", NO_HOST], "cannot find the host xxxx"),
        ("echo", &["--addr", "192.0.2.1:80"], "192.0.2.1:80"),
        ("hello", &["--trace", "/no/such/folder/trace"], "/no/such/folder/trace"),
    ];
    for (name, args, wanted) in cases {
        let ran = run(name, args);
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success(), "{name} {args:?}");
        assert!(errors.contains(wanted), "{name} {args:?}: {errors}");
        // Only the error is printed.
        let said: Vec<&str> = errors.lines().collect();
        assert!(said.len() == 1 && said[0].starts_with("error: "), "{name} {args:?}: {errors}");
        assert!(ran.stdout.is_empty(), "{name} {args:?}");
    }
}

#[test]
fn every_example_has_help_and_a_version() {
    let others = [
        "echo",
        "chat",
        "proxy",
        "http",
        "redis",
        "fetch",
        "philosophers",
        "udp_echo",
        "unix_echo",
    ];
    for name in LESSONS.into_iter().chain(others) {
        assert_eq!(output(name, &["--version"]), format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
        let help = output(name, &["--help"]);
        assert!(help.contains(&format!("Usage: {name} [OPTIONS]")), "{help}");
        assert!(help.lines().all(|line| line.len() <= 100), "{help}");
    }
}
