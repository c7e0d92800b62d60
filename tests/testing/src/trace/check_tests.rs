//! Each rule of the oracle, broken by a small trace, and traces that keep all rules.

use super::{Spans, check, line};

/// Makes lines from `TURN TASK DETAIL`, numbered from 1, all at the same time.
fn trace(lines: &[&str]) -> String {
    let numbered = lines.iter().enumerate().map(|(nth, each)| {
        let (turn, rest) = each.split_once(' ').unwrap();
        let (task, rest) = rest.split_once(' ').unwrap();
        let (verb, detail) = rest.split_once(' ').unwrap();
        let name = if task == "1" { "wakeup" } else { "task" };
        let seq = nth + 1;
        format!(" 0.000000 {turn:>7}  #{seq:04} {task:>3} {name:<8} {verb:<8} {detail}\n")
    });
    numbered.collect()
}

/// The violations of such a trace, as `#SEQ rule`.
fn broken(lines: &[&str]) -> Vec<String> {
    broken_text(&trace(lines))
}

fn broken_text(text: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().map(|each| line(each).unwrap()).collect();
    let violations = check(&lines).err().unwrap_or_default();
    violations.iter().map(|each| format!("#{} {}", each.seq, each.rule)).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn a_whole_small_life_breaks_nothing() {
    let lines = [
        "0 1 spawn parent=-",
        "0 2 spawn parent=-",
        "1 1 run cause=#0001",
        "1 1 block io e1 read",
        "1 2 run cause=#0002",
        "1 2 trap set_timeout 1s until=1.000000 = s1",
        "1 0 arm s1 until=1.000000",
        "1 2 trap spawn child = 3",
        "1 3 spawn parent=2",
        "1 2 block yield k=1",
        "1 2 wake yield k=1 cause=#0010",
        "2 3 run cause=#0009",
        "2 0 register c1 why=first",
        "2 3 block io c1 read k=2",
        "2 2 run cause=#0011 k=1 = ok",
        "2 2 block io c1 write k=3",
        "3 0 arrive c1 read",
        "3 3 wake io c1 read k=2 cause=#0017",
        "3 1 run cause=#0001",
        "3 1 block io e1 read",
        "3 0 fire s1 deadline=0.000000 cause=#0006",
        "3 2 deliver k=3 = !timeout scope=s1 cause=#0021",
        "3 3 run cause=#0018 k=2 = ok",
        "3 3 exit ok cause=#0023",
        "3 2 run cause=#0022 k=3 = !timeout scope=s1",
        "3 2 trap unset_timeout s1 = ok",
        "3 2 block sleep 1s until=1.000000 k=4",
        "4 2 cancel by=- cause=#0001 = delivered",
        "4 2 deliver k=4 = !cancelled by=- cause=#0028",
        "4 2 run cause=#0029 k=4 = !cancelled by=-",
        "4 2 exit cancelled cause=#0030",
        "4 0 unregister c1 why=close",
        "4 0 halt tasks=0 tickets=0 timers=0 handles=0",
    ];
    assert_eq!(broken(&lines), NONE);
    for length in 0..lines.len() {
        assert_eq!(broken(&lines[..length]), NONE, "any beginning of it is fine too");
    }
}

#[test]
fn numbers_are_gapless_and_time_and_turn_never_go_back() {
    let text = " 0.000002       3  #0007   0 kernel   tick     fired=1 armed=0\n \
                0.000001       2  #0009   0 kernel   tick     fired=1 armed=0\n";
    assert_eq!(broken_text(text), ["#9 seq", "#9 time", "#9 turn"]);
    assert_eq!(broken_text(&text.replace("#0009", "#0007"))[0], "#7 seq");
}

#[test]
fn a_cause_is_an_earlier_line_of_the_trace() {
    assert_eq!(broken(&["0 2 spawn parent=-", "1 2 run cause=#0002"]), ["#2 cause"]);
    assert_eq!(broken(&["0 2 spawn parent=-", "1 2 run cause=#0000"]), ["#2 cause"]);
    let all = [
        "0 2 spawn parent=-",
        "1 2 run cause=#0001",
        "1 2 await sleep 1s until=1.000000 k=1",
        "1 2 wake sleep k=1 cause=#0099",
        "1 2 cancel by=- cause=#0099 = pending",
        "1 2 block sleep 1s until=1.000000 k=2",
        "1 0 fire k=2 deadline=1.000000 cause=#0099",
        "1 2 deliver k=2 = !timeout cause=#0099",
        "1 2 exit ok cause=#0099",
    ];
    assert_eq!(broken(&all), ["#4 cause", "#5 cause", "#7 cause", "#8 cause", "#9 cause"]);
}

/// A task that is running, and then these lines.
fn after_run(lines: &[&'static str]) -> Vec<String> {
    broken(&[&["0 2 spawn parent=-", "1 2 run cause=#0001"], lines].concat())
}

#[test]
fn a_cause_leads_to_what_it_causes() {
    let (block, fire) = ("1 2 block signal k=1", "1 0 fire s1 deadline=0.000000 cause=#0003");
    assert_eq!(after_run(&[block, "1 2 wake signal k=1 cause=#0003"]), ["#4 cause"]);
    assert_eq!(after_run(&["1 2 run cause=#0002"]), ["#3 cause", "#3 block", "#3 ready"]);
    let its_own_run = "1 2 wake mutex m k=1 cause=#0002";
    assert_eq!(after_run(&["1 2 block mutex m k=1", its_own_run]), ["#4 cause"]);
    // One branch of a task may wake another one, and a task its own waker.
    assert_eq!(after_run(&["1 2 await mutex m k=1", its_own_run]), NONE);
    assert_eq!(after_run(&["1 2 block waker", "1 2 wake waker cause=#0002"]), NONE);
    let outside = ["1 2 block outside it k=1", "1 2 wake outside k=1 cause=#0002"];
    assert_eq!(after_run(&outside), NONE);
    assert_eq!(after_run(&[block, "1 2 deliver k=1 = !timeout cause=#0002"]), ["#4 cause"]);
    let scope = "1 2 trap set_timeout 1s until=1.000000 = s1";
    assert_eq!(after_run(&[scope, fire]), NONE);
    assert_eq!(after_run(&["1 0 tick fired=1 armed=0", fire]), ["#4 cause", "#4 timer"]);
}

#[test]
fn what_a_line_leaves_out_is_found() {
    assert_eq!(after_run(&["1 2 wake waker"]), ["#3 cause"]);
    assert_eq!(after_run(&["1 2 exit ok"]), ["#3 cause"]);
    assert_eq!(after_run(&["1 2 withdraw it"]), ["#3 ticket"]);
    assert_eq!(after_run(&["1 2 offload o1 limiter=disk"]), ["#3 job"]);
}

#[test]
fn every_chain_of_causes_ends_outside() {
    assert_eq!(broken(&["0 2 spawn parent=7"]), ["#1 root"]);
    assert_eq!(broken(&["0 2 spawn parent=-", "1 3 withdraw k=1"]), ["#2 ticket", "#2 root"]);
}

#[test]
fn a_ticket_is_opened_once_and_ends_once() {
    assert_eq!(after_run(&["1 2 await signal k=1", "1 2 block signal k=1"]), ["#4 ticket"]);
    assert_eq!(after_run(&["1 2 withdraw k=1"]), ["#3 ticket"]);
    for end in ["1 2 withdraw k=1", "1 2 wake signal k=1 cause=#0001"] {
        assert_eq!(after_run(&["1 2 block signal k=1", end]), NONE);
        assert_eq!(after_run(&["1 2 block signal k=1", end, "1 2 withdraw k=1"]), ["#5 ticket"]);
        let cancel = "1 2 cancel by=- cause=#0002 = delivered";
        let deliver = "1 2 deliver k=1 = !cancelled by=- cause=#0005";
        assert_eq!(after_run(&["1 2 block signal k=1", end, cancel, deliver]), ["#6 ticket"]);
    }
    let halt = "1 0 halt tasks=1 tickets=0 timers=0 handles=0";
    assert_eq!(after_run(&["1 2 block signal k=1", halt]), ["#4 ticket"]);
    let counted = "1 0 halt tasks=1 tickets=1 timers=0 handles=0";
    assert_eq!(after_run(&["1 2 block signal k=1", counted]), NONE);
}

#[test]
fn a_run_answers_tickets_that_have_ended_and_each_once() {
    let wake = "1 2 wake waker cause=#0001";
    let left = "1 2 block waker";
    assert_eq!(after_run(&[left, wake, "2 2 run cause=#0004 k=1 = ok"]), ["#5 answer"]);
    let open = ["1 2 block signal k=1", wake, "2 2 run cause=#0004 k=1 = ok"];
    assert_eq!(after_run(&open), ["#5 answer"]);
    let twice = [
        "1 2 block signal k=1",
        "1 2 wake signal k=1 cause=#0001",
        "2 2 run cause=#0004 k=1 = ok",
        "2 2 block waker",
        "2 2 wake waker cause=#0001",
        "3 2 run cause=#0007 k=1 = ok",
    ];
    assert_eq!(after_run(&twice), ["#8 answer"]);
    assert_eq!(after_run(&twice[..4]), NONE);
}

#[test]
fn a_task_runs_between_its_spawn_and_its_one_exit() {
    assert_eq!(
        broken(&["0 0 tick fired=1 armed=0", "1 2 block signal k=1"]),
        ["#2 life", "#2 block", "#2 root"]
    );
    assert_eq!(broken(&["0 0 tick fired=1 armed=0", "1 2 exit ok cause=#0001"]), ["#2 life"]);
    let exit = "1 2 exit ok cause=#0002";
    assert_eq!(after_run(&[exit, exit]), ["#4 exit"]);
    assert_eq!(after_run(&[exit, "1 2 spawn parent=-"]), ["#4 life"]);
    let wake = "1 2 wake waker cause=#0001";
    let left = "1 2 block waker";
    assert_eq!(after_run(&[left, wake, exit, "2 2 run cause=#0004"]), ["#6 life"]);
}

#[test]
fn a_side_of_a_descriptor_has_one_waiter() {
    let block = "1 2 await io c1 read k=1";
    assert_eq!(after_run(&[block, "1 2 block io c1 read k=2"]), ["#4 one-waiter"]);
    assert_eq!(after_run(&[block, "1 2 block io c1 write k=2"]), NONE);
    assert_eq!(after_run(&[block, "1 2 withdraw k=1", "1 2 block io c1 read k=2"]), NONE);
}

#[test]
fn register_and_unregister_alternate() {
    let (on, off) = ("1 0 register c1 why=first", "1 0 unregister c1 why=interrupt");
    let again = "1 0 register c1 why=again";
    assert_eq!(broken(&[on, off, again, off]), NONE);
    assert_eq!(broken(&[again]), ["#1 register"]);
    let close = "1 0 unregister c1 why=close";
    assert_eq!(broken(&[on, close, again]), ["#3 register"], "a closed handle stays closed");
    assert_eq!(broken(&[on, off, on]), ["#3 register"]);
    assert_eq!(broken(&[off]), ["#1 register"]);
    assert_eq!(broken(&[on, on, off, off]), ["#2 register", "#4 register"]);
    assert_eq!(broken(&[on, "1 0 refuse c1 no space", on]), NONE);
}

#[test]
fn a_timer_that_is_armed_ends_once() {
    let (arm, disarm) = ("1 0 arm d1 until=1.000000", "1 0 disarm d1");
    let fire = "1 0 fire d1 deadline=1.000000 cause=#0001";
    assert_eq!(broken(&[arm, disarm, arm, fire]), NONE);
    assert_eq!(broken(&[arm, arm, disarm]), NONE, "a connection deadline is armed again");
    assert_eq!(broken(&[disarm]), ["#1 timer"]);
    assert_eq!(broken(&[arm, disarm, fire]), ["#3 timer"]);
    assert_eq!(broken(&[arm, fire, fire]), ["#3 timer"]);
    assert_eq!(broken(&["1 0 arm s1 until=1.000000", "1 0 arm s1 until=2.000000"]), ["#2 timer"]);
    let halt = "1 0 halt tasks=0 tickets=0 timers=0 handles=0";
    assert_eq!(broken(&[arm, halt]), ["#2 timer"]);
    assert_eq!(broken(&[arm, "1 0 halt tasks=0 tickets=0 timers=1 handles=0"]), NONE);
}

#[test]
fn a_sleep_fires_while_its_ticket_is_open() {
    let sleep = "1 2 block sleep 1s until=1.000000 k=1";
    let fire = "1 0 fire k=1 deadline=1.000000 cause=#0003";
    assert_eq!(after_run(&[sleep, fire]), NONE);
    assert_eq!(after_run(&[sleep, fire, fire]), ["#5 timer"]);
    assert_eq!(after_run(&[sleep, "1 2 withdraw k=1", fire]), ["#5 timer"]);
}

#[test]
fn a_scope_closes_once_and_its_number_is_not_reused() {
    let (open, close) =
        ("1 2 trap set_timeout 1s until=1.000000 = s1", "1 2 trap unset_timeout s1 = ok");
    let fire = "1 0 fire s1 deadline=1.000000 cause=#0003";
    assert_eq!(after_run(&[open, close]), NONE);
    assert_eq!(after_run(&[open, fire, close]), NONE);
    assert_eq!(after_run(&[open, close, fire]), ["#5 timer"]);
    assert_eq!(after_run(&[close]), ["#3 scope"]);
    assert_eq!(after_run(&[open, close, close]), ["#5 scope"]);
    assert_eq!(after_run(&[open, close, "1 2 trap branch = s1"]), ["#5 scope"]);
    let halt = "1 0 halt tasks=0 tickets=0 timers=0 handles=0";
    assert_eq!(after_run(&[open, halt]), ["#4 scope"]);
    assert_eq!(after_run(&["1 2 trap shield = s1", halt]), NONE);
}

#[test]
fn the_timer_of_a_scope_that_is_armed_ends_once_and_before_a_halt() {
    let shield = "1 2 trap shield = s1";
    let (arm, disarm) = ("1 2 arm s1 until=0.500000", "1 2 disarm s1");
    let fire = "1 0 fire s1 deadline=0.500000 cause=#0004";
    let halt = "1 0 halt tasks=0 tickets=0 timers=0 handles=0";
    assert_eq!(after_run(&[shield, arm, fire, halt]), NONE);
    assert_eq!(after_run(&[shield, arm, disarm, halt]), NONE);
    assert_eq!(after_run(&[shield, fire]), ["#4 cause", "#4 timer"]);
    assert_eq!(after_run(&[shield, arm, disarm, fire]), ["#6 timer"]);
    assert_eq!(after_run(&[shield, arm, "1 2 trap unshield s1 = ok", halt]), ["#6 timer"]);
}

#[test]
fn a_run_has_something_that_made_the_task_ready() {
    let left = "1 2 block waker";
    assert_eq!(after_run(&[left, "2 2 run cause=#0001"]), ["#4 ready"]);
    assert_eq!(after_run(&[left, "1 2 wake waker cause=#0001", "2 2 run cause=#0004"]), NONE);
    // An event that arrives while the task runs is served by the same run.
    assert_eq!(
        after_run(&["1 2 wake waker cause=#0001", left, "2 2 run cause=#0003"]),
        ["#5 ready"]
    );
}

#[test]
fn a_block_ends_a_run() {
    let (left, wait) = ("1 2 block parked n=1", "1 2 await signal k=1");
    let wake = "1 2 wake signal k=1 cause=#0001";
    assert_eq!(after_run(&[wait, left, wake, "2 2 run cause=#0005 k=1 = ok"]), NONE);
    assert_eq!(after_run(&[wait, wake, "1 2 exit ok cause=#0002"]), NONE);
    assert_eq!(after_run(&[wait, left, left]), ["#5 block"]);
    assert_eq!(after_run(&[left, wait]), ["#4 block"]);
    assert_eq!(after_run(&[wait, wake, "2 2 run cause=#0004"]), ["#5 block", "#5 ready"]);
}

#[test]
fn tasks_of_one_turn_run_in_the_order_in_which_they_were_made_ready() {
    let (two, three) = ("0 2 spawn parent=-", "0 3 spawn parent=-");
    assert_eq!(broken(&[two, three, "1 2 run cause=#0001", "1 3 run cause=#0002"]), NONE);
    let swapped = [two, three, "1 3 run cause=#0002", "1 2 run cause=#0001"];
    assert_eq!(broken(&swapped), ["#4 fifo"]);
    let woken_twice = [
        two,
        three,
        "1 3 run cause=#0002",
        "1 3 block waker",
        "1 3 wake waker cause=#0001",
        "1 2 run cause=#0001",
        "1 2 block waker",
        "1 2 wake waker cause=#0001",
        "1 3 wake waker cause=#0001",
        "2 3 run cause=#0005",
        "2 2 run cause=#0008",
    ];
    assert_eq!(broken(&woken_twice), ["#6 fifo"], "the first wake since the last run counts");
    for (op, span) in [("yield", ""), ("sleep", " 0s until=0.000000")] {
        let (wait, wake) =
            (format!("1 2 await {op}{span} k=2"), format!("1 2 wake {op} k=2 cause=#0006"));
        let woken_as_it_leaves = [
            three,
            two,
            "1 3 run cause=#0001",
            "1 3 block outside it k=1",
            "1 2 run cause=#0002",
            &wait,
            "1 2 await outside it k=3",
            "1 2 block parked n=2",
            &wake,
            "1 3 wake outside k=1 cause=#0005",
            "1 2 wake outside k=3 cause=#0005",
            "2 2 run cause=#0009 k=2 = ok, k=3 = ok",
            "2 3 run cause=#0010 k=1 = ok",
        ];
        assert_eq!(broken(&woken_as_it_leaves), NONE, "who has left the CPU has its place in line");
    }
}

#[test]
fn who_is_made_ready_after_the_first_run_of_a_turn_runs_in_a_later_turn() {
    assert_eq!(after_run(&["1 3 spawn parent=2", "1 3 run cause=#0003"]), ["#4 next-turn"]);
    assert_eq!(after_run(&["1 3 spawn parent=2", "2 3 run cause=#0003"]), NONE);
    let yields = ["1 2 block yield k=1", "1 2 wake yield k=1 cause=#0003"];
    let run = ["1 2 run cause=#0004 k=1 = ok"];
    assert_eq!(after_run(&[&yields[..], &run].concat()), ["#5 next-turn"]);
    let woken_before = ["2 3 spawn parent=-", "2 3 run cause=#0003"];
    assert_eq!(after_run(&woken_before), NONE, "a wake in step 2 runs in step 5 of that turn");
}

#[test]
fn the_wakeup_task_runs_outside_the_queue() {
    let lines = [
        "0 1 spawn parent=-",
        "0 2 spawn parent=-",
        "1 2 run cause=#0002",
        "1 1 run cause=#0001",
        "1 1 block io e1 read",
        "1 1 run cause=#0001",
    ];
    assert_eq!(broken(&lines), NONE);
}

#[test]
fn a_violation_names_the_line_and_the_rule() {
    let text = trace(&["1 2 withdraw k=7"]);
    let lines = [line(text.trim_end()).unwrap()];
    let shown = check(&lines).unwrap_err()[0].to_string();
    assert_eq!(shown, "#0001 ticket: k=7 was not opened");
}

#[test]
fn a_job_has_one_life_and_its_counts_are_those_of_the_lines() {
    let life = |lines: &[&str]| {
        let mut all = vec!["0 1 spawn parent=-", "0 2 spawn parent=-", "1 2 run cause=#0002"];
        all.extend(lines);
        broken(&all)
    };
    let whole = [
        "1 2 offload o1 running=1 queued=0",
        "1 2 offload o2 running=1 queued=1 limiter=disk",
        "1 2 offload o3 running=1 queued=2",
        "1 2 offload o3 starts running=2 queued=1 cause=#0006",
        "1 2 abandon o1",
        "2 1 done o3",
        "2 1 orphan o1",
        "2 1 offload o2 starts running=1 queued=0 cause=#0010",
        "2 1 done o2",
        "2 1 orphan o2",
        "2 0 halt tasks=2 tickets=0 timers=0 handles=0",
    ];
    assert_eq!(life(&whole), NONE);
    assert_eq!(life(&["1 1 done o7"]), ["#4 job"]);
    assert_eq!(life(&["1 1 orphan o7"]), ["#4 job"]);
    assert_eq!(life(&["1 2 offload o1 running=1 queued=1"]), ["#4 job"]);
    assert_eq!(life(&["1 2 offload o1 running=1 queued=0", whole[2]]), ["#5 job"]);
    assert_eq!(
        life(&["1 2 offload o1 running=1 queued=0", "1 1 done o1", "1 1 done o1"]),
        ["#6 job"]
    );
    let starts = "1 1 offload o1 starts running=1 queued=0 cause=#9999";
    assert_eq!(life(&["1 2 offload o1 running=0 queued=1", starts]), ["#5 cause"]);
    let left =
        ["1 2 offload o1 running=1 queued=0", "1 0 halt tasks=2 tickets=0 timers=0 handles=0"];
    assert_eq!(life(&left), ["#5 job"]);
    assert_eq!(life(&["1 0 phase close reason=x tasks=0 cause=#9999"]), ["#4 cause"]);
}

#[test]
fn a_leave_ends_a_span_of_that_name_that_is_open() {
    let (enter, leave) = ("1 2 enter pay", "1 2 leave pay");
    assert_eq!(after_run(&[enter, leave]), NONE);
    assert_eq!(after_run(&[leave]), ["#3 span"]);
    assert_eq!(after_run(&[enter, "1 2 leave paid"]), ["#4 span"]);
    assert_eq!(after_run(&[enter, leave, leave]), ["#5 span"]);
    let side_by_side = ["1 2 enter a", "1 2 enter b", "1 2 leave a", "1 2 leave b"];
    assert_eq!(after_run(&side_by_side), NONE);
}

#[test]
fn a_span_of_a_task_that_is_over_ends_before_one_of_the_task_that_drops_it() {
    let dropped = [
        "1 2 enter pay",
        "1 3 spawn parent=2",
        "2 3 run cause=#0004",
        "2 3 enter pay",
        "2 3 drop its_grace_is_over",
        "2 2 leave pay",
        "2 3 exit dropped cause=#0007",
    ];
    assert_eq!(after_run(&dropped), NONE);
    let text = trace(&dropped);
    let mut spans = Spans::default();
    let ended = text.lines().filter_map(|text| spans.leave(&line(text).unwrap()));
    assert_eq!(ended.collect::<Vec<_>>(), [4], "the inner one, whose `enter` is the fourth line");
}

#[test]
fn a_wake_names_the_primitive_of_its_block_and_holders_live() {
    let block = "1 2 block mutex accounts held-by=2 k=1";
    assert_eq!(after_run(&[block, "1 2 wake mutex accounts k=1 cause=#0001"]), NONE);
    assert_eq!(after_run(&[block, "1 2 wake mutex doors k=1 cause=#0001"]), ["#4 primitive"]);
    assert_eq!(after_run(&[block, "1 2 wake wait q1 k=1 cause=#0001"]), ["#4 primitive"]);
    assert_eq!(after_run(&["1 2 block mutex accounts held-by=7 k=1"]), ["#3 primitive"]);
    assert_eq!(after_run(&["1 2 block semaphore few held-by=2,2,2,7,.. k=1"]), ["#3 primitive"]);
    let ended = ["1 3 spawn parent=2", "1 3 exit dropped cause=#0003"];
    let waits = ["1 2 block mutex accounts held-by=3 k=1"];
    assert_eq!(after_run(&[&ended[..], &waits].concat()), ["#5 primitive"]);
}

/// The violations of lines that follow the start of main. The lines begin with #4.
fn broken_of_main(lines: &[&str]) -> Vec<String> {
    let main = ["0 1 spawn parent=-", "0 2 spawn parent=-", "1 2 run cause=#0002"];
    broken(&[&main[..], lines].concat())
}

#[test]
fn in_names_an_open_scope_of_the_task_that_is_not_the_default() {
    let two = ["1 2 trap set_timeout none = s1", "1 2 trap branch = s2"];
    let and = |line: &str| broken_of_main(&[two[0], two[1], line]);
    for good in [
        "1 2 trap branch in=s1 = s3",
        "1 2 trap branch in=root = s3",
        "1 2 await yield k=1 in=s1",
        "1 2 block yield k=1 in=root",
        "1 2 trap yield in=s1 = !timeout scope=s1",
    ] {
        assert_eq!(and(good), NONE, "{good}");
    }
    for bad in [
        "1 2 trap branch in=s2 = s3",
        "1 2 trap branch in=s9 = s3",
        "1 2 trap branch in=main = s3",
        "1 2 await yield k=1 in=s2",
        "1 2 block waker in=s1",
        "1 2 trap yield in=s1 = ok",
    ] {
        assert_eq!(and(bad), ["#6 scope"], "{bad}");
    }
    let other = ["1 3 spawn parent=2", "1 2 block yield k=1", "2 3 run cause=#0006"];
    let lines = [two[0], two[1], other[0], other[1], other[2], "2 3 block yield k=2 in=s1"];
    assert_eq!(broken_of_main(&lines), ["#9 scope"]);
    assert_eq!(broken_of_main(&["1 2 await yield k=1 in=root"]), ["#4 scope"]);
}

#[test]
fn a_move_leads_an_open_wait_or_scope_to_another_scope() {
    let open = ["1 2 trap branch = s1", "1 2 await yield k=1", "1 2 trap branch in=root = s2"];
    let and = |line: &str| broken_of_main(&[open[0], open[1], open[2], line]);
    for good in ["1 2 move k=1 in=s2", "1 2 move k=1 in=root", "1 2 move s2 in=s1"] {
        assert_eq!(and(good), NONE, "{good}");
    }
    for bad in [
        "1 2 move k=1 in=s1",
        "1 2 move k=9 in=s1",
        "1 2 move k=1 in=s9",
        "1 2 move s9 in=s1",
        "1 2 move s2 in=root",
        "1 2 move s2 in=s2",
        "1 2 move s2 to=s1",
    ] {
        assert_eq!(and(bad), ["#7 scope"], "{bad}");
    }
}

#[test]
fn a_cleanup_is_at_its_source_or_at_a_branch_inside() {
    let open =
        ["1 2 trap set_timeout none = s1", "1 2 trap branch = s2", "1 2 trap branch in=root = s3"];
    let and = |line: &str| broken_of_main(&[open[0], open[1], open[2], line]);
    for good in [
        "1 2 cleanup s1 = !timeout scope=s1",
        "1 2 cleanup s1 in=s2 = !timeout scope=s1",
        "1 2 cleanup root in=s3 = !cancelled by=-",
        "1 2 cleanup root = !cancelled by=-",
    ] {
        assert_eq!(and(good), NONE, "{good}");
    }
    for bad in [
        "1 2 cleanup s9 = !timeout scope=s9",
        "1 2 cleanup s1 in=s3 = !timeout scope=s1",
        "1 2 cleanup s1 in=s1 = !timeout scope=s1",
        "1 2 cleanup root in=s1 = !cancelled by=-",
        "1 2 cleanup root in=root = !cancelled by=-",
    ] {
        assert_eq!(and(bad), ["#7 scope"], "{bad}");
    }
    // No line opens the scope of a sweep.
    let swept = ["1 0 arm s1 until=0.000000", "1 2 cleanup s1 = !timeout scope=s1"];
    assert_eq!(broken_of_main(&swept), NONE);
}

#[test]
fn a_task_gives_back_what_it_has_taken_and_a_wait_names_who_has() {
    let take = "1 2 take mutex m at=a.rs:1";
    let other = ["1 3 spawn parent=2", "1 2 block yield k=1", "2 3 run cause=#0005"];
    let and = |line: &str| broken_of_main(&[take, other[0], other[1], other[2], line]);
    for good in [
        "2 3 give mutex m from=2",
        "2 3 block mutex m held-by=2 k=2",
        "2 3 block mutex q1 held-by=3 k=2",
        "2 3 take mutex m at=a.rs:2",
    ] {
        assert_eq!(and(good), NONE, "{good}");
    }
    for bad in [
        "2 3 give mutex m",
        "2 3 give mutex n from=2",
        "2 3 block mutex m held-by=3 k=2",
        "2 3 block mutex m held-by=2,2 k=2",
    ] {
        assert!(and(bad).iter().all(|it| it == "#8 primitive") && and(bad) != NONE, "{bad}");
    }
    let given = ["1 2 give mutex m", "1 2 give mutex m"];
    assert_eq!(broken_of_main(&[take, given[0]]), NONE);
    assert_eq!(broken_of_main(&[take, given[0], given[1]]), ["#6 primitive"]);
    assert_eq!(broken_of_main(&[take, "1 2 give mutex m from=2"]), ["#5 primitive"]);
    // It can be released after its holder has ended.
    let ended = ["1 2 exit ok cause=#0003", "1 3 spawn parent=-", "2 3 run cause=#0006"];
    assert_eq!(
        broken_of_main(&[take, ended[0], ended[1], ended[2], "2 3 give mutex m from=2"]),
        NONE
    );
}

#[test]
fn a_wait_names_no_more_holders_than_have_taken() {
    let take = "1 2 take semaphore m at=a.rs:1";
    let wait = |by: &str| {
        let wait = format!("1 2 block semaphore m held-by={by} k=1");
        broken_of_main(&[take, take, take, take, take, &wait])
    };
    assert_eq!(wait("2,2,2,2,.."), NONE);
    assert_eq!(wait("2,2,2,2,2"), NONE);
    assert_eq!(wait("2,2,2,2,2,.."), ["#9 primitive"]);
    assert_eq!(wait("2,2,2,2,2,2"), ["#9 primitive"]);
}

#[test]
fn readiness_is_remembered_where_no_task_waits_and_a_handle_is_closed_once() {
    let wait = ["1 2 register c1 why=first", "1 2 await io c1 read k=1 reg=new"];
    let and = |line: &str| broken_of_main(&[wait[0], wait[1], line]);
    assert_eq!(and("1 0 remember c1 write"), NONE);
    assert_eq!(and("1 0 remember c1 read"), ["#6 one-waiter"]);
    assert_eq!(and("1 2 close c1"), ["#6 register"; 3]);
    assert_eq!(and("1 2 close c2"), NONE);
    let after = ["1 2 close c2", "1 2 register c2 why=first"];
    assert_eq!(broken_of_main(&after), ["#5 register"]);
    assert_eq!(broken_of_main(&[after[0], after[0]]), ["#5 register"]);
    let shut = ["1 2 register c1 why=first", "1 2 unregister c1 why=close", "1 2 close c1"];
    assert_eq!(broken_of_main(&shut), NONE);
}

#[test]
fn wakeup_alone_has_messages_and_not_none() {
    let run = |run: &str| broken(&["0 1 spawn parent=-", "0 2 spawn parent=-", run]);
    assert_eq!(run("1 1 run cause=#0001 messages=2"), NONE);
    assert_eq!(run("1 1 run cause=#0001 messages=0"), ["#3 ready"]);
    assert_eq!(run("1 2 run cause=#0002 messages=2"), ["#3 ready"]);
}
