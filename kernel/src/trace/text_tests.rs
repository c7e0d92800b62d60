//! Text and events, both ways: by the samples of the grammar, and by random events.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::any_event_tests::{Any, any, source, text};
use super::form::{DIRECTION, KIND, Own};
use super::*;

const GRAMMAR: &str = include_str!("grammar.md");

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 5_000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_event_comes_back_from_its_text(source in source()) {
        let text = any::<Line<'_>>(&mut source.copy(true)).to_string();
        prop_assert!(text.is_ascii() && !text.contains('\n'));
        prop_assert_eq!(text.trim_end(), &text);
        let parsed = line(&text).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
        let clean = any::<Line<'_>>(&mut source.copy(false));
        prop_assert_eq!(&parsed, &clean, "{}", text);
        prop_assert_eq!(parsed.to_string(), text);
    }

    #[test]
    fn any_text_is_refused_or_printed_the_same(
        text in text(), mut source in source(), at in 0..60usize,
    ) {
        let mut broken = any::<Line<'_>>(&mut source).to_string();
        broken.insert_str(at.min(broken.len()), &text);
        for each in [broken, text] {
            if let Ok(line) = line(&each) {
                prop_assert_eq!(line.to_string(), each);
            }
        }
    }
}

#[test]
fn the_samples_of_the_grammar_parse_and_hold() {
    let sample = GRAMMAR.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let lines = trace(sample).unwrap();
    let printed: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(format!("{}\n{printed}", header("virtual", 0)), sample);
    assert_eq!(check(&lines), Ok(()));
    assert!(sample.lines().all(|line| line.len() <= 100));
}

/// The first words of all values of a type.
fn words<T>() -> &'static [&'static str]
where
    Own: Any<T>,
{
    <Own as Any<T>>::WORDS
}

#[test]
fn every_word_has_its_entry_in_the_grammar() {
    for verb in words::<Event<'_>>() {
        assert!(GRAMMAR.contains(&format!("**`{verb}`**")), "no paragraph for the verb {verb}");
    }
    let others = [
        words::<Op<'_>>(),
        words::<WakeOp>(),
        words::<Phase<'_>>(),
        words::<After>(),
        words::<Exit>(),
        words::<Effect>(),
        words::<Why>(),
        words::<Reg>(),
        words::<Need>(),
    ];
    let kinds = KIND.0.iter().map(|(_, word)| *word);
    let directions = DIRECTION.0.iter().map(|(_, word)| *word);
    for word in others.concat().into_iter().chain(kinds).chain(directions) {
        let starts = ["`", "`!"].map(|mark| format!("{mark}{word}"));
        let found = starts.iter().any(|start| {
            GRAMMAR.contains(&format!("{start}`")) || GRAMMAR.contains(&format!("{start} "))
        });
        assert!(found, "no entry for {word}");
    }
}

/// The words of the list of traps, and whether they block.
fn list() -> Vec<(String, bool)> {
    let rows = listed().into_iter().filter(|row| !row.starts_with('#'));
    rows.map(|row| {
        let mut columns = row.split_whitespace();
        let (word, does) = (columns.next().unwrap(), columns.next().unwrap());
        assert!(["answers", "blocks"].contains(&does), "{row}");
        (word.to_owned(), does == "blocks")
    })
    .collect()
}

#[test]
fn c1_the_list_of_traps_is_that_of_the_log() {
    // A task that is parked in these has made no trap.
    let is_trap = |word: &&&str| !["waker", "parked"].contains(*word);
    let traps: BTreeSet<_> =
        words::<Op<'_>>().iter().filter(is_trap).map(|word| word.to_string()).collect();
    let listed = list();
    assert_eq!(listed.len(), traps.len());
    assert_eq!(listed.into_iter().map(|(word, _)| word).collect::<BTreeSet<_>>(), traps);
}

#[test]
fn c1_who_is_parked_in_the_golden_traces_made_a_trap_that_blocks() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden");
    let mut seen = BTreeSet::new();
    for file in std::fs::read_dir(golden).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let text: String = text
            .lines()
            .filter(|line| !line.starts_with("# "))
            .fold(String::new(), |text, line| text + line + "\n");
        for line in trace(&text).unwrap() {
            if let Event::Block { op, .. } = line.event {
                seen.insert(op.word().to_owned());
            }
        }
    }
    for word in ["waker", "parked"] {
        assert!(seen.remove(word));
    }
    let blocking = list().into_iter().filter(|(_, blocks)| *blocks).map(|(word, _)| word);
    assert_eq!(seen, blocking.collect());
}

#[test]
fn every_rule_of_the_oracle_has_its_entry_in_the_grammar() {
    // The function at the end names verbs, not rules.
    let check = include_str!("check.rs").split("fn fits(").next().unwrap();
    let files = [check, include_str!("check/lives.rs"), include_str!("check/queue.rs")];
    let source = files.concat();
    let is_rule = |text: &&str| text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let rules = source.split('"').skip(1).step_by(2).filter(is_rule).collect::<BTreeSet<_>>();
    let rules: Vec<_> = rules.into_iter().filter(|rule| *rule != "wakeup").collect();
    assert_eq!(rules.len(), 17, "{rules:?}");
    for rule in rules {
        assert!(GRAMMAR.contains(&format!("`{rule}`")), "no entry for the rule {rule}");
    }
}

/// Each detail, at the end of a line, is printed as it was read.
#[test]
fn details_come_back() {
    for detail in [
        "run      cause=#0004 k=3 = ok, k=4 = !refused by the peer waited=12us",
        "run      cause=#0014 k=1 = !timeout scope=s3 set-at=examples/nested.rs:14",
        "trap     set_timeout none = s1 at=a.rs:1",
        "trap     wake q1 n=all = 2",
        "trap     clock = never",
        "trap     shield = s1",
        "trap     unshield s1 = ok",
        "tick     fired=1 armed=3",
        "phase    close reason=SIGTERM tasks=3",
        "trap     held_interrupt = !timeout-cancellation scope=s1 set-at=a.rs:1",
        "trap     check_interrupt = !cancelled by=2 at=a.rs:1",
        "trap     cancel 3 reason=too_slow = ok",
        "block    sleep never until=never k=2 at=a.rs:1 ran=0.5s",
        "deliver  k=3 = !cancelled by=- reason=shutdown cause=#0008",
        "cancel   by=2 reason=why cause=#0008 = delivered",
        "longrun  ran=0.060000 from=spawn to=exit ran=60ms",
        "longrun  ran=0.060000 from=io_c1_read@a.rs:1 to=sleep@b@c:d.rs:2",
        "late     s1 deadline=0.500000 over=0.1s",
        "race     winner=value loser=timeout s1",
        "panic    assertion `left == right` failed",
        "run      cause=#0012 parked=4ms k=9 = ok",
        "arrive   c1 read",
        "arrive   SIGTERM",
        "io       c1 read = 64",
        "accept   l1 = c1 peer=127.0.0.1:4321",
        "block    io c1 read k=10 reg=kept at=a.rs:1",
        "register c1 why=again",
        "unregister c1 why=suspend",
        "fire     grace deadline=5.000000 cause=#10000 late=0s",
        "cleanup  root = !timeout-cancellation scope=s2",
    ] {
        let text = format!("12345.000000 12345678  #10001 1000 a-long-name {detail}");
        assert_eq!(line(&text).map(|line| line.to_string()), Ok(text));
    }
}

#[test]
fn what_is_wrong_is_named_with_its_column() {
    let error = |text: &str| line(text).unwrap_err().to_string();
    let start = " 0.000000       0  #0001   1 wakeup  ";
    assert_eq!(
        error("x"),
        "column 1: expected the kernel time, seconds with six decimals, found `x`"
    );
    assert_eq!(
        error(&format!("{start} wait     q1")),
        "column 39: expected a verb from the list, found `wait`"
    );
    assert_eq!(
        error(&format!("{start} trap     nap = ok")),
        "column 48: expected a trap from the list, found `nap`"
    );
    assert_eq!(
        error(&format!("{start} join")),
        "column 43: expected a task, a number, found the end of the line"
    );
    let spacing = "expected the spacing and digits of the printed form";
    assert_eq!(error(&format!("{start} join 3")), format!("column 44: {spacing}, found `3`"));
    assert_eq!(
        error(&format!("{start} join     3 4")),
        "column 50: expected the end of the line, found `4`"
    );
}

#[test]
fn a_trace_skips_remarks_and_counts_lines() {
    let text = "# a remark\n\n 0.000000       0  #0001   1 wakeup   join     3\nwrong\n";
    assert_eq!(trace(text).unwrap_err().0, 4);
    assert_eq!(trace(text.trim_end_matches("wrong\n")).unwrap().len(), 1);
    assert_eq!(trace("#trace v1 clock=real seed=0").unwrap_err().0, 1);
}

#[test]
fn spans_are_short_exact_and_read_back() {
    for (micros, text) in [
        (0, "0s"),
        (1, "1us"),
        (4_000, "4ms"),
        (12_500, "12.5ms"),
        (99_999, "99.999ms"),
        (100_000, "0.1s"),
        (500_000, "0.5s"),
        (10_000_000, "10s"),
    ] {
        let span = Span(Duration::from_micros(micros));
        assert_eq!(span.to_string(), text);
        assert_eq!(text.parse(), Ok(span));
    }
    assert_eq!(Span(Duration::from_nanos(1)).to_string(), "1us");
    for wrong in [
        "",
        "s",
        "1",
        "1.0s",
        "01s",
        ".5s",
        "1.s",
        "0.0000001s",
        "-1s",
        "0.05s",
        "100ms",
        "0us",
        "1.5us",
    ] {
        assert!(wrong.parse::<Span>().is_err(), "{wrong}");
    }
}

#[test]
fn times_are_masked_and_nothing_else() {
    let real = "#trace v2 clock=real seed=0\n# a remark at 0.5\n\
                12.000345       1  #0001   2 main     block    yield k=1 at=a.rs:1 ran=0.1s\n\
                12.000345       1  #0002   2 main     run      cause=#1 k=1 = 1.000345, k=2 = ok\n\
                12.000345       1  #0003   2 main     arm      s1 until=0.500000\n";
    let masked = "#trace v2 clock=* seed=0\n# a remark at 0.5\n        \
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
