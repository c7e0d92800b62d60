//! The waits for the peer of a connection: the phase of each, the reason why it ended without the
//! peer, and the consequences of that: a `cap` line in the log, and a refusal of the request.

use std::fmt::{self, Display};
use std::io;

use super::grammar::head::{CROWDED, Refusal, STOPS};
use super::limits::{Deadlines, Limits};
use crate::limits::DRAIN_WAIT;

/// A phase of a connection, in which it waits for its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The wait for the rest of a head.
    Head,
    /// The wait for a piece of a body, or for room in memory for it.
    Body,
    /// The wait for the peer to take some of the response.
    Write,
    /// The wait for the peer to stop sending after a last response.
    Linger,
}

/// The reason why a wait for the peer ended without the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The deadline of the phase passed.
    Time,
    /// The peer was slower than this many bytes a second.
    Rate(u64),
    /// There was no room in memory, or others needed the room of the connection.
    Memory,
    /// The server drains.
    Drain,
    /// Another connection needs the place.
    Seat,
}

impl Phase {
    /// The limit that the peer hit, and its value, as a `cap` line shows them. `None` if it is not
    /// the fault of the peer.
    pub(crate) fn limit(
        self,
        over: Over,
        limits: &Limits,
        deadlines: &Deadlines,
    ) -> Option<(&'static str, String)> {
        let rate = |name, rate, window| Some((name, format!("{rate} window={window:?}")));
        let (name, span) = match (self, over) {
            (_, Over::Memory) => return Some(("memory_bytes", limits.memory.to_string())),
            (Phase::Linger, _) | (_, Over::Seat) | (Phase::Head, Over::Drain) => return None,
            (_, Over::Drain) => ("drain_wait", DRAIN_WAIT),
            (Phase::Write, Over::Rate(least)) => return rate("write_rate", least, deadlines.write),
            (_, Over::Rate(least)) => return rate("body_rate", least, deadlines.body_window),
            (Phase::Head, Over::Time) => ("head_wait", deadlines.head),
            (Phase::Body, Over::Time) => ("body_wait", deadlines.body),
            (Phase::Write, Over::Time) => ("write_wait", deadlines.write),
        };
        Some((name, format!("{span:?}")))
    }

    /// The refusal of the request. `None` if the server was not reading a request.
    fn refusal(self, over: Over) -> Option<Refusal> {
        Some(match (self, over) {
            (Phase::Write | Phase::Linger, _) => return None,
            (_, Over::Seat) => CROWDED,
            (Phase::Head, Over::Memory) => Refusal::new(503, "there is no room for the head\n"),
            (Phase::Body, Over::Memory) => Refusal::new(503, "there is no room for the body\n"),
            (Phase::Head, Over::Drain) => STOPS,
            (Phase::Head, _) => Refusal::new(408, "the head took too long\n"),
            (Phase::Body, _) => Refusal::new(408, "the body took too long\n"),
        })
    }
}

/// The error of a wait that ended without the peer.
#[derive(Debug)]
pub(crate) struct Expired(pub(crate) Phase, pub(crate) Over);

impl Expired {
    fn of(error: &io::Error) -> Option<&Expired> {
        error.get_ref()?.downcast_ref()
    }

    pub(crate) fn is(error: &io::Error) -> bool {
        Expired::of(error).is_some()
    }

    /// Turns the error into the refusal of the request that was being read. Returns any other error
    /// as it is.
    pub(crate) fn refusal(error: io::Error) -> io::Result<Refusal> {
        let refusal = Expired::of(&error).and_then(|Expired(phase, over)| phase.refusal(*over));
        refusal.ok_or(error)
    }
}

impl Display for Expired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the peer was too slow ({:?})", self.0)
    }
}

impl std::error::Error for Expired {}
