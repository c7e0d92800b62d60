//! The life of a connection: head, handler, answer, and again; and all the ways it ends.
//!
//! The order of events is here and only here. It may not parse, and does not touch the stream but
//! through the wire.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::mem::take;
use std::ops::Deref;
use std::pin::pin;
use std::time::Duration;

use super::caught::{Caught, limited};
use super::config::{Buffers, Config, Deadlines};
use super::head::Head;
use super::inbox::Inbox;
use super::parting::{After, STOPS};
use super::phase::{Phase, Watch};
use super::reading::Next;
use super::request::Request;
use super::response::Response;
use super::seats::{Seat, Waits};
use super::settle::request;
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
    /// An error of reading the body or writing the answer is to be passed on. Any other error is
    /// answered with 500, and an interrupt ends the connection; a handler that sets a timeout
    /// answers for it. No deadline covers the handler itself unless
    /// [`Deadlines::handler`](super::Deadlines::handler) is set, and nobody looks at the peer while
    /// it waits for something else: bound what it waits for.
    fn handle<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
    ) -> impl Future<Output = io::Result<Response>>;
}

impl<H: Handler> Handler for &H {
    fn handle<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
    ) -> impl Future<Output = io::Result<Response>> {
        (**self).handle(request)
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
    live(Line::new(stream, config.seats.take(), config), handler, ())
}

/// The life of a connection: in turns it waits, and is busy. `held` is dropped at its end.
#[allow(clippy::manual_async_fn, reason = "that has its arguments twice, and many wait in this")]
pub(super) fn live<S, C, H>(
    mut line: Line<S, C>,
    handler: impl Deref<Target = H>,
    held: impl Sized,
) -> impl Future<Output = io::Result<()>>
where
    S: Stream,
    C: Deref<Target = Config>,
    H: Handler,
{
    async move {
        let _ = &held;
        line.seat.begin().await;
        loop {
            let came = match line.wait().await {
                Ok(()) => true,
                Err(error) if !is_timeout(&error) => break line.end(Err(error.into())),
                Err(_) if line.config.is_draining() => false,
                Err(_) => break line.end(Ok(())),
            };
            // In a box: who waits for a request has no room for all that an answer may need.
            match Box::pin(be_busy(&mut line, &*handler, came)).await {
                Ok(After::Next) => {}
                end => break line.end(end.map(drop)),
            }
        }
    }
}

/// Answers what has come, or leaves if nothing did.
async fn be_busy<S, H, C>(line: &mut Line<S, C>, handler: &H, came: bool) -> Result<After, Trouble>
where
    S: Stream,
    H: Handler,
    C: Deref<Target = Config>,
{
    let Line { stream, seat, config } = line;
    seat.waits.set(Waits::Busy);
    let mut buffers = config.pool.take();
    let Buffers { inbox, out } = &mut *buffers;
    let watch = Watch::new(seat.clone(), !seat.has_asked());
    let wire = RefCell::new(Wire::new(stream, take(out), watch));
    let mut connection = Connection { wire: &wire, inbox, head: Head::REFUSED, config };
    let end = match came {
        true => connection.converse(handler).await,
        false => Box::pin(connection.leave()).await,
    };
    *out = wire.into_inner().into_buffer();
    config.pool.give(buffers);
    end
}

/// A connection that is busy.
pub(super) struct Connection<'c, S> {
    pub(super) wire: &'c RefCell<Wire<S>>,
    pub(super) inbox: &'c mut Inbox,
    /// Of the request in hand.
    pub(super) head: Head,
    pub(super) config: &'c Config,
}

#[allow(clippy::await_holding_refcell_ref, reason = "no handler runs while the wire is borrowed")]
impl<S: Stream> Connection<'_, S> {
    /// Answers requests until nothing more is here, or until the connection ends.
    async fn converse<H: Handler>(&mut self, handler: &H) -> Result<After, Trouble> {
        loop {
            match self.next().await? {
                Next::Head if self.config.is_draining() => {
                    return Box::pin(self.refuse(STOPS, self.head.no_body)).await;
                }
                Next::Head => {}
                Next::Nothing => return Ok(After::Next),
                Next::Silence if self.config.is_draining() => {
                    return Box::pin(self.leave()).await;
                }
                Next::Silence => return Ok(After::Close),
                Next::Refused(refused) => {
                    return Box::pin(self.refuse(refused.refusal, refused.no_body)).await;
                }
            }
            match self.answer(handler).await? {
                After::Next => {}
                after => return self.part(after).await,
            }
            if self.is_greedy() {
                self.wire.borrow_mut().give_way(self.config).await?;
            }
            if self.inbox.is_empty() && self.config.is_draining() {
                return Box::pin(self.leave()).await;
            }
        }
    }

    /// Has a request answered.
    async fn answer<H: Handler>(&mut self, handler: &H) -> Result<After, Trouble> {
        let keep_alive = self.may_go_on();
        let mut request = request(&self.head, self.inbox, self.wire, self.config);
        request.outlet.keep_alive = keep_alive;
        let outcome = {
            let work = Caught(pin!(handler.handle(&mut request)));
            match self.config.deadlines.handler {
                Duration::MAX => attend(self.wire, work).await,
                span => attend(self.wire, Box::pin(limited(span, work))).await,
            }
        };
        let response = match outcome {
            Ok(response) if request.outlet.is_untouched() => response,
            outcome => match request.outlet.judge(outcome)? {
                Some(response) => response,
                None => return Ok(After::Close),
            },
        };
        match request.settle_at_once(&response) {
            Some(after) => Ok(after),
            None => Box::pin(request.settle(&response)).await,
        }
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
