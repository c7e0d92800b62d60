//! The budgets of the source, asserted like behaviour: how much there is, and how long its pieces
//! are. Lines are lines of code: no blank lines, no comments, no tests.

use std::fs;
use std::path::Path;

use support::root;

/// The present numbers of lines of code: of `traps` and `kernel`, of the three readings, and of
/// the parts of `net`. A sum may be [`ROOM`] percent above the number here. A change that makes a
/// sum smaller updates the number.
/// Among them are the 610 lines of the flight recorder and the 110 of `TokenBucket`.
const TRAPS_AND_KERNEL: usize = 17_000;
const FIRST_READING: usize = 2_636;
const READINGS: usize = 4_141;
const HTTP: usize = 4_476;
const WEB: usize = 1_202;
/// Among them are the 130 lines of `system.rs`, the differences of macOS and FreeBSD, and the 110
/// lines for libraries that want tokio's traits or `Send`.
const SOCKETS: usize = 4_460;
/// How much a sum may exceed the number here, in percent.
const ROOM: usize = 5;
/// Files of `traps` and `kernel`, without those of tests.
const FILES: usize = 95;
/// Files in a folder.
const ENTRIES: usize = 36;
/// Lines of code in a file.
const FILE: usize = 700;
/// Lines of code in a function, its signature included.
const FUNCTION: usize = 60;
/// Columns of a line, comments included.
const COLUMNS: usize = 100;
/// How often [`BY_HAND`] may be used in `traps` and `kernel`.
const TUNED_BY_HAND: usize = 60;

/// Attributes and calls that are there for speed alone.
const BY_HAND: [&str; 3] = ["#[cold]", "#[inline(never)]", "mem::forget"];

/// The first reading: a kernel, in an hour and a half. The README has the same lists.
const FIRST: [&str; 14] = [
    "traps/src/core/protocol.rs",
    "kernel/src/core/mod.rs",
    "kernel/src/core/sched.rs",
    "kernel/src/core/turn.rs",
    "kernel/src/core/run.rs",
    "kernel/src/core/dispatch.rs",
    "traps/src/core/table.rs",
    "traps/src/core/records.rs",
    "traps/src/core/gate.rs",
    "traps/src/core/wait.rs",
    "kernel/src/core/waits.rs",
    "kernel/src/core/tasks.rs",
    "kernel/src/core/timers.rs",
    "kernel/src/core/ends.rs",
];
/// The second reading: what may end a wait early.
const SECOND: [&str; 7] = [
    "traps/src/interrupts/mod.rs",
    "traps/src/interrupts/source.rs",
    "traps/src/interrupts/tree.rs",
    "traps/src/interrupts/interrupt.rs",
    "traps/src/interrupts/pending.rs",
    "traps/src/interrupts/scope.rs",
    "kernel/src/interrupts.rs",
];
/// The third reading: what the log is told.
const THIRD: [&str; 1] = ["kernel/src/log/lines.rs"];
/// Lines of comments inside the bodies of the readings, in percent of their lines of code.
const COMMENTS: usize = 7;
/// Assertions in 1,000 lines of code of the readings.
const ASSERTIONS: usize = 14;

const CRATES: [&str; 3] = ["traps/src", "kernel/src", "net/src"];

/// Every source file at or below a path, from the root, with its text.
fn sources(path: &str) -> Vec<(String, String)> {
    fn walk(path: &Path, found: &mut Vec<(String, String)>) {
        if path.is_dir() {
            // Skip the output of builds and fuzzing.
            if !path.ends_with("target") {
                let entries = fs::read_dir(path).unwrap();
                entries.for_each(|entry| walk(&entry.unwrap().path(), found));
            }
        } else if path.extension().is_some_and(|end| end == "rs") {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            found.push((name, fs::read_to_string(path).unwrap()));
        }
    }
    let mut found = Vec::new();
    walk(&root().join(path), &mut found);
    found.sort();
    assert!(!found.is_empty(), "no sources in {path}");
    found
}

/// The lines of code of a file, with their numbers. A file of tests has none, and other files end
/// where their unit tests begin.
fn code<'t>(name: &str, text: &'t str) -> Vec<(usize, &'t str)> {
    if name.ends_with("_tests.rs") {
        return Vec::new();
    }
    let mut code = Vec::new();
    let mut is_for_tests = false;
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim_start();
        if std::mem::take(&mut is_for_tests) {
            if line.starts_with("mod ") && line.ends_with('{') {
                break;
            }
            // For example, the declaration of a file of tests.
            continue;
        }
        is_for_tests = line.starts_with("#[cfg(test") || line.starts_with("#[cfg(all(test");
        if !is_for_tests && !trimmed.is_empty() && !trimmed.starts_with("//") {
            code.push((number, line));
        }
    }
    code
}

fn lines_in(paths: &[&str]) -> usize {
    let files = paths.iter().flat_map(|path| sources(path));
    files.map(|(name, text)| code(&name, &text).len()).sum()
}

/// Reports everything that is too long, not only the first.
#[track_caller]
fn none_of(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn the_crates_keep_to_their_budgets() {
    for (paths, written) in [
        (&CRATES[..2], TRAPS_AND_KERNEL),
        (&FIRST[..], FIRST_READING),
        (&readings()[..], READINGS),
        (&["net/src/http"], HTTP),
        (&["net/src/web"], WEB),
        (&["net/src"], HTTP + WEB + SOCKETS),
    ] {
        let (lines, name) = (lines_in(paths), paths.join(" "));
        println!("{name}: {lines} lines, {written} are written down");
        assert!(
            lines * 100 <= written * (100 + ROOM),
            "{name}: {lines} lines of code are more than {ROOM} percent above {written}"
        );
    }
}

/// The files of the three readings, in their order.
fn readings() -> Vec<&'static str> {
    [&FIRST[..], &SECOND, &THIRD].concat()
}

#[test]
fn the_cores_are_the_first_reading() {
    let cores = ["traps/src/core", "kernel/src/core"].into_iter().flat_map(sources);
    for (name, _) in cores.filter(|(name, _)| name != "traps/src/core/mod.rs") {
        assert!(FIRST.contains(&&*name), "{name} is in a core, and in no reading");
    }
    for (name, _) in sources("traps/src/interrupts") {
        assert!(SECOND.contains(&&*name), "{name} is about interrupts, and in no reading");
    }
}

#[test]
fn the_readme_lists_the_readings_in_their_order() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let place = |name: &&str| readme.find(&format!("({name})")).unwrap_or_else(|| panic!("{name}"));
    let places: Vec<usize> = readings().iter().map(place).collect();
    assert!(places.is_sorted(), "{places:?}");
}

/// A fall of either is no fault by itself: it asks whether a hard line has lost its reason.
#[test]
fn the_readings_explain_and_assert_at_the_line() {
    let (mut lines, mut comments, mut assertions) = (0, 0, 0);
    for name in readings() {
        let text = fs::read_to_string(root().join(name)).unwrap();
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
        let is_comment = |line: &&str| line.starts_with("    ") && line.trim().starts_with("// ");
        comments += text.lines().filter(is_comment).count();
        let is_assertion = |line: &&str| {
            let marks = ["assert!(", "assert_eq!(", "unreachable!(", ".expect("];
            !line.trim().starts_with("//") && marks.iter().any(|mark| line.contains(mark))
        };
        assertions += text.lines().filter(is_assertion).count();
        lines += code(name, text).len();
    }
    println!("{lines} lines, {comments} lines of comments, {assertions} assertions");
    assert!(comments * 100 >= lines * COMMENTS, "{comments} comments in {lines} lines");
    assert!(assertions * 1000 >= lines * ASSERTIONS, "{assertions} assertions in {lines} lines");
}

#[test]
fn there_are_few_files() {
    let files = CRATES[..2].iter().flat_map(|path| sources(path));
    let files = files.filter(|(name, _)| !name.ends_with("_tests.rs")).count();
    println!("{files} files");
    assert!(files <= FILES, "traps and kernel have {files} files, and {FILES} is the most");
}

#[test]
fn the_listing_of_a_folder_fits_a_screen() {
    let folder = |(name, _): &(String, String)| name.rsplit_once('/').unwrap().0.to_owned();
    let mut folders: Vec<_> =
        CRATES.iter().flat_map(|path| sources(path)).map(|file| folder(&file)).collect();
    folders.sort();
    for files in folders.chunk_by(|a, b| a == b) {
        assert!(files.len() <= ENTRIES, "{} has {} files", files[0], files.len());
    }
}

#[test]
fn files_are_short() {
    let mut wrong = Vec::new();
    for (name, text) in CRATES.iter().flat_map(|path| sources(path)) {
        let lines = code(&name, &text).len();
        if lines > FILE {
            wrong.push(format!("{name} has {lines} lines of code, and {FILE} is the most"));
        }
    }
    none_of(&wrong);
}

#[test]
fn functions_are_short() {
    let mut wrong = Vec::new();
    for (file, text) in CRATES.iter().flat_map(|path| sources(path)) {
        for (name, line, lines) in functions(&code(&file, &text)) {
            if lines > FUNCTION {
                wrong
                    .push(format!("{file}:{line}: {name} has {lines}, and {FUNCTION} is the most"));
            }
        }
    }
    none_of(&wrong);
}

/// The functions in lines of code: name, where it begins, and its length.
fn functions<'t>(code: &[(usize, &'t str)]) -> Vec<(&'t str, usize, usize)> {
    let mut found = Vec::new();
    for (start, (number, line)) in code.iter().enumerate() {
        let Some((before, after)) = line.split_once("fn ") else { continue };
        let is_word = |word: &str| {
            ["const", "async", "unsafe", "extern"].contains(&word) || word.starts_with("pub")
        };
        // Not `fn` in a type, in a macro or in a string.
        if !before.split_whitespace().all(is_word) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let rest = &code[start..];
        let ends = |(_, line): &(usize, &str)| line.ends_with([';', '{', '}']);
        let signature = rest.iter().position(ends).unwrap_or(0);
        let lines = if rest[signature].1.ends_with('{') {
            let close = format!("{}}}", " ".repeat(indent));
            let end = rest.iter().position(|(_, line)| *line == close);
            end.unwrap_or_else(|| panic!("line {number}: {line}: no end")) + 1
        } else {
            signature + 1
        };
        found.push((after.split(['(', '<']).next().unwrap(), *number, lines));
    }
    found
}

#[test]
fn tuning_by_hand_is_rare() {
    let files = CRATES[..2].iter().flat_map(|path| sources(path));
    let lines = files.flat_map(|(name, text)| {
        let code = code(&name, &text);
        code.into_iter().map(|(_, line)| line.to_owned()).collect::<Vec<_>>()
    });
    let tuned = lines.filter(|line| BY_HAND.iter().any(|word| line.contains(word))).count();
    println!("{tuned} of {TUNED_BY_HAND} uses of {BY_HAND:?}");
    assert!(tuned <= TUNED_BY_HAND, "{tuned} uses of {BY_HAND:?}");
}

#[test]
fn lines_are_narrow() {
    let mut wrong = Vec::new();
    for (name, text) in CRATES.iter().chain(&["examples", "tests"]).flat_map(|path| sources(path)) {
        for (number, line) in (1..).zip(text.lines()) {
            // A row of a table, or what check says of a wrong solution, is one line.
            let is_whole = ["//! |", "// says: "].iter().any(|s| line.trim_start().starts_with(s));
            if !is_whole && line.chars().count() > COLUMNS {
                wrong.push(format!("{name}:{number} is wider than {COLUMNS} columns"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn a_file_is_counted_as_it_is_read() {
    let text = "\
//! A file.

#[cfg(test)]
mod some_tests;

pub fn one() {
    // Why.
    two();
}

fn decl(
    a: u8,
) -> u8;
fn short() {}

#[cfg(test)]
mod tests {
    fn not_this() {
    }
}
";
    let lines = code("x.rs", text);
    assert_eq!(lines.len(), 7);
    assert_eq!(functions(&lines), [("one", 6, 3), ("decl", 11, 3), ("short", 14, 1)]);
    assert!(code("x_tests.rs", text).is_empty());
}
