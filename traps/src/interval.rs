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
/// ```no_run
/// use std::time::Duration;
/// use traps::{Interrupt, MissedTick, interval};
///
/// # async fn example() -> Result<(), Interrupt> {
/// let mut ticks = interval(Duration::from_secs(10)).missed(MissedTick::Skip);
/// loop {
///     let due = ticks.tick().await?;
///     println!("the tick of {due}");
/// }
/// # }
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
    #[must_use]
    pub fn missed(mut self, rule: MissedTick) -> Interval {
        self.missed = rule;
        self
    }

    /// Waits for the next tick, and returns the point at which it was due. *Blocks*, for one turn
    /// if the tick is due already. If this future is interrupted or dropped, the tick is still to
    /// come.
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
