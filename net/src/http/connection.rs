//! The life of a connection: head, handler, answer, and again; and all the ways it ends.
//!
//! The order of events is here and only here. It may not parse, and does not touch the stream but
//! through the wire.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};

use traps::Interruptible;

use super::caught::{Caught, is_late, limited};
use super::chunked::Chunks;
use super::config::{Config, Deadlines};
use super::form::Form;
use super::head::{Framing, Head, Parsed, parse};
use super::inbox::Inbox;
use super::outlet::{Fault, Outlet, Streamed};
use super::parting::{After, STOPS};
use super::phase::Phase;
use super::request::{Body, Request};
use super::response::{BodyField, Response};
use super::seats::{Seat, Waits};
use super::status::Refusal;
use super::wire::{Trouble, Wire, attend};
use crate::limits::EMPTY_LINES;
use crate::stream::Stream;

/// Below this a head that is not whole is parsed again at every read, above it at every line.
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
pub async fn serve_connection<S: Stream, H: Handler>(
    stream: S,
    handler: &H,
    config: &Config,
) -> io::Result<()> {
    let wire = RefCell::new(Wire::new(stream, config.seats.take()));
    let mut connection = Connection::new(&wire, config);
    let end = connection.converse(handler).await;
    connection.end(end)
}

/// One connection.
pub(super) struct Connection<'c, S> {
    pub(super) wire: &'c RefCell<Wire<S>>,
    pub(super) inbox: Inbox,
    pub(super) config: &'c Config,
}

/// What came instead of a request, or with it.
enum Next {
    Head(Head),
    /// The peer is done, or had nothing to say in time.
    Silence,
    Refused {
        refusal: Refusal,
        no_body: bool,
    },
}

#[allow(clippy::await_holding_refcell_ref, reason = "no handler runs while the wire is borrowed")]
impl<'c, S: Stream> Connection<'c, S> {
    pub(super) fn new(wire: &'c RefCell<Wire<S>>, config: &'c Config) -> Connection<'c, S> {
        Connection { wire, inbox: Inbox::default(), config }
    }

    async fn converse<H: Handler>(&mut self, handler: &H) -> Result<(), Trouble> {
        let mut phase = Phase::Head;
        loop {
            match self.next(phase).await? {
                Next::Silence if self.config.is_draining() => return Box::pin(self.leave()).await,
                Next::Silence => return Ok(()),
                Next::Head(head) if self.config.is_draining() => {
                    return Box::pin(self.refuse(STOPS, head.no_body)).await;
                }
                Next::Refused { refusal, no_body } => {
                    return Box::pin(self.refuse(refusal, no_body)).await;
                }
                Next::Head(head) => match Box::pin(self.answer(head, handler)).await? {
                    After::Next => {}
                    after => return Box::pin(self.part(after)).await,
                },
            }
            if self.is_greedy() {
                self.wire.borrow_mut().give_way(self.config).await?;
            }
            phase = Phase::Idle;
            if self.inbox.is_empty() && self.config.is_draining() {
                return Box::pin(self.leave()).await;
            }
        }
    }

    /// The next head. `phase` is what the wait for its first byte is.
    async fn next(&mut self, mut phase: Phase) -> Result<Next, Trouble> {
        let wire = &mut *self.wire.borrow_mut();
        let config = self.config;
        wire.watch.leave();
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
                return Ok(Next::Refused { refusal, no_body: false });
            }
            let worth = rest.len() < SMALL
                || rest[seen..].contains(&b'\n')
                || (seen <= config.limits.request_line + 1
                    && rest.len() > config.limits.request_line + 1)
                || rest.len() >= config.limits.head;
            if !rest.is_empty() && worth {
                match parse(rest, config) {
                    Parsed::Partial => seen = rest.len(),
                    Parsed::Head(head) => {
                        self.inbox.finish();
                        self.inbox.take(0, head.len);
                        wire.watch.leave();
                        return Ok(Next::Head(head));
                    }
                    Parsed::Refused { refusal, no_body } => {
                        return Ok(Next::Refused { refusal, no_body });
                    }
                }
            }
            if !self.inbox.is_empty() || empty_lines > 0 {
                phase = Phase::Head;
            }
            match self.fill(wire, phase).await {
                Ok(0) if self.inbox.is_empty() => return Ok(Next::Silence),
                Ok(0) => {
                    let refusal = Refusal::bad("the head breaks off\n");
                    return Ok(Next::Refused { refusal, no_body: self.inbox.asks_for_none() });
                }
                Ok(n) => self.inbox.filled(n),
                Err(Trouble::Expired(Phase::Idle | Phase::Head)) if self.inbox.is_empty() => {
                    return Ok(Next::Silence);
                }
                Err(Trouble::Expired(Phase::Head)) => {
                    note_expired(Phase::Head, config, &wire.watch.seat);
                    let refusal = Refusal::new(408, "the head took too long\n");
                    return Ok(Next::Refused { refusal, no_body: self.inbox.asks_for_none() });
                }
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// Reads more of a head. While not a byte is there it waits without a buffer.
    async fn fill(&mut self, wire: &mut Wire<S>, phase: Phase) -> Result<usize, Trouble> {
        if self.inbox.is_empty() && !wire.is_drained() {
            // What filled the buffer may have been all: then this is a wait like any other.
            let room = self.inbox.room(&self.config.pool, self.config.limits.head);
            let came = wire.read_now(room).await?;
            if came > 0 || wire.ended {
                return Ok(came);
            }
        }
        if self.inbox.is_empty() && wire.is_drained() {
            wire.flush(self.config).await?;
            wire.give_buffer(self.config);
            self.inbox.give_up(&self.config.pool);
            let waits = if phase == Phase::Idle { Waits::Next } else { Waits::First };
            wire.watch.seat.waits.set(waits);
            let waited = wire.wait(phase, self.config).await;
            wire.watch.seat.waits.set(Waits::Busy);
            waited?;
        }
        let room = self.inbox.room(&self.config.pool, self.config.limits.head);
        wire.read(room, phase, self.config).await
    }

    /// Has a request answered.
    async fn answer<H: Handler>(&mut self, head: Head, handler: &H) -> Result<After, Trouble> {
        let keep_alive = self.may_go_on(&head);
        let mut request = request(head, &mut self.inbox, self.wire, self.config);
        request.outlet.keep_alive = keep_alive;
        let outcome = {
            let handling = pin!(handler.handle(&mut request));
            let mut work = limited(self.config.deadlines.handler, Caught(handling));
            attend(self.wire, Pin::new(&mut work)).await
        };
        let Outlet { fault, streamed, form, .. } = request.outlet;
        let response = match (outcome, fault, streamed) {
            (Err(error), ..) if error.interrupt().is_some() => return Err(error.into()),
            (_, Some(Fault::Lost(Some(phase))), _) => return Err(Trouble::Expired(phase)),
            (Err(error), Some(Fault::Lost(None)), _) => return Err(error.into()),
            (Ok(_), Some(Fault::Lost(None)), _) => return Ok(After::Close),
            (Ok(response), _, Streamed::No) => response,
            (Ok(_), _, Streamed::Done) => Response::sent(),
            (Err(_), Some(Fault::Refused(refusal)), Streamed::No) => {
                form.error(refusal.status, refusal.why)
            }
            (Err(error), None, Streamed::No) if is_late(&error) => {
                form.error(503, "the answer took too long\n").and_close()
            }
            (Err(_), None, Streamed::No) => form.error(500, "something went wrong\n").and_close(),
            // It broke off, and the client can tell only by a reset.
            (_, _, Streamed::UntilClose) => {
                self.wire.borrow_mut().reset();
                return Ok(After::Close);
            }
            // It broke off, and the client can tell.
            (_, _, Streamed::Length(_) | Streamed::Chunked | Streamed::Nothing)
            | (Err(_), _, Streamed::Done) => return Ok(After::Close),
        };
        request.settle(response).await
    }
}

/// How long the empty line is that `bytes` begin with.
fn empty_line(bytes: &[u8], bare_lf: bool) -> Option<usize> {
    match bytes {
        [b'\r', b'\n', ..] => Some(2),
        [b'\n', ..] if bare_lf => Some(1),
        _ => None,
    }
}

pub(super) fn request<'r, S>(
    head: Head,
    inbox: &'r mut Inbox,
    wire: &'r RefCell<Wire<S>>,
    config: &'r Config,
) -> Request<'r, S> {
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
    Request { body, read: 0, trailers: Vec::new(), head, inbox, outlet }
}

impl<S: Stream> Request<'_, S> {
    /// Gathers the answer, unless it was streamed, and gets the rest of the body out of the way.
    pub(super) async fn settle(&mut self, response: Response) -> Result<After, Trouble> {
        let doubt = self.has_doubt();
        let stops = self.outlet.config.is_draining();
        self.outlet.keep_alive &= !response.close && !doubt && !stops;
        if !response.sent {
            let (body, field) = match response.has_body() {
                true => (&response.body[..], BodyField::Length(response.body.len() as u64)),
                false => (&[][..], response.no_body_field()),
            };
            let body = if self.head.no_body { &[] } else { body };
            let room = self.outlet.make_room().await;
            room.map_err(|error| self.trouble(error))?;
            self.outlet.write_head(&response, field, self.head.version).await;
            let sent = self.outlet.send(body, b"").await;
            sent.map_err(|error| self.trouble(error))?;
        }
        if self.outlet.keep_alive && !matches!(self.body, Body::End) {
            // Seldom needed, and large.
            Box::pin(self.drain()).await?;
        }
        self.inbox.finish();
        Ok(match (self.outlet.keep_alive, self.body) {
            (true, _) => After::Next,
            // Whoever did not ask for the end may be sending already.
            (false, Body::End) if !doubt && !self.head.keep_alive => After::Close,
            (false, _) => After::Linger,
        })
    }

    /// Whether nobody can say where the next request begins, or it is not worth reading up to it.
    /// Goes by what was said and not by what is here: how the body was cut may not change the
    /// answer.
    fn has_doubt(&self) -> bool {
        let most = self.outlet.config.limits.drain;
        let much = match self.body {
            Body::Length(left) => left > most,
            // How much it is nobody has said.
            Body::Chunks(_) => true,
            Body::End => false,
        };
        let unasked = self.outlet.expects && !matches!(self.body, Body::End);
        self.outlet.fault.is_some() || much || unasked
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
        Phase::Idle | Phase::Linger => return,
    };
    seat.hit(name, format!("{limit:?}"));
}
