//! Whether the reducer is right: after each line, the kernel's own view of its state equals the
//! state that [`trace::State`](crate::trace::State) makes from the lines.

use kernel::Activation;
use kernel::trace::Line;

use crate::trace::{self, State, View};

/// How many lines of a run are held to the truth. Each costs as much as the state is large.
const LINES: u64 = 2_000;

/// An observer that panics where the kernel's state is not what the lines say.
#[derive(Debug, Default)]
pub struct Truth {
    state: State,
    lines: u64,
    last: String,
}

impl Activation for Truth {
    fn event(&mut self, line: &Line<'_>) {
        self.lines += 1;
        self.last = line.to_string();
        let line = trace::line(&self.last).expect("the kernel writes lines");
        self.state.line(&line);
    }

    fn wants_state(&self) -> bool {
        self.lines < LINES
    }

    fn state(&mut self, state: &str, is_whole: bool) {
        if self.lines == 0 {
            return;
        }
        let read = self.state.text(if is_whole { View::Event } else { View::Line });
        let (_time, read) = read.split_once('\n').expect("the first row is the time");
        // The kernel's core does not know the timers of a shutdown.
        let is_known = |row: &&str| !row.ends_with(" drain") && !row.ends_with(" grace");
        let read: String =
            read.split_inclusive('\n').filter(|row| is_known(&row.trim_end())).collect();
        if read == state {
            return;
        }
        let rows = |text: &str| text.lines().chain(["(no more rows)"]).map(str::to_owned).collect();
        let (read_rows, rows): (Vec<String>, Vec<String>) = (rows(&read), rows(state));
        let at = read_rows.iter().zip(&rows).position(|(read, row)| read != row).unwrap_or(0);
        let (read_row, row, line) = (&read_rows[at], &rows[at], &self.last);
        panic!(
            "the state after the line\n{line}\nis read as\n    {read_row}\nand is\n    {row}\n\
             --- read\n{read}--- the kernel's\n{state}"
        );
    }
}
