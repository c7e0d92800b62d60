//! Nobody new, no request lost, and no end without a clean-up.

use std::time::Duration;

use testing::trace::{Line, trace};
use traps::Time;

use crate::work::Work;

/// A log, and where in it the shutdown begins.
struct Shutdown<'w> {
    lines: &'w [Line<'w>],
    from: u64,
}

impl<'w> Shutdown<'w> {
    /// The first note of a task with that text.
    fn note(&self, task: &str, text: &str) -> Option<&'w Line<'w>> {
        self.lines.iter().find(|line| line.name() == task && is_note(line, text))
    }

    /// Who is cancelled, and where.
    fn cancel(&self, task: &str) -> Option<&'w Line<'w>> {
        self.lines.iter().find(|line| line.verb == "cancel" && line.name() == task)
    }
}

fn is_note(line: &Line<'_>, text: &str) -> bool {
    line.verb == "note" && text == line.event().trim_start_matches("note").trim()
}

fn seconds(n: u64) -> Time {
    Time::ZERO + Duration::from_secs(n)
}

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|(line, error)| format!("line {line}: {error}"))?;
    let from = lines.iter().find(|line| is_note(line, "shutdown")).map_or(0, |line| line.seq);
    let shutdown = Shutdown { lines: &lines, from };
    nobody_new(&shutdown)?;
    answered(&shutdown, "busy")?;
    answered(&shutdown, "chatty")?;
    idle(&shutdown)?;
    stuck(&shutdown)
}

fn nobody_new(shutdown: &Shutdown<'_>) -> Result<(), String> {
    let after = shutdown.lines.iter().filter(|line| line.seq > shutdown.from);
    for line in after {
        let (seq, at, name) = (line.seq, line.at, line.name());
        if line.verb == "spawn" && name.starts_with("late") {
            return Err(format!(
                "line #{seq:04}: `{name}` is accepted at {at}, and the shutdown began at 2.000000; \
                 who drains first and closes then is never done"
            ));
        }
        let number =
            if line.verb == "note" && line.word(0) == "begin" { line.word(1) } else { "1" };
        if number != "1" {
            return Err(format!(
                "line #{seq:04}: `{name}` begins its request {number} at {at}, and the shutdown \
                 began at 2.000000; nobody has told it that its answer is the last"
            ));
        }
    }
    Ok(())
}

/// The request that it has begun.
fn answered(shutdown: &Shutdown<'_>, task: &str) -> Result<(), String> {
    let begun = shutdown.note(task, "begin 1").map_or(0, |line| line.seq);
    if shutdown.note(task, "answer 1").is_some() {
        return Ok(());
    }
    match shutdown.cancel(task) {
        Some(cancel) => {
            let (seq, at) = (cancel.seq, cancel.at);
            Err(format!(
                "line #{seq:04}: `{task}` is cancelled at {at}, and the request that it has begun \
                 in line #{begun:04} is lost; it would have been answered in time"
            ))
        }
        None => Err(format!(
            "the program ends, and `{task}` has not answered the request that it has begun in line \
             #{begun:04}"
        )),
    }
}

fn idle(shutdown: &Shutdown<'_>) -> Result<(), String> {
    match shutdown.cancel_because("idle") {
        Some(line) if line.at < seconds(3) => Ok(()),
        Some(line) => Err(format!(
            "line #{:04}: `idle` is cancelled at {}; it waits for a request that has not begun, so \
             it can go at once",
            line.seq, line.at
        )),
        None => Err("`idle` is not cancelled; it waits for a request that has not begun".into()),
    }
}

fn stuck(shutdown: &Shutdown<'_>) -> Result<(), String> {
    let over = shutdown.note("main", "over").map_or((0, Time::ZERO), |line| (line.seq, line.at));
    let (seq, at) = over;
    match shutdown.cancel_because("stuck") {
        Some(line) if line.at < seconds(12) => Err(format!(
            "line #{:04}: `stuck` is cancelled at {}; requests that have begun have 10 s, until \
             12.000000",
            line.seq, line.at
        )),
        _ if at > seconds(14) => Err(format!(
            "line #{seq:04}: the shutdown is over at {at}: it has waited for `stuck`, which needs \
             a minute; a drain has a limit, which is 10 s here"
        )),
        None => Err(format!(
            "line #{seq:04}: the shutdown is over, and `stuck` was never told; its task is \
             dropped, and does not clean up"
        )),
        Some(_) if shutdown.note("stuck", "cleaned up").is_none() => Err(format!(
            "line #{seq:04}: the shutdown is over at {at}, and `stuck` has not cleaned up; wait \
             for the end of who is cancelled"
        )),
        Some(_) => Ok(()),
    }
}
