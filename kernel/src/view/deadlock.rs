//! Deadlocks: tasks that wait for each other in a circle.

use super::tasks::{ParkedView, TaskView};

/// A task of a circle, and the wait in which it waits for the next one.
pub(super) type Link<'t> = (&'t TaskView, &'t ParkedView);

/// The circles among these tasks, which are in the order of their numbers. O(waits) for each task
/// of the longest chain.
///
/// A task is in a deadlock if none of its waits has a deadline, nothing has its waker, and each
/// wait is for what tasks hold that are in a deadlock themselves. Only the cancellation of one of
/// them could then end it. Of several holders the first one is shown.
pub(super) fn circles(tasks: &[TaskView]) -> Vec<Vec<Link<'_>>> {
    let place = |id: &u64| tasks.binary_search_by_key(id, |task| task.id).ok();
    let mut is_stuck: Vec<bool> = tasks.iter().map(waits_for_tasks_alone).collect();
    loop {
        let can_end = |wait: &ParkedView| {
            wait.held_by.iter().any(|id| !place(id).is_some_and(|holder| is_stuck[holder]))
        };
        let freed: Vec<usize> = (0..tasks.len())
            .filter(|index| is_stuck[*index] && tasks[*index].parked.iter().any(can_end))
            .collect();
        if freed.is_empty() {
            break;
        }
        freed.into_iter().for_each(|index| is_stuck[index] = false);
    }
    let next = |index: usize| place(tasks[index].parked.first()?.held_by.first()?);
    let (mut circles, mut is_seen) = (Vec::new(), vec![false; tasks.len()]);
    for start in (0..tasks.len()).filter(|index| is_stuck[*index]) {
        let (mut way, mut at) = (Vec::new(), Some(start));
        while let Some(index) = at
            && !std::mem::replace(&mut is_seen[index], true)
        {
            way.push(index);
            at = next(index);
        }
        // A way that ends at an earlier one leads to a circle that is known.
        if let Some(first) = way.iter().position(|index| Some(*index) == at) {
            circles
                .push(way[first..].iter().map(|at| (&tasks[*at], &tasks[*at].parked[0])).collect());
        }
    }
    circles
}

fn waits_for_tasks_alone(task: &TaskView) -> bool {
    // A permit may have moved to another task, and any task may add permits.
    let is_link = |wait: &ParkedView| {
        wait.until.is_none() && !wait.held_by.is_empty() && !wait.trap.starts_with("semaphore ")
    };
    let waits = !task.parked.is_empty() && task.parked.iter().all(is_link);
    task.state == "parked" && waits && !task.has_waker
}
