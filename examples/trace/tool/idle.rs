//! `idle`: which tasks wait, how long and for what.

use std::fmt::Write as _;
use std::time::Duration;

use kernel::trace::Span;
use testing::trace::Line;

use super::living::{Living, Mark};
use super::longest::Longest;
use super::look::Look;
use super::model::State;
use super::now::Now;
use super::stuck::{Closed, Of, circles, past};
use super::style::Paint;
use super::tables::Table;

/// The tasks that wait at a time, and the longest earlier waits.
pub struct Idle {
    look: Look,
    now: Now,
    most: usize,
    before: Longest<Row>,
}

/// The cells of a wait, without its length.
type Row = [String; 7];

impl Idle {
    /// Shows this many waits of each kind.
    pub fn new(look: Look, most: usize) -> Idle {
        Idle { look, now: Now::default(), most, before: Longest::new(most) }
    }

    /// Follows a remark.
    pub fn remark(&mut self, text: &str) {
        self.now.remark(text);
    }

    /// Follows the next line.
    pub fn line(&mut self, line: &Line<'_>) {
        if !self.look.wants(line) {
            return;
        }
        let ends = self.now.ends(line).filter(|piece| piece.state == State::Blocked);
        if let Some(piece) = ends.filter(|piece| is_of_program(piece.task)) {
            let ended = || {
                let by = format!("{} #{:04}", line.verb, line.seq);
                row(&self.now, piece.task, Of::All, by)
            };
            self.before.add(piece.span, piece.from.seq, ended);
        }
        self.now.line(line);
    }

    /// Returns the answer.
    ///
    /// # Errors
    ///
    /// The time that was asked for is not in the trace.
    pub fn show(&self, paint: Paint) -> Result<String, String> {
        let time = self.look.time(&self.now)?;
        let blocked = self.now.tasks.values().filter(|task| task.state == Some(State::Blocked));
        let mut waits: Vec<_> = blocked
            .filter(|task| is_of_program(task))
            .map(|task| (time.since(task.from.at), task))
            .collect();
        waits.sort_by_key(|(span, task)| (std::cmp::Reverse(*span), task.id));
        let when = self.look.in_words(time, &self.now);
        let mut text = match waits.is_empty() {
            true => format!("{} nobody waits.\n", capital(&when)),
            false => format!("Waiting {when}:\n"),
        };
        if !waits.is_empty() {
            let rows = waits.iter().take(self.most);
            let rows =
                rows.map(|(span, task)| (*span, row(&self.now, task, Of::Now, "-".to_owned())));
            text += &table(rows, paint);
        }
        if let Some(more) = waits.len().checked_sub(self.most).filter(|more| *more > 0) {
            let _ = writeln!(text, "  and {more} more; `-n {}` shows them", waits.len());
        }
        text += &paint.strong(&circles(&self.now));
        for Closed { from: Mark { seq, at }, words, .. } in past(&self.now) {
            let _ =
                write!(text, "\nOver now, but from {at} s on (#{seq:04}): {}", paint.strong(words));
        }
        let title = paint.strong("Longest waits that ended");
        let before = self.before.rows().map(|(span, row)| (span, row.clone()));
        let _ = write!(text, "\n{title}\n{}", table(before, paint));
        Ok(text)
    }
}

/// The task `wakeup` always waits, which means nothing.
fn is_of_program(task: &Living) -> bool {
    &*task.name != "wakeup"
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// The wait of a task that is blocked.
fn row(now: &Now, task: &Living, of: Of, ended: String) -> Row {
    let Mark { seq, at } = task.from;
    [
        at.to_string(),
        format!("#{seq:04}"),
        task.id.to_string(),
        task.name_and_peer(),
        now.wait_in_words(task, of),
        task.waits_at().unwrap_or_else(|| "-".to_owned()),
        ended,
    ]
}

fn table(rows: impl Iterator<Item = (Duration, Row)>, paint: Paint) -> String {
    let mut table =
        Table::new(&["for", "since", "line", "id", "name", "waits for", "waiting at", "ended by"])
            .below("waits for");
    for (span, row) in rows {
        let mut cells = vec![Span(span).to_string()];
        cells.extend(row);
        table.row(cells);
    }
    table.show(paint)
}
