//! Lines that the kernel prints are read, and errors of other lines are reported.

use std::collections::BTreeSet;
use std::time::Duration;

use kernel::trace::{self as printed, Effect, Event, LoggedSite, Op, Outcome, Span};
use proptest::prelude::*;
use traps::Time;

use super::*;

const GRAMMAR: &str = include_str!("../../../../kernel/src/log/grammar.md");

fn text() -> impl Strategy<Value = String> {
    let known = ["at=x:1", "cause=#0001", "k=3 = ok, k=4", "= !timeout scope=s1", "never", ""];
    prop_oneof![
        any::<String>(),
        "[ =,!#@ak\\n\\t1]{0,9}",
        prop::sample::select(known.to_vec()).prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn what_the_kernel_prints_is_read_whatever_names_and_texts_there_are(
        name in text(), other in text(), numbers in any::<[u64; 4]>(),
    ) {
        let [turn, seq, task, cause] = numbers;
        let at = Time::from_micros(cause);
        let site = LoggedSite { file: other.clone().leak(), line: 7 };
        let cancel = Event::Cancel {
            by: None, reason: other.as_str().into(), cause, effect: Effect::Again,
        };
        let trap = Event::Trap {
            op: Op::Outside { what: other.as_str().into(), external: false },
            scope: Some(task),
            outcome: Outcome::Error(other.as_str().into()),
            cause: Some(cause),
            at: Some(site),
        };
        let panic = Event::Panic { text: other.as_str().into() };
        for (event, cause) in [(cancel, Some(cause)), (trap, Some(cause)), (panic, None)] {
            let verb = event.verb();
            let name = name.as_str().into();
            let text = printed::Line { at, turn, seq, task, name, event, timed: None }.to_string();
            let fails = |error| TestCaseError::fail(format!("{error}: {text}"));
            let line = line(&text).map_err(fails)?;
            prop_assert_eq!((line.at, line.turn, line.seq, line.task), (at, turn, seq, task));
            prop_assert_eq!((line.verb, line.cause), (verb, cause), "{}", text);
            prop_assert_eq!(line.to_string(), text.as_str());
            prop_assert!(verb != "trap" || line.key("at").is_some_and(|at| at.ends_with(":7")));
            prop_assert!(verb != "trap" || line.outcome().is_some_and(|it| it.starts_with('!')));
        }
    }

    #[test]
    fn any_text_is_read_or_refused_in_its_place(text in text()) {
        for text in [format!(" 0.000000       0  #0001   1 wakeup   join{text}"), text] {
            match line(&text) {
                Ok(line) => prop_assert_eq!(line.to_string(), text),
                Err(error) => prop_assert!(error.column <= text.len() + 1, "{}", error),
            }
        }
    }
}

#[test]
fn the_samples_of_the_grammar_are_read_and_hold() {
    let sample = GRAMMAR.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let lines = trace(sample).unwrap();
    let read: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(
        format!("{}\n{read}", printed::header("virtual", 0, Duration::from_millis(300))),
        sample
    );
    assert_eq!(check(&lines), Ok(()));
    assert!(sample.lines().all(|line| line.len() <= 100));
}

#[test]
fn every_rule_of_the_oracle_has_its_entry_in_the_grammar() {
    let rows = GRAMMAR.split("## Causes and rules").nth(1).unwrap();
    let rows = rows.split("## Who gets it").next().unwrap().lines();
    let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split('|').next());
    let rules: BTreeSet<_> =
        cells.flat_map(|cell| cell.split('`')).filter(|rule| !rule.trim().is_empty()).collect();
    assert_eq!(rules.len(), 20, "{rules:?}");
    let tests = include_str!("check_tests.rs");
    for rule in &rules {
        assert!(tests.contains(&format!(" {rule}\"")), "no test breaks the rule {rule}");
    }
    let source = [
        include_str!("check.rs"),
        include_str!("lives.rs"),
        include_str!("primitives.rs"),
        include_str!("queue.rs"),
    ]
    .concat();
    let reported = source.split("report(").skip(1).filter_map(|rest| {
        rest.trim_start_matches(['\n', ' ']).strip_prefix('"')?.split('"').next()
    });
    for rule in reported {
        assert!(rules.contains(rule), "no entry for the rule {rule}");
    }
}

const START: &str = "12345.000000 12345678  #10001 1000 a-long-name ";

#[test]
fn a_detail_has_words_keys_and_an_outcome() {
    let text = format!("{START}run      cause=#0014 k=3 = !timeout scope=s3, k=4 = ok waited=12us");
    let run = line(&text).unwrap();
    assert_eq!((run.task, run.name(), run.verb, run.cause), (1000, "a-long-name", "run", Some(14)));
    assert_eq!(run.event(), &text[START.len()..]);
    assert_eq!(
        (run.number("k"), run.key("scope"), run.key("waited")),
        (Some(3), Some("s3"), Some("12us"))
    );
    assert_eq!((run.outcome(), run.key("at")), (Some("!timeout scope=s3"), None));
    let text = format!("{START}trap     sleep 1s until=2.000000 = ok at=a.rs:1");
    let trap = line(&text).unwrap();
    assert_eq!((trap.word(0), trap.word(1), trap.word(9)), ("sleep", "1s", ""));
    assert_eq!((trap.outcome(), trap.key("at")), (Some("ok"), Some("a.rs:1")));
    assert_eq!(trap.clone().into_owned(), trap);
    let text = format!("{START}panic    left = right cause=#0001");
    let panic = line(&text).unwrap();
    assert_eq!((panic.cause, panic.key("cause"), panic.outcome()), (None, None, None));
}

#[test]
fn what_is_wrong_is_named_with_its_column() {
    let error = |text: &str| line(text).unwrap_err().to_string();
    let start = " 0.000000       0  #0001   1 wakeup  ";
    assert_eq!(
        error("x"),
        "column 1: expected the kernel time, seconds with six decimals, found `x`"
    );
    assert_eq!(error(" 0.000000 x"), "column 11: expected the turn, a number, found `x`");
    assert_eq!(
        error(" 0.000000 0 0042"),
        "column 13: expected the number of an event, such as #0042, found `0042`"
    );
    assert_eq!(
        error(&format!("{start} wait     q1")),
        "column 39: expected a verb from the list, found `wait`"
    );
    assert_eq!(
        error(&format!("{start} join")),
        "column 43: expected what the verb is about, found the end of the line"
    );
}

#[test]
fn a_trace_skips_remarks_and_counts_lines() {
    let text = "# a remark\n\n 0.000000       0  #0001   1 wakeup   join     3\nwrong\n";
    assert_eq!(trace(text).unwrap_err().line, 4);
    assert_eq!(trace(text.trim_end_matches("wrong\n")).unwrap().len(), 1);
    assert_eq!(trace("#trace v1 clock=real seed=0").unwrap_err().line, 1);
}

#[test]
fn spans_are_read_as_they_are_printed() {
    for micros in [0, 1, 999, 4_000, 12_500, 99_999, 100_000, 500_000, 10_000_000] {
        let time = Duration::from_micros(micros);
        assert_eq!(span(&Span(time).to_string()), Some(time));
    }
    assert_eq!(span("never"), Some(Time::NEVER.since(Time::ZERO)));
    for wrong in ["", "s", "1", ".5s", "0.0000001s", "-1s", "1.5us", "1.000000"] {
        assert_eq!(span(wrong), None, "{wrong}");
    }
}

#[test]
fn times_are_masked_and_nothing_else() {
    let real = "#trace v3 clock=real seed=0 tick=0.3s\n# a remark at 0.5\n\
                12.000345       1  #0001   2 main     block    yield k=1 at=a.rs:1 ran=0.1s\n\
                12.000345       1  #0002   2 main     run      cause=#1 k=1 = 1.000345, k=2 = ok\n\
                12.000345       1  #0003   2 main     arm      s1 until=0.500000\n";
    let masked = "#trace v3 clock=* seed=0 tick=0.3s\n# a remark at 0.5\n        \
                *       1  #0001   2 main     block    yield k=1 at=a.rs:1 ran=*\n        \
                *       1  #0002   2 main     run      cause=#1 k=1 = *, k=2 = ok\n        \
                *       1  #0003   2 main     arm      s1 until=*\n";
    assert_eq!(mask_times(real), masked);
    assert_eq!(mask_times(masked), masked);
    assert_eq!(
        mask_times("late     s1 deadline=0.500000 over=0.1s"),
        "late     s1 deadline=* over=*"
    );
    assert_eq!(mask_times("block    sleep 1s until=1.000345"), "block    sleep 1s until=*");
}
