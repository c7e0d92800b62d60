//! The items of this lab, drawn from a seed. Seed 0 is the scenario of the page.

use std::time::Duration;

use crate::draw::draw;

/// One scenario.
#[allow(dead_code, reason = "the program or its check uses the rest")]
pub struct Scenario {
    /// The items, in their order.
    pub items: Vec<u32>,
    /// The time before an item.
    pub every: Duration,
    /// Whether every second item arrives together with the item before it.
    pub in_pairs: bool,
    /// The number of readers.
    pub readers: usize,
    /// When the first reader is cancelled, if it is: before the last item arrives, or this
    /// number of turns after it.
    pub leaves: Option<u64>,
}

/// The scenario of a seed.
pub fn of(seed: u64) -> Scenario {
    let (items, every) = match seed {
        0 => (vec![1, 2, 3], 5),
        1 => (vec![40, 10, 30, 20], 7),
        _ => {
            // Without pairs an odd number, so that the last item wakes the first reader.
            let count = 4 + 2 * draw(seed, 1, 2) + (seed + 1) % 2;
            let items = (0..count).map(|nth| draw(seed, 10 + nth, 100) as u32);
            (items.collect(), 2 + draw(seed, 2, 8))
        }
    };
    let readers = if seed > 0 { 2 } else { 1 };
    // Each of the numbers 0 to 3 is there with and without pairs.
    let leaves = (seed > 1).then(|| (seed / 2 - 1) % 4);
    let every = Duration::from_millis(every);
    Scenario { items, every, in_pairs: seed % 2 == 1, readers, leaves }
}
