//! The `cap` lines of a connection: the first hit of each limit in full, later ones counted.
//!
//! A peer that hits a limit as often as it likes must not fill the log (row D26). It may not know
//! what a limit is for.

use std::cell::{OnceCell, RefCell};
use std::fmt::Display;

use traps::{Time, note_cap};

use crate::limits::{CAP_LINES, CAP_PAUSE, CAP_SPAN};

/// The limits that were hit. One word, and without an allocation, for nearly everybody.
#[derive(Debug, Default)]
pub(crate) struct Caps(OnceCell<Box<Hits>>);

/// By name.
#[derive(Debug, Default)]
struct Hits(RefCell<Vec<Hit>>);

/// A limit that was hit.
#[derive(Debug)]
struct Hit {
    name: &'static str,
    limit: String,
    /// How often since the last line.
    more: u64,
    /// When that was.
    said: Time,
    /// When it was hit last.
    last: Time,
}

impl Hit {
    /// The line that sums up what was not said, and nothing is left to sum up.
    fn sum_up(&mut self, conn: u64) -> String {
        let Hit { name, limit, more, .. } = self;
        format!("name={name} limit={limit} conn={conn} more={}", std::mem::take(more))
    }
}

impl Caps {
    /// Connection `conn` hit the limit of that name: a line the first time, then one for
    /// each hundred, but not within ten seconds of the last, and one if that is a minute ago.
    #[cold]
    pub(crate) fn hit(&self, conn: u64, name: &'static str, limit: impl Display, now: Time) {
        if let Some(line) = self.line(conn, name, limit, now) {
            note_cap(line);
        }
    }

    fn line(
        &self,
        conn: u64,
        name: &'static str,
        limit: impl Display,
        now: Time,
    ) -> Option<String> {
        let mut hits = self.0.get_or_init(Box::default).0.borrow_mut();
        let Some(hit) = hits.iter_mut().find(|hit| hit.name == name) else {
            let line = format!("name={name} limit={limit} conn={conn}");
            hits.push(Hit { name, limit: limit.to_string(), more: 0, said: now, last: now });
            return Some(line);
        };
        if hit.said == Time::ZERO {
            // It was said before the connection had a clock.
            hit.said = now;
        }
        hit.more += 1;
        hit.last = now;
        let age = now.since(hit.said);
        let due = age >= CAP_SPAN || (age >= CAP_PAUSE && hit.more >= CAP_LINES);
        due.then(|| {
            hit.said = now;
            hit.sum_up(conn)
        })
    }

    /// If nothing was hit for some time, what is hit next is news.
    #[inline]
    pub(crate) fn calm(&self, conn: u64, now: Time) {
        if let Some(hits) = self.0.get()
            && hits.are_old(now)
        {
            self.finish(conn);
        }
    }

    /// Nothing more will be hit, or what is hit next is news: sums up what was only counted.
    #[inline]
    pub(crate) fn finish(&self, conn: u64) {
        if let Some(hits) = self.0.get() {
            hits.take_lines(conn).into_iter().for_each(note_cap);
        }
    }
}

impl Hits {
    fn are_old(&self, now: Time) -> bool {
        self.0.borrow().iter().all(|hit| now.since(hit.last) >= CAP_PAUSE)
    }

    #[cold]
    fn take_lines(&self, conn: u64) -> Vec<String> {
        let hits = self.0.take().into_iter().filter(|hit| hit.more > 0);
        hits.map(|mut hit| hit.sum_up(conn)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn d26_the_first_hit_is_a_line_and_the_rest_are_counted() {
        let caps = Caps::default();
        let first = caps.line(7, "fields", 100, at(1));
        assert_eq!(first.as_deref(), Some("name=fields limit=100 conn=7"));
        for _ in 0..10 * CAP_LINES {
            assert_eq!(caps.line(7, "fields", 100, at(10)), None, "so soon");
        }
        let thousandth = caps.line(7, "fields", 100, at(11));
        assert_eq!(thousandth.as_deref(), Some("name=fields limit=100 conn=7 more=1001"));
        for _ in 0..CAP_LINES - 1 {
            assert_eq!(caps.line(7, "fields", 100, at(30)), None, "so few");
        }
        let hundredth = caps.line(7, "fields", 100, at(30));
        assert_eq!(hundredth.as_deref(), Some("name=fields limit=100 conn=7 more=100"));
        assert_eq!(caps.line(7, "fields", 100, at(89)), None);
        let minute = caps.line(7, "fields", 100, at(90));
        assert_eq!(minute.as_deref(), Some("name=fields limit=100 conn=7 more=2"));
        assert_eq!(caps.line(7, "fields", 100, at(90)), None);
        assert_eq!(caps.0.get().unwrap().take_lines(7), ["name=fields limit=100 conn=7 more=1"]);
        assert_eq!(caps.0.get().unwrap().take_lines(7), [""; 0], "said once");
    }

    #[test]
    fn d26_each_limit_has_its_own_first_line() {
        let caps = Caps::default();
        assert!(caps.line(1, "fields", 100, at(0)).is_some());
        assert!(caps.line(1, "head_wait", "10s", at(0)).is_some());
        assert_eq!(caps.line(1, "fields", 100, at(0)), None);
        assert_eq!(caps.line(1, "head_wait", "10s", at(0)), None);
    }
}
