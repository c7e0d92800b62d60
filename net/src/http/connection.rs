//! The life of a connection: head, handler, answer, and again; and all the ways it ends.
//!
//! The order of events is here and only here. It may not parse, and does not touch the stream but
//! through the wire.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::mem::take;
use std::ops::ControlFlow::{Break, Continue};
use std::ops::Deref;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use traps::ConnectionDeadline;

use super::busy::{Todo, begin, go_on};
use super::caught::{Caught, catch, is_late, limited};
use super::config::{Buffers, Config, Deadlines};
use super::head::Framing;
use super::parting::{After, STOPS};
use super::phase::{Limit, Phase};
use super::reading::{Next, Refused};
use super::request::Request;
use super::response::Response;
use super::seats::Seat;
use super::settle::request;
use super::share::may_go_on;
use super::wire::{Line, Trouble, Wire, attend};
use crate::stream::Stream;
use crate::write_deadline::is_timeout;

/// What answers requests.
///
/// ```
/// use std::io;
/// use net::Stream;
/// use net::http::{Handler, Method, Request, Response};
///
/// struct Hello;
///
/// impl Handler for Hello {
///     async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
///         match (request.method(), request.path()) {
///             (Method::Get, "/") => Ok(Response::text("Hello\n")),
///             (_, "/") => Ok(Response::method_not_allowed("GET, HEAD")?),
///             _ => Ok(Response::new(404).with_text("not here\n")),
///         }
///     }
/// }
/// ```
pub trait Handler {
    /// Answers one request. What it leaves unread of the body is thrown away.
    ///
    /// An error of reading the body or writing the answer is to be passed on: it is the
    /// connection's, and leaves no line in the log. Any other error is answered with 500, or breaks
    /// an answer off that had begun, and is a `warn` line, `a handler failed: ...`, as a panic is;
    /// so what a client can bring about as it likes is to be an answer (400, 404) and no error. A
    /// timeout that the handler sets itself and passes on is such an error too; an interrupt from
    /// further out ends the connection. No deadline covers the handler itself unless
    /// [`Deadlines::handler`](super::Deadlines::handler) is set, and nobody looks at the peer while
    /// it waits for something else: bound what it waits for.
    fn handle<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
    ) -> impl Future<Output = io::Result<Response>>;

    /// Answers a request at once, where that takes no wait; `None` leaves it to
    /// [`handle`](Handler::handle), as this does unless it is written. A short cut for what is
    /// asked often: no future is made, and nothing allocated. It is not always asked, so `handle`
    /// has to give the same answer. That is copied, so it should not be large.
    fn at_once<S: Stream>(&self, request: &mut Request<'_, S>) -> Option<Response> {
        let _ = request;
        None
    }
}

impl<H: Handler> Handler for &H {
    fn handle<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
    ) -> impl Future<Output = io::Result<Response>> {
        (**self).handle(request)
    }

    fn at_once<S: Stream>(&self, request: &mut Request<'_, S>) -> Option<Response> {
        (**self).at_once(request)
    }
}

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
    live(Line::new(stream, config.seats.take(), Borrowed { handler, config }))
}

/// What a connection is served with.
pub(super) trait Server: Deref<Target = Config> {
    type Handler: Handler;

    fn handler(&self) -> &Self::Handler;

    /// Runs the wait of a connection that is not busy under its deadline. Its task may wait for
    /// other things beside it.
    #[track_caller]
    fn limited<'d, F>(
        limit: Limit,
        deadline: &'d ConnectionDeadline,
        wait: F,
    ) -> impl Future<Output = io::Result<()>>
    where
        F: Future<Output = io::Result<()>> + 'd,
    {
        limit.guard(deadline, wait)
    }
}

/// That of a connection alone.
struct Borrowed<'h, 'c, H> {
    handler: &'h H,
    config: &'c Config,
}

impl<H> Deref for Borrowed<'_, '_, H> {
    type Target = Config;

    #[inline]
    fn deref(&self) -> &Config {
        self.config
    }
}

impl<H: Handler> Server for Borrowed<'_, '_, H> {
    type Handler = H;

    #[inline]
    fn handler(&self) -> &H {
        self.handler
    }
}

/// The life of a connection: in turns it waits, and is busy.
#[allow(clippy::manual_async_fn, reason = "that has its arguments twice, and many wait in this")]
pub(super) fn live<S: Stream, C: Server>(
    mut line: Line<S, C>,
) -> impl Future<Output = io::Result<()>> {
    async move {
        let mut reads_first = line.stream.reads_first();
        loop {
            let todo = if take(&mut reads_first) {
                Some(Todo::Next)
            } else {
                if line.seat.is_new() {
                    line.seat.begin().await;
                }
                match line.wait().await {
                    Ok(()) => Some(Todo::Next),
                    Err(error) if !is_timeout(&error) => break line.end(Err(error.into())),
                    Err(_) if line.seat.config.is_draining() => Some(Todo::Leave),
                    Err(_) => None,
                }
            };
            let begin = |cx: &mut Context<'_>| {
                Poll::Ready(match todo {
                    // What came while nobody looked, in a process that stood still, is no silence.
                    None if !line.has_come(cx) => Ok(Break(After::Close)),
                    todo => begin(&mut line, todo.unwrap_or(Todo::Next), cx),
                })
            };
            let buffers = match poll_fn(begin).await {
                Ok(Break(After::Next)) => continue,
                Ok(Continue(buffers)) => buffers,
                end => break line.end(end.map(drop)),
            };
            // What it keeps from one wait to the next lies where the guard of that wait lay.
            match go_on(&mut line, buffers).await {
                Ok(After::Next) => {}
                end => break line.end(end.map(drop)),
            }
        }
    }
}

/// A connection that is busy.
pub(super) struct Connection<'c, S> {
    /// Lent to a request, while there is one.
    pub(super) wire: RefCell<Wire<S>>,
    pub(super) buffers: Box<Buffers>,
    pub(super) seat: &'c Seat,
    pub(super) config: &'c Config,
}

impl<S: Stream> Connection<'_, S> {
    /// Does what is to be done, in order, until nothing more is here or the connection ends. Begins
    /// with what takes a wait.
    pub(super) async fn go_on<H: Handler>(
        &mut self,
        todo: Todo,
        handler: &H,
    ) -> Result<After, Trouble> {
        let mut todo = todo;
        loop {
            todo = match todo {
                Todo::Next => Todo::Next,
                Todo::InPieces => {
                    let next = Box::pin(self.next_in_pieces()).await?;
                    self.after_next(next)
                }
                Todo::Refuse => {
                    let refused = self.buffers.refused.take();
                    let Refused { refusal, no_body } = refused.expect("something was refused");
                    return Box::pin(self.refuse(refusal, no_body)).await;
                }
                Todo::Answer if self.config.is_draining() => {
                    return Box::pin(self.refuse(STOPS, self.buffers.head.no_body)).await;
                }
                Todo::Answer => {
                    let after = self.answer(handler).await?;
                    self.after_answer(after)
                }
                Todo::Settle => {
                    self.seat.read_date(self.config).await;
                    Todo::Settle
                }
                Todo::GiveWay => {
                    self.wire.get_mut().give_way(self.config).await?;
                    self.between()
                }
                Todo::Part(after) => return self.part(after).await,
                Todo::Leave => return Box::pin(self.leave()).await,
                Todo::Over(after) => return Ok(after),
            };
            todo = poll_fn(|cx| Poll::Ready(self.go_on_at_once(todo, handler, cx))).await?;
        }
    }

    /// Does what takes no wait. Gives what is then to be done.
    pub(super) fn go_on_at_once<H: Handler>(
        &mut self,
        todo: Todo,
        handler: &H,
        cx: &mut Context<'_>,
    ) -> Result<Todo, Trouble> {
        let mut todo = todo;
        loop {
            todo = match todo {
                Todo::Next => match self.next_at_once(cx)? {
                    // As nearly always.
                    Some(Next::Head) => match self.answer_at_once(handler) {
                        Some(todo) => todo,
                        None => return Ok(Todo::Answer),
                    },
                    Some(next) => self.after_next(next),
                    None => return Ok(Todo::InPieces),
                },
                Todo::Settle if !self.seat.is_date_old(self.config) => self.settle(),
                Todo::Part(after) if self.part_at_once(after, cx)? => Todo::Over(after),
                todo => return Ok(todo),
            };
        }
    }

    fn after_next(&mut self, next: Next) -> Todo {
        let stops = self.config.is_draining();
        match next {
            Next::Head => Todo::Answer,
            // It may have begun while the last answer was written.
            Next::Nothing if stops && self.seat.has_asked() => Todo::Leave,
            Next::Nothing => Todo::Over(After::Next),
            Next::Silence if stops => Todo::Leave,
            // Answers that were gathered before the end was read.
            Next::Silence if !self.wire.get_mut().out.is_empty() => Todo::Part(After::Close),
            Next::Silence => Todo::Over(After::Close),
            Next::Refused => Todo::Refuse,
        }
    }

    fn after_answer(&mut self, after: After) -> Todo {
        match after {
            After::Next if self.is_greedy() => Todo::GiveWay,
            After::Next => self.between(),
            After::Reset => Todo::Over(after),
            After::Close | After::Linger => Todo::Part(after),
        }
    }

    /// Between two requests.
    fn between(&self) -> Todo {
        let leaves = self.buffers.inbox.is_empty() && self.config.is_draining();
        if leaves { Todo::Leave } else { Todo::Next }
    }

    /// Has a request answered by a handler that does so at once, if nothing but the date takes a
    /// wait. Gives what is then to be done.
    fn answer_at_once<H: Handler>(&mut self, handler: &H) -> Option<Todo> {
        let no_body = self.buffers.head.framing == Framing::Length(0);
        if self.config.is_draining() || !no_body || self.wire.get_mut().is_full() {
            return None;
        }
        let mut request = request(&mut self.buffers, &self.wire, self.config);
        // Written where it stays: it is large.
        let mut answer = None;
        if catch(|| answer = handler.at_once(&mut request)).is_err() {
            answer = Some(request.outlet.broken());
        }
        let response = answer.as_ref()?;
        let keep_alive = may_go_on(request.head, self.seat, self.config);
        if self.seat.is_date_old(self.config) {
            self.buffers.answer = answer.map(|response| (response, keep_alive));
            return Some(Todo::Settle);
        }
        request.outlet.keep_alive = keep_alive;
        let after = request.settle_at_once(response);
        Some(self.after_answer(after))
    }

    /// Gathers the answer that is there.
    fn settle(&mut self) -> Todo {
        let (response, keep_alive) = self.buffers.answer.take().expect("it was kept for the date");
        let mut request = request(&mut self.buffers, &self.wire, self.config);
        request.outlet.keep_alive = keep_alive;
        let after = request.settle_at_once(&response);
        self.after_answer(after)
    }

    /// Has a request answered.
    async fn answer<H: Handler>(&mut self, handler: &H) -> Result<After, Trouble> {
        let keep_alive = may_go_on(&self.buffers.head, self.seat, self.config);
        let mut request = request(&mut self.buffers, &self.wire, self.config);
        request.outlet.keep_alive = keep_alive;
        let outcome = {
            let work = Caught(pin!(handler.handle(&mut request)));
            match self.config.deadlines.handler {
                Duration::MAX => attend(&self.wire, work).await,
                span => attend(&self.wire, Box::pin(limited(span, work))).await,
            }
        };
        if outcome.as_ref().is_err_and(is_late) {
            let limit = format!("{:?}", self.config.deadlines.handler);
            self.seat.hit("handler_wait", limit);
        }
        let response = match outcome {
            Ok(response) if request.outlet.is_untouched() => response,
            outcome => match request.outlet.judge(outcome)? {
                Some(response) => response,
                None => return Ok(request.after_break()),
            },
        };
        if request.is_settled_at_once() && !request.outlet.is_date_old() && !response.is_large() {
            return Ok(request.settle_at_once(&response));
        }
        Box::pin(request.settle(&response)).await
    }
}

#[cold]
pub(super) fn note_expired(phase: Phase, config: &Config, seat: &Seat) {
    let (name, limit) = match phase {
        Phase::Head => ("head_wait", config.deadlines.head),
        Phase::Body => ("body_wait", config.deadlines.body),
        Phase::SlowBody => {
            let Deadlines { body_rate, body_window, .. } = config.deadlines;
            let limit = format!("{body_rate} window={body_window:?}");
            return seat.hit("body_rate", limit);
        }
        Phase::Write => ("write_wait", config.deadlines.write),
        Phase::Linger => return,
    };
    seat.hit(name, format!("{limit:?}"));
}
