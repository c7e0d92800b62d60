//! The short way for requests that are here whole and plain, have no body, and that their handler
//! answers at once: no future is made for them.
//!
//! It does what `connection` does, and leaves all else to it. It is there because a keep-alive GET
//! costs a third less by it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Context;

use super::buffers::Buffers;
use super::closing::After;
use super::gone::note_panic;
use super::handler::Handler;
use super::head::Framing;
use super::line::{Busy, may_go_on};
use super::parse::parse;
use super::request::Request;
use super::transport::Trouble;
use crate::limits::GATHER;
use crate::stream::Stream;

/// The next step of a busy connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// To read the next head.
    Read,
    /// To answer the request in hand.
    Answer,
    /// To close after an answer.
    Part(After),
}

impl<S: Stream> Busy<'_, S> {
    /// Serves what is here, as far as this goes. Gives what is to be done then; `None`: nothing
    /// more is here, and all that was to be said is written.
    pub(super) fn serve_at_once<H: Handler>(
        &mut self,
        handler: &H,
        cx: &mut Context<'_>,
    ) -> Result<Option<Step>, Trouble> {
        loop {
            let Busy { buffers, entry, config, .. } = self;
            let (transport, input) = (self.transport.get_mut(), &mut buffers.input);
            if entry.leaves.get() || config.is_draining() {
                return Ok(Some(Step::Read));
            }
            if input.is_empty() {
                match transport.read_now(input.room(config.limits.head), cx)? {
                    Some(0) => return Ok(Some(Step::Read)),
                    Some(n) => input.filled(n),
                    None => return Ok((!transport.try_flush(cx)?).then_some(Step::Read)),
                }
            }
            let Ok(head) = parse(input.rest(), config) else {
                return Ok(Some(Step::Read));
            };
            let has_turn = transport.answered + 1 < config.limits.pipelined;
            if head.framing != Framing::Length(0) || !has_turn || transport.is_full() {
                return Ok(Some(Step::Read));
            }
            entry.refresh_date(config);
            self.begin(head);
            match self.answer_at_once(handler) {
                Some(After::Next) => self.transport.get_mut().answered += 1,
                Some(after) => return Ok(Some(Step::Part(after))),
                None => return Ok(Some(Step::Answer)),
            }
        }
    }

    /// Has the request in hand answered; `None` if that takes a wait.
    fn answer_at_once<H: Handler>(&mut self, handler: &H) -> Option<After> {
        let Buffers { head, input, .. } = &mut *self.buffers;
        let mut request = Request::new(head, input, &self.transport, self.config, false);
        let answer = catch_unwind(AssertUnwindSafe(|| handler.at_once(&mut request)));
        let response = answer.unwrap_or_else(|panic| {
            note_panic(panic);
            Some(request.writer.broken())
        })?;
        if response.body.len() > GATHER {
            return None;
        }
        request.writer.keep_alive = may_go_on(head, self.entry, self.config);
        Some(request.finish_now(&response))
    }
}
