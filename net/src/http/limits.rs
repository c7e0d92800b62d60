//! How much a peer may send, and the `cap` lines that say in the log that a limit was hit.

use std::cell::RefCell;
use std::fmt::{self, Display};
use std::net::SocketAddr;

use traps::{Time, note_cap};

use crate::limits::CAP_PAUSE;

/// Bounds on what a peer sends. Each has a default; the largest number is none, but for `fields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of request line and fields together, else 431. Default 64 KiB.
    pub head: usize,
    /// Bytes of the request line without its end, else 414. Default 8 KiB.
    pub request_line: usize,
    /// Field lines in a head, else 431. Default 100, which is also the most.
    pub fields: usize,
    /// Bytes of a body, without the framing of chunks, else 413. Default 8 MiB.
    pub body: u64,
    /// Bytes of all bodies together that are kept in memory, by
    /// [`body_to_vec`](super::Request::body_to_vec). A body has its length reserved, one in chunks
    /// what it may have, and one of up to 16 KiB nothing. One that finds no room waits for its
    /// turn, for [`Deadlines::body`](super::Deadlines::body) at most; then 503. One that is longer
    /// is refused with 413. Default 256 MiB.
    pub memory: u64,
    /// Bytes of a body that the handler left unread, read and thrown away to keep the connection;
    /// with more left it closes. Default 64 KiB.
    pub drain: u64,
    /// Connections that [`serve`](super::serve) serves at once. One more has another closed that
    /// waits for its first byte or its next request, as told there. If there is none, it is
    /// answered with 503, `Retry-After: 1` and the close, whatever it asks. Default 16,384.
    pub connections: usize,
    /// Requests on one connection: the answer to the last says `Connection: close`. Default
    /// 1,000,000.
    pub requests: u64,
    /// Requests that are answered without a wait between them, because they came together, before
    /// their answers go out and the connection gives way to others for a turn. Default 64.
    pub pipelined: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: 65_536,
            request_line: 8_192,
            fields: 100,
            body: 8 << 20,
            memory: 256 << 20,
            drain: 65_536,
            connections: 16_384,
            requests: 1_000_000,
            pipelined: 64,
        }
    }
}

/// The limits that were hit on any connection of a server, by name.
///
/// Each has one line a second at most, which counts the hits since the line before: a peer that
/// hits a limit as often as it likes, on as many connections as it likes, does not fill the log.
#[derive(Debug, Default)]
pub(crate) struct Caps(RefCell<Vec<Hit>>);

/// A limit that was hit.
#[derive(Debug)]
struct Hit {
    name: &'static str,
    limit: String,
    /// The connection that hit it last, and its peer.
    conn: Conn,
    /// How often since the last line.
    more: u64,
    /// When that was.
    said: Time,
}

impl Hit {
    fn line(&mut self, now: Time) -> String {
        self.said = now;
        let Hit { name, limit, conn, more, .. } = self;
        format!("name={name} limit={limit} conn={conn} more={}", std::mem::take(more))
    }
}

/// A connection by its number, and its peer where its stream knows it.
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
    /// That connection hit the limit of that name.
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
            hits.push(Hit { name, limit: limit.to_string(), conn, more: 0, said: now });
            return Some(line);
        };
        hit.more += 1;
        (hit.conn, hit.limit) = (conn, limit.to_string());
        (now.since(hit.said) >= CAP_PAUSE).then(|| hit.line(now))
    }

    /// Says what was only counted, as far as the last line is old enough, or all of it at the end.
    #[inline]
    pub(crate) fn sum_up(&self, now: Time, at_end: bool) {
        if !self.0.borrow().is_empty() {
            self.take_lines(now, at_end).into_iter().for_each(note_cap);
        }
    }

    fn take_lines(&self, now: Time, at_end: bool) -> Vec<String> {
        let mut hits = self.0.borrow_mut();
        let is_due = |hit: &&mut Hit| hit.more > 0 && (at_end || now.since(hit.said) >= CAP_PAUSE);
        hits.iter_mut().filter(is_due).map(|hit| hit.line(now)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn d26_each_limit_has_one_line_a_second_whoever_hits_it() {
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
    }
}
