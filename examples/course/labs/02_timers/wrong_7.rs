// says: line 8: `toast` is lost: line 5 cleared a `tea` that was gone, so it must remove nothing; two timers must not have the same key
// demand: A key clears its timer, and no other.
//! Yours: the timers, in slots.

use super::kernel::Time;

/// The slot of a timer.
pub type Timer = usize;

#[derive(Default)]
pub struct Timers {
    slots: Vec<Option<(Time, u64, &'static str)>>,
    /// The number of timers that were set.
    set: u64,
}

impl Timers {
    /// Sets a timer and returns its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.set += 1;
        let free = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[free] = Some((at, self.set, name));
        free
    }

    /// Removes the timer with that key, if it is still set.
    pub fn clear(&mut self, timer: Timer) {
        self.slots[timer] = None;
    }

    /// Returns the time of the soonest timer.
    pub fn next(&self) -> Option<Time> {
        self.slots.iter().flatten().map(|(at, ..)| *at).min()
    }

    /// Removes the soonest timer if it is due, and returns its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let due = self.slots.iter_mut().filter(|slot| slot.is_some_and(|(at, ..)| at <= now));
        due.min_by_key(|slot| slot.map(|(at, set, _)| (at, set)))?.take().map(|(.., name)| name)
    }
}
