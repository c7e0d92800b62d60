// says: line 67: `wait` came back at 889032.704000, before 5184000.000000; nothing happens in between, so the kernel takes a turn for nothing
// demand: It arrives at the soonest timer exactly.
//! Yours: a virtual clock.

use std::io;
use std::time::Duration;

use super::kernel::{Machine, Time};

/// A clock that moves only in `wait`.
pub struct Clock {
    millis: u32,
    /// What is more than the milliseconds.
    rest: Duration,
}

impl Clock {
    pub fn new() -> Clock {
        Clock { millis: 0, rest: Duration::ZERO }
    }
}

impl Machine for Clock {
    fn now(&self) -> Time {
        Time(Duration::from_millis(u64::from(self.millis)) + self.rest)
    }

    fn wait(&mut self, until: Option<Time>) -> io::Result<()> {
        let until = until.ok_or_else(|| io::Error::other("nothing will come"))?;
        let Time(now) = self.now().max(until);
        self.millis = now.as_millis() as u32;
        self.rest = Duration::from_nanos(u64::from(now.subsec_nanos() % 1_000_000));
        Ok(())
    }
}
