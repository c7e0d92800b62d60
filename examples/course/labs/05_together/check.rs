//! Together: each job has a task, all run at once, and the outputs are in order.

use std::time::Duration;

use super::scenario::{self, Job};
use crate::work::Work;

/// The outputs of more jobs than this are not shown.
const MOST_SHOWN: usize = 10;

/// What the log tells of the jobs and of main.
#[derive(Default)]
struct Run<'l> {
    /// The task of each job that has begun, and when it began, in the order of the jobs.
    begun: Vec<Option<(&'l str, &'l str)>>,
    ended: usize,
    /// The outputs, and when `all` was over.
    outputs: Option<(&'l str, &'l str)>,
    /// The waits that are no `join`, each with its task.
    other_waits: Vec<(&'l str, &'l str)>,
    /// The tasks that have not ended, without main.
    left: Vec<&'l str>,
    /// The time of the last line.
    end: &'l str,
}

pub fn check(work: &Work) -> Result<(), String> {
    let mut lines = work.log.lines();
    let mut calls = scenario::of(work.seed).into_iter();
    // The line `call` begins the log of the next call.
    calls.try_for_each(|jobs| {
        call(&jobs, lines.by_ref().take_while(|line| !line.starts_with("call ")))
    })
}

fn call<'l>(jobs: &[Job], lines: impl Iterator<Item = &'l str>) -> Result<(), String> {
    let run = run(lines, jobs.len());
    own_tasks(&run)?;
    side_by_side(&run)?;
    let Some((outputs, at)) = run.outputs else {
        return Err(format!(
            "the program ended at {}, and `all` had not returned; {} of the {} jobs had ended",
            run.end,
            run.ended,
            jobs.len()
        ));
    };
    if run.ended < jobs.len() {
        return Err(format!(
            "`all` was over at {at}, when {} of the {} jobs had ended; join each task",
            run.ended,
            jobs.len()
        ));
    }
    let right: Vec<u32> = jobs.iter().map(|job| job.output).collect();
    if outputs != format!("{right:?}") {
        if jobs.len() > MOST_SHOWN {
            return Err(first_wrong(outputs, &right));
        }
        return Err(format!(
            "the outputs are {outputs}, and not {right:?}: each output belongs at the place of its \
             job, whichever job ends or is joined first"
        ));
    }
    let longest = jobs.iter().map(|job| job.takes).max().unwrap_or_default();
    let right = shown(longest);
    if at != right {
        return Err(format!("`all` was over at {at}, and the longest job at {right}"));
    }
    if let [task, ..] = run.left[..] {
        return Err(format!("`all` was over at {at}, and task {task} has not ended"));
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

fn run<'l>(lines: impl Iterator<Item = &'l str>, jobs: usize) -> Run<'l> {
    let mut run = Run { begun: vec![None; jobs], end: "", ..Run::default() };
    // The task that has the CPU.
    let mut running = "";
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["job", nth, "begins"] => {
                let nth = nth.parse::<usize>().unwrap_or_default();
                if let Some(job) = run.begun.get_mut(nth.wrapping_sub(1)) {
                    *job = Some((running, run.end));
                }
            }
            ["job", _, "ends"] => run.ended += 1,
            ["outputs", ..] => {
                run.outputs = line.strip_prefix("outputs ").map(|outputs| (outputs, run.end));
            }
            [time, _, task, verb, ..] if time.contains('.') => {
                run.end = time;
                match verb {
                    "run" => running = task,
                    "spawn" if task != "1" => run.left.push(task),
                    "exit" => run.left.retain(|left| *left != task),
                    "block" if words.get(4) != Some(&"join") => {
                        run.other_waits.push((task, words.get(4).copied().unwrap_or_default()));
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
        let (nth, Some((task, _))) = (nth + 1, *begun) else { continue };
        if task == "1" {
            return Err(format!(
                "job {nth} runs in task 1, which is main; to await a future runs it in the task \
                 that awaits it, and this task does nothing else in the meantime"
            ));
        }
        if let Some((_, other)) = tasks.iter().find(|(other, _)| *other == task) {
            return Err(format!(
                "jobs {other} and {nth} both run in task {task}; give each job a task of its own"
            ));
        }
        tasks.push((task, nth));
    }
    Ok(())
}

/// A task that has no job waits for tasks only.
fn joins(run: &Run<'_>) -> Result<(), String> {
    let has_job = |task: &str| run.begun.iter().flatten().any(|(other, _)| *other == task);
    match run.other_waits.iter().find(|(task, _)| !has_job(task)) {
        None => Ok(()),
        Some((task, wait)) => Err(format!(
            "task {task} has no job, and waits by `{wait}`; wait for the end of a job by `join`"
        )),
    }
}

/// All jobs begin at 0 s.
fn side_by_side(run: &Run<'_>) -> Result<(), String> {
    for (nth, begun) in run.begun.iter().enumerate() {
        let nth = nth + 1;
        match begun {
            None => return Err(format!("job {nth} never began")),
            Some((_, "0.000000")) => {}
            Some((_, at)) => {
                return Err(format!(
                    "job {nth} begins at {at}, and not at 0; spawn all jobs before you wait for \
                     one of them"
                ));
            }
        }
    }
    Ok(())
}
