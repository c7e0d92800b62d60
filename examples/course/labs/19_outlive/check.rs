//! A job that is abandoned, its orphan, and only then the end of the caller.

use testing::trace::{Line, trace};

use crate::work::Work;

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|(line, error)| format!("line {line}: {error}"))?;
    let Some(offload) = lines.iter().find(|line| line.verb == "offload") else {
        return Err("the log has no `offload` line, so no thread worked for you; a timeout ends \
                    whatever waits in a task, and nothing is left that could outlive it"
            .to_owned());
    };
    let job = offload.word(0);
    let find = |verb: &str| lines.iter().find(|line| line.verb == verb && line.word(0) == job);
    if let Some(done) = find("done") {
        return Err(not_abandoned(&lines, done));
    }
    let Some(abandon) = find("abandon") else {
        return Err(format!(
            "line #{:04}: the job {job} has a caller that neither gets its result nor gives up; \
             wait for it in `timeout_after`",
            offload.seq
        ));
    };
    let exit = lines.iter().find(|line| line.verb == "exit" && line.task == offload.task);
    match (exit, find("orphan")) {
        (Some(exit), Some(orphan)) if exit.seq > orphan.seq => is_no_guess(&lines, abandon),
        (Some(exit), _) => Err(too_soon(&lines, job, abandon, exit)),
        (None, _) => Err(format!("the caller, task {}, has no `exit` line", offload.task)),
    }
}

/// The caller was still there when the job ended.
fn not_abandoned(lines: &[Line<'_>], done: &Line<'_>) -> String {
    let (seq, job) = (done.seq, done.word(0));
    let shield = lines.iter().find(|line| line.verb == "trap" && line.word(0) == "shield");
    let timeout = lines.iter().find(|line| line.word(0) == "set_timeout");
    match (shield, timeout) {
        (Some(shield), Some(_)) => format!(
            "line #{seq:04}: the job {job} is done and its caller still waits: the shield of \
             #{:04} held the timeout back; it is the thread that goes on by itself, and it needs \
             no shield",
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
            "line #{seq:04}: the job {job} is done and its caller still waits, because there is no \
             timeout; wait for it in `timeout_after`"
        ),
    }
}

/// The caller has waited for the thread itself, not for a time.
fn is_no_guess(lines: &[Line<'_>], abandon: &Line<'_>) -> Result<(), String> {
    let is_sleep = |line: &&Line<'_>| line.verb == "block" && line.word(0) == "sleep";
    let mut after = lines.iter().filter(|line| line.task == abandon.task && line.seq > abandon.seq);
    match after.find(is_sleep) {
        None => Ok(()),
        Some(sleep) => Err(format!(
            "line #{:04}: the caller sleeps until {} while the thread works, which is a guess; the \
             work may take longer, so wait for what the thread does last",
            sleep.seq,
            sleep.key("until").unwrap_or("never")
        )),
    }
}

/// The caller ends while the thread works.
fn too_soon(lines: &[Line<'_>], job: &str, abandon: &Line<'_>, exit: &Line<'_>) -> String {
    let seq = exit.seq;
    if lines.iter().any(|line| line.detail().starts_with("the caller failed: timed out")) {
        return format!(
            "line #{seq:04}: the error of the timeout left `caller` at once, so the program ends \
             while the thread of {job}, abandoned in #{:04}, works; the error is expected here, \
             and the wait for the thread comes after it",
            abandon.seq
        );
    }
    format!(
        "line #{seq:04}: your program ends at {}, and the thread of {job}, abandoned in #{:04}, \
         still works: no `orphan {job}` is before this line; wait for what the thread does last",
        exit.at, abandon.seq
    )
}
