//! How a request ends: its answer is gathered, and what is left of its body gets out of the way.
//!
//! It may not call a handler, or read the next request.

use std::io;

use super::closing::After;
use super::request::{Body, Request};
use super::response::{BodyField, Response};
use super::transport::Trouble;
use super::writer::{Fault, Streamed};
use crate::limits::GATHER;
use crate::stream::Stream;

impl<S: Stream> Request<'_, S> {
    /// Gathers the answer, unless it was streamed, and gets the rest of the body out of the way.
    pub(super) async fn finish(&mut self, response: &Response) -> Result<After, Trouble> {
        let doubt = self.decide(response);
        if !response.sent {
            if self.writer.is_full() {
                let flushed = self.writer.flush().await;
                flushed.map_err(|error| self.trouble(error))?;
            }
            self.writer.refresh_date();
            let large = self.gather(response);
            if !large.is_empty() {
                let sent = self.writer.write_large(large).await;
                sent.map_err(|error| self.trouble(error))?;
            }
        }
        if self.writer.keep_alive && !matches!(self.body, Body::End) {
            Box::pin(self.drain()).await?;
        }
        Ok(self.after(doubt))
    }

    /// Finishes without a wait: the answer is small, the date is right, and nothing of a body is
    /// left.
    #[inline]
    pub(super) fn finish_now(&mut self, response: &Response) -> After {
        let doubt = self.decide(response);
        self.gather(response);
        self.after(doubt)
    }

    /// Decides whether the connection may go on. Gives whether there is [doubt](Self::has_doubt).
    #[inline]
    fn decide(&mut self, response: &Response) -> bool {
        let doubt = self.has_doubt();
        // A head that went out before has said that the connection goes on.
        let stops = !response.sent && self.writer.config.is_draining();
        self.writer.keep_alive &= !response.close && !doubt && !stops;
        doubt
    }

    /// Gathers the answer, but for a body that is too large to be copied, which it gives.
    #[inline]
    fn gather<'a>(&mut self, response: &'a Response) -> &'a [u8] {
        let (field, body) = self.framed(response);
        let (gathered, large) = if body.len() > GATHER { (&[][..], body) } else { (body, &[][..]) };
        self.writer.write_head(response, field, self.head.version, gathered);
        large
    }

    /// The request is over.
    #[inline]
    fn after(&mut self, doubt: bool) -> After {
        self.input.finish();
        match (self.writer.keep_alive, self.body) {
            (true, _) => After::Next,
            // Whoever did not ask for the end may be sending already.
            (false, Body::End) if !doubt && !self.head.keep_alive => After::Close,
            (false, _) => After::Linger,
        }
    }

    /// How the connection ends after an answer that broke off, whose client may still be sending.
    pub(super) fn after_break(&mut self) -> After {
        self.input.finish();
        match (self.writer.streamed, self.writer.fault, self.body) {
            (Streamed::UntilClose, ..) => After::Reset,
            (_, Some(Fault::Lost(_) | Fault::Cut), _) => After::Close,
            (_, None, Body::End) if !self.head.keep_alive => After::Close,
            (..) => After::Linger,
        }
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
    async fn drain(&mut self) -> Result<(), Trouble> {
        let most = self.read.saturating_add(self.writer.config.limits.drain);
        loop {
            match self.next_piece().await {
                Ok(Some(_)) if self.read <= most => {}
                Ok(None) => return Ok(()),
                Ok(Some(_)) => break,
                Err(error) => match self.writer.fault {
                    Some(Fault::Refused(_)) => break,
                    _ => return Err(self.trouble(error)),
                },
            }
        }
        self.writer.keep_alive = false;
        Ok(())
    }

    fn trouble(&self, error: io::Error) -> Trouble {
        match self.writer.fault {
            Some(Fault::Lost(Some(phase))) => Trouble::Expired(phase),
            _ => Trouble::Failed(error),
        }
    }
}
