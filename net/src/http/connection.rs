//! The life of a connection: head, handler, answer, and again; and all the ways it ends.
//!
//! The order of events is here and only here. It may not parse, and does not touch the stream but
//! through the wire.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::pin;

use traps::Interruptible;
use traps::shutdown::{has_begun, hold};

use super::chunked::Chunks;
use super::config::Config;
use super::drain::{is_cut_by_shutdown, unavailable};
use super::head::{Framing, Head, Parsed, parse};
use super::inbox::Inbox;
use super::outlet::{Fault, Outlet, Streamed};
use super::phase::Phase;
use super::request::{Body, Request};
use super::response::{BodyField, Response};
use super::status::Refusal;
use super::wire::{Trouble, Wire, attend};
use crate::stream::Stream;

/// Empty lines that a client may send before a request.
const EMPTY_LINES: usize = 8;

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
    /// answers for it. No deadline covers the handler itself, and nobody looks at the peer while
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
/// When the kernel shuts down (rows F17, F19): a connection that waits for a request closes at
/// once, one that has not said a byte yet after 100 ms; an answer that is being made says
/// `Connection: close` and is the last; a request whose head is read after that is answered with
/// 503 and `Retry-After`, before any of its body is read. Until then the connection is a
/// [hold](traps::shutdown::hold) of the drain; a handler that is cancelled when that is over is
/// answered for with 503, unless its answer has begun. A request that crosses the end of an idle
/// connection on its way meets that end, with not a byte of an answer: the client may send it
/// again.
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
    let _hold = hold();
    let wire = RefCell::new(Wire::new(stream));
    let mut connection = Connection { wire: &wire, inbox: Inbox::default(), config };
    let end = connection.converse(handler).await;
    connection.inbox.give_up(&config.pool);
    connection.wire.borrow_mut().give_buffer(config);
    match end {
        Ok(()) => Ok(()),
        Err(Trouble::Expired(phase)) => {
            phase.note_expired(config);
            Ok(())
        }
        Err(Trouble::Failed(error)) => Err(error),
    }
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
    /// One that came when the server had begun to shut down.
    Late(Head),
    /// The peer is done, or had nothing to say in time.
    Silence,
    Refused {
        refusal: Refusal,
        no_body: bool,
    },
}

#[allow(clippy::await_holding_refcell_ref, reason = "no handler runs while the wire is borrowed")]
impl<S: Stream> Connection<'_, S> {
    async fn converse<H: Handler>(&mut self, handler: &H) -> Result<(), Trouble> {
        let mut phase = Phase::Head;
        loop {
            match self.next(phase).await? {
                Next::Silence => {
                    self.wire.borrow_mut().close_quietly();
                    return Ok(());
                }
                Next::Late(head) => return self.turn_away(head).await,
                Next::Refused { refusal, no_body } => return self.refuse(refusal, no_body).await,
                Next::Head(head) => match self.answer(head, handler).await? {
                    After::Next => {}
                    after => return self.part(after).await,
                },
            }
            phase = Phase::Idle;
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
            while let [b'\r', b'\n', ..] = self.inbox.rest() {
                self.inbox.take(2, 0);
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
                match parse(rest, &config.limits) {
                    Parsed::Partial => seen = rest.len(),
                    Parsed::Head(head) => {
                        self.inbox.finish();
                        self.inbox.take(0, head.len);
                        wire.watch.leave();
                        return Ok(if has_begun() { Next::Late(head) } else { Next::Head(head) });
                    }
                    Parsed::Refused { refusal, no_body } => {
                        return Ok(Next::Refused { refusal, no_body });
                    }
                }
            }
            if !self.inbox.is_empty() {
                phase = Phase::Head;
            }
            match self.fill(wire, phase).await {
                Ok(0) if self.inbox.is_empty() => return Ok(Next::Silence),
                Ok(0) => {
                    let refusal = Refusal::bad("the head breaks off\n");
                    return Ok(Next::Refused { refusal, no_body: false });
                }
                Ok(n) => self.inbox.filled(n),
                Err(Trouble::Expired(Phase::Idle | Phase::Head)) if self.inbox.is_empty() => {
                    return Ok(Next::Silence);
                }
                Err(Trouble::Expired(Phase::Head)) => {
                    Phase::Head.note_expired(config);
                    let refusal = Refusal::new(408, "the head took too long\n");
                    return Ok(Next::Refused { refusal, no_body: false });
                }
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// Reads more of a head. While not a byte is there it waits without a buffer.
    async fn fill(&mut self, wire: &mut Wire<S>, phase: Phase) -> Result<usize, Trouble> {
        wire.idle = self.inbox.is_empty();
        if wire.idle && wire.is_drained() {
            wire.flush(self.config).await?;
            wire.give_buffer(self.config);
            self.inbox.give_up(&self.config.pool);
            if !wire.wait(phase, self.config).await? {
                return Ok(0);
            }
        }
        let room = self.inbox.room(&self.config.pool, self.config.limits.head);
        wire.read(room, phase, self.config).await
    }

    /// Has a request answered.
    async fn answer<H: Handler>(&mut self, head: Head, handler: &H) -> Result<After, Trouble> {
        let mut request = request(head, &mut self.inbox, self.wire, self.config);
        let outcome = attend(self.wire, pin!(handler.handle(&mut request))).await;
        let Outlet { fault, streamed, .. } = request.outlet;
        let response = match (outcome, fault, streamed) {
            // The drain is over: the client is told, and the grace is long enough for that.
            (Err(error), None, Streamed::No) if is_cut_by_shutdown(&error) => unavailable(),
            (Err(error), ..) if error.interrupt().is_some() => return Err(error.into()),
            (_, Some(Fault::Lost(Some(phase))), _) => return Err(Trouble::Expired(phase)),
            (Err(error), Some(Fault::Lost(None)), _) => return Err(error.into()),
            (Ok(_), Some(Fault::Lost(None)), _) => return Ok(After::Close),
            (Ok(response), _, Streamed::No) => response,
            (Ok(_), _, Streamed::Done) => Response::sent(),
            (Err(_), Some(Fault::Refused(refusal)), Streamed::No) => {
                Response::new(refusal.status).with_text(refusal.why)
            }
            (Err(_), None, Streamed::No) => {
                Response::new(500).with_text("something went wrong\n").and_close()
            }
            // It broke off, and the client can tell.
            (
                _,
                _,
                Streamed::Length(_) | Streamed::Chunked | Streamed::UntilClose | Streamed::Nothing,
            )
            | (Err(_), _, Streamed::Done) => return Ok(After::Close),
        };
        request.settle(response).await
    }

    /// Ends the connection so that the peer reads what was written to it: a stream that is closed
    /// while there is unread input resets, and the answer may be lost.
    pub(super) async fn part(&mut self, after: After) -> Result<(), Trouble> {
        let wire = &mut *self.wire.borrow_mut();
        wire.flush(self.config).await?;
        let quiet = after == After::Close && self.inbox.is_empty() && wire.is_drained();
        if wire.ended || quiet {
            return Ok(());
        }
        wire.shutdown()?;
        wire.watch.leave();
        let mut left = self.config.limits.drain;
        while left > 0 {
            self.inbox.give_up(&self.config.pool);
            let room = self.inbox.room(&self.config.pool, 0);
            match wire.read(room, Phase::Linger, self.config).await {
                Ok(0) | Err(Trouble::Expired(_)) => break,
                Ok(n) => left = left.saturating_sub(n as u64),
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(())
    }
}

/// How a connection goes on after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// With the next request.
    Next,
    /// It closes.
    Close,
    /// It closes, and the peer may still be sending.
    Linger,
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
    };
    Request { body, read: 0, head, inbox, outlet }
}

impl<S: Stream> Request<'_, S> {
    /// Gathers the answer, unless it was streamed, and gets the rest of the body out of the way.
    pub(super) async fn settle(&mut self, response: Response) -> Result<After, Trouble> {
        let doubt = self.has_doubt();
        self.outlet.keep_alive &= !response.close && !doubt && !has_begun();
        if !response.sent {
            let (body, field) = match response.has_body() {
                true => (&response.body[..], BodyField::Length(response.body.len() as u64)),
                false => (&[][..], BodyField::None),
            };
            let body = if self.head.no_body { &[] } else { body };
            let room = self.outlet.make_room().await;
            room.map_err(|error| self.trouble(error))?;
            self.outlet.write_head(&response, field, self.head.version).await;
            let sent = self.outlet.send(body, b"").await;
            sent.map_err(|error| self.trouble(error))?;
        }
        if self.outlet.keep_alive && !matches!(self.body, Body::End) {
            self.drain().await?;
        }
        self.inbox.finish();
        Ok(match (self.outlet.keep_alive, self.body) {
            (true, _) => After::Next,
            (false, Body::End) if !doubt => After::Close,
            (false, _) => After::Linger,
        })
    }

    /// Whether nobody can say where the next request begins, or it is not worth reading up to it.
    fn has_doubt(&mut self) -> bool {
        // What came with the head costs nothing to skip.
        while let Ok(Some(_)) = self.buffered() {}
        let most = self.outlet.config.limits.drain;
        let much = matches!(self.body, Body::Length(left) if left > most);
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
