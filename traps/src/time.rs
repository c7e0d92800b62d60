//! Points in kernel time. Durations are [`std::time::Duration`].
//!
//! This module reads no clock; only the kernel does.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;
use std::time::Duration;

/// A point on the kernel's clock: whole microseconds since the kernel started.
///
/// It never goes back, and it is not the time of day. Adding a duration rounds the duration **up**
/// to a microsecond, so that nothing fires early. The sum saturates at [`Time::NEVER`].
///
/// ```
/// use std::time::Duration;
/// use traps::Time;
///
/// let point = Time::ZERO + Duration::from_millis(1_250);
/// assert_eq!(point.to_string(), "1.250000");
/// assert_eq!(Time::ZERO + Duration::from_nanos(1), Time::from_micros(1)); // rounds up
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The start of the kernel's clock.
    pub const ZERO: Time = Time(0);
    /// A point that is never reached.
    pub const NEVER: Time = Time(u64::MAX);

    /// Makes the point `micros` microseconds after the start.
    ///
    /// ```
    /// # use traps::Time;
    /// assert_eq!(Time::from_micros(1_250_000).to_string(), "1.250000");
    /// ```
    #[must_use]
    pub const fn from_micros(micros: u64) -> Time {
        Time(micros)
    }

    /// Returns the number of microseconds since the start.
    ///
    /// ```
    /// # use traps::Time;
    /// assert_eq!("1.250000".parse::<Time>().unwrap().as_micros(), 1_250_000);
    /// ```
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the duration from `earlier` to this point. Returns zero if `earlier` is later.
    ///
    /// ```
    /// use std::time::Duration;
    /// use traps::Time;
    ///
    /// let (early, late) = (Time::from_micros(3), Time::from_micros(10));
    /// assert_eq!(late.since(early), Duration::from_micros(7));
    /// assert_eq!(early.since(late), Duration::ZERO);
    /// ```
    #[must_use]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// Converts a duration to whole microseconds. Rounds up and saturates.
#[inline]
pub(crate) fn micros(duration: Duration) -> u64 {
    let whole = duration.as_secs().saturating_mul(1_000_000);
    whole.saturating_add(u64::from(duration.subsec_nanos().div_ceil(1_000)))
}

impl Add<Duration> for Time {
    type Output = Time;

    #[inline]
    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(micros(duration)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// Returns the point that is `duration` earlier, or [`Time::ZERO`] if there is none. Rounds the
/// duration **down**, so that nothing fires early. [`Time::NEVER`] stays `NEVER`.
impl Sub<Duration> for Time {
    type Output = Time;

    fn sub(self, duration: Duration) -> Time {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        if self == Time::NEVER { self } else { Time(self.0.saturating_sub(micros)) }
    }
}

impl SubAssign<Duration> for Time {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

/// Returns the duration between the two points, like [`Time::since`].
impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

/// Writes seconds with six decimals, such as `1.250000`. [`Time::NEVER`] is `never`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER {
            return f.pad("never");
        }
        let text = format_args!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000).to_string();
        f.pad(&text)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not a [`Time`]. It says what was expected.
///
/// ```
/// use traps::Time;
///
/// let error = "1.5".parse::<Time>().unwrap_err();
/// assert!(error.to_string().starts_with("expected seconds with six decimals"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseTimeError;

impl fmt::Display for ParseTimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected seconds with six decimals, such as 1.250000, or `never`")
    }
}

impl std::error::Error for ParseTimeError {}

impl FromStr for Time {
    type Err = ParseTimeError;

    fn from_str(text: &str) -> Result<Time, ParseTimeError> {
        if text == "never" {
            return Ok(Time::NEVER);
        }
        let (whole, part) = text.split_once('.').ok_or(ParseTimeError)?;
        let has_digits = !whole.is_empty() && part.len() == 6;
        let micros = whole.bytes().chain(part.bytes()).try_fold(0_u64, |micros, byte| {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            micros.checked_mul(10)?.checked_add(digit)
        });
        micros.filter(|_| has_digits).map(Time).ok_or(ParseTimeError)
    }
}

/// A limit on the time that an operation takes. The functions that take one accept a duration, an
/// optional duration, or a point.
///
/// ```
/// use std::time::Duration;
/// use traps::{Limit, Time};
///
/// let second = Duration::from_secs(1);
/// assert_eq!(Limit::from(second), Limit::After(second));
/// assert_eq!(Limit::from(None), Limit::Never);
/// assert_eq!(Limit::from(Time::ZERO + second), Limit::At(Time::ZERO + second));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    Never,
    /// A duration, counted from the start of the operation.
    After(Duration),
    /// A point of kernel time, which can be in the past.
    At(Time),
}

impl From<Duration> for Limit {
    fn from(duration: Duration) -> Limit {
        Limit::After(duration)
    }
}

/// Converts a duration to [`Limit::After`], and `None` to [`Limit::Never`].
impl From<Option<Duration>> for Limit {
    fn from(duration: Option<Duration>) -> Limit {
        duration.map_or(Limit::Never, Limit::After)
    }
}

impl From<Time> for Limit {
    fn from(point: Time) -> Limit {
        Limit::At(point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_round_up_and_saturate() {
        assert_eq!(Time::ZERO + Duration::from_nanos(1), Time(1));
        assert_eq!(Time::ZERO + Duration::from_nanos(1_000), Time(1));
        assert_eq!(Time(7) + Duration::MAX, Time::NEVER);
        assert_eq!(Time(1).since(Time(5)), Duration::ZERO);
    }

    #[test]
    fn differences_round_down_and_saturate() {
        assert_eq!(Time(7) - Duration::from_nanos(2_999), Time(5));
        assert_eq!(Time(7) - Duration::from_micros(8), Time::ZERO);
        assert_eq!(Time::NEVER - Duration::MAX, Time::NEVER);
        assert_eq!(
            (Time(9) - Time(4), Time(4) - Time(9)),
            (Duration::from_micros(5), Duration::ZERO)
        );
        let mut time = Time(1);
        time += Duration::from_micros(4);
        time -= Duration::from_micros(2);
        assert_eq!(time, Time(3));
    }

    #[test]
    fn text_round_trips() {
        for time in [Time::ZERO, Time(1), Time(1_250_000), Time::NEVER] {
            assert_eq!(time.to_string().parse(), Ok(time));
        }
        for wrong in ["", "1", "1.5", "1.0000000", "-1.000000", "1.00000x", "x.000000"] {
            assert_eq!(wrong.parse::<Time>(), Err(ParseTimeError), "{wrong}");
        }
    }
}
