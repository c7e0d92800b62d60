//! How a request ends: its answer is gathered, and what is left of its body gets out of the way.
//!
//! It may not call a handler, or read the next request.

use std::io;

use traps::Interruptible;

use super::busy::End;
use super::exchange::Exchange;
use super::request::{Body, Request};
use super::response::{BodyField, Response};
use super::status::STOPS;
use super::writer::{Fault, Streamed, Writer};
use crate::stream::Stream;

#[allow(clippy::await_holding_refcell_ref, reason = "whoever else looks at it only tries")]
impl<S: Stream> Request<'_, S> {
    /// What is to be answered, of what a handler came to: `None` if an answer has broken off.
    pub(super) fn answer_to(
        &mut self,
        outcome: io::Result<Response>,
    ) -> io::Result<Option<Response>> {
        match outcome {
            Err(error) if is_from_outside(&error) => {
                self.cut_off();
                Err(error)
            }
            outcome => self.writer.answer_to(outcome),
        }
    }

    /// Gathers the answer, unless it was streamed, and gets the rest of the body out of the way.
    pub(super) async fn finish(&mut self, response: &Response) -> io::Result<End> {
        let doubt = self.has_doubt();
        // A head that went out before has said that the connection goes on.
        let stops = !response.sent && self.writer.config.is_draining() && self.is_last();
        self.writer.keep_alive &= !response.close && !doubt && !stops;
        if !response.sent {
            if self.writer.is_full() {
                self.writer.flush().await?;
            }
            let (field, body) = self.framed(response);
            if !self.writer.gather_answer(response, field, self.head.version, body) {
                self.writer.write_large(body).await?;
            }
        }
        if self.writer.keep_alive && !matches!(self.body, Body::End) {
            Box::pin(self.drain()).await?;
        }
        Ok(match (self.writer.keep_alive, self.body) {
            (true, _) => End::KeepAlive,
            // Whoever did not ask for the end may be sending already.
            (false, Body::End) if !doubt && !self.head.keep_alive => End::Close,
            (false, _) => End::Linger,
        })
    }

    /// Whether no other request is known to be behind this one.
    fn is_last(&self) -> bool {
        !matches!(self.body, Body::End) || self.input.is_empty()
    }

    /// How the connection ends after an answer that broke off, whose client may still be sending.
    pub(super) fn after_break(&mut self) -> End {
        match (self.writer.streamed, self.writer.fault, self.body) {
            (Streamed::UntilClose, ..) => End::Reset,
            (_, Some(Fault::Lost | Fault::Cut), _) => End::Close,
            (_, None, Body::End) if !self.head.keep_alive => End::Close,
            (..) => End::Linger,
        }
    }

    /// The end of the server, or of the task, ends the request. Where nothing of an answer has gone
    /// out, the client is told to come again.
    fn cut_off(&mut self) {
        if self.writer.reopen() {
            self.writer.keep_alive = false;
            let response = Response::from(STOPS);
            let (field, body) = self.framed(&response);
            self.writer.gather_answer(&response, field, self.head.version, body);
        }
    }

    /// It is over. Tells the access log, if there is one.
    pub(super) fn tell(&mut self) {
        let Writer { config, transport, status, length, .. } = &self.writer;
        if let Some(tell) = &config.on_answer.0 {
            tell(&Exchange {
                peer: transport.borrow().peer,
                request_line: self.input.first_line(config.limits.request_line),
                status: *status,
                length: *length,
            });
        }
        self.input.finish();
    }

    /// What the head of the answer says of its body, and what is to follow it.
    #[inline]
    fn framed<'a>(&self, response: &'a Response) -> (BodyField, &'a [u8]) {
        if !response.has_body() {
            return (response.no_body_field(), &[]);
        }
        let body = &response.body[..];
        let field = BodyField::Length(body.len() as u64);
        (field, if self.head.no_body { &[] } else { body })
    }

    /// Whether nobody can say where the next request begins, or it is not worth reading up to it.
    /// Goes by what was said and not by what is here: how the body was cut may not change the
    /// answer. A body in chunks is read up to the bound, and the connection closes if there is
    /// more.
    fn has_doubt(&self) -> bool {
        let is_long = match self.body {
            Body::Length(left) => left > self.writer.config.limits.drain,
            Body::Chunks(_) | Body::End => false,
        };
        let may_not_come = self.writer.expects && !matches!(self.body, Body::End);
        is_long || may_not_come || self.writer.fault.is_some()
    }

    /// Reads the rest of the body, up to a bound.
    async fn drain(&mut self) -> io::Result<()> {
        let most = self.read.saturating_add(self.writer.config.limits.drain);
        loop {
            match self.next_piece().await {
                Ok(Some(_)) if self.read <= most => {}
                Ok(None) => return Ok(()),
                Ok(Some(_)) => break,
                Err(_) if matches!(self.writer.fault, Some(Fault::Refused(_))) => break,
                Err(error) => return Err(error),
            }
        }
        self.writer.keep_alive = false;
        Ok(())
    }
}

/// Whether an interrupt from around the connection ended the handler. A timeout that it has set
/// itself, or the cancellation of another task, is a failure of its own where it passes it on.
fn is_from_outside(error: &io::Error) -> bool {
    error.interrupt().is_some_and(|interrupt| !interrupt.has_left())
}
