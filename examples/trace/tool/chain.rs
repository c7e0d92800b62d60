//! `why`: the chain of causes of a line, in sentences.

use std::fmt::Write as _;

use testing::trace::{Behind, Line};

use super::model::{Trace, wait_in_words};
use super::style::Paint;

/// The lines from this one back to what came from outside, as places in the trace.
pub fn chain(trace: &Trace, place: usize) -> Vec<usize> {
    std::iter::successors(Some(place), |place| trace.cause(*place)).collect()
}

/// The answer to `why`: one sentence, and then the chain, a line each. With `lines`, the lines of
/// the log themselves.
pub fn why(trace: &Trace, place: usize, lines: bool, paint: Paint) -> String {
    let chain = chain(trace, place);
    let mut text = format!("{}\n\n", paint.strong(&sentence(trace, &chain)));
    for (nth, place) in chain.iter().enumerate() {
        let line = &trace.lines[*place];
        let shown = match lines {
            true => line.to_string(),
            false => {
                let because = if nth == 0 { "" } else { "because " };
                format!("  #{:04}  {}  {because}{}", line.seq, line.at, tell(trace, *place))
            }
        };
        let _ = writeln!(text, "{}", paint.line(line, &shown));
    }
    let last = *chain.last().expect("a chain has a line");
    if trace.behind[last] != Behind::Outside {
        text += "  (the trace does not say what is behind that)\n";
    }
    text
}

/// `task 5 `conn-1``
pub fn who(line: &Line<'_>) -> String {
    match line.task {
        0 => "the kernel".to_owned(),
        id => format!("task {id} `{}`", line.name()),
    }
}

/// The whole chain in one sentence: what happened, and what made the task run that did it.
fn sentence(trace: &Trace, chain: &[usize]) -> String {
    let is_run = |nth: usize| chain.get(nth).is_some_and(|at| trace.lines[*at].verb == "run");
    // A `run` only passes the question on to what made the task ready.
    let why = |nth: usize| {
        let place = *chain.get(nth)?;
        let cause = chain.get(nth + 1).map(|place| &trace.lines[*place]);
        Some(reason(trace, place, cause))
    };
    let did = tell(trace, chain[0]);
    let text = if is_run(0) {
        let who = who(&trace.lines[chain[0]]);
        why(1).map_or(did, |why| format!("{who} ran because {why}"))
    } else if is_run(1) {
        why(2).map_or(did.clone(), |why| format!("{did}, in a run that began because {why}"))
    } else {
        match chain.get(1) {
            Some(place) => format!("{did} because {}", tell(trace, *place)),
            None => did,
        }
    };
    let mut letters = text.chars();
    let capital = letters.next().into_iter().flat_map(char::to_uppercase);
    capital.chain(letters).collect::<String>() + "."
}

/// Why a task became ready, in one clause.
fn reason(trace: &Trace, place: usize, cause: Option<&Line<'static>>) -> String {
    let line = &trace.lines[place];
    let block = line.number("k").and_then(|ticket| trace.block_of(ticket, place));
    let Some(block) = block.filter(|_| ["wake", "deliver"].contains(&line.verb)) else {
        return tell(trace, place);
    };
    let at = at(block);
    let waited = format!("waiting for {} since {} s{at}", wait_in_words(block), block.at);
    match (line.verb, line.word(0), cause) {
        ("deliver", ..) => format!("{} while it was {waited}", interrupted(line)),
        (_, _, Some(cause)) if cause.verb == "arrive" => {
            let since = format!("since {} s{at}", block.at);
            format!("{}, which it had been waiting for {since}", arrived(cause))
        }
        (_, "sleep", _) if block.word(0) == "sleep" => {
            format!("its sleep of {}, begun at {} s{at}, was over", block.word(1), block.at)
        }
        (_, _, Some(cause)) => {
            let (who, op) = (who(cause), line.op());
            format!("{who} (#{:04}) ended its wait for `{op}`, and it had been {waited}", cause.seq)
        }
        _ => tell(trace, place),
    }
}

/// The interrupt of a `deliver` line as a clause.
fn interrupted(line: &Line<'_>) -> String {
    let outcome = line.outcome().unwrap_or_default();
    let kind = outcome.split(' ').next().unwrap_or_default();
    let set = line.key("set-at").map_or(String::new(), |site| format!(", set at {site},"));
    match (kind, line.key("scope")) {
        ("!cancelled", _) => match line.number("by") {
            Some(task) => format!("task {task} cancelled it"),
            None => "it was cancelled from outside".to_owned(),
        },
        ("!timeout" | "!timeout-cancellation" | "!uncaught-timeout", scope) => match scope {
            Some(scope) => format!("the deadline of scope {scope}{set} passed"),
            None => format!("its connection deadline{set} passed"),
        },
        _ => format!("it was told `{outcome}`"),
    }
}

/// What an `arrive` line says, as a clause.
fn arrived(line: &Line<'_>) -> String {
    match (line.word(0), line.word(1)) {
        (signal, "") => format!("the process got {signal}"),
        (alias, _) if alias.starts_with('l') => format!("a client connected to {alias}"),
        (alias, _) if alias.starts_with('e') => {
            "another thread sent the kernel a message".to_owned()
        }
        (alias, "read") => format!("bytes arrived on {alias}"),
        (alias, _) => format!("{alias} had room for more bytes"),
    }
}

/// What a line says, as a clause.
pub fn tell(trace: &Trace, place: usize) -> String {
    let line = &trace.lines[place];
    let who = who(line);
    match line.verb {
        "run" => match line.key("parked") {
            Some(span) => format!("{who} ran, {span} after it had left the CPU"),
            None => format!("{who} ran for the first time"),
        },
        "wake" => {
            let block = line.number("k").and_then(|ticket| trace.block_of(ticket, place));
            let what = block.map_or("a waker".to_owned(), wait_in_words);
            let since = block.map_or(String::new(), |block| {
                format!(" (#{:04}, since {}{})", block.seq, block.at, at(block))
            });
            format!("the wait of {who} for {what}{since} was over")
        }
        "deliver" => format!("{who} was interrupted: {}", interrupted(line)),
        "spawn" => match (line.number("parent"), line.cause) {
            (Some(parent), _) => format!("task {parent} spawned {who}{}", at(line)),
            (None, Some(_)) => format!("another thread spawned {who}{}", at(line)),
            (None, None) => format!("{who} was started with the kernel (from outside)"),
        },
        "arrive" => format!("{} (from outside)", arrived(line)),
        "fire" => {
            let cause = line.cause.unwrap_or_default();
            let set = trace.place(cause).map_or(String::new(), |place| at(&trace.lines[place]));
            let (what, deadline) = (timer_in_words(line), line.key("deadline").unwrap_or("?"));
            format!(
                "it was {deadline}: {what} was due, set by #{cause:04}{set} (from outside: time)"
            )
        }
        _ => did(line, &who),
    }
}

/// ` at FILE:LINE`, if a line says so.
fn at(line: &Line<'_>) -> String {
    line.key("at").map_or(String::new(), |site| format!(" at {site}"))
}

/// What a `fire` line is about.
fn timer_in_words(fire: &Line<'_>) -> String {
    let timer = fire.word(0);
    match timer.chars().next() {
        Some('k') => format!("the sleep {timer}"),
        Some('s') => format!("the timeout {timer}"),
        _ if ["grace", "drain"].contains(&timer) => format!("the `{timer}` of the shutdown"),
        _ => format!("the connection deadline {timer}"),
    }
}

/// What a task or the kernel did.
fn did(line: &Line<'_>, who: &str) -> String {
    let (first, second, outcome) = (line.word(0), line.word(1), line.outcome().unwrap_or_default());
    match (line.verb, second) {
        ("await", _) => format!("{who} began to wait for {}{}", wait_in_words(line), at(line)),
        ("block", _) => {
            format!("{who} left the CPU to wait for {}{}", wait_in_words(line), at(line))
        }
        ("io", "read") if outcome == "0" => format!("{who} read the end of {first}"),
        ("io", "read") => format!("{who} read {outcome} bytes on {first}"),
        ("io", _) => format!("{who} wrote {outcome} bytes on {first}"),
        ("accept", _) => format!("{who} accepted {} at {first}", line.word(2)),
        ("trap", _) => format!("{who} got `{outcome}` for its trap `{}`", line.op()),
        ("exit", _) => format!("{who} ended ({first})"),
        ("cancel", _) => {
            let by = line.number("by").map(|task| format!("task {task}"));
            format!("{} asked {who} to end", by.as_deref().unwrap_or("the kernel"))
        }
        ("phase", _) if first == "close" => {
            format!("the shutdown began ({})", line.key("reason").unwrap_or_default())
        }
        ("phase", _) => format!("the shutdown reached its phase {first}"),
        _ => format!("{who}: {}", line.event()),
    }
}
