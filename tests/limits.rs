//! What an example prints of its options is what is in force.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// What `cargo run --example NAME -- ARGS` prints.
fn printed(name: &str, args: &[&str]) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let ran = Command::new(cargo)
        .current_dir(root())
        .args(["run", "--quiet", "--offline", "--example", name, "--"])
        .args(args)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// What is printed of one option in that block.
#[track_caller]
fn value<'t>(printed: &'t str, block: &str, option: &str) -> &'t str {
    let found = printed.split(&format!("{block} {{\n")).nth(1).and_then(|rest| {
        let block = rest.split("\n}").next()?;
        block.split(&format!("    {option}: ")).nth(1)?.split(",\n").next()
    });
    found.unwrap_or_else(|| panic!("{block} {option}: {printed}")).trim_end_matches(',')
}

/// The examples that are servers.
const SERVERS: [&str; 8] =
    ["echo", "chat", "proxy", "http", "udp_echo", "unix_echo", "hyper_server", "tls_echo"];

#[test]
fn f29_every_example_prints_the_defaults_and_ends() {
    let defaults = [
        format!("kernel::{:#?}", kernel::Options::new()),
        format!("listener::{:#?}", net::listener::Options::default()),
        format!("{:#?}", net::http::Limits::default()),
        format!("{:#?}", net::http::Deadlines::default())
            .replace(&format!("{:?}", std::time::Duration::MAX), "off"),
    ];
    for example in fs::read_dir(root().join("examples")).unwrap() {
        let path = example.unwrap().path();
        if path.extension().is_some_and(|end| end == "rs") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let printed = printed(name, &["--print-limits"]);
            // A server begins its shutdown by a signal.
            let of_servers = usize::from(SERVERS.contains(&name));
            for block in &defaults[of_servers..] {
                assert!(printed.contains(block), "{name}: {printed}");
            }
        }
    }
}

#[test]
fn c1_an_example_prints_the_list_of_traps_and_ends() {
    let printed = printed("hello", &["--list-traps"]);
    assert_eq!(printed.lines().collect::<Vec<_>>(), kernel::trace::listed());
    assert!(printed.lines().all(|line| line.len() <= 100), "{printed}");
}

#[test]
fn f29_the_example_http_prints_its_own_options() {
    let find = |args: &[&str]| {
        let printed = printed("http", &[args, &["--print-limits"]].concat());
        let own = ["file_threads", "blocking_threads", "gate"];
        own.map(|option| value(&printed, "Paths", option).to_owned())
    };
    assert_eq!(find(&[]), ["8", "16", "5"]);
    let args = ["--file-threads", "1", "--blocking-threads", "2", "--gate", "3"];
    assert_eq!(find(&args), ["1", "2", "3"]);
}

#[test]
fn f29_what_the_command_line_sets_is_what_is_printed() {
    let printed = printed("echo", &["--backlog", "77", "--watchdog", "250", "--print-limits"]);
    assert_eq!(value(&printed, "listener::Options", "backlog"), "77");
    let watchdog = value(&printed, "kernel::Options", "watchdog");
    assert!(watchdog.contains("250ms"), "{watchdog}");
}

/// Whoever is in does not wait for a thread.
#[test]
fn f8_a_server_has_as_many_threads_as_its_flags_name() {
    for (gate, threads) in [("5", "64"), ("200", "224")] {
        let printed = printed("http", &["--gate", gate, "--print-limits"]);
        assert_eq!(value(&printed, "kernel::Options", "threads"), threads);
    }
}
