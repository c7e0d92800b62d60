//! How a request ends: its answer is gathered, and what is left of its body gets out of the way.
//!
//! It may not call a handler, or read the next request.

use std::cell::RefCell;
use std::io;

use super::chunked::Chunks;
use super::config::{Buffers, Config};
use super::form::Form;
use super::head::Framing;
use super::outlet::{Fault, Outlet, Streamed};
use super::parting::After;
use super::request::{Body, Request};
use super::response::{BodyField, Response};
use super::wire::{Trouble, Wire};
use crate::limits::GATHER;
use crate::stream::Stream;

pub(super) fn request<'r, S>(
    buffers: &'r mut Buffers,
    wire: &'r RefCell<Wire<S>>,
    config: &'r Config,
) -> Request<'r, S> {
    let Buffers { head, inbox, .. } = buffers;
    let body = match head.framing {
        Framing::Length(0) => Body::End,
        Framing::Length(length) => Body::Length(length),
        Framing::Chunked => Body::Chunks(Chunks::new()),
    };
    let outlet = Outlet {
        wire,
        config,
        streamed: Streamed::No,
        keep_alive: head.keep_alive,
        expects: head.expects,
        fault: None,
        form: Form::default(),
    };
    Request { body, read: 0, held: 0, trailers: Vec::new(), head, inbox, outlet }
}

impl<S: Stream> Request<'_, S> {
    /// Whether [`settle_at_once`](Request::settle_at_once) does for an answer that is not large,
    /// once the date is known: nothing else is to be waited for, as nearly always.
    pub(super) fn is_settled_at_once(&self) -> bool {
        matches!(self.body, Body::End) && !self.outlet.is_full()
    }

    /// Gathers the answer, and says how the connection goes on.
    #[inline(always)]
    pub(super) fn settle_at_once(&mut self, response: &Response) -> After {
        debug_assert!(matches!(self.body, Body::End), "nothing is left to be read");
        let doubt = self.outlet.fault.is_some();
        self.decide(response, doubt);
        if !response.sent {
            let (field, body) = self.framed(response);
            self.outlet.write_head(response, field, self.head.version, body);
        }
        self.after(doubt)
    }

    /// Gathers the answer, unless it was streamed, and gets the rest of the body out of the way.
    pub(super) async fn settle(&mut self, response: &Response) -> Result<After, Trouble> {
        let doubt = self.has_doubt();
        self.decide(response, doubt);
        if !response.sent {
            if self.outlet.is_full() {
                let flushed = self.outlet.flush().await;
                flushed.map_err(|error| self.trouble(error))?;
            }
            if self.outlet.is_date_old() {
                self.outlet.read_date().await;
            }
            let (field, body) = self.framed(response);
            let large = body.len() > GATHER;
            let gathered = if large { &[] } else { body };
            self.outlet.write_head(response, field, self.head.version, gathered);
            if large {
                let sent = self.outlet.write_large(body).await;
                sent.map_err(|error| self.trouble(error))?;
            }
        }
        if self.outlet.keep_alive && !matches!(self.body, Body::End) {
            self.drain().await?;
        }
        Ok(self.after(doubt))
    }

    /// Decides whether the connection may go on, where there is [doubt](Request::has_doubt) or not.
    #[inline]
    fn decide(&mut self, response: &Response, doubt: bool) {
        // A head that went out before has said that the connection goes on.
        let stops = !response.sent && self.outlet.config.is_draining();
        self.outlet.keep_alive &= !response.close && !doubt && !stops;
    }

    /// Before the head of an answer lets a client go on that waits for it: it sends no body after a
    /// final head. A refusal wants none.
    pub(super) fn go_on_before(&mut self, response: &Response) {
        if response.status() < 400 {
            let comes = matches!(self.body, Body::End) || !self.inbox.rest().is_empty();
            self.outlet.go_on(comes);
        }
    }

    /// How the connection ends after an answer that broke off, whose client may still be sending.
    pub(super) fn after_break(&mut self) -> After {
        self.inbox.finish();
        match (self.outlet.streamed, self.outlet.fault, self.body) {
            (Streamed::UntilClose, ..) => After::Reset,
            (_, Some(Fault::Lost(_) | Fault::Cut), _) => After::Close,
            // As below.
            (_, None, Body::End) if !self.head.keep_alive => After::Close,
            (..) => After::Linger,
        }
    }

    /// The request is over.
    fn after(&mut self, doubt: bool) -> After {
        self.inbox.finish();
        match (self.outlet.keep_alive, self.body) {
            (true, _) => After::Next,
            // Whoever did not ask for the end may be sending already.
            (false, Body::End) if !doubt && !self.head.keep_alive => After::Close,
            (false, _) => After::Linger,
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
    /// answer. A body in chunks is read up to the bound; if there is more, the connection closes.
    fn has_doubt(&self) -> bool {
        let is_long = match self.body {
            Body::Length(left) => left > self.outlet.config.limits.drain,
            Body::Chunks(_) | Body::End => false,
        };
        let may_not_come = self.outlet.expects && !matches!(self.body, Body::End);
        is_long || may_not_come || self.outlet.fault.is_some()
    }

    /// Reads the rest of the body, up to a bound.
    async fn drain(&mut self) -> Result<(), Trouble> {
        let most = self.read.saturating_add(self.outlet.config.limits.drain);
        loop {
            match self.next_piece().await {
                Ok(Some(_)) if self.read <= most => {}
                Ok(None) => return Ok(()),
                Ok(Some(_)) => break,
                Err(error) => match self.outlet.fault {
                    Some(Fault::Refused(_)) => break,
                    _ => return Err(self.trouble(error)),
                },
            }
        }
        self.outlet.keep_alive = false;
        Ok(())
    }

    fn trouble(&self, error: io::Error) -> Trouble {
        match self.outlet.fault {
            Some(Fault::Lost(Some(phase))) => Trouble::Expired(phase),
            _ => Trouble::Failed(error),
        }
    }
}
