//! What all connections of a server share: limits, deadlines, the date, and spare buffers.
//!
//! It may not know of any one connection.

use std::cell::RefCell;
use std::time::Duration;

use super::busy::Paused;
use super::date::Date;
use super::head::Head;
use super::inbox::Inbox;
use super::reading::Refused;
use super::response::Response;
use super::seats::Seats;
use crate::limits::{READ_BUFFER, SPARE};
use crate::write_deadline::WriteDeadline;

/// Bytes for which a buffer of answers has room at first.
const WRITE_BUFFER: usize = 1024;

/// The largest that is kept.
const KEPT: usize = 4 * READ_BUFFER;

/// What [`serve_connection`](super::serve_connection) goes by. One for all connections of a
/// server, in an `Rc` or borrowed.
#[derive(Debug, Default)]
pub struct Config {
    /// How much of each thing a peer may send.
    pub limits: Limits,
    /// How long each phase may take.
    pub deadlines: Deadlines,
    /// Takes a line of a head that ends in LF alone (RFC 9112, 2.2). Off: it is refused, for what
    /// stands in front may see another request there. Chunks stay strict.
    pub bare_lf: bool,
    pub(crate) date: Date,
    pub(crate) pool: Pool,
    pub(crate) seats: Seats,
}

impl Config {
    /// A server with these limits and deadlines.
    #[must_use]
    pub fn new(limits: Limits, deadlines: Deadlines) -> Config {
        Config { limits, deadlines, ..Config::default() }
    }

    /// Lets the connections come to their end, for a server that stops (rows F17, F19). Those that
    /// wait for their next request end at once, new ones that have sent nothing within half a
    /// second. A request in hand is answered with `Connection: close`; one that comes later is
    /// refused with 503 and `Retry-After`, as soon as its head is there. Does not trap.
    #[track_caller]
    pub fn drain(&self) {
        self.seats.drain();
    }

    /// Whether [`Config::drain`] was called.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.seats.is_draining()
    }

    /// How many connections are being served. Those that are refused because there are too many
    /// do not count.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.seats.serving()
    }
}

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
    /// Bytes of a body that the handler left unread, read and thrown away to keep the connection;
    /// with more left it closes. Default 64 KiB.
    pub drain: u64,
    /// Connections that [`serve`](super::serve) serves at once; one more is answered with 503,
    /// `Retry-After: 1` and the close, whatever it asks (row D27). Default 16,384.
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
            drain: 65_536,
            connections: 16_384,
            requests: 1_000_000,
            pipelined: 64,
        }
    }
}

/// How long each phase of a connection may take. Zero has passed at once, `Duration::MAX` never
/// passes. In the turn in which one passes it wins against what the peer sent (row D7), but for the
/// wait for a request to begin: one that is there is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For the whole head, from its first byte; for the first request of a connection, from the
    /// start of the task. Then 408, or silence if not a byte came. Default 10 s.
    pub head: Duration,
    /// For each wait for a piece of a body. Then the connection ends without an answer. Default
    /// 30 s.
    pub body: Duration,
    /// Bytes a second that a peer must send of a body while it is waited for, in every
    /// `body_window`: a byte now and then does not keep a body alive (row D25). Then the
    /// connection ends as above. Zero switches it off. Default 240.
    pub body_rate: u64,
    /// Over which `body_rate` counts. Default 5 s.
    pub body_window: Duration,
    /// For a handler, from the head to the end of its work, what it waits for of the body and of
    /// the peer included. Then 503, or an answer that breaks off if it had begun, and the
    /// connection closes. Default never: a handler bounds what it waits for.
    pub handler: Duration,
    /// For each wait until the peer takes some of the answer. Then the connection is reset (row
    /// D21). Default 30 s.
    pub write: Duration,
    /// For the wait between two requests. Then the connection ends silently. Default 5 s.
    pub idle: Duration,
    /// For the whole wait, after a last answer (one that refuses, or that of a server that stops),
    /// until the peer stops sending. Default 2 s.
    pub linger: Duration,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        let seconds = Duration::from_secs;
        Deadlines {
            head: seconds(10),
            body: seconds(30),
            body_rate: 240,
            body_window: seconds(5),
            handler: Duration::MAX,
            write: WriteDeadline::SPAN,
            idle: seconds(5),
            linger: seconds(2),
        }
    }
}

/// What a busy connection reads into, and gathers its answers in.
#[derive(Debug)]
pub(crate) struct Buffers {
    pub(crate) inbox: Inbox,
    pub(crate) out: Vec<u8>,
    /// Of the request in hand, or of the last one.
    pub(crate) head: Head,
    /// To it, while the date is read; and whether the connection may go on after it.
    pub(crate) answer: Option<(Response, bool)>,
    /// What was refused instead.
    pub(crate) refused: Option<Refused>,
    /// What else it has, while it is handed on.
    pub(crate) paused: Option<Paused>,
}

/// Spare buffers, so that a connection that waits for its next request owns none.
#[derive(Debug, Default)]
#[allow(clippy::vec_box, reason = "they are handed over, and never read here")]
pub(crate) struct Pool(RefCell<Vec<Box<Buffers>>>);

impl Pool {
    /// With nothing in them.
    #[inline(always)]
    pub(crate) fn take(&self) -> Box<Buffers> {
        let spare = self.0.borrow_mut().pop();
        spare.unwrap_or_else(|| {
            let out = Vec::with_capacity(WRITE_BUFFER);
            let (inbox, head) = (Inbox::default(), Head::REFUSED);
            Box::new(Buffers { inbox, out, head, answer: None, refused: None, paused: None })
        })
    }

    /// Those that had to grow are freed: the pool's memory is bounded. `out` is theirs.
    #[inline(always)]
    pub(crate) fn give(&self, mut buffers: Box<Buffers>, out: Vec<u8>) {
        buffers.out = out;
        buffers.out.clear();
        buffers.inbox.clear();
        let usual = buffers.inbox.size() == READ_BUFFER && buffers.out.capacity() <= KEPT;
        let mut spare = self.0.borrow_mut();
        if usual && spare.len() < SPARE {
            spare.push(buffers);
        }
    }
}
