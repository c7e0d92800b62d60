// says: your program did not end in 10 s; the last line of its log is `call 4 by hand: 3600.000000`
// demand: An hour passes at once.
//! Yours: a virtual clock.

use std::io;
use std::thread;

use super::kernel::{Machine, Time};

/// A clock that moves only in `wait`.
pub struct Clock {
    now: Time,
}

impl Clock {
    pub fn new() -> Clock {
        Clock { now: Time::ZERO }
    }
}

impl Machine for Clock {
    fn now(&self) -> Time {
        self.now
    }

    fn wait(&mut self, until: Option<Time>) -> io::Result<()> {
        let until = until.ok_or_else(|| io::Error::other("nothing will come"))?;
        thread::sleep(until.0.saturating_sub(self.now.0));
        self.now = self.now.max(until);
        Ok(())
    }
}
