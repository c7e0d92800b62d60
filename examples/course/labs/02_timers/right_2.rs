//! Yours: the timers, in a plain list.

use super::kernel::Time;

/// The number of a timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timer(usize);

/// What was set stays here, so its place is its key.
#[derive(Default)]
pub struct Timers(Vec<Option<(Time, &'static str)>>);

impl Timers {
    /// Sets a timer and returns its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.0.push(Some((at, name)));
        println!("{name} is timer {}", self.0.len());
        Timer(self.0.len() - 1)
    }

    /// Removes the timer with that key, if it is still set.
    pub fn clear(&mut self, timer: Timer) {
        println!("clear timer {timer:?}");
        self.0[timer.0] = None;
    }

    /// Returns the time of the soonest timer.
    pub fn next(&self) -> Option<Time> {
        self.0.iter().flatten().map(|(at, _)| *at).min()
    }

    /// Removes the soonest timer if it is due, and returns its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let due = self.0.iter_mut().filter(|timer| timer.is_some_and(|(at, _)| at <= now));
        due.min_by_key(|timer| timer.map(|(at, _)| at))?.take().map(|(_, name)| name)
    }
}
