//! The same log in each run, of a shop that still does its work.

use testing::trace::{Line, line, trace};

use crate::work::Work;

/// The customers, and what is sold, in an order that a reader can predict: by name.
const CUSTOMERS: [&str; 8] = ["al", "bob", "eve", "kim", "lisa", "maria", "oscar", "sophie"];
const SOLD: [&str; 5] = ["cherries 1", "figs 3", "pears 1", "plums 2", "quinces 1"];

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|(line, error)| format!("line {line}: {error}"))?;
    if let Some(line) = first_difference(&work.log) {
        return Err(difference(&line, &work.source));
    }
    let spawns =
        lines.iter().filter(|line| line.verb == "spawn" && line.number("parent").is_some());
    let spawned: Vec<&str> = spawns.map(Line::name).collect();
    if let Some(missing) = CUSTOMERS.iter().find(|name| !spawned.contains(name)) {
        return Err(format!(
            "the runs agree, but the log has no task `{missing}`: the customers are to be served \
             side by side, each by a task of that name"
        ));
    }
    let notes = lines.iter().filter(|line| line.verb == "note");
    let sold: Vec<&str> = notes.filter_map(|line| line.detail().strip_prefix("sold ")).collect();
    if let Some(missing) = SOLD.iter().find(|note| !sold.contains(note)) {
        return Err(format!("the runs agree, but the log has no note `sold {missing}`"));
    }
    in_order("the customers are spawned", &spawned, &CUSTOMERS)?;
    in_order("the fruits are noted", &sold, &SOLD)
}

/// The line of the log that is not the same in each run, as `given.rs` says in its remark.
fn first_difference(log: &str) -> Option<Line<'_>> {
    let (_, number) = log.lines().find_map(|line| line.split_once("they differ from line "))?;
    let number: usize = number.split(' ').next()?.parse().ok()?;
    line(log.lines().nth(number - 1)?).ok()
}

/// What comes in another order in other runs.
fn difference(line: &Line<'_>, source: &str) -> String {
    let (seq, task, name) = (line.seq, line.task, line.name());
    let what = match (line.verb, line.word(0)) {
        ("trap", "spawn") => "spawns its tasks in another order",
        ("note", _) => "makes its notes in another order",
        _ => "does something else",
    };
    let why = match source.contains(".sort") {
        true => "a sort leaves those whose keys are equal in the order in which they came",
        false => "what gives that order?",
    };
    format!(
        "still missing: the same log in each run; line #{seq:04} is the first that differs, where \
         task {task} `{name}` {what}; {why}"
    )
}

fn in_order(what: &str, found: &[&str], expected: &[&str]) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "the runs agree, but {what} in an order that is not that of the names; an order that a \
         hash decides is nobody's promise, even if the hash is the same in each run"
    ))
}
