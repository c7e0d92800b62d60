//! The parts that all connections of a server share: the configuration, the cached `Date` field and
//! the spare buffers.
//!
//! This module must not read, write or wait. The caller passes the time in.

use std::cell::RefCell;
use std::rc::Rc;

use traps::{Time, wall_clock};

use super::access_log::{Exchange, OnAnswer};
use super::connections::Connections;
use super::date::Date;
use super::limits::{Deadlines, Limits};
use super::memory::Memory;
use super::request_head::RequestHead;
use crate::limits::{READ_BUFFER, SPARE};

/// The configuration of [`serve_connection`](super::serve_connection). All connections of a server
/// share one, in an `Rc` or borrowed.
#[derive(Debug, Default)]
pub struct Config {
    /// The limits on the bytes and requests of a peer.
    pub limits: Limits,
    /// The deadlines of the phases of a connection.
    pub deadlines: Deadlines,
    /// Whether a line of a head can end in LF alone (RFC 9112, 2.2). If off, such a head is
    /// refused, because a proxy in front may read it as a different request. The lines of a chunked
    /// body must always end in CRLF.
    pub bare_lf: bool,
    /// Whether the server responds to a client that has closed its sending side, however long the
    /// response takes. If off, the server assumes that such a client has left, and cancels the
    /// handler of its request after a quarter of a second. The two cases look alike until something
    /// is sent.
    pub half_close: bool,
    pub(crate) on_answer: OnAnswer,
    pub(crate) date: Date,
    pub(crate) pool: Pool,
    pub(crate) memory: Rc<Memory>,
    pub(crate) open: Connections,
}

impl Config {
    /// Makes a configuration with these limits and deadlines.
    #[must_use]
    pub fn new(limits: Limits, deadlines: Deadlines) -> Config {
        Config { limits, deadlines, ..Config::default() }
    }

    /// Calls `tell` for every response, for an access log, when the stream has taken the whole
    /// response or takes no more. If the stream has taken none of the response, the status is 499.
    /// `tell` runs in the task of the connection, so it must not block.
    pub fn on_answer(&mut self, tell: impl Fn(&Exchange<'_>) + 'static) {
        self.on_answer = OnAnswer(Some(Box::new(tell)));
    }

    /// Begins to close all connections, for a server that stops. Idle connections close at once.
    /// New connections close if they send nothing within half a second, the *grace*. A request sent
    /// before then gets its response, with `Connection: close`. A head that is not whole when the
    /// grace ends is refused with 503 and `Retry-After`. From then on, a wait for a piece of a
    /// body, for room in memory, or for a client to take some of its response lasts at most two
    /// seconds, and then ends as if its deadline had passed. Does not trap.
    #[track_caller]
    pub fn drain(&self) {
        self.open.drain();
    }

    /// Whether [`Config::drain`] was called.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.open.is_draining()
    }

    /// The number of connections being served. Connections that are refused because there are too
    /// many do not count. Connections that are about to close to make room do not count either.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.open.serving()
    }

    /// The number of bytes that count for [`Limits::memory`] now.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.memory.used()
    }

    /// Refreshes the cached date of all connections, at most once a second. If the time of day is
    /// set, the old date is shown for less than a second.
    #[inline]
    pub(crate) fn refresh_date(&self, now: Time) {
        if !self.date.is_right(now) {
            self.date.tell(wall_clock(), now);
        }
    }
}

// ---- Buffers ------------------------------------------------------------------------------------

/// The first capacity of an output buffer, in bytes.
const WRITE_BUFFER: usize = 1024;

/// The largest capacity, in bytes, of an output buffer that the pool keeps.
const KEPT: usize = 4 * READ_BUFFER;

/// The buffers of a busy connection: it reads into one, and gathers its responses in the other.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// The request in hand, or the last request, with the input buffer.
    pub(crate) request: RequestHead,
    pub(crate) out: Vec<u8>,
}

/// A pool of spare buffers, so that a connection that waits for its next request owns none.
#[derive(Debug, Default)]
#[allow(clippy::vec_box, reason = "they are handed over, and never read here")]
pub(crate) struct Pool(RefCell<Vec<Box<Buffers>>>);

impl Pool {
    /// Takes a spare pair of empty buffers from the pool, or makes a new pair.
    pub(crate) fn take(&self) -> Box<Buffers> {
        let spare = self.0.borrow_mut().pop();
        spare.unwrap_or_else(|| {
            let out = Vec::with_capacity(WRITE_BUFFER);
            Box::new(Buffers { request: RequestHead::empty(), out })
        })
    }

    /// Puts a pair of buffers back into the pool. Frees the pair if a buffer is too large or the
    /// pool is full, so that the memory of the pool is bounded.
    pub(crate) fn give(&self, mut buffers: Box<Buffers>) {
        let usual = buffers.request.input.size() == READ_BUFFER && buffers.out.capacity() <= KEPT;
        buffers.out.clear();
        buffers.request.input.clear();
        let mut spare = self.0.borrow_mut();
        if usual && spare.len() < SPARE {
            spare.push(buffers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_keeps_few_buffers_and_none_that_is_large() {
        let pool = Pool::default();
        let kept = || pool.0.borrow().len();
        let mut busy: Vec<_> = (0..SPARE + 1).map(|_| pool.take()).collect();
        let (mut long_head, mut long_out) = (pool.take(), pool.take());
        let n = long_head.request.input.room(READ_BUFFER).len();
        long_head.request.input.filled(n);
        long_head.request.input.room(READ_BUFFER);
        long_out.out.reserve_exact(KEPT + 1);
        for large in [long_head, long_out] {
            pool.give(large);
            assert_eq!(kept(), 0);
        }
        busy[0].out.extend_from_slice(b"left");
        busy.into_iter().for_each(|buffers| pool.give(buffers));
        assert_eq!(kept(), SPARE);
        (0..SPARE).for_each(|_| assert!(pool.take().out.is_empty()));
    }
}
