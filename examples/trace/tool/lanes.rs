//! `lanes`: a lane a task, the turns across.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::model::{State, Trace};

/// What a task did in one turn, the strongest of it, as one letter.
///
/// `#` it ran, `+` it became ready and did not run, `.` it was blocked, ` ` it did not live, `x` it
/// ended.
fn letters(trace: &Trace) -> (Vec<u64>, Vec<(String, Vec<u8>)>) {
    let mut turns: Vec<u64> = trace.lines.iter().map(|line| line.turn).collect();
    turns.dedup();
    let column: BTreeMap<u64, usize> =
        turns.iter().enumerate().map(|(n, turn)| (*turn, n)).collect();
    let mut lanes = Vec::new();
    for task in trace.tasks.values() {
        let mut lane = vec![b' '; turns.len()];
        for piece in &task.pieces {
            let [from, to] = [piece.from, piece.to].map(|place| column[&trace.lines[place].turn]);
            let letter = match piece.state {
                State::Run => b'#',
                State::Ready => b'+',
                State::Blocked => b'.',
            };
            for cell in &mut lane[from..=to] {
                // A run is what one looks for; of the rest the last thing counts.
                if *cell != b'#' || letter == b'#' {
                    *cell = letter;
                }
            }
        }
        if let Some(last) = task.lines.last().filter(|_| task.ended) {
            let end = column[&trace.lines[*last].turn];
            lane[end] = b'x';
        }
        lanes.push((format!("{:>3} {}", task.id, task.name), lane));
    }
    (turns, lanes)
}

/// The lanes as text that fits a page, in blocks of so many columns.
pub fn lanes(trace: &Trace, width: usize) -> String {
    let (turns, lanes) = letters(trace);
    let names = lanes.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let columns = width.saturating_sub(names + 2).max(10);
    let mut text = "# runs  + ready  . blocked  x ended, a column a turn\n".to_owned();
    for first in (0..turns.len()).step_by(columns) {
        let block = first..(first + columns).min(turns.len());
        let _ = write!(text, "\n{:names$}  ", "turn");
        let mut ruler = String::new();
        for column in block.clone().step_by(10) {
            let _ = write!(ruler, "{:<10}", turns[column]);
        }
        ruler.truncate(block.len().max(ruler.trim_end().len()));
        text += ruler.trim_end();
        text.push('\n');
        for (name, lane) in &lanes {
            let cells = String::from_utf8_lossy(&lane[block.clone()]);
            // Who does not live in this block has no lane in it.
            if !cells.trim().is_empty() {
                let _ = writeln!(text, "{name:names$}  {}", cells.trim_end());
            }
        }
    }
    text
}
