//! Yours: why did this happen?

use std::collections::HashMap;
use std::iter;

use super::given::Line;

/// Returns the chain of causes that begins at the line `seq`.
pub fn why(lines: &[Line], seq: u64) -> Vec<u64> {
    // One pass: what is behind each line.
    let mut last_run = HashMap::new();
    let mut behind = HashMap::new();
    for line in lines {
        let found = match (&*line.verb, line.cause, line.parent) {
            ("fire", ..) => None,
            (_, Some(cause), _) => Some(cause),
            ("spawn", None, parent) => parent.and_then(|task| last_run.get(&task).copied()),
            _ => last_run.get(&line.task).copied(),
        };
        behind.extend(found.map(|found| (line.seq, found)));
        if line.verb == "run" {
            last_run.insert(line.task, line.seq);
        }
    }
    println!("# {} lines have something behind them", behind.len());
    iter::successors(Some(seq), |seq| behind.get(seq).copied()).collect()
}
