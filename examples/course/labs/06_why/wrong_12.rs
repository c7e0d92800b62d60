// says: why 234: your chain ends at #0002, a `run`; behind it is its cause, #0001
// demand: Behind a line with a cause is this cause.
//! Yours: why did this happen?

use super::given::Line;

/// Returns the chain of causes that begins at the line `seq`.
pub fn why(lines: &[Line], seq: u64) -> Vec<u64> {
    let (mut chain, mut next) = (Vec::new(), Some(seq));
    // No chain is longer, and a circle must not be endless.
    for _ in 0..100 {
        let Some(line) = next.and_then(|seq| lines.iter().find(|line| line.seq == seq)) else {
            break;
        };
        chain.push(line.seq);
        let runs = |task| lines.iter().filter(move |line| line.task == task && line.verb == "run");
        let last_run = |task| runs(task).rfind(|run| run.seq < line.seq).map(|run| run.seq);
        next = match (line.verb.as_str(), line.cause) {
            ("fire", _) => None,
            (_, Some(cause)) => Some(cause),
            ("spawn", None) => line.parent.and_then(last_run),
            (_, None) => last_run(line.task),
        };
    }
    chain
}
