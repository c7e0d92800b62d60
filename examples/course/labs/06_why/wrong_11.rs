// says: why 33: behind #0033, a `fire`, your chain has #0009; a timer fires because time has passed: the chain ends there
// demand: The chain ends at a `fire`, or at the `spawn` of main.
//! Yours: why did this happen?

use super::given::Line;

/// Returns the chain of causes that begins at the line `seq`.
pub fn why(lines: &[Line], seq: u64) -> Vec<u64> {
    let find = |seq| lines.iter().find(|line| line.seq == seq);
    let mut chain = vec![seq];
    while let Some(behind) = chain.last().and_then(|seq| behind(lines, find(*seq)?)) {
        chain.push(behind.seq);
        // Time has passed.
        if behind.verb == "fire" {
            break;
        }
    }
    chain
}

fn behind<'l>(lines: &'l [Line], line: &Line) -> Option<&'l Line> {
    if let Some(cause) = line.cause {
        return lines.iter().find(|other| other.seq == cause);
    }
    let task = if line.verb == "spawn" { line.parent? } else { line.task };
    lines.iter().rfind(|run| run.seq < line.seq && run.task == task && run.verb == "run")
}
