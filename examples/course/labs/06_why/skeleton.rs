//! Yours: why did this happen?

use super::given::Line;

/// Returns the chain of causes that begins at the line `seq`.
pub fn why(lines: &[Line], seq: u64) -> Vec<u64> {
    let _line = lines.iter().find(|line| line.seq == seq);
    todo!("what is behind a line, and behind that, until nothing is")
}
