//! The same log in each run, of a shop that still does its work.

use std::collections::BTreeMap;
use std::time::Duration;

use testing::trace::{Line, line, span, trace};

use super::scenario;
use crate::work::Work;

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|error| error.to_string())?;
    if let Some(line) = first_difference(&work.log) {
        return Err(difference(&line, &work.code()));
    }
    let orders: BTreeMap<&str, &str> = scenario::of(work.seed).into_iter().collect();
    are_served(&orders, &lines)?;
    are_counted(&orders, &lines)
}

/// Each customer has its own task. The tasks run side by side, in the order of their names.
fn are_served(orders: &BTreeMap<&str, &str>, lines: &[Line<'_>]) -> Result<(), String> {
    let of_customers = lines.iter().filter(|line| orders.contains_key(line.name()));
    let of_customers: Vec<&Line<'_>> = of_customers.collect();
    let of =
        |verb: &'static str| of_customers.iter().copied().filter(move |line| line.verb == verb);
    let spawned: Vec<&str> = of("spawn").map(Line::name).collect();
    let customers: Vec<&str> = orders.keys().copied().collect();
    if let Some(missing) = customers.iter().find(|name| !spawned.contains(name)) {
        return Err(format!(
            "the runs agree, but the log has no task `{missing}`: the customers are to be served \
             side by side, each by a task of that name"
        ));
    }
    let mut served = Vec::new();
    for (name, fruit) in orders {
        let is_long = |line: &&Line<'_>| {
            line.name() == *name
                && line.word(0) == "sleep"
                && span(line.word(1)) == Some(Duration::from_millis(fruit.len() as u64))
        };
        served.push(of("block").find(is_long).ok_or_else(|| {
            format!(
                "the runs agree, but the task `{name}` does not serve its customer: it is to sleep \
                 {}ms for the {fruit}",
                fruit.len()
            )
        })?);
    }
    let last = of("spawn").map(|line| line.seq).max();
    if let Some(exit) = of("exit").find(|exit| Some(exit.seq) < last) {
        return Err(format!(
            "line #{:04}: the task `{}` ends before all customers have their tasks; they are to be \
             served side by side, so spawn all tasks before you join the first",
            exit.seq,
            exit.name()
        ));
    }
    let first = of("exit").next();
    let late = |line: &&&Line<'_>| first.is_some_and(|exit| exit.seq < line.seq);
    if let (Some(line), Some(exit)) = (served.iter().find(late), first) {
        return Err(format!(
            "line #{:04}: `{}` begins to serve its customer, and `{}` has ended in #{:04}; the \
             customers are to be served side by side, so no task waits for another",
            line.seq,
            line.name(),
            exit.name(),
            exit.seq
        ));
    }
    if let Some((is, right)) = spawned.iter().zip(&customers).find(|(is, right)| is != right) {
        return Err(format!(
            "the runs agree, but the customers are spawned in another order than that of their \
             names: `{is}` where `{right}` is next; an order that a hash or a list decides changes \
             with the hash or the list"
        ));
    }
    // The sleep of the task, and its end, if the task ends before that.
    let cut = |exit: &Line<'_>| {
        let sleep = served.iter().find(|line| line.task == exit.task)?;
        let end = sleep.at + span(sleep.word(1))?;
        (exit.at < end).then_some((*sleep, end))
    };
    let is_cut = |exit: &&Line<'_>| exit.word(0) != "ok" || cut(exit).is_some();
    let Some(exit) = of("exit").find(is_cut) else { return Ok(()) };
    let cancel = of("cancel").find(|line| line.task == exit.task && line.seq < exit.seq);
    let why = match (cancel, cut(exit)) {
        (Some(cancel), _) if cancel.key("by") != Some("-") => format!(
            "because your task {} has cancelled it in #{:04}; join each task, and cancel none",
            cancel.key("by").unwrap_or_default(),
            cancel.seq
        ),
        (None, Some((sleep, end))) => format!(
            "at {}: its sleep of {}, begun in #{:04}, is to last until {end}",
            exit.at,
            sleep.word(1),
            sleep.seq
        ),
        _ => "because the shop has returned; join each task before that".to_owned(),
    };
    let before = if cut(exit).is_some() { "before it has served its customer, " } else { "" };
    Err(format!(
        "line #{:04}: the runs agree, but the task `{}` ends here {before}{why}",
        exit.seq,
        exit.name()
    ))
}

/// Each fruit is noted once, in the order of the names, with the number of its sales.
fn are_counted(orders: &BTreeMap<&str, &str>, lines: &[Line<'_>]) -> Result<(), String> {
    let notes = lines.iter().filter(|line| line.verb == "note" && line.word(0) == "sold");
    let sold: Vec<&str> =
        notes.clone().filter_map(|it| it.detail().strip_prefix("sold ")).collect();
    let mut counts = BTreeMap::<&str, u32>::new();
    for fruit in orders.values() {
        *counts.entry(fruit).or_default() += 1;
    }
    let expected: Vec<String> =
        counts.iter().map(|(fruit, count)| format!("{fruit} {count}")).collect();
    if let Some(missing) = expected.iter().find(|note| !sold.contains(&note.as_str())) {
        let fruit = missing.split(' ').next();
        return Err(match notes.clone().find(|line| Some(line.word(1)) == fruit) {
            Some(line) => format!(
                "line #{:04}: the runs agree, but the note is `{}`, and by the orders it must be \
                 `sold {missing}`",
                line.seq,
                line.detail()
            ),
            None => format!("the runs agree, but the log has no note `sold {missing}`"),
        });
    }
    if let Some(extra) = sold.iter().find(|note| !expected.iter().any(|each| each == *note)) {
        return Err(format!(
            "the runs agree, but the log has a note `sold {extra}`; each fruit is noted once, with \
             the number of all its sales"
        ));
    }
    if sold == expected {
        return Ok(());
    }
    Err(format!(
        "the runs agree, but the fruits are noted in another order than that of their names: {}",
        expected.join(", ")
    ))
}

/// The line of the log that is not the same in each run, as `given.rs` says in its remark.
fn first_difference(log: &str) -> Option<Line<'_>> {
    let (_, number) = log.lines().find_map(|line| line.split_once("they differ from line "))?;
    let number: usize = number.split(' ').next()?.parse().ok()?;
    line(log.lines().nth(number - 1)?).ok()
}

/// The sentence for an event whose order differs from run to run.
fn difference(line: &Line<'_>, code: &str) -> String {
    let (seq, task, name) = (line.seq, line.task, line.name());
    let what = match (line.verb, line.word(0)) {
        ("trap", "spawn") => "spawns its tasks in another order",
        ("note", _) => "makes its notes in another order",
        _ => "does something else",
    };
    let why = match code.contains(".sort") {
        true => "a sort leaves those whose keys are equal in the order in which they came",
        false => "find out what decides that order",
    };
    format!(
        "still missing: the same log in each run; line #{seq:04} is the first that differs, where \
         task {task} `{name}` {what}; {why}"
    )
}
