// says: why 46: behind #0046, a `spawn`, your chain has #0013; behind the spawn of a child is its parent: continue at the last `run` line of task 3, #0044
// demand: Behind the `spawn` of a child is the last `run` of its parent.
//! Yours: why did this happen?

use super::given::Line;

/// Returns the chain of causes that begins at the line `seq`.
pub fn why(lines: &[Line], seq: u64) -> Vec<u64> {
    let (mut chain, mut next) = (Vec::new(), Some(seq));
    while let Some(line) = next.and_then(|seq| lines.iter().find(|line| line.seq == seq)) {
        chain.push(line.seq);
        let runs = |task| lines.iter().filter(move |line| line.task == task && line.verb == "run");
        let last_run = |task| runs(task).rfind(|run| run.seq < line.seq).map(|run| run.seq);
        next = match (line.verb.as_str(), line.cause) {
            ("fire", _) => None,
            (_, Some(cause)) => Some(cause),
            ("spawn", None) => line.parent.and_then(|task| runs(task).next()).map(|run| run.seq),
            (_, None) => last_run(line.task),
        };
    }
    chain
}
