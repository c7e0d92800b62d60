//! The tasks of a run, drawn by a seed.

use crate::draw::draw;

pub struct Scenario {
    /// For each task, the numbers of the futures that it awaits: `[3, 1]` is `give_way(3)`, then
    /// `give_way(1)`.
    pub tasks: Vec<Vec<u32>>,
}

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Scenario {
    let tasks = match seed {
        0 => vec![vec![3], vec![0]],
        // One of them needs more than eight bits.
        1 => vec![vec![2, 1], vec![5], vec![0, 4, 0], vec![1, 300, 1]],
        // More futures at a time than a table has places.
        _ => {
            let count = |task, nth| draw(seed, task * 8 + nth, 7) as u32;
            let counts = |task| (0..=draw(seed, task, 3)).map(|nth| count(task, nth)).collect();
            (1..=150).map(counts).collect()
        }
    };
    Scenario { tasks }
}
