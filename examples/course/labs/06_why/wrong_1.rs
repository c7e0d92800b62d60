// says: why 29: your chain ends at #0029, a `note`; it names no cause, so its task did it: continue at the last `run` line of the task, #0027
// demand: Behind a line without a cause is the last `run` of its task.
//! Yours: why did this happen?

use super::given::Line;

/// Returns the chain of causes that begins at the line `seq`.
pub fn why(lines: &[Line], seq: u64) -> Vec<u64> {
    let (mut chain, mut next) = (Vec::new(), Some(seq));
    while let Some(line) = next.and_then(|seq| lines.iter().find(|line| line.seq == seq)) {
        chain.push(line.seq);
        next = line.cause;
    }
    chain
}
