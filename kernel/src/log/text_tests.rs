//! Tests of the text of events, and of the grammar's entries for every word in it.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use traps::Kind;
use traps::internal::table::Direction;
use traps::time::Time;

use super::form::{DIRECTION, KIND, phrase, sentence, signal, stop, word};
use crate::trace::*;

const GRAMMAR: &str = include_str!("grammar.md");

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 5_000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn free_text_looks_like_nothing_else(text in any::<String>(), odd in "[ =,!#@a\\n\\t]{0,9}") {
        for text in [text, odd] {
            for one in [word(&text), stop(&text), signal(&text)] {
                prop_assert!(one.chars().all(|c| c.is_ascii_graphic() && c != '=' && c != ','));
                prop_assert!(!one.is_empty());
            }
            for long in [sentence(&text), phrase(&text)] {
                prop_assert!(long.chars().all(|c| c.is_ascii_graphic() || c == ' '));
                prop_assert!(!long.is_empty() && long.trim() == long && !long.contains("  "));
            }
            prop_assert!(!stop(&text).contains('@') && signal(&text).starts_with("SIG"));
            prop_assert!(!phrase(&text).contains(['=', ',']));
        }
    }
}

#[test]
fn an_error_never_looks_like_an_interrupt() {
    assert_eq!(phrase("timeout of the peer"), "timeout_ of the peer");
    assert_eq!(phrase("the timeout"), "the timeout");
}

#[test]
fn every_word_has_its_entry_in_the_grammar() {
    for verb in Event::WORDS {
        assert!(GRAMMAR.contains(&format!("**`{verb}`**")), "no paragraph for the verb {verb}");
    }
    let others = [
        Op::WORDS,
        Phase::WORDS,
        After::WORDS,
        Exit::WORDS,
        Effect::WORDS,
        Why::WORDS,
        Reg::WORDS,
        Need::WORDS,
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

/// Returns the word of each listed trap, and whether the trap blocks.
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
    let is_trap = |word: &&&str| !["", "waker", "parked", "closed", "scope"].contains(*word);
    let traps: BTreeSet<_> = Op::WORDS.iter().filter(is_trap).map(|it| it.to_string()).collect();
    let listed = list();
    assert_eq!(listed.len(), traps.len());
    assert_eq!(listed.into_iter().map(|(word, _)| word).collect::<BTreeSet<_>>(), traps);
}

#[test]
fn c1_who_is_parked_in_the_golden_traces_made_a_trap_that_blocks() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden");
    let mut seen = BTreeSet::new();
    for file in std::fs::read_dir(golden).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words[5] == "block" {
                seen.insert(words[6].to_owned());
            }
        }
    }
    for word in ["waker", "parked"] {
        assert!(seen.remove(word));
    }
    // The first word of a primitive is its kind, which the grammar lists.
    let (_, kinds) = GRAMMAR.split_once("The first word of a primitive is its kind:").unwrap();
    let (kinds, _) = kinds.split_once("or what a program").unwrap();
    seen.retain(|word| !kinds.contains(&format!("`{word}`")));
    let blocking = list().into_iter().filter(|(_, blocks)| *blocks).map(|(word, _)| word);
    assert_eq!(seen, blocking.collect());
}

/// Returns the text of an event, from a line whose columns are too narrow.
fn shown(event: Event<'_>) -> String {
    let name = "a long name".into();
    let at = Time::from_micros(12_345_000_000);
    let line = Line { at, turn: 12_345_678, seq: 10_001, task: 1_000, name, event, timed: None };
    let text = line.to_string();
    let detail = text.strip_prefix("12345.000000 12345678  #10001 1000 a_long_name ");
    detail.expect("the columns push each other to the right").to_owned()
}

fn timed_out() -> Outcome<'static> {
    let set_at = Some(LoggedSite { file: "a.rs", line: 14 });
    let kind = Kind::TaskTimeout;
    Outcome::Interrupt { kind, scope: 3, set_at, by: None, reason: "".into() }
}

fn cancelled(by: Option<u64>, reason: &'static str) -> Outcome<'static> {
    let (kind, reason) = (Kind::Cancelled, reason.into());
    Outcome::Interrupt { kind, scope: 0, set_at: None, by, reason }
}

#[test]
fn traps_and_answers_have_the_text_of_the_grammar() {
    let at = || LoggedSite { file: "a.rs", line: 1 };
    let trap = |op, outcome, at| shown(Event::Trap { op, scope: None, outcome, cause: None, at });
    let no_limit = Op::SetTimeout { span: None, until: None };
    assert_eq!(
        trap(no_limit, Outcome::Scope(1), Some(at())),
        "trap     set_timeout none = s1 at=a.rs:1"
    );
    assert_eq!(trap(Op::Clock, Outcome::Time(Time::NEVER), None), "trap     clock = never");
    assert_eq!(
        trap(Op::CheckCancellation, cancelled(Some(2), ""), Some(at())),
        "trap     check_cancellation = !cancelled by=2 at=a.rs:1"
    );
    let answered = vec![
        Answered { ticket: 3, outcome: Outcome::Error("refused by the peer".into()) },
        Answered { ticket: 4, outcome: timed_out() },
    ];
    let parked = Some(Duration::from_millis(4));
    assert_eq!(
        shown(Event::Run { cause: 4, messages: 0, parked, answered: answered.into() }),
        "run      cause=#0004 parked=4ms k=3 = !refused by the peer, k=4 = !timeout scope=s3 \
         set-at=a.rs:14"
    );
    let op = Op::Sleep { span: Duration::MAX, until: Time::NEVER };
    assert_eq!(
        shown(Event::Block {
            op,
            wait: Some(LoggedWait { ticket: 2, reg: None, scope: Some(0), at: at() })
        }),
        "block    sleep never until=never k=2 in=root at=a.rs:1"
    );
    let alias = Alias { kind: 'c', number: 1 };
    let op = Op::Io { alias, direction: Direction::Read };
    assert_eq!(
        shown(Event::Await {
            op,
            wait: LoggedWait { ticket: 10, reg: Some(Reg::Kept), scope: None, at: at() }
        }),
        "await    io c1 read k=10 reg=kept at=a.rs:1"
    );
}

#[test]
fn other_events_have_the_text_of_the_grammar() {
    let outcome = cancelled(None, "shutdown");
    for (event, text) in [
        (
            Event::Deliver { ticket: 3, outcome, cause: 8 },
            "deliver  k=3 = !cancelled by=- reason=shutdown cause=#0008",
        ),
        (
            Event::Cleanup { scope: 0, place: None, outcome: timed_out() },
            "cleanup  root = !timeout scope=s3 set-at=a.rs:14",
        ),
        (
            Event::Cleanup { scope: 3, place: Some(4), outcome: timed_out() },
            "cleanup  s3 in=s4 = !timeout scope=s3 set-at=a.rs:14",
        ),
        (Event::Move { what: Moved::Wait(7), scope: 0 }, "move     k=7 in=root"),
        (Event::Take { kind: "mutex".into(), name: "a b".into(), at: None }, "take     mutex a_b"),
        (
            Event::Give { kind: "mutex".into(), name: "m".into(), from: Some(3) },
            "give     mutex m from=3",
        ),
        (
            Event::OffloadStarts { job: 2, running: 1, queued: 0, cause: 9 },
            "offload  o2 starts running=1 queued=0 cause=#0009",
        ),
        (
            Event::Race { winner: "value".into(), loser: "timeout".into(), scope: 0 },
            "race     winner=value loser=timeout",
        ),
        (Event::Panic { text: " left ==\nright ".into() }, "panic    left == right"),
        (Event::Arrive(Arrival::Signal { name: "INT".into() }), "arrive   SIGINT"),
        (
            Event::Halt { tasks: 0, tickets: 0, timers: 0, handles: 0, threads: 0 },
            "halt     tasks=0 tickets=0 timers=0 handles=0",
        ),
    ] {
        assert_eq!(shown(event), text);
    }
}

#[test]
fn what_was_measured_comes_last_and_never_behind_text() {
    let timed = Some(Timed { late: Some(Duration::ZERO), ..Timed::default() });
    let (at, name) = (Time::ZERO, "kernel");
    let line = |event| Line { at, turn: 1, seq: 2, task: 0, name: name.into(), event, timed };
    let fire = Event::Fire { timer: Timer::Grace, deadline: Time::from_micros(5), cause: 1 };
    assert!(line(fire).to_string().ends_with("grace deadline=0.000005 cause=#0001 late=0s"));
    assert!(line(Event::Warn { text: "of it".into() }).to_string().ends_with("warn     of it"));
}

#[test]
fn spans_are_short_and_exact() {
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
    }
    assert_eq!(Span(Duration::from_nanos(1)).to_string(), "1us");
    assert_eq!(Span(Duration::MAX).to_string(), "never");
}
