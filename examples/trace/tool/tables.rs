//! Columns of text.

use std::fmt::Write as _;

use testing::trace::span;

use super::style::Paint;

/// A text is padded up to this many columns, the largest number that a formatter accepts.
pub const WIDEST: usize = u16::MAX as usize;

/// Rows in columns as wide as necessary, but together not wider than the terminal. Numbers are
/// right-aligned, and the durations of a column have the same unit.
pub struct Table {
    rows: Vec<Vec<String>>,
    /// The head of a column. If there is no room for its texts, they are below the rows.
    below: Option<&'static str>,
}

impl Table {
    /// With these heads.
    pub fn new(heads: &[&str]) -> Table {
        Table { rows: vec![heads.iter().map(|head| (*head).to_owned()).collect()], below: None }
    }

    /// Marks the column with that head as the one that the reader has asked for. If the table is
    /// wider than the terminal, each of its texts is printed in full on separate lines below its
    /// row.
    pub fn below(mut self, head: &'static str) -> Table {
        self.below = Some(head);
        self
    }

    /// One more row.
    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    /// Removes the column with that head.
    pub fn leave_out(&mut self, head: &str) {
        if let Some(nth) = self.rows[0].iter().position(|each| each == head) {
            self.rows.iter_mut().for_each(|row| drop(row.remove(nth)));
        }
    }

    /// Whether it has heads only.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// Prints the table.
    pub fn show(mut self, paint: Paint) -> String {
        let columns = self.rows[0].len();
        (0..columns).for_each(|n| self.unify(n));
        let is_number = |cell: &str| cell.starts_with(|c: char| c.is_ascii_digit()) || cell == "-";
        let right: Vec<_> = (0..columns)
            .map(|n| self.rows.len() > 1 && self.rows[1..].iter().all(|row| is_number(&row[n])))
            .collect();
        let width = |n: usize| self.rows.iter().map(|row| row[n].chars().count()).max();
        let mut widths: Vec<_> = (0..columns).map(|n| width(n).unwrap_or(0).min(WIDEST)).collect();
        let is_wide =
            paint.width.is_some_and(|room| widths.iter().sum::<usize>() + 2 * columns > room);
        if let Some(head) = self.below.filter(|_| is_wide) {
            return self.show_below(head, paint);
        }
        if let Some(room) = paint.width {
            fit(&mut widths, &right, room);
        }
        let mut text = String::new();
        for (nth, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (n, cell) in row.iter().enumerate() {
                let (width, cell) = (widths[n], shortened(cell, widths[n]));
                let _ = match right[n] {
                    true => write!(line, "  {cell:>width$}"),
                    false => write!(line, "  {cell:<width$}"),
                };
            }
            let line = line.trim_end();
            let _ =
                writeln!(text, "{}", if nth == 0 { paint.faint(line) } else { line.to_owned() });
        }
        text
    }

    /// The table without a column, and the texts of that column below their rows.
    fn show_below(mut self, head: &'static str, paint: Paint) -> String {
        let Some(nth) = self.rows[0].iter().position(|each| each == head) else {
            return Table { below: None, ..self }.show(paint);
        };
        let texts: Vec<_> = self.rows.iter_mut().map(|row| row.remove(nth)).collect();
        let rows = Table { below: None, ..self }.show(paint);
        let mut text = String::new();
        for (nth, (row, below)) in rows.lines().zip(texts).enumerate() {
            let _ = writeln!(text, "{row}");
            let room = paint.width.unwrap_or(WIDEST).saturating_sub(INDENT);
            for line in wrapped(&below, room).iter().filter(|_| nth > 0) {
                let _ = writeln!(text, "{:INDENT$}{line}", "");
            }
        }
        text
    }

    /// If a column has only durations, all get the unit of the longest one, and as many decimals as
    /// any of them needs.
    fn unify(&mut self, n: usize) {
        let micros = |cell: &String| match (&**cell, span(cell)) {
            ("-", _) => Some(None),
            ("never", _) => None,
            (_, span) => span.map(|span| Some(span.as_micros())),
        };
        let spans: Option<Vec<_>> = self.rows[1..].iter().map(|row| micros(&row[n])).collect();
        let Some(spans) = spans.filter(|spans| spans.iter().any(Option::is_some)) else { return };
        let longest = spans.iter().flatten().max().copied().unwrap_or(0);
        let (unit, digits) = match longest {
            100_000.. => ("s", 6),
            1_000.. => ("ms", 3),
            1.. => ("us", 0),
            0 => ("s", 0),
        };
        let one = 10_u128.pow(digits);
        let zeros = |micros: &u128| {
            (0..digits).take_while(|n| micros.is_multiple_of(10_u128.pow(n + 1))).count() as u32
        };
        let decimals = digits - spans.iter().flatten().map(zeros).min().unwrap_or(0);
        for (row, micros) in self.rows[1..].iter_mut().zip(spans) {
            let Some(micros) = micros else { continue };
            row[n] = match decimals {
                0 => format!("{}{unit}", micros / one),
                _ => {
                    let part = micros % one / 10_u128.pow(digits - decimals);
                    let width = decimals as usize;
                    format!("{}.{part:0width$}{unit}", micros / one)
                }
            };
        }
    }
}

/// A column of text is not made narrower than this.
const LEAST: usize = 10;

/// Makes the widest columns of text narrower until all of them fit, if possible.
fn fit(widths: &mut [usize], right: &[bool], room: usize) {
    let others = 2 * widths.len()
        + widths
            .iter()
            .zip(right)
            .filter(|(_, right)| **right)
            .map(|(width, _)| width)
            .sum::<usize>();
    let texts: Vec<_> = (0..widths.len()).filter(|n| !right[*n]).collect();
    let (mut room, mut left) = (room.saturating_sub(others), texts.len());
    // The narrow ones keep their width, and the others share the rest.
    let mut by_width = texts;
    by_width.sort_by_key(|n| widths[*n]);
    for n in by_width {
        let share = (room / left).max(LEAST);
        widths[n] = widths[n].min(share);
        room = room.saturating_sub(widths[n]);
        left -= 1;
    }
}

/// The columns before a text below a row.
const INDENT: usize = 8;

/// Splits a text into lines of this many columns, between words. A longer word gets a separate
/// line.
pub fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut width = 0;
    for word in text.split(' ') {
        let size = word.chars().count();
        match lines.last_mut().filter(|_| width + 1 + size <= room) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
                width += 1 + size;
            }
            None => {
                lines.push(word.to_owned());
                width = size;
            }
        }
    }
    lines
}

/// Cuts a text to this many columns. A call site keeps its end, any other text its beginning.
fn shortened(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width || width == WIDEST {
        return text.to_owned();
    }
    let is_place = !text.contains(' ')
        && text.rsplit_once(':').is_some_and(|(_, line)| line.parse::<u32>().is_ok());
    let rest = width.saturating_sub(1);
    match is_place {
        true => "…".to_owned() + &text.chars().skip(count - rest).collect::<String>(),
        false => text.chars().take(rest).collect::<String>() + "…",
    }
}
