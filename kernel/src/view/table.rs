//! The task table as text: what every task does now, since when, and until when at most.

use std::fmt;

use traps::Time;

use super::deadlock::circles;
use super::tasks::{ParkedView, TaskView};
use crate::core::Core;
use crate::log::words::word;
use crate::machine::Machine;

/// Every task of a kernel at one moment, in the order of their numbers.
///
/// Prints as an aligned table: one line a task, and one more for each further trap that it is
/// parked in. *since* is when the task came into its state, *until* when the wait ends at the
/// latest, *site* where the trap was made, or the task if it is in none. `waker`: it waits, and for
/// no trap.
///
/// ```text
/// 1 task at 0.250000
/// id name state  parked in since    until    site
///  2 main parked sleep     0.000000 1.000000 examples/hello.rs:18
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskTable {
    /// Kernel time.
    pub at: Time,
    /// The tasks.
    pub tasks: Vec<TaskView>,
}

const HEAD: [&str; 7] = ["id", "name", "state", "parked in", "since", "until", "site"];

type Row = [String; 7];

impl fmt::Display for TaskTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<Row> = self.tasks.iter().flat_map(rows).collect();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].len());
            cells.chain([HEAD[column].len()]).max().unwrap_or_default()
        };
        let widths: [usize; 7] = std::array::from_fn(width);
        let plural = if self.tasks.len() == 1 { "" } else { "s" };
        writeln!(f, "{} task{plural} at {}", self.tasks.len(), self.at)?;
        for row in [HEAD.map(str::to_owned)].iter().chain(&rows) {
            // Numbers to the right, words to the left, and nothing behind the last.
            write!(f, "{:>1$}", row[0], widths[0])?;
            for column in 1..6 {
                write!(f, " {:<1$}", row[column], widths[column])?;
            }
            writeln!(f, " {}", row[6])?;
        }
        for circle in circles(&self.tasks) {
            let plural = if circle.len() == 1 { "" } else { "s" };
            writeln!(f, "deadlock of {} task{plural}:", circle.len())?;
            for (place, (task, wait)) in circle.iter().enumerate() {
                let (holder, _) = circle[(place + 1) % circle.len()];
                let (name, holder_name) = (word(&task.name), word(&holder.name));
                write!(f, "{:>1$}", task.id, widths[0])?;
                let (trap, by) = (&wait.trap, holder.id);
                writeln!(f, " {name} waits for {trap}, held by {by} {holder_name}")?;
            }
        }
        Ok(())
    }
}

fn rows(task: &TaskView) -> Vec<Row> {
    let none = || "-".to_owned();
    let traps = task.parked.iter().map(|parked| {
        let until = parked.until.map_or_else(none, |until| until.to_string());
        (described(parked), until, parked.site.clone())
    });
    let mut traps: Vec<_> = traps.collect();
    if traps.is_empty() {
        let parked = if task.state == "parked" { "waker".to_owned() } else { none() };
        traps.push((parked, none(), task.spawned_at.clone().unwrap_or_else(none)));
    }
    let name = word(&task.name);
    let row = |(place, (parked, until, site))| {
        let first = |text: &str| if place == 0 { text.to_owned() } else { String::new() };
        let (id, name, state) = (first(&task.id.to_string()), first(&name), first(task.state));
        [id, name, state, parked, task.since.to_string(), until, site]
    };
    traps.into_iter().enumerate().map(row).collect()
}

/// What a wait is for, and who holds it. A join names its task already.
fn described(wait: &ParkedView) -> String {
    if wait.held_by.is_empty() || wait.trap.starts_with("join ") {
        return wait.trap.clone();
    }
    let holders: Vec<String> = wait.held_by.iter().map(u64::to_string).collect();
    format!("{} held-by={}", wait.trap, holders.join(","))
}

impl TaskTable {
    /// Of the tasks that have not ended. O(tasks + waits).
    pub(crate) fn of<M: Machine>(core: &Core<M>) -> TaskTable {
        TaskTable { at: core.now, tasks: TaskView::all(core) }
    }
}
