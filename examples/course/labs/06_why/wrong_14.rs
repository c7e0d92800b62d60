// says: why 39: your chain ends at #0016, a `spawn`; behind the spawn of a child is its parent: continue at the last `run` line of task 3, #0014
// demand: Behind the `spawn` of a child is the last `run` of its parent.
//! Yours: why did this happen?

use super::given::Line;

use std::collections::HashSet;

/// Returns the chain of causes that begins at the line `seq`.
pub fn why(lines: &[Line], seq: u64) -> Vec<u64> {
    let (mut chain, mut seen) = (vec![], HashSet::new());
    let mut next = Some(seq);
    while let Some(seq) = next {
        let line = lines.iter().find(|line| line.seq == seq).expect("the line is there");
        chain.push(seq);
        let run = |task| {
            let is_run = |line: &&Line| line.seq < seq && line.task == task && line.verb == "run";
            lines.iter().rfind(is_run).map(|line| line.seq)
        };
        next = match (line.verb.as_str(), line.cause) {
            ("fire", _) => None,
            // The first spawn line of a parent ends the chain if we were there before.
            ("spawn", _) if !seen.insert(line.parent) => None,
            ("spawn", _) => line.parent.and_then(run),
            (_, Some(cause)) => Some(cause),
            _ => run(line.task),
        };
    }
    chain
}
