// says: why 29: behind #0026, a `wake`, your chain has #0018; behind it is its cause, #0025
// demand: Behind a line with a cause is this cause.
//! Yours: why did this happen?

use super::given::Line;

/// Returns the chain of causes that begins at the line `seq`.
pub fn why(lines: &[Line], seq: u64) -> Vec<u64> {
    let (mut chain, mut next) = (Vec::new(), Some(seq));
    while let Some(line) = next.and_then(|seq| lines.iter().find(|line| line.seq == seq)) {
        chain.push(line.seq);
        let runs = |task| lines.iter().filter(move |line| line.task == task && line.verb == "run");
        let last_run = |task| runs(task).rfind(|run| run.seq < line.seq).map(|run| run.seq);
        next = match line.verb.as_str() {
            "fire" => None,
            "run" => line.cause,
            "spawn" => line.parent.and_then(last_run),
            // Whatever a task does, it does because it runs.
            _ => last_run(line.task).or(line.cause),
        };
    }
    chain
}
