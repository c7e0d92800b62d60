//! The limits that a server has for its clients, and the clients, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

/// The limit for the first byte of a request.
pub const FIRST: Duration = Duration::from_secs(5);
/// The limit from the first byte to the end of the head.
pub const HEAD: Duration = Duration::from_secs(10);
/// The limit for the peer to take the answer.
pub const WRITE: Duration = Duration::from_secs(4);

/// A client, with the times that it takes, in tenths of a second.
pub struct Client {
    pub name: &'static str,
    /// The time until the first byte.
    pub first: u64,
    /// The time until each line of the head, from the line before it.
    pub lines: Vec<u64>,
    /// The time until the client takes the answer.
    pub take: u64,
    /// How and when the server interrupts the connection, before it could end.
    pub stopped: Option<(Stop, u64)>,
}

/// How the server interrupts a connection.
#[derive(Clone, Copy)]
pub enum Stop {
    Cancel,
    /// It has a timeout around the connection.
    Timeout,
}

/// Longer than any wait.
pub const NEVER: u64 = 36_000;

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Vec<Client> {
    let client = |name, first, lines, take| Client { name, first, lines, take, stopped: None };
    let cancelled = |name, first, lines, take, at| Client {
        stopped: Some((Stop::Cancel, at)),
        ..client(name, first, lines, take)
    };
    let draw = |nth, from, to| from + draw(seed, nth, to - from);
    match seed {
        0 => vec![
            client("quick", 10, vec![10; 2], 10),
            client("patient", 40, vec![40; 2], 30),
            client("silent", NEVER, vec![10], 10),
            client("trickle", 10, vec![30; 20], 10),
            client("greedy", 10, vec![10], NEVER),
            client("deaf", 20, vec![20; 20], NEVER),
        ],
        1 => vec![
            client("quick", 1, [0, 0, 0, 0, 1].repeat(95), 1),
            client("patient", 48, vec![60, 1, 37], 38),
            client("silent", 60, vec![10], 10),
            client("trickle", 45, vec![1; 200], 38),
            client("greedy", 3, vec![2, 40, 2], 70),
            client("deaf", 45, vec![1, 1, 200], 45),
            client("instant", 0, vec![0], 0),
            cancelled("early", 40, vec![10], 10, 23),
            cancelled("unwanted", 10, vec![40; 2], 10, 63),
            cancelled("last", 5, vec![10], 30, 28),
            cancelled("refused", 5, vec![60; 2], 30, 125),
            client("stuck", 10, vec![150], 10),
            Client { stopped: Some((Stop::Timeout, 42)), ..client("hasty", 10, vec![40; 2], 10) },
        ],
        _ => vec![
            client("quick", draw(1, 1, 20), vec![draw(2, 1, 9); draw(3, 1, 10) as usize], 7),
            client("patient", draw(4, 35, 49), vec![draw(5, 38, 49); 2], draw(6, 25, 39)),
            client("silent", draw(7, 52, 90), vec![10], 10),
            client("trickle", draw(8, 1, 45), vec![draw(9, 10, 40); 20], draw(10, 1, 39)),
            client("greedy", draw(11, 1, 45), vec![draw(12, 1, 30); 3], draw(13, 42, 90)),
            client("deaf", draw(14, 1, 45), vec![draw(15, 15, 60); 9], draw(16, 42, 90)),
            cancelled("unwanted", draw(17, 1, 30), vec![40; 2], 10, draw(18, 32, 80)),
        ],
    }
}
