//! Yours: the timers, the soonest first.

use super::kernel::Time;

/// What names a timer. The type is yours.
pub type Timer = Time;

#[derive(Default)]
pub struct Timers {
    // What the timers are kept in.
}

impl Timers {
    /// Sets a timer, and gives its key.
    pub fn set(&mut self, _at: Time, _name: &'static str) -> Timer {
        todo!("where `set` puts a timer")
    }

    /// Takes back that timer, and no other.
    pub fn clear(&mut self, _timer: Timer) {
        todo!("how `clear` removes a timer")
    }

    /// When the soonest is due.
    pub fn next(&self) -> Option<Time> {
        todo!("where `next` finds the soonest")
    }

    /// Removes the soonest if it is due, and gives its name.
    pub fn pop(&mut self, _now: Time) -> Option<&'static str> {
        todo!("what `pop` gives, and when")
    }
}
