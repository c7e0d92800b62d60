//! The configuration, which all connections of a server share.
//!
//! This module must not read, write or wait. The caller passes the time in.

use std::rc::Rc;

use traps::{Time, wall_clock};

use super::buffers::Pool;
use super::grammar::date::Date;
use super::guard::access_log::{Exchange, OnExchange};
use super::guard::connections::Connections;
use super::guard::memory::Memory;
use super::limits::{Deadlines, Limits};

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
    pub(crate) on_exchange: OnExchange,
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
    pub fn on_exchange(&mut self, tell: impl Fn(&Exchange<'_>) + 'static) {
        self.on_exchange = OnExchange(Some(Box::new(tell)));
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
