//! Yours: a virtual clock that is a journal of the times that it has reached.

use std::io::{self, ErrorKind};

use super::kernel::{Machine, Time};

/// A clock that moves only in `wait`.
#[derive(Default)]
pub struct Clock {
    reached: Vec<Time>,
}

impl Clock {
    pub fn new() -> Self {
        Self::default()
    }
}

impl Machine for Clock {
    fn now(&self) -> Time {
        self.reached.last().copied().unwrap_or(Time::ZERO)
    }

    fn wait(&mut self, until: Option<Time>) -> io::Result<()> {
        let now = self.now();
        let ahead = until.map(|until| (until > now).then_some(until));
        self.reached.extend(ahead.ok_or(ErrorKind::TimedOut)?);
        Ok(())
    }
}
