//! The goldens themselves, and the helper that keeps them.

use std::fs;
use std::path::Path;

use support::{bless, difference, golden, goldens, root};
use testing::trace;

const OLD: &str = "#trace v3 clock=virtual seed=0 tick=0.3s
# columns
 0.000000       0  #0001   1 wakeup   spawn    parent=-
# about main
 0.000000       0  #0002   2 main     spawn    parent=-
 0.000000       1  #0003   2 main     run      cause=#0002
# the end
";

#[test]
fn a_remark_makes_no_difference() {
    let bare: String =
        OLD.lines().filter(|line| !line.starts_with("# ")).collect::<Vec<_>>().join("\n");
    assert_eq!(difference(OLD, &bare), Ok(()));
}

#[test]
fn the_header_is_compared() {
    let other = OLD.replace("seed=0", "seed=1");
    assert!(difference(OLD, &other).unwrap_err().starts_with("line 1 differs"));
}

#[test]
fn the_first_different_line_of_both_is_shown() {
    let said = difference(OLD, &OLD.replace("run ", "exit")).unwrap_err();
    assert!(said.starts_with("line 4 differs\n"), "{said}");
    assert!(said.contains("main     run ") && said.contains("main     exit"), "{said}");
    let shorter = OLD.lines().take(5).collect::<Vec<_>>().join("\n");
    assert!(difference(OLD, &shorter).unwrap_err().contains("(no more lines)"));
}

#[test]
fn blessing_keeps_remarks_between_their_neighbours() {
    // One more line at the beginning, so that all numbers change, and another end.
    let new = "#trace v3 clock=virtual seed=0 tick=0.3s
# other columns
 0.000000       0  #0001   1 wakeup   spawn    parent=-
 0.000000       0  #0002   0 kernel   warn     new
 0.000000       0  #0003   2 main     spawn    parent=-
 0.000000       1  #0004   2 main     exit     ok cause=#0003
";
    let blessed = "#trace v3 clock=virtual seed=0 tick=0.3s
# columns
 0.000000       0  #0001   1 wakeup   spawn    parent=-
# about main
 0.000000       0  #0002   0 kernel   warn     new
 0.000000       0  #0003   2 main     spawn    parent=-
# the end
 0.000000       1  #0004   2 main     exit     ok cause=#0003
";
    assert_eq!(bless(OLD, new), blessed);
    assert_eq!(bless(OLD, OLD), OLD);
}

#[test]
fn every_golden_parses_and_obeys_the_oracle() {
    for name in goldens() {
        let text = golden(&name);
        let lines = trace::trace(&text).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(trace::check(&lines), Ok(()), "{name}");
    }
}

#[test]
fn every_golden_has_its_test() {
    let mut tests = String::new();
    for folder in ["tests", "traps/tests", "kernel/tests", "net/tests", "examples"] {
        read_sources(&root().join(folder), &mut tests);
    }
    for name in goldens() {
        assert!(tests.contains(&format!("\"{name}\"")), "{name}.trace has no test");
    }
}

/// Appends each source below a folder.
fn read_sources(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // Skip the output of builds and fuzzing.
            if !path.ends_with("target") {
                read_sources(&path, all);
            }
        } else if path.extension().is_some_and(|end| end == "rs") {
            *all += &fs::read_to_string(&path).unwrap();
        }
    }
}
