//! Notes and spans of a program in its log.

use std::cell::Cell;
use std::time::Duration;

use kernel::{Kernel, Sim};
use traps::{join, note, race, sleep, span};

const MS: Duration = Duration::from_millis(1);

/// Returns the lines of a trace that have one of these verbs, each from its verb on.
fn lines<'t>(trace: &'t str, verbs: &[&str]) -> Vec<&'t str> {
    let events = trace.lines().filter_map(|line| line.get(38..));
    events.filter(|event| verbs.iter().any(|verb| event.starts_with(verb))).collect()
}

#[test]
fn a_span_is_around_what_its_future_does() {
    let ran = testing::run(span("check out", async {
        note(format_args!("loaded {} rows", 12));
        span("pay", sleep(MS)).await
    }));
    ran.output.unwrap();
    assert_eq!(
        lines(&ran.trace, &["enter", "leave", "note", "block    sleep", "exit"]),
        [
            "enter    check_out",
            "note     loaded 12 rows",
            "enter    pay",
            lines(&ran.trace, &["block    sleep"])[0],
            "leave    pay",
            "leave    check_out",
            lines(&ran.trace, &["exit"])[0],
        ]
    );
}

#[test]
fn a_span_that_is_dropped_is_left_after_its_last_lines() {
    let ran = testing::run(async {
        let loses = span("loser", sleep(2 * MS));
        race(sleep(MS), loses).await
    });
    let found = lines(&ran.trace, &["withdraw", "leave"]);
    assert!(found.len() == 2 && found[0].starts_with("withdraw"), "{found:?}");
}

#[test]
fn spans_of_two_branches_overlap() {
    let ran = testing::run(async {
        let (a, b) = (span("a", sleep(MS)), span("b", sleep(2 * MS)));
        join(a, b).await.0
    });
    let found = lines(&ran.trace, &["enter", "leave"]);
    assert_eq!(found, ["enter    a", "enter    b", "leave    a", "leave    b"]);
}

#[test]
fn a_note_is_not_formatted_without_an_observer() {
    struct Counts<'a>(&'a Cell<u32>);
    impl std::fmt::Display for Counts<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.set(self.0.get() + 1);
            f.write_str("x")
        }
    }
    let formatted = Cell::new(0);
    note(Counts(&formatted));
    Kernel::new(Sim::new()).run(async { note(Counts(&formatted)) }).unwrap();
    assert_eq!(formatted.get(), 0);
    testing::run(async { note(Counts(&formatted)) });
    assert_eq!(formatted.get(), 1);
}
