//! The guide's excerpts equal the golden traces, and each follows its program.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use support::golden;

/// The pages, and the test file of the blocks that are not lines of a trace.
const PAGES: [&str; 2] = ["time", "outside"];
/// The pages that show the program of each trace.
const WITH_PROGRAMS: [&str; 6] = [
    "README.md",
    "kernel/src/guide/reading.md",
    "kernel/src/guide/time.md",
    "kernel/src/guide/outside.md",
    "kernel/src/guide/libraries.md",
    "kernel/src/guide/tls.md",
];
const SAID: &str = include_str!("../../kernel/tests/all/outside_world.rs");

fn path_of(page: &str) -> PathBuf {
    support::root().join(format!("kernel/src/guide/{page}.md"))
}

/// `BLESS=1` puts the lines of the golden traces that are most like the old ones into the pages:
/// read the difference.
#[test]
fn every_excerpt_of_the_guide_stands_in_its_golden_trace() {
    for name in PAGES {
        let page = fs::read_to_string(path_of(name)).unwrap();
        let blocks = page.matches("```text").count();
        let (compared, excerpts) = compare(&page);
        assert_eq!(blocks, excerpts + said(&page), "{name}: a block without its golden trace");
        if support::is_blessing() {
            fs::write(path_of(name), compared).unwrap();
        }
    }
}

/// `BLESS=1` puts the programs into the pages. A remark names the trace, the file and the text that
/// begins the program: that line is `test:1`. Without such a text it is the whole file.
#[test]
fn every_trace_of_the_guide_stands_behind_its_program() {
    for name in WITH_PROGRAMS {
        let path = support::root().join(name);
        let page = fs::read_to_string(&path).unwrap();
        let mut parts = page.split("<!-- source: ");
        let mut text = parts.next().unwrap().to_owned();
        let mut shown = BTreeSet::new();
        assert_eq!(without_program(&text, &shown), None, "{name}: a trace without its program");
        for part in parts {
            let (remark, rest) = part.split_once(" -->\n```rust,ignore\n").expect("a program");
            let (block, after) = rest.split_once("```").expect("a block ends");
            let program = program(remark);
            assert!(block == program || support::is_blessing(), "{name}: {remark}\n{program}");
            text += &format!("<!-- source: {remark} -->\n```rust,ignore\n{program}```{after}");
            shown.insert(remark.split(' ').next().unwrap());
            assert_eq!(without_program(after, &shown), None, "{name}: a trace without its program");
        }
        if support::is_blessing() {
            fs::write(path, text).unwrap();
        }
    }
}

/// The first trace in a part of a page whose program was not shown above it.
fn without_program<'a>(part: &'a str, shown: &BTreeSet<&str>) -> Option<&'a str> {
    let heads = ["<!-- golden: ", "<!-- trace: ", "<!-- said: "];
    let blocks = heads.into_iter().flat_map(|head| part.split(head).skip(1));
    // A message without a line of a test needs no program.
    let cites =
        |block: &&str| block.split("```").nth(1).is_some_and(|text| text.contains(" test:"));
    let traced = |block: &&str| block.split("```").nth(1).is_some_and(|text| text.contains("  #0"));
    let blocks = blocks.filter(|block| cites(block) || traced(block));
    blocks.filter_map(|block| block.split(" -->").next()).find(|name| !shown.contains(name))
}

/// Returns the program that a remark names, from the test with the trace's name if the file has
/// one. A line that opens a block extends to the line that closes it, any other line to the end of
/// its block.
fn program(remark: &str) -> String {
    let mut words = remark.splitn(3, ' ');
    let (name, file) = (words.next().unwrap(), words.next().expect("a name, then a file"));
    let source = fs::read_to_string(support::root().join(file)).unwrap();
    let Some(start) = words.next() else { return source };
    let lines: Vec<&str> = source.lines().collect();
    let test = format!("fn {name}()");
    let test = lines.iter().position(|line| line.contains(&test)).unwrap_or_default();
    let top = (test..lines.len()).find(|at| lines[*at].contains(start));
    let top = top.unwrap_or_else(|| panic!("{file} has no {start}"));
    if start.starts_with("check") {
        let main =
            golden(name).lines().any(|line| line.ends_with("main     spawn    parent=- at=test:1"));
        assert!(main, "{name}: the program does not begin where its lines are counted from");
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let margin = indent(lines[top]);
    let end =
        (top + 1..lines.len()).find(|at| !lines[*at].is_empty() && indent(lines[*at]) <= margin);
    let end = match lines[top].ends_with(['{', '(']) {
        true => end.expect("a block closes"),
        false => (top..).find(|at| indent(lines[at + 1]) < margin).unwrap(),
    };
    let lines = lines[top..=end].iter().map(|line| line.get(margin..).unwrap_or_default());
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    match file.starts_with("examples/") && !file.contains("/tests/") {
        true => format!("// {file}, from line {}\n{text}", top + 1),
        false => text,
    }
}

/// Compares the excerpts of a page. Returns the page as it should be, and the number of excerpts.
fn compare(page: &str) -> (String, usize) {
    let mut parts = page.split("<!-- golden: ");
    let mut text = parts.next().unwrap().to_owned();
    let mut excerpts = 0;
    for part in parts {
        let (name, rest) = part.split_once(" -->\n```text\n").expect("a name, then a block");
        let (block, after) = rest.split_once("```").expect("a block ends");
        let trace = golden(name);
        let lines: Vec<&str> = trace.lines().filter(|line| !line.starts_with("# ")).collect();
        let wanted: Vec<&str> = block.lines().collect();
        let alike = |found: &[&str]| found.iter().zip(&wanted).map(|(a, b)| score(a, b)).sum();
        let found = lines.windows(wanted.len()).max_by_key(|found| -> usize { alike(found) });
        let found = found.expect("a trace is longer than an excerpt");
        assert!(found == wanted || support::is_blessing(), "not in {name}.trace:\n{block}");
        let block: String = found.iter().map(|line| format!("{line}\n")).collect();
        text += &format!("<!-- golden: {name} -->\n```text\n{block}```{after}");
        excerpts += 1;
    }
    (text, excerpts)
}

/// A measure of how much two lines have in common: the same words in the same columns, above all
/// the verb.
fn score(a: &str, b: &str) -> usize {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (a, b) = (words(a), words(b));
    let same = a.iter().zip(&b).filter(|(a, b)| a == b).count();
    same + 10 * usize::from(a.get(4..6) == b.get(4..6))
}

/// Counts the blocks that a test compares with its output. Such a test names itself in the call.
fn said(page: &str) -> usize {
    let parts = page.split("<!-- said: ").skip(1);
    let looked = parts.map(|part| {
        let (name, _) = part.split_once(" -->\n```text\n").expect("a test, then a block");
        assert!(SAID.contains(&format!("said(\"{name}\",")), "no test compares {name}");
        assert!(SAID.contains(&format!("fn {name}()")), "{name} is no test");
    });
    looked.count()
}

/// The table in the page on time lists the way of a sleep: at most twelve files, and each has the
/// function that the table names.
#[test]
fn the_way_of_a_sleep_passes_through_twelve_files_that_exist() {
    let page = fs::read_to_string(path_of("time")).unwrap();
    let table = page.split("<!-- path of a sleep -->\n\n").nth(1).expect("it is there");
    let rows = table.lines().take_while(|line| line.starts_with('|')).skip(2);
    let mut files = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [_, _, file, function, ..] = cells[..] else { panic!("four cells: {row}") };
        let source = support::root().join(file);
        let source = fs::read_to_string(source).unwrap_or_else(|error| panic!("{file}: {error}"));
        let is_there = ["(", "<"].iter().any(|end| source.contains(&format!("fn {function}{end}")));
        assert!(is_there, "{file} has no function {function}");
        files.insert(file.to_owned());
    }
    assert!((8..=12).contains(&files.len()), "{files:?}");
}

#[test]
fn the_rule_of_interrupts_has_one_wording() {
    let quoted = |path: &str, mark: &str| -> String {
        let text = fs::read_to_string(support::root().join(path)).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix(mark));
        let lines = lines.skip_while(|line| !line.starts_with("A source is pending"));
        let rule: Vec<&str> = lines.take(8).collect();
        let words = rule.join(" ");
        let end = words.find("has taken and kept.").expect("it ends as it ends");
        words[..end].split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let rule = quoted("traps/src/interrupts/mod.rs", "//! > ");
    assert_eq!(quoted("kernel/src/guide/time.md", "> "), rule);
}

/// The tests of `net` compile the program of the page, and run its test.
#[test]
fn the_page_on_services_shows_its_program_in_parts() {
    let read = |path: &str| fs::read_to_string(support::root().join(path)).unwrap();
    let page = read("net/src/guide/services.md");
    let parts = page.split("<!-- program -->\n```rust,ignore\n").skip(1);
    let parts: Vec<&str> = parts.map(|part| part.split_once("```").unwrap().0).collect();
    assert_eq!(parts.join("\n"), read("net/tests/all/tasks_service.rs"));
}
