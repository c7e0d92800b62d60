//! Given: a wire on which a message comes in pieces.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use super::kernel::{Direction, Io, Kernel, Scripted, Sim, Time, clock, note, spawn};

/// The descriptor of the wire, for the script.
pub const DESCRIPTOR: u32 = 7;

pub struct Wire {
    pub io: Io<Scripted>,
    pieces: RefCell<VecDeque<(Time, &'static str)>>,
}

impl Wire {
    /// The next piece that is there, or `None`: not yet.
    pub async fn try_read(&self) -> Option<&'static str> {
        let now = clock().await;
        let mut pieces = self.pieces.borrow_mut();
        let is_there = pieces.front().is_some_and(|(at, _)| *at <= now);
        if is_there { pieces.pop_front().map(|(_, piece)| piece) } else { None }
    }
}

fn second(n: u64) -> Time {
    Time::ZERO + Duration::from_secs(n)
}

async fn read() {
    let pieces = [(second(0), "he"), (second(1), "llo"), (second(2), ".")];
    let wire = Wire { io: Io::new(Scripted(DESCRIPTOR)), pieces: RefCell::new(pieces.into()) };
    match super::lab::message(&wire).await {
        Ok(message) => note(format_args!("message {message}")),
        Err(error) => note(error),
    }
}

pub fn main(_seed: u64) {
    let ready = |sim: Sim, at| sim.ready_at(second(at), DESCRIPTOR as i32, Direction::Read);
    let sim = [1, 2].into_iter().fold(Sim::new(), ready);
    let ran = Kernel::new(sim).run(async {
        let mut reader = spawn("reader", read()).await;
        drop(reader.join().await);
    });
    if let Err(error) = ran {
        println!("# {error}");
    }
}
