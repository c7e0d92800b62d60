//! The page of rows (`kernel::guide::rows`) and the tests agree: each test that the page names
//! exists, each test with the id of a row is in that row, and each row has a test or a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use support::root;

const PAGE: &str = "kernel/src/guide/rows.md";
const FOLDERS: [&str; 4] = ["tests", "traps", "kernel", "net"];

/// A row's id as tests carry it: `d12`, `curio_case_07`, `curio_t4`.
type Id = String;

/// A test: its file from the root, and its name.
type Test = (String, String);

/// A row of the page, which can have several ids.
#[derive(Debug, Default)]
struct Row {
    ids: Vec<Id>,
    tests: Vec<Test>,
    /// It has a reason in place of a test.
    reason: bool,
}

// ---- The page ----------------------------------------------------------------------------------

/// `D12`, `Curio T4`, `case 7`, and `R1 to R5` or `case 1 to 2` for all between.
fn ids(cell: &str) -> Vec<Id> {
    let id = |text: &str| {
        let text = text.to_lowercase().replace(' ', "_");
        let number = text.strip_prefix("case_").map(|number| number.parse::<u32>().unwrap());
        number.map_or(text, |number| format!("curio_case_{number:02}"))
    };
    let Some((first, last)) = cell.split_once(" to ") else { return vec![id(cell)] };
    let (stem, from) = first.split_at(first.find(|c: char| c.is_ascii_digit()).unwrap());
    let to: u32 = last.trim_start_matches(stem).parse().expect("it ends at a number");
    (from.parse().unwrap()..=to).map(|number| id(&format!("{stem}{number}"))).collect()
}

/// `FILE: `test`, `test`; FILE: `test`; none: why`.
fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let [row, promise, rest] = cells[..] else { panic!("{PAGE}: three cells, not {line}") };
    if row == "Row" {
        return None;
    }
    assert!(!promise.is_empty(), "{PAGE}: {row} promises nothing");
    let mut found = Row { ids: ids(row), ..Row::default() };
    for part in rest.split("; ") {
        let (file, names) = part.split_once([':', ' ']).unwrap_or((part, ""));
        if !file.ends_with(".rs") {
            // A reason may contain a `;`.
            assert!(found.reason || ["none", "later"].contains(&file), "{PAGE}: {row}: {part}");
            found.reason = true;
            continue;
        }
        assert!(!found.reason, "{PAGE}: {row}: tests come before the reason");
        for name in names.split(',') {
            let name = name.trim().strip_prefix('`').and_then(|name| name.strip_suffix('`'));
            let name = name.unwrap_or_else(|| panic!("{PAGE}: {row}: a test in `...`: {part}"));
            found.tests.push((file.to_owned(), name.to_owned()));
        }
    }
    Some(found)
}

fn page() -> Vec<Row> {
    let text = fs::read_to_string(root().join(PAGE)).unwrap();
    text.lines().filter_map(row).collect()
}

// ---- The tests ---------------------------------------------------------------------------------

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // Skip the output of builds and fuzzing.
            if !path.ends_with("target") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The names of the functions that are tests.
fn tests_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut marked = false;
    for line in text.lines().map(str::trim_start) {
        if line == "#[test]" {
            marked = true;
        } else if marked && let Some(name) = line.strip_prefix("fn ") {
            let end = name.find(['(', '<']).unwrap_or(name.len());
            found.push(name[..end].to_owned());
            marked = false;
        }
    }
    found
}

/// Every test of the workspace.
fn tests() -> BTreeSet<Test> {
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| sources(&root().join(folder), &mut files));
    let in_file = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let file = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        tests_in(&text).into_iter().map(move |name| (file.clone(), name))
    };
    files.into_iter().flat_map(in_file).collect()
}

/// The ids that a test's name begins with.
fn carried(name: &str) -> Vec<Id> {
    let words: Vec<&str> = name.split('_').collect();
    match words[..] {
        ["curio", "case", number, ..] => vec![format!("curio_case_{number}")],
        ["curio", rule, ..] => vec![format!("curio_{rule}")],
        _ => words.into_iter().take_while(|word| is_id(word)).map(str::to_owned).collect(),
    }
}

fn is_id(word: &str) -> bool {
    let number = word.strip_prefix(['a', 'c', 'd', 'f', 'r', 'x']);
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
}

// ---- What must hold ----------------------------------------------------------------------------

/// The rows that have a test with their id, or a reason.
fn required() -> Vec<Id> {
    let mut ids = Vec::new();
    let mut all = |stem: &str, ranges: &[(u32, u32)]| {
        let numbers = ranges.iter().flat_map(|(from, to)| *from..=*to);
        ids.extend(numbers.map(|number| format!("{stem}{number}")));
    };
    all("x", &[(1, 7)]);
    all("d", &[(1, 22), (25, 25), (29, 33)]);
    all("a", &[(1, 16)]);
    all("c", &[(5, 17), (28, 31)]);
    all("curio_d", &[(1, 7), (11, 11), (13, 13), (19, 19)]);
    ids.extend((1..=56).map(|number| format!("curio_case_{number:02}")));
    ids
}

/// Reports all errors, not only the first.
#[track_caller]
fn none_of(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_test_on_the_page_exists_where_it_says() {
    let tests = tests();
    let named: Vec<Test> = page().into_iter().flat_map(|row| row.tests).collect();
    assert!(named.len() > 200, "the page was read");
    let missing = named.into_iter().filter(|test| !tests.contains(test));
    none_of(
        missing
            .map(|(file, name)| {
                let elsewhere = tests.iter().find(|(_, other)| *other == name);
                let hint = elsewhere.map_or_else(
                    || "renamed or removed; correct the page".to_owned(),
                    |(other, _)| format!("it is in {other}; correct the page"),
                );
                format!("{PAGE}: there is no test {name} in {file}: {hint}")
            })
            .collect(),
    );
}

#[test]
fn every_test_that_carries_an_id_is_in_that_row_of_the_page() {
    let rows = page();
    let mut wrong = Vec::new();
    for test in tests() {
        for id in carried(&test.1) {
            let row = rows.iter().find(|row| row.ids.contains(&id));
            let (file, name) = &test;
            match row {
                None => wrong.push(format!("{file}: {name}: {PAGE} has no row {id}")),
                Some(row) if !row.tests.contains(&test) => {
                    wrong.push(format!("{file}: {name} is not in row {id} of {PAGE}; add it"));
                }
                Some(_) => {}
            }
        }
    }
    none_of(wrong);
}

#[test]
fn every_row_has_its_test_or_a_reason() {
    let mut rows: BTreeMap<Id, Row> = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in page() {
        for id in &row.ids {
            let one = Row { ids: vec![id.clone()], tests: row.tests.clone(), reason: row.reason };
            if rows.insert(id.clone(), one).is_some() {
                wrong.push(format!("{PAGE}: row {id} is there twice"));
            }
        }
        if row.tests.is_empty() && !row.reason {
            wrong.push(format!("{PAGE}: {:?}: neither a test nor a reason", row.ids));
        }
    }
    for id in required() {
        let Some(row) = rows.get(&id) else {
            wrong.push(format!("{PAGE}: row {id} is missing"));
            continue;
        };
        let carries = row.tests.iter().any(|(_, name)| carried(name).contains(&id));
        if !carries && !row.tests.is_empty() {
            wrong
                .push(format!("{PAGE}: row {id}: no test's name begins with {id}_, and no reason"));
        }
    }
    none_of(wrong);
}

#[test]
fn every_case_of_curio_is_a_golden_trace() {
    let golden = root().join("tests/golden");
    let files: Vec<String> = fs::read_dir(golden)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned())
        .collect();
    let missing = (1..=56).map(|number| format!("curio_case_{number:02}"));
    let missing = missing.filter(|case| !files.iter().any(|file| file.starts_with(case)));
    none_of(missing.map(|case| format!("there is no tests/golden/{case}.trace")).collect());
}

// ---- The reading itself ------------------------------------------------------------------------

#[test]
fn a_row_is_read_as_it_is_written() {
    let read =
        row("| Curio D4 | words | a/b.rs: `x`, `y`; c.rs: `z`; none: for; reasons |").unwrap();
    assert_eq!(read.ids, ["curio_d4"]);
    let tests = [("a/b.rs", "x"), ("a/b.rs", "y"), ("c.rs", "z")];
    assert_eq!(read.tests, tests.map(|(file, name)| (file.to_owned(), name.to_owned())));
    assert!(read.reason);
    assert_eq!(ids("case 9 to 11"), ["curio_case_09", "curio_case_10", "curio_case_11"]);
    assert_eq!(ids("C34 to C36"), ["c34", "c35", "c36"]);
    assert!(row("| Row | Promise | Tests |").is_none() && row("|---|---|---|").is_none());
}

#[test]
fn a_name_is_read_as_it_is_written() {
    assert_eq!(carried("d15_d16_d17_no_arm_no_scan"), ["d15", "d16", "d17"]);
    assert_eq!(carried("curio_case_44_swallowed"), ["curio_case_44"]);
    assert_eq!(carried("curio_t10_an_interrupt"), ["curio_t10"]);
    assert_eq!(carried("a_row_is_read"), Vec::<Id>::new());
    assert_eq!(carried("c_20_of_them"), Vec::<Id>::new());
    let text = "  #[test]\n  #[ignore]\n  fn one() {\n}\nfn helper() {}\n#[test]\nfn two<T>()";
    assert_eq!(tests_in(text), ["one", "two"]);
}
