//! The number of further tasks in this lab, drawn from a seed. Seed 0 is the scenario of the page.

/// Returns the number of tasks that are spawned before the program asks.
pub fn of(seed: u64) -> u64 {
    match seed {
        0 => 0,
        1 => 3,
        // A byte does not hold the answer.
        _ => 300 + seed % 9,
    }
}
