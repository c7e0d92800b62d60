//! What happens while a program runs: mistakes that only a run shows, the end of a program without
//! an end, and the lines of notes.

use std::collections::BTreeMap;

use trapline_play::Problem;
use trapline_play::program::read;
use trapline_play::run::{Ran, run};

use super::{has, notes, of_verb, ran};

fn problem(line: usize, text: &str) -> Problem {
    Problem { line, text: text.to_owned() }
}

#[test]
fn a_statement_that_cannot_be_done_ends_its_task_and_no_other() {
    let text = "\
task ann:
  try:
    if 0 = 1: lock fork
    unlock fork
  finally:
    note clean
  note never
task ben:
  join kid
  spawn kid: yield
task carl:
  sleep x
task dora:
  x = 1
  while x < y: yield
task eve:
  sleep 5
  y = 2
  note the end
";
    let ran = ran(text);
    let expected = [
        problem(4, "ann does not hold fork"),
        problem(9, "there is no task kid yet"),
        problem(12, "carl has no x yet"),
        problem(15, "dora has no y yet"),
    ];
    assert_eq!(ran.problems, expected);
    let said = [
        "0 ann: line 4: ann does not hold fork",
        "0 ann: clean",
        "0 ben: line 9: there is no task kid yet",
        "0 carl: line 12: carl has no x yet",
        "0 dora: line 15: dora has no y yet",
        "5 eve: the end",
    ];
    assert_eq!(notes(&ran), said);
    assert_eq!(ran.report, None);
}

#[test]
fn a_program_without_an_end_ends_after_10_000_statements_with_its_line() {
    let said = "the program has run 10000 statements, and no more are run";
    for (text, line) in [
        ("task ann:\n  repeat:\n    yield\n", 3),
        ("task ann:\n  repeat:\n    x = 1\n", 3),
        ("task ann:\n  while 0 = 0: sleep 1\ntask ben:\n  sleep 999999999\n", 2),
        ("task ann:\n  try:\n    repeat: spin 1\n  finally:\n    note never\n", 3),
        ("task ann:\n  repeat:\n    within 1:\n      shield:\n        sleep 2\n", 4),
        ("task ann:\n  repeat:\n    spawn kid: sleep 1\n", 3),
    ] {
        // Its log is too long for a quick check.
        let ran = run(read(text).unwrap());
        assert_eq!(ran.problems, [problem(line, said)], "{text}");
        assert_eq!(ran.report, None);
    }
}

#[test]
fn the_lines_of_notes_and_wakes_are_known() {
    let text = "\
task ann:
  wait bell
  note ann
  recv tea
task ben:
  wake bell
  note ben; and {x}
  send tea 1
  unlock fork
  x = 1
task carl: lock fork; note carl
";
    let ran = ran(text);
    let line = |text: &str| -> usize {
        let found = ran.log.lines().find(|line| line.contains(text)).unwrap();
        let number = found.split_whitespace().nth(2).unwrap();
        ran.lines[&number[1..].parse().unwrap()]
    };
    assert_eq!(line(" notify "), 6);
    assert_eq!(line("note     line 7: ben has no x yet"), 7);
    assert_eq!(line("note     carl"), 11);
    assert_eq!(line("note     ann"), 3);
    let count = of_verb(&ran, "note").count() + of_verb(&ran, "notify").count();
    assert_eq!(ran.lines.len(), count);
}

#[test]
fn the_log_names_the_line_of_each_statement() {
    let text = "\
task ann:
  sleep 1
  yield
  lock fork
  within 9:
    shield:
      spawn kid: sleep 7

      join kid
  recv tea
task ben: sleep 9; cancel ann
";
    let ran = ran(text);
    let ends = [
        ("sleep 1ms", 2),
        ("yield", 3),
        ("take mutex fork", 4),
        ("set_timeout", 5),
        ("shield =", 6),
        ("spawn parent=3", 7),
    ];
    let log: Vec<_> = ran.log.lines().map(squeezed).collect();
    for (words, line) in ends {
        let found = log
            .iter()
            .find(|each| each.contains(words))
            .unwrap_or_else(|| panic!("{words}\n{log:#?}"));
        assert!(found.ends_with(&format!("at=program:{line}")), "{found}");
    }
    assert!(!ran.log.contains("examples/play"), "{}", ran.log);
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_end_of_a_block_unlocks_what_the_block_has_locked() {
    let text = "\
task ann:
  lock outer
  if 0 = 0:
    unlock outer
    lock inner
    lock second
  note after the block
  lock outer
";
    let ran = ran(text);
    let gives: Vec<_> = of_verb(&ran, "give").map(|(_, _, detail)| detail).collect();
    assert_eq!(gives, ["mutex outer", "mutex second", "mutex inner", "mutex outer"]);
    let place = |word| ran.log.find(word).expect(word);
    assert!(place("give     mutex inner") < place("after the block"), "{}", ran.log);
}

#[test]
fn a_spawned_task_begins_with_a_copy_of_the_variables() {
    let text = "\
shared all = 1
task ann:
  own = 1
  spawn kid:
    own = own + 1
    all = all + 1
    note kid {own} {all}
  join kid
  note ann {own} {all}
";
    assert_eq!(notes(&ran(text)), ["0 kid: kid 2 2", "0 ann: ann 1 2"]);
}

#[test]
fn values_are_computed_from_the_left_and_have_an_end() {
    let text = "\
task ann:
  a = 2 + 3 * 4 - 1
  b = -a
  big = 999999999 * 999999999 * 999999999
  sleep b
  sleep big
  spin big
  note {a} {b} {big}
";
    let ran = ran(text);
    assert_eq!(notes(&ran), [format!("1999999998 ann: 19 -19 {}", i64::MAX)]);
}

#[test]
fn late_makes_each_timer_late() {
    let at = |text: &str| of_verb(&ran(text), "note").next().unwrap().0;
    assert_eq!(at("task ann: sleep 5; note up\n"), 5);
    assert_eq!(at("late 3\ntask ann: sleep 5; note up\n"), 8);
    assert!(ran("late 999999999\ntask ann: sleep 5\n").report.is_none());
}

/// The first notes of three tasks, under each of many seeds.
#[test]
fn a_seed_draws_an_order_and_is_in_the_log() {
    let text = "task ann: note a\ntask ben: note b\ntask carl: note c\n";
    let order = |ran: &Ran| of_verb(ran, "note").map(|(_, _, text)| text).collect::<String>();
    assert_eq!(order(&ran(text)), "abc");
    let mut orders = BTreeMap::new();
    for seed in 1..=60 {
        let ran = ran(&format!("seed {seed}\n{text}"));
        *orders.entry(order(&ran)).or_insert(0) += 1;
        let remark = format!("# explored seed={seed} liberties=order");
        assert_eq!(ran.log.lines().nth(1), Some(remark.as_str()));
        assert!(has(&ran, &["#trace", &format!("seed={seed}")]));
    }
    assert_eq!(orders.len(), 6, "every order is drawn: {orders:?}");
}

#[test]
fn a_thousand_tasks() {
    let text = "task door:\n  repeat 1000:\n    spawn conn:\n      sleep 20\n      spin 1\n";
    let ran = ran(text);
    assert_eq!(ran.problems, []);
    assert_eq!(of_verb(&ran, "exit").filter(|(_, task, _)| *task == "conn").count(), 1000);
    // Their handles are kept: the drop of an unused one would be a warning.
    assert_eq!(of_verb(&ran, "warn").count(), 0);
}
