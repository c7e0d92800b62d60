//! Yours: why did this happen?

use super::given::Line;

/// Returns the chain of causes that begins at the line `seq`.
pub fn why(lines: &[Line], seq: u64) -> Vec<u64> {
    let line = lines.iter().find(|line| line.seq == seq).expect("the log has this line");
    let mut chain = vec![seq];
    if let Some(behind) = behind(lines, line) {
        chain.extend(why(lines, behind));
    }
    chain
}

fn behind(lines: &[Line], line: &Line) -> Option<u64> {
    if line.verb == "fire" {
        return None;
    }
    if line.cause.is_some() {
        return line.cause;
    }
    let task = if line.verb == "spawn" { line.parent? } else { line.task };
    // The lines are in the order of their numbers.
    let earlier = lines.iter().rev().skip_while(|other| other.seq >= line.seq);
    earlier.filter(|other| other.task == task).find(|other| other.verb == "run").map(|run| run.seq)
}
