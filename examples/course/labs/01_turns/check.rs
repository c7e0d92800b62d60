//! Turns: the future gives way as often as it should, with one wake each.

use crate::work::Work;

/// A line of the kernel's log.
struct Row<'l> {
    number: usize,
    turn: u32,
    verb: &'l str,
}

pub fn check(work: &Work) -> Result<(), String> {
    for word in ["yield_now", "async "] {
        if let Some(at) = work.source.lines().position(|line| line.contains(word)) {
            let (number, word) = (at + 1, word.trim());
            return Err(format!(
                "line {number} of src/lab.rs uses `{word}`; this lab is about a `poll` of your own"
            ));
        }
    }
    task(&work.log, 1, 3)?;
    task(&work.log, 2, 0)
}

/// What the kernel did with that task.
fn rows(log: &str, task: u32) -> impl Iterator<Item = Row<'_>> {
    log.lines().enumerate().filter_map(move |(at, line)| {
        let mut words = line.split_whitespace();
        let turn = words.next()?.parse().ok()?;
        let is_of_task = words.next()?.parse() == Ok(task);
        is_of_task.then_some(Row { number: at + 1, turn, verb: words.next()? })
    })
}

/// The task with `give_way(times)`.
fn task(log: &str, task: u32, times: u32) -> Result<(), String> {
    let mut last = None;
    for Row { number, turn, .. } in rows(log, task).filter(|row| row.verb == "run") {
        if last == Some(turn) {
            return Err(format!(
                "line {number}: task {task} runs a second time in turn {turn}, because it was \
                 twice in the ready queue; call the waker once for each `Pending`"
            ));
        }
        last = Some(turn);
    }
    let gave = rows(log, task).filter(|row| row.verb == "block").count();
    let Some(Row { number, turn, .. }) = rows(log, task).find(|row| row.verb == "exit") else {
        let number = rows(log, task).last().map_or(0, |row| row.number);
        return Err(format!(
            "line {number}: task {task} left the CPU here, and nothing makes it ready again; \
             whoever returns `Pending` sees to it first that the waker is called"
        ));
    };
    match gave {
        _ if gave == times as usize => Ok(()),
        0 => Err(format!(
            "line {number}: task {task} ended in its first run, and should have given way {times} \
             times; only a `Pending` gives way, so a loop inside of `poll` cannot"
        )),
        _ => Err(format!(
            "line {number}: task {task} gave way {gave} times and ended in turn {turn}; with \
             `give_way({times})` it gives way {times} times and ends in turn {}",
            times + 1
        )),
    }
}
