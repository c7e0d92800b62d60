//! The machine below the kernel: a clock, and a way to wait.

use std::io;
use std::time::Instant;

use super::*;

pub trait Machine {
    /// Returns the name of the machine for the first line of the log.
    fn name(&self) -> &'static str;
    fn now(&self) -> Time;
    /// Waits until this time. Without a time, the wait could not end, so it fails.
    fn wait(&mut self, until: Option<Time>) -> io::Result<()>;
}

/// Linux, with its real clock.
pub struct Real {
    start: Instant,
}

impl Real {
    pub fn new() -> Real {
        Real { start: Instant::now() }
    }
}

impl Machine for Real {
    fn name(&self) -> &'static str {
        "real"
    }

    fn now(&self) -> Time {
        Time(self.start.elapsed())
    }

    fn wait(&mut self, until: Option<Time>) -> io::Result<()> {
        let until = until.ok_or_else(hang)?;
        std::thread::sleep(until.0.saturating_sub(self.now().0));
        Ok(())
    }
}

/// A simulated machine. Its clock jumps to the next time that is due.
#[derive(Default)]
pub struct Sim {
    now: Time,
}

impl Sim {
    pub fn new() -> Sim {
        Sim::default()
    }
}

impl Machine for Sim {
    fn name(&self) -> &'static str {
        "virtual"
    }

    fn now(&self) -> Time {
        self.now
    }

    fn wait(&mut self, until: Option<Time>) -> io::Result<()> {
        self.now = self.now.max(until.ok_or_else(hang)?);
        Ok(())
    }
}

fn hang() -> io::Error {
    io::Error::other("every task waits, and nothing will come")
}
