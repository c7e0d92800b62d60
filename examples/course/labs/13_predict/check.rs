//! The five lines, one by one: who, what, which wait, and which cause.

use testing::trace::{self, Line};

use crate::work::Work;

/// Why each line comes there, and why it has that cause.
const WHY: [(&str, &str); 5] = [
    (
        "every task waits, so the clock goes on to the timer that is due first, and the kernel \
         fires it",
        "a `fire` names the `block` line that set the timer",
    ),
    (
        "the timer completes the wait of the task that set it, and the task is ready; it does not \
         have the CPU yet",
        "a `wake` names the line that completed the wait",
    ),
    (
        "the task that was woken has the CPU now, and its ticket is answered",
        "a `run` names the line that made the task ready",
    ),
    (
        "behind the sleep of `egg` there is nothing more to do, so the task ends in the same run",
        "an `exit` names the run in which the task ended",
    ),
    (
        "`main` waits for `tea`, so the end of `egg` wakes nobody; every task waits again, and the \
         clock goes on",
        "a `fire` names the `block` line that set the timer",
    ),
];

pub fn check(work: &Work) -> Result<(), String> {
    let golden = trace::trace(&work.golden).map_err(|(_, error)| error.to_string())?;
    let lines: Vec<&str> = work.source.lines().map(str::trim).collect();
    let lines: Vec<&str> =
        lines.into_iter().filter(|line| !line.is_empty() && !line.starts_with("# ")).collect();
    let find = |line: &Line<'_>| {
        let number = format!("#{:04}", line.seq);
        let found = lines.iter().find_map(|each| each.strip_prefix(&number));
        found.map(str::trim).filter(|rest| !rest.is_empty())
    };
    let missing = golden.iter().filter(|line| find(line).is_none());
    let missing: Vec<String> = missing.map(|line| format!("#{:04}", line.seq)).collect();
    if !missing.is_empty() {
        return Err(format!("still missing: what happens in {}", missing.join(", ")));
    }
    for (right, why) in golden.iter().zip(WHY) {
        judge(right, find(right).unwrap_or_default(), why)?;
    }
    Ok(())
}

fn judge(right: &Line<'_>, said: &str, (why, why_cause): (&str, &str)) -> Result<(), String> {
    let seq = right.seq;
    let text = format!("0.000000 0 #{seq:04} {said}");
    let line = trace::line(&text).map_err(|error| {
        let expected = error.expected;
        format!("line #{seq:04}: `{said}` is no line: expected {expected}, found `{}`", error.found)
    })?;
    let is_same = line.task == right.task && line.verb == right.verb;
    if !is_same || line.key("k") != right.key("k") {
        let ticket = line.key("k").map_or(String::new(), |key| format!(" k={key}"));
        let (task, name, verb) = (line.task, line.name(), line.verb);
        return Err(format!("line #{seq:04} is not `{task} {name} {verb}{ticket}`: {why}"));
    }
    if line.cause != right.cause {
        let cause = line.cause.map_or("missing".to_owned(), |cause| format!("not #{cause:04}"));
        return Err(format!("line #{seq:04}: its cause is {cause}: {why_cause}"));
    }
    Ok(())
}
