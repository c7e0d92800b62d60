//! Columns of text.

use std::fmt::Write as _;

use super::style::Paint;

/// Rows in columns as wide as they need to be; numbers stand to the right.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these heads.
    pub fn new(heads: &[&str]) -> Table {
        Table { rows: vec![heads.iter().map(|head| (*head).to_owned()).collect()] }
    }

    /// One more row.
    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    /// Whether it has heads only.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// As text.
    pub fn show(&self, paint: Paint) -> String {
        let columns = self.rows[0].len();
        let width = |n: usize| self.rows.iter().map(|row| row[n].chars().count()).max();
        let widths: Vec<_> = (0..columns).map(|n| width(n).unwrap_or(0)).collect();
        let is_number = |cell: &str| cell.starts_with(|c: char| c.is_ascii_digit());
        let right: Vec<_> = (0..columns)
            .map(|n| self.rows.len() > 1 && self.rows[1..].iter().all(|row| is_number(&row[n])))
            .collect();
        let mut text = String::new();
        for (nth, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (n, cell) in row.iter().enumerate() {
                let width = widths[n];
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
}
