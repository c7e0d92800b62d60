//! The page on Curio's tests (`kernel::guide::curio`) and the tests agree: each ported case is a
//! test with its name, each test of these files is a case, each case is in the table exactly once,
//! and each case without a test has a reason.

use std::collections::BTreeSet;
use std::fs;

const PAGE: &str = "kernel/src/guide/curio.md";

/// Curio's files, and the file and the module here with their ported cases.
const FILES: [(&str, &str); 7] = [
    ("test_kernel.py", "curio_kernel"),
    ("test_task.py", "curio_task"),
    ("test_sync.py", "curio_sync"),
    ("test_queue.py", "curio_queue"),
    ("test_socket.py", "curio_socket: test_socket"),
    ("test_io.py", "curio_socket: test_io"),
    ("test_network.py", "curio_socket: test_network"),
];

fn read(path: &str) -> String {
    let path = support::root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The tests of a file, as `FILE: NAME` or `FILE: MODULE::NAME`.
fn tests(file: &str) -> BTreeSet<String> {
    let folder = match file {
        // Tests that need other libraries are in a separate package.
        "interop" => "tests/interop",
        "curio_socket" => "net/tests/all",
        "groups" => "traps/tests/all",
        _ => "kernel/tests/all",
    };
    let text = read(&format!("{folder}/{file}.rs"));
    let mut found = BTreeSet::new();
    let (mut module, mut is_test) = (String::new(), false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            module = format!("{name}::");
        } else if line == "}" {
            module.clear();
        } else if is_test && let Some((_, rest)) = line.split_once("fn ") {
            let name = rest.split('(').next().expect("a split has one piece");
            found.insert(format!("{file}: {module}{name}"));
        }
        is_test = line.trim() == "#[test]";
    }
    found
}

/// The rows of a section: case, here, remark. Checks the number of cases in its heading.
fn rows<'p>(page: &'p str, file: &str) -> Vec<[&'p str; 3]> {
    let heading = format!("## `{file}`: ");
    let (_, section) = page.split_once(&heading).unwrap_or_else(|| panic!("no `{heading}`"));
    let section = section.split("\n## ").next().expect("a split has one piece");
    let count: usize = section.split(' ').next().unwrap().parse().expect("`N cases`");
    let rows: Vec<_> = section.lines().filter_map(|line| line.strip_prefix("| `test_")).collect();
    assert_eq!(rows.len(), count, "{file}");
    let cells = |row: &'p str| {
        let row = row.strip_suffix('|').unwrap_or_else(|| panic!("an open row: {row}"));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [case, here, remark] = cells[..] else { panic!("three cells, not {row}") };
        [case.trim_end_matches('`'), here, remark]
    };
    rows.into_iter().map(cells).collect()
}

#[test]
fn every_case_is_a_test_or_has_a_reason() {
    let page = read(PAGE);
    for (file, place) in FILES {
        let (source, module) = place.split_once(": ").unwrap_or((place, ""));
        let start = format!("{source}: {module}");
        let mut tests_here: BTreeSet<String> = tests(source);
        tests_here.retain(|test| test.starts_with(&start));
        let mut cases = BTreeSet::new();
        for [case, here, remark] in rows(&page, file) {
            assert!(cases.insert(case), "{file}: test_{case} is there twice");
            let path = if module.is_empty() { case } else { &format!("{module}::{case}") };
            match here {
                "ported" => {
                    let test = format!("{source}: {path}");
                    assert!(tests_here.remove(&test), "{file}: no test `{test}`");
                }
                "none" => assert!(!remark.is_empty(), "{file}: test_{case} has no reason"),
                other => {
                    let test = other.trim_matches('`');
                    let elsewhere = test.split(':').next().expect("a split has one piece");
                    assert!(tests(elsewhere).contains(test), "{file}: test_{case}: no `{test}`");
                }
            }
        }
        assert!(tests_here.is_empty(), "{PAGE} does not name {tests_here:?}");
    }
}

#[test]
fn the_table_has_all_cases() {
    let page = read(PAGE);
    let count: usize = FILES.iter().map(|(file, _)| rows(&page, file).len()).sum();
    assert_eq!((count, page.matches("\n| `test_").count()), (176, 176));
}
