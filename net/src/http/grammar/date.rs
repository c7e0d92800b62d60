//! The cached `Date` field of responses.
//!
//! This module must not wait or ask for the time. The caller passes it in.

use std::cell::Cell;
use std::io::Write;
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;
use traps::Time;

/// The end of a response head: the `Date` field, and the empty line.
pub(crate) type Tail = [u8; 39];

/// The position of the date in the tail: `Sun, 06 Nov 1994 08:49:37 GMT`.
const DATE: Range<usize> = 6..35;

/// The last second that the format of the date can write, on 31 December 9999.
const LAST_SECOND: u64 = 253_402_300_799;

/// The cached tail of a response head, and the period in which its date is right.
#[derive(Debug)]
pub(crate) struct Date {
    tail: Cell<Tail>,
    /// The reading of the kernel's clock when the time of day was read.
    asked: Cell<Time>,
    /// The reading of the kernel's clock when the next second begins.
    until: Cell<Time>,
}

impl Default for Date {
    fn default() -> Date {
        let tail = *b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";
        Date { tail: Cell::new(tail), asked: Cell::default(), until: Cell::default() }
    }
}

impl Date {
    /// Whether the date is right at `now`, a time of the kernel. If `now` is earlier than the
    /// reading of the date, it is the time of another kernel, and the date is not right.
    pub(crate) fn is_right(&self, now: Time) -> bool {
        (self.asked.get()..self.until.get()).contains(&now)
    }

    /// Marks the cached date as stale, because the kernel that runs now may be another one.
    pub(crate) fn forget(&self) {
        self.until.set(Time::ZERO);
    }

    /// Formats `time` into the cached tail. `time` is the time of day at `now`, a time of the
    /// kernel.
    pub(crate) fn tell(&self, time: SystemTime, now: Time) {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let second = Duration::from_secs(since.as_secs().min(LAST_SECOND));
        let mut tail = self.tail.get();
        let date = HttpDate::from(UNIX_EPOCH + second);
        write!(&mut tail[DATE], "{date}").expect("the format has a fixed width");
        self.tail.set(tail);
        self.asked.set(now);
        // Round down, so that the date is never right for too long.
        let left = 1_000_000 - u64::from(since.subsec_nanos().div_ceil(1000));
        self.until.set(now + Duration::from_micros(left));
    }

    pub(crate) fn tail(&self) -> Tail {
        self.tail.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_formatted_as_rfc_9110_shows_it() {
        let date = Date::default();
        date.tell(UNIX_EPOCH + Duration::from_millis(784_111_777_900), Time::ZERO);
        assert_eq!(&date.tail()[DATE], b"Sun, 06 Nov 1994 08:49:37 GMT");
        date.tell(UNIX_EPOCH + Duration::from_secs(u64::MAX / 4), Time::ZERO);
        assert_eq!(&date.tail()[DATE], b"Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn a_date_is_right_for_the_rest_of_its_second_on_the_clock_that_it_was_asked_on() {
        let at = |millis: u64| Time::from_micros(millis * 1000);
        let date = Date::default();
        assert!(!date.is_right(at(0)));
        date.tell(UNIX_EPOCH + Duration::from_millis(784_111_777_900), at(5_000));
        assert!(date.is_right(at(5_000)) && date.is_right(at(5_099)));
        assert!(!date.is_right(at(5_100)));
        // The clock of another kernel: one that began later, or that runs again.
        assert!(!date.is_right(at(0)) && !date.is_right(at(60_000)));
        date.forget();
        assert!(!date.is_right(at(5_000)));
        date.tell(UNIX_EPOCH + Duration::new(784_111_777, 999_000_000), at(0));
        assert!(date.is_right(Time::from_micros(999)) && !date.is_right(at(1)));
    }
}
