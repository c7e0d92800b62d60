//! How long each phase of a connection may take.
//!
//! A connection has one deadline for all its phases, which is armed anew for each wait.

use std::time::Duration;

use traps::{ConnectionDeadline, Time};

use crate::min_rate::MinRate;
use crate::write_deadline::WriteDeadline;

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
    /// For a whole body that is kept in memory. Then as above. Default 300 s.
    pub body_whole: Duration,
    /// For a handler, from the head to the end of its work, what it waits for of the body and of
    /// the peer included. Then 503, or an answer that breaks off if some of it had gone out, and
    /// the connection closes. Default never: a handler bounds what it waits for.
    pub handler: Duration,
    /// For the time in which the peer takes nothing of an answer, and an eighth of it more at most.
    /// Then the connection is closed, and not reset unless only a reset can tell that the answer is
    /// not whole: what the system has taken by then is still sent. Nothing is taken where the
    /// system's buffers are full. They hold some megabytes and have room again in steps of up to
    /// some hundred kilobytes, so a peer that reads is safe if it reads that much in this time;
    /// one that reads 20 KB a second may not be. Default 30 s.
    pub write: Duration,
    /// Bytes a second of an answer that a peer must take, over the span of `write`. Then as above.
    /// Zero switches it off. Default 240.
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
            handler: Duration::MAX,
            write: WriteDeadline::SPAN,
            write_rate: 240,
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
    /// A piece of a body, from a peer that has been slow and may not be slow any longer.
    SlowBody,
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
            Phase::SlowBody => {
                let Deadlines { body_rate, body_window, .. } = deadlines;
                return Some(("body_rate", format!("{body_rate} window={body_window:?}")));
            }
            Phase::Write => ("write_wait", deadlines.write),
            Phase::Linger => return None,
        };
        Some((name, format!("{span:?}")))
    }
}

/// How fast a body comes, while it is waited for.
#[derive(Default)]
pub(crate) struct BodyRate {
    /// Made by the first wait, which most bodies do not need.
    rate: Option<Box<MinRate>>,
}

impl BodyRate {
    /// A wait for a piece of the body begins: until when it may last, and what is late then.
    pub(crate) fn begin(&mut self, deadlines: &Deadlines, now: Time) -> (Phase, Time) {
        let Deadlines { body, body_rate, body_window, .. } = *deadlines;
        if body_rate == 0 {
            return (Phase::Body, now + body);
        }
        let new = || Box::new(MinRate::new(body_rate, body_window));
        match self.rate.get_or_insert_with(new).before_wait() {
            Some(patience) if patience < body => (Phase::SlowBody, now + patience),
            _ => (Phase::Body, now + body),
        }
    }

    /// A wait was so long, or so much came.
    pub(crate) fn count(&mut self, waited: Duration, bytes: usize) {
        if let Some(rate) = &mut self.rate {
            rate.after_wait(waited, bytes);
        }
    }
}

/// A wait for a piece of a body, which counts also where it is dropped, as by a handler that waits
/// for something else beside it.
pub(crate) struct BodyWait<'w> {
    pub(crate) rate: &'w mut BodyRate,
    pub(crate) deadline: &'w ConnectionDeadline,
    pub(crate) begun: Time,
}

impl Drop for BodyWait<'_> {
    fn drop(&mut self) {
        self.rate.count(self.deadline.now().since(self.begun), 0);
    }
}
