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
use super::head::{Head, Parsed, parse};
use super::inbox::Inbox;
use super::parting::{After, STOPS};
use super::phase::{Phase, Watch};
use super::request::Request;
use super::response::Response;
use super::seats::{Seat, Waits};
use super::settle::request;
use super::status::Refusal;
use super::wire::{Line, Trouble, Wire, attend};
use crate::limits::EMPTY_LINES;
use crate::stream::Stream;
use crate::write_deadline::is_timeout;

/// Below this a head is small.
const SMALL: usize = 2048;

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
///
/// Not an `async fn`: that would have its arguments twice, and there are many that wait.
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

/// What came instead of a request, or with it.
enum Next {
    Head,
    /// Nothing yet, and all that was to be said is written.
    Nothing,
    /// The peer is done, or had nothing to say in time.
    Silence,
    Refused(Box<Refused>),
}

/// What is to be answered for the server, and whether without a body.
struct Refused {
    refusal: Refusal,
    no_body: bool,
}

impl Next {
    fn refused(refusal: Refusal, no_body: bool) -> Next {
        Next::Refused(Box::new(Refused { refusal, no_body }))
    }
}

#[allow(clippy::await_holding_refcell_ref, reason = "no handler runs while the wire is borrowed")]
impl<S: Stream> Connection<'_, S> {
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

    /// The next head.
    async fn next(&mut self) -> Result<Next, Trouble> {
        let wire = &mut *self.wire.borrow_mut();
        let config = self.config;
        // Up to where a head that is not whole was parsed.
        let (mut seen, mut empty_lines) = (0, 0);
        loop {
            while let Some(len) = empty_line(self.inbox.rest(), config.bare_lf) {
                self.inbox.take(len, 0);
                self.inbox.finish();
                empty_lines += 1;
                seen = 0;
            }
            let rest = self.inbox.rest();
            if empty_lines > EMPTY_LINES || rest.first() == Some(&b'\n') {
                let refusal = Refusal::bad("there is no request line\n");
                return Ok(Next::refused(refusal, false));
            }
            if !rest.is_empty() && is_worth_parsing(rest, seen, config) {
                match parse(rest, config) {
                    Parsed::Partial => seen = rest.len(),
                    Parsed::Head(head) => {
                        self.inbox.finish();
                        self.inbox.take(0, head.len);
                        wire.watch.leave();
                        self.head = head;
                        return Ok(Next::Head);
                    }
                    Parsed::Refused { refusal, no_body } => {
                        return Ok(Next::refused(refusal, no_body));
                    }
                }
            }
            if self.inbox.is_empty() && empty_lines == 0 {
                // What filled the buffer may have been all: this does not wait.
                let room = self.inbox.room(config.limits.head);
                let came = if wire.is_drained() { None } else { wire.read_now(room).await? };
                match came {
                    Some(0) => return Ok(Next::Silence),
                    Some(n) => self.inbox.filled(n),
                    None => {
                        wire.flush(config).await?;
                        return Ok(Next::Nothing);
                    }
                }
                continue;
            }
            let room = self.inbox.room(config.limits.head);
            // In a box: most heads come whole.
            match Box::pin(wire.read(room, Phase::Head, config)).await {
                Ok(0) if self.inbox.is_empty() => return Ok(Next::Silence),
                Ok(0) => {
                    let refusal = Refusal::bad("the head breaks off\n");
                    return Ok(Next::refused(refusal, self.inbox.asks_for_none()));
                }
                Ok(n) => self.inbox.filled(n),
                Err(Trouble::Expired(Phase::Head)) if self.inbox.is_empty() => {
                    return Ok(Next::Silence);
                }
                Err(Trouble::Expired(Phase::Head)) => {
                    note_expired(Phase::Head, config, &wire.watch.seat);
                    let refusal = Refusal::new(408, "the head took too long\n");
                    return Ok(Next::refused(refusal, self.inbox.asks_for_none()));
                }
                Err(trouble) => return Err(trouble),
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
        request.settle(&response).await
    }
}

/// Whether a head that was not whole up to `seen` may be so now: a small one is parsed again at
/// every read, a large one at every line, so that it does not cost its square.
fn is_worth_parsing(rest: &[u8], seen: usize, config: &Config) -> bool {
    let line = config.limits.request_line + 1;
    rest.len() < SMALL
        || rest[seen..].contains(&b'\n')
        || (seen <= line && rest.len() > line)
        || rest.len() >= config.limits.head
}

/// How long the empty line is that `bytes` begin with.
fn empty_line(bytes: &[u8], bare_lf: bool) -> Option<usize> {
    match bytes {
        [b'\r', b'\n', ..] => Some(2),
        [b'\n', ..] if bare_lf => Some(1),
        _ => None,
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
