//! The ends of a connection that are the server's choice: a refusal, the end of a drain, and how
//! the stream is left so that the peer hears of it.
//!
//! It may not read a request.

use std::cell::RefCell;
use std::io;
use std::mem::take;
use std::ops::Deref;
use std::task::Context;

use super::config::Config;
use super::connection::{Connection, note_expired};
use super::head::Head;
use super::phase::{Phase, Watch};
use super::request::note_refusal;
use super::response::Response;
use super::seats::{Taken, Waits};
use super::settle::request;
use super::status::Refusal;
use super::wire::{Line, Trouble, Unseen, Wire};
use crate::limits::{LINGER, TURNED_AWAY};
use crate::stream::Stream;

/// How a connection goes on after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// With the next request.
    Next,
    /// It closes.
    Close,
    /// It closes, and the peer may still be sending.
    Linger,
    /// It closes as it is: it was reset.
    Reset,
}

/// The answer to a request that comes too late.
pub(super) const STOPS: Refusal = Refusal::new(503, "the server stops\n");

/// The answer to a connection that is one too many. Without a body: nobody has looked whether it
/// asks with HEAD.
const FULL: Refusal = Refusal::new(503, "");

/// Answers a connection that is one too many with 503 and `Retry-After: 1`, whatever it asks, and
/// closes it so that the peer reads that (row D27). [`serve`](super::serve) does it above
/// [`Limits::connections`](super::Limits::connections); it is for those who accept on their own.
///
/// Blocks while the peer takes the answer and goes on sending, each under its deadline.
///
/// # Errors
///
/// As for [`serve_connection`](super::serve_connection).
pub async fn turn_away<S: Stream>(stream: S, config: &Config) -> io::Result<()> {
    let seat = config.seats.take_refused(TURNED_AWAY);
    seat.waits.set(Waits::Refused);
    let mut line = Line::new(stream, seat, config);
    // Before anything is read: there is a deadline from here on.
    line.seat.begin().await;
    config.seats.refuse(&line.seat, config.limits.connections);
    let Line { stream, seat: Taken { seat, config } } = &mut line;
    let mut buffers = config.pool.take();
    let wire = Wire::new(stream, take(&mut buffers.out), Watch::new(seat.clone(), false));
    let mut connection = Connection { wire: RefCell::new(wire), buffers, seat, config };
    let end = connection.refuse(FULL, false).await;
    line.end(end.map(drop))
}

impl<S: Stream, C: Deref<Target = Config>> Line<S, C> {
    /// Says what is to be said.
    pub(super) fn end(&self, end: Result<(), Trouble>) -> io::Result<()> {
        if let Err(Trouble::Expired(phase)) = end {
            note_expired(phase, &self.seat.config, &self.seat);
        }
        self.seat.finish();
        match end {
            Ok(()) | Err(Trouble::Expired(_)) => Ok(()),
            Err(Trouble::Failed(error)) => Err(error),
        }
    }
}

impl<S: Stream> Connection<'_, S> {
    /// Answers for the server, and closes.
    pub(super) async fn refuse(
        &mut self,
        refusal: Refusal,
        no_body: bool,
    ) -> Result<After, Trouble> {
        note_refusal(refusal, &self.wire);
        self.buffers.head = Head { no_body, ..Head::REFUSED };
        let mut request = request(&mut self.buffers, &self.wire, self.config);
        let mut response = Response::new(refusal.status).with_text(refusal.why).and_close();
        if refusal.status == 503 {
            response = response.ask_again();
        }
        request.settle(&response).await?;
        self.part(After::Linger).await
    }

    /// Ends the connection so that the peer reads what was written to it: a stream that is closed
    /// while there is unread input resets, and so does one that is closed already when input
    /// comes. What the peer has not taken by then is lost.
    ///
    /// A connection that has written much is not closed before the peer has ended it, or the
    /// deadline passed. One that has not, but waited since its last read, is looked at once more.
    /// That is all that is needed: after a read that took all there was, and one small answer that
    /// went out at once, there is no time for input to come, and nothing left for a reset to take.
    pub(super) async fn part(&mut self, after: After) -> Result<After, Trouble> {
        let wire = self.wire.get_mut();
        wire.flush(self.config).await?;
        self.seat.flushed();
        if wire.ended {
            return Ok(After::Close);
        }
        if after == After::Close && self.buffers.inbox.is_empty() && wire.unseen < Unseen::Output {
            let came = wire.look(self.buffers.inbox.room(0)).await?;
            if came.is_none_or(|n| n == 0) {
                return Ok(After::Close);
            }
        }
        wire.shutdown()?;
        wire.watch.leave();
        // Of one that is turned away nobody has read a request, and there may be many of them.
        let is_refused = wire.watch.seat.waits.get() == Waits::Refused;
        let mut left = if is_refused { self.config.limits.drain } else { LINGER };
        while left > 0 {
            self.buffers.inbox.clear();
            let room = self.buffers.inbox.room(0);
            match wire.read(room, Phase::Linger, self.config).await {
                Ok(0) | Err(Trouble::Expired(_)) => break,
                Ok(n) => left = left.saturating_sub(n as u64),
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(After::Close)
    }

    /// The same where nothing more is to be read and all can be written: whether that is so.
    pub(super) fn part_at_once(
        &mut self,
        after: After,
        cx: &mut Context<'_>,
    ) -> Result<bool, Trouble> {
        let wire = self.wire.get_mut();
        let quiet = after == After::Close
            && self.buffers.inbox.is_empty()
            && wire.is_drained()
            && wire.unseen == Unseen::Nothing;
        let is_over = (quiet || wire.ended) && wire.try_flush(cx)?;
        if is_over {
            self.seat.flushed();
        }
        Ok(is_over)
    }

    /// Ends a connection on which nothing has begun, because the server stops. A request that
    /// crosses this is refused if it is here already, and else meets an end, not a reset.
    pub(super) async fn leave(&mut self) -> Result<After, Trouble> {
        let came = {
            let wire = self.wire.get_mut();
            if wire.ended {
                wire.flush(self.config).await?;
                return Ok(After::Close);
            }
            let room = self.buffers.inbox.room(self.config.limits.head);
            wire.look(room).await?.unwrap_or(0)
        };
        self.buffers.inbox.filled(came);
        if came > 0 {
            return self.refuse(STOPS, self.buffers.inbox.asks_for_none()).await;
        }
        self.part(After::Linger).await
    }
}
