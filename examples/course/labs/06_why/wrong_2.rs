// says: why 29: behind #0029, a `note`, your chain has #0002; it names no cause, so its task did it: continue at the last `run` line of the task, #0027
// demand: Behind a line without a cause is the last `run` of its task.
//! Yours: why did this happen?

use super::given::Line;

/// Returns the chain of causes that begins at the line `seq`.
pub fn why(lines: &[Line], seq: u64) -> Vec<u64> {
    let (mut chain, mut next) = (Vec::new(), Some(seq));
    while let Some(line) = next.and_then(|seq| lines.iter().find(|line| line.seq == seq)) {
        chain.push(line.seq);
        let first_run = |task| {
            let mut runs = lines.iter().filter(|line| line.task == task && line.verb == "run");
            runs.next().map(|run| run.seq).filter(|run| *run < line.seq)
        };
        next = match (line.verb.as_str(), line.cause) {
            ("fire", _) => None,
            (_, Some(cause)) => Some(cause),
            ("spawn", None) => line.parent.and_then(first_run),
            (_, None) => first_run(line.task),
        };
    }
    chain
}
