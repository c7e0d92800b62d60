//! The life of a connection, from its first wait to its end.
//!
//! ```text
//! live       waits for a request to begin, then is busy, in turns
//! serve      while it is busy: reads a head, has it answered, and again, until nothing is here
//! answer     one request: the handler, then the answer, then what is left of the body
//! closing    how it ends: the last answer, what the peer still sends, a refusal
//! ```
//!
//! Every status that is the server's own, and why:
//!
//! | status | why | where |
//! |---|---|---|
//! | 100 | the client waits to be told to send its body, and the handler reads it | `request` |
//! | 400 | the head or the body breaks a rule, or breaks off | `read_head`, `parse`, `request` |
//! | 408 | the head or the body takes too long, and nothing of an answer has gone out | `read_head`, `request` |
//! | 413 | the body is too long | `fields`, `request` |
//! | 414, 431 | the request line, or the head, is too long | `parse` |
//! | 417 | an expectation other than `100-continue` | `fields` |
//! | 421 | a target with `https` | `target` |
//! | 500 | the handler failed or panicked, and nothing of its answer has gone out | `writer` |
//! | 501 | a method or a transfer coding that is not known | `parse`, `fields` |
//! | 503 | too many connections; a request after the grace of a drain; a handler that took too long | `closing`, here, `writer` |
//! | 505 | a version other than 1.x | `parse` |
//!
//! All others are the handler's; of those that come with this crate, the router answers 404, 405
//! and 204 (`router`), files 206, 304, 404, 412, 416 and 503 (`files`), a gate 503 (`blocking`).

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::mem::{replace, take};
use std::ops::Deref;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use traps::{ConnectionDeadline, Time, connection_deadline};

use super::at_once::Step;
use super::buffers::Buffers;
use super::closing::{After, STOPS};
use super::config::Config;
use super::connections::Waits;
use super::gone::{Caught, is_late, limited};
use super::handler::Handler;
use super::line::{Busy, Line, Open, may_go_on};
use super::read_head::Next;
use super::request::Request;
use super::rooms::{Begun, Desk, Rooms};
use super::transport::{Trouble, flushing};
use crate::limits::FIRST_BYTE;
use crate::stream::Stream;
use crate::write_deadline::{guard, is_timeout};

/// Serves one connection until it ends: by the peer, by a deadline, by an answer that closes it.
///
/// Pipelined requests are answered in order, and their answers gathered into one write. While it
/// waits for a request it owns no buffer.
///
/// # Errors
///
/// The stream's own, for example `ConnectionReset`; an interrupt from further out, for example the
/// cancellation of the task. A deadline of [`Config`] is not an error.
pub fn serve_connection<S: Stream, H: Handler>(
    stream: S,
    handler: &H,
    config: &Config,
) -> impl Future<Output = io::Result<()>> {
    if config.connections() == 0 {
        config.date.forget();
    }
    let line = Line::new(stream, config.open.add(), Borrowed { handler, config });
    live(line, Rc::default(), serve)
}

/// What a connection is served with.
pub(super) trait Server: Deref<Target = Config> {
    type Handler: Handler;

    fn handler(&self) -> &Self::Handler;

    /// Runs the wait for a request until then at most. Its task may wait for other things beside
    /// it.
    #[track_caller]
    fn limit<'d, F>(
        deadline: &'d ConnectionDeadline,
        until: Time,
        wait: F,
    ) -> impl Future<Output = io::Result<()>>
    where
        F: Future<Output = io::Result<()>> + 'd,
    {
        guard(deadline, until, wait)
    }
}

/// That of a connection alone.
pub(super) struct Borrowed<'h, 'c, H> {
    handler: &'h H,
    config: &'c Config,
}

impl<H> Deref for Borrowed<'_, '_, H> {
    type Target = Config;

    fn deref(&self) -> &Config {
        self.config
    }
}

impl<H: Handler> Server for Borrowed<'_, '_, H> {
    type Handler = H;

    fn handler(&self) -> &H {
        self.handler
    }
}

/// The life of a connection: in turns it waits, and is busy.
#[allow(clippy::manual_async_fn, reason = "that has its arguments twice, and many wait in this")]
pub(super) fn live<S, C, F>(
    mut line: Line<S, C>,
    rooms: Rc<Rooms<S, C, F>>,
    serve: fn(Rc<Desk<S, C>>) -> F,
) -> impl Future<Output = io::Result<()>>
where
    S: Stream,
    C: Server,
    F: Future<Output = Infallible>,
{
    async move {
        line.open.entry.set_deadline(connection_deadline().await);
        let mut reads_first = line.stream.reads_first();
        loop {
            if !take(&mut reads_first)
                && let Err(error) = line.wait().await
            {
                if !is_timeout(&error) {
                    return line.end(Err(error.into()));
                }
                // Bytes may have come while the process stood still; that is no silence.
                let has_come = poll_fn(|cx| Poll::Ready(pin!(line.stream.readable()).poll(cx)));
                let has_come = matches!(has_come.await, Poll::Ready(Ok(())));
                if !has_come && !line.open.config.is_draining() {
                    return line.end(Ok(()));
                }
                if !has_come {
                    line.open.entry.leaves.set(true);
                }
            }
            let begin = |cx: &mut Context<'_>| Poll::Ready(begin(&mut line, cx));
            let begun = match poll_fn(begin).await {
                Ok(None) => continue,
                Ok(begun) => begun,
                Err(trouble) => return line.end(Err(trouble)),
            };
            let mut room = rooms.take(serve);
            room.desk.line.set(Some(line));
            room.desk.begun.set(begun);
            let busy = |cx: &mut Context<'_>| {
                let Poll::Pending = room.work.as_mut().poll(cx);
                room.desk.end.take().map_or(Poll::Pending, Poll::Ready)
            };
            let end = poll_fn(busy).await;
            line = room.desk.line.take().expect("it was put back");
            rooms.give(room);
            match end {
                Ok(After::Next) => {}
                end => return line.end(end.map(drop)),
            }
        }
    }
}

impl<S: Stream, C: Server> Line<S, C> {
    /// Waits for a request to begin, or for the end, under the deadline.
    fn wait(&mut self) -> impl Future<Output = io::Result<()>> {
        let Line { stream, open: Open { entry, config } } = self;
        let (entry, deadline) = (&**entry, entry.deadline());
        let (waits, span) = match (entry.has_asked(), config.is_draining()) {
            (true, false) => (Waits::Next, config.deadlines.idle),
            // It has begun since this connection last looked.
            (true, true) => (Waits::Next, Duration::ZERO),
            (false, false) => (Waits::First, config.deadlines.head),
            (false, true) => (Waits::Hurried, config.deadlines.head.min(FIRST_BYTE)),
        };
        let until = match deadline.until() {
            // The last wait ended for nothing.
            until if !entry.has_asked() && until != Time::NEVER => until,
            _ => deadline.now() + span,
        };
        config.open.set(entry, waits);
        C::limit(deadline, until, stream.readable())
    }
}

/// Serves a connection on which something came, as far as that goes [at once](Busy::serve_at_once).
/// Gives what is needed for the rest.
#[inline]
fn begin<S: Stream, C: Server>(
    line: &mut Line<S, C>,
    cx: &mut Context<'_>,
) -> Result<Option<Begun>, Trouble> {
    let Line { stream, open: Open { entry, config } } = line;
    let mut busy = Busy::new(stream, entry, config);
    if config.open.set(entry, Waits::Busy) == Waits::First {
        // It began with the connection, as the wait that has ended did.
        let until = entry.until();
        busy.transport.get_mut().head_until = (until != Time::NEVER).then_some(until);
    }
    let step = busy.serve_at_once(config.handler(), cx);
    if let Ok(Some(step)) = step {
        let Busy { transport, buffers, .. } = busy;
        return Ok(Some(Begun { transport: transport.into_inner().over(()), buffers, step }));
    }
    busy.rest();
    step.map(|_| None)
}

/// Serves a connection that was begun, until nothing more is here or it ends.
async fn serve_busy<S: Stream, C: Server>(
    line: &mut Line<S, C>,
    begun: Begun,
) -> Result<After, Trouble> {
    let Line { stream, open } = line;
    let Begun { transport, buffers, step } = begun;
    let transport = RefCell::new(transport.over(stream));
    let mut busy = Busy { transport, buffers, entry: &open.entry, config: &open.config };
    let end = busy.serve(step, open.config.handler()).await;
    busy.rest();
    end
}

/// The work of a [room](super::rooms::Room).
pub(super) async fn serve<S: Stream, C: Server>(desk: Rc<Desk<S, C>>) -> Infallible {
    loop {
        let mut line = desk.line.take().expect("a connection is on the desk");
        let begun = desk.begun.take().expect("it was begun");
        let end = serve_busy(&mut line, begun).await;
        desk.line.set(Some(line));
        desk.end.set(Some(end));
        let mut paused = false;
        poll_fn(|_| if replace(&mut paused, true) { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

impl<S: Stream> Busy<'_, S> {
    async fn serve<H: Handler>(&mut self, step: Step, handler: &H) -> Result<After, Trouble> {
        let mut step = step;
        loop {
            if let Step::Read = step {
                match self.next_head().await? {
                    Next::Head => {}
                    Next::Nothing if self.leaves() => {
                        return Box::pin(self.part(After::Linger)).await;
                    }
                    Next::Nothing => return Ok(After::Next),
                    Next::Silence => return Box::pin(self.part(After::Close)).await,
                    Next::Refused(refusal, no_body) => {
                        return Box::pin(self.refuse(refusal, no_body)).await;
                    }
                }
            }
            let after = match step {
                Step::Part(after) => after,
                Step::Read | Step::Answer => {
                    if self.transport.get_mut().late {
                        return Box::pin(self.refuse(STOPS, self.buffers.head.no_body)).await;
                    }
                    self.answer(handler).await?
                }
            };
            match after {
                After::Next if self.is_greedy() => {
                    self.transport.get_mut().give_way(self.config).await?;
                }
                After::Next => {}
                After::Reset => return Ok(After::Reset),
                after => return self.part(after).await,
            }
            let go_on = |cx: &mut Context<'_>| Poll::Ready(self.serve_at_once(handler, cx));
            step = match poll_fn(go_on).await? {
                Some(step) => step,
                None => return Ok(After::Next),
            };
        }
    }

    /// Whether a peer that pipelines without end is to wait for the others now.
    #[inline]
    fn is_greedy(&mut self) -> bool {
        let transport = self.transport.get_mut();
        transport.answered += 1;
        let limit = self.config.limits.pipelined;
        let more = !self.buffers.input.is_empty() || !transport.is_drained();
        let greedy = more && transport.answered >= limit;
        if greedy {
            self.entry.hit(self.config, "pipelined", limit);
        }
        greedy
    }

    /// Has the request in hand answered.
    async fn answer<H: Handler>(&mut self, handler: &H) -> Result<After, Trouble> {
        let keep_alive = may_go_on(&self.buffers.head, self.entry, self.config);
        let Buffers { head, input, .. } = &mut *self.buffers;
        let mut request = Request::new(head, input, &self.transport, self.config, keep_alive);
        let outcome = {
            let work = Caught(pin!(handler.handle(&mut request)));
            match self.config.deadlines.handler {
                Duration::MAX => flushing(&self.transport, work).await,
                span => flushing(&self.transport, Box::pin(limited(span, work))).await,
            }
        };
        if outcome.as_ref().is_err_and(is_late) {
            let limit = format!("{:?}", self.config.deadlines.handler);
            self.entry.hit(self.config, "handler_wait", limit);
        }
        match outcome {
            Ok(response) if request.writer.is_untouched() => request.finish(&response).await,
            outcome => match request.writer.judge(outcome)? {
                Some(response) => request.finish(&response).await,
                None => Ok(request.after_break()),
            },
        }
    }
}
