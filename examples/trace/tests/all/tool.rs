//! The tool that reads traces, on the goldens: its answers agree with the traces.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::io::{self, Read as _};
use std::rc::Rc;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::read::DeflateDecoder;
use kernel::trace::Event;
use kernel::{Kernel, RunError, Sim};
use serde_json::Value;
use support::{golden, goldens, ms};
use testing::trace::{Checker, Line, State as KernelState, check};
use trace_tool::debugger::{Debugger, Key};
use trace_tool::idle::Idle;
use trace_tool::life::Shares;
use trace_tool::locks::{Deadlock, deadlock, links};
use trace_tool::look::{Look, Writer, time};
use trace_tool::model::{State, Text, Trace};
use trace_tool::now::Now;
use trace_tool::reading::{Read, read_lines};
use trace_tool::scopes::{Left, scopes};
use trace_tool::slow::Slow;
use trace_tool::sources::sources;
use trace_tool::state::{At, Walk, at as line_or_time, count, line_at, place};
use trace_tool::step::{Go, go};
use trace_tool::stuck;
use trace_tool::style::Paint;
use trace_tool::summary::Summary;
use trace_tool::tables::Table;
use trace_tool::tally::{ENDED, Order, Tally};
use trace_tool::tree::Tree;
use trace_tool::waits::{Ended, lates, waits};
use trace_tool::{chain, diff, lanes, life, page, perfetto, state, step};
use traps::internal::table::TaskRef;
use traps::io::{Descriptor, Direction, Io, Source};
use traps::sync::{Condition, Event as Flag, Mutex};
use traps::{
    Interrupt, Time, WaitQueue, join, join3, note, sleep, span, spawn, timeout_after, yield_now,
};

const PLAIN: Paint = Paint { colors: false, width: None };

fn read(text: &str) -> Trace {
    Trace::read(text.as_bytes().to_vec(), |_| {}).unwrap()
}

/// All lines of a trace.
fn lines(trace: &Trace) -> Vec<Line<'static>> {
    (0..trace.len()).map(|place| trace.line(place)).collect()
}

fn page(trace: &Trace) -> String {
    page_with(trace, &BTreeMap::new())
}

fn page_with(trace: &Trace, files: &BTreeMap<String, String>) -> String {
    let mut page = Vec::new();
    page::page(trace, files, &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

fn lanes(trace: &Trace, width: usize) -> String {
    let mut text = Vec::new();
    lanes::lanes(trace, width, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The events of the Perfetto file.
fn perfetto(trace: &Trace) -> Vec<Value> {
    let mut file = Vec::new();
    perfetto::perfetto(trace, &mut file).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    file["traceEvents"].as_array().unwrap().clone()
}

fn named(name: &str) -> Trace {
    read(&golden(name))
}

fn why(trace: &Trace, seq: u64) -> String {
    chain::why(trace, trace.place(seq).unwrap(), false, PLAIN)
}

/// Passes each line to a command.
fn each<T>(text: &str, mut command: T, mut line: impl FnMut(&mut T, &Line<'_>)) -> T {
    let seen = |read: Read<'_>| match read {
        Read::Line(each, _) => line(&mut command, &each),
        Read::Header(_) | Read::Remark(_) => {}
        Read::Bad(bad) => panic!("{bad}"),
    };
    read_lines(text.as_bytes(), seen).unwrap();
    command
}

fn idle(text: &str, look: Look, most: usize) -> Result<String, String> {
    each(text, Idle::new(look, most), Idle::line).show(PLAIN)
}

fn tree(text: &str, look: Look, most: usize) -> Result<String, String> {
    each(text, Tree::new(look, most), Tree::line).show(PLAIN)
}

fn at(text: &str) -> Look {
    Look::new(Some(time(text).unwrap()), None)
}

fn slow(text: &str, most: usize) -> String {
    let header = text.lines().next().filter(|line| line.starts_with("#trace "));
    each(text, Slow::new(most), Slow::line).show(header, PLAIN)
}

fn summary(text: &str) -> String {
    each(text, Summary::default(), Summary::line).show(PLAIN)
}

fn tally(text: &str) -> Tally {
    each(text, Tally::default(), |tally, line| tally.line(line))
}

fn circles(text: &str) -> String {
    stuck::circles(&Now::of(&read(text)))
}

#[test]
fn why_ends_outside_from_every_line_of_every_golden() {
    for name in goldens() {
        let trace = named(&name);
        for place in 0..trace.len() {
            let chain = chain::chain(&trace, place);
            assert!(chain.is_sorted_by(|a, b| a > b), "{name}: a cause is an earlier line");
            let last = chain[chain.len() - 1];
            assert!(trace.is_from_outside(last), "{name} {}", trace.line(last));
            let said = chain::why(&trace, place, false, PLAIN);
            assert!(said.is_ascii() && !said.contains("  .") && !said.contains("{}"), "{said}");
        }
    }
}

#[test]
fn each_verb_of_the_grammar_has_a_sentence() {
    let trace = read(include_str!("../verbs.trace"));
    let mut verbs = BTreeSet::new();
    for place in 0..trace.len() {
        let (line, said) = (trace.line(place), chain::tell(&trace, place));
        verbs.insert(line.verb);
        // Text of the program and of the system is quoted as it is.
        let is_free = ["warn", "panic", "note", "cap", "boot", "refuse"].contains(&line.verb);
        let is_raw = |text: &str| said.contains(text);
        let is_raw = is_raw(line.event()) || line.detail().contains('=') && is_raw(line.detail());
        assert!(!is_raw || is_free, "{line}\n{said}");
        assert!(said.contains(' ') && !said.contains("  ") && !said.ends_with(' '), "{said}");
    }
    let all: BTreeSet<_> = Event::WORDS.iter().copied().collect();
    assert_eq!(verbs, all, "the log has each verb");
}

#[test]
fn the_effects_of_a_line_are_the_lines_that_have_it_as_their_cause() {
    for name in ["hello", "nested", "echo_two_clients"] {
        let trace = named(name);
        let mut found = 0;
        for place in 0..trace.len() {
            let effects = chain::effects(&trace, place);
            found += effects.len();
            let is_of_place = |each: &usize| {
                let fires = trace.verb(*each) == "fire";
                let set = trace.line(*each).cause.filter(|_| fires).and_then(|it| trace.place(it));
                trace.cause(*each).or(set) == Some(place)
            };
            assert!(effects.iter().all(is_of_place), "{name}");
        }
        let is_effect = |each: &usize| trace.cause(*each).is_some() || trace.verb(*each) == "fire";
        let wanted = (0..trace.len()).filter(is_effect).count();
        assert_eq!(found, wanted, "{name}");
    }
    let trace = named("hello");
    let said = |seq, lines| {
        let place = trace.place(seq).unwrap();
        chain::tell_effects(&trace, place, lines, PLAIN).replace(" at examples/hello.rs", " at")
    };
    let fired = "It was 0.500000: the sleep k=2 was due, set by #0010 at:12 (from outside: time). \
                 This caused this line:\n\n  \
                 #0012  0.500000  the wait of task 3 `child` for the end of its sleep of 0.5s \
                 (until 0.500000) (#0010, since 0.000000 at:12) was over\n";
    assert_eq!(said(11, false), fired);
    // Time makes a timer fire, but this line has set it.
    assert!(said(10, false).contains("This caused this line:\n\n  #0011 "));
    let line = " 0.500000       3  #0012   3 child    wake     sleep k=2 cause=#0011\n";
    assert!(said(11, true).ends_with(line));
    let last = trace.seq(trace.len() - 1);
    assert_eq!(said(last, false), "The kernel ended, and nothing was left. This caused no line.\n");
}

#[test]
fn a_late_timer_is_told_with_its_time_and_its_deadline() {
    let said = why(&named("c5_a_sleep_is_a_lower_bound"), 7);
    let late = "It was 0.107000: the sleep k=1 had been due since 0.100000, set by #0006 ";
    assert!(said.starts_with(late), "{said}");
}

#[test]
fn why_ends_where_a_cause_is_no_earlier_line() {
    let text = golden("hello").replace("cause=#0012", "cause=#0013");
    assert!(why(&read(&text), 13).ends_with("(the trace does not say what is behind that)\n"));
}

#[test]
fn why_says_in_a_sentence_what_came_and_since_when_the_task_had_waited_for_it() {
    let said = why(&named("hello"), 13);
    let first = "Task 3 `child` ran because its sleep of 0.5s, begun at 0.000000 s at \
                 examples/hello.rs:12, was over.";
    assert_eq!(said.lines().next(), Some(first));
    assert_eq!(said.lines().count(), 5, "the run, the wake and the timer\n{said}");
    let said = why(&named("nested"), 12);
    assert!(
        said.starts_with("Task 2 `main` ran because the deadline of scope s2, set at "),
        "{said}"
    );
    let echo = "\
 0.100000       1  #0001   5 conn-1   spawn    parent=-
 0.100000       2  #0002   5 conn-1   run      cause=#0001
 0.100000       2  #0003   5 conn-1   block    io c1 read k=9 reg=new at=examples/servers/echo.rs:31
 0.104000       3  #0004   0 kernel   arrive   c1 read
 0.104000       3  #0005   5 conn-1   wake     io c1 read k=9 cause=#0004
 0.104000       3  #0006   5 conn-1   run      cause=#0005 parked=4ms k=9 = ok
 0.104000       3  #0007   5 conn-1   io       c1 read = 64
";
    let said = why(&read(echo), 6);
    let first = "Task 5 `conn-1` ran because bytes arrived on c1, which it had been waiting for \
                 since 0.100000 s at examples/servers/echo.rs:31.";
    assert_eq!(said.lines().next(), Some(first));
    let said = why(&read(echo), 7);
    assert!(said.starts_with("Task 5 `conn-1` read 64 bytes on c1, in a run that began because"));
}

#[test]
fn why_explains_a_wait_for_the_cpu() {
    // Task 4 holds the CPU while bytes for tasks 5, 6 and 7 arrive.
    let text = "\
#trace v3 clock=real seed=0 tick=0.3s
 0.000000       0  #0001   1 wakeup   spawn    parent=-
 0.000000       1  #0002   4 conn-1   spawn    parent=- at=http.rs:90
 0.000000       1  #0003   4 conn-1   run      cause=#0002
 0.000000       1  #0004   4 conn-1   block    io c1 read k=1 at=http.rs:102
 0.000000       1  #0005   5 conn-2   spawn    parent=- at=http.rs:90
 0.000000       1  #0006   5 conn-2   run      cause=#0005
 0.000000       1  #0007   5 conn-2   block    wait q1 k=2 at=http.rs:110
 0.000000       1  #0008   6 conn-3   spawn    parent=- at=http.rs:90
 0.010000       2  #0009   0 kernel   arrive   c1 read
 0.010000       2  #0010   4 conn-1   wake     io c1 read k=1 cause=#0009
 0.010000       2  #0011   4 conn-1   run      cause=#0010 parked=10ms k=1 = ok waited=0s
 0.020000       2  #0012   5 conn-2   wake     wait q1 k=2 cause=#0011
 0.070000       2  #0013   4 conn-1   exit     ok cause=#0011 ran=60ms
 0.070000       3  #0014   6 conn-3   run      cause=#0008 waited=70ms
 0.072000       3  #0015   6 conn-3   block    waker ran=2ms
 0.072000       3  #0016   5 conn-2   run      cause=#0012 parked=72ms k=2 = ok waited=52ms
 0.072000       3  #0017   5 conn-2   io       c2 read = 5
";
    let trace = read(text);
    let because = "Task 5 `conn-2` ran because task 4 `conn-1` (#0011) ended its wait for `wait \
                   q1`, and it had been waiting at http.rs:110 since 0.000000 s for a wake \
                   in queue q1.";
    let ready = "Task 5 `conn-2` had been ready for 52ms: task 4 `conn-1` ran for 50ms of that, \
                 from http.rs:102, and 1 other task ran too.";
    assert_eq!(why(&trace, 16).lines().next(), Some(&*format!("{because} {ready}")));
    let said = why(&trace, 17);
    assert!(said.lines().next().unwrap().ends_with(ready), "and of what it did then\n{said}");
    let said = why(&trace, 14);
    let ready = " Task 6 `conn-3` had been ready for 70ms: task 4 `conn-1` ran for 60ms of that, \
                 from http.rs:102.";
    assert!(said.lines().next().unwrap().ends_with(ready), "{said}");
    assert!(!why(&trace, 11).contains(" had been ready "), "it had the CPU at once");
    // If the clock is read once a turn, the log knows only the lengths of long runs.
    let untimed = ["0s", "70ms", "52ms"].map(|span| format!(" waited={span}"));
    let untimed = untimed.iter().fold(text.to_owned(), |text, field| text.replace(field, ""));
    let untimed = untimed.replace(" ran=60ms", "").replace(" ran=2ms", "");
    let untimed = untimed.replace("0.020000", "0.071000").replace("0.070000", "0.072000");
    let said = why(&read(&untimed), 16);
    let ready = " had been ready for 1ms: 2 tasks ran first, and the log is not timed and does not \
                 say for how long.\n";
    assert!(said.contains(ready), "{said}");
    let (exit, run) = ("exit     ok cause=#0011", "6 conn-3   run      cause=#0008");
    let long = untimed.replace(exit, "longrun  ran=0.060000 from=io_c1_read to=exit");
    let said = why(&read(&long.replace(run, &format!("4 conn-1 {exit}"))), 16);
    assert!(said.contains(" had been ready for 1ms: task 4 `conn-1` ran for 1ms of "), "{said}");
    let same = untimed.replace("0.071000", "0.072000");
    assert!(!why(&read(&same), 16).contains(" had been ready "));
}

#[test]
fn why_tells_the_later_runs_of_the_kernels_own_task() {
    let text = golden("c37_left_behind");
    let trace = read(&text);
    let all = lines(&trace);
    let own = |verb| all.iter().filter(move |line| (line.task, line.verb) == (1, verb));
    let runs: Vec<_> = own("run").map(|run| why(&trace, run.seq)).collect();
    assert!(runs.len() > 2);
    for (nth, said) in runs.iter().enumerate() {
        let is_first = said.contains("`wakeup` ran for the first time");
        assert_eq!(is_first, nth == 0, "{said}");
    }
    let said = why(&trace, own("wake").next().unwrap().seq);
    let wait =
        "the wait of task 1 `wakeup` for a message of another thread (#0004, since 0.000000)";
    assert!(said.to_lowercase().contains(wait), "{said}");
    let sentence = runs[1].lines().next().unwrap();
    let waited = ", which it had been waiting for since ";
    assert!(sentence.contains(waited) || sentence.contains(" since 0.000000 s"), "{sentence}");
}

#[test]
fn run_ready_and_blocked_are_a_hundred_percent_of_each_task() {
    for name in goldens() {
        let trace = named(&name);
        for task in trace.tasks() {
            let shares = Shares::of(&trace, task);
            assert_eq!(shares.permille().iter().sum::<u64>(), 1000, "{name}: {shares:?}");
            let pieces = trace.pieces(task);
            let first = trace.line(pieces[0].from);
            let last = trace.line(pieces[pieces.len() - 1].to);
            // The times of the lines may lack a part of a long run.
            let (total, span) = (shares.total(), last.at.since(first.at));
            let is_long = trace.long_runs().any(|(run, _)| trace.task_of(run).id == task.id);
            assert!(total == span || is_long && total > span, "{name}: nothing is left out");
        }
        let rows = tally(&golden(&name)).rows();
        let found: Vec<_> = rows.iter().map(|row| (row.id, &*row.name, row.shares)).collect();
        let whole = trace.tasks();
        let whole: Vec<_> =
            whole.map(|task| (task.id, &*task.name, Shares::of(&trace, task))).collect();
        assert_eq!(found, whole, "{name}: line by line, and whole");
        let said = summary(&golden(&name));
        assert!(said.contains("turns with an event"), "{name}\n{said}");
    }
}

#[test]
fn a_summary_counts_what_the_lines_say() {
    let said = summary(&golden("nested"));
    let row = |start: &str| {
        let found = said.lines().find(|line| line.trim_start().starts_with(start));
        found.unwrap_or_default().split_whitespace().last().unwrap_or_default().to_owned()
    };
    assert_eq!(row("timers fired"), "3");
    assert_eq!(row("timers armed"), "8");
    assert_eq!(row("chains that end nowhere"), "0");
    let sleep = said.lines().find(|line| line.trim_start().starts_with("sleep")).unwrap();
    let words: Vec<_> = sleep.split_whitespace().collect();
    assert_eq!(words, ["sleep", "0", "3", "3"], "answered, blocked, interrupted");
}

#[test]
fn tasks_are_found_by_number_and_by_name_and_sorted() {
    let trace = named("phases");
    assert_eq!(&*trace.find("2")[0].name, "main");
    assert_eq!(trace.find("main")[0].id, 2);
    assert!(trace.find("nobody").is_empty());
    let said = life::task(&trace, &Now::of(&trace), trace.find("main")[0], PLAIN);
    assert!(said.starts_with("task 2 `main`: ended\n  run"), "{said}");
    let by_name = tally(&golden("phases")).tasks(Order::Name, PLAIN);
    let rows = by_name.lines().skip(1).take_while(|line| !line.is_empty());
    let names: Vec<_> = rows.map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert!(names.is_sorted(), "{by_name}");
}

#[test]
fn tasks_of_one_name_are_listed_by_number() {
    let trace = named("echo_two_clients");
    let said = life::tasks(&trace, &trace.tasks().collect::<Vec<_>>(), PLAIN);
    let rows: Vec<_> = said.lines().map(|row| row.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!(rows[0][..2], ["4", "tasks"]);
    assert_eq!(rows[1], ["id", "spawned", "ended", "runs", "at"]);
    assert_eq!(rows[4], ["3", "0.010000", "0.160000", "4", "test:14"], "{said}");
}

#[test]
fn a_log_that_is_not_timed_has_no_lengths_of_runs() {
    let [stable, timed] = [false, true].map(traced);
    for (text, is_timed) in [(stable, false), (timed, true)] {
        let tasks = tally(&text).tasks(Order::Id, PLAIN);
        let row: Vec<_> = tasks.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!((row[1], row[4] == "-"), ("main", !is_timed), "{tasks}");
        let trace = read(&text);
        let life = life::task(&trace, &Now::of(&trace), trace.find("main")[0], PLAIN);
        let run: Vec<_> = life.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(run[1..] == ["-"], !is_timed, "{life}");
        for said in [tasks, summary(&text)] {
            assert_eq!(said.contains("the trace is not timed"), !is_timed, "{said}");
        }
    }
}

#[test]
fn the_tasks_of_a_log_that_is_being_written_are_those_of_now() {
    let mut tally = tally(SERVER);
    let at_end = tally.rows();
    tally.writer = Some(Writer { pid: 7, ago: ms(500) });
    for (before, now) in at_end.iter().zip(tally.rows()) {
        let more = if &*now.state == "ended" { ms(0) } else { ms(500) };
        assert_eq!(now.shares.total(), before.shares.total() + more);
    }
    let said = tally.tasks(Order::Id, PLAIN);
    let head = "The tasks now (4.500000 s), 0.5s after the last event; process 7 is writing the \
                trace:\n";
    assert!(said.starts_with(head), "{said}");
    let mut summary = each(SERVER, Summary::default(), Summary::line);
    summary.tally.writer = tally.writer;
    assert!(summary.show(PLAIN).starts_with(head));
}

#[test]
fn a_table_has_one_unit_a_column_and_the_width_of_the_terminal() {
    let table = || {
        let mut table = Table::new(&["for", "of", "name", "at"]);
        table.row(
            ["1.5s", "64us", "a-task-of-a-long-name", "net/src/http/connection.rs:210"]
                .map(str::to_owned),
        );
        table.row(["12.5ms", "-", "b", "a.rs:1"].map(str::to_owned));
        table
    };
    let expected = "
      for    of  name                   at
  1.5000s  64us  a-task-of-a-long-name  net/src/http/connection.rs:210
  0.0125s     -  b                      a.rs:1
";
    let said = table().show(PLAIN);
    assert_eq!(format!("\n{said}"), expected);
    for width in [40, 50, 60, 80] {
        let said = table().show(Paint { width: Some(width), ..PLAIN });
        assert!(said.lines().all(|line| line.chars().count() <= width), "{width}\n{said}");
        assert!(said.contains(":210") && said.contains("  1.5000s  64us  a-task"), "{said}");
    }
}

#[test]
fn idle_cuts_no_answer_on_a_narrow_terminal() {
    let text = "\
 0.000000 1 #0001 3 worker-of-a-long-name spawn    parent=- at=src/accounts/main.rs:7
 0.000000 1 #0002 3 worker-of-a-long-name run      cause=#0001
 0.000000 1 #0003 3 worker-of-a-long-name take     mutex accounts at=src/accounts/transfer.rs:12
 0.000000 1 #0004 3 worker-of-a-long-name block    sleep 9s until=9.000000 k=1 at=src/main.rs:9
 0.000000 1 #0005 4 other spawn    parent=- at=src/accounts/main.rs:8
 0.000000 1 #0006 4 other run      cause=#0005
 0.000000 1 #0007 4 other block    mutex accounts held-by=3 k=2 at=src/accounts/transfer.rs:12
 0.500000 2 #0008 0 kernel arrive   SIGINT
";
    let answer = "mutex accounts, held by task 3 `worker-of-a-long-name`, who took it at \
                  src/accounts/transfer.rs:12";
    let look = Look::default;
    let wide = each(text, Idle::new(look(), 9), Idle::line).show(PLAIN).unwrap();
    assert!(wide.contains(answer), "{wide}");
    for width in [80, 100] {
        let paint = Paint { width: Some(width), ..PLAIN };
        let said = each(text, Idle::new(look(), 9), Idle::line).show(paint).unwrap();
        assert!(said.lines().all(|line| line.chars().count() <= width), "{width}\n{said}");
        let words: Vec<_> = said.split_whitespace().collect();
        assert!(words.join(" ").contains(answer), "{width}\n{said}");
    }
}

#[test]
fn only_one_word_is_a_place_that_keeps_its_end() {
    let mut table = Table::new(&["text", "place"]);
    let text = "mutex accounts, held by task 3 `a`, who took it at src/accounts/transfer.rs:12";
    table.row([text, "src/accounts/transfer.rs:12"].map(str::to_owned));
    let said = table.show(Paint { width: Some(40), ..PLAIN });
    let row = said.lines().nth(1).unwrap();
    assert!(row.starts_with("  mutex acco") && row.ends_with("transfer.rs:12"), "{said}");
}

/// For any text, each command prints an answer, and the text cannot control the terminal.
#[test]
fn no_text_makes_a_command_panic_and_no_byte_of_it_reaches_the_terminal() {
    let mut text = golden("nested") + &golden("echo_two_clients") + &golden("phases");
    text = text.lines().filter(|line| !line.starts_with("# ")).collect::<Vec<_>>().join("\n");
    let lines: Vec<_> = text.lines().collect();
    let mut random = 1_u64;
    let mut below = |most: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (random >> 33) as usize % most
    };
    for _ in 0..30 {
        let mut text = String::new();
        for nth in 0..lines.len() {
            let line = match below(12) {
                0 => lines[below(lines.len())].to_owned(),
                1 => continue,
                2 => format!("{}\u{1b}]0;title\u{7}\u{202e}{}", lines[nth], below(9)),
                3 => lines[nth].replace(" main ", &format!(" {} ", "m\u{9b}".repeat(below(99)))),
                4 => lines[nth].replacen('1', "18446744073709551615", 1),
                5 => lines[nth].chars().rev().collect(),
                _ => lines[nth].to_owned(),
            };
            text += &(line + "\n");
        }
        said_of(&text);
    }
    said_of(&format!("{}{}", golden("hello").replace(" main ", &name_of(70_000)), SERVER));
}

fn name_of(length: usize) -> String {
    format!(" {} ", "n".repeat(length))
}

/// The output of the commands for a text.
fn said_of(text: &str) {
    let Ok(trace) = Trace::read(text.as_bytes().to_vec(), |_| {}) else { return };
    if trace.is_empty() {
        return;
    }
    let mut said = [lanes(&trace, 80), page(&trace)].concat();
    let places = (0..trace.len()).step_by(7);
    places.for_each(|place| said += &chain::why(&trace, place, false, PLAIN));
    said += &trace.whole.faults().join("\n");
    perfetto(&trace);
    drop(diff::diff(&trace, &trace, PLAIN));
    drop(links(&trace));
    let now = Now::of(&trace);
    trace.tasks().for_each(|task| said += &life::task(&trace, &now, task, PLAIN));
    let mut checker = Checker::default();
    trace.each(|_, line| checker.line(line));
    let found = checker.end().err().unwrap_or_default();
    found.iter().for_each(|violation| said += &violation.to_string());
    let keep = |text: &str| -> String {
        let mut kept = String::new();
        read_lines(text.as_bytes(), |read| {
            if let Read::Line(line, _) = read {
                kept += &format!("{line}\n");
            }
        })
        .unwrap();
        kept
    };
    let lines = keep(text);
    said += &idle(&lines, Look::default(), 9).unwrap();
    said += &tree(&lines, Look::default(), 9).unwrap();
    said += &tally(&lines).tasks(Order::Name, Paint { width: Some(80), ..PLAIN });
    said += &(slow(&lines, 9) + &summary(&lines));
    let controls = said.chars().find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}');
    assert_eq!(controls, None);
}

#[test]
fn idle_names_who_has_waited_longest_and_for_what() {
    let text = golden("http_two_requests");
    // The log up to the point at which the server waited for the second request.
    let cut: String = text
        .lines()
        .take_while(|line| !line.contains("#0022"))
        .map(|line| format!("{line}\n"))
        .collect();
    let said = idle(&cut, Look::default(), 5).unwrap();
    assert!(said.contains("conn") && said.contains("keep-alive: pipe q2"), "{said}");
    let said = slow(&golden("c34_a_long_run_names_its_task_and_both_its_traps"), 3);
    assert!(said.contains("\n\nLongest runs"), "{said}");
}

/// The trace of a program up to the point at which it hangs, and the circles that the kernel
/// reports.
fn hang<T: Debug>(main: impl Future<Output = T>) -> (String, String) {
    let (lines, mut kernel) = (Rc::<RefCell<String>>::default(), Kernel::new(Sim::new()));
    let theirs = lines.clone();
    kernel.observe(move |line: &kernel::trace::Line<'_>| {
        *theirs.borrow_mut() += &format!("{line}\n");
    });
    let said = match kernel.run(main) {
        Err(error @ RunError::Hang(_)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let lines = lines.take();
    assert_eq!(check(&self::lines(&read(&lines))), Ok(()));
    // The rest is the end of the tasks that nothing could wake.
    let end = lines.find("drop     its_run_failed").and_then(|end| lines[..end].rfind('\n'));
    let lines = lines[..=end.unwrap()].to_owned();
    let circles = said.find("deadlock of").map_or(String::new(), |at| format!("{}\n", &said[at..]));
    (lines, circles)
}

fn lock(name: &'static str) -> WaitQueue {
    WaitQueue::with_permits(1).described("lock", name)
}

/// Gives who holds it.
async fn take(lock: &WaitQueue) -> Result<Option<TaskRef>, Interrupt> {
    lock.wait_for_permit().await?;
    Ok(lock.hold())
}

#[test]
fn idle_names_a_circle_as_the_kernel_does() {
    let philosophers = async {
        // Five locks of one name.
        let forks: Rc<[WaitQueue]> = (0..5).map(|_| lock("fork")).collect();
        let mut last = None;
        for left in 0..5 {
            let forks = forks.clone();
            let eat = async move {
                take(&forks[left]).await?;
                yield_now().await?;
                take(&forks[(left + 1) % 5]).await
            };
            last = Some(spawn("p", eat).await);
        }
        last.unwrap().join().await
    };
    let (lines, said) = hang(philosophers);
    assert_eq!(circles(&lines), said);
    assert!(said.starts_with("deadlock of 5 tasks:\n"), "{said}");
    let idle = idle(&lines, Look::default(), 9).unwrap();
    assert!(idle.contains(" lock fork, held by task 4 ") && idle.contains(&said), "{idle}");
    let a_join = async {
        let door = lock("door");
        take(&door).await.unwrap();
        let theirs = door.clone();
        let mut child = spawn("child", async move { take(&theirs).await }).await;
        let beside = spawn("beside", async move { take(&door).await }).await;
        let out = child.join().await;
        (out, beside)
    };
    let (lines, said) = hang(a_join);
    assert_eq!(circles(&lines), said);
    assert!(said.contains("\n 2 main waits for join 3, held by 3 child\n"), "{said}");
}

#[test]
fn the_page_names_a_circle_and_marks_the_hang() {
    let (lines, said) = hang(async {
        let (left, right) = (lock("left"), lock("right"));
        let (its_left, its_right) = (left.clone(), right.clone());
        let other = async move {
            take(&its_right).await?;
            yield_now().await?;
            take(&its_left).await
        };
        let mut other = spawn("other", other).await;
        take(&left).await.unwrap();
        yield_now().await.unwrap();
        let waits = take(&right).await;
        (other.join().await, waits)
    });
    let failed = lines + " 9.000000       9  #9000   2 main     drop     its_run_failed\n";
    let trace = read(&failed);
    let Deadlock { at, is_hang, circles, words, .. } = deadlock(&trace);
    assert_eq!((at, is_hang, &words), (trace.len() - 1, true, &said));
    let of = |(wait, holder): &(usize, u64)| (trace.task_of(*wait).id, *holder);
    let found: Vec<Vec<_>> = circles.iter().map(|circle| circle.iter().map(of).collect()).collect();
    assert_eq!(found, [[(2, 3), (3, 2)]], "each waits for the other");
    let head = head_of(&page(&trace));
    assert_eq!((&head["hang"], &head["stuck"]), (&Value::from(at), &Value::from(words)));
    assert_eq!(head["circles"][0].as_array().unwrap().len(), 2);
    let well = head_of(&page(&named("nested")));
    assert_eq!((&well["hang"], &well["stuck"]), (&Value::Null, &Value::from("")));
}

/// Two tasks wait for each other, and are cancelled before the end of the log.
fn undone() -> String {
    let (lines, mut kernel) = (Rc::<RefCell<String>>::default(), Kernel::new(Sim::new()));
    let theirs = lines.clone();
    kernel.observe(move |line: &kernel::trace::Line<'_>| {
        *theirs.borrow_mut() += &format!("{line}\n");
    });
    let main = async {
        let (left, right) = (lock("left"), lock("right"));
        let mut both = Vec::new();
        for [first, second] in [[left.clone(), right.clone()], [right, left]] {
            let task = async move {
                take(&first).await?;
                yield_now().await?;
                take(&second).await
            };
            both.push(spawn("p", task).await);
        }
        sleep(ms(5)).await.unwrap();
        for task in &mut both {
            task.cancel().await.unwrap();
        }
    };
    kernel.run(main).unwrap();
    kernel.shutdown().unwrap();
    lines.take()
}

#[test]
fn a_circle_that_is_over_at_the_end_is_told_with_the_line_that_closed_it() {
    let lines = undone();
    let warned = lines.lines().find(|line| line.contains(" warn ")).unwrap();
    let (_, words) = warned.split_once(" warn     ").unwrap();
    let wait = lines.lines().skip_while(|line| !line.contains(" warn ")).nth(1).unwrap();
    let seq = wait.split_whitespace().nth(2).unwrap();
    assert!(wait.contains(" held-by="), "{wait}");
    let said = idle(&lines, Look::default(), 9).unwrap();
    let (_, told) = said.split_once(&format!("on ({seq}): ")).unwrap();
    let mut told: Vec<_> = told.lines().take(3).map(str::trim).collect();
    // The kernel begins with the task that has closed the circle.
    told[1..].sort_unstable();
    let mut links: Vec<_> = words.split(": ").nth(1).unwrap().split("; ").collect();
    links.sort_unstable();
    assert_eq!(told, [&["deadlock of 2 tasks:"][..], &links].concat(), "{said}");
    let there = idle(&lines, at("1ms"), 9).unwrap();
    assert!(there.contains("deadlock of 2 tasks:\n") && !there.contains("Over now"), "{there}");
    assert!(summary(&lines).contains(&format!("on ({seq}): deadlock of 2 tasks:\n")));
    let found = deadlock(&read(&lines));
    assert_eq!((found.is_hang, found.tasks, found.circles.len()), (false, 0, 1));
    assert!(found.words.starts_with("deadlock of 2 tasks from 0.000000 s on, over now:\n"));
    assert_eq!(head_of(&page(&read(&lines)))["hung"], 0);
}

#[test]
fn a_wake_that_reached_no_task_is_told_of_who_waits_later() {
    let (lines, _) = hang(async {
        let (more, flag) = (Condition::named("more"), Flag::named("flag"));
        let (value, queue) = (Mutex::new(()), WaitQueue::new());
        let its_queue = queue.clone();
        let signal = async move {
            more.notify_one();
            its_queue.wake(1);
            flag.set();
            flag.clear();
            (more, flag)
        };
        let (more, flag) = spawn("signal", signal).await.join().await.unwrap();
        let waits =
            join3(async { more.wait(&mut value.lock().await?).await }, queue.wait(), flag.wait());
        waits.await
    });
    let seq = |part: &str| {
        let line =
            lines.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}"));
        line.split_whitespace().nth(2).unwrap().to_owned()
    };
    let said = idle(&lines, Look::default(), 9).unwrap();
    let trace = read(&lines);
    let shown = state::state(&trace, trace.len() - 1, PLAIN);
    let below = tree(&lines, Look::default(), 9).unwrap();
    for (op, what, words) in [
        ("condition more", "condition more", "condition more"),
        ("wait q2", "queue q2", "a wake in queue q2"),
        ("event flag", "event flag", "event flag"),
    ] {
        let notify = seq(&format!("signal   notify   {op} woke=0"));
        let told = why(&trace, notify.trim_start_matches('#').parse().unwrap());
        let began = format!("Task 3 `signal` notified {what}, and no task waited there, in a run");
        assert!(told.starts_with(&began), "{told}");
        let lost = format!("last notified at {notify} by task 3, which woke no task");
        assert!(said.contains(words) && said.contains(&format!(", {lost}")), "{said}");
        assert!(below.contains(&lost), "{below}");
        let wait = seq(&format!("await    {op} ")).trim_start_matches('#').parse().unwrap();
        assert!(why(&trace, wait).contains(&format!("{words}, {lost}")), "{op}");
        assert!(shown.contains(&format!("{op}  waiting: 2 main; {lost}\n")), "{shown}");
    }
    let raw = state::raw(&trace, trace.len() - 1);
    assert!(raw.contains("\nnotified condition more #"), "{raw}");
}

#[test]
fn idle_follows_a_lock_from_hand_to_hand() {
    let (left, right) = (lock("left"), lock("right"));
    let main = async move {
        let holder = take(&left).await.unwrap();
        let (its_left, its_right) = (left.clone(), right.clone());
        let next = spawn("next", async move {
            take(&its_left).await?;
            take(&its_right).await
        });
        let mut next = next.await;
        let its_left = left.clone();
        let last = spawn("last", async move {
            take(&right).await?;
            take(&its_left).await
        });
        last.detached().await;
        yield_now().await.unwrap();
        // Both wait for the lock, and their lines say that main holds it.
        left.release(holder);
        left.give_permit();
        next.join().await
    };
    let (lines, said) = hang(main);
    let trace = read(&lines);
    let all = self::lines(&trace);
    let block = all.iter().rfind(|line| line.op() == "lock left" && line.verb == "block");
    assert_eq!(block.unwrap().key("held-by"), Some("2"));
    let said_of_it = why(&trace, block.unwrap().seq);
    let taken = "held by task 2 `main`, who took it at examples/trace/tests/all/tool.rs:";
    assert!(said_of_it.contains(taken), "{said_of_it}");
    assert_eq!(circles(&lines), said);
    assert!(said.contains("\n 4 last waits for lock left, held by 3 next\n"), "{said}");
    let said = idle(&lines, Look::default(), 9).unwrap();
    let taken =
        " last  lock left, held by task 3 `next`, who took it at examples/trace/tests/all/tool.rs:";
    assert!(said.contains(taken), "{said}");
}

#[test]
fn who_has_a_deadline_is_in_no_circle_of_idle() {
    let ran = testing::run(async {
        let lock = lock("left");
        take(&lock).await.unwrap();
        timeout_after(ms(1), take(&lock)).await.is_err()
    });
    let end = ran.trace.find("   0 kernel   fire ").and_then(|at| ran.trace[..at].rfind('\n'));
    let waits = &ran.trace[..=end.unwrap()];
    assert_eq!(circles(waits), "");
    let for_ever = waits.replace(" until=", " was=");
    assert!(circles(&for_ever).starts_with("deadlock of 1 task:"), "{waits}");
}

#[test]
fn why_and_task_say_a_primitive_in_words() {
    let ran = testing::run(async {
        let few = WaitQueue::with_permits(6).described("semaphore", "few");
        for _ in 0..3 {
            take(&few).await.unwrap();
        }
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let theirs = few.clone();
            let hold = async move {
                let holder = take(&theirs).await.unwrap();
                sleep(ms(5)).await.unwrap();
                theirs.release(holder);
                theirs.give_permit();
            };
            tasks.push(spawn("taker", hold).await);
        }
        for mut task in tasks {
            task.join().await.unwrap();
        }
    });
    let trace = read(&ran.trace);
    let lines = self::lines(&trace);
    let block = lines.iter().find(|line| line.key("held-by") == Some("2,3,4,5")).unwrap();
    let said = why(&trace, block.seq);
    let waits = " to wait for semaphore few, held by tasks 2 `main`, 3 `taker`, 4 \
                 `taker` and 5 `taker`";
    assert!(said.contains(waits), "{said}");
    let is_wake = |line: &&Line<'_>| line.verb == "wake" && line.number("k") == block.number("k");
    let wake = lines.iter().find(is_wake).unwrap();
    assert!(why(&trace, wake.seq).contains(
        " for semaphore few, held by tasks 2 `main`, 3 `taker`, 4 `taker` and 5 `taker`"
    ));
    let end = ran.trace.find(&block.to_string()).unwrap() + block.to_string().len();
    let cut = read(&ran.trace[..=end]);
    let said = life::task(&cut, &Now::of(&cut), cut.find(&block.task.to_string())[0], PLAIN);
    assert!(
        said.contains(": in semaphore few, held by tasks 2 `main`, 3 `taker`, 4 `taker` and 5"),
        "{said}"
    );
    assert_eq!(
        trace_tool::model::tasks_in_words("2,3,4,5,..", &|_| None),
        "tasks 2, 3, 4, 5 and others"
    );
}

/// Two branches with spans that overlap, a span inside, a note; and a task that is cancelled.
fn spans() -> Trace {
    let ran = testing::run(async {
        let stuck = span("stuck", WaitQueue::new().wait());
        spawn("left", stuck).detached().await;
        let long = span("long", async {
            note("half \"way\"");
            span("inner", sleep(ms(2))).await
        });
        join(span("short", sleep(ms(1))), long).await.1
    });
    read(&ran.trace)
}

#[test]
fn spans_and_notes_are_in_the_pictures() {
    let trace = spans();
    let of = |line: usize| trace.line(line).event().to_owned();
    let found: Vec<_> =
        trace.spans.iter().map(|span| (span.task, of(span.from), of(span.to))).collect();
    let own = |name| (2, format!("enter    {name}"), format!("leave    {name}"));
    assert_eq!(found[..3], [own("short"), own("long"), own("inner")]);
    assert_eq!((found.len(), found[3].0), (4, 3), "{found:?}");
    let events = perfetto(&trace);
    let named = |name: &str| events.iter().find(|event| event["name"] == name).unwrap();
    let lane = |name: &str| named(name)["tid"].as_u64().unwrap();
    assert_eq!((named("half \"way\"")["ph"].as_str(), lane("half \"way\"")), (Some("i"), 2));
    assert!(lane("short") != lane("long") && lane("long") == lane("inner"), "one inside another");
    let turns = trace.spans.iter().find(|span| span.name == "inner");
    let turns = turns.map(|span| trace.turn(span.to) - trace.turn(span.from)).unwrap();
    let long = named("inner")["dur"].as_u64().unwrap();
    assert!(long.abs_diff(1_000 * turns) < 1_000, "a turn is a millisecond: {long}, {turns}");
    let head = head_of(&page(&trace));
    assert_eq!(head["notes"][0][1], "half \"way\"");
    assert_eq!(head["spans"].as_array().unwrap().len(), trace.spans.len());
}

#[test]
fn lanes_fit_a_page_and_say_when_each_task_ran() {
    for name in goldens() {
        let trace = named(&name);
        let said = self::lanes(&trace, 60);
        assert!(said.lines().skip(1).all(|line| line.len() <= 60), "{name}\n{said}");
        for task in trace.tasks() {
            let ran = trace.pieces(task).iter().any(|piece| piece.state == State::Run);
            let lane = format!("{:>3} {}", task.id, task.name);
            let marks: String = said
                .lines()
                .filter(|line| line.starts_with(&lane))
                .map(|line| &line[lane.len()..])
                .collect();
            assert!(!ran || marks.contains(['#', 'x']), "{name}: {lane}\n{said}");
        }
    }
}

#[test]
fn diff_finds_the_first_event_that_differs_and_nothing_in_the_same() {
    let trace = named("nested");
    assert_eq!(diff::diff(&trace, &trace, PLAIN), None);
    let other =
        golden("nested").replacen("sleep 0.9s until=1.300000", "sleep 0.8s until=1.200000", 1);
    let said = diff::diff(&trace, &read(&other), PLAIN).unwrap();
    assert!(said.contains("`main` differs"), "{said}");
    let marked: Vec<_> = said.lines().filter(|line| line.starts_with('>')).collect();
    assert!(marked[0].contains("sleep 0.9s") && marked[1].contains("sleep 0.8s"), "{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("  ")).count(), 12, "three around each");
    let shorter = golden("nested").lines().take(20).collect::<Vec<_>>().join("\n");
    assert!(diff::diff(&trace, &read(&shorter), PLAIN).is_some());
}

#[test]
fn a_bad_line_is_reported_by_its_number_and_the_rest_is_read() {
    let text = golden("hello").replacen("spawn    parent=2", "spawned  parent=2", 1) + "no line\n";
    let trace = read(&text);
    let said = trace.whole.faults();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].ends_with("expected a verb from the list, found `spawned`"), "{said:?}");
    assert!(said[1].contains("expected the kernel time"), "{said:?}");
    assert!(trace.len() > 15);
    let old = Trace::read(b"#trace v1 clock=real seed=0\n".to_vec(), |_| {});
    let old = old.unwrap_err().to_string();
    assert_eq!(
        old,
        "line 1, column 8: expected v3, found `v1 clock=real seed=0`: this tool reads no other \
         version"
    );
}

/// The faults of a log, as the tool and the page report them.
fn faults(text: &str) -> Vec<String> {
    let trace = read(text);
    let faults = trace.whole.faults();
    let page = head_of(&page(&trace))["faults"].clone();
    assert_eq!(page, Value::from(faults.clone()));
    faults
}

#[test]
fn what_is_missing_in_a_log_is_told_with_its_place() {
    for name in goldens() {
        assert_eq!(faults(&golden(&name)), [""; 0], "{name}");
    }
    let text = golden("hello");
    let lines = text.split_inclusive('\n').filter(|line| !line.starts_with("# "));
    let lines: Vec<_> = lines.map(str::to_owned).collect();
    let without = |from: usize, to: usize| [&lines[..from], &lines[to..]].concat().concat();
    let said = faults(&without(1, 5));
    assert_eq!(said, ["line 2: the first event is #0005, so earlier lines are missing"]);
    let said = faults(&without(5, 8));
    assert_eq!(said, ["line 6: #0008 follows #0004, so 3 lines are missing"]);
    let killed = "the log ends at #0009 without a `halt` line: its program ended before \
                  `Kernel::shutdown`, as with `kernel.run(..)??` if main fails, or it was killed, \
                  or it could not write the rest";
    assert_eq!(faults(&without(10, lines.len())), [killed]);
    let cut = &without(10, lines.len()).trim_end().to_owned()[..];
    let rest = "line 10, column ";
    assert!(faults(cut)[0].starts_with(rest), "what is left of a line is none");
    assert!(faults(cut)[0].ends_with("expected the rest of the line, found the end of the line"));
    let twice = lines.concat().repeat(2);
    let again = format!(
        "line {}: #0001 follows #{:04}, so another log begins here or lines are in another order",
        lines.len() + 2,
        self::lines(&read(&lines.concat())).last().unwrap().seq
    );
    assert_eq!(faults(&twice)[0], again);
    let mut swapped = lines.clone();
    swapped.swap(8, 9);
    assert_eq!(faults(&swapped.concat()).len(), 3, "one line missing, one too early, one missing");
    let garbage = [&lines[..9], &["\u{fffd}]\n".repeat(20)], &lines[9..]].concat().concat();
    let said = faults(&garbage);
    assert_eq!(said.len(), 11, "ten places, and the number of the others\n{said:?}");
    assert_eq!(said[10], "and 10 more faults of this kind");
    let back = golden("hello").replacen("       3  #0012", "       1  #0012", 1);
    assert!(faults(&back).iter().any(|fault| fault.contains("turn ")), "{back}");
    let mut whole = read(&without(10, lines.len())).whole;
    whole.grows();
    assert_eq!(whole.faults(), [""; 0], "a log that is being written needs no end");
}

#[test]
fn the_perfetto_file_has_a_slice_for_each_piece_and_both_ends_of_each_flow() {
    for name in goldens() {
        let trace = named(&name);
        let events = perfetto(&trace);
        let of = |ph: &str| events.iter().filter(|event| event["ph"] == ph).collect::<Vec<_>>();
        let of_category = |category: &str| {
            let slices = of("X").into_iter().filter(|slice| slice["cat"] == category);
            slices.collect::<Vec<_>>()
        };
        let pieces: usize = trace.tasks().map(|task| trace.pieces(task).len()).sum();
        let lives = ["run", "ready", "blocked"].map(|category| of_category(category).len());
        assert_eq!(lives.iter().sum::<usize>(), pieces, "{name}");
        let lines = lines(&trace);
        let outside = lines.iter().filter(|line| ["arrive", "fire"].contains(&line.verb));
        assert_eq!(of_category("outside").len(), outside.count(), "{name}");
        assert_eq!(of_category("scope").len(), scopes(&trace).len(), "{name}");
        assert_eq!(of_category("span").len(), trace.spans.len(), "{name}");
        let tracks = of("M").into_iter().filter(|event| event["name"] == "thread_name");
        let tracks: BTreeSet<_> = tracks.map(|track| track["tid"].as_u64()).collect();
        assert!(of("X").iter().all(|slice| tracks.contains(&slice["tid"].as_u64())), "{name}");
        let number = |event: &Value, key: &str| event[key].as_u64().unwrap();
        let ends = |ph| {
            let mut ends = of(ph);
            ends.sort_by_key(|event| number(event, "id"));
            ends
        };
        let ids = |ph| ends(ph).iter().map(|event| number(event, "id")).collect::<Vec<_>>();
        assert_eq!(ids("s"), ids("f"), "{name}: every flow has both ends");
        assert!(ids("s").is_sorted_by(|a, b| a < b), "{name}: each has a number of its own");
        for (start, end) in ends("s").into_iter().zip(ends("f")) {
            assert!(number(start, "ts") <= number(end, "ts"), "{name}");
        }
        for task in trace.tasks().map(|task| task.id) {
            let slices = of("X").into_iter().filter(|slice| slice["tid"] == task);
            let mut end = 0;
            for slice in slices.filter(|slice| slice["cat"] != "outside") {
                assert!(number(slice, "ts") >= end, "{name}: slices of a lane nest");
                end = number(slice, "ts") + number(slice, "dur");
            }
        }
        let counters = of("C");
        let times: Vec<_> = counters.iter().map(|counter| number(counter, "ts")).collect();
        assert!(times.is_sorted_by(|a, b| a < b), "{name}: a counter a moment");
        let counts: Vec<_> = counters.iter().map(|counter| &counter["args"]).collect();
        assert!(counts.windows(2).all(|pair| pair[0] != pair[1]), "{name}: only what changes");
    }
}

#[test]
fn a_flow_of_perfetto_leads_from_the_slice_of_its_cause_to_the_slice_of_its_effect() {
    let mut count = 0;
    for name in goldens() {
        let trace = named(&name);
        let mut events = perfetto(&trace);
        // As the importer of Perfetto does: sort by time, keep the order of equals, and bind an end
        // to the last slice of its track.
        events.sort_by_key(|event| event["ts"].as_u64());
        let mut last = BTreeMap::<u32, u64>::new();
        let mut ends = BTreeMap::<u64, [u64; 2]>::new();
        for event in &events {
            let track = || u32::try_from(event["tid"].as_u64().unwrap()).unwrap();
            let seq = || event["args"]["seq"].as_str().unwrap()[1..].parse().unwrap();
            match event["ph"].as_str().unwrap() {
                "X" if event["cat"] != "lock" => drop(last.insert(track(), seq())),
                ph @ ("s" | "f") => {
                    let slice = last.get(&track()).copied().unwrap_or_default();
                    let id = event["id"].as_u64().unwrap();
                    ends.entry(id).or_default()[usize::from(ph == "f")] = slice;
                }
                _ => {}
            }
        }
        for (effect, [from, to]) in ends {
            let effect = effect as usize;
            let cause = match trace.verb(effect) {
                "run" => trace.cause(effect).and_then(|wake| trace.cause(wake)).unwrap(),
                _ => trace.place(trace.line(effect).cause.unwrap()).unwrap(),
            };
            assert_eq!(to, trace.seq(effect), "{name}");
            // The piece of the task that has the line, or the line of the kernel.
            let task = trace.task_of(cause);
            let is_in = |piece: &&trace_tool::model::Piece| {
                let is_last = task.end == Some(piece.to) || piece.to == trace.len() - 1;
                piece.from <= cause && (cause < piece.to || is_last && cause == piece.to)
            };
            let piece = trace.pieces(task).iter().rfind(is_in).map(|piece| piece.from);
            let slice = trace.seq(piece.unwrap_or(cause));
            assert_eq!(from, slice, "{name}: the flow to #{to:04}");
            count += 1;
        }
    }
    assert!(count > 1000, "{count}");
}

/// The names of the slices of a file, by category.
fn names(events: &[Value]) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let slices = events.iter().filter(|event| event["ph"] == "X");
    slices.map(|slice| (text(&slice["cat"]), text(&slice["name"]))).collect()
}

#[test]
fn the_slices_of_perfetto_have_few_names_and_runs_take_turns_on_the_virtual_clock() {
    let program = |count: u64| {
        testing::run(async move {
            let lock = lock("door");
            take(&lock).await.unwrap();
            for n in 0..count {
                let theirs = lock.clone();
                let waits = async move { timeout_after(ms(1 + n), take(&theirs)).await };
                spawn(format!("t{n}"), waits).detached().await;
            }
            sleep(ms(count + 9)).await.unwrap();
        })
    };
    let [few, many] = [2, 40].map(|count| perfetto(&read(&program(count).trace)));
    assert_eq!(names(&few), names(&many), "what differs is in the arguments");
    let expected = [
        ("blocked", "io read"),
        ("blocked", "lock door"),
        ("blocked", "sleep"),
        ("lock", "held by main"),
        ("outside", "fire sleep"),
        ("outside", "fire timeout"),
        ("ready", "ready"),
        ("run", "run"),
        ("scope", "timeout"),
    ];
    let expected = expected.map(|(category, name)| (category.to_owned(), name.to_owned()));
    assert_eq!(names(&few), BTreeSet::from(expected));
    let held: Vec<_> = many.iter().filter(|event| event["cat"] == "lock").collect();
    assert_eq!((held.len(), &held[0]["args"]["waits"]), (1, &Value::from(40)), "one slice for all");
    let runs = many.iter().filter(|event| event["cat"] == "run");
    assert!(runs.clone().count() > 80);
    assert!(runs.into_iter().all(|run| run["dur"].as_u64().unwrap() > 0), "a run takes a time");
}

#[test]
fn a_link_from_a_waiter_to_a_holder_lasts_as_long_as_both() {
    let ran = testing::run(async {
        let lock = lock("door");
        let holder = take(&lock).await.unwrap();
        let mut tasks = Vec::new();
        for name in ["next", "last"] {
            let theirs = lock.clone();
            let hold = async move {
                let holder = take(&theirs).await.unwrap();
                sleep(ms(5)).await.unwrap();
                theirs.release(holder);
                theirs.give_permit();
            };
            tasks.push(spawn(name, hold).await);
        }
        sleep(ms(5)).await.unwrap();
        lock.release(holder);
        lock.give_permit();
        for mut task in tasks {
            task.join().await.unwrap();
        }
    });
    let trace = read(&ran.trace);
    let of = |place| (trace.verb(place), trace.task_of(place).id);
    let found = links(&trace);
    let found = found.iter().map(|link| (of(link.wait), link.holder, of(link.from), of(link.to)));
    let (next, last) = (("block", 3), ("block", 4));
    let expected = [
        (next, 2, next, ("wake", 3)),
        (last, 2, last, ("wake", 3)),
        (last, 3, ("wake", 3), ("wake", 4)),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected, "from hand to hand\n{}", ran.trace);
}

#[test]
fn a_page_asks_the_network_for_nothing_and_knows_its_tasks_and_its_clock() {
    let trace = named("nested");
    let page = self::page(&trace);
    assert!(!page.contains("{{") && !page.contains("http://") && !page.contains("https://"));
    assert!(!page.contains(" src=") && !page.contains("@import"));
    let head = head_of(&page);
    assert_eq!(head["count"], trace.len());
    let names: Vec<_> = trace.tasks().map(|task| Value::from(&*task.name)).collect();
    let theirs = head["tasks"].as_array().unwrap().iter().map(|task| task[1].clone());
    assert_eq!(theirs.collect::<Vec<_>>(), names);
    assert_eq!(head["clock"], "virtual");
    let real = golden("nested").replacen("clock=virtual", "clock=real", 1);
    assert_eq!(head_of(&self::page(&read(&real)))["clock"], "real");
}

/// The text of a page before its columns of numbers. A test in a browser, which reads the columns,
/// checks that they yield the lines again, to the byte.
fn head_of(page: &str) -> Value {
    let data = page.split("id=\"data\" type=\"text/plain\">").nth(1).unwrap();
    let packed = BASE64_STANDARD.decode(data.split("</script>").next().unwrap()).unwrap();
    let mut bytes = Vec::new();
    DeflateDecoder::new(&*packed).read_to_end(&mut bytes).unwrap();
    let digits = bytes.iter().take_while(|byte| **byte > 127).count() + 1;
    let size =
        bytes[..digits].iter().rev().fold(0, |size, byte| size << 7 | usize::from(byte & 127));
    serde_json::from_slice(&bytes[digits..digits + size]).unwrap()
}

#[test]
fn a_page_gets_the_files_that_the_log_names_if_they_are_texts_below_the_directory() {
    let top = std::env::temp_dir().join(format!("trapline-sources-{}", std::process::id()));
    let dir = top.join("below");
    fs::create_dir_all(dir.join("src")).unwrap();
    for (name, bytes) in [
        ("below/src/a.rs", &b"fn a() {}"[..]),
        ("below/src/unnamed.rs", b""),
        ("below/binary.rs", b"\0"),
        ("below/latin.rs", b"\xe9"),
        ("below/long.rs", &vec![b' '; 300 << 10]),
        ("beside.rs", b"not below"),
    ] {
        fs::write(top.join(name), bytes).unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(top.join("beside.rs"), dir.join("link.rs")).unwrap();
    let beside = top.join("beside.rs");
    let names = ["src/a.rs", "src", "binary.rs", "latin.rs", "long.rs", "none.rs", "link.rs"];
    let mut text = String::from("#trace v3 clock=virtual seed=0 tick=0.3s\n");
    for name in names.into_iter().chain(["../beside.rs", beside.to_str().unwrap()]) {
        let seq = text.lines().count();
        text +=
            &format!(" 0.000000       0  #{seq:04}   2 main     spawn    parent=- at={name}:1\n");
    }
    let trace = read(&text);
    let files = sources(&trace, &dir).unwrap();
    assert_eq!(
        files.iter().collect::<Vec<_>>(),
        [(&"src/a.rs".to_owned(), &"fn a() {}".to_owned())]
    );
    assert_eq!(head_of(&page_with(&trace, &files))["sources"]["src/a.rs"], "fn a() {}");
    let error = sources(&trace, &dir.join("src/a.rs")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read ") && error.contains("src/a.rs: "), "{error}");
    fs::remove_dir_all(top).unwrap();
}

#[test]
fn a_page_of_many_lines_is_small() {
    // Eight connections that take turns, 12,000 lines.
    let mut text = String::from("#trace v3 clock=real seed=0 tick=0.3s\n");
    let mut seq = 0;
    let mut put = |task: u64, what: &str, micros: u64| {
        seq += 1;
        let name = format!("conn-{task}");
        let at = Time::ZERO + std::time::Duration::from_micros(micros);
        text += &format!("{at:>9} {:>7}  #{seq:04} {task:>3} {name:<8} {what}\n", micros / 100);
        seq
    };
    let mut causes: Vec<u64> = (3..11).map(|task| put(task, "spawn    parent=-", 0)).collect();
    for round in 1..500_u64 {
        for task in 3..11 {
            let (at, nth) = (round * 1_000 + task * 37, task as usize - 3);
            let cause = causes[nth];
            put(task, &format!("run      cause=#{cause:04}"), at);
            put(task, &format!("block    io c{task} read k={}", round * 8 + task), at + 5 * task);
            causes[nth] = put(task, &format!("wake     io c{task} read"), at + 11 * task);
        }
    }
    let trace = read(&text);
    assert_eq!(trace.len(), 8 + 499 * 24);
    let [full, empty] =
        [trace, read(text.split_inclusive('\n').nth(1).unwrap())].map(|trace| page(&trace).len());
    assert!(
        full - empty < 10 * text.lines().count(),
        "10 MB for 1,000,000 lines, {}",
        full - empty
    );
}

// ---- Line by line -------------------------------------------------------------------------------

/// The lines of a server with three connections: two wait in a phase, and the third has ended.
pub const SERVER: &str = "\
#trace v3 clock=real seed=0 tick=0.3s
 0.000000       1  #0001   2 main     spawn    parent=-
 0.000000       1  #0002   2 main     run      cause=#0001
 0.000000       1  #0003   2 main     accept   l1 = c1 peer=127.0.0.1:53211
 0.000000       1  #0004   2 main     accept   l1 = c2 peer=127.0.0.1:53212
 0.000000       1  #0005   3 conn-1   spawn    parent=2 at=serve.rs:9
 0.000000       1  #0006   4 conn-2   spawn    parent=2 at=serve.rs:9
 0.000000       1  #0007   5 conn-3   spawn    parent=2 at=serve.rs:9
 0.000000       1  #0008   2 main     block    io l1 read k=1 reg=new at=serve.rs:7
 1.000000       2  #0009   3 conn-1   run      cause=#0005
 1.000000       2  #0010   3 conn-1   trap     connection_deadline = d1
 1.000000       2  #0011   3 conn-1   arm      d1 until=6.000000 phase=keep-alive at=connection.rs:5
 1.000000       2  #0012   3 conn-1   arm      d1 until=11.000000 phase=head at=connection.rs:5
 1.000000       2  #0013   3 conn-1   block    io c1 read k=2 reg=new at=connection.rs:5
 1.000000       2  #0014   4 conn-2   run      cause=#0006
 1.000000       2  #0015   4 conn-2   trap     connection_deadline = d2
 1.000000       2  #0016   4 conn-2   arm      d2 until=6.000000 phase=linger at=closing.rs:5
 1.000000       2  #0017   4 conn-2   block    io c2 read k=3 reg=new at=closing.rs:5
 1.000000       2  #0018   5 conn-3   run      cause=#0007
 1.000000       2  #0019   6 probe    spawn    parent=5
 1.000000       2  #0020   5 conn-3   exit     ok cause=#0018
 4.000000       3  #0021   0 kernel   disarm   d2
 4.000000       3  #0022   6 probe    run      cause=#0019
 4.000000       3  #0023   6 probe    await    io c3 read k=4 reg=new at=probe.rs:2
 4.000000       3  #0024   6 probe    await    sleep 9s until=13.000000 k=5 at=probe.rs:3
 4.000000       3  #0025   6 probe    block    parked n=2
";

#[test]
fn a_tree_shows_each_task_below_its_parent_with_what_it_does_and_where() {
    let end = "\
4 tasks at the end of the trace (4.000000 s)
├─ 2 main  waits 4s at serve.rs:7 for a connection at l1
│  ├─ 3 conn-1 127.0.0.1:53211  head: waits 3s at connection.rs:5 for bytes on c1
│  └─ 4 conn-2 127.0.0.1:53212  waits 3s at closing.rs:5 for bytes on c2
└─ 6 probe  waits 0s at probe.rs:2, probe.rs:3 for bytes on c3 or the end of its sleep \
     of 9s (until 13.000000) (task 5, its parent, has ended)
";
    assert_eq!(tree(SERVER, Look::default(), 9).unwrap(), end);
    let said = tree(SERVER, at("1.5"), 1).unwrap();
    let middle = "\
4 tasks at 1.500000 s
├─ 2 main  waits 1.5s at serve.rs:7 for a connection at l1
│  ├─ 3 conn-1 127.0.0.1:53211  head: waits 0.5s at connection.rs:5 for bytes on c1
│  └─ and 1 more conn-*: 0 running, 0 ready, 1 waiting
└─ 6 probe  ready for 0.5s (task 5, its parent, has ended)
";
    assert_eq!(said, middle);
}

#[test]
fn idle_says_the_peer_and_the_phase_of_a_connection() {
    let said = idle(SERVER, at("1500ms"), 9).unwrap();
    assert!(said.starts_with("Waiting at 1.500000 s:\n"), "{said}");
    for row in [
        "0.5s  1.000000  #0013   3  conn-1 127.0.0.1:53211  head: bytes on c1 ",
        "0.5s  1.000000  #0017   4  conn-2 127.0.0.1:53212  linger: bytes on c2 ",
    ] {
        assert!(said.contains(row), "{said}");
    }
    let said = idle(SERVER, Look::default(), 2).unwrap();
    assert!(said.contains(" conn-1 127.0.0.1:53211  head: bytes on c1 "), "{said}");
    assert!(said.contains("  and 2 more; `-n 4` shows them\n"), "{said}");
    let said = tally(SERVER).tasks(Order::Id, PLAIN);
    assert!(said.contains("  conn-1  in io (head) ") && said.contains("in io or sleep"), "{said}");
}

#[test]
fn idle_counts_to_now_while_a_process_writes_the_trace_and_says_which_it_did() {
    let look = || Look::new(None, Some(Writer { pid: 7, ago: ms(12_000) }));
    let said = idle(SERVER, look(), 9).unwrap();
    let first = "Waiting now (16.000000 s), 12s after the last event; process 7 is writing the \
                 trace:";
    assert_eq!(said.lines().next(), Some(first));
    assert!(said.contains("\n  16s  0.000000  #0008 "), "{said}");
    // A kernel that has ended writes no more, even if a process has the file open.
    let halt =
        " 5.000000       4  #0026   0 kernel   halt     tasks=4 tickets=5 timers=1 handles=3";
    let said = idle(&format!("{SERVER}{halt}\n"), look(), 9).unwrap();
    assert!(said.starts_with("Waiting at the end of the trace (5.000000 s):\n"), "{said}");
    let now = Look::new(Some(time("16s").unwrap()), Some(Writer { pid: 7, ago: ms(12_000) }));
    assert!(idle(SERVER, now, 9).unwrap().starts_with("Waiting at 16.000000 s:\n"));
    let late = idle(SERVER, at("16"), 9).unwrap_err();
    assert_eq!(late, "expected a time up to 4.000000 s, when it ends, not 16.000000");
    let wrong = time("noon").unwrap_err();
    assert_eq!(wrong, "expected a time of the trace such as 3.25 or 250ms, not `noon`");
}

#[test]
fn a_wait_for_a_queue_names_the_queue() {
    let wait = |op| {
        let text =
            format!("{SERVER} 4.000000       3  #0026   6 probe    {op} k=6 at=probe.rs:9\n");
        let said = tally(&text).tasks(Order::Id, PLAIN);
        (idle(&text, Look::default(), 9).unwrap(), said)
    };
    let (idle, tasks) = wait("await    queue_get jobs");
    assert!(idle.contains(" or an item of queue jobs  "), "{idle}");
    assert!(tasks.contains(" or queue_get jobs  "), "{tasks}");
    assert!(wait("await    queue_put q3").0.contains(" or room in queue q3  "));
}

#[test]
fn idle_stops_where_a_run_failed() {
    let text = format!("{SERVER} 5.000000       4  #0026   2 main     drop     its_run_failed\n");
    let said = idle(&text, Look::default(), 9).unwrap();
    assert!(said.starts_with("Waiting when the run failed (4.000000 s):\n"), "{said}");
}

#[test]
fn many_tasks_that_have_ended_have_a_row_for_each_family_of_names() {
    let mut text = String::new();
    for n in 0..=ENDED as u64 {
        let (seq, task) = (3 * n, n + 2);
        let name = if n == 0 { "main".to_owned() } else { format!("conn-{n}") };
        for (nth, what) in ["spawn    parent=-", "run      cause=#0001", "exit     ok cause=#0001"]
            .into_iter()
            .enumerate()
        {
            let (at, seq) = (n + nth as u64, seq + nth as u64);
            text += &format!("{at}.000000 {n} #{seq} {task} {name} {what}\n");
        }
        if n + 2 == ENDED as u64 {
            let each = tally(&text);
            assert_eq!(each.rows().len(), ENDED - 1, "so many have a row each");
        }
    }
    let said = tally(&text).tasks(Order::Id, PLAIN);
    let rows: Vec<_> = said.lines().map(|row| row.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!(rows[2].join(" "), format!("{} tasks have ended; by name", ENDED + 1));
    let all = ENDED.to_string();
    let (span, none) = (format!("{all}s"), "0s");
    assert_eq!(rows[4], [&*all, "conn-*", "ended", &all, "-", &span, &span, none, "-"], "{said}");
    assert_eq!(rows[5], ["1", "main", "ended", "1", "-", "1s", "1s", none, "-"], "{said}");
}

/// A log of connections that come and go, 100 at a time: a line at a time, none is kept.
fn connections(count: u64, mut line: impl FnMut(&Line<'_>)) {
    let mut seq = 0;
    let mut say = |task: u64, what: &str| {
        seq += 1;
        let text = format!("1.000000 1 #{seq} {task} conn-{task} {what}");
        line(&testing::trace::line(&text).unwrap());
    };
    for n in 2..count {
        say(n, "spawn parent=- at=serve.rs:9");
        say(n, "run cause=#0001");
        say(n, &format!("trap connection_deadline = d{n}"));
        say(n, &format!("trap set_timeout 1s until=2.000000 = s{n} at=serve.rs:10"));
        say(n, &format!("arm d{n} until=2.000000 phase=head"));
        say(n, &format!("accept l1 = c{n} peer=127.0.0.1:{n}"));
        say(n, &format!("io c{n} read = 64"));
        say(n, &format!("await sleep 1s until=2.000000 k={n}1"));
        say(n, &format!("await mutex m held-by={n} k={n}2"));
        say(n, "block parked n=2");
        if n > 100 {
            let old = n - 100;
            say(old, &format!("wake sleep k={old}1 cause=#0001"));
            say(old, "run cause=#0001");
            say(old, &format!("disarm d{old}"));
            say(old, "exit ok cause=#0001");
        }
    }
}

/// A task spawns the next one and waits for its end, and so on.
fn generations(count: u64) -> String {
    let (mut text, mut seq) = (String::new(), 0);
    let mut say = |task: u64, what: &str| {
        seq += 1;
        text += &format!("1.000000 {} #{seq:04} {task} gen-{task} {what}\n", task - 1);
        seq
    };
    let mut cause = say(2, "spawn parent=-");
    for task in 2..count + 2 {
        say(task, &format!("run cause=#{cause:04}"));
        let child = task + 1;
        say(task, &format!("trap spawn gen-{child} = {child}"));
        cause = say(child, &format!("spawn parent={task}"));
        say(task, &format!("block join {child} k={task}"));
    }
    text
}

/// The cost of a tree and of a search for circles grows with the number of tasks, not with its
/// square. With the square, this test would be noticeably slow.
#[test]
fn a_deep_tree_is_as_wide_as_a_page() {
    const COUNT: u64 = 20_000;
    let text = generations(COUNT);
    let said = tree(&text, Look::default(), 9).unwrap();
    assert_eq!(said.lines().count() as u64, COUNT + 2, "a row for each, and a head");
    assert!(said.lines().all(|row| row.chars().count() < 160));
    let row = |depth: u64| said.lines().nth(depth as usize + 1).unwrap();
    assert!(row(24).starts_with(&format!("{}└─ 26 gen-26 ", "   ".repeat(24))));
    assert!(row(25).starts_with(&format!("{}└─ (depth 25) 27 gen-27 ", "   ".repeat(24))));
    assert_eq!(circles(&text), "", "the last one can go on");
}

#[test]
fn a_whole_trace_keeps_less_than_its_text() {
    let text = golden("echo_two_clients");
    let mut long = String::new();
    let mut seq = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')).cycle().take(20_000) {
        seq += 1;
        let (before, after) = line.split_once('#').unwrap();
        let after = after.split_once(' ').unwrap().1;
        long += &format!("{before}#{seq:06} {after} at=a/file/with/a/long/name.rs:{seq}\n");
    }
    let size = long.len();
    let input = long.into_bytes();
    let mut trace = None;
    let kept = allocation_counter::measure(|| trace = Trace::read(input, |_| {}).ok());
    let (kept, lines) = (kept.bytes_current as usize, trace.unwrap().len());
    assert_eq!(lines, 20_000);
    assert!(kept < 100 * lines && kept < size, "{} bytes a line", kept / lines);
}

#[test]
#[should_panic = "rule: the text of a trace does not change: unexpected end of file"]
fn a_text_that_becomes_shorter_breaks_a_rule() {
    #[derive(Debug)]
    struct Cut(Vec<u8>, Rc<Cell<usize>>);
    impl Text for Cut {
        fn length(&self) -> u64 {
            self.0.length()
        }

        fn read_at(&self, bytes: &mut [u8], from: u64) -> io::Result<usize> {
            (&self.0[from as usize..self.1.get()]).read(bytes)
        }
    }
    let text = golden("hello").into_bytes();
    let left = Rc::new(Cell::new(text.len()));
    let trace = Trace::read(Cut(text, left.clone()), |_| {}).unwrap();
    left.set(left.get() - 1);
    trace.line(trace.len() - 1);
}

#[test]
fn what_the_commands_keep_does_not_grow_with_the_log() {
    fn most(count: u64, mut line: impl FnMut(&Line<'_>)) -> u64 {
        allocation_counter::measure(|| connections(count, &mut line)).bytes_max
    }
    fn keeps<T>(name: &str, new: impl Fn() -> T, line: impl Fn(&mut T, &Line<'_>)) {
        // The second is three times as long, with the same number of tasks alive at a time.
        let [short, long] = [1_500, 4_500].map(|count| {
            let mut command = new();
            most(count, |each| line(&mut command, each))
        });
        assert!(short > 10_000, "{name}: {short} bytes are no state of 100 tasks");
        assert!(long < short + short / 100, "{name}: {short} bytes, then {long}");
    }
    keeps("state", KernelState::default, |state, line| state.line(line));
    keeps("idle", || Idle::new(Look::default(), 9), Idle::line);
    keeps("tree", || Tree::new(Look::default(), 9), Tree::line);
    keeps("slow", || Slow::new(9), Slow::line);
    keeps("tasks", Tally::default, |tally, line| tally.line(line));
    keeps("summary", Summary::default, Summary::line);
}

/// The trace of a program, with the measured times or without.
fn traced(is_timed: bool) -> String {
    let (lines, mut kernel) = (Rc::<RefCell<String>>::default(), Kernel::new(Sim::new()));
    if is_timed {
        kernel.time_the_trace();
    }
    let theirs = lines.clone();
    kernel.observe(move |line: &kernel::trace::Line<'_>| {
        *theirs.borrow_mut() += &format!("{line}\n");
    });
    let main = async {
        let (listener, socket) = (Io::new(Played(1, 'l')), Io::new(Played(2, 'c')));
        listener.note_accept(&socket, || Some(([127, 0, 0, 1], 53211).into()));
        let mut child = spawn("child", sleep(ms(5))).await;
        let slept = timeout_after(ms(1), sleep(ms(9))).await;
        child.join().await.unwrap().unwrap();
        slept.is_err()
    };
    assert!(kernel.run(main).unwrap());
    kernel.shutdown().unwrap();
    lines.take()
}

#[test]
fn diff_ignores_what_a_timed_trace_adds() {
    let [stable, timed] = [false, true].map(traced);
    for word in [" ran=", " waited=", " late=", " peer=", " boot "] {
        assert!(timed.contains(word) && !stable.contains(word), "{word} {timed}");
    }
    let [stable, timed] = [stable, timed].map(|text| read(&text));
    assert_eq!(diff::diff(&stable, &timed, PLAIN), None);
    assert_eq!(diff::diff(&timed, &stable, PLAIN), None);
}

/// A log on the real clock, not timed. Task 3 holds the CPU for 0.1 s in each of three runs, and
/// task 4 reads the clock after each of them. Without `longrun` lines, the log does not show which
/// task ran.
fn burnt(has_long_runs: bool) -> String {
    let mut text = "\
#trace v3 clock=real seed=0 tick=0.3s
 0.000000       0  #0001   1 wakeup   spawn    parent=-
 0.000000       0  #0002   3 busy     spawn    parent=- at=a.rs:1
 0.000000       0  #0003   4 innocent spawn    parent=- at=a.rs:2
"
    .to_owned();
    let (mut seq, mut causes) = (3, [2, 3]);
    let mut line = |at: &str, turn: u64, task: u64, event: &str| {
        seq += 1;
        let name = if task == 3 { "busy" } else { "innocent" };
        text += &format!("{at} {turn} #{seq:04} {task} {name} {event}\n");
        seq
    };
    let times = ["0.000000", "0.100000", "0.200000", "0.300000"];
    for (turn, at) in times.windows(2).enumerate() {
        let (turn, k) = (turn as u64 + 1, 2 * turn as u64 + 1);
        line(at[0], turn, 3, &format!("run      cause=#{:04}", causes[0]));
        let block = line(at[0], turn, 3, &format!("block    yield k={k} at=a.rs:5"));
        if has_long_runs {
            line(at[0], turn, 3, "longrun  ran=0.100000 from=yield@a.rs:5 to=yield@a.rs:5");
        }
        causes[0] = line(at[0], turn, 3, &format!("wake     yield k={k} cause=#{block:04}"));
        line(at[0], turn, 4, &format!("run      cause=#{:04}", causes[1]));
        let sleep = format!("block    sleep 0s until={} k={} at=a.rs:9", at[1], k + 1);
        let block = line(at[1], turn, 4, &sleep);
        causes[1] = line(at[1], turn, 4, &format!("wake     sleep k={} cause=#{block:04}", k + 1));
    }
    text
}

#[test]
fn no_run_gets_the_time_that_another_task_burnt() {
    let cells = |said: &str, task: &str| -> Vec<String> {
        let row = said.lines().find(|row| row.split_whitespace().nth(1) == Some(task)).unwrap();
        row.split_whitespace().map(str::to_owned).collect()
    };
    for (has_long_runs, busy) in [(true, ["0.3s", "0.0s"]), (false, ["-", "0.0s"])] {
        let text = burnt(has_long_runs);
        let tasks = tally(&text).tasks(Order::Id, PLAIN);
        assert_eq!(tasks.lines().next().unwrap().split_whitespace().nth(5), Some("unknown"));
        assert_eq!(cells(&tasks, "busy")[4..6], busy, "{tasks}");
        assert_eq!(cells(&tasks, "innocent")[4..6], ["-", "0.3s"], "{tasks}");
        assert!(tasks.contains("`Kernel::time_the_trace`"), "{tasks}");
        let said = summary(&text);
        assert_eq!(cells(&said, "innocent")[3..5], ["-", "100.0%"], "{said}");
        let trace = read(&text);
        let life = life::task(&trace, &Now::of(&trace), trace.find("innocent")[0], PLAIN);
        assert!(life.contains("\n  run                 -\n  unknown          0.3s"), "{life}");
        let said = slow(&text, 5);
        let runs = said.split("Longest waits").next().unwrap();
        assert!(!runs.contains("innocent"), "{said}");
        assert_eq!(runs.matches("busy").count(), if has_long_runs { 3 } else { 0 }, "{said}");
        // By the times of its lines, task 3 was ready while it ran.
        let is_ready = said.contains("made the task ready\n  none took any time");
        assert_eq!(is_ready, has_long_runs, "{said}");
        let run = lines(&trace).into_iter().filter(|line| line.verb == "run").nth(2).unwrap();
        let said = why(&trace, run.seq);
        let ready = " Task 3 `busy` had been ready for 0.1s: 1 task ran first, and the log is not \
                     timed and does not say for how long.";
        assert_eq!((run.task, said.contains(ready)), (3, !has_long_runs), "{said}");
        assert_eq!(said.contains(" had been ready"), !has_long_runs, "{said}");
        let slices = perfetto(&trace);
        let of =
            |task: u64| slices.iter().filter(move |it| it["cat"] == "run" && it["tid"] == task);
        assert_eq!(of(4).count(), 3);
        assert!(of(4).all(|run| run["name"] == "run of unknown length"), "{slices:?}");
        let longs = of(3).filter(|run| run["args"]["ran"] == "0.1s").count();
        assert_eq!(longs, if has_long_runs { 3 } else { 0 }, "{slices:?}");
    }
}

#[test]
fn slow_says_that_it_needs_a_timed_trace() {
    let [stable, timed] = [false, true].map(traced);
    let said = slow(&stable, 3);
    assert!(said.starts_with("This trace is not timed: ") && said.contains("`--timed`"), "{said}");
    assert!(
        slow(&format!("#trace v3 clock=virtual seed=0 tick=0.3s\n{stable}"), 3)
            .starts_with("On the ")
    );
    assert!(slow(&timed, 3).starts_with("Longest runs"));
}

#[test]
fn waits_that_begin_together_are_told_together() {
    let ran = testing::run(async {
        let beside = join(sleep(ms(1)), sleep(ms(3)));
        spawn("beside", beside).await.join().await.unwrap()
    });
    let trace = read(&ran.trace);
    let lines = self::lines(&trace);
    let first = lines.iter().find(|line| line.verb == "await").unwrap();
    let said = why(&trace, first.seq);
    let begins = " to wait for the end of its sleep of 1ms ";
    assert!(said.contains(begins) && said.contains(" and ran on"), "{said}");
    let wake = lines.iter().find(|line| line.verb == "wake" && line.task == 3).unwrap();
    assert!(why(&trace, wake.seq).contains("for the end of its sleep of 1ms"), "{said}");
    let [first, second] = ["0.0005", "0.002"].map(|time| tree(&ran.trace, at(time), 9).unwrap());
    let [sleep_1, sleep_3] = [1, 3].map(|n| format!("the end of its sleep of {n}ms"));
    assert!(first.contains(&sleep_1) && first.contains(&sleep_3), "{first}");
    assert!(!second.contains(&sleep_1) && second.contains(&sleep_3), "{second}");
}

// ---- The page "Reading a trace" -----------------------------------------------------------------

/// A socket with clients that follow a script.
struct Played(u32, char);

impl Source for Played {
    fn descriptor(&self) -> Descriptor {
        Descriptor::Scripted(self.0)
    }
    fn kind(&self) -> char {
        self.1
    }
    fn into_owner(self) -> Option<traps::internal::fd::OwnedFd> {
        None
    }
}

/// An echo server with two clients: one sends two messages, the other one and then nothing.
#[test]
fn an_echo_server_with_two_clients() {
    let at = |millis| Time::ZERO + ms(millis);
    let arrives = [(10, 1), (20, 2), (30, 1), (40, 3), (60, 2)];
    let sim = arrives.into_iter().fold(Sim::new(), |sim, (millis, socket)| {
        sim.ready_at(at(millis), socket, Direction::Read)
    });
    let ran = support::check("echo_two_clients", sim, async {
        let listener = Io::new(Played(1, 'l'));
        let mut connections = Vec::new();
        for number in 1..=2 {
            listener.readable().await.unwrap();
            let socket = Io::new(Played(1 + number, 'c'));
            listener.note_accept(&socket, || None);
            let echo = async move {
                while timeout_after(ms(100), socket.readable()).await.is_ok() {
                    socket.note(Direction::Read, 64);
                    socket.note(Direction::Write, 64);
                }
            };
            connections.push(spawn(format!("conn-{number}"), echo).await);
        }
        for mut connection in connections {
            connection.join().await.unwrap();
        }
    });
    assert_eq!(ran.count("io"), 6, "three messages, read and written");
    assert_eq!((ran.count("accept"), ran.count("arrive")), (2, 5));
}

/// The blocks of the page: the remark in front of each, and the text. Other remarks have no block.
fn blocks(page: &str) -> Vec<(String, String)> {
    let has_block = |part: &&str| !part.starts_with("source: ") && !part.starts_with("play: ");
    let parts = page.split("<!-- ").skip(1).filter(has_block);
    parts
        .map(|part| {
            let (what, rest) = part.split_once(" -->\n```text\n").expect("a remark, then a block");
            let (block, _) = rest.split_once("```").expect("a block ends");
            (what.to_owned(), block.to_owned())
        })
        .collect()
}

#[test]
fn the_page_says_what_the_traces_and_the_tool_say() {
    let page = include_str!("../../../../kernel/src/guide/reading.md");
    assert_eq!(blocks(page).len(), page.matches("```text").count(), "a block without its remark");
    for (what, block) in blocks(page) {
        let words: Vec<&str> = what.split(' ').collect();
        let name = words[words.len() - 1];
        let trace = named(name);
        let said = match words[0] {
            "golden:" => {
                let lines = golden(name);
                lines.lines().filter(|line| !line.starts_with("# ")).collect::<Vec<_>>().join("\n")
            }
            "why" => why(&trace, words[1].parse().unwrap()),
            "lanes" => self::lanes(&trace, 100),
            "idle" => idle(&golden(name), Look::default(), 3).unwrap(),
            "tree" => tree(&golden(name), at(words[1]), 20).unwrap(),
            "task" => life::task(&trace, &Now::of(&trace), trace.find(words[1])[0], PLAIN),
            other => panic!("`{other}` is no command of this page"),
        };
        if std::env::var_os("SHOW").is_some() {
            println!("<!-- {what} -->\n{said}");
        }
        assert!(said.contains(block.trim_end()), "{what}:\n{block}\nnot in\n{said}");
    }
}

#[test]
fn a_task_that_yielded_ran_because_it_had_yielded() {
    let text = "\
#trace v3 clock=virtual seed=0 tick=0.3s
 0.000000       0  #0001   2 main     spawn    parent=- at=a.rs:1
 0.000000       1  #0002   2 main     run      cause=#0001
 0.000000       1  #0003   2 main     block    yield k=1 at=a.rs:2
 0.000000       1  #0004   2 main     wake     yield k=1 cause=#0003
 0.000000       2  #0005   2 main     run      cause=#0004 parked=0s k=1 = ok
";
    let said = "Task 2 `main` ran because it had yielded at a.rs:2 until the next turn.";
    assert_eq!(why(&read(text), 5).lines().next(), Some(said));
}

#[test]
fn the_answer_in_the_readme_is_that_of_the_tool() {
    let readme = include_str!("../../../../README.md");
    let (what, rest) =
        readme.split_once("<!-- why ").expect("a question").1.split_once(" -->\n").unwrap();
    let (number, name) = what.split_once(' ').unwrap();
    let quoted: Vec<&str> = rest.lines().map_while(|line| line.strip_prefix("> ")).collect();
    let said = why(&named(name), number.parse().unwrap());
    assert_eq!(said.lines().next(), Some(quoted.join(" ").as_str()));
}

#[test]
fn a_scope_reaches_from_its_opening_to_its_closing_and_says_how_it_was_left() {
    let trace = named("nested");
    let left: Vec<_> = scopes(&trace)
        .iter()
        .map(|scope| (trace.seq(scope.from), trace.seq(scope.to), scope.left))
        .collect();
    let expected = [
        (6, 15, Left::Interrupt),
        (7, 14, Left::Deadline),
        (8, 13, Left::Interrupt),
        (16, 27, Left::Deadline),
        (17, 22, Left::Deadline),
    ];
    assert_eq!(left, expected, "three at once, then two");
    for name in goldens() {
        let trace = named(&name);
        for scope in scopes(&trace) {
            let (from, to) = (trace.line(scope.from), trace.line(scope.to));
            let closes = to.verb == "trap" && to.words().nth(1) == from.outcome();
            assert_eq!(closes, scope.left != Left::Open, "{name}: {from}");
        }
    }
}

#[test]
fn each_wait_of_a_join_is_there_with_its_end() {
    let trace = named("x10_timeouts_in_a_foreign_join");
    let of_line = |place: usize| (trace.verb(place), trace.line(place).number("k"));
    let ended: Vec<_> = waits(&trace).iter().map(|wait| (of_line(wait.to), wait.ended)).collect();
    let hit = |ticket| (("deliver", Some(ticket)), Ended::Timeout);
    assert_eq!(ended, [hit(1), hit(2)]);
    // A race: the waits of the slower branch are withdrawn. A race in progress is open.
    let text = "\
 0.000000       0  #0001   2 main     spawn    parent=-
 0.000000       1  #0002   2 main     run      cause=#0001
 0.000000       1  #0003   2 main     block    sleep 1s until=1.000000 k=1
 0.000000       1  #0004   2 main     block    io c1 read k=2 reg=new
 0.250000       2  #0005   0 kernel   arrive   c1 read
 0.250000       2  #0006   2 main     wake     io c1 read k=2 cause=#0005
 0.250000       2  #0007   2 main     run      cause=#0006 parked=0.25s k=2 = ok
 0.250000       2  #0008   2 main     withdraw k=1
 0.250000       2  #0009   2 main     block    join 3 k=3
 0.300000       3  #0010   3 other    cancel   by=- = delivered
";
    let ended: Vec<_> =
        waits(&read(text)).iter().map(|wait| (wait.from, wait.to, wait.ended)).collect();
    let expected = [(2, 7, Ended::Withdrawn), (3, 5, Ended::Well), (8, 9, Ended::Open)];
    assert_eq!(ended, expected);
}

#[test]
fn a_timer_is_late_by_what_the_line_says_or_by_its_time() {
    let text = "\
 0.000000       1  #0001   2 main     block    sleep 1s until=1.000000 k=1
 1.000300       2  #0002   0 kernel   fire     k=1 deadline=1.000000 cause=#0001
 2.000000       3  #0003   2 main     block    sleep 1s until=3.000000 k=2
 3.000000       4  #0004   0 kernel   fire     k=2 deadline=3.000000 cause=#0003
 4.000000       5  #0005   2 main     block    sleep 1s until=5.000000 k=3
 5.002000       6  #0006   0 kernel   fire     k=3 deadline=5.000000 cause=#0005 late=2ms
";
    let late: Vec<_> = lates(&read(text)).iter().map(|l| (l.set, l.fired, l.micros)).collect();
    assert_eq!(late, [(0, 1, 300), (4, 5, 2000)]);
}

/// The rows of the state at a line, in the form of `trace state`.
fn state_at(name: &str, seq: u64) -> String {
    let trace = named(name);
    let text = state::state(&trace, trace.place(seq).unwrap(), PLAIN);
    let (_, rows) = text.split_once("\n\n").unwrap();
    rows.to_owned()
}

#[test]
fn state_shows_who_waits_in_which_scopes_and_which_timers_are_next() {
    let nested = "\
has the CPU      * no task
parked           * 2 main  since 0.000000, #0009
                     s1 set_timeout until 0.500000 at examples/nested.rs:16, #0006
                     s2 set_timeout until 0.400000 in s1 at examples/nested.rs:17, #0007
                     s3 set_timeout until 0.700000 in s2 at examples/nested.rs:18, #0008
                 *   k=1 sleep 2s until 2.000000 in s3 at examples/nested.rs:18, #0009
timers             0.400000  s2 of 2 main, #0007
                   0.500000  s1 of 2 main, #0006
                   0.700000  s3 of 2 main, #0008
                 * 2.000000  k=1 of 2 main, #0009
";
    assert_eq!(state_at("nested", 9), nested);
    let hello = "\
has the CPU        no task
ready this turn  * 3 child  since 0.500000, #0012
parked             2 main  since 0.000000, #0008
                     k=1 sleep 1s until 1.000000 at examples/hello.rs:16, #0008
timers             1.000000  k=1 of 2 main, #0008
gone             * k=2 sleep 0.5s until=0.500000 #0010
";
    assert_eq!(state_at("hello", 12), hello);
}

#[test]
fn state_begins_with_the_line_and_the_sentence_of_why() {
    let trace = named("hello");
    let text = state::state(&trace, trace.place(13).unwrap(), PLAIN);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(&*line_at(&trace, trace.place(13).unwrap()).to_string()));
    assert_eq!(lines.next(), why(&trace, 13).lines().next());
}

#[test]
fn a_line_or_a_time_is_found_and_an_error_says_what_was_expected() {
    let trace = named("hello");
    let seq = |text: &str| place(&trace, line_or_time(text)?).map(|at| line_at(&trace, at).seq);
    for (text, found) in [("12", 12), ("#0012", 12), ("0.5", 14), ("250ms", 10), ("0.0", 10)] {
        assert_eq!(seq(text), Ok(found), "{text}");
    }
    assert_eq!(line_or_time("1"), Ok(At::Line(1)));
    for (text, error) in [
        ("x", "expected the number of an event such as 812, or a time such as 0.5, not `x`"),
        ("99", "there is no event 99; expected one from 1 to 20"),
        ("7.5", "expected a time from 0.000000 s to 1.000000 s, not 7.500000"),
    ] {
        assert_eq!(seq(text), Err(error.to_owned()), "{text}");
    }
}

#[test]
fn a_walk_back_and_forth_shows_the_same_states() {
    // Longer than the distance between two states that a walk keeps.
    let mut text = String::new();
    connections(400, |line| text += &format!("{line}\n"));
    let trace = read(&text);
    assert!(count(&trace) > 2048, "{} lines", count(&trace));
    let mut states = Vec::new();
    let mut state = KernelState::default();
    for at in 0..count(&trace) {
        state.line(&line_at(&trace, at));
        states.push(state.to_string());
    }
    let mut walk = Walk::new(&trace);
    let last = states.len() - 1;
    for place in [3, 4, 5, 4, 3, last, 0, 2048, 2047, 1500, 1024, 1023, last + 9, 1025, 1025] {
        walk.to(place);
        let place = place.min(last);
        assert_eq!(walk.place(), place);
        assert_eq!(walk.after().to_string(), states[place], "{place}");
        let before =
            if place == 0 { KernelState::default().to_string() } else { states[place - 1].clone() };
        assert_eq!(walk.before().to_string(), before, "{place}");
    }
}

#[test]
fn keys_lead_to_lines_runs_and_turns() {
    let trace = named("hello");
    let from = |seq: u64, way: Go| line_at(&trace, go(&trace, trace.place(seq).unwrap(), way)).seq;
    for (seq, way, to) in [
        (5, Go::Line(1), 6),
        (5, Go::Line(-1), 4),
        (1, Go::Line(-1), 1),
        (20, Go::Line(1), 20),
        (4, Go::Run(1), 5),
        (8, Go::Run(-1), 5),
        (18, Go::Run(1), 18),
        (4, Go::Turn(1), 9),
        (12, Go::Turn(-1), 11),
        (11, Go::Turn(-1), 9),
        (9, Go::First, 1),
        (9, Go::Last, 20),
    ] {
        assert_eq!(from(seq, way), to, "#{seq:04} {way:?}");
    }
}

#[test]
fn a_screen_has_its_size_and_what_is_new_is_on_it() {
    let trace = named("x3_an_interrupt_that_ends_a_race_is_delivered_once");
    let mut debugger = Debugger::new(&trace, 0);
    for place in 0..count(&trace) {
        for size in [(100, 30), (60, 12), (20, 5), (3, 1)] {
            let shown = debugger.screen(size, PLAIN);
            let rows: Vec<&str> = shown.split("\r\n").collect();
            assert!(rows.len() == size.1, "{place} {size:?}\n{shown}");
            assert!(rows.iter().all(|row| row.chars().count() <= size.0.max(20)), "{shown}");
        }
        debugger.key(Key::Go(Go::Line(1)));
    }
    // The sentence is complete if the state leaves rows for it.
    let said = |place| state::head(&trace, place, PLAIN).lines().nth(1).unwrap().to_owned();
    let longest = (0..count(&trace)).max_by_key(|place| said(*place).len()).unwrap();
    let sentence = said(longest);
    assert!(sentence.len() > 120, "{sentence}");
    let shown = Debugger::new(&trace, longest).screen((40, 40), PLAIN);
    let words: Vec<_> = shown.split_whitespace().collect();
    assert!(words.join(" ").contains(&sentence), "{shown}");
    // One connection of many changes, so it is on the screen, wherever its row is.
    let mut text = String::new();
    connections(40, |line| text += &format!("{line}\n"));
    let trace = read(&text);
    let mut debugger = Debugger::new(&trace, 0);
    let mut walk = Walk::new(&trace);
    for place in 0..count(&trace) {
        walk.to(place);
        let shown = debugger.screen((100, 24), PLAIN);
        let new = state::rows(walk.after()).into_iter().filter(|row| row.is_new);
        let missing =
            new.filter(|row| !shown.contains(&row.text[..row.text.len().min(81)])).count();
        assert_eq!(missing, 0, "{place}\n{shown}");
        debugger.key(Key::Go(Go::Line(1)));
    }
}

#[test]
fn without_a_terminal_step_prints_each_line_and_what_it_changes() {
    let mut text = String::new();
    let print = |part: &str| {
        text += part;
        Ok(())
    };
    step::plain(&named("nested"), print).unwrap();
    let fire = "\
 0.400000       2  #0010   0 kernel   fire     s2 deadline=0.400000 cause=#0007
    + pending s2
    - timer 0.400000 s2
 0.400000       2  #0011 ";
    assert!(text.contains(fire), "{text}");
    let lines = text.lines().filter(|line| !line.starts_with("    "));
    assert!(lines.eq(golden("nested").lines().filter(|line| !line.starts_with('#'))));
}
