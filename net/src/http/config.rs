//! What all connections of a server share.

use super::buffers::Pool;
use super::connections::Connections;
use super::date::Date;
use super::deadlines::Deadlines;
use super::limits::Limits;

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
    pub(crate) open: Connections,
}

impl Config {
    /// A server with these limits and deadlines.
    #[must_use]
    pub fn new(limits: Limits, deadlines: Deadlines) -> Config {
        Config { limits, deadlines, ..Config::default() }
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
}
