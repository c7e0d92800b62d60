//! The guide's excerpts are what the golden traces say.

mod support;

use std::fs;
use std::path::Path;

use support::golden;

/// The pages, and the test file of those blocks that are no lines of a trace.
const PAGES: [&str; 2] = ["time", "outside"];
const SAID: &str = include_str!("outside_world.rs");

#[test]
fn every_excerpt_of_the_guide_stands_in_its_golden_trace() {
    for name in PAGES {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernel/src/guide");
        let page = fs::read_to_string(page.join(format!("{name}.md"))).unwrap();
        let excerpts = excerpts(&page) + said(&page);
        let blocks = page.matches("```text").count();
        assert_eq!(blocks, excerpts, "{name}: a block without its golden trace");
    }
}

/// Looks at the excerpts of a page, and counts them.
fn excerpts(page: &str) -> usize {
    let parts = page.split("<!-- golden: ").skip(1);
    let looked = parts.map(|part| {
        let (name, rest) = part.split_once(" -->\n```text\n").expect("a name, then a block");
        let (block, _) = rest.split_once("```").expect("a block ends");
        let trace = golden(name);
        let lines: Vec<&str> = trace.lines().filter(|line| !line.starts_with("# ")).collect();
        let wanted: Vec<&str> = block.lines().collect();
        let found = lines.windows(wanted.len()).any(|lines| lines == wanted);
        assert!(found, "not in {name}.trace:\n{block}");
    });
    looked.count()
}

/// Counts the blocks that a test compares with what it has printed: it names itself in doing so.
fn said(page: &str) -> usize {
    let parts = page.split("<!-- said: ").skip(1);
    let looked = parts.map(|part| {
        let (name, _) = part.split_once(" -->\n```text\n").expect("a test, then a block");
        assert!(SAID.contains(&format!("said(\"{name}\",")), "no test compares {name}");
        assert!(SAID.contains(&format!("fn {name}()")), "{name} is no test");
    });
    looked.count()
}
