//! Two logs, compared by what happened and why, not by their columns.
//!
//! The time, the turn, the numbers of events and tickets, and the places in the source may differ.
//! A cause is the line that it names.

use std::collections::BTreeMap;

use testing::trace::{Line, mask_times, trace};

/// Fields that only count or measure, or say where in the source.
const SHIFTING: [&str; 9] =
    ["cause=", "at=", "set-at=", "until=", "deadline=", "parked=", "over=", "k=", "turn="];

/// A log, made comparable.
struct Log<'t> {
    lines: Vec<Line<'t>>,
    /// What each line says, without what may shift.
    essences: Vec<String>,
    /// The tickets of each line, as the places of the lines that opened them.
    tickets: Vec<Vec<usize>>,
}

impl<'t> Log<'t> {
    fn read(text: &'t str) -> Result<Log<'t>, String> {
        let lines = trace(text).map_err(|(line, error)| format!("line {line}: {error}"))?;
        let essences = lines.iter().map(essence).collect();
        let mut opened = BTreeMap::new();
        let tickets = lines.iter().enumerate().map(|(at, line)| {
            let keys = line.words().filter_map(|word| word.strip_prefix("k="));
            let keys: Vec<String> = keys.map(str::to_owned).collect();
            keys.into_iter().map(|key| *opened.entry(key).or_insert(at)).collect()
        });
        Ok(Log { tickets: tickets.collect(), lines, essences })
    }

    /// The place of the line that is the cause of that one.
    fn cause(&self, at: usize) -> Option<usize> {
        let cause = self.lines[at].cause?;
        self.lines.iter().position(|line| line.seq == cause)
    }

    /// The line that began the chain of a `run`: what woke the task.
    fn origin(&self, at: usize) -> usize {
        let mut at = at;
        while ["run", "wake", "deliver"].contains(&self.lines[at].verb) {
            match self.cause(at) {
                Some(cause) if cause < at => at = cause,
                _ => break,
            }
            // The run of another task is a reason of its own.
            if self.lines[at].verb == "run" {
                break;
            }
        }
        at
    }

    /// Whether that happens in the log from there on.
    fn has(&self, from: usize, essence: &str) -> bool {
        self.essences[from.min(self.lines.len())..].iter().any(|each| each == essence)
    }

    /// Which run of its task that is.
    fn nth_run(&self, at: usize) -> usize {
        let is_run = |line: &&Line<'_>| line.verb == "run" && line.task == self.lines[at].task;
        self.lines[..at].iter().filter(is_run).count()
    }

    fn run(&self, task: u64, nth: usize) -> Option<usize> {
        let runs = self.lines.iter().enumerate();
        runs.filter(|(_, line)| line.verb == "run" && line.task == task).nth(nth).map(|(at, _)| at)
    }
}

/// The number and name of the task, the verb and the detail.
fn essence(line: &Line<'_>) -> String {
    let masked = mask_times(&line.to_string());
    let words = masked.split_whitespace().skip(3);
    let words = words.filter(|word| !SHIFTING.iter().any(|key| word.starts_with(key)));
    // The stops of a `longrun` have places, too.
    let words = words.map(|word| match word.split_once('@') {
        Some((stop, _)) if line.verb == "longrun" => stop,
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Who it is, for a reader.
fn who(line: &Line<'_>) -> String {
    match line.task {
        0 => "the kernel".to_owned(),
        task => format!("task {task} `{}`", line.name()),
    }
}

/// What happened, for a reader: the verb and what it is about.
fn what(line: &Line<'_>) -> String {
    let mut words = vec![line.verb];
    let is_kept = |word: &&str| !SHIFTING.iter().any(|key| *key != "k=" && word.starts_with(key));
    words.extend(line.detail().split(' ').filter(is_kept));
    format!("`{}`", words.join(" ").trim_end())
}

/// What woke a task, for a reader.
fn because(log: &Log<'_>, origin: usize) -> String {
    let line = &log.lines[origin];
    let set = log.cause(origin).filter(|_| line.verb == "fire");
    match set.map(|set| log.lines[set].op().split(" until=").next().unwrap_or_default()) {
        Some(op) => format!("{} ({op})", what(line)),
        None if line.task == 0 => what(line),
        None => format!("{} of {}", what(line), who(line)),
    }
}

/// Compares a log with the answer. Says the first difference in a sentence, with the number of the
/// line in the student's log.
#[allow(dead_code, reason = "the labs call it")]
pub fn by_causes(golden: &str, log: &str) -> Result<(), String> {
    if !golden.starts_with("#trace ") {
        return by_lines(golden, log);
    }
    let answer = Log::read(golden).map_err(|error| format!("the answer: {error}"))?;
    let student = Log::read(log)?;
    for at in 0..answer.lines.len().max(student.lines.len()) {
        let (Some(theirs), Some(yours)) = (answer.lines.get(at), student.lines.get(at)) else {
            return Err(ended(&answer, &student, at));
        };
        if answer.essences[at] != student.essences[at] {
            return Err(other_run(&answer, &student, at)
                .unwrap_or_else(|| difference(&answer, &student, at)));
        }
        // All lines before are alike, so a place in one log is that place in the other.
        if answer.cause(at) != student.cause(at) {
            return Err(other_run(&answer, &student, at)
                .unwrap_or_else(|| other_cause(&answer, &student, at)));
        }
        if answer.tickets[at] != student.tickets[at] {
            let (is, should) = (yours.detail(), theirs.detail());
            let seq = yours.seq;
            return Err(format!(
                "line #{seq:04}: your {} is about another wait: `{is}`; in the answer it is \
                 `{should}`",
                what(yours)
            ));
        }
    }
    Ok(())
}

/// Compares simpler logs, those of the first steps: their lines, without their times and places.
fn by_lines(golden: &str, log: &str) -> Result<(), String> {
    let key = |line: &str| {
        let masked = mask_times(line);
        let words = masked.split_whitespace();
        let words = words.filter(|word| !SHIFTING.iter().any(|key| word.starts_with(key)));
        words.collect::<Vec<_>>().join(" ")
    };
    let (mut answer, mut student) = (golden.lines(), log.lines());
    for number in 1.. {
        match (answer.next(), student.next()) {
            (Some(theirs), Some(yours)) if key(theirs) != key(yours) => {
                let (yours, theirs) = (yours.trim(), theirs.trim());
                return Err(format!(
                    "line {number}: your log has `{yours}`; the answer has `{theirs}` here"
                ));
            }
            (Some(_), Some(_)) => {}
            (Some(theirs), None) => {
                let (last, theirs) = (number - 1, theirs.trim());
                return Err(format!(
                    "your log ends after line {last}; the answer goes on with `{theirs}`"
                ));
            }
            (None, Some(yours)) => {
                let yours = yours.trim();
                return Err(format!(
                    "line {number}: your log goes on with `{yours}`; the answer has ended here"
                ));
            }
            (None, None) => break,
        }
    }
    Ok(())
}

/// One of the logs is over.
fn ended(answer: &Log<'_>, student: &Log<'_>, at: usize) -> String {
    match (answer.lines.get(at), student.lines.get(at)) {
        (Some(line), _) => {
            let more = answer.lines.len() - at;
            let last = student.lines.last().map_or(0, |line| line.seq);
            format!(
                "your log ends after line #{last:04}; in the answer {} goes on with {}, and {more} \
                 {} are missing in all",
                who(line),
                what(line),
                if more == 1 { "line" } else { "lines" },
            )
            .replace("1 line are", "1 line is")
        }
        (None, Some(line)) => {
            let (seq, who, what) = (line.seq, who(line), what(line));
            format!(
                "line #{seq:04}: your log goes on with {what} of {who}; the answer has ended here"
            )
        }
        (None, None) => unreachable!("the place is in one of the logs"),
    }
}

/// The logs part in the kernel's own work, and so a task runs that was woken by something else.
fn other_run(answer: &Log<'_>, student: &Log<'_>, at: usize) -> Option<String> {
    let is_work =
        |line: &Line<'_>| line.task == 0 || ["wake", "deliver", "run"].contains(&line.verb);
    if !is_work(&answer.lines[at]) || !is_work(&student.lines[at]) {
        return None;
    }
    let rest = &student.lines[at..];
    let run =
        at + rest.iter().take_while(|line| is_work(line)).position(|line| line.verb == "run")?;
    let line = &student.lines[run];
    let same = answer.run(line.task, student.nth_run(run))?;
    let (yours, theirs) = (student.origin(run), answer.origin(same));
    let (verb, other) = (answer.lines[theirs].verb, student.lines[yours].verb);
    if verb == other || verb == "run" {
        return None;
    }
    let (seq, who, because) = (line.seq, who(line), because(answer, theirs));
    Some(format!(
        "line #{seq:04}: your {who} ran, but no `{verb}` is among its causes; in the answer it \
         runs because of {because}"
    ))
}

fn other_cause(answer: &Log<'_>, student: &Log<'_>, at: usize) -> String {
    let line = &student.lines[at];
    let name = |log: &Log<'_>| match log.cause(at) {
        Some(cause) => format!("{} of {}", what(&log.lines[cause]), who(&log.lines[cause])),
        None => "nothing that the log names".to_owned(),
    };
    let number = line.cause.map_or(String::new(), |cause| format!(" (#{cause:04})"));
    format!(
        "line #{:04}: the cause of your {} of {} is {}{number}; in the answer it is {}",
        line.seq,
        what(line),
        who(line),
        name(student),
        name(answer),
    )
}

/// What differs in two lines of different essence.
fn difference(answer: &Log<'_>, student: &Log<'_>, at: usize) -> String {
    let (theirs, yours) = (&answer.lines[at], &student.lines[at]);
    let (seq, is, should) = (yours.seq, what(yours), what(theirs));
    let (you, they) = (who(yours), who(theirs));
    let is_later = student.has(at + 1, &answer.essences[at]);
    let is_expected = answer.has(at + 1, &student.essences[at]);
    let is_alike = you == they && yours.verb == theirs.verb;
    if is_alike && yours.op() == theirs.op() && yours.outcome() != theirs.outcome() {
        let outcome = |line: &Line<'_>| line.outcome().unwrap_or("nothing").to_owned();
        let (is, should) = (outcome(yours), outcome(theirs));
        let op = what(yours).split(" = ").next().unwrap_or_default().trim_matches('`').to_owned();
        let op = op.split(" k=").next().unwrap_or_default();
        return format!(
            "line #{seq:04}: `{op}` of your {you} gives `{is}`; in the answer `{should}`"
        );
    }
    match (is_later, is_expected) {
        (true, true) => format!(
            "line #{seq:04}: the order differs: your log has {is} of {you} here; in the answer \
             {should} of {they} comes first"
        ),
        (true, false) => {
            format!("line #{seq:04}: your log has {is} of {you}, which is not in the answer")
        }
        (false, true) => {
            format!("line #{seq:04}: before this line {should} of {they} is missing in your log")
        }
        (false, false) => format!(
            "line #{seq:04}: your log has {is} of {you}; the answer has {should} of {they} here"
        ),
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
