//! The pages: each log is a golden, and each repair and change does what the page says.

use super::{changed, has, notes, of_verb, page, ran};

pub const PAGES: [&str; 9] = [
    "play/two-tasks",
    "play/race",
    "play/channel",
    "play/deadlock",
    "play/lost-wake-up",
    "play/crowd",
    "play/timeout",
    "play/shield",
    "play/cancelled-or-late",
];

/// The seeds that a reader is asked to try, and no seed.
const SEEDS: std::ops::RangeInclusive<u64> = 0..=6;

fn with_seed(seed: u64, text: &str) -> String {
    format!("seed {seed}\n{text}")
}

#[test]
fn each_page_has_its_log() {
    for name in PAGES {
        let text = page(name.strip_prefix("play/").unwrap());
        let ran = ran(&text);
        assert_eq!(ran.problems, [], "{name}");
        support::compare(name, &ran.log);
    }
}

#[test]
fn each_page_is_a_puzzle_with_a_sentence_a_line() {
    for (number, name) in (1..).zip(PAGES) {
        let name = name.strip_prefix("play/").unwrap();
        let path = format!("examples/play/pages/{number}-{name}.play");
        assert!(support::root().join(&path).exists(), "{path}");
        let text = page(name);
        let comment: Vec<_> = text.lines().take_while(|line| line.starts_with("# ")).collect();
        assert!(comment.iter().any(|line| line.ends_with('?')), "{name} asks nothing");
        for line in comment {
            assert!(line.ends_with(['.', '?']) && line.len() <= 100, "{line}");
            assert!(!line.contains(". ") && !line.contains("? "), "two sentences: {line}");
        }
    }
}

#[test]
fn two_tasks_take_turns_only_if_they_yield_or_wait() {
    let text = page("two-tasks");
    let took_turns = [
        "2 ann: ann has worked",
        "4 ben: ben has worked",
        "6 ann: ann has worked",
        "8 ben: ben has worked",
        "10 ann: ann has worked",
        "12 ben: ben has worked",
    ];
    assert_eq!(notes(&ran(&text)), took_turns);
    let without = ran(&changed(&text, &[("    yield\n", "")]));
    let tasks: Vec<_> = of_verb(&without, "note").map(|(time, task, _)| (time, task)).collect();
    let one_by_one = [(2, "ann"), (4, "ann"), (6, "ann"), (8, "ben"), (10, "ben"), (12, "ben")];
    assert_eq!(tasks, one_by_one);
    let asleep = ran(&changed(&text, &[("    spin 2", "    sleep 2")]));
    assert_eq!(of_verb(&asleep, "halt").next().unwrap().0, 6, "half of 12 ms");
}

#[test]
fn the_race_loses_ten_until_a_lock_is_around_it() {
    let text = page("race");
    let lost = [
        "0 ann: ann reads 100",
        "0 ben: ben reads 100",
        "2 ann: ann writes 110",
        "3 ben: ben writes 110",
        "10 auditor: the balance is 110, and should be 120",
    ];
    assert_eq!(notes(&ran(&text)), lost);
    let lock = [
        ("  seen = balance", "  lock account\n  seen = balance"),
        ("  balance = seen + 10", "  balance = seen + 10\n  unlock account"),
    ];
    let repaired = changed(&text, &lock);
    for seed in SEEDS {
        let ran = ran(&with_seed(seed, &repaired));
        let last = notes(&ran).pop().unwrap();
        assert_eq!(last, "10 auditor: the balance is 120, and should be 120", "seed {seed}");
    }
}

#[test]
fn the_producer_waits_for_room_from_the_third_cup_on() {
    let text = page("channel");
    let waits = |text: &str| {
        let ran = ran(text);
        let blocks = of_verb(&ran, "block").filter(|(_, _, detail)| detail.starts_with("queue"));
        let blocks: Vec<_> = blocks.map(|(time, task, _)| format!("{time} {task}")).collect();
        (blocks, notes(&ran))
    };
    let (blocks, poured) = waits(&text);
    assert_eq!(blocks, ["0 producer", "0 producer", "3 producer", "6 producer"]);
    assert_eq!(poured[..2], ["0 producer: poured 1", "0 producer: poured 2"]);
    let (blocks, poured) = waits(&changed(&text, &[("channel tea 2", "channel tea 6")]));
    assert_eq!(blocks, Vec::<String>::new());
    assert_eq!(poured[5], "0 producer: poured 6");
    let slower = changed(
        &text,
        &[("    sleep 3\n", ""), ("    send tea cup", "    sleep 3\n    send tea cup")],
    );
    let (blocks, drunk) = waits(&slower);
    assert!(blocks.iter().all(|block| block.ends_with(" consumer")), "{blocks:?}");
    assert_eq!(blocks.len(), 6);
    assert_eq!(drunk[1], "3 consumer: drank 1");
    let (producer, consumer) = slower.split_once("task consumer:").unwrap();
    let three = consumer.replace("repeat 6", "repeat 3");
    let two = format!("{producer}task first:{three}\ntask second:{three}");
    let drunk = waits(&two).1.into_iter().filter(|note| note.contains("drank"));
    let who: Vec<_> = drunk.map(|note| note.split_once(' ').unwrap().1.to_owned()).collect();
    let in_turn = [
        "first: drank 1",
        "second: drank 2",
        "first: drank 3",
        "second: drank 4",
        "first: drank 5",
        "second: drank 6",
    ];
    assert_eq!(who, in_turn);
}

#[test]
fn the_deadlock_comes_in_every_order_until_two_lines_are_exchanged() {
    let text = page("deadlock");
    let repaired = changed(
        &text,
        &[
            ("task ben:\n  lock knife\n", "task ben:\n  lock fork\n"),
            ("  lock fork\n  note ben", "  lock knife\n  note ben"),
        ],
    );
    for seed in SEEDS {
        let hung = ran(&with_seed(seed, &text));
        let report = hung.report.as_ref().expect("a report");
        assert!(report.contains("\ndeadlock of 2 tasks:\n"), "{report}");
        assert!(report.contains(" 3 ann waits for mutex knife, held by 4 ben"), "{report}");
        assert!(report.contains(" 4 ben waits for mutex fork, held by 3 ann"), "{report}");
        assert_eq!(of_verb(&hung, "warn").next().unwrap().0, 2, "seed {seed}");
        let eaten = ran(&with_seed(seed, &repaired));
        assert_eq!((eaten.report.as_deref(), notes(&eaten).len()), (None, 2), "seed {seed}");
    }
}

#[test]
fn the_wake_up_is_lost_in_some_orders_until_it_is_repaired() {
    let text = page("lost-wake-up");
    let eats = |text: &str| -> Vec<u64> {
        SEEDS.filter(|seed| is_eaten(&with_seed(*seed, text))).collect()
    };
    assert_eq!(eats(&text), [1, 3]);
    let hung = ran(&text);
    assert!(has(&hung, &["cook", "notify", "bell dinner", "woke=0"]), "{}", hung.log);
    let report = hung.report.as_ref().expect("a report");
    assert!(report.contains("3 guest parked bell dinner"), "{report}");
    assert!(!report.contains("deadlock of"), "no circle: {report}");
    let without_yield = changed(&text, &[("    yield\n", "")]);
    assert!(eats(&without_yield) == Vec::from_iter(SEEDS));
    let channel = [("wait dinner", "recv dinner"), ("wake dinner\n", "send dinner 1\n")];
    let (comment, program) = text.split_once("\n\n").unwrap();
    let kept = format!("{comment}\n\n{}", changed(program, &channel));
    assert!(eats(&kept) == Vec::from_iter(SEEDS));
}

fn is_eaten(text: &str) -> bool {
    let ran = ran(text);
    let is_eaten = notes(&ran).iter().any(|note| note.ends_with("the guest eats"));
    assert_eq!(is_eaten, ran.report.is_none(), "{}", ran.log);
    is_eaten
}

#[test]
fn the_health_check_is_late_until_the_order_changes() {
    let text = page("crowd");
    let at = |text: &str| of_verb(&ran(text), "note").next().unwrap().0;
    assert_eq!(at(&text), 92);
    assert_eq!(at(&changed(&text, &[("  sleep 1\n  sleep 19\n", "  sleep 20\n")])), 20);
    let pieces = "  repeat 5:\n    spin 10\n    yield\n";
    assert_eq!(at(&changed(&text, &[("  spin 52\n", pieces)])), 50);
}

#[test]
fn the_lock_ends_before_the_clean_up_which_only_its_own_timeout_ends() {
    let text = page("timeout");
    let ended = ran(&text);
    let in_order: Vec<_> = ended.log.lines().filter(|line| line.contains("caller")).collect();
    let place = |word| in_order.iter().position(|line| line.contains(word)).expect(word);
    let places = ["deliver ", "give     mutex table", "the clean-up", "it was too late"].map(place);
    assert!(places.is_sorted(), "{}", ended.log);
    assert_eq!(notes(&ended).len(), 5, "the query has not ended: {}", ended.log);
    let sleeps = "      sleep 5\n      note the clean-up";
    let longer = ran(&changed(&text, &[("      note the clean-up", sleeps)]));
    assert!(notes(&longer).contains(&"15 caller: the clean-up".to_owned()), "{}", longer.log);
    let within = "      within 3:\n        sleep 5\n      note the clean-up";
    let cut = ran(&changed(&text, &[("      note the clean-up", within)]));
    assert!(notes(&cut).contains(&"13 caller: the clean-up".to_owned()), "{}", cut.log);
}

#[test]
fn the_shield_keeps_two_lines_together() {
    let text = page("shield");
    let held = ran(&text);
    let expected = ["5 clerk: the clerk is out of the shield", "5 boss: cash 70, book 70"];
    assert_eq!(notes(&held), expected, "and the clerk does not go home");
    assert!(has(&held, &["clerk", " cancel ", "= pending"]), "{}", held.log);
    assert!(has(&held, &["clerk", "trap     sleep 5ms", "= !cancelled"]), "{}", held.log);
    let lines = [
        ("  shield:\n", ""),
        ("    cash = cash", "  cash = cash"),
        ("    sleep 5", "  sleep 5"),
        ("    book = book", "  book = book"),
    ];
    assert_eq!(notes(&ran(&changed(&text, &lines))), ["2 boss: cash 70, book 100"]);
}

#[test]
fn the_timeout_comes_first_and_the_cancellation_ends_the_next_wait() {
    let text = page("cancelled-or-late");
    let notes_of = |text: &str| {
        let notes = notes(&ran(text)).into_iter();
        notes.map(|note| note.split_once(": ").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    let both = ["the clean-up", "it was the timeout", "the worker goes on", "the worker has ended"];
    for seed in SEEDS {
        let text = with_seed(seed, &text);
        assert_eq!(notes_of(&text), both, "seed {seed}");
        assert!(has(&ran(&text), &["worker", "deliver", "!timeout"]), "seed {seed}");
    }
    // Whether the worker has run between the two is a matter of order.
    let is_pending = |seed| has(&ran(&with_seed(seed, &text)), &["cancel", "= pending"]);
    assert!(is_pending(0) && is_pending(2) && !is_pending(1));
    let boss_at = |time: &str| changed(&text, &[("  sleep 10\n", &format!("  sleep {time}\n"))]);
    assert_eq!(notes_of(&boss_at("9")), ["the clean-up", "the worker has ended"]);
    let later = [
        "the clean-up",
        "it was the timeout",
        "the worker goes on",
        "the worker has not been cancelled",
        "the worker has ended",
    ];
    assert_eq!(notes_of(&boss_at("11")), later);
}
