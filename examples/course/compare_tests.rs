//! One small log, changed in one way at a time.

use super::by_causes;

const ANSWER: &str = "\
#trace v3 clock=virtual seed=0 tick=0.3s
 0.000000       0  #0001   2 main     spawn    parent=-
 0.000000       1  #0002   2 main     run      cause=#0001
 0.000000       1  #0003   3 child    spawn    parent=2 at=a.rs:1
 0.000000       1  #0004   2 main     block    sleep 1s until=1.000000 k=1 at=a.rs:2
 0.000000       2  #0005   3 child    run      cause=#0003
 0.000000       2  #0006   3 child    block    sleep 0.5s until=0.500000 k=2 at=a.rs:3
 0.500000       3  #0007   0 kernel   fire     k=2 deadline=0.500000 cause=#0006
 0.500000       3  #0008   3 child    wake     sleep k=2 cause=#0007
 0.500000       3  #0009   3 child    run      cause=#0008 parked=0.5s k=2 = 0.500000
 0.500000       3  #0010   3 child    note     ready
 0.500000       3  #0011   3 child    exit     ok cause=#0009
";

#[track_caller]
fn says(log: &str, sentence: &str) {
    assert_eq!(by_causes(ANSWER, log).unwrap_err(), sentence);
}

fn without(number: &str) -> String {
    let kept = ANSWER.lines().filter(|line| !line.contains(&format!("  {number} ")));
    kept.map(|line| format!("{line}\n")).collect()
}

#[test]
fn columns_may_shift() {
    let mut log = ANSWER.replace("0.500000  ", "0.700000  ").replace("at=a.rs:3", "at=b.rs:33");
    assert_eq!(by_causes(ANSWER, &log), Ok(()));
    log = log.replace("k=1", "k=7").replace("k=2", "k=1").replace("k=7", "k=2");
    for nth in (1..=11).rev() {
        log = log.replace(&format!("#{nth:04}"), &format!("#{:04}", nth + 20));
    }
    log = log.replace("       3  ", "      33  ");
    assert_eq!(by_causes(ANSWER, &log), Ok(()));
}

#[test]
fn simple_logs_are_compared_line_by_line() {
    let answer = " 0.000000    1   1 run\n 0.000000    1   1 block\n";
    assert_eq!(by_causes(answer, &answer.replace("0.000000", "0.000007")), Ok(()));
    let said = by_causes(answer, &answer.replace("1 block", "2 block")).unwrap_err();
    let sentence = "line 2: your log has `0.000000    1   2 block`; the answer has \
                    `0.000000    1   1 block` here";
    assert_eq!(said, sentence);
    let said = by_causes(answer, " 0.000000    1   1 run\n").unwrap_err();
    let sentence = "your log ends after line 1; the answer goes on with `0.000000    1   1 block`";
    assert_eq!(said, sentence);
}

#[test]
fn a_missing_line() {
    let sentence =
        "line #0011: before this line `note ready` of task 3 `child` is missing in your log";
    says(&without("#0010"), sentence);
}

#[test]
fn an_extra_line() {
    let more =
        " 0.000000       1  #0003   2 main     note     more\n 0.000000       1  #0003   3 child";
    let log = ANSWER.replacen(" 0.000000       1  #0003   3 child", more, 1);
    says(&log, "line #0003: your log has `note more` of task 2 `main`, which is not in the answer");
}

#[test]
fn another_order() {
    let line = |number: &str| ANSWER.lines().find(|line| line.contains(number)).unwrap();
    let (spawn, block) = (line("  #0003"), line("  #0004"));
    let log = ANSWER.replace(&format!("{spawn}\n{block}"), &format!("{block}\n{spawn}"));
    let sentence = "line #0004: the order differs: your log has `block sleep 1s k=1` of task 2 \
                    `main` here; in the answer `spawn parent=2` of task 3 `child` comes first";
    says(&log, sentence);
}

#[test]
fn another_cause() {
    let log = ANSWER.replace("ok cause=#0009", "ok cause=#0005");
    let sentence = "line #0011: the cause of your `exit ok` of task 3 `child` is `run` of task 3 \
                    `child` (#0005); in the answer it is `run k=2 = 0.500000` of task 3 `child`";
    says(&log, sentence);
}

#[test]
fn a_task_that_ran_before_its_timer_fired() {
    let log = without("#0007").replace("sleep k=2 cause=#0007", "sleep k=2 cause=#0006");
    let sentence = "line #0009: your task 3 `child` ran, but no `fire` is among its causes; in the \
                    answer it runs because of `fire k=2` (sleep 0.5s)";
    says(&log, sentence);
}

#[test]
fn another_outcome() {
    let log = ANSWER.replace("k=2 = 0.500000", "k=2 = !timeout scope=s1");
    let sentence = "line #0009: `run` of your task 3 `child` gives `!timeout scope=s1`; in the \
                    answer `0.500000`";
    says(&log, sentence);
}

#[test]
fn another_call() {
    let log = ANSWER.replace("sleep 1s", "sleep 2s");
    let sentence = "line #0004: your log has `block sleep 2s k=1` of task 2 `main`; the answer has \
                    `block sleep 1s k=1` of task 2 `main` here";
    says(&log, sentence);
}

#[test]
fn another_number_of_lines_at_the_end() {
    let sentence = "your log ends after line #0010; in the answer task 3 `child` goes on with \
                    `exit ok`, and 1 line is missing in all";
    says(&without("#0011"), sentence);
    let log = format!("{ANSWER} 0.500000       3  #0012   2 main     note     more\n");
    let sentence = "line #0012: your log goes on with `note more` of task 2 `main`; the answer has \
                    ended here";
    says(&log, sentence);
}
