//! The speed of the bank, and the times at which transfers are cancelled, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

/// The phase of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    LookUp,
    Take,
    Give,
    Unlock,
}

pub const PHASES: [Phase; 4] = [Phase::LookUp, Phase::Take, Phase::Give, Phase::Unlock];

pub struct Customer {
    pub name: &'static str,
    /// The phase in which the transfer is cancelled, and the time from the start.
    pub cancelled: Option<(Phase, Duration)>,
    /// The deadlines of the customer, from the start. The scope of the first is the innermost.
    pub limits: Vec<Duration>,
}

pub struct Scenario {
    /// The duration of each phase.
    pub spans: [Duration; 4],
    /// The customers, in the order in which their tasks are spawned.
    pub customers: Vec<Customer>,
}

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Scenario {
    // In tenths of a second.
    let spans = match seed {
        0 => [20, 20, 20, 10],
        1 => [35, 10, 40, 20],
        _ => [1, 2, 3, 4].map(|nth| 5 + draw(seed, nth, 40)),
    };
    let mut customers = Vec::new();
    let mut start = 0;
    for (phase, name) in PHASES.into_iter().zip(["early", "middle", "late", "last"]) {
        let span = spans[phase as usize];
        let into = if seed == 0 { span / 2 } else { 1 + draw(seed, 10 + start, span - 1) };
        let cancelled = Some((phase, tenths(start + into)));
        customers.push(Customer { name, cancelled, limits: Vec::new() });
        start += span;
    }
    customers.push(Customer { name: "calm", cancelled: None, limits: Vec::new() });
    customers.rotate_left(if seed == 0 { 0 } else { draw(seed, 5, 5) as usize });
    if seed != 0 {
        // The deadlines pass after the cancellation: before another `give` could end, or where a
        // transfer that was given up unlocks.
        let [look_up, take, give, unlock] = spans;
        for (name, phase, cancelled, left) in [
            ("hurried", Phase::Give, look_up + take + 1, give / 2),
            ("rushed", Phase::LookUp, 1, unlock / 2),
            ("pressed", Phase::Take, look_up + 1, unlock / 2),
        ] {
            let limits = (0..12).map(|nth| tenths(cancelled + left + nth)).collect();
            let cancelled = Some((phase, tenths(cancelled)));
            customers.push(Customer { name, cancelled, limits });
        }
    }
    Scenario { spans: spans.map(tenths), customers }
}

fn tenths(n: u64) -> Duration {
    Duration::from_millis(100 * n)
}
