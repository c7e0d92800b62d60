//! What the kernel stands on: a clock, and a way to wait.

use std::fmt;
use std::io;
use std::ops::Add;
use std::time::{Duration, Instant};

/// A point on the clock of the kernel: the time since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

impl Time {
    pub const ZERO: Time = Time(Duration::ZERO);

    /// The span from an earlier point to this one.
    pub fn since(self, earlier: Time) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>2}.{:06}", self.0.as_secs(), self.0.subsec_micros())
    }
}

pub trait Machine {
    /// What the head of the log calls it.
    fn name(&self) -> &'static str;
    fn now(&self) -> Time;
    /// Waits until this time.
    fn wait(&mut self, until: Option<Time>) -> io::Result<()>;
}

/// Linux.
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

/// A clock that jumps to whatever is due next.
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
