//! A job that is abandoned, its orphan, and only then the end of the caller.

use testing::trace::{Line, trace};
use traps::Time;

use super::scenario::{self, Scenario};
use crate::work::Work;

pub fn check(work: &Work) -> Result<(), String> {
    let scenario = scenario::of(work.seed);
    let lines = trace(&work.log).map_err(|error| error.to_string())?;
    let offload = only_job(&lines)?;
    let job = offload.word(0);
    let find = |verb: &str| lines.iter().find(|line| line.verb == verb && line.word(0) == job);
    if let Some(done) = find("done") {
        return Err(not_abandoned(&lines, offload, done));
    }
    let Some(abandon) = find("abandon") else {
        return Err(format!(
            "line #{:04}: the job {job} has a caller that neither gets its result nor gives up; \
             wait for it in `timeout_after`",
            offload.seq
        ));
    };
    gives_up_in_time(&scenario, offload, abandon)?;
    let is_end =
        |line: &&Line<'_>| line.verb == "note" && line.detail().starts_with("the caller has");
    let end =
        lines.iter().find(is_end).ok_or("the log does not say that the caller has returned")?;
    match find("orphan") {
        Some(orphan) if end.seq > orphan.seq => {
            is_no_guess(&lines, abandon, end)?;
            has_worked(&work.log)?;
            has_returned(end)
        }
        _ => Err(too_soon(job, abandon, end)),
    }
}

/// The one job that a thread worked on.
fn only_job<'l>(lines: &'l [Line<'l>]) -> Result<&'l Line<'l>, String> {
    let mut offloads = lines.iter().filter(|line| line.verb == "offload");
    let Some(offload) = offloads.next() else {
        return Err("the log has no `offload` line, so no thread worked for you; a timeout ends \
                    any wait of a task, and nothing is left that could outlive it"
            .to_owned());
    };
    match offloads.next() {
        Some(second) => Err(format!(
            "line #{:04}: this is a second job, {}; the work is one job, {}, and another thread \
             does not know when it ends",
            second.seq,
            second.word(0),
            offload.word(0)
        )),
        None => Ok(offload),
    }
}

/// The caller was still there when the job ended.
fn not_abandoned(lines: &[Line<'_>], offload: &Line<'_>, done: &Line<'_>) -> String {
    let (seq, job) = (done.seq, done.word(0));
    let trap = |name: &str| {
        let is_it =
            |line: &&Line<'_>| (line.verb, line.task, line.word(0)) == ("trap", offload.task, name);
        lines.iter().filter(|line| line.seq < seq).find(is_it)
    };
    match (trap("shield"), trap("set_timeout")) {
        (Some(shield), Some(_)) => format!(
            "line #{seq:04}: the job {job} is done and its caller still waits: the shield of \
             #{:04} held the timeout back; no interrupt can stop the thread, so it needs no shield",
            shield.seq
        ),
        (None, Some(timeout)) => format!(
            "line #{seq:04}: the job {job} is done and its caller still waits; the timeout of \
             #{:04} ends at {}, and the job at {}",
            timeout.seq,
            timeout.key("until").unwrap_or("never"),
            done.at
        ),
        (_, None) => format!(
            "line #{seq:04}: the job {job} is done, and `{}` still waits for it, because this task \
             has no timeout; wait for the job itself in `timeout_after`",
            offload.name()
        ),
    }
}

/// The caller waits for its patience, neither longer nor shorter.
fn gives_up_in_time(
    scenario: &Scenario,
    offload: &Line<'_>,
    abandon: &Line<'_>,
) -> Result<(), String> {
    let waited = abandon.at.since(offload.at);
    if waited == scenario.patience {
        return Ok(());
    }
    Err(format!(
        "line #{:04}: the caller gives up after {waited:?}; its patience is {:?}",
        abandon.seq, scenario.patience
    ))
}

/// The caller has waited for the thread itself, not for a time.
fn is_no_guess(lines: &[Line<'_>], abandon: &Line<'_>, end: &Line<'_>) -> Result<(), String> {
    let is_sleep = |line: &&Line<'_>| {
        // In a race the wait is an `await` line.
        let is_sleep = ["block", "await"].contains(&line.verb) && line.word(0) == "sleep";
        let until = line.key("until").and_then(|until| until.parse::<Time>().ok());
        is_sleep && line.seq < end.seq && until.is_some_and(|until| until > abandon.at)
    };
    if let Some(sleep) = lines.iter().find(is_sleep) {
        return Err(format!(
            "line #{:04}: the task `{}` sleeps until {} while the thread works, which is a guess; \
             the work may take longer, so wait for what the thread does last",
            sleep.seq,
            sleep.name(),
            sleep.key("until").unwrap_or("never")
        ));
    }
    let is_timeout = |line: &&Line<'_>| {
        line.verb == "arm" || (line.verb == "trap" && line.word(0) == "set_timeout")
    };
    let Some(timeout) = lines.iter().filter(is_timeout).nth(1) else { return Ok(()) };
    let why = match timeout.key("until") {
        Some(until) => format!(
            "this timeout ends the wait for the thread at {until}, which is a guess, because the \
             work may take longer"
        ),
        None => "this timeout has no limit, so it never ends the wait for the thread".to_owned(),
    };
    Err(format!("line #{:04}: {why}; this wait needs no timeout", timeout.seq))
}

/// The job was the work.
fn has_worked(log: &str) -> Result<(), String> {
    let times = log.lines().find_map(|line| line.strip_prefix("# the work was done "));
    match times.and_then(|rest| rest.strip_suffix(" times")).unwrap_or("no") {
        "1" => Ok(()),
        times => Err(format!(
            "`work` was called {times} times; the job is to call it once, and the work sets the \
             event at its end"
        )),
    }
}

/// `caller` has returned `Ok`: it was asked to give up, so its timeout is no failure.
fn has_returned(end: &Line<'_>) -> Result<(), String> {
    match end.detail().strip_prefix("the caller has failed: ") {
        Some(error) => Err(format!(
            "line #{:04}: `caller` returns the error `{}`; the timeout was to be expected, so \
             return `Ok` once the thread has ended",
            end.seq,
            error.split(", set at").next().unwrap_or(error)
        )),
        None => Ok(()),
    }
}

/// The caller ends while the thread works.
fn too_soon(job: &str, abandon: &Line<'_>, end: &Line<'_>) -> String {
    let (seq, given_up) = (end.seq, abandon.seq);
    if end.detail().starts_with("the caller has failed: timed out") {
        return format!(
            "line #{seq:04}: the error of the timeout left `caller` at once, and the thread of \
             {job}, abandoned in #{given_up:04}, still works; the error is expected here, and the \
             wait for the thread comes after it"
        );
    }
    format!(
        "line #{seq:04}: `caller` has returned at {}, and the thread of {job}, abandoned in \
         #{given_up:04}, still works: no `orphan {job}` is before this line; wait for what the \
         thread does last",
        end.at
    )
}
