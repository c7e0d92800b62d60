//! Fair: the ticker's timers fire in time, and the pump has done its work itself, without waiting.

use std::time::Duration;

use testing::trace::{Line, trace};
use traps::Time;

use crate::work::Work;

/// A timer may fire so late.
const LATE: Duration = Duration::from_millis(5);

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|(line, error)| format!("line {line}: {error}"))?;
    items(&lines)?;
    timers(&lines)?;
    let is_sleep = |line: &&Line<'_>| line.name() == "pump" && line.event().starts_with("block");
    match lines.iter().filter(is_sleep).find(|line| line.word(0) == "sleep") {
        None => Ok(()),
        Some(line) => Err(format!(
            "line #{:04}: `pump` sleeps while it has items, so the CPU is idle; give way without \
             waiting for a time",
            line.seq
        )),
    }
}

/// Forty notes of `pump`, in their order.
fn items(lines: &[Line<'_>]) -> Result<(), String> {
    let notes = lines.iter().filter(|line| line.verb == "note" && line.word(0) == "item");
    let mut next = 1;
    for line in notes {
        let (seq, task, name, item) = (line.seq, line.task, line.name(), line.word(1));
        if name != "pump" {
            return Err(format!(
                "line #{seq:04}: item {item} was done by task {task} `{name}`; the items are the \
                 work of `pump`, and tasks of their own would all run in the same turn, before the \
                 kernel looks at its timers"
            ));
        }
        if item != next.to_string() {
            return Err(format!("line #{seq:04}: item {item} was done, and {next} was next"));
        }
        next += 1;
    }
    if next == 41 { Ok(()) } else { Err(format!("`pump` has done {} of its 40 items", next - 1)) }
}

fn timers(lines: &[Line<'_>]) -> Result<(), String> {
    for (at, fire) in lines.iter().enumerate().filter(|(_, line)| line.verb == "fire") {
        let deadline: Time = fire.key("deadline").and_then(|at| at.parse().ok()).unwrap_or(fire.at);
        let set = fire.cause.and_then(|cause| lines.iter().find(|line| line.seq == cause));
        if fire.at.since(deadline) <= LATE || set.is_none_or(|set| set.name() != "ticker") {
            continue;
        }
        let run = lines[..at].iter().rev().find(|line| line.verb == "run" && line.name() == "pump");
        let items = |line: &&Line<'_>| line.verb == "note" && line.word(0) == "item";
        let run = run.map_or(fire.seq, |line| line.seq);
        let held = lines[..at].iter().filter(|line| line.seq > run).filter(items).count();
        let (seq, at) = (fire.seq, fire.at);
        return Err(format!(
            "line #{seq:04}: the timer of `ticker` was due at {deadline} and fired at {at}, \
             because `pump` did {held} items in its run of #{run:04} without giving way"
        ));
    }
    Ok(())
}
