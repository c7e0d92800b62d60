//! A race that the value won, and the value in the hands of the asker.

use testing::trace::{Line, trace};

use crate::work::Work;

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|(line, error)| format!("line {line}: {error}"))?;
    let lines = &lines[..];
    let is_timeout = |line: &&Line<'_>| line.verb == "trap" && line.word(0) == "set_timeout";
    let Some(timeout) = lines.iter().find(is_timeout) else {
        return Err(
            "the log has no `set_timeout`, so there is no timeout that the value could race \
                    with; the asker waits in `timeout_after`"
                .to_owned(),
        );
    };
    let is_race = |line: &&Line<'_>| {
        line.verb == "race" && (line.word(0), line.word(1)) == ("winner=value", "loser=timeout")
    };
    let race = lines.iter().find(is_race).ok_or_else(|| no_race(lines, timeout))?;
    let is_wake = |line: &&Line<'_>| line.verb == "wake" && line.task == race.task;
    let wake = lines.iter().filter(is_wake).rfind(|line| line.seq < race.seq);
    match wake {
        Some(wake) if wake.word(0) == "sleep" => Err(format!(
            "line #{:04}: here a sleep of the asker itself races with the timeout around it; the \
             value is to come from another task",
            race.seq
        )),
        _ => is_kept(lines, race),
    }
}

/// Why there was no race: the timeout came first, or the value was read first.
fn no_race(lines: &[Line<'_>], timeout: &Line<'_>) -> String {
    let deadline = timeout.key("until").unwrap_or("never");
    let of_asker = |verb: &str| {
        lines
            .iter()
            .find(|line| line.verb == verb && line.task == timeout.task && line.seq > timeout.seq)
    };
    if let Some(deliver) = of_asker("deliver") {
        return format!(
            "line #{:04}: the deadline {deadline} passed and no value was there, so the asker got \
             the timeout; the value must be sent before, and the asker must not run in between",
            deliver.seq
        );
    }
    match (of_asker("late"), of_asker("run")) {
        (Some(late), _) => format!(
            "line #{:04}: the scope was closed late, but there was no race: when the deadline \
             {deadline} passed, the asker did not wait, it had the CPU itself; another task must \
             hold the CPU while the asker is ready",
            late.seq
        ),
        (None, Some(run)) => format!(
            "line #{:04}: the asker runs at {} with its value, and its deadline is {deadline}, so \
             the timeout had no part in it; after `send`, the sender must hold the CPU until the \
             deadline has passed",
            run.seq, run.at
        ),
        (None, None) => "the log has no `race` line, because the asker did not wait at all".into(),
    }
}

/// The value came back, whatever else was delivered in the scope.
fn is_kept(lines: &[Line<'_>], race: &Line<'_>) -> Result<(), String> {
    let is_said =
        |line: &&Line<'_>| line.verb == "note" && line.detail().starts_with("the asker has ");
    let said = lines.iter().find(is_said).map_or("", |line| line.detail());
    if said == "the asker has 42" {
        return Ok(());
    }
    let is_hit = |line: &&Line<'_>| {
        let is_wait = line.verb == "trap" && !line.word(0).starts_with("unset");
        let is_ended = line.outcome().is_some_and(|outcome| outcome.starts_with("!timeout"));
        line.task == race.task
            && line.seq > race.seq
            && (is_wait || line.verb == "deliver")
            && is_ended
    };
    Err(match lines.iter().find(is_hit) {
        Some(hit) => format!(
            "line #{:04}: the value won the race of #{:04} and is lost here: the timeout that \
             lost is still in force in its scope, and it ended the next wait there; take the value \
             out of the scope first",
            hit.seq, race.seq
        ),
        None => format!(
            "line #{:04}: the value won the race, but the log says `{said}`; `ask` is to return \
             the value 42",
            race.seq
        ),
    })
}
