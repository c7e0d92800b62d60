//! Which `enter` a `leave` belongs to.

use std::collections::BTreeMap;

use super::{Line, Seq};

/// A span that was entered: its name and its `enter` line.
type Open = (String, Seq);

/// The spans that are open, from the first line of a trace to the last.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    /// Of each task, the outermost first.
    open: BTreeMap<u64, Vec<Open>>,
    /// Of tasks that have ended or are being dropped.
    over: Vec<Open>,
}

impl Spans {
    /// Follows the next line. Of a `leave`, the `enter` that it ends; none if there is no such.
    ///
    /// The line of a future that is dropped names the task that drops it, or the kernel. So a
    /// `leave` ends, first, a span of a task that is over, then one of its own task, then one of
    /// another task, whose future was moved; always the last that was entered.
    pub fn leave(&mut self, line: &Line<'_>) -> Option<Seq> {
        match line.verb {
            "enter" => {
                let span = (line.word(0).to_owned(), line.seq);
                self.open.entry(line.task).or_default().push(span);
            }
            "leave" => {
                let name = line.word(0);
                let last = take_last(&mut self.over, name);
                let last = last.or_else(|| take_last(self.open.get_mut(&line.task)?, name));
                return last.or_else(|| {
                    self.open.values_mut().rev().find_map(|spans| take_last(spans, name))
                });
            }
            // A job that is dropped is no task.
            "drop" if is_job(line.word(0)) => {}
            "drop" | "exit" => self.over.extend(self.open.remove(&line.task).unwrap_or_default()),
            _ => {}
        }
        None
    }
}

/// Whether a word is the number of a job: `o2`.
fn is_job(word: &str) -> bool {
    word.strip_prefix('o').is_some_and(|number| number.parse::<u64>().is_ok())
}

fn take_last(spans: &mut Vec<Open>, name: &str) -> Option<Seq> {
    let place = spans.iter().rposition(|(other, _)| other == name)?;
    Some(spans.remove(place).1)
}
