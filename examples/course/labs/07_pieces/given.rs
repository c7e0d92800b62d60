//! Given: a wire on which a message arrives in pieces.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};

use super::kernel::{Direction, Io, Kernel, Scripted, Sim, Time, clock, note, spawn};
use super::scenario::{self, Piece};

/// The descriptor of the wire, for the script.
pub const DESCRIPTOR: u32 = 7;

pub struct Wire {
    pub io: Io<Scripted>,
    pieces: RefCell<VecDeque<Piece>>,
}

impl Wire {
    /// Returns the next piece, or `None` if it has not arrived yet.
    pub async fn try_read(&self) -> Option<&'static str> {
        let Time(now) = clock().await;
        let mut pieces = self.pieces.borrow_mut();
        let is_here = pieces.front().is_some_and(|piece| piece.at <= now);
        let piece = if is_here { pieces.pop_front() } else { None };
        match piece {
            Some(Piece { text, .. }) => note(format_args!("read `{text}`")),
            None => note("read: not yet"),
        }
        piece.map(|piece| piece.text)
    }
}

async fn read(pieces: Vec<Piece>) {
    let wire = Wire { io: Io::new(Scripted(DESCRIPTOR)), pieces: RefCell::new(pieces.into()) };
    match super::lab::message(&wire).await {
        Ok(message) => note(format_args!("message {message}")),
        Err(error) => note(format_args!("error {error}")),
    }
}

pub fn main(seed: u64) {
    let pieces = scenario::of(seed);
    // Pieces that arrive at one time make the wire ready once.
    let mut times: BTreeSet<_> = pieces.iter().map(|piece| piece.at).collect();
    times.extend(scenario::false_alarms(seed));
    let ready = |sim: Sim, at| sim.ready_at(Time(at), DESCRIPTOR as i32, Direction::Read);
    let sim = times.into_iter().filter(|at| !at.is_zero()).fold(Sim::new(), ready);
    let ran = Kernel::new(sim).run(async {
        let mut reader = spawn("reader", read(pieces)).await;
        drop(reader.join().await);
    });
    if let Err(error) = ran {
        println!("# {error}");
    }
}
