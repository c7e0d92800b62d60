//! How a connection ends where that is the server's choice, so that the peer reads what was said.
//!
//! It may not read a request.

use std::io;

use super::config::Config;
use super::deadlines::Phase;
use super::head::Head;
use super::line::{Busy, Line, Open};
use super::request::Request;
use super::response::Response;
use super::status::Refusal;
use super::transport::{Trouble, Unseen};
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
    /// It closes as it is: it is reset.
    Reset,
}

/// The answer to a request that comes after the grace of a drain.
pub(super) const STOPS: Refusal = Refusal::new(503, "the server stops\n");

/// The answer to a connection that is one too many. Without a body: nobody has looked whether it
/// asks with HEAD.
const FULL: Refusal = Refusal::new(503, "");

/// Answers a connection that is one too many with 503 and `Retry-After: 1`, whatever it asks, and
/// closes it so that the peer reads that. [`serve`](super::serve) does it above
/// [`Limits::connections`](super::Limits::connections); it is for those who accept on their own.
///
/// Blocks while the peer takes the answer and goes on sending, each under its deadline.
///
/// # Errors
///
/// As for [`serve_connection`](super::serve_connection).
pub async fn turn_away<S: Stream>(stream: S, config: &Config) -> io::Result<()> {
    let mut line = Line::new(stream, config.open.add_refused(TURNED_AWAY), config);
    let deadline = traps::connection_deadline().await;
    line.open.entry.set_deadline(deadline);
    let Line { stream, open: Open { entry, .. } } = &mut line;
    entry.hit(config, "connections", config.limits.connections);
    let mut busy = Busy::new(stream, entry, config);
    let end = busy.refuse(FULL, false).await;
    busy.rest();
    line.end(end.map(drop))
}

impl<S: Stream> Busy<'_, S> {
    /// Answers for the server, and closes.
    pub(super) async fn refuse(
        &mut self,
        refusal: Refusal,
        no_body: bool,
    ) -> Result<After, Trouble> {
        if let Some(cap) = refusal.cap {
            self.entry.hit(self.config, cap.name, cap.limit);
        }
        self.buffers.head = Head { no_body, ..Head::REFUSED };
        let (head, input) = (&self.buffers.head, &mut self.buffers.input);
        let mut request = Request::new(head, input, &self.transport, self.config, false);
        let mut response = Response::new(refusal.status).with_text(refusal.why).and_close();
        if refusal.status == 503 {
            response = response.ask_again();
        }
        request.finish(&response).await?;
        self.part(After::Linger).await
    }

    /// Ends the connection so that the peer reads what was written to it: a stream that is closed
    /// while there is unread input resets, and so does one that is closed already when input
    /// comes. What the peer has not taken by then is lost.
    ///
    /// A connection that has written much is not closed before the peer has ended it, or the
    /// deadline passed. One that has not, but waited since its last read, is looked at once more.
    /// After a read that took all there was, and one small answer that went out at once, there is
    /// no time for input to come, and nothing left for a reset to take.
    pub(super) async fn part(&mut self, after: After) -> Result<After, Trouble> {
        let (transport, input) = (self.transport.get_mut(), &mut self.buffers.input);
        let quiet = after == After::Close && input.is_empty();
        let unchanged = transport.is_drained() && transport.unseen == Unseen::Nothing;
        transport.flush(self.config).await?;
        self.entry.flushed();
        let small = transport.unseen < Unseen::Output;
        if transport.ended || quiet && unchanged && small {
            return Ok(After::Close);
        }
        if quiet && small && transport.look(input.room(0)).await?.is_none_or(|n| n == 0) {
            return Ok(After::Close);
        }
        transport.shutdown()?;
        let until = self.entry.now() + self.config.deadlines.linger;
        // Of one that is turned away nobody has read a request, and there may be many of them.
        let mut left = if self.entry.is_refused() { self.config.limits.drain } else { LINGER };
        while left > 0 {
            input.clear();
            let room = input.room(0);
            match transport.read_until(room, (Phase::Linger, until), self.config).await {
                Ok(0) | Err(Trouble::Expired(_)) => break,
                Ok(n) => left = left.saturating_sub(n as u64),
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(After::Close)
    }
}
