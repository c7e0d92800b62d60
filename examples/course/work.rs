//! What a student hands in, and the judgement that all labs have in common.

use testing::trace::{self, Line};

/// What is judged.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// The file that the student wrote: `lab.rs`, `answer.txt`, or a source file of the kernel.
    pub source: String,
    /// The scenario that the program ran in; see [`Lab::scenarios`](crate::labs::Lab::scenarios).
    #[allow(dead_code, reason = "not every lab has scenarios")]
    pub seed: u64,
    /// What the program printed: its log. Empty for an answer.
    pub log: String,
    /// What the solution prints; empty if the lab does not compare with it.
    #[allow(dead_code, reason = "not every lab compares")]
    pub golden: String,
}

impl Work {
    /// What stands behind each `KEY:` of an answer, or which of them are empty.
    pub fn answers<const N: usize>(&self, keys: [&str; N]) -> Result<[&str; N], String> {
        let find = |key: &str| {
            let mut lines = self.source.lines();
            lines.find_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix(':'))
        };
        let answers = keys.map(|key| find(key).map_or("", str::trim));
        let empty = keys.iter().zip(answers).filter(|(_, answer)| answer.is_empty());
        let empty: Vec<String> = empty.map(|(key, _)| format!("`{key}`")).collect();
        if empty.is_empty() {
            Ok(answers)
        } else {
            Err(format!("still missing: {}", empty.join(", ")))
        }
    }
}

/// How a program ended.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// Whether it ended by itself with success.
    pub is_success: bool,
    /// The time limit, if it was killed there.
    pub killed_after: Option<std::time::Duration>,
    /// The limit other than time for which it was stopped, in words that follow `your program`.
    pub stopped: Option<String>,
    /// The status in words: `exit status: 101`.
    pub status: String,
    /// What it printed on standard error.
    pub stderr: String,
}

/// What is wrong with any program: it does not end, it panics, or it prints no right log. The
/// kernels of the first steps print simpler logs than version 3.
pub fn judge(ended: &Ended, work: &Work, is_version_2: bool) -> Result<(), String> {
    // What is missing comes first: it may be why the program does not end.
    if let Some(missing) = missing(&ended.stderr).or_else(|| missing(&work.log)) {
        return Err(format!("still missing: {missing}"));
    }
    if let Some(limit) = ended.killed_after {
        let log = if work.log.trim().is_empty() { &ended.stderr } else { &work.log };
        let is_line = |line: &&str| trace::line(line).is_ok() || !is_version_2;
        let last = log.lines().filter(|line| !line.is_empty()).rfind(is_line);
        let last = last.map_or("it printed no line of its log".to_owned(), |line| {
            format!("the last line of its log is `{}`", line.trim())
        });
        return Err(format!("your program did not end in {} s; {last}", limit.as_secs()));
    }
    if let Some(why) = &ended.stopped {
        return Err(format!("your program {why}"));
    }
    if !ended.is_success {
        return Err(failure(ended));
    }
    if work.log.trim().is_empty() {
        return Err("your program printed no log".to_owned());
    }
    if !is_version_2 {
        return Ok(());
    }
    let lines = parsed(&work.log)?;
    panic_of_a_task(&lines, &ended.stderr, &work.golden)?;
    rules(&lines, &work.golden)
}

/// A rule that the log breaks. A step may not keep all of them yet: then its golden log breaks
/// them, too.
fn rules(lines: &[Line<'_>], golden: &str) -> Result<(), String> {
    let Err(violations) = trace::check(lines) else { return Ok(()) };
    let golden = trace::trace(golden).unwrap_or_default();
    let known = trace::check(&golden).err().unwrap_or_default();
    let is_known = |rule| known.iter().any(|each| each.rule == rule);
    let Some(first) = violations.iter().find(|each| !is_known(each.rule)) else { return Ok(()) };
    let number = lines.iter().find(|line| line.seq == first.seq);
    let line = number.map_or(String::new(), |line| format!(": `{}`", line.to_string().trim()));
    let (seq, rule, what) = (first.seq, first.rule, &first.what);
    Err(format!("line #{seq:04} of your log breaks the rule `{rule}`: {what}{line}"))
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
        let ends = ["#", "note: run with", "stack backtrace:"];
        !ends.iter().any(|end| line.starts_with(end)) && trace::line(line).is_err()
    };
    let message: Vec<&str> = rest.lines().take_while(is_message).map(str::trim).collect();
    Some((place_for_student(place), message.join("; ").trim_end_matches("; ").to_owned()))
}

/// A place as the student knows it: the files of the tests are variants of `lab.rs`.
fn place_for_student(place: &str) -> String {
    let (file, line) = place.split_once(':').unwrap_or((place, ""));
    let file = match file.rsplit_once('/') {
        Some((folder, "given.rs")) if folder.contains("/labs/") => "src/given.rs",
        Some((folder, _)) if folder.contains("/labs/") => "src/lab.rs",
        _ => file,
    };
    format!("{file}:{}", line.split(':').next().unwrap_or_default())
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
    trace::trace(log).map_err(|(number, error)| {
        let line = log.lines().nth(number - 1).unwrap_or_default();
        format!("line {number} of what your program printed is no line of a log: {error}: `{line}`")
    })
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
