//! The values to send and their times, drawn by a seed.

use crate::draw::draw;

pub struct Channel {
    /// The task that receives.
    pub task: &'static str,
    /// The times of calls of its waker for no reason, in tenths of a second.
    pub wakes: Vec<u64>,
    /// The time at which the sender is used, in tenths of a second. At 0, no task is spawned yet.
    pub at: u64,
    /// The value to send. With `None`, the sender is dropped.
    pub value: Option<u32>,
}

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Vec<Channel> {
    let (wakes, times, values) = match seed {
        0 => (vec![10], [20, 30, 40, 50], [1, 2, 4, 5]),
        // Four at a time.
        1 => ((0..130).map(|nth| 5 + nth / 4).collect(), [37, 38, 25, 3], [u32::MAX, 0, 7, 0]),
        _ => {
            let times = [1, 2, 3, 4].map(|nth| 10 + draw(seed, nth, 50));
            let wakes = (0..=draw(seed, 5, 3)).map(|nth| 1 + draw(seed, 6 + nth, 9));
            // A value may be zero.
            let values = [11, 12, 13, 14].map(|nth| draw(seed, nth, 4) * draw(seed, 10 + nth, 999));
            (wakes.collect(), times, values.map(|value| value as u32))
        }
    };
    // On the page, only `parked` is woken without a reason.
    let others = if seed > 0 { wakes.clone() } else { Vec::new() };
    let channel = |task, at, value| Channel { task, wakes: Vec::new(), at, value };
    let mut channels = vec![
        channel("early", 0, Some(values[0])),
        channel("gone", 0, None),
        Channel { wakes, ..channel("parked", times[0], Some(values[1])) },
        Channel { wakes: others, ..channel("closed", times[1], None) },
        channel("heir", times[2], Some(values[2])),
        channel("nobody", times[3], Some(values[3])),
    ];
    if seed > 0 {
        channels.push(channel("nobody", times[3] + 2, None));
    }
    if seed > 1 {
        // They all receive at one time.
        let crowd = |nth| {
            let name: &str = Box::leak(format!("crowd-{nth}").into_boxed_str());
            channel(name, 70, (nth % 3 > 0).then_some(nth))
        };
        channels.extend((1..=150).map(crowd));
    }
    channels
}
