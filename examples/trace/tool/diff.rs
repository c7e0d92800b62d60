//! `diff`: the first event in which two traces differ.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use testing::trace::{Line, mask_times};

use super::model::Trace;
use super::style::Paint;

/// What two lines are compared by: the verb and its words, without what only counts: event
/// numbers, tickets and, for traces of the real machine, times. A trace may be timed or not.
fn essence(line: &Line<'_>) -> String {
    let text = mask_times(&line.to_string());
    let mut words = text.split_whitespace();
    // Time, turn, number, task: the task is what they are aligned by.
    let rest = words.by_ref().skip(4);
    let others = ["cause=", "k=", "turn=", "ran=", "waited=", "late=", "peer="];
    let is_own = |word: &&str| !others.iter().any(|key| word.starts_with(key));
    rest.filter(is_own).collect::<Vec<_>>().join(" ")
}

/// The lines of each task, by its name and which of that name it is.
fn by_task(trace: &Trace) -> BTreeMap<(String, usize), Vec<usize>> {
    let (mut seen, mut all) = (BTreeMap::<String, usize>::new(), BTreeMap::new());
    for task in trace.tasks.values() {
        let nth = seen.entry(task.name.clone()).or_default();
        *nth += 1;
        all.insert((task.name.clone(), *nth), task.lines.clone());
    }
    // The facts about the machine are those of a timed trace.
    let is_kernel = |line: &Line<'_>| line.task == 0 && line.verb != "boot";
    let kernel = (0..trace.lines.len()).filter(|place| is_kernel(&trace.lines[*place]));
    all.insert(("kernel".to_owned(), 0), kernel.collect());
    all
}

/// The first difference, in the order of the first trace; `None` if there is none.
pub fn diff(a: &Trace, b: &Trace, paint: Paint) -> Option<String> {
    let (of_a, of_b) = (by_task(a), by_task(b));
    let mut first: Option<(usize, usize, String)> = None;
    let mut found = |at_a: usize, at_b: usize, what: String| {
        if first.as_ref().is_none_or(|(place, ..)| at_a < *place) {
            first = Some((at_a, at_b, what));
        }
    };
    for ((name, nth), lines) in &of_a {
        let Some(others) = of_b.get(&(name.clone(), *nth)) else {
            let place = lines.first().copied().unwrap_or(0);
            found(place, place.min(b.lines.len()), format!("only the first has task `{name}`"));
            continue;
        };
        let length = lines.len().max(others.len());
        let differs = |n: &usize| {
            let of = |trace: &Trace, lines: &[usize]| {
                lines.get(*n).map(|place| essence(&trace.lines[*place]))
            };
            of(a, lines) != of(b, others)
        };
        if let Some(n) = (0..length).find(differs) {
            let place = |lines: &[usize], all: usize| lines.get(n).copied().unwrap_or(all);
            let what = format!("event {} of `{name}` differs", n + 1);
            found(place(lines, a.lines.len()), place(others, b.lines.len()), what);
        }
    }
    for ((name, _), lines) in of_b.iter().filter(|(key, _)| !of_a.contains_key(key)) {
        found(a.lines.len(), lines[0], format!("only the second has task `{name}`"));
    }
    let (at_a, at_b, what) = first?;
    let mut text = paint.strong(&what) + "\n";
    for (name, trace, at) in [("first", a, at_a), ("second", b, at_b)] {
        let _ = writeln!(text, "--- {name}");
        let from = at.saturating_sub(3);
        for place in from..(at + 4).min(trace.lines.len()) {
            let mark = if place == at { ">" } else { " " };
            let line = trace.lines[place].to_string();
            let line = if place == at { paint.strong(&line) } else { line };
            let _ = writeln!(text, "{mark} {line}");
        }
        if at >= trace.lines.len() {
            text += "> (no more lines)\n";
        }
    }
    Some(text)
}
