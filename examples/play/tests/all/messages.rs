//! What the reader says of a wrong program, word by word.

use std::collections::BTreeSet;
use std::fs;

use support::root;
use testing::trace;
use trapline_play::program::read;

use super::ran;

/// The problems of a program, each as `LINE: TEXT`.
fn problems(text: &str) -> Vec<String> {
    let problems = read(text).map_or_else(|problems| problems, |_| Vec::new());
    problems.into_iter().map(|each| format!("{}: {}", each.line, each.text)).collect()
}

/// Asserts what is said of a statement in a task.
#[track_caller]
fn says(statement: &str, text: &str) {
    assert_eq!(problems(&format!("task ann:\n  {statement}\n")), [format!("2: {text}")]);
}

/// Asserts what is said of a line above a task that has no mistake.
#[track_caller]
fn says_at_the_top(line: &str, text: &str) {
    assert_eq!(problems(&format!("{line}\ntask ann:\n  yield\n")), [format!("1: {text}")]);
}

#[test]
fn a_statement_that_is_none() {
    says("slep 5", "there is no `slep`; did you mean `sleep`?");
    says("shild:", "there is no `shild`; did you mean `shield`?");
    says("Sleep 5", "there is no `Sleep`; did you mean `sleep`?");
    says("slëep 5", "there is no `slëep`; did you mean `sleep`?");
    // Two letters exchanged are one mistake, and `seed` is no statement.
    says("sned tea 1", "there is no `sned`; did you mean `send`?");
    says("drink tea", "expected a statement such as `sleep 5`, not `drink tea`");
    let long = "x".repeat(70);
    let shown = format!("expected a statement such as `sleep 5`, not `{}...`", &long[..60]);
    says(&long, &shown);
}

#[test]
fn a_statement_in_the_wrong_form() {
    says("sleep", "expected `sleep 5`, not `sleep`");
    says("yield now", "expected `yield`, not `yield now`");
    says("note", "expected `note a text`, not `note`");
    says("lock fork knife", "expected `lock fork`, not `lock fork knife`");
    says("send tea", "expected `send tea 1`, not `send tea`");
    says("within 5", "expected a colon at the end: `within 5:`");
    says("spawn child", "expected a colon at the end: `spawn child:`");
    says("late", "expected a colon at the end: `late:`");
    says("late:", "expected `late:` right after the block of `within`");
    says("else:", "expected `else:` right after the block of `if`");
    says("finally: yield", "expected `finally:` right after the block of `try`");
    says("try: yield", "expected `finally:` after the block of `try:`");
    says("channel tea 2", "expected `channel` outside of a task, not indented");
    says("task ben:", "expected `task` outside of a task, not indented");
    says("sleep 5:", "expected `sleep 5`, not `sleep 5:`");
}

#[test]
fn a_block_without_its_colon_and_the_block_after_it() {
    for (first, colon, second) in [
        ("within 6", "within 5:", "late:"),
        ("try", "try:", "finally:"),
        ("if 1 < 2", "if n < 3:", "else:"),
    ] {
        let text = format!("task ann:\n  {first}\n    sleep 1\n  {second}\n    slep 2\n");
        let said = [
            format!("2: expected a colon at the end: `{colon}`"),
            "5: there is no `slep`; did you mean `sleep`?".to_owned(),
        ];
        assert_eq!(problems(&text), said);
    }
}

#[test]
fn a_block_that_is_none() {
    says("shield:", "expected statements below `shield:`, indented");
    says("repeat 3: ;", "expected statements below `repeat 3: ;`, indented");
    says(
        "if 1 = 1: shield: yield",
        "expected `shield` in a line of its own, because it has a block",
    );
    let text = "task ann:\n    sleep 1\n  sleep 2\n";
    assert_eq!(problems(text), ["3: expected the indentation of line 2, the first of this block"]);
    let text = "task ann:\nsleep 2\n";
    let said = [
        "1: expected statements below `task ann:`, indented",
        "2: `sleep` is a statement: expected `task ann:` above it, and this line indented",
    ];
    assert_eq!(problems(text), said);
}

#[test]
fn a_value_or_a_test_that_is_none() {
    says("sleep 5ms", "expected a number or a variable, not `5ms`");
    says("sleep 1.5", "expected a number or a variable, not `1.5`");
    says("sleep 2 +", "expected a number or a variable on both sides of `+`");
    says("sleep * 2", "expected a number or a variable on both sides of `*`");
    says("sleep 2 - - 2", "expected a number or a variable on both sides of `-`");
    says("sleep -2", "expected 0 ms or more, not `-2`");
    says("within -2: yield", "expected 0 ms or more, not `-2`");
    says("n =", "expected a number or a variable after `=`");
    says("sleep 12345678901234567890", TOO_LARGE);
    says("if 1: yield", "expected a test such as `n < 3`, not `1`");
    says("while 1 <: yield", "expected a test such as `n < 3`, not `1 <`");
    says("if n == 0: yield", "no line sets `n`: expected `n = 0` in a line before");
}

const TOO_LARGE: &str = "expected a number of at most 9 digits, not `12345678901234567890`";

#[test]
fn a_name_that_is_none() {
    says("lock 4", "expected a name of letters, digits, `-` and `_`, not `4`");
    says("my-money = 4", "expected a name of letters, digits and `_`, not `my-money`");
    says("lock sleep", "`sleep` is a word of the language: expected another name");
    says("late = 3", "`late` is a word of the language: expected another name");
    says("note {1 + 1}", "expected a name of letters, digits and `_`, not `1 + 1`");
    says_at_the_top("task if: yield", "`if` is a word of the language: expected another name");
}

#[test]
fn a_name_that_no_line_introduces() {
    says("unlock fork", "no line locks `fork`");
    says("join bob", "there is no task `bob`");
    says("cancel anna", "there is no task `anna`; did you mean `ann`?");
    says("note {money}", "no line sets `money`: expected `money = 0` in a line before");
    let text = "shared money = 1\ntask ann:\n  lock fork\n  unlock frok\n  note {mony}\n";
    let said = [
        "4: no line locks `frok`; did you mean `fork`?",
        "5: no line sets `mony`: expected `mony = 0` in a line before; did you mean `money`?",
    ];
    assert_eq!(problems(text), said);
}

#[test]
fn a_line_outside_of_tasks() {
    says_at_the_top("tsak bob:", "there is no `tsak`; did you mean `task`?");
    says_at_the_top("money = 3", "expected `task ann:`, not `money = 3`");
    says_at_the_top("task bob", "expected a colon at the end: `task ann:`");
    says_at_the_top("shared money 3", "expected `shared money = 100`, not `shared money 3`");
    says_at_the_top("shared money = much", "expected a number, not `much`");
    says_at_the_top("channel tea 0", "expected room for one value or more");
    says_at_the_top("channel tea -1", "expected room for one value or more");
    says_at_the_top("channel tea", "expected `channel tea 2`, not `channel tea`");
    says_at_the_top("seed -1", "expected a number, not `-1`");
    says_at_the_top("seed 12345678901234567890", TOO_LARGE);
    says_at_the_top("late soon", "expected a number, not `soon`");
    says_at_the_top("policy lazy", "expected `task ann:`, not `policy lazy`");
    says_at_the_top("ticking 3", "expected `task ann:`, not `ticking 3`");
    says_at_the_top("shared money =", "expected a number, not ``");
    let text = "shared money = 3\n  yield\n  yield\ntask ann:\n  yield\n";
    let said = "2: expected no indentation: only the statements of a block are indented";
    assert_eq!(problems(text), [said]);
}

#[test]
fn what_is_declared_twice() {
    let text = "seed 1\nlate 1\nshared n = 1\nchannel tea 1\ntask ann: yield\n";
    let said = [
        "6: line 1 has set the seed already",
        "7: line 2 has set the late already",
        "8: line 3 has a shared `n` already",
        "9: line 4 has a channel `tea` already",
        "10: line 5 has a task `ann` already",
    ];
    assert_eq!(problems(&format!("{text}{text}")), said);
}

#[test]
fn a_spawned_task_has_another_name_than_the_declared_ones() {
    let text = "\
task ann:
  spawn ann:
    yield
  spawn bob:
    yield
  spawn kid:
    yield
task bob:
  spawn kid:
    yield
";
    let said = ["2: line 1 has a task `ann` already", "8: line 4 has a task `bob` already"];
    assert_eq!(problems(text), said);
}

#[test]
fn the_editor_colours_each_word_of_the_language() {
    let text = |file: &str| fs::read_to_string(root().join("examples/play").join(file)).unwrap();
    let (messages, editor) = (text("messages.rs"), text("page/editor.js"));
    // Each word is the first of a pair. `task` has a colour of its own.
    let (_, lists) = messages.split_once("const TOP").unwrap();
    let (lists, _) = lists.split_once("pub const").unwrap();
    let words = lists.split("(\"").skip(1).map(|pair| pair.split_once('"').unwrap().0);
    let words: BTreeSet<_> = words.filter(|word| *word != "task").collect();
    let (_, list) = editor.split_once("const STATEMENTS =").unwrap();
    let (list, _) = list.split_once(';').unwrap();
    let parts: String = list.split('"').skip(1).step_by(2).collect();
    assert_eq!(parts.split('|').collect::<BTreeSet<_>>(), words);
}

#[test]
fn a_program_without_tasks() {
    let said = "1: expected a task, such as `task ann:`, and its statements below, indented";
    for text in ["", "\n\n", "# nothing\n", "shared n = 1\n", "\u{feff}"] {
        assert_eq!(problems(text), [said], "{text:?}");
    }
}

#[test]
fn every_wrong_line_is_reported_at_once_and_hides_no_other() {
    let text = "\
seed one
task ann
  slep 1
  witin 5:
    lock fork
    sleep x
  unlock fork
task ben:
  sleep
";
    let said = [
        "1: expected a number, not `one`",
        "2: expected a colon at the end: `task ann:`",
        "3: there is no `slep`; did you mean `sleep`?",
        "4: there is no `witin`; did you mean `within`?",
        "6: no line sets `x`: expected `x = 0` in a line before",
        "9: expected `sleep 5`, not `sleep`",
    ];
    assert_eq!(problems(text), said);
}

#[test]
fn too_much_of_it() {
    let line = |count| format!("task ann:\n{}", "  yield\n".repeat(count));
    assert_eq!(problems(&line(511)), Vec::<String>::new());
    assert_eq!(problems(&format!("{}\n\n  # the end", line(510))), Vec::<String>::new());
    assert_eq!(problems(&line(512)), ["513: expected at most 512 lines"]);
    assert_eq!(problems(&line(100_000)), ["513: expected at most 512 lines"]);
    assert_eq!(problems(&nested(49)), Vec::<String>::new());
    for depth in [50, 500] {
        let said = "51: expected at most 50 blocks inside each other";
        assert_eq!(problems(&nested(depth)), [said]);
    }
    assert_eq!(problems(&nested(2_000)), ["513: expected at most 512 lines"]);
}

/// This many blocks inside each other in a task, of different kinds.
fn nested(count: usize) -> String {
    let kinds = ["shield:", "within 100:", "if 0 = 0:", "repeat 1:"];
    let mut text = "task ann:\n".to_owned();
    for (depth, kind) in (1..=count).zip(kinds.into_iter().cycle()) {
        text += &format!("{}{kind}\n", " ".repeat(depth));
    }
    text + &" ".repeat(count + 1) + "yield\n"
}

#[test]
fn the_deepest_program_needs_less_than_a_mebibyte_of_stack() {
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    let deep = thread.spawn(|| ran(&nested(49)).log).unwrap();
    assert!(deep.join().unwrap().ends_with(" halt     tasks=0 tickets=0 timers=0 handles=0\n"));
}

#[test]
fn control_characters() {
    says("note a\0b", "expected text, not the control character U+0000");
    says("\u{1b}[31m", "expected text, not the control character U+001B");
    says_at_the_top("seed\u{7} 1", "expected text, not the control character U+0007");
}

#[test]
fn the_form_of_the_text_does_not_matter() {
    let plain = "shared n = 1\ntask ann:\n  if n = 1:\n    n = n + 1\n  send tea n\n  recv tea x\n";
    let log = ran(plain).log;
    for text in [
        plain.replace('\n', "\r\n"),
        plain.trim_end().to_owned(),
        format!("\u{feff}{plain}"),
        plain.replace("    ", "\t").replace("  ", " "),
        plain.replace('\n', "\n   ").replacen("shared", "   shared", 1),
        plain.replace(" = ", "=").replace("tea ", "tea  "),
        plain.replace('\n', " # a comment: with a colon\n"),
    ] {
        assert_eq!(ran(&text).log, log, "{text:?}");
    }
    let inline = ran("shared n = 1\ntask ann: sleep 2; lock fork; unlock fork; note a: b; yield\n");
    assert!(inline.log.contains("note     a: b\n"), "{}", inline.log);
}

#[test]
fn names_and_notes_may_have_letters_of_all_languages() {
    let text = "task jürg:\n  größe = -3\n  lock schlüssel\n  note {größe} € { {\n";
    let ran = ran(text);
    // All text of a log is ASCII.
    assert!(ran.log.contains(" j_rg     note     -3 _ { {\n"), "{}", ran.log);
    assert!(trace::trace(&ran.log).is_ok());
}
