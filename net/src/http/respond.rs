//! The end of a request: the response to the result of its handler, and the rest of its body.

use std::borrow::Cow;
use std::io;

use traps::{Interruptible, note_warning};

use super::grammar::head::{Refusal, STOPS};
use super::handler::Handler;
use super::persists::{Next, Rest, Says, Why};
use super::request::{Body, Request};
use super::response::{BodyField, Gone, Rejection, Response};
use super::state::State;
use super::transport::Transport;
use super::writer::{Streamed, Writer};
use crate::stream::Stream;

#[allow(clippy::await_holding_refcell_ref, reason = "others only try to borrow it")]
impl<S: Stream> Request<'_, S> {
    /// The response to send after a handler ended with `outcome`. `None` if a streamed response has
    /// broken off, so that the connection closes.
    #[inline(always)]
    pub(super) fn answer_to<H: Handler>(
        &mut self,
        outcome: io::Result<Response>,
        handler: &H,
    ) -> io::Result<Option<Response>> {
        match outcome {
            Ok(response) => {
                self.writer.reopen();
                Ok(match self.writer.streamed {
                    Streamed::No => Some(response),
                    Streamed::Done => Some(Response::sent()),
                    // The response is unfinished or cut, or the client is lost.
                    _ => None,
                })
            }
            Err(error) => self.answer_to_failure(error, handler),
        }
    }

    /// The response to send after a handler failed, if one can still be sent. The handler may
    /// replace it ([`Handler::instead`]).
    #[cold]
    fn answer_to_failure<H: Handler>(
        &mut self,
        error: io::Error,
        handler: &H,
    ) -> io::Result<Option<Response>> {
        if is_from_outside(&error) {
            self.cut_off();
            return Err(error);
        }
        let is_open = self.writer.reopen();
        let (gone, refusal) = (Gone::of(&error), self.refusal());
        match (self.writer.streamed, gone) {
            (Streamed::Lost, _) => return Err(error),
            (_, Some(Gone::Left)) => {
                self.writer.streamed = Streamed::Lost;
                return Ok(None);
            }
            (_, Some(Gone::Late)) => {
                let Writer { config, transport, .. } = &self.writer;
                let limit = format!("{:?}", config.deadlines.handler);
                transport.borrow().hit(config, "handler_wait", limit);
            }
            // The response has no body; the handler may have failed only because it wrote one.
            (Streamed::Nothing(left), None) if refusal.is_none() && is_unwanted(&error) => {
                return Ok((left == 0).then(Response::sent));
            }
            _ => {}
        }
        // Do not log failures that a client can cause at will. `Gone` was logged when it occurred.
        let is_refused = refusal.is_some() || is_open && Rejection::of(&error).is_some();
        if !is_refused && gone.is_none() {
            note_warning(format!("a handler failed: {error}"));
        }
        Ok(is_open.then(|| handler.instead(&self.parts, self.page(&error))))
    }

    /// Makes the response that reports the failure of a handler.
    fn page(&self, error: &io::Error) -> Response {
        let page = self.error_page();
        if let Some(Refusal { status, why, .. }) = self.refusal() {
            let page = page(status, why);
            return if status == 503 { page.ask_again() } else { page };
        }
        match (Gone::of(error), Rejection::of(error)) {
            (Some(Gone::Late), _) => {
                page(503, "the answer took too long\n").ask_again().and_close()
            }
            (_, Some(rejection)) => rejection.response(page),
            _ => page(500, "something went wrong\n").and_close(),
        }
    }

    /// Gathers the response, unless it was streamed, and reads the rest of the body. Returns the
    /// next state.
    pub(super) async fn finish(&mut self, response: &Response) -> io::Result<State> {
        let says = Says { closes: response.close, is_unbounded: false };
        let is_whole = self.writer.streamed == Streamed::No;
        self.decide(says, self.rest(true), is_whole);
        if is_whole {
            if self.writer.is_full() {
                self.writer.flush_gathered().await?;
            }
            let (field, body) = self.framed(response);
            if !self.writer.gather_answer(response, field, self.head.version, body) {
                if let Cow::Owned(body) = &response.body {
                    let Writer { transport, config, .. } = &self.writer;
                    transport.borrow_mut().count_response(body.len() as u64, config);
                }
                self.writer.write_large(body).await?;
            }
        }
        if self.writer.next == Next::Continue && !matches!(self.body, Body::End) {
            let rest = Box::pin(self.drain()).await?;
            self.decide(says, rest, false);
        }
        Ok(match self.writer.next {
            Next::Continue => State::Head,
            Next::Close(why) => State::Closing(why),
        })
    }

    /// The next state after a response that broke off. The client may still be sending.
    pub(super) fn after_break(&mut self) -> State {
        State::Closing(match (self.writer.streamed, self.body) {
            (Streamed::Lost, _) => Why::Lost,
            (Streamed::Cut, _) => Why::Cut,
            (_, Body::End) if !self.head.keep_alive => Why::Asked,
            _ => Why::Failed,
        })
    }

    /// Ends the request because the server or the task ends. If no response has begun to go out,
    /// gathers a 503 that asks the client to try again.
    fn cut_off(&mut self) {
        if self.writer.reopen() {
            let response = Response::from(STOPS);
            self.decide(Says { closes: true, is_unbounded: false }, self.rest(true), true);
            let (field, body) = self.framed(&response);
            self.writer.gather_answer(&response, field, self.head.version, body);
        }
    }

    /// Ends the request. The access log reports it once the stream has taken the response, or takes
    /// no more.
    pub(super) fn end(&mut self) {
        let Writer { config, transport, .. } = &self.writer;
        let Transport { log, out, .. } = &mut *transport.borrow_mut();
        if let Some(log) = log {
            let line = self.input.first_line(config.limits.request_line);
            if log.finish(line, out.len()) {
                log.report(&config.on_exchange);
            }
        }
        self.input.finish();
    }

    /// The framing field of the response, and the body to send after the head.
    #[inline]
    fn framed<'a>(&self, response: &'a Response) -> (BodyField, &'a [u8]) {
        if !response.has_body() {
            return (response.no_body_field(), &[]);
        }
        let body = &response.body[..];
        let field = BodyField::Length(body.len() as u64);
        (field, if self.head.no_body { &[] } else { body })
    }

    /// Reads the rest of the body and throws it away, unless it is too long or refused.
    async fn drain(&mut self) -> io::Result<Rest> {
        let most = self.read.saturating_add(self.writer.config.limits.drain);
        loop {
            match self.next_piece().await {
                Ok(Some(_)) if self.read <= most => {}
                Ok(None) => return Ok(Rest::Read),
                Ok(Some(_)) => return Ok(Rest::Long),
                Err(_) if self.refusal().is_some() => return Ok(Rest::Broken),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether `error` may be the result of writing a body that the client does not want.
fn is_unwanted(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::Unsupported)
}

/// Whether an interrupt from outside the connection ended the handler. A timeout that the handler
/// set itself, or the cancellation of another task, does not count: it is a failure of the handler.
fn is_from_outside(error: &io::Error) -> bool {
    error.interrupt().is_some_and(|interrupt| !interrupt.has_left())
}
