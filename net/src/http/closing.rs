//! How a connection ends where that is the server's choice, so that the peer reads what was said.
//!
//! It may not read a request.

use std::io;

use super::busy::{Busy, End};
use super::deadlines::Phase;
use super::head::Head;
use super::request::Request;
use super::response::Response;
use super::status::Refusal;
use super::transport::Expired;
use crate::limits::LINGER;
use crate::stream::Stream;

impl<S: Stream> Busy<'_, S> {
    /// Answers for the server, and closes.
    pub(super) async fn refuse(&mut self, refusal: Refusal, no_body: bool) -> io::Result<()> {
        if let Some(cap) = refusal.cap {
            self.transport.get_mut().hit(self.config, cap.name, cap.limit);
        }
        // What came of it stays in front, for the log.
        self.buffers.head = Head { no_body, ..Head::REFUSED };
        let (head, input) = (&self.buffers.head, &mut self.buffers.input);
        let mut request = Request::new(head, input, &self.transport, self.config, false);
        let end = request.finish(&Response::from(refusal)).await;
        request.tell();
        drop(request);
        end?;
        self.linger(End::Linger).await
    }

    /// Ends the connection so that the peer reads what was written to it: a stream that is closed
    /// while there is unread input resets, and so does one that is closed already when input
    /// comes.
    ///
    /// So the peer is waited for until it has what was written, and then until it stops sending,
    /// each under a deadline. That is left out where little was written and nothing has come.
    pub(super) async fn linger(&mut self, end: End) -> io::Result<()> {
        let (transport, input) = (self.transport.get_mut(), &mut self.buffers.input);
        let is_current = transport.is_current();
        transport.flush(self.config).await?;
        if transport.ended {
            return Ok(());
        }
        let much = transport.entry.much.get();
        if much {
            transport.sent(self.config).await?;
        }
        let is_brief = end == End::Idle || end == End::Close && !much;
        if is_brief && input.is_empty() {
            let is_quiet = is_current && !much;
            if is_quiet || transport.look(input.room(0)).await?.is_none_or(|n| n == 0) {
                return Ok(());
            }
        }
        transport.shutdown()?;
        let until = transport.entry.now() + self.config.deadlines.linger;
        // Of one that is turned away nobody has read a request, and there may be many of them.
        let is_refused = transport.entry.is_refused();
        let mut left = if is_refused { self.config.limits.drain } else { LINGER };
        while left > 0 {
            input.clear();
            let room = input.room(0);
            match transport.read_until(room, (Phase::Linger, until), self.config).await {
                Ok(0) => break,
                Ok(n) => left = left.saturating_sub(n as u64),
                Err(error) if Expired::is(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
