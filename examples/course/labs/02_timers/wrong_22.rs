// says: line 557: `oat` and `corn` are both due at 1ms, and `oat` was set first; `pop` returned `corn` first
// demand: Equal times come in the order of setting.
//! Yours: the timers, in a list.

use super::kernel::Time;

/// The key of a timer: its number.
pub type Timer = u64;

#[derive(Default)]
pub struct Timers {
    /// The timers that are set, with their numbers.
    list: Vec<(Timer, Time, &'static str)>,
    /// The number of timers that were set.
    set: u64,
}

impl Timers {
    /// Sets a timer and returns its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.set += 1;
        self.list.push((self.set, at, name));
        self.set
    }

    /// Removes the timer with that key, if it is still set.
    pub fn clear(&mut self, timer: Timer) {
        if let Some(place) = self.list.iter().position(|(number, ..)| *number == timer) {
            // This is cheap, because it moves only the last timer.
            self.list.swap_remove(place);
        }
    }

    /// Returns the time of the soonest timer.
    pub fn next(&self) -> Option<Time> {
        self.list.iter().map(|(_, at, _)| *at).min()
    }

    /// Removes the soonest timer if it is due, and returns its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let soonest = self.next().filter(|at| *at <= now)?;
        let place = self.list.iter().position(|(_, at, _)| *at == soonest)?;
        Some(self.list.remove(place).2)
    }
}
