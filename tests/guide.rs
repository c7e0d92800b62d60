//! The guide's excerpts are what the golden traces say.

mod support;

use std::fs;
use std::path::Path;

use support::golden;

#[test]
fn every_excerpt_of_the_guide_stands_in_its_golden_trace() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernel/src/guide/time.md");
    let page = fs::read_to_string(page).unwrap();
    let mut excerpts = 0;
    for part in page.split("<!-- golden: ").skip(1) {
        let (name, rest) = part.split_once(" -->\n```text\n").expect("a name, then a block");
        let (block, _) = rest.split_once("```").expect("a block ends");
        let trace = golden(name);
        let lines: Vec<&str> = trace.lines().filter(|line| !line.starts_with("# ")).collect();
        let wanted: Vec<&str> = block.lines().collect();
        let found = lines.windows(wanted.len()).any(|lines| lines == wanted);
        assert!(found, "not in {name}.trace:\n{block}");
        excerpts += 1;
    }
    assert_eq!(page.matches("```text").count(), excerpts, "a block without its golden trace");
}
