//! Yours: the timers, in a plain list.

use super::kernel::Time;

/// The number of a timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timer(usize);

/// What was set stays here, so its place is its key.
#[derive(Default)]
pub struct Timers(Vec<Option<(Time, &'static str)>>);

impl Timers {
    /// Sets a timer, and gives its key.
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.0.push(Some((at, name)));
        println!("{name} is timer {}", self.0.len());
        Timer(self.0.len() - 1)
    }

    /// Takes back that timer, and no other.
    pub fn clear(&mut self, timer: Timer) {
        println!("clear timer {timer:?}");
        self.0[timer.0] = None;
    }

    /// When the soonest is due.
    pub fn next(&self) -> Option<Time> {
        self.0.iter().flatten().map(|(at, _)| *at).min()
    }

    /// Removes the soonest if it is due, and gives its name.
    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let due = self.0.iter_mut().filter(|timer| timer.is_some_and(|(at, _)| at <= now));
        due.min_by_key(|timer| timer.map(|(at, _)| at))?.take().map(|(_, name)| name)
    }
}
