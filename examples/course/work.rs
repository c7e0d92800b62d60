//! What a student hands in, and the judgement that all labs have in common.

use testing::trace::{self, Line};

/// What is judged.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// The file that the student wrote: `lab.rs`, `answer.txt`, or a source file of the kernel.
    pub source: String,
    /// What the program printed: its log. Empty for an answer.
    pub log: String,
    /// What the solution prints; empty if the lab does not compare with it.
    #[allow(dead_code, reason = "not every lab compares")]
    pub golden: String,
}

/// How a program ended.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// Whether it ended by itself with success.
    pub is_success: bool,
    /// The time limit, if it was killed there.
    pub killed_after: Option<std::time::Duration>,
    /// The status in words: `exit status: 101`.
    pub status: String,
    /// What it printed on standard error.
    pub stderr: String,
}

/// What is wrong with any program: it does not end, it panics, or it prints no right log.
pub fn judge(ended: &Ended, work: &Work) -> Result<(), String> {
    judge_end(ended, work)?;
    let lines = parsed(&work.log)?;
    panic_of_a_task(&lines, &ended.stderr, &work.golden)?;
    trace::check(&lines).map_err(|violations| {
        let first = &violations[0];
        let number = lines.iter().find(|line| line.seq == first.seq);
        let line = number.map_or(String::new(), |line| format!(": `{}`", line.to_string().trim()));
        let (seq, rule, what) = (first.seq, first.rule, &first.what);
        format!("line #{seq:04} of your log breaks the rule `{rule}`: {what}{line}")
    })
}

/// What is wrong with a program whose log has a form of its own: it does not end, or it panics.
pub fn judge_end(ended: &Ended, work: &Work) -> Result<(), String> {
    // What is missing comes first: it may be why the program does not end.
    if let Some(missing) = missing(&ended.stderr).or_else(|| missing(&work.log)) {
        return Err(format!("still missing: {missing}"));
    }
    if let Some(limit) = ended.killed_after {
        let log = if work.log.trim().is_empty() { &ended.stderr } else { &work.log };
        let last = last_line(log).map_or("it printed no line of its log".to_owned(), |line| {
            format!("the last line of its log is `{}`", line.trim())
        });
        return Err(format!("your program did not end in {} s; {last}", limit.as_secs()));
    }
    if ended.is_success { Ok(()) } else { Err(failure(ended)) }
}

/// The last line of a log. What follows it was said by others, or is the half of a line.
fn last_line(log: &str) -> Option<&str> {
    let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let is_plain = |line: &&str| line.split_whitespace().next().is_some_and(is_column);
    whole.lines().rev().find(|line| trace::line(line).is_ok() || is_plain(line))
}

/// Whether a line of the first steps can begin so: with a time or a turn.
fn is_column(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// The text of the first `todo!` that was reached.
fn missing(text: &str) -> Option<String> {
    const TODO: &str = "not yet implemented";
    let (_, rest) = text.split_once(TODO)?;
    let what = rest.lines().next()?.trim_start_matches(':').trim();
    Some(if what.is_empty() { "a part marked with `todo!`".to_owned() } else { what.to_owned() })
}

/// The first panic on standard error: its place and its message.
fn panic(stderr: &str) -> Option<(String, String)> {
    let (_, rest) = stderr.split_once(" panicked at ")?;
    let (place, rest) = rest.split_once(":\n")?;
    // A failed run prints its log after the message.
    let is_message = |line: &&str| {
        !line.starts_with('#') && !line.starts_with("note: run with") && trace::line(line).is_err()
    };
    let message: Vec<&str> = rest.lines().take_while(is_message).map(str::trim).collect();
    Some((place.to_owned(), message.join("; ").trim_end_matches("; ").to_owned()))
}

fn failure(ended: &Ended) -> String {
    match panic(&ended.stderr) {
        Some((place, message)) => format!("your program panicked at {place}: {message}"),
        None => {
            let first = ended.stderr.lines().next().unwrap_or("nothing");
            format!("your program failed ({}); it said: {first}", ended.status)
        }
    }
}

fn parsed(log: &str) -> Result<Vec<Line<'_>>, String> {
    let lines = trace::trace(log).map_err(|(number, error)| {
        let line = log.lines().nth(number - 1).unwrap_or_default();
        format!("line {number} of what your program printed is no line of a log: {error}: `{line}`")
    })?;
    if lines.is_empty() { Err("your program printed no log".to_owned()) } else { Ok(lines) }
}

/// A panic that the solution does not have. The program goes on after it, so its log is whole.
fn panic_of_a_task(lines: &[Line<'_>], stderr: &str, golden: &str) -> Result<(), String> {
    let is_known = |line: &Line<'_>| golden.lines().any(|other| other.ends_with(line.event()));
    match lines.iter().find(|line| line.verb == "panic" && !is_known(line)) {
        None => Ok(()),
        Some(line) => {
            let place = panic(stderr).map_or(String::new(), |(place, _)| format!(" at {place}"));
            let (seq, task, name) = (line.seq, line.task, line.name());
            let message = line.detail();
            Err(format!("line #{seq:04}: your task {task} `{name}` panicked{place}: {message}"))
        }
    }
}

#[cfg(test)]
#[path = "work_tests.rs"]
mod tests;
