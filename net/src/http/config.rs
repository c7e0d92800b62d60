//! What all connections of a server share.

use std::fmt;

use traps::{Time, wall_clock};

use super::buffers::Pool;
use super::connections::Connections;
use super::date::Date;
use super::deadlines::Deadlines;
use super::exchange::Exchange;
use super::limits::Limits;
use super::memory::Memory;

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
    /// Answers a client that has closed its sending side, however long that takes. Off: a
    /// client that closes it is taken to have left, and the handler of its request is cancelled
    /// after a quarter of a second. The two cannot be told apart before something is sent.
    pub half_close: bool,
    pub(crate) on_answer: OnAnswer,
    pub(crate) date: Date,
    pub(crate) pool: Pool,
    pub(crate) memory: Memory,
    pub(crate) open: Connections,
}

/// Whom each answer is told to.
#[derive(Default)]
pub(crate) struct OnAnswer(pub(crate) Option<Box<Tell>>);

type Tell = dyn Fn(&Exchange<'_>);

impl fmt::Debug for OnAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "OnAnswer" } else { "None" })
    }
}

impl Config {
    /// A server with these limits and deadlines.
    #[must_use]
    pub fn new(limits: Limits, deadlines: Deadlines) -> Config {
        Config { limits, deadlines, ..Config::default() }
    }

    /// Has every answer told to `tell`, when it was handed to the stream: for an access log. It
    /// runs in the task of the connection, so it may not block.
    pub fn on_answer(&mut self, tell: impl Fn(&Exchange<'_>) + 'static) {
        self.on_answer = OnAnswer(Some(Box::new(tell)));
    }

    /// Lets the connections come to their end, for a server that stops. Those that wait for their
    /// next request end at once, new ones that have sent nothing within half a second, the grace.
    /// A request that was sent before is answered, with `Connection: close`; a request of which the
    /// last byte of its head comes after the grace is refused with 503 and `Retry-After`. Does not
    /// trap.
    #[track_caller]
    pub fn drain(&self) {
        self.open.drain();
    }

    /// Whether [`Config::drain`] was called.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.open.is_draining()
    }

    /// How many connections are being served. Those that are refused because there are too many
    /// do not count, nor those that are about to close to make room.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.open.serving()
    }

    /// Reads the date for all connections, once a second. So after the time of day was set, the
    /// old one is shown for less than a second.
    #[inline]
    pub(crate) fn refresh_date(&self, now: Time) {
        if !self.date.is_right(now) {
            self.date.tell(wall_clock(), now);
        }
    }
}
