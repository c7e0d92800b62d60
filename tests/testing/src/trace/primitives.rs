//! Primitives: their holders, and the rule that a wait ends under the name with which it began.

use std::collections::{BTreeMap, BTreeSet};

use super::Line;
use super::check::Report;

/// Waits whose `wake` line has other words.
const OTHERS: [&str; 8] =
    ["yield", "sleep", "io", "offload", "waker", "foreign", "outside", "parked"];

#[derive(Default)]
pub(super) struct Primitives {
    /// Tasks that have not ended.
    tasks: BTreeSet<u64>,
    /// The primitive that each open ticket waits for.
    waits: BTreeMap<u64, String>,
}

impl Primitives {
    pub(super) fn line(&mut self, line: &Line<'_>, report: &mut Report<'_>) {
        match (line.verb, line.ticket) {
            ("spawn", _) => drop(self.tasks.insert(line.task)),
            ("exit", _) => drop(self.tasks.remove(&line.task)),
            ("block" | "await", Some(ticket)) if !OTHERS.contains(&line.word(0)) => {
                self.waits.insert(ticket, line.op().to_owned());
                let held_by = line.key("held-by").unwrap_or_default();
                let unknown = |task: &&str| task.parse().is_ok_and(|id| !self.tasks.contains(&id));
                for task in held_by.split(',').filter(unknown) {
                    report("primitive", format!("task {task} does not live"));
                }
            }
            ("wake", Some(ticket)) => {
                let what = self.waits.remove(&ticket);
                if let Some(what) = what.filter(|what| what != line.op()) {
                    report("primitive", format!("k={ticket} waits for {what}"));
                }
            }
            ("deliver" | "withdraw", Some(ticket)) => drop(self.waits.remove(&ticket)),
            _ => {}
        }
    }
}
