//! No new connection, no lost request, and no end without a clean-up.

use std::time::Duration;

use testing::trace::{Line, trace};
use traps::Time;

use super::scenario::{self, CLEAN_UP, DRAIN, State};
use crate::work::Work;

/// A log, and its lines at which the shutdown begins and ends.
struct Shutdown<'w> {
    lines: &'w [Line<'w>],
    begin: &'w Line<'w>,
    over: &'w Line<'w>,
}

impl<'w> Shutdown<'w> {
    fn read(lines: &'w [Line<'w>]) -> Result<Shutdown<'w>, String> {
        let of_main = |text: &str| {
            let found = lines.iter().find(|line| line.name() == "main" && is_note(line, text));
            found.ok_or_else(|| format!("`main` has not noted `{text}`"))
        };
        Ok(Shutdown { lines, begin: of_main("shutdown")?, over: of_main("over")? })
    }

    /// The time at which requests that have begun are cancelled.
    fn limit(&self) -> Time {
        self.begin.at + DRAIN
    }

    /// The first note of a task with this text.
    fn note(&self, task: &str, text: &str) -> Option<&'w Line<'w>> {
        self.lines.iter().find(|line| line.name() == task && is_note(line, text))
    }

    /// The cancellation of a task.
    fn cancel(&self, task: &str) -> Option<&'w Line<'w>> {
        self.lines.iter().find(|line| line.verb == "cancel" && line.name() == task)
    }
}

fn is_note(line: &Line<'_>, text: &str) -> bool {
    line.verb == "note" && line.detail() == text
}

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|error| error.to_string())?;
    let shutdown = Shutdown::read(&lines)?;
    let open = scenario::of(work.seed).open();
    none_is_accepted(&shutdown)?;
    let limit = scenario::of(work.seed).shutdown + DRAIN;
    let is_slow = |state: &State| matches!(state, State::Busy(_, until) if *until > limit);
    for (task, state) in &open {
        match state {
            State::Busy(number, _) if !is_slow(state) => answered(&shutdown, task, *number)?,
            _ => {}
        }
    }
    no_request_begins(&shutdown, &open)?;
    for (task, _) in open.iter().filter(|(_, state)| *state == State::Idle) {
        idle(&shutdown, task)?;
    }
    // Each clean-up may delay the next cancellation.
    let mut delay = Duration::ZERO;
    for (task, state) in open.iter().filter(|(_, state)| is_slow(state)) {
        slow(&shutdown, task, state)?;
        delay += CLEAN_UP;
    }
    let latest = shutdown.limit() + delay.saturating_sub(CLEAN_UP);
    for (task, _) in open.iter().filter(|(_, state)| is_slow(state)) {
        in_time(&shutdown, task, latest)?;
    }
    over(&shutdown, &open)
}

fn none_is_accepted(shutdown: &Shutdown<'_>) -> Result<(), String> {
    // If the timer of the acceptor fired in this turn, a cancellation comes too late for it.
    let mut after = shutdown.lines.iter().filter(|line| line.at > shutdown.begin.at);
    match after.find(|line| line.verb == "spawn" && line.name().starts_with("late")) {
        None => Ok(()),
        Some(line) => Err(format!(
            "line #{:04}: `{}` is accepted at {}, and the shutdown began at {}; a server that \
             drains first and closes then is never done",
            line.seq,
            line.name(),
            line.at,
            shutdown.begin.at
        )),
    }
}

fn no_request_begins(shutdown: &Shutdown<'_>, open: &[(String, State)]) -> Result<(), String> {
    let mut after = shutdown.lines.iter().filter(|line| line.seq > shutdown.begin.seq);
    let Some(line) = after.find(|line| line.verb == "note" && line.word(0) == "begin") else {
        return Ok(());
    };
    let (seq, at, name, number) = (line.seq, line.at, line.name(), line.word(1));
    let is_idle = open.iter().any(|(task, state)| task == name && *state == State::Idle);
    let mut spawns = shutdown.lines.iter().filter(|line| line.verb == "spawn");
    let why = match is_idle {
        true if spawns.any(|line| line.name() == name && line.seq > shutdown.begin.seq) => {
            "the acceptor was awake then, and accepted it: look for idle connections when the \
             acceptor has ended"
        }
        true => "it was idle then, so it can be cancelled at once",
        false => "the connection was not told that its answer is the last",
    };
    let began = shutdown.begin.at;
    Err(format!(
        "line #{seq:04}: `{name}` begins its request {number} at {at}, and the shutdown began at \
         {began}; {why}"
    ))
}

/// The request that it has begun.
fn answered(shutdown: &Shutdown<'_>, task: &str, number: usize) -> Result<(), String> {
    let begun = shutdown.note(task, &format!("begin {number}")).map_or(0, |line| line.seq);
    let over = shutdown.over.seq;
    match (shutdown.note(task, &format!("answer {number}")), shutdown.cancel(task)) {
        (Some(_), _) => Ok(()),
        (None, Some(cancel)) => {
            let (seq, at) = (cancel.seq, cancel.at);
            Err(format!(
                "line #{seq:04}: `{task}` is cancelled at {at}, and the request that it has begun \
                 in line #{begun:04} is lost; it would have been answered in time"
            ))
        }
        (None, None) => Err(format!(
            "line #{over:04}: the shutdown is over, and `{task}` has not answered the request that \
             it has begun in line #{begun:04}"
        )),
    }
}

fn idle(shutdown: &Shutdown<'_>, task: &str) -> Result<(), String> {
    let began = shutdown.begin.at;
    let why = format!("it was idle when the shutdown began at {began}");
    match shutdown.cancel(task) {
        Some(line) if line.at == began => Ok(()),
        Some(line) => Err(format!(
            "line #{:04}: `{task}` is cancelled at {}; {why}, so it can go at once",
            line.seq, line.at
        )),
        None => Err(format!(
            "line #{:04}: the shutdown is over, and `{task}` was not cancelled; {why}",
            shutdown.over.seq
        )),
    }
}

/// A request that needs longer than the drain is cancelled, and cleans up.
fn slow(shutdown: &Shutdown<'_>, task: &str, state: &State) -> Result<(), String> {
    let (seq, at, limit) = (shutdown.over.seq, shutdown.over.at, shutdown.limit());
    let until = match state {
        State::Busy(_, until) => Time::ZERO + *until,
        State::Idle => limit,
    };
    match shutdown.cancel(task) {
        Some(line) if line.at < limit => Err(format!(
            "line #{:04}: `{task}` is cancelled at {}; requests that have begun have 10 s, until \
             {limit}",
            line.seq, line.at
        )),
        None if at >= until => Err(format!(
            "line #{seq:04}: the shutdown is over at {at}, and `{task}` was never cancelled, whose \
             request needed until {until}; a drain has a limit, which is 10 s here"
        )),
        None => Err(format!(
            "line #{seq:04}: the shutdown is over, and `{task}` was never cancelled; its task is \
             dropped, and does not clean up"
        )),
        Some(_) if shutdown.note(task, "cleaned up").is_none() => Err(format!(
            "line #{seq:04}: the shutdown is over at {at}, and `{task}` has not cleaned up; wait \
             for the end of a task that you cancel"
        )),
        Some(_) => Ok(()),
    }
}

fn in_time(shutdown: &Shutdown<'_>, task: &str, latest: Time) -> Result<(), String> {
    match shutdown.cancel(task).filter(|line| line.at > latest) {
        None => Ok(()),
        Some(line) => Err(format!(
            "line #{:04}: `{task}` is cancelled at {}; all requests together have 10 s, until {}",
            line.seq,
            line.at,
            shutdown.limit()
        )),
    }
}

/// The shutdown ends with the last connection.
fn over(shutdown: &Shutdown<'_>, open: &[(String, State)]) -> Result<(), String> {
    let is_open = |line: &&Line<'_>| open.iter().any(|(task, _)| task == line.name());
    let exits = shutdown.lines.iter().filter(|line| line.verb == "exit").filter(is_open);
    let Some(last) = exits.max_by_key(|line| line.seq) else { return Ok(()) };
    let (seq, at) = (shutdown.over.seq, shutdown.over.at);
    if at == last.at {
        return Ok(());
    }
    Err(format!(
        "line #{seq:04}: the shutdown is over at {at}, and the last connection, `{}`, had ended at \
         {} in line #{:04}; join the connections",
        last.name(),
        last.at,
        last.seq
    ))
}
