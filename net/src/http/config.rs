//! What all connections of a server share.

use std::fmt::Display;

use traps::wall_clock;

use super::buffers::Pool;
use super::connections::{Connections, Entry};
use super::date::Date;
use super::deadlines::{Deadlines, Phase};
use super::exchange::{Exchange, Tell};
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
    /// Answers clients that have closed their sending side. Off: who has done so has left.
    pub half_close: bool,
    /// Of each answer.
    #[allow(dead_code, reason = "connections are to read it")]
    pub(crate) tell: Tell,
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

    /// Has `tell` called for every answer, also those that the server sends by itself.
    pub fn on_answer(&mut self, tell: impl Fn(&Exchange<'_>) + 'static) {
        self.tell = Tell(Some(Box::new(tell)));
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

/// What a connection does with what it shares.
impl Entry {
    /// Reads the date for all connections, once a second. So after the time of day was set, the
    /// old one is shown for less than a second.
    #[inline]
    pub(crate) fn refresh_date(&self, config: &Config) {
        let now = self.now();
        if !config.date.is_right(now) {
            config.date.tell(wall_clock(), now);
        }
    }

    /// The deadline of that phase passed.
    #[cold]
    pub(crate) fn note_expired(&self, phase: Phase, config: &Config) {
        if let Some((name, limit)) = phase.limit(&config.deadlines) {
            self.hit(config, name, limit);
        }
    }

    /// It hit the limit of that name.
    #[cold]
    pub(crate) fn hit(&self, config: &Config, name: &'static str, limit: impl Display) {
        config.open.caps.hit(self.number, name, limit, self.now());
    }
}
