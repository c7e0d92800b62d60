//! A race that the value won, and the value with the asker.

use testing::trace::{Line, span, trace};

use super::scenario::{self, Scenario};
use crate::work::Work;

pub fn check(work: &Work) -> Result<(), String> {
    let scenario = scenario::of(work.seed);
    let lines = trace(&work.log).map_err(|error| error.to_string())?;
    let lines = &lines[..];
    let is_said =
        |line: &&Line<'_>| line.verb == "note" && line.detail().starts_with("the asker has ");
    let said = lines.iter().find(is_said).ok_or("the log does not say what the asker has")?;
    let is_timeout = |line: &&Line<'_>| {
        line.task == said.task && line.verb == "trap" && line.word(0) == "set_timeout"
    };
    let timeouts: Vec<&Line<'_>> = lines.iter().filter(is_timeout).collect();
    let Some(timeout) = timeouts.first() else {
        return Err("the asker sets no timeout (`set_timeout`) with which the value could race; \
                    it waits in `timeout_after`"
            .to_owned());
    };
    is_of_patience(&scenario, lines, &timeouts)?;
    let is_race = |line: &&Line<'_>| {
        (line.verb, line.task) == ("race", said.task)
            && (line.word(0), line.word(1)) == ("winner=value", "loser=timeout")
    };
    let race = lines.iter().find(is_race).ok_or_else(|| no_race(lines, timeout))?;
    waits_once(&scenario, lines, race)?;
    is_answered(lines, race)?;
    is_kept(&scenario, lines, race, said)
}

/// The asker waits once, from its beginning and for its patience.
fn is_of_patience(
    scenario: &Scenario,
    lines: &[Line<'_>],
    timeouts: &[&Line<'_>],
) -> Result<(), String> {
    let asked = scenario.patience;
    let wrong = timeouts
        .iter()
        .find(|line| span(line.word(1)).is_none_or(|span| span != scenario.patience));
    if let Some(wrong) = wrong {
        return Err(format!(
            "line #{:04}: this timeout of the asker is {} long; its patience is {asked:?}",
            wrong.seq,
            wrong.word(1)
        ));
    }
    let task = timeouts[0].task;
    let start = lines.iter().find(|line| line.verb == "run" && line.task == task);
    let late = timeouts.iter().find(|line| start.is_some_and(|start| line.at > start.at));
    match late {
        Some(late) => Err(format!(
            "line #{:04}: the asker begins to wait here at {}; it is to wait once, from its \
             beginning and for {asked:?} at most",
            late.seq, late.at
        )),
        None => Ok(()),
    }
}

/// The asker leaves the CPU once before the race: it waits for the value, and for nothing else.
fn waits_once(scenario: &Scenario, lines: &[Line<'_>], race: &Line<'_>) -> Result<(), String> {
    let is_wait = |line: &&Line<'_>| line.verb == "block" && line.task == race.task;
    let waits: Vec<&Line<'_>> =
        lines.iter().filter(|line| line.seq < race.seq).filter(is_wait).collect();
    match waits[..] {
        [first, second, ..] => Err(format!(
            "line #{:04}: the asker waits here for the second time, for `{}`, and in #{:04} for \
             `{}`; it is to wait once, from its beginning and for {:?} at most",
            second.seq,
            second.word(0),
            first.seq,
            first.word(0),
            scenario.patience
        )),
        _ => Ok(()),
    }
}

/// The reason why there was no race: the timeout came first, or the asker ran first.
fn no_race(lines: &[Line<'_>], timeout: &Line<'_>) -> String {
    let deadline = timeout.key("until").unwrap_or("never");
    let of_asker =
        || lines.iter().filter(|line| line.task == timeout.task && line.seq > timeout.seq);
    if let Some(deliver) = of_asker().find(|line| line.verb == "deliver") {
        return format!(
            "line #{:04}: the deadline {deadline} passed and no value was there, so the asker got \
             the timeout; the value must be sent before, and the asker must not run in between",
            deliver.seq
        );
    }
    let closed = of_asker().find(|line| line.word(0) == "unset_timeout").map(|line| line.seq);
    let mut runs = of_asker().filter(|line| line.verb == "run");
    let last = runs.rfind(|line| closed.is_none_or(|closed| line.seq < closed));
    match (of_asker().find(|line| line.verb == "late"), last) {
        (Some(late), Some(run)) => format!(
            "line #{:04}: the scope was closed late, but there was no race: the deadline \
             {deadline} passed in the turn in which the asker runs, in #{:04}, and the kernel \
             looks at its timers only between turns; the CPU must be held past the deadline in \
             the turn of `send`, while the asker is only ready",
            late.seq, run.seq
        ),
        (_, Some(run)) => format!(
            "line #{:04}: the asker runs at {}, before its deadline {deadline}, and its wait is \
             over, so the timeout had no part in it; after `send`, the sender must hold the CPU \
             until the deadline has passed",
            run.seq, run.at
        ),
        (_, None) => "the log has no `race` line, because the asker did not wait at all".into(),
    }
}

/// A task other than the asker has answered, before the race.
fn is_answered(lines: &[Line<'_>], race: &Line<'_>) -> Result<(), String> {
    let is_wake = |line: &&Line<'_>| line.verb == "wake" && line.task == race.task;
    let wake = lines.iter().filter(is_wake).rfind(|line| line.seq < race.seq);
    if wake.is_some_and(|wake| wake.word(0) == "sleep") {
        return Err(format!(
            "line #{:04}: here a sleep of the asker itself races with the timeout around it; the \
             value is to come from another task",
            race.seq
        ));
    }
    let is_answer = |line: &&Line<'_>| line.verb == "note" && line.word(0) == "answers";
    match lines.iter().find(is_answer) {
        Some(answer) if answer.task == race.task => Err(format!(
            "line #{:04}: the asker answers its own question here; the task `sender` is to call \
             `question.answer()` and to send the result",
            answer.seq
        )),
        Some(answer) if answer.seq > race.seq => Err(format!(
            "line #{:04}: the question is answered only here, and the race was in #{:04}; the \
             answer is the value that is to win it",
            answer.seq, race.seq
        )),
        Some(_) => Ok(()),
        None => Err(format!(
            "line #{:04}: a value wins this race, but no task has called `question.answer()`; the \
             answer is the value that the asker waits for",
            race.seq
        )),
    }
}

/// The value came back, whatever else was delivered in the scope.
fn is_kept(
    scenario: &Scenario,
    lines: &[Line<'_>],
    race: &Line<'_>,
    said: &Line<'_>,
) -> Result<(), String> {
    let answer = scenario.answer;
    if said.detail() == format!("the asker has {answer}") {
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
            "line #{:04}: the value won the race, but the log says `{}`; `ask` is to return the \
             answer of the sender, {answer}",
            race.seq,
            said.detail()
        ),
    })
}
