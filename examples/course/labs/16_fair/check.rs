//! Fair: the ticker's timers fire in time, and the pump has done its work itself, without waiting.

use std::time::Duration;

use testing::trace::{Line, trace};
use traps::Time;

use super::scenario::{self, Scenario};
use crate::work::Work;

/// The longest delay of a timer.
const LATE: Duration = Duration::from_millis(5);

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|error| error.to_string())?;
    let scenario = scenario::of(work.seed);
    items(&lines, &scenario)?;
    timers(&lines)?;
    idle(&lines, &scenario)?;
    is_worked(&lines, &scenario)
}

fn is_item(line: &Line<'_>) -> bool {
    line.verb == "note" && line.word(0) == "item"
}

/// Notes of the task `pump`, in their order.
fn items(lines: &[Line<'_>], scenario: &Scenario) -> Result<(), String> {
    let spawn = lines.iter().find(|line| line.verb == "spawn" && line.name() == "pump");
    let pump = spawn.map_or(0, |line| line.task);
    let mut next = 1;
    for line in lines.iter().filter(|line| is_item(line)) {
        let (seq, task, name, item) = (line.seq, line.task, line.name(), line.word(1));
        if task != pump {
            return Err(format!(
                "line #{seq:04}: item {item} was done by task {task} `{name}`; the items are the \
                 work of task {pump} `pump`, and tasks of their own would all run in the same \
                 turn, before the kernel looks at its timers"
            ));
        }
        if item != next.to_string() {
            return Err(format!("line #{seq:04}: item {item} was done, and {next} was next"));
        }
        next += 1;
    }
    let Some(cancel) = lines.iter().find(|line| line.verb == "cancel" && line.task == pump) else {
        let (done, all) = (next - 1, scenario.items);
        let exit = lines.iter().find(|line| line.verb == "exit" && line.task == pump);
        let seq = exit.or(lines.last()).map_or(0, |line| line.seq);
        let why = format!("line #{seq:04}: `pump` ends, and has done {done} of its {all} items");
        return if done == all { Ok(()) } else { Err(why) };
    };
    // The yield in which it was cancelled may have ended, so it does one more.
    match lines.iter().filter(|line| is_item(line) && line.seq > cancel.seq).nth(1) {
        Some(second) => {
            let pump = lines.iter().filter(|line| line.task == pump && line.seq < second.seq);
            let why = why_not_ended(pump, cancel);
            Err(format!(
                "line #{:04}: item {} was done, the second since `pump` was cancelled in #{:04}; \
                 {why}",
                second.seq,
                second.word(1),
                cancel.seq
            ))
        }
        None => Ok(()),
    }
}

/// The sentence for a cancellation that has not ended `pump`, whose lines these are.
fn why_not_ended<'l>(pump: impl Iterator<Item = &'l Line<'l>>, cancel: &Line<'_>) -> &'static str {
    let (mut wait, mut shields) = ("", 0);
    let mut is_shielded = false;
    for line in pump {
        match (line.verb, line.word(0)) {
            ("trap", "shield") => shields += 1,
            ("trap", "unshield") => shields -= 1,
            ("block" | "await", what) => {
                wait = what;
                // Of the waits before the cancellation, only the last can hold it back.
                is_shielded = shields > 0 || (is_shielded && line.seq > cancel.seq);
            }
            _ => {}
        }
        if line.seq > cancel.seq && line.event().contains("= !cancelled") {
            let told = if line.verb == "trap" { line.word(0) } else { wait };
            return match told {
                "foreign" => {
                    "`foreign` returns a value that is there, and not the cancellation, which is \
                     to end the task"
                }
                _ => UNHEEDED,
            };
        }
    }
    match is_shielded {
        true => "a shield holds the cancellation back, which is to end the task",
        false => UNHEEDED,
    }
}

const UNHEEDED: &str = "the next trap that parks returns the cancellation as an error, and this \
                        error is to end the task";

fn timers(lines: &[Line<'_>]) -> Result<(), String> {
    for (at, fire) in lines.iter().enumerate().filter(|(_, line)| line.verb == "fire") {
        let deadline: Time = fire.key("deadline").and_then(|at| at.parse().ok()).unwrap_or(fire.at);
        let set = fire.cause.and_then(|cause| lines.iter().find(|line| line.seq == cause));
        if fire.at.since(deadline) <= LATE || set.is_none_or(|set| set.name() != "ticker") {
            continue;
        }
        let run = lines[..at].iter().rev().find(|line| line.verb == "run" && line.name() == "pump");
        let run = run.map_or(fire.seq, |line| line.seq);
        let held = lines[..at].iter().filter(|line| line.seq > run && is_item(line)).count();
        let (seq, at) = (fire.seq, fire.at);
        return Err(format!(
            "line #{seq:04}: the timer of `ticker` was due at {deadline} and fired at {at}, \
             because `pump` did {held} items in its run of #{run:04} without yielding"
        ));
    }
    Ok(())
}

/// While there are items, the clock moves only with the work on them. A line may have the time at
/// which its run began, so an item may seem to be done earlier, but not later.
fn idle(lines: &[Line<'_>], scenario: &Scenario) -> Result<(), String> {
    for (number, item) in (1..).zip(lines.iter().filter(|line| is_item(line))) {
        if item.at <= Time::ZERO + scenario.work * number {
            continue;
        }
        let is_block = |line: &&Line<'_>| line.verb == "block" && line.name() == "pump";
        let block = lines.iter().filter(is_block).rfind(|line| line.seq < item.seq);
        let (seq, what) = block.map_or((0, ""), |line| (line.seq, line.word(0)));
        return Err(format!(
            "line #{seq:04}: `pump` blocks on `{what}`, and the CPU is idle until it is woken, \
             with items left; yield, without waiting for a time"
        ));
    }
    Ok(())
}

/// The work on the items uses the CPU, so the program lasts at least that long.
fn is_worked(lines: &[Line<'_>], scenario: &Scenario) -> Result<(), String> {
    let (Some(item), Some(last)) = (lines.iter().rfind(|line| is_item(line)), lines.last()) else {
        return Ok(());
    };
    let done = lines.iter().filter(|line| is_item(line)).count() as u32;
    if last.at >= Time::ZERO + scenario.work * done {
        return Ok(());
    }
    Err(format!(
        "line #{:04}: item {} is noted, and the program ends at {}; the work on {done} items takes \
         {} ms: do it with `bench.work`",
        item.seq,
        item.word(1),
        last.at,
        (scenario.work * done).as_millis()
    ))
}
