//! Text and events, both ways: by the samples of the grammar, and by random events.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use traps::time::Time;

use super::any_event::{Parts, VERBS, parts, text};
use super::{Event, Span, TRAPS, check, header, line, mask_times, trace};

const GRAMMAR: &str = include_str!("grammar.md");

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_event_comes_back_from_its_text(verb in 0..VERBS, raw in parts()) {
        let text = raw.line(verb).to_string();
        prop_assert!(text.is_ascii() && !text.contains('\n'));
        prop_assert_eq!(text.trim_end(), &text);
        let parsed = line(&text).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
        let clean = Parts { raw: false, ..raw }.line(verb);
        prop_assert_eq!(&parsed, &clean, "{}", text);
        prop_assert_eq!(parsed.to_string(), text);
    }

    #[test]
    fn any_text_is_refused_or_printed_the_same(
        text in text(), verb in 0..VERBS, parts in parts(), at in 0..60usize,
    ) {
        let mut broken = parts.line(verb).to_string();
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

/// The words behind `=>` in the tables of `words.rs`, verbs first.
fn table() -> (Vec<&'static str>, Vec<&'static str>) {
    let source = include_str!("words.rs");
    let (verbs, rest) = source.split_once("pub fn ends_in_text").unwrap();
    let words = |text: &'static str| -> Vec<&'static str> {
        text.split("=> \"").skip(1).map(|word| word.split('"').next().unwrap()).collect()
    };
    (words(verbs), words(rest))
}

#[test]
fn every_word_has_its_entry_in_the_grammar() {
    let (verbs, words) = table();
    assert_eq!(verbs.len(), VERBS);
    for verb in verbs {
        assert!(GRAMMAR.contains(&format!("**`{verb}`**")), "no paragraph for the verb {verb}");
    }
    assert!(words.len() > 40);
    for word in words {
        let starts = ["`", "`!"].map(|mark| format!("{mark}{word}"));
        let found = starts.iter().any(|start| {
            GRAMMAR.contains(&format!("{start}`")) || GRAMMAR.contains(&format!("{start} "))
        });
        assert!(found, "no entry for {word}");
    }
}

#[test]
fn c1_the_list_of_traps_is_that_of_the_log() {
    let source = include_str!("words.rs");
    let (begins, ends) = (source.find("impl Op").unwrap(), source.find("impl WakeOp").unwrap());
    let words = source[begins..ends].split("=> \"").skip(1);
    let mut words: Vec<_> = words.map(|word| word.split('"').next().unwrap()).collect();
    // A task that is parked in these has made no trap.
    words.retain(|word| !["waker", "parked"].contains(word));
    let mut listed: Vec<_> = TRAPS.iter().map(|trap| trap.word).collect();
    words.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, words);
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
                seen.insert(op.word());
            }
        }
    }
    for word in ["waker", "parked"] {
        assert!(seen.remove(word));
    }
    let blocking: BTreeSet<_> =
        TRAPS.iter().filter(|trap| trap.blocks).map(|trap| trap.word).collect();
    assert_eq!(seen, blocking);
}

#[test]
fn every_rule_of_the_oracle_has_its_entry_in_the_grammar() {
    let files =
        [include_str!("check.rs"), include_str!("check/end.rs"), include_str!("check/job.rs")];
    let rules = files.iter().flat_map(|file| file.split("self.report(line, \"").skip(1));
    for rule in rules.map(|rest| rest.split('"').next().unwrap()) {
        assert!(GRAMMAR.contains(&format!("`{rule}`")), "no entry for the rule {rule}");
    }
}

#[test]
fn the_test_makes_every_verb() {
    let parts = Parts {
        raw: true,
        n: [1; 4],
        small: 1,
        texts: ["a".into(), "b".into()],
        some: [true; 4],
        times: [Time::ZERO; 2],
        spans: [Duration::ZERO; 3],
        letter: 'c',
        pick: [0; 5],
    };
    let made: Vec<_> = (0..VERBS).map(|verb| parts.event(verb).verb()).collect();
    assert_eq!(made, table().0);
}

/// Each detail, at the end of a line, is printed as it was read.
#[test]
fn details_come_back() {
    for detail in [
        "run      cause=#0004 k=3 = ok, k=4 = !refused by the peer waited=0.000012s",
        "run      cause=#0014 k=1 = !timeout scope=s3 set-at=examples/nested.rs:14",
        "trap     set_timeout none = s1 at=a.rs:1",
        "trap     wake q1 n=all = 2",
        "trap     clock = never",
        "trap     shield 0.5s = s1",
        "trap     held_interrupt = !timeout-cancellation scope=s1 set-at=a.rs:1",
        "trap     check_interrupt = !cancelled by=2 at=a.rs:1",
        "trap     cancel 3 reason=too_slow = ok",
        "block    sleep never until=never k=2 at=a.rs:1 ran=0.5s",
        "deliver  k=3 = !cancelled by=- reason=shutdown cause=#0008",
        "cancel   by=2 reason=why cause=#0008 = delivered",
        "longrun  ran=0.060000 from=spawn to=exit ran=0.06s",
        "longrun  ran=0.060000 from=io_c1_read@a.rs:1 to=sleep@b@c:d.rs:2",
        "late     s1 deadline=0.500000 over=0.1s",
        "race     winner=value loser=timeout s1",
        "panic    assertion `left == right` failed",
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
    assert_eq!(trace("#trace v2 clock=real seed=0").unwrap_err().0, 1);
}

#[test]
fn spans_are_short_exact_and_read_back() {
    for (micros, text) in [(0, "0s"), (1, "0.000001s"), (500_000, "0.5s"), (10_000_000, "10s")] {
        let span = Span(Duration::from_micros(micros));
        assert_eq!(span.to_string(), text);
        assert_eq!(text.parse(), Ok(span));
    }
    assert_eq!(Span(Duration::from_nanos(1)).to_string(), "0.000001s");
    for wrong in ["", "s", "1", "1.0s", "01s", ".5s", "1.s", "0.0000001s", "-1s"] {
        assert!(wrong.parse::<Span>().is_err(), "{wrong}");
    }
}

#[test]
fn times_are_masked_and_nothing_else() {
    let real = "#trace v1 clock=real seed=0\n# a remark at 0.5\n\
                12.000345       1  #0001   2 main     block    yield k=1 at=a.rs:1 ran=0.1s\n\
                12.000345       1  #0002   2 main     run      cause=#1 k=1 = 1.000345, k=2 = ok\n\
                12.000345       1  #0003   2 main     arm      s1 until=0.500000\n";
    let masked = "#trace v1 clock=* seed=0\n# a remark at 0.5\n        \
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
