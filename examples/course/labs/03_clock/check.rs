//! The clock: what each call of `wait` did to it.

use crate::work::Work;

/// The time of a log, in microseconds.
fn micros(word: &str) -> Option<u64> {
    let (seconds, micros) = word.trim().split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?)
}

pub fn check(work: &Work) -> Result<(), String> {
    let mut waits = 0;
    for (at, line) in work.log.lines().enumerate() {
        let Some(rest) = line.strip_prefix("wait ") else { continue };
        let Some((until, (before, after))) =
            rest.split_once(": ").and_then(|(until, rest)| Some((until, rest.split_once(" -> ")?)))
        else {
            continue;
        };
        waits += 1;
        wait(until, before, after).map_err(|wrong| format!("line {}: {wrong}", at + 1))?;
    }
    let ends = work.log.lines().filter(|line| line.ends_with("exit")).count();
    match (waits, ends) {
        (0, _) => Err("the program printed no `wait` line".to_owned()),
        (_, 3) => Ok(()),
        _ => Err(format!("{ends} of the 3 tasks have ended")),
    }
}

fn wait(until: &str, before: &str, after: &str) -> Result<(), String> {
    let (Some(soonest), Some(old)) = (micros(until), micros(before)) else {
        return match after {
            "error" => Ok(()),
            _ => Err("`wait(None)` came back without an error; nobody is ready and no timer is \
                      set, so the kernel would go round for ever"
                .to_owned()),
        };
    };
    let Some(new) = micros(after) else {
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
            "the clock went from {before} to {after}, although {until} is not in the future: a \
             task is ready, and no time passes while it waits for its turn"
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
            "`wait` came back at {after}, before {until}; nothing happens between, so the kernel \
             takes a turn for nothing"
        ));
    }
    Ok(())
}
