//! `lanes`: a lane a task, the turns across.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::model::{State, Task, Trace};
use super::tables::WIDEST;

/// The lane of a task in a block of columns.
#[derive(Default)]
struct Lane {
    state: Option<State>,
    /// The strongest state of the task in each turn, as one letter. `#` it ran, `+` it became ready
    /// and did not run, `.` it was blocked, ` ` it did not live, `x` it ended.
    cells: Vec<u8>,
}

impl Lane {
    /// The task stays in its state up to this column.
    fn fill(&mut self, columns: usize) {
        let letter = self.state.map_or(b' ', letter);
        self.cells.resize(self.cells.len().max(columns), letter);
    }
}

fn letter(state: State) -> u8 {
    match state {
        State::Run => b'#',
        State::Ready => b'+',
        State::Blocked => b'.',
    }
}

/// Writes the lanes as text that fits a page, in blocks of this many columns.
///
/// # Errors
///
/// Returns the error of `out`.
pub fn lanes(trace: &Trace, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let name = |task: &Task| format!("{:>3} {}", task.id, task.name);
    let names = trace.tasks().map(|task| name(task).len()).max().unwrap_or(0);
    let names = names.min(WIDEST);
    let columns = width.saturating_sub(names + 2).max(10);
    out.write_all(b"# runs  + ready  . blocked  x ended, a column a turn\n")?;
    let begin = trace.begin();
    if begin > 0 {
        let first = trace.seq(begin);
        writeln!(out, "The dump begins at #{first:04}; what was before is in its first turn.")?;
    }
    let (mut turns, mut lanes) = (Vec::new(), BTreeMap::<u64, Lane>::new());
    let mut flush = |turns: &mut Vec<u64>, lanes: &mut BTreeMap<u64, Lane>| {
        let mut ruler: String =
            turns.iter().step_by(10).map(|turn| format!("{turn:<10}")).collect();
        ruler.truncate(turns.len().max(ruler.trim_end().len()));
        writeln!(out, "\n{:names$}  {}", "turn", ruler.trim_end())?;
        for (id, lane) in &mut *lanes {
            lane.fill(turns.len());
            let cells = String::from_utf8_lossy(&lane.cells);
            // A task that does not live in this block has no lane in it.
            if !cells.trim().is_empty() {
                let name = trace.task(*id).map(name).unwrap_or_default();
                writeln!(out, "{name:names$}  {}", cells.trim_end())?;
            }
            lane.cells.clear();
        }
        lanes.retain(|_, lane| lane.state.is_some());
        turns.clear();
        io::Result::Ok(())
    };
    for place in 0..trace.len() {
        // The lines of the head of a dump are older than its first turn.
        let turn = trace.turn(place.max(begin));
        if turns.last() != Some(&turn) {
            if turns.len() == columns {
                flush(&mut turns, &mut lanes)?;
            }
            turns.push(turn);
        }
        let task = trace.task_of(place);
        if task.id != 0 {
            step(trace, place, turns.len(), lanes.entry(task.id).or_default());
        }
    }
    flush(&mut turns, &mut lanes)
}

/// Adds a line of a task in the last of this many columns.
fn step(trace: &Trace, place: usize, columns: usize, lane: &mut Lane) {
    let task = trace.task_of(place);
    lane.fill(columns);
    let cell = &mut lane.cells[columns - 1];
    if task.end == Some(place) {
        lane.state = None;
    } else if task.end.is_none_or(|end| place < end)
        && let Some(next) = State::after(lane.state, trace.verb(place))
    {
        lane.state = Some(next);
        // A run is what one looks for; of the rest the last thing counts.
        if *cell != b'#' {
            *cell = letter(next);
        }
    }
    if task.end.is_some() && task.last == place {
        *cell = b'x';
    }
}
