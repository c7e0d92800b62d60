//! `diff`: the first event in which two traces differ.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher as _};

use testing::trace::{Line, MEASURED};
use traps::Time;

use super::model::{Task, Trace};
use super::style::Paint;

/// Words that only count something, or that only a timed trace has.
const OTHERS: [&str; 7] = ["cause=", "k=", "turn=", "ran=", "waited=", "late=", "peer="];

/// The essence of a line, by which lines are compared, as a number: the verb and its words, without
/// event numbers, tickets and times.
fn essence(line: &Line<'_>) -> u64 {
    let (mut hasher, mut before) = (DefaultHasher::new(), "");
    for word in line.event().split_ascii_whitespace() {
        let is_own = !OTHERS.iter().any(|key| word.starts_with(key));
        for part in word.split(',').filter(|_| is_own) {
            let key = part.split_once('=').map(|(key, _)| key);
            let is_time = before == "=" && part.parse::<Time>().is_ok();
            match key.filter(|key| MEASURED.contains(key)) {
                Some(key) => hasher.write(key.as_bytes()),
                None if is_time => {}
                None => hasher.write(part.as_bytes()),
            }
            // Ends a part with a byte that no text contains.
            hasher.write_u8(u8::MAX);
        }
        before = word;
    }
    hasher.finish()
}

/// The essence of each line.
fn essences(trace: &Trace) -> Vec<u64> {
    let mut all = Vec::with_capacity(trace.len());
    trace.each(|_, line| all.push(essence(line)));
    all
}

/// The tasks, by name and by number among those with the same name. The kernel is task 0.
fn by_name(trace: &Trace) -> BTreeMap<(&str, usize), &Task> {
    let (mut seen, mut all) = (BTreeMap::<&str, usize>::new(), BTreeMap::new());
    for task in trace.tasks() {
        let nth = seen.entry(&task.name).or_default();
        *nth += 1;
        all.insert((&*task.name, *nth), task);
    }
    all.extend(trace.task(0).map(|kernel| (("kernel", 0), kernel)));
    all
}

/// The lines of a task, as places.
fn lines(trace: &Trace, task: &Task) -> Vec<usize> {
    let mut lines = trace.lines_of(task);
    // Only a timed trace has the facts about the machine.
    lines.retain(|place| task.id != 0 || trace.verb(*place) != "boot");
    lines
}

/// A place in each of two traces, and the difference there.
type Difference = (usize, usize, String);

/// The first difference, in the order of the first trace.
fn first(a: &Trace, b: &Trace) -> Option<Difference> {
    let (of_a, of_b) = (by_name(a), by_name(b));
    let (in_a, in_b) = (essences(a), essences(b));
    let mut first: Option<Difference> = None;
    let mut found = |at_a: usize, at_b: usize, what: String| {
        if first.as_ref().is_none_or(|(place, ..)| at_a < *place) {
            first = Some((at_a, at_b, what));
        }
    };
    for ((name, nth), task) in &of_a {
        let ours = lines(a, task);
        let Some(other) = of_b.get(&(*name, *nth)) else {
            let place = ours.first().copied().unwrap_or(0);
            found(place, place.min(b.len()), format!("only the first has task `{name}`"));
            continue;
        };
        let theirs = lines(b, other);
        let differs =
            |n: &usize| ours.get(*n).map(|at| in_a[*at]) != theirs.get(*n).map(|at| in_b[*at]);
        if let Some(n) = (0..ours.len().max(theirs.len())).find(differs) {
            let place = |lines: &[usize], all: usize| lines.get(n).copied().unwrap_or(all);
            let what = format!("event {} of `{name}` differs", n + 1);
            found(place(&ours, a.len()), place(&theirs, b.len()), what);
        }
    }
    for ((name, _), task) in of_b.iter().filter(|(key, _)| !of_a.contains_key(*key)) {
        let place = lines(b, task).first().copied().unwrap_or(0);
        found(a.len(), place, format!("only the second has task `{name}`"));
    }
    first
}

/// The first difference with the lines around it; `None` if there is none.
pub fn diff(a: &Trace, b: &Trace, paint: Paint) -> Option<String> {
    let (at_a, at_b, what) = first(a, b)?;
    let mut text = paint.strong(&what) + "\n";
    for (name, trace, at) in [("first", a, at_a), ("second", b, at_b)] {
        let _ = writeln!(text, "--- {name}");
        let from = at.saturating_sub(3);
        for place in from..(at + 4).min(trace.len()) {
            let mark = if place == at { ">" } else { " " };
            let line = trace.line(place).to_string();
            let line = if place == at { paint.strong(&line) } else { line };
            let _ = writeln!(text, "{mark} {line}");
        }
        if at >= trace.len() {
            text += "> (no more lines)\n";
        }
    }
    Some(text)
}
