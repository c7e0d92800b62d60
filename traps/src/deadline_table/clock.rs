//! The clock of arms: coarse, as it is read for most of them, and never early.
//!
//! Knows no deadline.

use std::cell::Cell;

use super::plus;
use crate::time::Time;

/// How many lags a clock is trusted to be further behind than it says, at the most.
const MOST_SLACK: u64 = 8;

/// A clock for arms: it may be coarse, but what is made of it is never early.
pub trait CoarseClock {
    /// What it shows, in units of its own. Most arms read it: it is to be cheap.
    fn reading(&self) -> u64;

    /// What time it may be at the most while it shows that.
    fn latest(&self, reading: u64) -> Time;

    /// How long it may show the same, in microseconds: an exact reading is a bound for that long.
    fn lag(&self) -> u64;
}

/// One that is exact.
impl<F: Fn() -> Time> CoarseClock for F {
    fn reading(&self) -> u64 {
        self().as_micros()
    }

    fn latest(&self, reading: u64) -> Time {
        Time::from_micros(reading)
    }

    fn lag(&self) -> u64 {
        0
    }
}

/// The same, with what is known of it.
pub(super) struct ArmClock {
    clock: Box<dyn CoarseClock>,
    /// What it showed last: until it moves, some hundred times a second, `latest` is known.
    shown: Cell<u64>,
    /// Now, never early: by the clock or by the kernel's last exact reading, whichever is later.
    latest: Cell<Time>,
    lag: u64,
    /// What is added to the clock's own bound: it was seen to be further behind than it says.
    slack: Cell<u64>,
}

impl ArmClock {
    pub(super) fn new(clock: Box<dyn CoarseClock>) -> ArmClock {
        let (shown, lag) = (clock.reading(), clock.lag());
        ArmClock {
            shown: Cell::new(shown),
            latest: Cell::new(clock.latest(shown)),
            clock,
            lag,
            slack: Cell::new(0),
        }
    }

    /// Whether what it shows is the time.
    #[inline(always)]
    pub(super) fn is_exact(&self) -> bool {
        self.lag == 0
    }

    /// As of the last reading.
    #[inline(always)]
    pub(super) fn latest(&self) -> Time {
        self.latest.get()
    }

    /// Reads the clock.
    #[inline(always)]
    pub(super) fn now(&self) -> Time {
        self.see(self.clock.reading());
        self.latest()
    }

    /// It shows that.
    #[inline(always)]
    pub(super) fn see(&self, shown: u64) {
        if shown != self.shown.get() {
            self.learn(shown);
        }
    }

    /// The clock has moved.
    #[cold]
    fn learn(&self, shown: u64) {
        self.shown.set(shown);
        let bound = plus(self.clock.latest(shown), self.slack.get());
        self.latest.set(self.latest.get().max(bound));
    }

    /// The kernel has read its clock.
    #[inline]
    pub(super) fn set_exact(&self, now: Time) {
        if now > self.latest.get() {
            self.check(now);
        }
        let bound = plus(now, self.lag + self.slack.get());
        self.latest.set(self.latest.get().max(bound));
    }

    /// Time has passed since the clock was read. If it is further behind than it may be (a virtual
    /// machine's, whose processor that moves it was not run), it will be again.
    #[cold]
    fn check(&self, now: Time) {
        let shown = self.clock.reading();
        let behind = now.as_micros().saturating_sub(self.clock.latest(shown).as_micros());
        if behind > self.slack.get() {
            // There is a bound to it, or one pause of the whole machine would be felt for ever.
            self.slack.set((behind + self.lag).min(MOST_SLACK * self.lag));
        }
        self.learn(shown);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::rc::Rc;

    use super::*;

    /// Shows tens of microseconds, up to two of them late.
    pub(in super::super) struct Tens(pub(in super::super) Rc<Cell<u64>>);

    impl CoarseClock for Tens {
        fn reading(&self) -> u64 {
            self.0.get()
        }

        fn latest(&self, reading: u64) -> Time {
            Time::from_micros(10 * reading + 20)
        }

        fn lag(&self) -> u64 {
            10
        }
    }

    fn us(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn d12_an_arm_counts_from_the_later_of_the_coarse_clock_and_the_exact_reading() {
        let shown = Rc::new(Cell::new(0));
        let clock = ArmClock::new(Box::new(Tens(shown.clone())));
        assert_eq!(clock.now(), us(20));
        clock.set_exact(us(9)); // the coarse one is ahead of it
        assert_eq!(clock.now(), us(20));
        clock.set_exact(us(13));
        assert_eq!(clock.now(), us(23));
        shown.set(1); // as far behind as it may be: the exact reading is ahead of it
        clock.set_exact(us(28));
        assert_eq!(clock.now(), us(38));
        shown.set(10);
        assert_eq!(clock.now(), us(120));
        clock.set_exact(us(101));
        assert_eq!(clock.now(), us(120));
    }

    #[test]
    fn d12_a_clock_that_was_seen_further_behind_than_it_says_is_trusted_less() {
        let shown = Rc::new(Cell::new(0));
        let clock = ArmClock::new(Box::new(Tens(shown.clone())));
        clock.set_exact(us(20)); // as far behind as it may be
        assert_eq!(clock.now(), us(30));
        clock.set_exact(us(35)); // 15 further: it gets that and a lag
        assert_eq!(clock.now(), us(70));
        shown.set(6); // its own bound is 80
        assert_eq!(clock.now(), us(105));
        clock.set_exact(us(100)); // within what it got
        assert_eq!(clock.now(), us(135));
        clock.set_exact(us(9000)); // a pause: as much as it may get
        assert_eq!(clock.now(), us(9090));
        shown.set(1000);
        assert_eq!(clock.now(), us(10_100));
    }
}
