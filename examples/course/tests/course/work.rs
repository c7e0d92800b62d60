//! How a program can fail, whatever its lab.

use std::time::Duration;

use course::work::{Ended, Work, judge};

const LOG: &str = "\
 0.000000       0  #0001   2 main     spawn    parent=-
 0.000000       1  #0002   2 main     run      cause=#0001
";

fn said(ended: Ended, log: &str) -> String {
    judge(&ended, &Work { log: log.to_owned(), ..Work::default() }, true).unwrap_err()
}

fn failed(stderr: &str) -> Ended {
    let status = "exit status: 101".to_owned();
    Ended { stderr: stderr.to_owned(), status, ..Ended::default() }
}

#[test]
fn a_missing_part_is_reported_first() {
    let stderr = "thread 'main' (7) panicked at src/lab.rs:5:9:\nnot yet implemented: the wake";
    assert_eq!(said(failed(stderr), ""), "still missing: the wake");
    let log =
        format!("{LOG} 0.000000       1  #0003   2 main     panic    not yet implemented: it\n");
    let ended = Ended { is_success: true, ..Ended::default() };
    assert_eq!(said(ended, &log), "still missing: it");
}

#[test]
fn a_panic_is_reported_with_its_place_and_without_the_log_after_it() {
    let stderr =
        format!("thread 'main' panicked at src/lab.rs:5:9:\nno luck\n{LOG}note: run with x");
    assert_eq!(said(failed(&stderr), ""), "your program panicked at src/lab.rs:5: no luck");
    let stderr = stderr.replace("src/lab.rs", "examples/course/labs/16_fair/wrong_1.rs");
    assert_eq!(said(failed(&stderr), ""), "your program panicked at src/lab.rs:5: no luck");
}

#[test]
fn a_panic_in_a_file_that_is_not_the_students_is_not_placed_in_it() {
    let said = |place: &str, message: &str| {
        let stderr = format!("thread 'main' panicked at {place}:5:9:\n{message}\n");
        said(failed(&stderr), "")
    };
    assert_eq!(
        said("/rustc/1a2b3c/library/core/src/time.rs", "overflow when subtracting durations"),
        "your program panicked in the standard library (time.rs): overflow when subtracting \
         durations"
    );
    let place = "examples/course/labs/01_turns/../../step_01/kernel/turn.rs";
    assert_eq!(said(place, "no"), "your program panicked at src/kernel/turn.rs:5: no");
    // A step takes a file from an earlier one.
    let place = "examples/course/labs/10_oneshot/../../step_10/kernel/../../step_07/kernel/gate.rs";
    assert_eq!(said(place, "no"), "your program panicked at src/kernel/gate.rs:5: no");
    let place = "examples/course/labs/01_turns/scenario.rs";
    assert_eq!(said(place, "no"), "your program panicked at src/scenario.rs:5: no");
}

#[test]
fn an_overflow_is_reported_with_its_expression() {
    let ended = failed("thread 'main' panicked at src/lab.rs:2:5:\nattempt to add with overflow\n");
    let source = "fn f() {\n    left + 1\n}\n".to_owned();
    let said = judge(&ended, &Work { source, ..Work::default() }, true).unwrap_err();
    assert_eq!(
        said,
        "your program panicked at src/lab.rs:2, `left + 1`: attempt to add with overflow"
    );
}

#[test]
fn a_stack_overflow_is_reported_although_its_first_line_is_empty() {
    let said = said(failed("\nthread 'main' (7) has overflowed its stack\n"), "");
    assert_eq!(
        said,
        "your program failed (exit status: 101); it said: thread 'main' (7) has overflowed its \
         stack"
    );
}

#[test]
fn the_panic_of_a_task_is_reported_with_its_own_place() {
    let panic = |message: &str| {
        format!(" 0.000000       1  #0003   2 main     panic    {message} cause=#0002\n")
    };
    let stderr = "thread 'main' panicked at src/lab.rs:2:5:\nfirst\n\
                  thread 'main' panicked at src/lab.rs:7:5:\nsecond\n";
    let ended = Ended { is_success: true, stderr: stderr.to_owned(), ..Ended::default() };
    let said = said(ended, &format!("{LOG}{}", panic("second")));
    assert!(said.starts_with("line #0003: your task 2 `main` panicked at src/lab.rs:7: second"));
}

#[test]
fn a_program_that_does_not_end_has_a_last_line() {
    let ended = Ended { killed_after: Some(Duration::from_secs(10)), ..Ended::default() };
    let last =
        "the last line of its log is `0.000000       1  #0002   2 main     run      cause=#0001`";
    assert_eq!(said(ended.clone(), LOG), format!("your program did not end in 10 s; {last}"));
    let none = "your program did not end in 10 s; it printed no line of its log";
    assert_eq!(said(ended, ""), none);
}

#[test]
fn a_program_that_does_not_end_repeats_an_operation() {
    let turn = " 0.000000       1  #0003   2 main     block    yield k=1 at=src/lab.rs:7\n \
                0.000000       1  #0004   2 main     wake     yield k=1 cause=#0003\n";
    let log = format!("{LOG}{}", turn.repeat(50));
    let what = "its task 2 `main` repeats `yield` at src/lab.rs:7";
    let late = Ended { killed_after: Some(Duration::from_secs(10)), ..Ended::default() };
    assert_eq!(said(late, &log), format!("your program did not end in 10 s; {what}"));
    let why = "has printed more than 8 MiB";
    let stopped = Ended { stopped: Some(why.to_owned()), ..Ended::default() };
    let endless = format!("your program {why}; it does not come to an end: {what}");
    assert_eq!(said(stopped.clone(), &log), endless);
    assert_eq!(said(stopped.clone(), LOG), format!("your program {why}"));
    // The log of an early step names no place.
    let simple = "   9   1 run\n   9   1 block\n".repeat(50);
    let simple = judge(&stopped, &Work { log: simple, ..Work::default() }, false).unwrap_err();
    let what = "its task 1 repeats `block`";
    assert_eq!(simple, format!("your program {why}; it does not come to an end: {what}"));
}

#[test]
fn a_panic_outside_of_the_students_file_names_the_line_that_led_to_it() {
    let frames = "stack backtrace:\n   0: core::expect_failed\n             \
                  at /rustc/1a2b/library/core/src/option.rs:9:5\n   1: lab::pump\n             \
                  at /x/target/labs/16_fair/src/lab.rs:2:5\n   2: main\n             \
                  at /x/target/labs/16_fair/src/main.rs:8:5\n";
    let said = |place: &str| {
        let stderr = format!("thread 'main' panicked at {place}:5:9:\nno\n{frames}");
        let source = "fn f() {\n    left - right\n}\n".to_owned();
        judge(&failed(&stderr), &Work { source, ..Work::default() }, true).unwrap_err()
    };
    let library = said("/rustc/1a2b/library/core/src/time.rs");
    assert_eq!(library, "your program panicked at src/lab.rs:2, `left - right`: no");
    let given = said("src/given.rs");
    assert_eq!(given, "your program panicked at src/given.rs:5, called at src/lab.rs:2: no");
    assert_eq!(said("src/lab.rs"), "your program panicked at src/lab.rs:5: no");
    // Files of the repository are not the student's, even if it is in a folder with that name.
    let crates = said("/home/me/labs/trapline/traps/src/task.rs");
    assert!(crates.ends_with("/traps/src/task.rs:5, called at src/lab.rs:2: no"), "{crates}");
}

#[test]
fn a_simple_log_of_a_step_is_not_parsed() {
    let work = Work { log: " 0.000000    1   1 run\n".to_owned(), ..Work::default() };
    let ended = Ended { is_success: true, ..Ended::default() };
    assert_eq!(judge(&ended, &work, false), Ok(()));
}

#[test]
fn a_rule_that_the_golden_log_breaks_is_not_required() {
    let log = LOG.replace("cause=#0001", "cause=#0009");
    let work = Work { log: log.clone(), golden: log, ..Work::default() };
    let ended = Ended { is_success: true, ..Ended::default() };
    assert_eq!(judge(&ended, &work, true), Ok(()));
}

#[test]
fn the_output_must_be_a_log_that_keeps_the_rules() {
    let ended = || Ended { is_success: true, ..Ended::default() };
    assert_eq!(said(ended(), ""), "your program printed no log");
    let what = said(ended(), "hello\n");
    assert!(
        what.starts_with("line 1 of what your program printed is no line of a log: "),
        "{what}"
    );
    let what = said(ended(), &LOG.replace("cause=#0001", "cause=#0009"));
    assert!(what.starts_with("line #0002 of your log breaks the rule `cause`: "), "{what}");
}

#[test]
fn a_word_is_found_in_code_and_not_in_comments_or_strings() {
    let source = "\
//! No `thread`.

/// No thread either: [`thread`].
fn f<'a>(my_thread: &'a str) {
    /* thread /* thread */ thread */
    let _ = (\"thread\", r#\"a \" thread\"#, 'x', my_thread); // thread
    std::thread::yield_now();
}
";
    let work = Work { source: source.to_owned(), ..Work::default() };
    assert_eq!(work.line_of("thread"), Some(7));
    assert_eq!(work.line_of("async"), None);
    let code = work.code();
    assert_eq!(code.lines().nth(6), Some("    std::thread::yield_now();"));
    assert_eq!(code.len(), source.len());
    assert!(!code.contains("No") && !code.contains("///"), "{code}");
}

#[test]
fn code_from_another_file_is_found() {
    let line =
        |source: &str| Work { source: source.to_owned(), ..Work::default() }.line_of_other_file();
    assert_eq!(
        line("//! mod a;\nmod inline { fn f() {} }\nfn g(mymod: u8) {\n    mymod;\n}\n"),
        None
    );
    assert_eq!(line("fn f() {}\n#[path = \"/tmp/a.rs\"]\nmod a;\n"), Some(3));
    assert_eq!(line("fn f() {}\npub mod\n  a ;\nmod r#a;\n"), Some(2));
    assert_eq!(line("macro_rules! m { ($n:ident) => { mod $n; } }\n"), Some(1));
    assert_eq!(line("\ninclude!(\"/tmp/a.rs\");\nmod a;\n"), Some(2));
}
