//! Yours: why did this happen?

use std::ops::ControlFlow;

use super::given::Line;

/// Returns the chain of causes that begins at the line `seq`.
pub fn why(lines: &[Line], seq: u64) -> Vec<u64> {
    // Backwards through the log once: what is behind a line is always before it.
    let mut chain = Vec::new();
    let mut wanted = Wanted::Line(seq);
    let found = lines.iter().rev().try_for_each(|line| {
        if !wanted.is(line) {
            return ControlFlow::Continue(());
        }
        chain.push(line.seq);
        wanted = match (line.verb.as_str(), line.cause, line.parent) {
            ("fire", ..) | ("spawn", None, None) => return ControlFlow::Break(()),
            (_, Some(cause), _) => Wanted::Line(cause),
            ("spawn", None, Some(parent)) => Wanted::Run(parent),
            _ => Wanted::Run(line.task),
        };
        ControlFlow::Continue(())
    });
    println!("# the chain of {seq} ends: {}", found.is_break());
    chain
}

/// The next line of the chain.
enum Wanted {
    Line(u64),
    /// The last `run` of this task.
    Run(u32),
}

impl Wanted {
    fn is(&self, line: &Line) -> bool {
        match *self {
            Wanted::Line(seq) => line.seq == seq,
            Wanted::Run(task) => line.task == task && line.verb == "run",
        }
    }
}
