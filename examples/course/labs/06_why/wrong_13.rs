// says: why 828: your chain ends at #0404, a `wake`; behind it is its cause, #0403
// demand: Behind a line with a cause is this cause.
//! Yours: why did this happen?

use super::given::Line;

/// Returns the chain of causes that begins at the line `seq`.
pub fn why(lines: &[Line], seq: u64) -> Vec<u64> {
    let mut chain = vec![seq];
    // More would be a loop.
    while chain.len() < 256 {
        let seq = chain[chain.len() - 1];
        let line = lines.iter().find(|line| line.seq == seq).expect("the line is there");
        let run = |task| {
            let is_run = |line: &&Line| line.seq < seq && line.task == task && line.verb == "run";
            lines.iter().rfind(is_run).map(|line| line.seq)
        };
        let behind = match (line.verb.as_str(), line.cause) {
            ("fire", _) => None,
            ("spawn", _) => line.parent.and_then(run),
            (_, Some(cause)) => Some(cause),
            _ => run(line.task),
        };
        match behind {
            Some(behind) => chain.push(behind),
            None => break,
        }
    }
    chain
}
