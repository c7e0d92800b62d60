//! The five lines, one by one: the task, the event, the wait and the cause.

use testing::trace::{self, Line, span};

use crate::work::Work;

/// The reason for the place of each line, and for its cause.
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
        "after its sleep `egg` has nothing more to do, so the task ends in the same run",
        "an `exit` names the run in which the task ended",
    ),
    (
        "`main` waits for `tea`, so the end of `egg` wakes no task; every task waits again, and \
         the clock goes on",
        "a `fire` names the `block` line that set the timer",
    ),
];

/// An answer: the number of an event, the columns before it, and the rest of the line.
struct Said<'a> {
    seq: u64,
    before: Vec<&'a str>,
    rest: &'a str,
}

impl<'a> Said<'a> {
    /// Reads a line such as `#0005 2 main run cause=#0002`, or as the log shows it, with its time
    /// and its turn.
    fn read(line: &'a str) -> Option<Said<'a>> {
        let (before, rest) = line.split_once('#')?;
        let (number, rest) = rest.split_once(|c: char| !c.is_ascii_digit()).unwrap_or((rest, ""));
        let before: Vec<&str> = before.split_whitespace().collect();
        // A cause has a `#`, too.
        let is_column = |word: &&str| word.parse::<f64>().is_ok();
        let seq = number.parse().ok().filter(|_| before.iter().all(is_column))?;
        Some(Said { seq, before, rest: rest.trim() })
    }
}

pub fn check(work: &Work) -> Result<(), String> {
    let golden = trace::trace(&work.golden).map_err(|error| error.to_string())?;
    let said = said(&work.source, &golden)?;
    let find = |line: &Line<'_>| {
        let mut found = said.iter().filter(|said| said.seq == line.seq && !said.rest.is_empty());
        (found.next(), found.next())
    };
    let missing = golden.iter().filter(|line| find(line).0.is_none());
    let missing: Vec<String> = missing.map(|line| format!("#{:04}", line.seq)).collect();
    if !missing.is_empty() {
        return Err(format!("still missing: what happens in {}", missing.join(", ")));
    }
    if let Some(line) = golden.iter().find(|line| find(line).1.is_some()) {
        return Err(format!("line #{:04} is there twice; keep one of them", line.seq));
    }
    for (right, why) in golden.iter().zip(WHY) {
        if let Some(said) = find(right).0 {
            judge(right, said, why)?;
        }
    }
    Ok(())
}

/// The lines of an answer. Each other line must be empty or a remark.
fn said<'a>(source: &'a str, golden: &[Line<'_>]) -> Result<Vec<Said<'a>>, String> {
    let is_remark = |line: &str| {
        let rest = line.strip_prefix('#');
        line.is_empty() || rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_asked = |said: &Said<'_>| golden.iter().any(|line| line.seq == said.seq);
    let lines = (1..).zip(source.lines().map(str::trim)).filter(|(_, line)| !is_remark(line));
    let said = lines.map(|(nth, line)| {
        Said::read(line).filter(is_asked).ok_or_else(|| {
            format!(
                "line {nth} of your answer, `{line:.80}`, is none of the five lines; expected one \
                 of the numbers #0015 to #0019, or `# ` before a remark"
            )
        })
    });
    said.collect()
}

fn judge(right: &Line<'_>, said: &Said<'_>, why: (&str, &str)) -> Result<(), String> {
    let (seq, rest) = (right.seq, said.rest);
    let text = format!("0.000000 0 #{seq:04} {}", in_order(rest));
    let line = trace::line(&text).map_err(|error| {
        let expected = error.expected;
        format!("line #{seq:04}: `{rest}` is no line: expected {expected}, found `{}`", error.found)
    })?;
    let is_same = line.task == right.task && line.verb == right.verb;
    match (line.key("k"), right.key("k")) {
        (None, Some(_)) if is_same => {
            return Err(format!(
                "line #{seq:04}: its ticket is missing; a line about a wait names it with `k=`"
            ));
        }
        (Some(ticket), None) if is_same => {
            return Err(format!(
                "line #{seq:04}: `k={ticket}` is wrong; no wait is begun, completed or answered \
                 here"
            ));
        }
        _ => {}
    }
    if !is_same || line.key("k") != right.key("k") {
        let ticket = line.key("k").map_or(String::new(), |key| format!(" k={key}"));
        let (task, name, verb) = (line.task, line.name(), line.verb);
        return Err(format!("line #{seq:04} is not `{task} {name} {verb}{ticket}`: {}", why.0));
    }
    if line.name() != right.name() {
        return Err(format!("line #{seq:04}: task {} is not `{}`", line.task, line.name()));
    }
    if about(&line) != about(right) {
        return Err(format!("line #{seq:04}: {}", why_about(&line)));
    }
    if line.cause != right.cause {
        let cause = line.cause.map_or("missing".to_owned(), |cause| format!("not #{cause:04}"));
        return Err(format!("line #{seq:04}: its cause is {cause}: {}", why.1));
    }
    extras(right, said, &line)
}

/// The words with a space between them, and the result of the wait at the end, as in a log.
fn in_order(rest: &str) -> String {
    let mut words: Vec<&str> = rest.split_whitespace().collect();
    if let Some(at) = words.iter().position(|word| *word == "=") {
        let end = words.len().min(at + 2);
        words[at..].rotate_left(end - at);
    }
    words.join(" ")
}

/// The words before the first key or outcome: the subject of the line.
fn about<'l>(line: &'l Line<'_>) -> Vec<&'l str> {
    line.words().take_while(|word| !word.contains('=')).collect()
}

fn why_about(line: &Line<'_>) -> String {
    let verb = line.verb;
    let is = about(line).join(" ");
    let is = if is.is_empty() { "nothing".to_owned() } else { format!("`{is}`") };
    let right = match verb {
        "wake" => "a `wake` names the wait that is over, as the `block` line of that ticket does",
        "exit" => "an `exit` says how the task ended: `ok`, or an error",
        _ => "there is nothing between the verb and the first key",
    };
    format!("{is} after `{verb}` is wrong: {right}")
}

/// Parts that the answer may leave out must be right if they are present.
fn extras(right: &Line<'_>, said: &Said<'_>, line: &Line<'_>) -> Result<(), String> {
    let seq = right.seq;
    let wrong = |is: String| Err(format!("line #{seq:04}: {is} is wrong; it may be left out"));
    for column in &said.before {
        let (name, right) = match column.contains('.') {
            true => ("time", right.at.to_string()),
            false => ("turn", right.turn.to_string()),
        };
        if *column != right.trim() {
            return wrong(format!("its {name} `{column}`"));
        }
    }
    let mut keys = Vec::new();
    for word in line.words().skip(about(line).len()) {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            match line.outcome() {
                Some(outcome) if word == "=" || outcome.contains(word) => continue,
                _ => return wrong(format!("`{word}`")),
            }
        };
        if keys.contains(&key) {
            return Err(format!("line #{seq:04}: `{key}=` is there twice; keep one of them"));
        }
        keys.push(key);
        let expected = right.key(key);
        let is_same = expected == Some(value) || expected.and_then(span) == span(value);
        if !["k", "cause"].contains(&key) && (expected.is_none() || !is_same) {
            return wrong(format!("`{word}`"));
        }
    }
    match line.outcome() {
        Some(outcome) if right.outcome() != Some(outcome) => wrong(format!("`= {outcome}`")),
        _ => Ok(()),
    }
}
