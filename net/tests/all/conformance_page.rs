//! The page of conformance (`net::guide::conformance`) and the tests agree.

use std::collections::BTreeSet;
use std::fs;

const PAGE: &str = "net/src/guide/conformance.md";
const HERE: &str = "net/tests/all/http_conformance.rs";

fn read(path: &str) -> String {
    fs::read_to_string(support::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The functions of a file that are tests.
fn tests_in(path: &str) -> BTreeSet<String> {
    let text = read(path);
    let mut lines = text.lines().map(str::trim_start);
    let mut found = BTreeSet::new();
    while let Some(line) = lines.next() {
        if line == "#[test]" {
            let function = lines.by_ref().find_map(|line| line.strip_prefix("fn "));
            let function = function.expect("a function follows");
            found.insert(function.split('(').next().unwrap().to_owned());
        }
    }
    found
}

/// The files and tests that a row names.
fn named(row: &str) -> Vec<(String, String)> {
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
    let [section, level, rule, tests] = cells[..] else { panic!("{PAGE}: four cells: {row}") };
    let levels = ["-", "MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY"];
    assert!(levels.contains(&level.trim()), "{PAGE}: {section}: {level}");
    assert!(!rule.is_empty() && !tests.trim().is_empty(), "{PAGE}: {section}: {rule}");
    let mut found = Vec::new();
    for part in tests.trim().split("; ") {
        let (file, names) = part.split_once(": ").unwrap_or((HERE, part));
        for name in names.split(", ") {
            let name = name.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
            let name = name.unwrap_or_else(|| panic!("{PAGE}: {section}: `test`, not {part}"));
            found.push((file.to_owned(), name.to_owned()));
        }
    }
    found
}

#[test]
fn every_rule_has_its_tests_and_every_test_its_rule() {
    let page = read(PAGE);
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| Section |");
    let rows: Vec<_> = page.lines().filter(is_row).map(named).collect();
    assert!(rows.len() > 70, "the page was read: {}", rows.len());
    let named: BTreeSet<_> = rows.into_iter().flatten().collect();
    let files: BTreeSet<_> = named.iter().map(|(file, _)| file.clone()).collect();
    for file in files {
        let there = tests_in(&file);
        for (_, name) in named.iter().filter(|(other, _)| *other == file) {
            assert!(there.contains(name), "{PAGE}: there is no test {name} in {file}");
        }
    }
    for name in tests_in(HERE) {
        let known = named.contains(&(HERE.to_owned(), name.clone()));
        assert!(known, "{HERE}: {name} is not on {PAGE}; add it");
    }
}

#[test]
fn the_guide_draws_the_states_of_a_connection_as_the_source_does() {
    let source = read("net/src/http/connection.rs");
    let head = source.lines().map_while(|line| line.strip_prefix("//!"));
    let head: String =
        head.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect();
    let from = head.find("```text").expect("there is a drawing");
    let to = head.find("Every status that is the server's own").expect("a table of statuses");
    assert!(read("net/src/guide/connection.md").contains(head[from..to].trim_end()));
}
