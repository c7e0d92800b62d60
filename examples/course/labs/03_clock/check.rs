//! The clock: what each call of `wait` did to it.

use super::scenario;
use crate::work::Work;

/// The time of a line, in nanoseconds.
fn nanos(word: &str) -> Option<u64> {
    let (seconds, rest) = word.trim().split_once('.')?;
    let nanos = format!("{rest:0<9}").parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)
}

pub fn check(work: &Work) -> Result<(), String> {
    if let Some(number) = work.line_of("thread") {
        return Err(format!(
            "line {number} of src/lab.rs uses `thread`; a virtual clock does not sleep, it only \
             moves"
        ));
    }
    if let Some(number) = work.line_of("Sim") {
        return Err(format!(
            "line {number} of src/lab.rs uses `Sim`, the virtual clock of the kernel; this lab is \
             about a `wait` of your own"
        ));
    }
    let scenario = scenario::of(work.seed);
    // A new clock is at 0.
    let (mut clock, mut by_hand) = ("0.000000", 0);
    for (at, line) in work.log.lines().enumerate() {
        if line.starts_with("call 1 by hand") {
            // It is another clock.
            (clock, by_hand) = ("0.000000", 0);
        }
        let Some(rest) = line.strip_prefix("wait ") else { continue };
        let Some((until, (before, after))) =
            rest.split_once(": ").and_then(|(until, rest)| Some((until, rest.split_once(" -> ")?)))
        else {
            continue;
        };
        by_hand += 1;
        stands_still(clock, before)
            .and_then(|()| wait(until, before, after))
            .map_err(|wrong| format!("line {}: {wrong}", at + 1))?;
        clock = if after == "error" { before } else { after };
    }
    let ends = work.log.lines().filter(|line| line.ends_with("exit")).count();
    let (tasks, calls) = (scenario.naps.len() + 1, scenario.by_hand.len());
    match (ends == tasks, by_hand == calls) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("{ends} of the {tasks} tasks have ended")),
        _ => Err(format!("the program ended after {by_hand} of the {calls} calls by hand")),
    }
}

/// A clock moves in `wait` only, and not in a `wait` that fails.
fn stands_still(clock: &str, before: &str) -> Result<(), String> {
    if clock == before {
        return Ok(());
    }
    Err(format!(
        "the clock was at {clock}, and is at {before} now; it must move only in a `wait` that \
         succeeds"
    ))
}

fn wait(until: &str, before: &str, after: &str) -> Result<(), String> {
    let (Some(soonest), Some(old)) = (nanos(until), nanos(before)) else {
        return match after {
            "error" => Ok(()),
            _ => Err("`wait(None)` came back without an error; no task is ready and no timer is \
                      set, so the kernel would go round forever"
                .to_owned()),
        };
    };
    let Some(new) = nanos(after) else {
        return Err(format!("`wait` failed, although {until} can be waited for"));
    };
    if new < old {
        return Err(format!(
            "the clock went back from {before} to {after}, because {until} was past already; time \
             does not go back"
        ));
    }
    if old > 0 && soonest > 0 && new == old + soonest {
        return Err(format!(
            "the clock went from {before} to {after}, which is {until} later; `until` is a point \
             on the clock, not a span"
        ));
    }
    if soonest <= old && new > old {
        return Err(format!(
            "the clock went from {before} to {after}, although {until} is not in the future: \
             there is nothing to wait for, so no time passes"
        ));
    }
    if new > soonest.max(old) {
        return Err(format!(
            "the clock went from {before} to {after}, past the soonest timer, which is due at \
             {until}"
        ));
    }
    if new < soonest {
        return Err(format!(
            "`wait` came back at {after}, before {until}; nothing happens in between, so the \
             kernel takes a turn for nothing"
        ));
    }
    Ok(())
}
