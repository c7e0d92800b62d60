//! Turns: each future gives way as often as it should, with one wake each time.

use super::scenario;
use crate::work::Work;

/// A line that the kernel wrote of a task, or that the task printed.
struct Row<'l> {
    /// The place of the line in the output, from 1.
    number: usize,
    /// The turn; none for a printed line.
    turn: Option<u32>,
    /// The verb of the kernel, or `is ready`.
    verb: &'l str,
}

pub fn check(work: &Work) -> Result<(), String> {
    is_own(work)?;
    let tasks = scenario::of(work.seed).tasks;
    let mut rows: Vec<Vec<Row<'_>>> = tasks.iter().map(|_| Vec::new()).collect();
    for (task, row) in work.log.lines().enumerate().filter_map(|(at, line)| row(at + 1, line)) {
        if let Some(rows) = rows.get_mut(task.wrapping_sub(1)) {
            rows.push(row);
        }
    }
    for ((nth, counts), rows) in (1..).zip(&tasks).zip(&rows) {
        one_run_a_turn(rows, nth)?;
        task(&work.log, rows, nth, counts)?;
    }
    Ok(())
}

/// The `poll` must not hand its work to others.
fn is_own(work: &Work) -> Result<(), String> {
    for word in ["yield_now", "async"] {
        if let Some(number) = work.line_of(word) {
            return Err(format!(
                "line {number} of src/lab.rs uses `{word}`; this lab is about a `poll` of your own"
            ));
        }
    }
    // It is not known when a thread wakes a task, so no rule for the turns would hold.
    match work.line_of("thread") {
        None => Ok(()),
        Some(number) => Err(format!(
            "line {number} of src/lab.rs uses `thread`; call the waker in `poll`, before it \
             returns `Pending`: a thread may call it too late"
        )),
    }
}

/// Returns the task of a line, and what the line says of it.
fn row(number: usize, line: &str) -> Option<(usize, Row<'_>)> {
    if let Some((task, _)) = line.strip_prefix("task ").and_then(|line| line.split_once(": ")) {
        return Some((task.parse().ok()?, Row { number, turn: None, verb: "is ready" }));
    }
    let mut words = line.split_whitespace();
    let turn = words.next()?.parse().ok()?;
    let task = words.next()?.parse().ok()?;
    Some((task, Row { number, turn: Some(turn), verb: words.next()? }))
}

/// A task that was woken twice is in the ready queue twice.
fn one_run_a_turn(rows: &[Row<'_>], task: usize) -> Result<(), String> {
    let mut last = None;
    for Row { number, turn, .. } in rows.iter().filter(|row| row.verb == "run") {
        if last == *turn {
            return Err(format!(
                "line {number}: task {task} runs a second time in turn {}, because it was twice in \
                 the ready queue; call the waker once for each `Pending`, and not before `Ready`",
                turn.unwrap_or_default()
            ));
        }
        last = *turn;
    }
    Ok(())
}

/// The futures of a task, one after the other.
fn task(log: &str, rows: &[Row<'_>], task: usize, counts: &[u32]) -> Result<(), String> {
    let (mut counts, mut gave, mut turn, mut number) = (counts.iter(), 0, 0, 0);
    for row in rows {
        (turn, number) = (row.turn.unwrap_or(turn), row.number);
        match row.verb {
            "block" => gave += 1,
            "is ready" => {
                let times = *counts.next().unwrap_or(&0);
                if gave != times {
                    return Err(format!(
                        "line {number}: {}",
                        miscounted(task, times, gave, turn + times - gave)
                    ));
                }
                gave = 0;
            }
            "exit" => return Ok(()),
            _ => {}
        }
    }
    Err(match log.lines().last() {
        Some(error) if error.starts_with("every task waits") => format!(
            "line {number}: task {task} left the CPU here, and nothing makes it ready again; a \
             `poll` that returns `Pending` must see to it first that the waker is called"
        ),
        _ => format!("line {number}: the program ended here, and task {task} has not ended"),
    })
}

fn miscounted(task: usize, times: u32, gave: u32, right: u32) -> String {
    let head = format!("`give_way({times})` of task {task}");
    match gave {
        0 => format!(
            "{head} was ready in its first `poll`, and should have given way {times} times; only a \
             `Pending` gives way, so a loop inside of `poll` cannot"
        ),
        _ => format!(
            "{head} gave way {gave} times and was ready in turn {}; it should give way {times} \
             times and be ready in turn {right}",
            right + gave - times
        ),
    }
}
