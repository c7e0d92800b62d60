//! Ticks in a fixed period.

use std::panic::Location;
use std::time::Duration;

use crate::core::gate;
use crate::interrupts::interrupt::Interrupt;
use crate::time::Time;
use crate::verbs::sleep_from;

/// The rule for the ticks after one that came late.
///
/// For example, the period is 10 s, and the task that should have taken the tick at 10 s takes it
/// at 37 s. The next ticks are:
///
/// | rule | ticks |
/// |---|---|
/// | `Burst` | 20 s and 30 s, both at once; then 40 s, 50 s |
/// | `Delay` | 47 s, 57 s |
/// | `Skip` | 40 s, 50 s |
///
/// ```
/// use std::time::Duration;
/// use traps::{MissedTick, Time, interval, sleep};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// let mut ticks = interval(10 * second).missed(MissedTick::Skip);
/// ticks.tick().await.unwrap(); // at 0 s
/// sleep(37 * second).await.unwrap();
/// assert_eq!(ticks.tick().await.unwrap(), Time::ZERO + 10 * second); // late
/// assert_eq!(ticks.tick().await.unwrap(), Time::ZERO + 40 * second); // without 20 s and 30 s
/// # });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTick {
    /// Makes up for the missed ticks without a pause. The number of ticks is exact.
    #[default]
    Burst,
    /// Puts each tick a period after the one before it was taken. So any lateness adds up.
    Delay,
    /// Leaves out the missed ticks. All ticks stay multiples of the period.
    Skip,
}

/// A source of ticks in a fixed period, made by [`interval()`].
///
/// ```
/// use std::time::Duration;
/// use traps::{Interval, MissedTick, interval};
///
/// struct Heartbeat {
///     ticks: Interval,
/// }
///
/// # testing::run(async {
/// let ticks = interval(Duration::from_secs(10)).missed(MissedTick::Delay);
/// let mut heartbeat = Heartbeat { ticks };
/// heartbeat.ticks.tick().await.unwrap();
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Interval {
    period: Duration,
    missed: MissedTick,
    /// The next tick, and the number of the kernel on whose clock it is. `None` before the first.
    next: Option<(Time, u32)>,
}

/// Makes a source of ticks. The first tick is due when it is first waited for, and each other tick
/// a `period` after the one before. If the task is late, [`MissedTick::Burst`] applies;
/// [`Interval::missed`] chooses another rule. If a later kernel of the thread uses the interval,
/// its next tick is due at once.
///
/// ```
/// use std::time::Duration;
/// use traps::{clock, interval};
///
/// # testing::run(async {
/// let mut ticks = interval(Duration::from_secs(10));
/// for _ in 0..3 {
///     let due = ticks.tick().await.unwrap();
///     assert_eq!(due, clock().await); // at 0 s, 10 s and 20 s
/// }
/// assert_eq!(clock().await.as_micros(), 20_000_000);
/// # });
/// ```
///
/// # Panics
///
/// Panics if `period` is zero.
#[must_use]
pub fn interval(period: Duration) -> Interval {
    assert!(!period.is_zero(), "rule: the period of an interval is not zero");
    Interval { period, missed: MissedTick::default(), next: None }
}

impl Interval {
    /// Sets the rule for the ticks after one that came late.
    ///
    /// ```
    /// use std::time::Duration;
    /// use traps::{MissedTick, interval};
    ///
    /// # testing::run(async {
    /// let mut ticks = interval(Duration::from_secs(10)).missed(MissedTick::Skip);
    /// ticks.tick().await.unwrap();
    /// # });
    /// ```
    #[must_use]
    pub fn missed(mut self, rule: MissedTick) -> Interval {
        self.missed = rule;
        self
    }

    /// Waits for the next tick, and returns the point at which it was due. *Blocks*, for one turn
    /// if the tick is due already. If this future is interrupted or dropped, the tick is still to
    /// come.
    ///
    /// ```
    /// use std::time::Duration;
    /// use traps::{Time, ignore_after, interval};
    ///
    /// # testing::run(async {
    /// let second = Duration::from_secs(1);
    /// let mut ticks = interval(10 * second);
    /// ticks.tick().await.unwrap();
    /// // The wait gives up at 3 s, but the tick is not lost.
    /// assert!(ignore_after(3 * second, ticks.tick()).await.unwrap().is_none());
    /// assert_eq!(ticks.tick().await.unwrap(), Time::ZERO + 10 * second);
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait.
    #[track_caller]
    pub fn tick(&mut self) -> impl Future<Output = Result<Time, Interrupt>> {
        let site = Location::caller();
        async move {
            let now = gate::now().unwrap_or_default();
            let kernel = gate::epoch();
            // A point of another kernel's clock means nothing here: that clock began at another
            // time.
            let kept = self.next.filter(|(_, of)| *of == kernel);
            let (due, _) = *self.next.insert(kept.unwrap_or((now, kernel)));
            let now = sleep_from(due - now, site).await?;
            let next = match self.missed {
                MissedTick::Burst => due + self.period,
                MissedTick::Delay => now + self.period,
                MissedTick::Skip => first_after(now, due, self.period),
            };
            self.next = Some((next, kernel));
            Ok(due)
        }
    }
}

/// Returns the first of the points `due`, `due + period`, ... that is later than `now`.
fn first_after(now: Time, due: Time, period: Duration) -> Time {
    let period = (Time::ZERO + period).as_micros();
    let passed = (now - due).as_micros() as u64 / period;
    due + Duration::from_micros(period.saturating_mul(passed + 1))
}
