//! The deadline of a connection: which phase it waits in, and until when.
//!
//! One deadline for all phases, made at the first wait and armed anew for each. Nothing else in
//! this module limits a wait.

use std::future::Future;
use std::io;
use std::time::Duration;

use traps::{ConnectionDeadline, Guard, Time, connection_deadline, note_cap};

use super::config::{Config, Deadlines};
use super::wire::Trouble;
use crate::min_rate::MinRate;
use crate::stream::Stream;
use crate::write_deadline::{self, timed_out};

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The rest of a head, or the first byte of the first one.
    Head,
    /// A piece of a body.
    Body,
    /// A piece of a body, from a peer that has been slow and may not be slow any longer.
    SlowBody,
    /// The peer to take some of the answer.
    Write,
    /// The first byte of the next request.
    Idle,
    /// The peer to stop sending after an answer that refused.
    Linger,
}

impl Phase {
    /// A line for the log: the deadline of this phase passed.
    #[cold]
    pub(crate) fn note_expired(self, config: &Config) {
        let (name, limit) = match self {
            Phase::Head => ("head_wait", config.deadlines.head),
            Phase::Body => ("body_wait", config.deadlines.body),
            Phase::SlowBody => {
                let Deadlines { body_rate, body_window, .. } = config.deadlines;
                return note_cap(format!(
                    "name=body_rate limit={body_rate} window={body_window:?}"
                ));
            }
            Phase::Write => ("write_wait", config.deadlines.write),
            Phase::Idle | Phase::Linger => return,
        };
        note_cap(format!("name={name} limit={limit:?}"));
    }
}

/// The deadline of the phase that a connection is in.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The one of this connection.
    deadline: Option<ConnectionDeadline>,
    /// Of a phase that has one limit for all its waits together; set by the first of them.
    total: Option<(Phase, Time)>,
    /// How fast the body in hand has come. Made by the first wait for one, then kept: most
    /// connections never need it, and it is larger than all the rest of them.
    rate: Option<Box<MinRate>>,
    /// When the wait that counts for it began; never, while none does.
    begun: Time,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { deadline: None, total: None, rate: None, begun: Time::NEVER }
    }
}

/// How long one wait may last.
pub(crate) struct Until {
    phase: Phase,
    limit: Limit,
}

enum Limit {
    After(Duration),
    At(Time),
}

impl Watch {
    /// What holds for a wait to read in `phase` that begins now.
    pub(crate) async fn enter(&mut self, phase: Phase, deadlines: &Deadlines) -> Until {
        if self.deadline.is_none() {
            self.deadline = Some(connection_deadline().await);
        }
        let span = match phase {
            Phase::Head => deadlines.head,
            Phase::Idle => deadlines.idle,
            Phase::Linger => deadlines.linger,
            Phase::Body if deadlines.body_rate > 0 => {
                let now = self.deadline().now();
                return self.enter_body(now, deadlines);
            }
            Phase::Body => deadlines.body,
            Phase::SlowBody | Phase::Write => unreachable!("nobody reads in this phase"),
        };
        let limit = match self.total {
            Some((begun, at)) if begun == phase && at != Time::NEVER => Limit::At(at),
            _ => Limit::After(span),
        };
        Until { phase, limit }
    }

    /// The sooner of the limit of each wait and that of all of them.
    fn enter_body(&mut self, now: Time, deadlines: &Deadlines) -> Until {
        let new = || Box::new(MinRate::new(deadlines.body_rate, deadlines.body_window));
        let rate = self.rate.get_or_insert_with(new);
        if std::mem::replace(&mut self.begun, now) == Time::NEVER {
            rate.restart();
        }
        let patience = rate.before_wait();
        let (phase, span) = match patience {
            Some(patience) if patience < deadlines.body => (Phase::SlowBody, patience),
            _ => (Phase::Body, deadlines.body),
        };
        Until { phase, limit: Limit::At(now + span) }
    }

    /// Runs `wait` under the deadline.
    #[track_caller]
    pub(crate) fn guard<T, F>(&self, until: &Until, wait: F) -> Guard<'_, F>
    where
        F: Future<Output = io::Result<T>>,
    {
        let deadline = self.deadline();
        match until.limit {
            // Zero has passed at once, and is no limit to a guard.
            Limit::After(span) => deadline.guard(span.max(Duration::from_micros(1)), wait),
            // So is never, here the end of a span that is none.
            Limit::At(Time::NEVER) => deadline.guard(Duration::MAX, wait),
            Limit::At(at) => deadline.guard_at(at, wait),
        }
    }

    /// The wait is over: what it came to.
    pub(crate) fn end<T>(&mut self, until: &Until, done: io::Result<T>) -> Result<T, Trouble> {
        match until.phase {
            Phase::Head | Phase::Linger => {
                self.total = Some((until.phase, self.deadline().until()));
            }
            Phase::Body | Phase::SlowBody if self.counts() => {
                let waited = self.deadline().now().since(self.begun);
                let rate = self.rate.as_mut().expect("a rate counts");
                rate.after_wait(waited, 0);
            }
            Phase::Body | Phase::SlowBody | Phase::Write | Phase::Idle => {}
        }
        if timed_out(&done) { Err(Trouble::Expired(until.phase)) } else { Ok(done?) }
    }

    /// So much of a body was read.
    pub(crate) fn count(&mut self, bytes: usize) {
        if let Some(rate) = self.rate.as_mut().filter(|_| self.begun != Time::NEVER) {
            rate.after_wait(Duration::ZERO, bytes);
        }
    }

    /// Runs a write under the deadline: something was read before, so it is made.
    #[track_caller]
    pub(crate) fn guard_write<F>(&self, deadlines: &Deadlines, write: F) -> Guard<'_, F>
    where
        F: Future<Output = io::Result<usize>>,
    {
        write_deadline::guard(self.deadline(), deadlines.write, write)
    }

    /// That write is over: what it came to.
    pub(crate) fn end_write<S: Stream>(
        stream: &mut S,
        written: io::Result<usize>,
    ) -> Result<usize, Trouble> {
        write_deadline::end(stream, written)?.ok_or(Trouble::Expired(Phase::Write))
    }

    fn counts(&self) -> bool {
        self.begun != Time::NEVER
    }

    fn deadline(&self) -> &ConnectionDeadline {
        self.deadline.as_ref().expect("the first wait makes it")
    }

    /// The phase in hand is over: the next one gets a limit of its own.
    #[inline]
    pub(crate) fn leave(&mut self) {
        (self.total, self.begun) = (None, Time::NEVER);
    }
}
