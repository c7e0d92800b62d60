//! The connections of a server and the moment of its shutdown, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

/// The limit for requests that have begun.
pub const DRAIN: Duration = Duration::from_secs(10);

/// The time that a cancelled request needs to clean up.
pub const CLEAN_UP: Duration = Duration::from_secs(1);

/// Requests, one after the other: the pause before each, and the time that it needs, in tenths
/// of a second.
pub type Requests = Vec<(u64, u64)>;

pub struct Scenario {
    /// The time at which the shutdown begins.
    pub shutdown: Duration,
    /// The connections at the start.
    pub connections: Vec<(&'static str, Requests)>,
    /// The time between two accepted connections, in tenths of a second.
    pub every: u64,
    /// The requests of each connection that is accepted later.
    pub late: Requests,
}

/// The state of a connection when the shutdown begins.
#[allow(dead_code, reason = "only `check` asks")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The connection waits for a request.
    Idle,
    /// The connection serves the request of this number, which needs until this time.
    Busy(usize, Duration),
}

#[allow(dead_code, reason = "only `check` asks")]
impl Scenario {
    /// Returns the connections that are open when the shutdown begins, with their states.
    pub fn open(&self) -> Vec<(String, State)> {
        let first = self.connections.iter();
        let mut open: Vec<(String, State)> =
            first.map(|(name, requests)| ((*name).to_owned(), self.state(0, requests))).collect();
        for number in (1..=4).take_while(|number| tenths(number * self.every) <= self.shutdown) {
            let state = self.state(number * self.every, &self.late);
            open.push((format!("late-{number}"), state));
        }
        open
    }

    /// Returns the state of a connection that is accepted at `at`.
    fn state(&self, mut at: u64, requests: &Requests) -> State {
        for (number, (pause, work)) in (1..).zip(requests) {
            at += pause;
            if tenths(at) > self.shutdown {
                return State::Idle;
            }
            at += work;
            if tenths(at) > self.shutdown {
                return State::Busy(number, tenths(at));
            }
        }
        unreachable!("each connection is open when the shutdown begins")
    }
}

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Scenario {
    let connections = match seed {
        0 => vec![
            ("idle", vec![(10, 5), (595, 10)]),
            ("busy", vec![(10, 40)]),
            ("chatty", vec![(10, 20), (5, 20), (5, 20), (5, 20), (5, 20)]),
            ("stuck", vec![(10, 600)]),
        ],
        // No connection is stuck, and `long` needs nearly all of the time.
        1 => vec![
            ("chatty", vec![(1, 5), (1, 30), (2, 30), (1, 20)]),
            ("long", vec![(5, 120)]),
            ("fresh", vec![(60, 10)]),
            ("idle", vec![(2, 2), (4, 4), (40, 10)]),
        ],
        _ => {
            let draw = |nth, from, to| from + draw(seed, nth, to - from);
            let mut drawn = vec![
                ("busy", vec![(draw(1, 1, 20), draw(2, 50, 90))]),
                ("stuck", vec![(draw(3, 1, 20), draw(4, 160, 700))]),
                ("idle", vec![(draw(5, 1, 9), draw(6, 1, 9)), (draw(7, 60, 900), 10)]),
                ("chatty", [vec![(1, draw(8, 30, 60))], vec![(draw(9, 1, 9), 30); 9]].concat()),
                ("jammed", vec![(draw(10, 1, 20), draw(11, 160, 700))]),
                ("fresh", vec![(draw(12, 60, 200), 10)]),
                ("wedged", vec![(draw(16, 1, 20), draw(17, 160, 700))]),
                ("frozen", vec![(draw(18, 1, 20), draw(19, 160, 700))]),
                ("lost", vec![(draw(20, 1, 20), draw(21, 160, 700))]),
            ];
            drawn.rotate_left(draw(13, 0, 9) as usize);
            drawn
        }
    };
    let (shutdown, every) = match seed {
        0 => (2000, 17),
        // The acceptor accepts a connection at this moment, after `main` has begun the shutdown.
        1 => (2700, 9),
        // No other event is at this time.
        _ => (2050 + 100 * draw(seed, 14, 9), 8 + draw(seed, 15, 9)),
    };
    let late = vec![(5, 10)];
    let late = if seed == 0 { late } else { vec![(25, 20)] };
    Scenario { shutdown: Duration::from_millis(shutdown), connections, every, late }
}

pub fn tenths(n: u64) -> Duration {
    Duration::from_millis(100 * n)
}
