//! The reducer on small logs.

use traps::Time;

use super::{Doing, JobDoing, State, View};
use crate::trace::line;

/// The state at the end of a log.
fn at_end(log: &str) -> State {
    let mut state = State::default();
    log.lines().for_each(|text| state.line(&line(text).unwrap()));
    state
}

#[test]
fn the_text_has_a_line_for_each_row_in_the_order_of_its_keys() {
    let state = at_end(
        "\
 0.000000       0  #0001   1 wakeup   spawn    parent=-
 0.000000       0  #0002   2 main     spawn    parent=- at=a.rs:1
 0.000000       1  #0003   1 wakeup   run      cause=#0001
 0.000000       1  #0004   1 wakeup   block    io e1 read
 0.000000       1  #0005   2 main     run      cause=#0002
 0.000000       1  #0006   3 child    spawn    parent=2 at=a.rs:2
 0.000000       1  #0007   2 main     trap     set_timeout 2s until=2.000000 = s1 at=a.rs:3
 0.000000       1  #0008   2 main     block    sleep 1s until=1.000000 k=1 at=a.rs:4",
    );
    let text = "\
0.000000 turn 1
next 3
2 main parked since=0.000000
  s1 set_timeout #0007 until=2.000000
  k=1 sleep 1s until=1.000000 #0008 in=s1
3 child ready since=0.000000
timer 1.000000 k=1
timer 2.000000 s1
";
    assert_eq!(state.to_string(), text);
    let rows = state.keys(View::Whole).into_iter().map(|key| state.row(&key).unwrap());
    assert!(rows.eq(text.lines().map(|line| line.trim_start().to_owned())));
}

/// Makes a log of a task that runs from #0003 on. Each text is a verb and a detail, for the task
/// with that number.
fn log(lines: &[(u64, &str)]) -> State {
    let mut state = at_end(
        " 0.000000 0 #0001 2 main spawn parent=- at=a.rs:1
 0.000000 1 #0002 2 main run cause=#0001",
    );
    for (seq, (task, text)) in (3..).zip(lines) {
        let name = if *task == 1 { "wakeup" } else { "user" };
        state.line(&line(&format!("0.500000 1 #{seq:04} {task} {name} {text}")).unwrap());
    }
    state
}

/// The rows that begin with one of these words.
fn rows(state: &State, words: &[&str]) -> Vec<String> {
    let rows = state.keys(View::Whole).into_iter().map(|key| state.row(&key).unwrap());
    rows.filter(|row| words.iter().any(|word| row.starts_with(word))).collect()
}

const TWO_BRANCHES: [(u64, &str); 6] = [
    (2, "trap set_timeout 1s until=1.000000 = s1 at=a.rs:2"),
    (2, "trap branch = s2 at=a.rs:3"),
    (2, "await sleep 9s until=9.000000 k=1 at=a.rs:4"),
    (2, "trap branch in=s1 = s3 at=a.rs:3"),
    (2, "await sleep 8s until=8.000000 k=2 at=a.rs:4"),
    (2, "block parked n=2"),
];

fn two_branches_and(lines: &[(u64, &str)]) -> State {
    log(&[&TWO_BRANCHES[..], lines].concat())
}

#[test]
fn a_wait_is_in_the_scope_that_the_line_names_or_in_the_one_opened_last() {
    let state = two_branches_and(&[]);
    let scopes = ["s1 set_timeout #0003 until=1.000000", "s2 branch #0004 in=s1"];
    assert_eq!(rows(&state, &["s1", "s2"]), scopes);
    assert_eq!(rows(&state, &["s3"]), ["s3 branch #0006 in=s1"]);
    let waits =
        ["k=1 sleep 9s until=9.000000 #0005 in=s2", "k=2 sleep 8s until=8.000000 #0007 in=s3"];
    assert_eq!(rows(&state, &["k="]), waits);
    let state = log(&[
        (2, "trap shield = s1 at=a.rs:2"),
        (2, "block sleep 1s until=1.000000 k=1 in=root at=a.rs:3"),
    ]);
    assert_eq!(rows(&state, &["k="]), ["k=1 sleep 1s until=1.000000 #0004"]);
}

#[test]
fn a_scope_that_fires_is_pending_at_itself_and_at_each_branch_inside() {
    let state = two_branches_and(&[(0, "fire s1 deadline=1.000000 cause=#0003")]);
    assert_eq!(rows(&state, &["pending"]), ["pending s1", "pending s1 in=s2", "pending s1 in=s3"]);
    assert_eq!(rows(&state, &["timer"]), ["timer 8.000000 k=2", "timer 9.000000 k=1"]);
    let inner = [(2, "trap shield in=s2 = s4 at=a.rs:6"), (2, "trap branch = s5 at=a.rs:7")];
    let fire = (0, "fire s2 deadline=1.000000 cause=#0003");
    let state = two_branches_and(&[inner[0], inner[1], fire]);
    assert_eq!(rows(&state, &["pending"]), ["pending s2", "pending s2 in=s5"]);
}

#[test]
fn an_interrupt_that_is_taken_is_gone_from_the_way_to_its_source() {
    let fire = (0, "fire s1 deadline=1.000000 cause=#0003");
    let deliver = (2, "deliver k=1 = !timeout scope=s1 cause=#0009");
    let state = two_branches_and(&[fire, deliver]);
    assert_eq!(rows(&state, &["pending"]), ["pending s1 in=s3"]);
    assert_eq!(rows(&state, &["k="]), ["k=2 sleep 8s until=8.000000 #0007 in=s3"]);
    let trap = "trap sleep 1s until=2.0 in=s2 = !timeout scope=s1 cause=#0009 at=a.rs:9";
    let run = (2, "run cause=#0008");
    let state = two_branches_and(&[fire, run, (2, trap)]);
    assert_eq!(rows(&state, &["pending"]), ["pending s1 in=s3"]);
    let busy = "trap io c1 read in=s2 = !busy at=a.rs:9";
    assert_eq!(rows(&two_branches_and(&[fire, run, (2, busy)]), &["pending"]).len(), 3);
    let cancel = (2, "cancel by=- cause=#0002 = pending");
    assert_eq!(rows(&two_branches_and(&[cancel, run, (2, busy)]), &["pending root"]).len(), 3);
    let held = "trap check_cancellation in=s2 = !timeout scope=s1 at=a.rs:9";
    assert_eq!(rows(&two_branches_and(&[fire, run, (2, held)]), &["pending"]).len(), 3);
}

#[test]
fn a_cancellation_is_pending_at_the_task_and_at_each_branch() {
    let cancel = (2, "cancel by=- cause=#0002 = pending");
    let state = two_branches_and(&[cancel]);
    let places = ["pending root", "pending root in=s2", "pending root in=s3"];
    assert_eq!(rows(&state, &["pending"]), places);
    let deliver = (2, "deliver k=1 = !cancelled by=- cause=#0009");
    assert_eq!(rows(&two_branches_and(&[cancel, deliver]), &["pending"]), places[2..]);
    let again = (2, "cancel by=- cause=#0002 = again");
    assert_eq!(rows(&two_branches_and(&[again]), &["pending"]), [""; 0]);
}

#[test]
fn a_cleanup_makes_an_interrupt_pending_at_its_place() {
    let state = two_branches_and(&[
        (2, "cleanup root = !cancelled by=-"),
        (2, "cleanup root in=s3 = !cancelled by=-"),
        (2, "cleanup s1 = !timeout scope=s1"),
        (2, "cleanup s9 = !timeout scope=s9"),
    ]);
    assert_eq!(rows(&state, &["pending"]), ["pending root", "pending root in=s3", "pending s1"]);
}

#[test]
fn a_scope_that_closes_takes_what_is_pending_and_leaves_what_is_inside() {
    let fire = (0, "fire s1 deadline=1.000000 cause=#0003");
    let state = two_branches_and(&[fire, (2, "trap unbranch s2 = ok")]);
    assert_eq!(rows(&state, &["pending"]), ["pending s1", "pending s1 in=s3"]);
    assert_eq!(rows(&state, &["k=1"]), ["k=1 sleep 9s until=9.000000 #0005 in=s1"]);
    // Only a timeout makes the timeouts around it pending again.
    let taken = (2, "deliver k=1 = !timeout scope=s1 cause=#0009");
    let state = two_branches_and(&[fire, taken, (2, "trap unbranch s2 = ok")]);
    assert_eq!(rows(&state, &["pending"]), ["pending s1 in=s3"]);
    let state = two_branches_and(&[fire, (2, "trap unset_timeout s1 = ok")]);
    assert_eq!(rows(&state, &["pending"]), [""; 0]);
    assert_eq!(rows(&state, &["s"]), ["s2 branch #0004", "s3 branch #0006"]);
}

#[test]
fn a_timeout_that_closes_makes_those_around_it_pending_again_up_to_a_shield() {
    let nested = |between: &'static str| {
        log(&[
            (2, "trap set_timeout 1s until=1.000000 = s1 at=a.rs:2"),
            (2, between),
            (2, "trap set_timeout 2s until=2.000000 = s3 at=a.rs:4"),
            (2, "block sleep 9s until=9.000000 k=1 at=a.rs:5"),
            (0, "fire s1 deadline=1.000000 cause=#0003"),
            (2, "deliver k=1 = !timeout-cancellation scope=s1 cause=#0007"),
            (2, "run cause=#0008 k=1 = !timeout-cancellation scope=s1"),
            (2, "trap unset_timeout s3 = !timeout-cancellation scope=s1"),
        ])
    };
    let set = "trap set_timeout none = s2 at=a.rs:3";
    assert_eq!(rows(&nested(set), &["pending"]), ["pending s1"]);
    let branch = "trap branch = s2 at=a.rs:3";
    assert_eq!(rows(&nested(branch), &["pending"]), ["pending s1 in=s2"]);
    // A branch that was opened later is not a place.
    let later = two_branches_and(&[
        (0, "fire s1 deadline=1.000000 cause=#0003"),
        (2, "deliver k=2 = !timeout scope=s1 cause=#0009"),
        (2, "run cause=#0010 k=2 = !timeout scope=s1"),
        (2, "trap branch in=s1 = s4 at=a.rs:6"),
        (2, "trap set_timeout 2s until=2.000000 = s5 at=a.rs:7"),
        (2, "trap unset_timeout s5 = ok"),
    ]);
    assert_eq!(rows(&later, &["pending"]), ["pending s1", "pending s1 in=s2"]);
    let shield = "trap shield = s2 at=a.rs:3";
    assert_eq!(rows(&nested(shield), &["pending"]), [""; 0]);
}

#[test]
fn a_guard_that_is_armed_again_is_as_new() {
    let guard = [
        (2, "trap connection_deadline = d1"),
        (2, "arm d1 until=1.000000 phase=head"),
        (2, "trap guard d1 = s1 at=a.rs:2"),
    ];
    assert_eq!(rows(&log(&guard), &["armed", "s1"]), ["s1 guard d1 #0005", "armed d1 1.000000"]);
    let fire = (0, "fire d1 deadline=1.000000 cause=#0004");
    let state = log(&[&guard[..], &[fire]].concat());
    assert_eq!(rows(&state, &["armed", "pending"]), ["pending s1"]);
    let state = log(&[&guard[..], &[fire, (2, "arm d1 until=2.000000")]].concat());
    assert_eq!(rows(&state, &["armed", "pending"]), ["armed d1 2.000000"]);
    assert_eq!(state.scopes[&1].fired, None);
    let state = log(&[&guard[..], &[(2, "disarm d1"), (2, "trap unguard s1 = ok")]].concat());
    assert!(state.deadlines.is_empty());
}

#[test]
fn a_wait_or_a_scope_that_moves_is_in_the_scope_that_the_line_names() {
    let state = two_branches_and(&[(2, "move k=1 in=s3"), (2, "move s2 in=s3")]);
    assert_eq!(rows(&state, &["k=1"]), ["k=1 sleep 9s until=9.000000 #0005 in=s3"]);
    assert_eq!(rows(&state, &["s2"]), ["s2 branch #0004 in=s3"]);
    // It makes no circle.
    let state = two_branches_and(&[(2, "move s1 in=s3"), (2, "move k=1 in=root")]);
    assert_eq!(rows(&state, &["s1"]), ["s1 set_timeout #0003 until=1.000000"]);
    assert_eq!(rows(&state, &["k=1"]), ["k=1 sleep 9s until=9.000000 #0005"]);
}

#[test]
fn a_task_that_becomes_ready_after_the_first_run_of_a_turn_is_in_the_next_queue() {
    let mut state = log(&[
        (3, "spawn parent=2 at=a.rs:2"),
        (4, "spawn parent=2 at=a.rs:3"),
        (2, "block yield k=1 at=a.rs:4"),
        (2, "wake yield k=1 cause=#0005"),
    ]);
    assert_eq!(rows(&state, &["cpu", "ready", "next"]), ["next 3 4 2"]);
    for text in ["0.500000 2 #0007 3 t3 run cause=#0003", "0.500000 2 #0008 5 t5 spawn parent=3"] {
        state.line(&line(text).unwrap());
    }
    assert_eq!(rows(&state, &["cpu", "ready", "next"]), ["cpu 3", "ready 4 2", "next 5"]);
    // A ready task keeps its place, and a running one continues.
    for text in [
        "0.500000 2 #0009 4 t4 wake waker cause=#0007",
        "0.500000 2 #0010 3 t3 wake waker cause=#7",
    ] {
        state.line(&line(text).unwrap());
    }
    assert_eq!(rows(&state, &["cpu", "ready", "next"]), ["cpu 3", "ready 4 2", "next 5"]);
    assert_eq!(state.tasks[&3].doing, Doing::Running);
    state.line(&line("0.500000 2 #0011 2 t2 exit dropped cause=#0007").unwrap());
    assert_eq!(rows(&state, &["cpu", "ready", "next"]), ["cpu 3", "ready 4", "next 5"]);
}

#[test]
fn timers_of_one_time_stand_in_the_order_in_which_they_fire() {
    let state = log(&[
        (2, "trap set_timeout 1s until=1.000000 = s1 at=a.rs:2"),
        (2, "trap set_timeout 2s until=1.000000 = s2 at=a.rs:2"),
        (2, "await sleep 0s until=0.500000 k=1 at=a.rs:3"),
        (2, "await sleep 9s until=1.000000 k=2 at=a.rs:4"),
        (2, "await sleep 9s until=0.900000 k=3 at=a.rs:4"),
        (2, "await sleep never until=never k=4 at=a.rs:4"),
        (0, "phase drain holds=1 until=1.000000"),
    ]);
    let timers = [
        "timer 0.900000 k=3",
        "timer 1.000000 k=2",
        "timer 1.000000 s1",
        "timer 1.000000 s2",
        "timer 1.000000 drain",
    ];
    assert_eq!(rows(&state, &["timer"]), timers);
    assert_eq!(rows(&state, &["shutdown"]), ["shutdown drain until=1.000000"]);
}

#[test]
fn a_descriptor_is_shown_while_it_is_registered_waited_for_or_remembered() {
    let waits = [
        (2, "register c1 why=first"),
        (2, "await io c1 read k=1 reg=new at=a.rs:2"),
        (0, "remember c1 write"),
    ];
    assert_eq!(rows(&log(&waits), &["c1"]), ["c1 registered read=2 ready=write"]);
    let taken = [(2, "wake io c1 read k=1 cause=#0005"), (2, "trap io c1 write = ok at=a.rs:3")];
    let state = log(&[&waits[..], &taken].concat());
    assert_eq!(rows(&state, &["c1"]), ["c1 registered"]);
    let closed = [(2, "withdraw k=1"), (2, "unregister c1 why=close")];
    assert!(log(&[&waits[..], &closed].concat()).descriptors.is_empty());
    let other = [(0, "remember c2 read"), (2, "close c2")];
    assert_eq!(rows(&log(&other[..1]), &["c2"]), ["c2 ready=read"]);
    assert!(log(&other).descriptors.is_empty());
}

#[test]
fn a_primitive_is_held_from_its_take_to_its_give() {
    let lines = [
        (2, "take semaphore pool at=a.rs:2"),
        (2, "take semaphore pool at=a.rs:3"),
        (3, "spawn parent=2"),
        (3, "await semaphore pool held-by=2,2 k=1 at=a.rs:4"),
        (2, "give semaphore pool"),
        (3, "wake semaphore pool k=1 cause=#0002"),
        (3, "take semaphore pool at=a.rs:4"),
        (3, "give semaphore pool from=2"),
    ];
    let at = |nth: usize| rows(&log(&lines[..nth]), &["semaphore"]).join("");
    assert_eq!(at(4), "semaphore pool held-by=2 waits=3");
    assert_eq!(at(5), "semaphore pool held-by=2 waits=3");
    assert_eq!(at(7), "semaphore pool held-by=2,3");
    assert_eq!(at(8), "semaphore pool held-by=3");
    let ended = log(&[&lines[..], &[(3, "exit ok cause=#0002")]].concat());
    assert!(ended.primitives.is_empty());
    assert!(!log(&lines[..3]).text(View::Event).contains("semaphore"));
}

#[test]
fn a_job_is_queued_until_a_thread_is_free() {
    let lines = [
        (2, "await offload o1 k=1 at=a.rs:2"),
        (2, "offload o1 running=1 queued=0"),
        (2, "await offload o2 k=2 at=a.rs:2"),
        (2, "offload o2 running=1 queued=1 limiter=disk"),
        (2, "withdraw k=1"),
        (2, "abandon o1"),
    ];
    assert_eq!(rows(&log(&lines), &["job"]), ["job o1 abandoned by=2", "job o2 queued by=2"]);
    let later = [(0, "orphan o1"), (2, "offload o2 starts running=1 queued=0 cause=#0009")];
    let state = log(&[&lines[..], &later].concat());
    assert_eq!(rows(&state, &["job"]), ["job o2 runs by=2"]);
    assert_eq!(
        (state.jobs[&2].doing, state.jobs[&2].limiter.as_deref()),
        (JobDoing::Runs, Some("disk"))
    );
    let next = (2, "offload o3 running=1 queued=0");
    let state = log(&[&lines[..], &[(2, "drop o2"), (0, "done o1"), next]].concat());
    assert_eq!(rows(&state, &["job"]), ["job o3 runs by=2"]);
}

#[test]
fn each_primitive_that_a_task_waits_for_has_a_row_also_universal_ones_and_signals() {
    let waits = ["queue_put q1", "queue_get q1", "event_wait q2", "signal", "wait q3", "own q4"];
    for op in waits {
        let (begin, end) = (format!("block {op} k=1 at=a.rs:3"), format!("wake {op} k=1"));
        assert_eq!(rows(&log(&[(2, &*begin)]), &[op]), [format!("{op} waits=2")]);
        assert_eq!(rows(&log(&[(2, &*begin), (2, &*end)]), &[op]), [""; 0]);
    }
}

#[test]
fn the_last_notification_of_what_a_task_waits_for_has_a_row() {
    let lines = [(2, "notify condition more woke=0"), (2, "block condition more k=1 at=a.rs:3")];
    assert_eq!(rows(&log(&lines[..1]), &["notified"]), [""; 0], "no task waits there yet");
    let row = "notified condition more #0003 by=2 woke=0";
    assert_eq!(rows(&log(&lines), &["notified"]), [row]);
    let notified = [&lines[..], &[(0, "notify condition more woke=1")]].concat();
    let row = "notified condition more #0005 by=0 woke=1";
    assert_eq!(rows(&log(&notified), &["notified"]), [row]);
    let woken = [&notified[..], &[(2, "wake condition more k=1 cause=#0005")]].concat();
    assert_eq!(rows(&log(&woken), &["notified"]), [""; 0]);
}

#[test]
fn messages_are_shown_while_wakeup_runs() {
    let run = (1, "run cause=#0001 messages=3");
    assert_eq!(rows(&log(&[run]), &["cpu", "messages"]), ["cpu 1", "messages 3"]);
    let state = log(&[run, (1, "block io e1 read")]);
    assert_eq!(rows(&state, &["cpu", "messages", "e1"]), [""; 0]);
}

#[test]
fn the_views_of_the_kernel_have_its_rows_alone() {
    let state = two_branches_and(&[(2, "remember c1 read"), (2, "phase drop tasks=1")]);
    let lines = "0.500000 turn 1\n2 main parked since=0.500000\n";
    assert_eq!(state.text(View::Line), lines);
    assert!(state.text(View::Event).contains("  k=1 sleep"));
    assert!(!state.text(View::Event).contains("shutdown"));
}

#[test]
fn a_number_that_goes_back_begins_another_log() {
    let mut state = two_branches_and(&[]);
    state.line(&line("0.000000 0 #0001 2 main spawn parent=- at=a.rs:1").unwrap());
    assert_eq!(state.to_string(), "0.000000 turn 0\nready 2\n2 main ready since=0.000000\n");
    assert!(state.changed().contains(&super::Key::Scope(1)));
}

#[test]
fn what_has_ended_is_forgotten() {
    let mut state = two_branches_and(&[
        (2, "take mutex m at=a.rs:9"),
        (2, "cleanup root = !cancelled by=-"),
        (2, "exit dropped cause=#0002"),
    ]);
    (state.at, state.seq) = (Time::ZERO, None);
    assert_eq!(state.to_string(), "0.000000 turn 1\n");
    assert!(state.scopes.is_empty() && state.waits.is_empty() && state.timers.is_empty());
}

/// Facts that the golden logs state about the kernel, compared with the reducer.
mod golden {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use super::super::{Key, State, TimerName, View};
    use crate::trace::{Line, line};

    /// Shows each golden log, except those of explored runs, line by line, with the state before
    /// each line.
    fn each(mut see: impl FnMut(&str, &State, &Line<'_>)) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden");
        let mut count = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "trace") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            if text.contains("# explored") {
                continue;
            }
            count += 1;
            let name = path.file_name().unwrap().to_str().unwrap();
            let mut state = State::default();
            for text in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
                let line = line(text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
                see(name, &state, &line);
                state.line(&line);
            }
        }
        assert!(count > 100, "{count} logs");
    }

    #[test]
    fn the_task_that_runs_is_the_first_that_is_ready() {
        each(|name, state, line| {
            if line.verb == "run" && line.task != 1 {
                let mut state = state.clone();
                // The first line of a turn appends the next queue to the rest.
                state.line(
                    &crate::trace::line(&format!(
                        "{} {} #{} 0 kernel race -",
                        line.at, line.turn, line.seq
                    ))
                    .unwrap_or_else(|error| panic!("{error}")),
                );
                assert_eq!(state.ready().next(), Some(line.task), "{name}: {line}\n{state}");
            }
        });
    }

    #[test]
    fn the_timer_that_fires_is_the_first() {
        each(|name, state, line| {
            let deadline = line.key("deadline").and_then(|at| at.parse().ok());
            if line.verb != "fire" {
                return;
            }
            if let Some(number) = line.word(0).strip_prefix('d').and_then(|it| it.parse().ok()) {
                assert_eq!(state.deadlines[&number].until, deadline, "{name}: {line}\n{state}");
                assert_eq!(Some(state.deadlines[&number].seq), line.cause, "{name}: {line}");
            } else {
                let first =
                    state.timers.first_key_value().map(|((at, name), seq)| (*at, *name, *seq));
                let (at, timer, seq) = first.unwrap_or_else(|| panic!("{name}: {line}\n{state}"));
                assert_eq!(timer.to_string(), line.word(0), "{name}: {line}\n{state}");
                assert_eq!(Some(at), deadline, "{name}: {line}");
                let is_phase = [TimerName::Drain, TimerName::Grace].contains(&timer);
                assert!(is_phase || Some(seq) == line.cause, "{name}: {line}");
            }
        });
    }

    #[test]
    fn what_is_left_at_the_end_is_what_halt_counts() {
        each(|name, state, line| {
            if line.verb == "halt" {
                let phases = [TimerName::Drain, TimerName::Grace];
                let timers = state.timers.keys().filter(|(_, name)| !phases.contains(name)).count();
                for (key, count) in [
                    ("tasks", state.tasks.len()),
                    ("tickets", state.waits.len()),
                    ("timers", timers + state.armed.len()),
                ] {
                    assert_eq!(line.number(key), Some(count as u64), "{name}: {line}\n{state}");
                }
                assert!(!state.tasks.is_empty() || state.scopes.is_empty(), "{name}: {state}");
            }
            if let Some(tasks) = line.number("tasks").filter(|_| line.verb == "phase") {
                assert_eq!(tasks, state.tasks.len() as u64, "{name}: {line}\n{state}");
            }
        });
    }

    #[test]
    fn an_interrupt_is_pending_before_it_is_taken() {
        let mut fired = BTreeMap::new();
        each(|name, state, line| {
            let outcome = line.outcome().unwrap_or_default();
            if line.verb == "deliver" {
                let scope = state.waits[&line.ticket.unwrap()].scope;
                let source = line.key("scope").map(|it| it[1..].parse().unwrap());
                let task = &state.tasks[&line.task];
                let is_pending = task.pending.iter().any(|pending| {
                    pending.source == source
                        && (pending.place.is_none()
                            || state.way(scope).any(|on| Some(on) == pending.place))
                });
                let is_whole_task = fired.get(&line.cause) == Some(&true);
                assert!(is_pending || is_whole_task, "{name}: {line} {outcome}\n{state}");
            }
            fired.insert(
                Some(line.seq),
                line.verb == "fire"
                    && line.word(0).starts_with('d')
                    && line.word(0)[1..]
                        .parse()
                        .is_ok_and(|it: u64| state.deadlines[&it].guards.is_empty()),
            );
        });
    }

    #[test]
    fn each_row_that_a_line_changes_is_named() {
        let rows = |state: &State| {
            let keys = state.keys(View::Whole).into_iter();
            keys.map(|key| (key.clone(), state.row(&key).unwrap()))
                .collect::<BTreeMap<Key, String>>()
        };
        each(|name, before, line| {
            let mut after = before.clone();
            after.line(line);
            let (old, new) = (rows(before), rows(&after));
            for key in old.keys().chain(new.keys()) {
                let is_named = after.changed().contains(key);
                assert!(is_named || old.get(key) == new.get(key), "{name}: {line}: {key:?}");
            }
        });
    }

    #[test]
    fn no_damage_makes_it_panic() {
        let mut lines: Vec<(String, Line<'static>)> = Vec::new();
        each(|name, _, line| lines.push((name.to_owned(), line.clone().into_owned())));
        for (nth, keep) in [(2, 1), (3, 1), (3, 2), (7, 6), (50, 20)] {
            let mut state = State::default();
            for (at, (_, line)) in lines.iter().enumerate() {
                if at % nth < keep {
                    state.line(line);
                    let tasks =
                        state.ready().chain(state.next()).chain(state.cpu).filter(|id| *id != 1);
                    let is_known =
                        tasks.collect::<Vec<_>>().iter().all(|id| state.tasks.contains_key(id));
                    assert!(is_known, "{line}\n{state}");
                }
            }
        }
        // Read backwards, each number begins another log.
        let mut state = State::default();
        lines.iter().rev().for_each(|(_, line)| state.line(line));
    }
}
