//! The page of limits: every option that bounds something is on it, with the value in force.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use kernel::Options;
use net::http::Config;
use traps::limits::{Bound, Value};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn all(options: &Options, listener: &net::listener::Options, config: &Config) -> Vec<Bound> {
    let mut all = traps::limits::limits();
    all.extend(kernel::limits(options));
    all.extend(net::limits(listener, config));
    all
}

fn defaults() -> Vec<Bound> {
    all(&Options::new(), &net::listener::Options::default(), &Config::default())
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

/// Name and value of each line.
fn read(text: &str) -> BTreeMap<String, String> {
    let line = |line: &str| {
        let (name, rest) = line.split_once(' ').unwrap();
        (name.to_owned(), rest.split_once('(').unwrap().0.trim().to_owned())
    };
    text.lines().map(line).collect()
}

#[test]
fn f29_every_example_prints_the_defaults_and_ends() {
    let wanted: String = defaults().iter().map(|bound| format!("{bound}\n")).collect();
    for example in fs::read_dir(root().join("examples")).unwrap() {
        let path = example.unwrap().path();
        if path.extension().is_some_and(|end| end == "rs") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let printed = printed(name, &["--print-limits"]);
            let rest = printed.strip_prefix(&wanted).unwrap_or_else(|| panic!("{name}: {printed}"));
            // An example lists what its own options bound behind all else.
            assert!(rest.lines().all(|line| line.starts_with("example.")), "{name}: {rest}");
            assert_eq!(rest.is_empty(), name != "http", "{name}: {rest}");
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
fn f29_the_example_http_lists_the_bounds_of_its_own_options() {
    let find = |args: &[&str]| {
        let found = read(&printed("http", &[args, &["--print-limits"]].concat()));
        ["files", "blocking", "gate"].map(|name| found[&format!("example.{name}")].clone())
    };
    assert_eq!(find(&[]), ["8 threads", "16 threads", "5 requests"]);
    let args = ["--file-threads", "1", "--blocking-threads", "2", "--gate", "3"];
    assert_eq!(find(&args), ["1 threads", "2 threads", "3 requests"]);
}

#[test]
fn f29_the_numbers_are_those_of_the_documents() {
    let found = read(&printed("hello", &["--print-limits"]));
    for (name, value) in [
        ("kernel.budget", "128 operations"),
        ("kernel.tick", "0.3 s"),
        ("kernel.tick.least", "0.01 s"),
        ("kernel.grace", "5 s"),
        ("kernel.longrun", "0.05 s"),
        ("kernel.watchdog", "off"),
        ("kernel.threads", "64 threads"),
        ("kernel.skipped", "61 turns"),
        ("kernel.unwanted", "16 events"),
        ("listener.backlog", "4096 connections"),
        ("write_deadline", "30 s"),
        ("http.head", "65536 bytes"),
        ("http.request_line", "8192 bytes"),
        ("http.head.time", "10 s"),
        ("http.body.rate", "240 bytes/s"),
        ("http.idle.time", "5 s"),
        ("http.connections", "16384 connections"),
        ("http.requests", "1000000 requests"),
        ("http.pipelined", "64 requests"),
    ] {
        assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
    }
}

#[test]
fn f29_what_the_command_line_sets_is_what_is_printed() {
    let args = ["--backlog", "77", "--watchdog", "250", "--print-limits"];
    let found = read(&printed("echo", &args));
    assert_eq!(found["listener.backlog"], "77 connections");
    assert_eq!(found["kernel.watchdog"], "0.25 s");
}

#[test]
fn f29_an_option_that_is_changed_is_changed_on_the_page() {
    let options = Options::new().budget(7).longrun(None).grace(Duration::from_millis(1500));
    let listener = net::listener::Options::default();
    let mut config = Config::default();
    config.limits.body = 1;
    let page = all(&options, &listener, &config);
    let value = |name: &str| page.iter().find(|bound| bound.name == name).unwrap().value.clone();
    assert_eq!(value("kernel.budget"), Value::Count(7, "operations"));
    assert_eq!(value("kernel.longrun"), Value::Off);
    assert_eq!(value("kernel.grace"), Value::Span(Duration::from_millis(1500)));
    assert_eq!(value("http.body"), Value::Count(1, "bytes"));
}

#[test]
fn f29_each_option_is_on_the_page_once_and_each_name_too() {
    let page = defaults();
    let mut names: Vec<&str> = page.iter().map(|bound| bound.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
    // The fields of each struct of options, by its source.
    for (file, head, prefix, unbounded) in [
        ("kernel/src/options.rs", "options! {", "Options", &["policy"][..]),
        (
            "net/src/listener.rs",
            "pub struct Options {",
            "listener::Options",
            &["reuse_address", "reuse_port"],
        ),
        ("net/src/http/limits.rs", "pub struct Limits {", "Limits", &[]),
        ("net/src/http/deadlines.rs", "pub struct Deadlines {", "Deadlines", &[]),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let body = text.split(head).nth(1).unwrap().split("\n}").next().unwrap();
        let fields = body.lines().filter_map(|line| line.trim().strip_prefix("pub "));
        let fields: Vec<&str> = fields.map(|field| field.split(':').next().unwrap()).collect();
        assert!(!fields.is_empty(), "{file}");
        for field in fields {
            let option = format!("{prefix}::{field}");
            let listed = page.iter().filter(|bound| bound.option == option).count();
            assert_eq!(listed, usize::from(!unbounded.contains(&field)), "{option}");
        }
    }
}

#[test]
fn f29_the_boot_line_of_a_server_has_every_limit_and_deadline() {
    let mut config = Config::default();
    config.limits.connections = 7;
    config.deadlines.idle = Duration::from_millis(1500);
    let line = net::boot_line(&config);
    for bound in all(&Options::new(), &net::listener::Options::default(), &config) {
        let of_requests = ["Limits::", "Deadlines::"].iter().any(|of| bound.option.starts_with(of));
        let shown = line.split(' ').filter(|word| word.split('=').next() == Some(bound.name));
        assert_eq!(shown.count(), usize::from(of_requests), "{}: {line}", bound.name);
    }
    for word in ["http.connections=7", "http.idle.time=1.5s", "http.head=65536"] {
        assert!(line.split(' ').any(|other| other == word), "{word}: {line}");
    }
}

#[test]
fn a_line_fits_a_screen() {
    for bound in defaults() {
        let line = bound.to_string();
        assert!(line.is_ascii() && line.len() <= 160 && !line.contains('\n'), "{line}");
    }
}

#[test]
fn options_out_of_bounds_are_shown_as_they_are_in_force() {
    let mut options = Options::new();
    (options.budget, options.threads) = (0, 0);
    let shown: Vec<String> = kernel::limits(&options).iter().map(ToString::to_string).collect();
    let has = |name: &str, value: &str| {
        let line = shown.iter().find(|line| line.starts_with(name)).unwrap();
        assert!(line.contains(value), "{line}");
    };
    has("kernel.budget ", " 2 operations");
    has("kernel.threads ", " 1 threads");
}

/// Whoever is in does not wait for a thread.
#[test]
fn f8_a_server_has_as_many_threads_as_its_flags_name() {
    let names = |gate: &str, threads: &str| {
        let found = read(&printed("http", &["--gate", gate, "--print-limits"]));
        assert_eq!(found["kernel.threads"], threads);
    };
    names("5", "64 threads");
    names("200", "224 threads");
}
