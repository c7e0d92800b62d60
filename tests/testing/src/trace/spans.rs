//! Matches each `leave` with its `enter`.

use std::collections::BTreeMap;

use super::{Line, Seq};

/// An open span: its name and its `enter` line.
type Open = (String, Seq);

/// The spans that are open, from the first line of a trace to the last.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    /// The spans of each task, the outermost first.
    open: BTreeMap<u64, Vec<Open>>,
    /// The spans of tasks that have ended or are being dropped.
    over: Vec<Open>,
}

impl Spans {
    /// Reads the next line. For a `leave`, returns the `enter` that it ends, if there is one.
    ///
    /// The line of a dropped future names the task that drops it, or the kernel. So a `leave` ends,
    /// in this order of preference, a span of an ended task, of its own task, or of another task,
    /// from which the future was moved; always the span that was entered last.
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
            // A dropped job is not a task.
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
