//! Points in kernel time. Spans are [`std::time::Duration`].
//!
//! Knows nothing of clocks: only the kernel reads one.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;
use std::time::Duration;

/// A point on the kernel's clock: whole microseconds since the kernel started.
///
/// It never goes back and is not the time of day. Adding a span rounds the span **up** to a
/// microsecond, so that nothing fires early, and saturates at [`Time::NEVER`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The start of the kernel's clock.
    pub const ZERO: Time = Time(0);
    /// A point that is never reached.
    pub const NEVER: Time = Time(u64::MAX);

    /// The point `micros` microseconds after the start.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Time {
        Time(micros)
    }

    /// Microseconds since the start.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to here; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// Whole microseconds in `span`, rounded up; saturates.
#[inline]
pub(crate) fn micros(span: Duration) -> u64 {
    let whole = span.as_secs().saturating_mul(1_000_000);
    whole.saturating_add(u64::from(span.subsec_nanos().div_ceil(1_000)))
}

impl Add<Duration> for Time {
    type Output = Time;

    #[inline]
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(micros(span)))
    }
}

/// Seconds with six decimals, `1.250000`; [`Time::NEVER`] is `never`.
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

/// The error in the text of a [`Time`].
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

/// How long something may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// There is none.
    Never,
    /// So long from when it begins.
    After(Duration),
    /// To a point of kernel time, which may have passed.
    At(Time),
}

impl From<Duration> for Limit {
    fn from(span: Duration) -> Limit {
        Limit::After(span)
    }
}

/// `None` sets no limit.
impl From<Option<Duration>> for Limit {
    fn from(span: Option<Duration>) -> Limit {
        span.map_or(Limit::Never, Limit::After)
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
    fn spans_round_up_and_saturate() {
        assert_eq!(Time::ZERO + Duration::from_nanos(1), Time(1));
        assert_eq!(Time::ZERO + Duration::from_nanos(1_000), Time(1));
        assert_eq!(Time(7) + Duration::MAX, Time::NEVER);
        assert_eq!(Time(1).since(Time(5)), Duration::ZERO);
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
