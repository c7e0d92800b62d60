//! The longest run, by the `ran=` at its end.

use std::time::Duration;

use testing::trace::{Line, span, trace};

use crate::work::Work;

/// The log, as the student has it.
const LOG: &str = include_str!("given/library.trace");

pub fn check(work: &Work) -> Result<(), String> {
    let [run, task, from, to] = work.answers(["run", "task", "from", "to"])?;
    let (from, to) = (place("from", from)?, place("to", to)?);
    let lines = trace(LOG).map_err(|error| error.to_string())?;
    let runs = lines.iter().filter(|line| line.verb == "run");
    let longest = runs.max_by_key(|run| ran(&lines, run)).ok_or("the log has no run")?;
    let seq = longest.seq;
    is_longest(&lines, longest, run)?;
    let (number, name) = (longest.task.to_string(), longest.name());
    let mut words = task.split_whitespace().map(|word| word.trim_matches('`'));
    if words.clone().count() > 2 {
        return Err(format!("`{task}` is more than one name of a task"));
    }
    if !words.clone().any(|word| word == name) || !words.all(|word| word == name || word == number)
    {
        return Err(format!("line #{seq:04} is a run of `{}`, not of `{task}`", longest.name()));
    }
    let block =
        lines.iter().find(|line| line.verb == "block" && line.number("k") == longest.number("k"));
    let came = block.and_then(|line| line.key("at")).unwrap_or_default();
    if from != came {
        let ticket = longest.key("k").unwrap_or_default();
        return Err(format!(
            "`from` is not {from}: the run of #{seq:04} answers the ticket k={ticket}, so it came \
             from the wait that opened this ticket, at the `block` line with k={ticket}"
        ));
    }
    let ended = end(&lines, longest).and_then(|line| line.key("at")).unwrap_or_default();
    if to != ended {
        return Err(format!(
            "`to` is not {to}: the run of #{seq:04} ended in a trap; its place is in the next \
             `block` line of the same task"
        ));
    }
    Ok(())
}

/// Returns FILE:LINE. `at=given/program.rs:20` names the same place as `program.rs:20`.
fn place<'a>(key: &str, said: &'a str) -> Result<&'a str, String> {
    let place = said.trim_matches('`').trim_start_matches("at=").trim_start_matches("./");
    let place = place.trim_start_matches("given/");
    match place.split_once(':') {
        Some((_, line)) if line.parse::<u32>().is_ok() => Ok(place),
        _ => {
            Err(format!("`{key}: {said}` is not one place; expected FILE:LINE, as `program.rs:20`"))
        }
    }
}

/// The line at which a task left the CPU.
fn end<'l, 't>(lines: &'l [Line<'t>], run: &Line<'_>) -> Option<&'l Line<'t>> {
    let is_end = |line: &&Line<'_>| line.task == run.task && ["block", "exit"].contains(&line.verb);
    lines.iter().filter(is_end).find(|line| line.seq > run.seq)
}

/// The time for which a run had the CPU.
fn ran(lines: &[Line<'_>], run: &Line<'_>) -> Duration {
    let ran = end(lines, run).and_then(|line| line.key("ran")).and_then(span);
    ran.unwrap_or_default()
}

fn is_longest(lines: &[Line<'_>], longest: &Line<'_>, said: &str) -> Result<(), String> {
    // The rest of the line may follow.
    let number_of = |word: &str| word.trim_matches('`').trim_start_matches('#').parse::<u64>().ok();
    let mut words = said.split_whitespace();
    let number = words.next().and_then(number_of);
    let number =
        number.ok_or_else(|| format!("`{said}` is no number of a line; expected #0021"))?;
    if number == longest.seq {
        let text = longest.to_string();
        let is_of_line = |word: &str| text.split_whitespace().any(|of_line| of_line == word);
        return match words.find(|word| number_of(word).is_some() && !is_of_line(word)) {
            Some(_) => Err(format!("`run: {said}` is more than the number of a line")),
            None => Ok(()),
        };
    }
    let line = lines.iter().find(|line| line.seq == number);
    let line = line.ok_or_else(|| format!("the log has no line #{number:04}"))?;
    let seq = line.seq;
    Err(match (line.verb, line.key("late"), line.key("parked")) {
        ("run", _, parked) => {
            let ended = end(lines, line).unwrap_or(line);
            let (end, ran) = (ended.seq, ended.key("ran").unwrap_or_default());
            let parked = match parked {
                Some(span) if ran == "0s" => format!(
                    "; `parked={span}` is how long the task did not have the CPU, so it was one of \
                     those that waited"
                ),
                _ => "; there is a longer one".to_owned(),
            };
            format!("the run of #{seq:04} ended at #{end:04} with `ran={ran}`{parked}")
        }
        ("fire", Some(late), _) => format!(
            "line #{seq:04} is a `fire`, which came {late} late: a task had the CPU when it was \
             due; search for the run before it"
        ),
        ("block" | "exit", ..) if line.task == longest.task => format!(
            "line #{seq:04} is a `{}`, at which a run ends; the run began with a `run` line of the \
             same task before it",
            line.verb
        ),
        (verb, ..) => format!("line #{seq:04} is a `{verb}`, and no `run`"),
    })
}
