//! The `Date` field, formatted at most once a second.
//!
//! It is told the time; it may not ask for it.

use std::cell::Cell;
use std::io::Write;
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

/// The end of a head: the field, and the empty line.
pub(crate) type Tail = [u8; 39];

/// Where in it the date is: `Sun, 06 Nov 1994 08:49:37 GMT`.
const DATE: Range<usize> = 6..35;

/// 31 December 9999, the last day that the format can write.
const LAST_SECOND: u64 = 253_402_300_799;

/// The second that was last written, and the tail that says so.
#[derive(Debug)]
pub(crate) struct Date {
    second: Cell<u64>,
    tail: Cell<Tail>,
}

impl Default for Date {
    fn default() -> Date {
        let tail = *b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";
        Date { second: Cell::new(0), tail: Cell::new(tail) }
    }
}

impl Date {
    /// Takes the time of day; gives for how long its text is right. Costs a comparison unless a
    /// second has passed.
    #[inline]
    pub(crate) fn set(&self, now: SystemTime) -> Duration {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let second = since.as_secs();
        if second != self.second.get() {
            self.write(second.min(LAST_SECOND));
            self.second.set(second);
        }
        Duration::from_secs(1) - Duration::from_nanos(u64::from(since.subsec_nanos()))
    }

    #[cold]
    fn write(&self, second: u64) {
        let mut tail = self.tail.get();
        let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(second));
        write!(&mut tail[DATE], "{date}").expect("the format has a fixed width");
        self.tail.set(tail);
    }

    #[inline]
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
        date.set(UNIX_EPOCH + Duration::from_millis(784_111_777_900));
        assert_eq!(&date.tail()[DATE], b"Sun, 06 Nov 1994 08:49:37 GMT");
        date.set(UNIX_EPOCH + Duration::from_secs(u64::MAX / 4));
        assert_eq!(&date.tail()[DATE], b"Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
