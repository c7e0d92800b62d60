//! The deadline of a connection: which phase it waits in, and until when.
//!
//! One deadline for all phases, made before the first wait and armed anew for each. Nothing else in
//! this module limits a wait.

use std::future::Future;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::time::Duration;

use traps::{ConnectionDeadline, Guard, TaskGuard, Time};

use super::config::Deadlines;
use super::seats::Seat;
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
    /// The peer to stop sending after an answer that refused.
    Linger,
}

/// The deadline of the phase that a connection is in.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Where the deadline lies.
    pub(crate) seat: Rc<Seat>,
    /// Of a phase that has one limit for all its waits together; set by the first of them.
    total: Option<(Phase, Time)>,
    /// How fast the body in hand has come. Made by the first wait for one, then kept: most
    /// connections never need it, and it is larger than all the rest of them.
    rate: Option<Box<MinRate>>,
    counting: bool,
    /// When the wait that counts began.
    begun: Time,
    /// Of the writes since the peer last took something: until when they may wait.
    write: Time,
}

/// How long one wait may last.
pub(crate) struct Until {
    phase: Phase,
    limit: Limit,
}

/// The limit of a wait.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    After(Duration),
    At(Time),
}

impl Limit {
    /// The same for a guard.
    #[inline]
    fn of_guard(self) -> Limit {
        match self {
            // It has passed at once, and is no limit to a guard.
            Limit::After(Duration::ZERO) => Limit::After(Duration::from_micros(1)),
            // So is never, here the end of a span that is none.
            Limit::At(Time::NEVER) => Limit::After(Duration::MAX),
            limit => limit,
        }
    }

    /// Runs `wait` under it.
    #[track_caller]
    pub(crate) fn guard<T, F>(self, deadline: &ConnectionDeadline, wait: F) -> Guard<'_, F>
    where
        F: Future<Output = io::Result<T>>,
    {
        match self.of_guard() {
            Limit::After(span) => deadline.guard(span, wait),
            Limit::At(at) => deadline.guard_at(at, wait),
        }
    }

    /// The same where its task waits for nothing else.
    #[inline]
    #[track_caller]
    pub(crate) fn guard_task<T, F>(self, deadline: &ConnectionDeadline, wait: F) -> TaskGuard<'_, F>
    where
        F: Future<Output = io::Result<T>>,
    {
        match self.of_guard() {
            Limit::After(span) => deadline.guard_task(span, wait),
            Limit::At(at) => deadline.guard_task_at(at, wait),
        }
    }
}

impl Watch {
    /// Of a connection on which something came. If it has waited for the first byte of its first
    /// head, and was not hurried, the limit of that wait is the head's.
    pub(crate) fn new(seat: Rc<Seat>, first: bool) -> Watch {
        let total = first.then(|| (Phase::Head, seat.until()));
        let (begun, write) = (Time::ZERO, Time::NEVER);
        Watch { seat, total, rate: None, counting: false, begun, write }
    }

    /// Begins a wait to read in `phase`.
    pub(crate) fn begin(&mut self, phase: Phase, deadlines: &Deadlines) -> Waiting<'_> {
        let until = self.enter(phase, deadlines);
        Waiting { watch: self, until, over: false }
    }

    /// What holds for a wait to read in `phase` that begins now.
    fn enter(&mut self, phase: Phase, deadlines: &Deadlines) -> Until {
        let span = match phase {
            Phase::Head => deadlines.head,
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
        if !std::mem::replace(&mut self.counting, true) {
            rate.restart();
        }
        self.begun = now;
        let patience = rate.before_wait();
        let (phase, span) = match patience {
            Some(patience) if patience < deadlines.body => (Phase::SlowBody, patience),
            _ => (Phase::Body, deadlines.body),
        };
        Until { phase, limit: Limit::At(now + span) }
    }

    /// Runs `wait` under the deadline. Each phase has a line, which the log shows as its place.
    fn guard<T, F>(&self, until: &Until, wait: F) -> Guard<'_, F>
    where
        F: Future<Output = io::Result<T>>,
    {
        let (limit, deadline) = (until.limit, self.deadline());
        match until.phase {
            Phase::Head => limit.guard(deadline, wait),
            Phase::Body => limit.guard(deadline, wait),
            Phase::SlowBody => limit.guard(deadline, wait),
            Phase::Linger => limit.guard(deadline, wait),
            Phase::Write => unreachable!("a write has a guard of its own"),
        }
    }

    /// A wait in that phase is over.
    fn end(&mut self, phase: Phase) {
        match phase {
            Phase::Head | Phase::Linger => {
                self.total = Some((phase, self.deadline().until()));
            }
            Phase::Body | Phase::SlowBody if self.counting => {
                let waited = self.deadline().now().since(self.begun);
                let rate = self.rate.as_mut().expect("a rate counts");
                rate.after_wait(waited, 0);
            }
            Phase::Body | Phase::SlowBody | Phase::Write => {}
        }
    }

    /// So much of a body was read.
    pub(crate) fn count(&mut self, bytes: usize) {
        if let Some(rate) = self.rate.as_mut().filter(|_| self.counting) {
            rate.after_wait(Duration::ZERO, bytes);
        }
    }

    /// Begins to wait with a write. The deadline was made before anything was waited for.
    pub(crate) fn begin_write(&mut self, deadlines: &Deadlines) {
        self.write = write_deadline::until(self.deadline(), deadlines.write, self.write);
    }

    /// Runs that write under the deadline.
    #[track_caller]
    pub(crate) fn guard_write<F>(&self, write: F) -> Guard<'_, F>
    where
        F: Future<Output = io::Result<usize>>,
    {
        write_deadline::guard(self.deadline(), self.write, write)
    }

    /// The peer took something.
    #[inline]
    pub(crate) fn wrote(&mut self) {
        self.write = Time::NEVER;
    }

    /// That write is over: what it came to.
    pub(crate) async fn end_write<S: Stream>(
        stream: &mut S,
        bufs: &[IoSlice<'_>],
        written: io::Result<usize>,
    ) -> Result<usize, Trouble> {
        let done = write_deadline::end(stream, bufs, written).await?;
        done.ok_or(Trouble::Expired(Phase::Write))
    }

    fn deadline(&self) -> &ConnectionDeadline {
        self.seat.deadline()
    }

    /// The phase in hand is over: the next one gets a limit of its own.
    #[inline]
    pub(crate) fn leave(&mut self) {
        (self.total, self.counting) = (None, false);
    }
}

/// A wait to read. It counts also where it is dropped, as by a handler that waits for something
/// else beside it.
pub(crate) struct Waiting<'w> {
    watch: &'w mut Watch,
    until: Until,
    over: bool,
}

impl Waiting<'_> {
    /// Runs it under the deadline.
    pub(crate) fn guard<T, F>(&self, wait: F) -> Guard<'_, F>
    where
        F: Future<Output = io::Result<T>>,
    {
        self.watch.guard(&self.until, wait)
    }

    /// It is over: what it came to.
    pub(crate) fn end<T>(mut self, done: io::Result<T>) -> Result<T, Trouble> {
        let phase = self.until.phase;
        self.watch.end(phase);
        self.over = true;
        if timed_out(&done) { Err(Trouble::Expired(phase)) } else { Ok(done?) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.over && matches!(self.until.phase, Phase::Body | Phase::SlowBody) {
            self.watch.end(self.until.phase);
        }
    }
}
