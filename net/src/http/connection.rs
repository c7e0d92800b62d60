//! The life of a connection, from its first byte to its end. [`State`] is its state, and
//! [`Busy::serve`] moves it from one state to the next.
//!
//! ```text
//!  open               a byte, or one last look
//!   |   +-------------------------------+---------------------+
//!   v   v                               |                     |
//! +---------+   nothing is here   +-------------+         +---------+
//! |  Head   | ------------------> | New or Idle | ------> | Leaving |
//! | Partial |                     +-------------+         +---------+
//! +---------+
//!   |  ^   |
//!   |  |   +-- refused, or no request ---------+
//!   |  +------------ continues ----+           |   over the limit
//!   v                              |           v         v
//! +---------------------------------+    +-------------------+
//! | Request                         |    |                   |
//! |   handler <-> body              | -> |   Closing(why)    |
//! |   handler  -> response -> body  |    |                   |
//! | Body, Room, Write               |    +-------------------+
//! +---------------------------------+          |
//!                                              v
//!                                     +-------------------+
//!                                     |      Closed       |
//!                                     +-------------------+
//! ```
//!
//! Partial, Body, Room and Write are the waits in Head and Request, for the peer or for memory. If
//! a connection must give way, the server chooses it by these. `persists` has every `why`; the log
//! has it in a line, for example `note closes: Drain`.
//!
//! | state | it waits for | what ends it |
//! |---|---|---|
//! | Head, Partial | the rest of a head that has begun; the peer to take the responses before it | The head is whole: Request, or 503 and Closing if the grace of a drain is over. Nothing is here: New before the first request, Idle after it. With part of a head read: 408 at `deadlines.head`, 503 at the end of the grace, 503 if the server needs the place for another connection, and 400 if the peer closes. Before its first byte, all these: Closing without a response. No room in memory for a long head, or a body waits for room: 503. A rule or a limit: the status below. After such a refusal: Closing. If the last look finds nothing: Closing. `deadlines.write`: Closed |
//! | New, Idle | the first byte of a request | A byte, or the peer's end: Head. New: `deadlines.head`, in a drain `FIRST_BYTE`. Idle: `deadlines.idle`, in a drain at once. Then one last look in Head. The server needs the place for another connection: Leaving |
//! | Leaving | the next run of its task | One last look in Head |
//! | Request, in its handler | what the handler waits for | The handler returns a response. `deadlines.handler`: 503. A `Rejection`: its status, and Head or Closing. Any other error or a panic: 500. Then Closing. The client has been gone for `LEFT`: Closing, no response |
//! | Request, Body and Room | a piece of the body, for the handler or to be thrown away; room in memory for it | The piece. `deadlines.body`, `body_rate`, `body_whole`, in a drain `DRAIN_WAIT`: 408. The peer's end: 400. Too long: 413. No room in memory, or other bodies wait for its room and it is slow: 503. The server needs the place for another connection: 503. Then Closing. If the body is thrown away, the response of the handler is still sent |
//! | Request, Write | the peer to take what was written | All is gathered: Head or Closing, as `persists` decides. Head comes after a turn for other tasks if `limits.pipelined` requests came together. `deadlines.write`, `write_rate`, `body_whole`, in a drain `DRAIN_WAIT`, other bodies wait for its room and it is slow, or the server needs the place for another connection: Closed |
//! | Closing | the peer to have everything, and then to stop sending | The peer's end, `deadlines.write`, then `deadlines.linger`, or too many bytes: Closed. A response that broke off and must be reset: Closed at once. Without a request, and after a short response to a client that asked to close or is gone, skip the second wait if no input has arrived. If the peer has closed its side, skip both. If the server needs the place of a connection that gave way or came above the limit: Closed |
//!
//! New, Idle and Leaving have the stream and an entry in the server's list, and nothing else. The
//! other states have a pair of buffers from a pool, and one allocation. A request may also have
//! room in memory.
//!
//! Once some of a response has gone out, the connection breaks it off instead of sending a status.
//! It resets the stream if nothing else would tell the peer that the response is incomplete. The
//! cancellation of the task ends every state; a request whose response has not begun gets 503
//! first. A wait for the peer to stop sending is in a shield, because it is the clean-up of the
//! connection. An error of the stream also ends every state.
//!
//! Every status that is the server's own, and why:
//!
//! | status | why | where |
//! |---|---|---|
//! | 100 | the client waits for permission to send its body, and the handler reads it | `writer` |
//! | 400 | the head or the body breaks a rule, or breaks off | here, `head`, `request` |
//! | 408 | the head or the body takes too long, and no response has begun to go out | here, `request` |
//! | 413 | the body is too long | `head`, `request` |
//! | 414, 431 | the request line, or the head, is too long | `head` |
//! | 417 | an expectation other than `100-continue` | `head` |
//! | 421 | a target with `https` | `head` |
//! | 500 | the handler failed or panicked, and its response has not begun to go out | `respond` |
//! | 501 | an unknown method or transfer coding | `head` |
//! | 503 | too many connections, now or after a request has begun; a head that is not whole at the end of the grace of a drain; a request that the end of the drain cuts off; no memory for a body or a long head; a handler that took too long | here, `request`, `respond` |
//! | 505 | a version other than 1.x | `head` |
//!
//! All other statuses are the handlers'. Of the handlers in this crate, the router sends 404, 405
//! and 204 (`router`), files send 206, 304, 404, 412, 416 and 503 (`files`), and a gate sends 503
//! (`blocking`).

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use traps::{Time, note, shield};

use super::buffers::Buffers;
use super::config::Config;
use super::grammar::head::{FULL, Head, Refusal, STOPS, Stop, check, is_worth_parsing, parse};
use super::guard::access_log::AccessLog;
use super::guard::connections::{Entry, UntilClose};
use super::guard::place::Place;
use super::handler::{Handler, handle};
use super::persists::Why;
use super::phase::{Expired, Phase};
use super::request::Request;
use super::response::Response;
use super::state::State;
use super::transport::Transport;
use crate::limits::{EMPTY_LINES, FIRST_BYTE, LINGER, READ_BUFFER, REFUSED_CONNECTIONS};
use crate::rate_meter::is_timeout;
use crate::stream::Stream;

/// Serves one connection until the peer, a deadline or a response closes it. Must run in a separate
/// task, because its deadline interrupts whatever that task waits for.
///
/// Pipelined requests are answered in order, and their responses are gathered into one write. While
/// the connection waits for a request it owns no buffer.
///
/// The connection does not notice the shutdown of the kernel. A program with its own accept loop
/// calls [`Config::drain`] when the shutdown begins, as [`serve`](super::serve) does.
///
/// # Errors
///
/// Returns an error if the stream fails, for example `ConnectionReset`, or if an interrupt from
/// outside ends it, for example the cancellation of the task. A deadline of [`Config`] is not an
/// error.
pub async fn serve_connection<S: Stream, H: Handler>(
    stream: S,
    handler: &H,
    config: &Config,
) -> io::Result<()> {
    live(Connection::new(stream, Place::new(config)), handler).await
}

/// Answers a connection with 503 and `Retry-After: 1`, whatever the client requests, because there
/// are too many connections. Closes the connection so that the peer reads the response.
/// [`serve`](super::serve) does this above [`Limits::connections`](super::Limits::connections). Use
/// this function with your own accept loop. Like [`serve_connection`](super::serve_connection), it
/// must run in a separate task.
///
/// Blocks while the peer takes the response, and then while the peer still sends, each time under a
/// deadline.
///
/// # Errors
///
/// As for [`serve_connection`](super::serve_connection).
pub async fn reject<S: Stream>(stream: S, config: &Config) -> io::Result<()> {
    refuse(Connection::new(stream, Place::new(config))).await
}

/// Answers a connection with 503 and closes it, as [`reject`] does.
pub(super) async fn refuse<S, C>(mut connection: Connection<S, C>) -> io::Result<()>
where
    S: Stream,
    C: Deref<Target = Config>,
{
    connection.place.config.open.refuse(&connection.place.entry, REFUSED_CONNECTIONS);
    connection.place.make_deadline().await;
    let Connection { stream, peer, place: Place { entry, config } } = &mut connection;
    let mut busy = Busy::new((stream, peer.as_deref().copied()), entry, config);
    busy.transport.get_mut().hit(config, "connections", config.limits.connections);
    let end = busy.refuse(FULL, Why::Full).await;
    busy.give_back();
    connection.end();
    end.map(drop).or_else(|error| if Expired::is(&error) { Ok(()) } else { Err(error) })
}

/// A connection, with everything that it owns while it waits for a request.
#[derive(Debug)]
pub(super) struct Connection<S: Stream, C: Deref<Target = Config>> {
    place: Place<C>,
    stream: S,
    /// The address of the peer, for an access log. Boxed, because few servers have a log.
    peer: Option<Box<SocketAddr>>,
}

impl<S: Stream, C: Deref<Target = Config>> Connection<S, C> {
    pub(super) fn new(stream: S, place: Place<C>) -> Connection<S, C> {
        let peer = place.config.on_exchange.0.as_ref().and_then(|_| stream.peer());
        Connection::accepted((stream, peer), place)
    }

    /// Makes a connection, given the address of its peer. A stream that was reset no longer knows
    /// the address.
    pub(super) fn accepted(
        (stream, peer): (S, Option<SocketAddr>),
        place: Place<C>,
    ) -> Connection<S, C> {
        Connection { place, stream, peer: peer.map(Box::new) }
    }

    /// Sends the end message of a stream that has one. A connection that lingered has already sent
    /// it; a connection that failed or was cancelled must not wait for it.
    fn end(&mut self) {
        if self.stream.has_end_message() && self.place.entry.until_close.get() == UntilClose::Out {
            let _ = self.stream.shutdown();
        }
    }
}

impl<S: Stream, C: Deref<Target = Config>> Drop for Connection<S, C> {
    fn drop(&mut self) {
        // To the peer, a clean close would look like the end of the response. Only a reset shows
        // that the response is incomplete. The connection ends in either case.
        if self.place.entry.until_close.get() != UntilClose::Out {
            let _ = self.stream.reset();
        }
    }
}

/// Runs a connection until it ends: answers requests, and waits for the next request, by turns.
#[allow(
    clippy::manual_async_fn,
    reason = "an async fn stores its arguments twice, and many tasks wait in this"
)]
pub(super) fn live<S, C, H, R>(
    mut connection: Connection<S, C>,
    handler: R,
) -> impl Future<Output = io::Result<()>>
where
    S: Stream,
    C: Deref<Target = Config>,
    H: Handler,
    R: Deref<Target = H>,
{
    async move {
        connection.place.make_deadline().await;
        let ended = loop {
            // Boxed, so that a waiting connection is small. `Box::pin` would copy the future.
            let place = Box::new_uninit();
            match Box::into_pin(Box::write(place, busy(&mut connection, &*handler))).await {
                Ok(State::Closed) => break Ok(()),
                // New or Idle.
                Ok(_) => {}
                // It is already in the log.
                Err(error) if Expired::is(&error) => break Ok(()),
                Err(error) => break Err(error),
            }
            if let Err(error) = connection.first_byte().await {
                if !is_timeout(&error) {
                    break Err(error);
                }
                // Close, unless a byte has arrived in the meantime. `busy` looks once more.
                connection.place.entry.leaves.set(true);
            }
        };
        connection.end();
        ended
    }
}

impl<S: Stream, C: Deref<Target = Config>> Connection<S, C> {
    /// Waits for the first byte of a request, or for the deadline.
    fn first_byte(&mut self) -> impl Future<Output = io::Result<()>> {
        let Connection { stream, place: Place { entry, config }, .. } = self;
        let deadline = entry.deadline();
        let span = match (entry.has_asked(), config.is_draining()) {
            (true, false) => config.deadlines.idle,
            // The drain has begun since `busy` has looked.
            (true, true) => Duration::ZERO,
            (false, false) => config.deadlines.head,
            (false, true) => config.deadlines.head.min(FIRST_BYTE),
        };
        let until = match deadline.until() {
            // The last wait ended without a byte, or was a handshake.
            until if !entry.has_asked() && until != Time::NEVER => until,
            _ => deadline.now() + span,
        };
        deadline.phase(if entry.has_asked() { "keep-alive" } else { "head" });
        deadline.guard_task(until, stream.readable())
    }
}

/// Serves a connection as long as it has input. Returns the next state: New, Idle or Closed.
pub(super) async fn busy<S, C, H>(
    connection: &mut Connection<S, C>,
    handler: &H,
) -> io::Result<State>
where
    S: Stream,
    C: Deref<Target = Config>,
    H: Handler,
{
    let Connection { stream, peer, place: Place { entry, config } } = connection;
    let is_first = entry.state.get() == State::New;
    let mut busy = Busy::new((stream, peer.as_deref().copied()), entry, config);
    if is_first && !config.is_draining() {
        // The deadline of the first head has been running since the connection opened.
        busy.transport.get_mut().head_until = Some(busy.entry.until());
    }
    let end = busy.serve(handler).await;
    busy.give_back();
    end
}

#[allow(
    clippy::await_holding_refcell_ref,
    reason = "only the watch runs meanwhile, and tries to borrow it"
)]
impl<S: Stream> Busy<'_, S> {
    /// Moves the connection from state to state, until it has no input or is over.
    async fn serve<H: Handler>(&mut self, handler: &H) -> io::Result<State> {
        let mut state = State::Head;
        loop {
            state = match state {
                State::Head => match poll_fn(|cx| Poll::Ready(self.head_at_hand(cx))).await? {
                    Ok(next) => next,
                    // Boxed, because few requests need these.
                    Err(Stop::Partial) => Box::pin(self.read_on()).await?,
                    Err(Stop::Refused(why)) => Box::pin(self.refuse(why, Why::Refused)).await?,
                },
                State::Request => self.answer(handler).await?,
                State::Closing(why) => Box::pin(self.linger(why)).await?,
                State::New | State::Idle => {
                    self.transport.get_mut().flush(self.config).await?;
                    self.config.open.enter(self.entry, state);
                    return Ok(state);
                }
                end => return Ok(end),
            }
        }
    }

    /// Answers the request in hand. Returns the next state.
    async fn answer<H: Handler>(&mut self, handler: &H) -> io::Result<State> {
        self.config.open.enter(self.entry, State::Request);
        // The connection has failed, so no response can arrive.
        if self.transport.get_mut().has_failed() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        self.count_request();
        let end = {
            let parts = &mut self.buffers.request;
            let mut request = Request::new(parts, &self.transport, self.entry, self.config);
            let outcome = handle(handler, &mut request, self.entry).await;
            let end = match request.answer_to(outcome, handler) {
                Ok(Some(response)) => {
                    let end = request.finish(&response).await;
                    response.free();
                    end
                }
                Ok(None) => Ok(request.after_break()),
                // The server or the task ends. Send the 503 that was gathered, if that needs no
                // wait.
                Err(error) => {
                    self.transport.borrow_mut().flush_beside(self.config).await;
                    Err(error)
                }
            };
            request.end();
            end
        };
        self.transport.get_mut().let_go();
        self.buffers.request.input.shrink();
        let next = end?;
        if matches!(next, State::Head) && self.is_greedy() {
            Box::pin(self.transport.get_mut().give_way(self.config)).await?;
        }
        Ok(next)
    }

    fn count_request(&self) {
        let limit = self.config.limits.requests;
        self.entry.count_request();
        if self.entry.requests() >= limit && self.buffers.request.head.keep_alive {
            self.transport.borrow().hit(self.config, "requests", limit);
        }
    }

    /// Counts an answered request. Returns whether other tasks must have a turn now, because this
    /// peer has pipelined many requests.
    fn is_greedy(&mut self) -> bool {
        let (transport, limit) = (self.transport.get_mut(), self.config.limits.pipelined);
        transport.answered += 1;
        let more = !self.buffers.request.input.is_empty() || !transport.is_drained();
        let is_greedy = more && transport.answered >= limit;
        if is_greedy {
            transport.hit(self.config, "pipelined", limit);
        }
        is_greedy
    }
}

// ---- Busy ---------------------------------------------------------------------------------------

/// A connection that reads a head, answers a request or lingers. It borrows the stream, and owns a
/// pair of buffers.
pub(super) struct Busy<'c, S> {
    /// The transport. A request borrows it.
    pub(super) transport: RefCell<Transport<&'c mut S>>,
    pub(super) buffers: Box<Buffers>,
    /// The number of bytes of an incomplete head that were parsed.
    pub(super) seen: usize,
    /// The number of empty lines that were skipped before the head.
    pub(super) empty_lines: usize,
    pub(super) entry: &'c Entry,
    pub(super) config: &'c Config,
}

impl<'c, S: Stream> Busy<'c, S> {
    #[inline]
    pub(super) fn new(
        (stream, peer): (&'c mut S, Option<SocketAddr>),
        entry: &'c Rc<Entry>,
        config: &'c Config,
    ) -> Busy<'c, S> {
        let mut buffers = config.pool.take();
        let out = std::mem::take(&mut buffers.out);
        let log = config.on_exchange.0.is_some().then(|| Box::new(AccessLog::new(peer)));
        let transport = RefCell::new(Transport::new(stream, entry.clone(), (out, log), config));
        Busy { transport, buffers, seen: 0, empty_lines: 0, entry, config }
    }

    /// Gives the buffers back to the pool. Drops the gathered bytes that were not sent.
    pub(super) fn give_back(mut self) {
        let transport = self.transport.get_mut();
        transport.report(self.config);
        self.buffers.out = std::mem::take(&mut transport.out);
        self.config.pool.give(self.buffers);
    }
}

// ---- Head ---------------------------------------------------------------------------------------

const NO_LINE: Refusal = Refusal::bad("there is no request line\n");

impl<S: Stream> Busy<'_, S> {
    /// Reads the next head if it can be read without a wait. Returns the next state, or the reason
    /// why no head was read.
    fn head_at_hand(&mut self, cx: &mut Context<'_>) -> io::Result<Result<State, Stop>> {
        let Busy { transport, buffers, empty_lines, config, .. } = self;
        let (transport, input) = (transport.get_mut(), &mut buffers.request.input);
        config.open.enter(&transport.entry, State::Head);
        if input.is_empty() && *empty_lines == 0 {
            if transport.leaves(config) {
                return Ok(Err(Stop::Partial));
            }
            match transport.read_now(input.room(config.limits.head), cx)? {
                Some(0) => return Ok(Ok(State::Closing(Why::Ended))),
                Some(n) => input.filled(n),
                None if transport.entry.has_asked() => return Ok(Ok(State::Idle)),
                None => return Ok(Ok(State::New)),
            }
        }
        Ok(self.whole_head())
    }

    /// Skips empty lines, and parses the head in the input. Returns the next state, or the reason
    /// why no head was read.
    fn whole_head(&mut self) -> Result<State, Stop> {
        let Busy { transport, buffers, seen, empty_lines, config, .. } = self;
        let (transport, input) = (transport.get_mut(), &mut buffers.request.input);
        let skipped = input.skip_empty_lines(config.bare_lf);
        if skipped > 0 {
            (*seen, *empty_lines) = (0, *empty_lines + skipped);
        }
        let rest = input.rest();
        check(*empty_lines <= EMPTY_LINES && rest.first() != Some(&b'\n'), NO_LINE)?;
        if rest.is_empty() || !is_worth_parsing(rest, *seen, &config.limits) {
            return Err(Stop::Partial);
        }
        *seen = rest.len();
        match parse(rest, &config.limits, config.bare_lf) {
            Err(stop) => Err(stop),
            Ok(_) if transport.late => Err(STOPS.into()),
            Ok(head) => {
                (*seen, *empty_lines, transport.head_until) = (0, 0, None);
                input.take(0, head.len);
                buffers.request.head = head;
                Ok(State::Request)
            }
        }
    }

    /// Reads more of a head, or checks for input a last time before the connection closes. Returns
    /// the next state.
    async fn read_on(&mut self) -> io::Result<State> {
        let Busy { transport, buffers, empty_lines, config, .. } = self;
        let (transport, input) = (transport.get_mut(), &mut buffers.request.input);
        if input.is_empty() && *empty_lines == 0 {
            let found = transport.look(input.room(0)).await?;
            input.filled(found.unwrap_or(0));
            return Ok(match found {
                None => State::Closing(Why::Silent),
                Some(0) => State::Closing(Why::Ended),
                Some(_) => State::Head,
            });
        }
        let read = async {
            let size = input.size_with_room(config.limits.head);
            if size > READ_BUFFER {
                transport.hold_head(size, config)?;
            }
            transport.read_head(input.room(config.limits.head), config).await
        };
        let (refusal, why) = match read.await {
            Ok(n) if n > 0 => {
                input.filled(n);
                return Ok(State::Head);
            }
            Ok(_) => (Refusal::bad("the head breaks off\n"), Why::Ended),
            Err(error) => (Expired::refusal(error)?, Why::Refused),
        };
        if input.is_empty() {
            return Ok(State::Closing(Why::Silent));
        }
        Box::pin(self.refuse(refusal, why)).await
    }
}

// ---- Linger -------------------------------------------------------------------------------------

impl<S: Stream> Busy<'_, S> {
    /// Sends the response that reports a refusal, and lingers.
    async fn refuse(&mut self, refusal: Refusal, why: Why) -> io::Result<State> {
        // A shutdown should not wait for a refusal.
        self.entry.let_go();
        if let Some(cap) = refusal.cap {
            self.transport.get_mut().hit(self.config, cap.name, cap.limit);
        }
        // Do not take the bytes of the request: its first line is for the log.
        let no_body = refusal != NO_LINE && self.buffers.request.input.asks_for_none();
        self.buffers.request.head = Head { no_body, ..Head::REFUSED };
        let head = &mut self.buffers.request;
        let mut request = Request::new(head, &self.transport, self.entry, self.config);
        let finished = request.finish(&Response::from(refusal)).await;
        request.end();
        drop(request);
        // The room of a long head.
        self.transport.get_mut().let_go();
        finished?;
        self.linger(why).await
    }

    /// Ends the connection so that the peer reads what was written. The system resets a stream that
    /// is closed with unread input, or that gets more input after it was closed.
    ///
    /// So wait until the peer has everything, and then until it stops sending, each under a
    /// deadline. A peer that has closed its side needs neither. `send_rest` says which peers need
    /// no second wait.
    async fn linger(&mut self, why: Why) -> io::Result<State> {
        // A connection that gives way no longer counts as served.
        let why = if self.entry.gives_way() { Why::Full } else { why };
        self.config.open.enter(self.entry, State::Closing(why));
        note(format_args!("closes: {why:?}"));
        // If the response broke off, the drop of the connection resets the stream.
        let is_to_be_reset = self.entry.until_close.get() == UntilClose::Started;
        if !is_to_be_reset && self.send_rest(why).await? {
            self.transport.get_mut().shutdown()?;
            self.entry.let_go();
            // In a shield, because no hold delays the shutdown for this clean-up, and the shutdown
            // would cancel it.
            shield(self.discard(why)).await?;
        }
        Ok(State::Closed)
    }

    /// Sends everything to the peer. Returns whether the peer may still be sending.
    async fn send_rest(&mut self, why: Why) -> io::Result<bool> {
        let (transport, input) = (self.transport.get_mut(), &mut self.buffers.request.input);
        // Before the flush, which may take time.
        let is_current = transport.is_current();
        transport.flush(self.config).await?;
        transport.send_end(self.config).await?;
        let much = self.entry.much.get();
        if much && why != Why::Ended {
            transport.sent(self.config).await?;
        }
        let is_brief = match why {
            Why::Ended => return Ok(false),
            Why::Silent => true,
            Why::Asked | Why::Cut | Why::Lost => !much,
            // The client may already be sending its next request.
            _ => false,
        };
        if !is_brief || !input.is_empty() {
            return Ok(true);
        }
        let is_quiet = is_current && !much;
        Ok(!is_quiet && transport.look(input.room(0)).await?.is_some_and(|n| n > 0))
    }

    /// Reads and throws away the bytes that the peer still sends, up to a bound.
    async fn discard(&mut self, why: Why) -> io::Result<()> {
        let (transport, input) = (self.transport.get_mut(), &mut self.buffers.request.input);
        let until = self.entry.now() + self.config.deadlines.linger;
        // The request of a refused connection is not read, and there may be many such connections.
        let mut left = if why == Why::Full { self.config.limits.drain } else { LINGER };
        while left > 0 {
            input.clear();
            input.shrink();
            let room = input.room(0);
            match transport.read_until(room, (Phase::Linger, until), self.config).await {
                Ok(0) => break,
                Ok(n) => left = left.saturating_sub(n as u64),
                Err(error) if Expired::is(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
