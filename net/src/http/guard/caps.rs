//! The `cap` lines of the log, which report that a limit was hit: one a second for each limit.

use std::cell::RefCell;
use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::time::Duration;

use traps::Time;
use traps::internal::{Throttle, note_cap};

use crate::limits::CAP_PAUSE;

/// The limits that were hit on the connections of a server, by name.
///
/// Each limit has at most one line a second, which counts the hits since the previous line. So a
/// peer cannot fill the log by hitting a limit often, on any number of connections.
#[derive(Debug, Default)]
pub(crate) struct Caps(RefCell<Vec<Hit>>);

/// A limit that was hit.
#[derive(Debug)]
struct Hit {
    name: &'static str,
    limit: String,
    /// The connection that hit the limit last, and its peer.
    conn: Conn,
    /// The throttle of the log lines about the limit. Counts the hits after the first.
    throttle: Throttle,
}

impl Hit {
    /// Returns the log line about the hits since the previous line, unless that line is younger
    /// than `pause`.
    fn line(&mut self, now: Time, pause: Duration) -> Option<String> {
        let Hit { name, limit, conn, throttle } = self;
        let line = |more| format!("name={name} limit={limit} conn={conn} more={more}");
        throttle.claim_line(now, pause).then(|| line(throttle.take_unlogged()))
    }
}

/// The name of a connection in the log: its number, and its peer if the stream knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conn(pub(crate) u64, pub(crate) Option<SocketAddr>);

impl Display for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conn(number, peer) = self;
        write!(f, "{number}")?;
        peer.map_or(Ok(()), |peer| write!(f, " peer={peer}"))
    }
}

impl Caps {
    /// Reports that a connection hit the limit called `name`.
    #[cold]
    pub(crate) fn hit(&self, conn: Conn, name: &'static str, limit: impl Display, now: Time) {
        if let Some(line) = self.line(conn, name, limit, now) {
            note_cap(line);
        }
    }

    fn line(
        &self,
        conn: Conn,
        name: &'static str,
        limit: impl Display,
        now: Time,
    ) -> Option<String> {
        let mut hits = self.0.borrow_mut();
        let Some(hit) = hits.iter_mut().find(|hit| hit.name == name) else {
            let line = format!("name={name} limit={limit} conn={conn}");
            let mut throttle = Throttle::default();
            throttle.stamp(now);
            hits.push(Hit { name, limit: limit.to_string(), conn, throttle });
            return Some(line);
        };
        hit.throttle.count();
        (hit.conn, hit.limit) = (conn, limit.to_string());
        hit.line(now, CAP_PAUSE)
    }

    /// Logs the hits that were only counted: for each limit that was not logged in the last second,
    /// or for all limits if `at_end` is set.
    #[inline]
    pub(crate) fn sum_up(&self, now: Time, at_end: bool) {
        if !self.0.borrow().is_empty() {
            self.take_lines(now, at_end).into_iter().for_each(note_cap);
        }
    }

    fn take_lines(&self, now: Time, at_end: bool) -> Vec<String> {
        let pause = if at_end { Duration::ZERO } else { CAP_PAUSE };
        let mut hits = self.0.borrow_mut();
        let left = hits.iter_mut().filter(|hit| hit.throttle.unlogged() > 0);
        left.filter_map(|hit| hit.line(now, pause)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn d26_each_limit_has_one_line_a_second_for_all_connections() {
        let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
        let caps = Caps::default();
        let conn = |number| Conn(number, None);
        let first = caps.line(conn(7), "fields", 100, at(0));
        assert_eq!(first.as_deref(), Some("name=fields limit=100 conn=7"));
        for number in 8..1_000 {
            assert_eq!(caps.line(conn(number), "fields", 100, at(999)), None, "so soon");
        }
        assert!(caps.line(conn(8), "head_wait", "10s", at(999)).is_some(), "another limit");
        let next = caps.line(conn(1_000), "fields", 100, at(1_000));
        assert_eq!(next.as_deref(), Some("name=fields limit=100 conn=1000 more=993"));
        let peer = Conn(1_001, Some(([127, 0, 0, 1], 80).into()));
        assert_eq!(caps.line(peer, "fields", 200, at(1_001)), None);
        assert_eq!(caps.take_lines(at(1_999), false), [""; 0]);
        let left = ["name=fields limit=200 conn=1001 peer=127.0.0.1:80 more=1"];
        assert_eq!(caps.take_lines(at(2_000), false), left);
        assert_eq!(caps.take_lines(at(9_000), true), [""; 0], "said once");
        assert!(caps.line(peer, "fields", 200, at(0)).is_some(), "the clock of another kernel");
    }
}
