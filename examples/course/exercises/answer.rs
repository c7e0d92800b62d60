//! The answer to a question about a log, and a hint for each wrong choice. Both are computed.

use testing::trace::state::{Doing, State};
use testing::trace::{self, Line};
use traps::Time;

use super::order;

/// A question about a log.
#[derive(Debug, Default)]
pub enum Ask {
    #[default]
    Nothing,
    /// The line of the deadline or timer that ends the wait with this ticket.
    Whose(u64),
    /// The task that holds this primitive at a line.
    Holder(String, u64),
    /// The task that runs next after a line.
    Next(u64),
    /// The line that is left out. Each other line for its place has a hint why it is wrong.
    Missing(u64, Vec<(String, String)>),
    /// The order of these lines.
    Order(Vec<u64>),
}

/// One of several choices. Exactly one of them is right.
#[derive(Debug)]
pub struct Choice {
    /// The choice: a line of the log, or the name of a task.
    pub label: String,
    /// The reason why it is wrong, in Markdown; `None` if it is right.
    pub wrong: Option<String>,
}

#[derive(Debug)]
pub enum Answer {
    /// The choices, and the lines that prove the right one.
    Choices(Vec<Choice>, Vec<u64>),
    /// The lines in their order, and for each pair of neighbours the reason for that order.
    Order(Vec<String>, Vec<String>),
}

/// A line in the form for readers: its call site has no folder.
pub fn shown(line: &str) -> String {
    let words = line.split(' ').map(|word| match word.split_once("at=") {
        Some((before, site)) if before.is_empty() || before == "set-" => {
            format!("{before}at={}", site.rsplit('/').next().unwrap_or(site))
        }
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Computes the answer.
///
/// # Errors
///
/// Returns why there is not exactly one.
pub fn answer(
    ask: &Ask,
    lines: &[Line<'_>],
    is_shown: impl Fn(u64) -> bool,
) -> Result<Answer, String> {
    match ask {
        Ask::Nothing => Err("it asks for nothing".to_owned()),
        Ask::Whose(ticket) => whose(*ticket, lines, is_shown),
        Ask::Holder(words, at) => holder(words, *at, lines),
        Ask::Next(at) => next(*at, lines),
        Ask::Missing(seq, wrong) => missing(*seq, wrong, lines),
        Ask::Order(seqs) => order::answer(seqs, lines),
    }
}

/// The line with a number.
///
/// # Errors
///
/// Returns that there is none.
pub fn find<'l, 't>(lines: &'l [Line<'t>], seq: u64) -> Result<&'l Line<'t>, String> {
    lines.iter().find(|line| line.seq == seq).ok_or_else(|| format!("there is no line #{seq:04}"))
}

/// Returns the due time of the timer or deadline that a line sets.
fn due(line: &Line<'_>) -> Option<Time> {
    let sets = match (line.verb, line.word(0)) {
        ("trap", "set_timeout") | ("arm", _) => true,
        ("block" | "await", "sleep") => line.word(1) != "0s",
        _ => false,
    };
    line.key("until").filter(|_| sets)?.parse().ok().filter(|at| *at != Time::NEVER)
}

fn whose(
    ticket: u64,
    lines: &[Line<'_>],
    is_shown: impl Fn(u64) -> bool,
) -> Result<Answer, String> {
    let of_ticket = |verbs: &[&str]| {
        let found = lines.iter().find(|l| l.ticket == Some(ticket) && verbs.contains(&l.verb));
        found.ok_or_else(|| format!("the log has no {} of k={ticket}", verbs[0]))
    };
    let wait = of_ticket(&["block", "await"])?;
    let end = of_ticket(&["deliver", "wake"])?;
    let fire = find(lines, end.cause.ok_or("the end of the wait has no cause")?)?;
    let right = fire.cause.filter(|_| fire.verb == "fire").ok_or("no deadline ends the wait")?;
    if !is_shown(wait.seq) || !is_shown(right) || is_shown(fire.seq) {
        return Err("the wait and the deadline are to be shown, and the end is not".to_owned());
    }
    let at = due(find(lines, right)?).ok_or("the cause of the fire sets no deadline")?;
    let mut choices = Vec::new();
    for line in lines.iter().filter(|line| is_shown(line.seq) && line.seq < fire.seq) {
        let Some(until) = due(line) else { continue };
        let wrong = match line.seq == right {
            true => None,
            false => Some(not_whose(line, until, at, wait, lines)?),
        };
        choices.push(Choice {
            label: format!("#{:04} {:<8} {}", line.seq, line.name(), line.op()),
            wrong,
        });
    }
    Ok(Answer::Choices(choices, vec![fire.seq, end.seq]))
}

/// Why the timer of a line does not end a wait that ends at `at`.
fn not_whose(
    line: &Line<'_>,
    until: Time,
    at: Time,
    wait: &Line<'_>,
    lines: &[Line<'_>],
) -> Result<String, String> {
    let (task, seq) = (line.name(), line.seq);
    if line.task != wait.task {
        let of = wait.name();
        return Ok(format!("`#{seq:04}` belongs to the task `{task}`, and the wait to `{of}`."));
    }
    let later = lines.iter().filter(|later| later.seq > seq && later.seq <= wait.seq);
    for later in later.filter(|later| later.task == line.task) {
        let closed = later.verb == "trap" && later.word(0) == "unset_timeout";
        let over = later.verb == "run" && line.ticket.is_some() && later.ticket == line.ticket;
        let again = ["arm", "disarm"].contains(&later.verb) && later.word(0) == line.word(0);
        let name = if closed { line.outcome() } else { None };
        if name == Some(later.word(1)) {
            return Ok(format!("`#{:04}` closes the scope before the wait begins.", later.seq));
        } else if over {
            return Ok(format!("That sleep is over: look at `#{:04}`.", later.seq));
        } else if again && line.verb == "arm" {
            let deadline = line.word(0);
            return Ok(format!("`#{:04}` sets the deadline `{deadline}` again.", later.seq));
        }
    }
    match until > at {
        true => Ok(format!("`#{seq:04}` is due at {until} s. Another one is due sooner.")),
        false => Err(format!("#{seq:04} is due at {until}, and does not end the wait: why?")),
    }
}

/// The state of the kernel when it had written a line.
fn state_at(seq: u64, lines: &[Line<'_>]) -> State {
    let mut state = State::default();
    lines.iter().take_while(|line| line.seq <= seq).for_each(|line| state.line(line));
    state
}

fn holder(words: &str, at: u64, lines: &[Line<'_>]) -> Result<Answer, String> {
    let state = state_at(at, lines);
    let holders = state.primitives.get(words).map(|primitive| &primitive.holders);
    let mut holders = holders.into_iter().flatten();
    let (Some((holder, hold)), None) = (holders.next(), holders.next()) else {
        return Err(format!("not exactly one task holds `{words}` at #{at:04}"));
    };
    let spawned = lines.iter().filter(|line| line.seq <= at && line.verb == "spawn");
    let choices = spawned.filter(|line| line.name() != "wakeup").map(|spawn| {
        let name = spawn.name();
        let gave = lines.iter().rev().find(|line| {
            line.seq <= at
                && line.task == spawn.task
                && line.verb == "give"
                && line.detail() == words
        });
        let waits = state.waits.values().find(|wait| wait.task == spawn.task && &*wait.op == words);
        let wrong = match (waits, gave) {
            _ if spawn.task == *holder => None,
            (Some(wait), _) => {
                Some(format!("`{name}` has waited for the lock since `#{:04}`.", wait.seq))
            }
            (None, Some(gave)) => {
                Some(format!("`{name}` gives the lock back in `#{:04}`.", gave.seq))
            }
            (None, None) => {
                Some(format!("No line up to `#{at:04}` says that `{name}` takes the lock."))
            }
        };
        Choice { label: name.to_owned(), wrong }
    });
    Ok(Answer::Choices(choices.collect(), vec![hold.seq]))
}

fn next(at: u64, lines: &[Line<'_>]) -> Result<Answer, String> {
    let state = state_at(at, lines);
    let run = lines.iter().find(|line| line.seq > at && line.verb == "run");
    let run = run.ok_or("no task runs after this line")?;
    if state.ready().chain(state.next()).next() != Some(run.task) {
        return Err(format!("#{:04} does not follow from the state at #{at:04}", run.seq));
    }
    let choices = state.tasks.iter().map(|(id, task)| {
        let from = task.from;
        let name = &task.name;
        let wrong = match task.doing {
            _ if *id == run.task => None,
            Doing::Running => Some(format!("`{name}` has had the CPU since `#{from:04}`.")),
            Doing::Parked => Some(format!("`{name}` has been parked since `#{from:04}`.")),
            Doing::Ready => Some(format!(
                "`{name}` became ready in `#{from:04}`. Another task became ready before it."
            )),
        };
        Choice { label: task.name.to_string(), wrong }
    });
    Ok(Answer::Choices(choices.collect(), vec![run.seq]))
}

/// The outcome of the wait with a ticket.
fn outcome<'l>(line: &'l Line<'_>, ticket: u64) -> Option<&'l str> {
    let (_, rest) = line.detail().split_once(&format!("k={ticket} = "))?;
    let ends = [",", " set-at=", " cause="].into_iter().filter_map(|end| rest.find(end));
    Some(&rest[..ends.min().unwrap_or(rest.len())])
}

/// Returns whether the line at a place fits into a log.
fn is_possible(log: &[Line<'_>], at: usize) -> bool {
    let line = &log[at];
    // The oracle does not compare the end of a wait with the outcome in the `run` of its task, or
    // the deadline of a timer with the time at which it fires.
    let run = log.iter().find(|run| run.verb == "run" && run.cause == Some(line.seq));
    let told = run.and_then(|run| Some((run.ticket?, outcome(run, run.ticket?)?)));
    let is_told = told
        .is_none_or(|(ticket, told)| !told.starts_with('!') || outcome(line, ticket) == Some(told));
    let deadline = line.key("deadline").and_then(|deadline| deadline.parse::<Time>().ok());
    is_told && deadline.is_none_or(|at| at <= line.at) && trace::check(log).is_ok()
}

/// Puts each of the other lines into the place, and lets the oracle judge the log.
fn missing(seq: u64, wrong: &[(String, String)], lines: &[Line<'_>]) -> Result<Answer, String> {
    let place = find(lines, seq)?;
    let label = |line: &Line<'_>| {
        let (name, verb, detail) = (line.name(), line.verb, line.detail().trim());
        shown(&format!("{:>3} {name:<8} {verb:<8} {detail}", line.task))
    };
    let mut choices = vec![Choice { label: label(place), wrong: None }];
    for (text, hint) in wrong {
        let text = format!("{} {} #{seq:04} {text}", place.at, place.turn);
        let other = trace::line(&text).map_err(|error| format!("{text}: {error}"))?;
        let mut log = lines.to_vec();
        let at = log.iter().position(|line| line.seq == seq).expect("it was found");
        let shown = label(&other);
        log[at] = other;
        if is_possible(&log, at) {
            return Err(format!("{text}: it fits as well"));
        }
        choices.push(Choice { label: shown, wrong: Some(hint.clone()) });
    }
    trace::check(lines).map_err(|found| format!("the log itself is wrong: {}", found[0]))?;
    choices.sort_by(|a, b| a.label.cmp(&b.label));
    Ok(Answer::Choices(choices, vec![seq]))
}
