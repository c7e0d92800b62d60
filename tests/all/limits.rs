//! The limits that an example prints are those in force.

use std::fs;
use std::time::Duration;

use common::values::{Span, address, millis};
use support::examples::answer_help_and_refuse_what_is_wrong;
use support::root;

use testing::child;

/// Returns the output of `cargo run --example NAME -- ARGS`.
fn printed(name: &str, args: &[&str]) -> String {
    let mut cargo = child::cargo();
    cargo.current_dir(root());
    cargo.args(["run", "--quiet", "--offline", "--example", name, "--"]).args(args);
    let ran = child::output_within(child::BUILD, &mut cargo);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// Returns the printed value and unit of a limit.
#[track_caller]
fn value<'t>(printed: &'t str, name: &str) -> &'t str {
    let mut lines = printed.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let found = lines.next().unwrap_or_else(|| panic!("no {name}: {printed}"));
    assert_eq!(lines.next(), None, "{name} is there twice");
    found
}

/// The examples that a signal shuts down.
const SERVERS: [&str; 7] = ["echo", "chat", "proxy", "http", "redis", "udp_echo", "unix_echo"];

#[test]
fn f29_every_example_prints_the_limits_that_it_has_and_ends() {
    let kernel = kernel::Options::new();
    let (mut seen, millis) = (0, |span: Duration| format!("{} ms", span.as_millis()));
    let in_folder = |folder: &str| fs::read_dir(root().join(folder)).unwrap();
    for example in in_folder("examples").chain(in_folder("examples/servers")) {
        let path = example.unwrap().path();
        if path.extension().is_some_and(|end| end == "rs") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let printed = printed(name, &["--print-limits"]);
            for line in printed.lines() {
                let words: Vec<&str> = line.split(' ').collect();
                let [limit, value, unit] = words[..] else { panic!("{name}: {line}") };
                let is_number = value.parse::<u64>().is_ok() && unit != "-";
                let is_word = ["on", "off", "lazy"].contains(&value);
                assert!(is_number || is_word, "{name}: {line}");
                assert!(limit.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
                self::value(&printed, limit);
            }
            assert_eq!(value(&printed, "budget"), format!("{} operations", kernel.budget));
            assert_eq!(value(&printed, "grace"), millis(kernel.grace), "{name}");
            assert_eq!(value(&printed, "longrun"), millis(kernel.longrun.unwrap()), "{name}");
            assert_eq!(value(&printed, "watchdog"), "off ms", "{name}");
            let has = |limit: &str| printed.lines().any(|line| line.starts_with(limit));
            assert_eq!(has("drain 10000 ms"), SERVERS.contains(&name), "{name}");
            assert_eq!(has("limit-head "), name == "http", "{name}: {printed}");
            assert_eq!(has("patience "), name == "chat", "{name}: {printed}");
            seen += 1;
        }
    }
    assert!(seen > 10);
}

/// Examples with other libraries have a separate test. The steps of the course take no options,
/// because their source is the subject.
#[test]
fn each_example_answers_help_and_refuses_an_option_that_it_does_not_have() {
    let folders = ["examples", "examples/servers", "examples/trace", "examples/play"];
    let all = folders.map(|folder| answer_help_and_refuse_what_is_wrong(folder, None));
    assert_eq!(all, [9, 8, 1, 2]);
}

#[test]
fn c1_an_example_prints_the_list_of_traps_and_ends() {
    let printed = printed("hello", &["--list-traps"]);
    assert_eq!(printed.lines().collect::<Vec<_>>(), kernel::trace::listed());
    assert!(printed.lines().all(|line| line.len() <= 100), "{printed}");
}

#[test]
fn f29_what_the_command_line_sets_is_what_is_printed() {
    for (name, args, wanted) in [
        ("echo", "--backlog 77 --watchdog 250", "backlog 77 connections, watchdog 250 ms"),
        ("http", "--half-close on --drain off", "half-close on -, bare-lf off -, drain off ms"),
        (
            "http",
            "--file-threads 1 --blocking-threads 2 --gate 3",
            "file-threads 1 threads, blocking-threads 2 threads, gate 3 requests",
        ),
        ("chat", "--patience 5", "patience 5 ms, line 1024 bytes"),
        ("chat", "--patience 1.5s --drain 5s", "patience 1500 ms, drain 5000 ms"),
        ("redis", "--idle 5 --write 6", "idle 5 ms, write 6 ms, words 1024 words"),
        (
            "proxy",
            "--limit 7 --connect 9 --idle 5s",
            "limit 7 connections, connect 9 ms, idle 5000 ms",
        ),
        ("fetch", "--timeout 7 --policy lazy", "timeout 7 ms, piece 10000 ms, policy lazy -"),
    ] {
        let args: Vec<&str> = args.split(' ').chain(["--print-limits"]).collect();
        let printed = printed(name, &args);
        for line in wanted.split(", ") {
            let (limit, set) = line.split_once(' ').unwrap();
            assert_eq!(value(&printed, limit), set, "{name} {args:?}");
        }
    }
}

/// An admitted request does not wait for a thread.
#[test]
fn f8_a_server_has_as_many_threads_as_its_flags_name() {
    for (gate, threads) in [("5", "64 threads"), ("200", "224 threads")] {
        let printed = printed("http", &["--gate", gate, "--print-limits"]);
        assert_eq!(value(&printed, "threads"), threads);
    }
}

// ---- Values -----------------------------------------------------------------------------------

#[test]
fn a_duration_is_read_as_it_is_printed() {
    for n in [1, 10, 250, 999, 1000, 1500, 60_001, 3_600_000, 86_400_123] {
        let span = Duration::from_millis(n);
        assert_eq!(millis(&format!("{span:?}")), Ok(span));
        assert_eq!(millis(&n.to_string()), Ok(span));
    }
    assert_eq!(millis("0.25s"), Ok(Duration::from_millis(250)));
    for wrong in
        ["", "s", "ms", ".s", "0", "0s", "0.5ms", "-1s", "+1s", "1e3s", "infs", "1 s", "1m"]
    {
        assert!(millis(wrong).is_err(), "{wrong}");
    }
    assert_eq!(Span::from(0)("0s").unwrap().0, Duration::ZERO);
    assert!(Span::from(1)("0ms").is_err());
    assert_eq!(Span::from(1)("off").unwrap().0, Duration::MAX);
}

#[test]
fn a_host_that_is_not_found_is_no_wrong_address() {
    // A name this long is not sent to any server.
    let host = "x".repeat(64);
    let said = address(&format!("{host}:80")).unwrap_err();
    assert!(said.starts_with(&format!("cannot find the host {host}: ")), "{said}");
    for wrong in ["nowhere", ":80", "localhost:http", "localhost:65536", "[::1]", ""] {
        let said = address(wrong).unwrap_err();
        assert_eq!(said, "expected an address such as 127.0.0.1:8080", "{wrong}");
    }
    for right in ["127.0.0.1:80", "[::1]:80", "localhost:80"] {
        assert_eq!(address(right).unwrap().port(), 80);
    }
    let lo = address("[fe80::1%lo]:80").unwrap();
    assert_eq!(address("fe80::1%lo:80"), Ok(lo));
}
