//! A reader. The bug: it takes readiness for data, and tries until the data has arrived. Because it
//! never leaves the ready queue, time does not advance.

use kernel::{Sim, SimClock};
use traps::io::{Direction, Io, Scripted};
use traps::{Error, Time, sleep, spawn, yield_now};

use super::{MS, Version};

const SOCKET: u32 = 7;

/// A byte that arrives at 50 ms.
fn try_read(clock: &SimClock) -> Option<u8> {
    (clock.now() >= Time::ZERO + 50 * MS).then_some(b'x')
}

async fn read(clock: SimClock, version: Version) -> Result<u8, Error> {
    let socket = Io::new(Scripted(SOCKET));
    loop {
        socket.readable().await?;
        loop {
            if let Some(byte) = try_read(&clock) {
                return Ok(byte);
            }
            if version == Version::Sound {
                break;
            }
            yield_now().await?;
        }
    }
}

pub fn program(version: Version) -> (Sim, impl Future<Output = u8>) {
    let sim = Sim::new().ready_at(Time::ZERO + 50 * MS, SOCKET, Direction::Read);
    let clock = sim.clock();
    let main = async move {
        let mut beats = spawn("beats", async {
            for _ in 0..10 {
                sleep(10 * MS).await.unwrap();
            }
        })
        .await;
        let byte = read(clock, version).await.unwrap();
        beats.join().await.unwrap();
        byte
    };
    (sim, main)
}
