//! `Time`, a point on the clock.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// A point on the clock of the kernel: the time since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

impl Time {
    pub const ZERO: Time = Time(Duration::ZERO);
    /// A time that the clock does not reach.
    pub const NEVER: Time = Time(Duration::MAX);

    /// Returns the time since an earlier point.
    pub fn since(self, earlier: Time) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>2}.{:06}", self.0.as_secs(), self.0.subsec_micros())
    }
}
