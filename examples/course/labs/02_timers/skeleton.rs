//! Yours: the timers, the soonest first.

use super::kernel::Time;

/// The key of a timer. The type is yours.
pub type Timer = Time;

#[derive(Default)]
pub struct Timers {
    // The timers.
}

impl Timers {
    /// Sets a timer and returns its key.
    pub fn set(&mut self, _at: Time, _name: &'static str) -> Timer {
        todo!("where `set` puts a timer")
    }

    /// Removes the timer with that key, if it is still set.
    pub fn clear(&mut self, _timer: Timer) {
        todo!("how `clear` removes a timer")
    }

    /// Returns the time of the soonest timer.
    pub fn next(&self) -> Option<Time> {
        todo!("where `next` finds the soonest")
    }

    /// Removes the soonest timer if it is due, and returns its name.
    pub fn pop(&mut self, _now: Time) -> Option<&'static str> {
        todo!("what `pop` returns, and when")
    }
}
