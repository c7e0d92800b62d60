//! Together: each job has a task, all run at once, and the outputs are in order.

use crate::work::Work;

pub fn check(work: &Work) -> Result<(), String> {
    // Time, turn, task, verb, and so on. Task 1 is main.
    let rows = work.log.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let spawns: Vec<_> = rows
        .filter(|row| row.get(3) == Some(&"spawn") && row.get(2) != Some(&"1"))
        .map(|row| (row[2].to_owned(), row[0].to_owned()))
        .collect();
    if spawns.len() != 3 {
        return Err(format!(
            "{} of the 3 jobs have a task of their own; who awaits a future runs it in its own \
             task, and does nothing else meanwhile",
            spawns.len()
        ));
    }
    if let Some((task, at)) = spawns.iter().find(|(_, at)| at != "0.000000") {
        return Err(format!(
            "task {task} is spawned at {at}, when the task before it has ended; spawn all jobs \
             first, and then join them"
        ));
    }
    let outputs = work.log.lines().find_map(|line| line.strip_prefix("outputs "));
    match outputs {
        Some("[30, 10, 20]") => Ok(()),
        Some(other) => Err(format!(
            "the outputs are {other}, and not [30, 10, 20]: each belongs at the place of its job, \
             whoever ends or is joined first"
        )),
        None => Err("main did not come to its end".to_owned()),
    }
}
