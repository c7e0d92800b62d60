//! How long each phase of a connection may take.
//!
//! A connection has one deadline for all its phases, which is armed anew for each wait.

use std::time::Duration;

/// How long each phase of a connection may take. Zero has passed at once, `Duration::MAX` never
/// passes. A deadline is noticed within a tick of the kernel; in the turn in which that happens it
/// wins against what the peer sent, but for the wait for a request to begin: one that is there is
/// answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For the whole head, from its first byte; for the first request of a connection, from the
    /// start of the task. Then 408, or silence if not a byte came. Default 10 s.
    pub head: Duration,
    /// For each wait for a piece of a body. Then 408 or, if some of an answer has gone out, the end
    /// of the connection. Default 30 s.
    pub body: Duration,
    /// Bytes a second that a peer must send of a body while it is waited for, in every
    /// `body_window`: a byte now and then does not keep a body alive. Then as above. Zero switches
    /// it off. Default 240.
    pub body_rate: u64,
    /// Over which `body_rate` counts. Default 5 s.
    pub body_window: Duration,
    /// For a whole body that is kept in memory, by
    /// [`body_to_vec`](super::Request::body_to_vec): its length over this time is the rate that it
    /// must keep, where that is more than `body_rate`. A body in chunks counts as long as it may
    /// be. Default 5 min: 28 kB/s for 8 MiB.
    pub body_whole: Duration,
    /// For a handler, as long as it waits for something other than its client: from the head, the
    /// last piece of the body that it read, or the last piece of the answer that went out. Then it
    /// is cancelled, by an interrupt of what it waits for, a [shield](traps::shield()) aside, and
    /// the answer is 503, or breaks off if some of it had gone out; the connection closes. A
    /// foreign future, which waits without a trap, is cancelled only inside
    /// [`foreign`](traps::foreign()). Default 30 s.
    pub handler: Duration,
    /// Over which `write_rate` counts, and an eighth of it more at most. Then the connection is
    /// closed, and not reset unless only a reset can tell that the answer is not whole: what the
    /// system has taken by then is still sent. What counts is what the system takes. Its buffers
    /// hold some megabytes and have room again in steps of up to some hundred kilobytes, so this is
    /// to be longer than a slow reader needs for such a step. Default 30 s.
    pub write: Duration,
    /// Bytes a second that the peer must take of an answer while it is waited for, in every
    /// `write`. Zero switches it off. Default 20.
    pub write_rate: u64,
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
            body_whole: seconds(300),
            handler: seconds(30),
            write: seconds(30),
            write_rate: 20,
            idle: seconds(5),
            linger: seconds(2),
        }
    }
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The rest of a head.
    Head,
    /// A piece of a body.
    Body,
    /// A piece of a body, from a peer that is to send so many bytes a second and has been slow.
    SlowBody(u64),
    /// The peer to take some of the answer.
    Write,
    /// The peer to stop sending after a last answer.
    Linger,
}

impl Phase {
    /// The limit of the phase as a `cap` line shows it, by name. None for what is no fault.
    pub(crate) fn limit(self, deadlines: &Deadlines) -> Option<(&'static str, String)> {
        let (name, span) = match self {
            Phase::Head => ("head_wait", deadlines.head),
            Phase::Body => ("body_wait", deadlines.body),
            Phase::SlowBody(rate) => {
                let window = deadlines.body_window;
                return Some(("body_rate", format!("{rate} window={window:?}")));
            }
            Phase::Write => ("write_wait", deadlines.write),
            Phase::Linger => return None,
        };
        Some((name, format!("{span:?}")))
    }
}
