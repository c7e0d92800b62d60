//! Together: each job has a task, all run at once, and the outputs are in order.

use std::time::Duration;

use super::scenario::{self, Job};
use crate::work::Work;

/// The outputs of more jobs than this are not shown.
const MOST_SHOWN: usize = 10;

/// The beginning of a job.
#[derive(Clone, Copy)]
struct Begin<'l> {
    task: &'l str,
    at: &'l str,
    /// The number of its line in the output, from 1.
    number: usize,
}

/// A wait that is no `join`.
struct Wait<'l> {
    task: &'l str,
    by: &'l str,
    /// Whether it is a sleep of more than no time.
    is_long: bool,
    number: usize,
}

/// What the log tells of the jobs and of main.
#[derive(Default)]
struct Run<'l> {
    /// The jobs that have begun, in the order of the jobs.
    begun: Vec<Option<Begin<'l>>>,
    ended: usize,
    /// The outputs, and the number of their line.
    outputs: Option<(&'l str, usize)>,
    /// When `all` was over.
    over: &'l str,
    other_waits: Vec<Wait<'l>>,
    /// The tasks that have not ended, without main, each with the number of its `spawn` line.
    left: Vec<(&'l str, usize)>,
    /// The time of the last line.
    end: &'l str,
}

pub fn check(work: &Work) -> Result<(), String> {
    let mut lines = (1..).zip(work.log.lines());
    let mut calls = scenario::of(work.seed).into_iter();
    // The line `call` begins the log of the next call.
    calls.try_for_each(|jobs| {
        call(&jobs, lines.by_ref().take_while(|(_, line)| !line.starts_with("call ")))
    })
}

fn call<'l>(jobs: &[Job], lines: impl Iterator<Item = (usize, &'l str)>) -> Result<(), String> {
    let run = run(lines, jobs.len());
    own_tasks(&run)?;
    side_by_side(&run)?;
    let at = run.over;
    let Some((outputs, number)) = run.outputs else {
        return Err(format!(
            "the program ended at {}, and `all` had not returned; {} of the {} jobs had ended",
            run.end,
            run.ended,
            jobs.len()
        ));
    };
    if run.ended < jobs.len() {
        return Err(format!(
            "line {number}: `all` was over at {at}, when {} of the {} jobs had ended; join each \
             task",
            run.ended,
            jobs.len()
        ));
    }
    let right: Vec<u32> = jobs.iter().map(|job| job.output).collect();
    if outputs != format!("{right:?}") {
        if jobs.len() > MOST_SHOWN {
            return Err(format!("line {number}: {}", first_wrong(outputs, &right)));
        }
        return Err(format!(
            "line {number}: the outputs are {outputs}, and not {right:?}: each output belongs at \
             the place of its job, whichever job ends or is joined first"
        ));
    }
    let longest = jobs.iter().map(|job| job.takes).max().unwrap_or_default();
    let right = shown(longest);
    if at != right {
        return Err(format!(
            "line {number}: `all` was over at {at}, and the longest job at {right}"
        ));
    }
    if let [(task, spawned), ..] = run.left[..] {
        return Err(format!(
            "line {number}: `all` was over at {at}, and task {task}, spawned in line {spawned}, \
             has not ended"
        ));
    }
    joins(&run)
}

/// The sentence for outputs that are too many to be shown.
fn first_wrong(outputs: &str, right: &[u32]) -> String {
    let list = outputs.trim_matches(['[', ']']).split(", ").filter(|output| !output.is_empty());
    let list: Vec<&str> = list.collect();
    if list.len() != right.len() {
        return format!("`all` returned {} outputs for {} jobs", list.len(), right.len());
    }
    let mut pairs = (1..).zip(list).zip(right);
    let ((nth, is), right) =
        pairs.find(|((_, is), right)| *is != right.to_string()).expect("the lists differ");
    format!(
        "output {nth} is {is}, and not {right}: each output belongs at the place of its job, \
         whichever job ends or is joined first"
    )
}

fn shown(time: Duration) -> String {
    format!("{}.{:06}", time.as_secs(), time.subsec_micros())
}

fn run<'l>(lines: impl Iterator<Item = (usize, &'l str)>, jobs: usize) -> Run<'l> {
    let mut run = Run { begun: vec![None; jobs], end: "", ..Run::default() };
    // The task that has the CPU.
    let mut running = "";
    for (number, line) in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["job", nth, "begins"] => {
                let nth = nth.parse::<usize>().unwrap_or_default();
                if let Some(job) = run.begun.get_mut(nth.wrapping_sub(1)) {
                    *job = Some(Begin { task: running, at: run.end, number });
                }
            }
            ["job", _, "ends"] => run.ended += 1,
            ["outputs", ..] => {
                run.outputs = line.strip_prefix("outputs ").map(|outputs| (outputs, number));
                run.over = run.end;
            }
            [time, _, task, verb, ..] if time.contains('.') => {
                run.end = time;
                match verb {
                    "run" => running = task,
                    "spawn" if task != "1" => run.left.push((task, number)),
                    "exit" => run.left.retain(|(left, _)| *left != task),
                    "block" if words.get(4) != Some(&"join") => {
                        let by = words.get(4).copied().unwrap_or_default();
                        let is_long = by == "sleep" && words.get(5) != Some(&"0s");
                        run.other_waits.push(Wait { task, by, is_long, number });
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    run
}

/// Each job is in a task of its own, and main is none of these tasks.
fn own_tasks(run: &Run<'_>) -> Result<(), String> {
    let mut tasks: Vec<(&str, usize)> = Vec::new();
    for (nth, begun) in run.begun.iter().enumerate() {
        let (nth, Some(Begin { task, number, .. })) = (nth + 1, *begun) else { continue };
        if task == "1" {
            return Err(format!(
                "line {number}: job {nth} runs in task 1, which is main; to await a future runs it \
                 in the task that awaits it, and this task does nothing else in the meantime"
            ));
        }
        if let Some((_, other)) = tasks.iter().find(|(other, _)| *other == task) {
            return Err(format!(
                "line {number}: jobs {other} and {nth} both run in task {task}; give each job a \
                 task of its own"
            ));
        }
        tasks.push((task, nth));
    }
    Ok(())
}

/// A task that has no job waits for tasks only.
fn joins(run: &Run<'_>) -> Result<(), String> {
    let has_job = |task: &str| run.begun.iter().flatten().any(|begin| begin.task == task);
    match run.other_waits.iter().find(|wait| !has_job(wait.task)) {
        None => Ok(()),
        Some(Wait { task, by, number, .. }) => Err(format!(
            "line {number}: task {task} has no job, and waits by `{by}`; wait for the end of a job \
             by `join`"
        )),
    }
}

/// All jobs begin at 0 s.
fn side_by_side(run: &Run<'_>) -> Result<(), String> {
    for (nth, begun) in (1..).zip(&run.begun) {
        let Some(Begin { task, at, number }) = *begun else {
            return Err(format!("job {nth} never began"));
        };
        if at != "0.000000" {
            return Err(format!(
                "line {number}: job {nth} begins at {at}, and not at 0; spawn all jobs before you \
                 wait for one of them"
            ));
        }
        // A time in the log has no nanoseconds.
        let is_early = |wait: &&Wait<'_>| wait.task == task && wait.number < number;
        let mut sleeps = run.other_waits.iter().filter(|wait| wait.is_long);
        if let Some(Wait { number, .. }) = sleeps.find(is_early) {
            return Err(format!(
                "line {number}: task {task} sleeps before job {nth} begins; all jobs begin at 0 s"
            ));
        }
    }
    Ok(())
}
