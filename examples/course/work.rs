//! The work of a student, and the judgement that all labs have in common.

use std::collections::BTreeMap;

use testing::trace::{self, Line, TraceError};

use crate::early::Early;
use crate::{code, panics};

/// The work to judge.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// The file that the student wrote: `lab.rs`, `answer.txt`, or a source file of the kernel.
    pub source: String,
    /// The scenario that the program ran in; see [`Lab::scenarios`](crate::labs::Lab::scenarios).
    pub seed: u64,
    /// The output of the program, which is its log. Empty for an answer.
    pub log: String,
    /// The output of the solution; empty if the lab does not compare with it.
    pub golden: String,
}

impl Work {
    /// The source with blanks in place of comments and strings, so that a word is found in code
    /// only.
    pub fn code(&self) -> String {
        code::code(&self.source)
    }

    /// The number of the first line of the source that uses the identifier `word`.
    pub fn line_of(&self, word: &str) -> Option<usize> {
        code::line_of(&self.source, word)
    }

    /// The number of the first line of the source that takes code from another file.
    pub fn line_of_other_file(&self) -> Option<usize> {
        code::line_of_other_file(&self.source)
    }

    /// Returns the text after each `KEY:` of an answer, or the keys without text. Each other line
    /// must be empty or a remark.
    pub fn answers<const N: usize>(&self, keys: [&str; N]) -> Result<[&str; N], String> {
        let mut answers = [None; N];
        for (nth, line) in (1..).zip(self.source.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let found = line.split_once(':').and_then(|(key, answer)| {
                let at = keys.iter().position(|each| *each == key.trim_end())?;
                Some((at, answer.trim()))
            });
            let Some((at, answer)) = found else {
                return Err(format!(
                    "line {nth} of your answer, `{line:.80}`, is no answer and no remark; expected \
                     one of `{}:`, or `#` before a remark",
                    keys.join(":`, `")
                ));
            };
            if answers[at].replace(answer).is_some() {
                let key = keys[at];
                return Err(format!("`{key}:` is there more than once; keep one answer"));
            }
        }
        let answers = answers.map(Option::unwrap_or_default);
        let empty = keys.iter().zip(answers).filter(|(_, answer)| answer.is_empty());
        let empty: Vec<String> = empty.map(|(key, _)| format!("`{key}`")).collect();
        if empty.is_empty() {
            Ok(answers)
        } else {
            Err(format!("still missing: {}", empty.join(", ")))
        }
    }
}

/// The lines of the tasks with that name, and of all tasks that they have spawned: a task may share
/// its work with others.
pub fn family<'w>(lines: &'w [Line<'w>], name: &str) -> Vec<&'w Line<'w>> {
    let mut tasks = Vec::new();
    for line in lines.iter().filter(|line| line.verb == "spawn") {
        if line.name() == name || line.number("parent").is_some_and(|it| tasks.contains(&it)) {
            tasks.push(line.task);
        }
    }
    lines.iter().filter(|line| tasks.contains(&line.task)).collect()
}

/// How a program ended.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// Whether it ended by itself with success.
    pub is_success: bool,
    /// The time limit, if it was killed there.
    pub killed_after: Option<std::time::Duration>,
    /// The limit, other than time, at which it was stopped, in words that follow `your program`.
    pub stopped: Option<String>,
    /// The status in words: `exit status: 101`.
    pub status: String,
    /// Its output on standard error.
    pub stderr: String,
}

/// Checks the faults that any program can have: it does not end, it panics, or it does not print a
/// correct log. The kernels of the first steps print simpler logs than version 3.
pub fn judge(ended: &Ended, work: &Work, is_version_3: bool) -> Result<(), String> {
    // A missing part is reported first, because it may be the reason why the program does not end.
    if let Some(missing) = missing(&ended.stderr).or_else(|| missing(&work.log)) {
        return Err(format!("still missing: {missing}"));
    }
    let log = if work.log.trim().is_empty() { &ended.stderr } else { &work.log };
    let repeated = || repeated(log, is_version_3);
    if let Some(limit) = ended.killed_after {
        let is_line = |line: &&str| trace::line(line).is_ok() || !is_version_3;
        let last = log.lines().filter(|line| !line.is_empty()).rfind(is_line);
        let last = last.map(|line| format!("the last line of its log is `{}`", line.trim()));
        let last = repeated().or(last).unwrap_or("it printed no line of its log".to_owned());
        return Err(format!("your program did not end in {} s; {last}", limit.as_secs()));
    }
    if let Some(why) = &ended.stopped {
        let endless = repeated().map(|what| format!("; it does not come to an end: {what}"));
        return Err(format!("your program {why}{}", endless.unwrap_or_default()));
    }
    if !ended.is_success {
        let endless = ended.stderr.contains(ENDLESS).then(repeated).flatten();
        return Err(match endless {
            Some(what) => format!("your program does not come to an end: {what}"),
            None => failure(ended, &work.source),
        });
    }
    if work.log.trim().is_empty() {
        return Err("your program printed no log".to_owned());
    }
    if !is_version_3 {
        return caught_panic(ended, work);
    }
    let lines = parsed(&work.log)?;
    panic_of_a_task(&lines, &ended.stderr, work)?;
    caught_panic(ended, work)?;
    rules(&lines, &work.golden)
}

/// A rule that the log breaks. A step may not yet keep all of them. Then its golden log breaks them
/// too.
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

/// The message of [`testing::Setup`] about a run with too many events.
const ENDLESS: &str = "the program does not end: more than ";

/// The operation that a task repeats at the end of a log, in words.
fn repeated(log: &str, is_version_3: bool) -> Option<String> {
    let what = |line| {
        if !is_version_3 {
            let line = Early::read(line).filter(|line| OPERATIONS.contains(&line.verb))?;
            let event = format!("{} {}", line.verb, line.detail.split(' ').next()?);
            return Some(format!("its task {} repeats `{}`", line.task, event.trim_end()));
        }
        let line = trace::line(line).ok().filter(|line| OPERATIONS.contains(&line.verb))?;
        let place = line.key("at").and_then(|at| at.rsplit_once(':'));
        let place = place.map(|(file, line)| format!(" at {}:{line}", panics::of_student(file)));
        let (task, name, operation) = (line.task, line.name(), line.word(0));
        let place = place.unwrap_or_default();
        Some(format!("its task {task} `{name}` repeats `{operation}`{place}"))
    };
    let mut counts = BTreeMap::<String, usize>::new();
    for what in log.lines().rev().filter_map(what).take(200) {
        *counts.entry(what).or_default() += 1;
    }
    let (what, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    // A few tasks may take turns.
    (count >= 20).then_some(what)
}

/// The verbs of the lines that name an operation of a task.
const OPERATIONS: [&str; 3] = ["block", "trap", "await"];

/// The text of the first `todo!` that was reached.
fn missing(text: &str) -> Option<String> {
    const TODO: &str = "not yet implemented";
    let (_, rest) = text.split_once(TODO)?;
    let what = rest.lines().next()?.trim_start_matches(':').trim();
    Some(if what.is_empty() { "a part marked with `todo!`".to_owned() } else { what.to_owned() })
}

/// The message of the kernel of a step about a task that asks twice in one poll.
const ONE_REQUEST: &str = "rule: a poll makes one request";

fn failure(ended: &Ended, source: &str) -> String {
    match panics::panics(&ended.stderr).first() {
        Some(panic) => {
            let why = match panic.message == ONE_REQUEST {
                true => {
                    "; two futures have asked the kernel in one poll, or one was polled and not \
                     awaited"
                }
                false => "",
            };
            format!("your program panicked {}: {}{why}", panic.place(source), panic.message)
        }
        None => {
            let mut lines = ended.stderr.lines();
            let first = lines.find(|line| !line.trim().is_empty()).unwrap_or("nothing");
            format!("your program failed ({}); it said: {first}", ended.status)
        }
    }
}

fn parsed(log: &str) -> Result<Vec<Line<'_>>, String> {
    trace::trace(log).map_err(|TraceError { line: number, error }| {
        let line = log.lines().nth(number - 1).unwrap_or_default();
        format!(
            "line {number} of what your program printed is no line of a log: {error}: `{line}`; \
             print what you want to see with `eprintln!`"
        )
    })
}

/// A panic that the program itself has caught: the log of the real kernel has the others.
fn caught_panic(ended: &Ended, work: &Work) -> Result<(), String> {
    let panics = panics::panics(&ended.stderr);
    let is_caught = |panic: &&panics::Panic<'_>| !work.log.contains(panic.message.as_str());
    let Some(panic) = panics.iter().find(is_caught) else { return Ok(()) };
    let (place, message) = (panic.place(&work.source), &panic.message);
    Err(format!("your program panicked {place}: {message}; it went on, but a panic is a mistake"))
}

/// A panic that the solution does not have. The program continues after it, so its log is whole.
fn panic_of_a_task(lines: &[Line<'_>], stderr: &str, work: &Work) -> Result<(), String> {
    let is_known = |line: &Line<'_>| work.golden.lines().any(|other| other.ends_with(line.event()));
    let Some(line) = lines.iter().find(|line| line.verb == "panic" && !is_known(line)) else {
        return Ok(());
    };
    let (seq, task, name, message) = (line.seq, line.task, line.name(), line.detail());
    // Other tasks may have panicked before.
    let panics = panics::panics(stderr);
    let panic = panics.iter().find(|panic| message.contains(panic.message.as_str()));
    let place = panic.map_or(String::new(), |panic| format!(" {}", panic.place(&work.source)));
    Err(format!("line #{seq:04}: your task {task} `{name}` panicked{place}: {message}"))
}
