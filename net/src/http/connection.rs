//! The life of a connection, from its first byte to its end.
//!
//! ```text
//!  open           a byte, or one last look
//!   |  +----------------------------------+
//!   v  v                                  |
//! +---------+   nothing is here       +------+
//! |  HEAD   | ----------------------> | IDLE |
//! +---------+                         +------+
//!   |  |   ^
//!   |  +---|--- refused, nothing came ----------+
//!   v      +--------------------------+         |
//! +---------+                         |         |
//! | HANDLER | ---- failed, late ------|---------+
//! +---------+                         |         |
//!   |    |                            |         |
//!   |  +------+                       |         |
//!   |  | BODY | -- slow, broken off --|---------+
//!   v  +------+                       |         v
//! +---------+                         |    +---------+
//! | ANSWER  | ---- kept alive --------+    | LINGER  | --> closed
//! |         | ---- the last answer ------> +---------+
//! +---------+
//! ```
//!
//! | state | it waits for | what ends it |
//! |---|---|---|
//! | head | the rest of a head that has begun | It is whole: handler, or 503 after the grace of a drain. Nothing is here: idle. `deadlines.head`: 408. The peer's end: 400. A rule or a limit: the status below. After a refusal, and where nothing came in the last look: linger |
//! | idle | the first byte of a request | A byte: head. `deadlines.idle`, before the first request `deadlines.head`, in a drain at once or after `FIRST_BYTE`; its place is needed: one last look at head |
//! | handler | what the handler waits for | Its answer. `deadlines.handler`: 503. An error or a panic: 500. Then linger. The client has left: closed |
//! | body | a piece of the body, for the handler, or to be thrown away | The piece. `deadlines.body`, `body_rate`, `body_whole`: 408. The peer's end: 400. Too long: 413. No room in memory: 503. Then linger |
//! | answer | the peer to take what was written | All is gathered: head, in turn with others after `limits.pipelined`. `Connection: close`, `limits.requests`, a drain: linger. `deadlines.write`, `write_rate`: closed |
//! | linger | the peer to have all, and then to stop sending | The peer's end, `deadlines.write`, then `deadlines.linger`: closed. It is skipped if no output is pending and no input has come |
//!
//! Once some of an answer has gone out, what would be a status breaks the answer off. The end is a
//! reset where only that tells the peer so. The cancellation of the task ends every state; a
//! request of which nothing was answered gets 503 first. An error of the stream ends every state,
//! too.
//!
//! Every status that is the server's own, and why:
//!
//! | status | why | where |
//! |---|---|---|
//! | 100 | the client waits to be told to send its body, and the handler reads it | `writer` |
//! | 400 | the head or the body breaks a rule, or breaks off | `read_head`, `parse`, `request` |
//! | 408 | the head or the body takes too long, and nothing of an answer has gone out | `read_head`, `request` |
//! | 413 | the body is too long | `fields`, `request` |
//! | 414, 431 | the request line, or the head, is too long | `parse` |
//! | 417 | an expectation other than `100-continue` | `fields` |
//! | 421 | a target with `https` | `target` |
//! | 500 | the handler failed or panicked, and nothing of its answer has gone out | `writer` |
//! | 501 | a method or a transfer coding that is not known | `parse`, `fields` |
//! | 503 | too many connections; a request after the grace of a drain, or one that the end of the drain cuts; no memory for a body; a handler that took too long | `closing`, here, `read_head`, `memory`, `writer` |
//! | 505 | a version other than 1.x | `parse` |
//!
//! All others are the handler's; of those that come with this crate, the router answers 404, 405
//! and 204 (`router`), files 206, 304, 404, 412, 416 and 503 (`files`), a gate 503 (`blocking`).

use std::future::{Future, poll_fn};
use std::io;
use std::ops::Deref;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use traps::{Time, connection_deadline};

use super::buffers::Buffers;
use super::busy::{Busy, End};
use super::config::Config;
use super::connections::{Entry, UntilClose, Waits};
use super::handler::Handler;
use super::handling::handle;
use super::read_head::Next;
use super::request::Request;
use super::status::FULL;
use super::transport::Expired;
use crate::limits::{FIRST_BYTE, TURNED_AWAY};
use crate::pace::is_timeout;
use crate::stream::Stream;

/// Serves one connection until it ends: by the peer, by a deadline, by an answer that closes it.
/// Runs in a task of its own: a deadline interrupts all that its task waits for.
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
    live(Connection::new(stream, config), handler).await
}

/// Answers a connection that is one too many with 503 and `Retry-After: 1`, whatever it asks, and
/// closes it so that the peer reads that. [`serve`](super::serve) does it above
/// [`Limits::connections`](super::Limits::connections); it is for those who accept on their own.
/// Runs in a task of its own, as [`serve_connection`](super::serve_connection).
///
/// Blocks while the peer takes the answer and goes on sending, each under its deadline.
///
/// # Errors
///
/// As for [`serve_connection`](super::serve_connection).
pub async fn turn_away<S: Stream>(stream: S, config: &Config) -> io::Result<()> {
    let mut connection = Connection::new(stream, config);
    config.open.refuse(&connection.entry, TURNED_AWAY);
    connection.make_deadline().await;
    let mut busy = Busy::new(&mut connection.stream, &connection.entry, config);
    busy.transport.get_mut().hit(config, "connections", config.limits.connections);
    let end = busy.refuse(FULL, false).await;
    busy.give_back();
    end.map(drop).or_else(|error| if Expired::is(&error) { Ok(()) } else { Err(error) })
}

/// All that there is of a connection while nothing comes.
#[derive(Debug)]
pub(super) struct Connection<S: Stream, C: Deref<Target = Config>> {
    stream: S,
    entry: Rc<Entry>,
    config: C,
}

impl<S: Stream, C: Deref<Target = Config>> Connection<S, C> {
    /// Counts among the open ones from now on.
    pub(super) fn new(stream: S, config: C) -> Connection<S, C> {
        if config.connections() == 0 {
            // The kernel may be another one.
            config.date.forget();
        }
        let entry = config.open.add();
        Connection { stream, entry, config }
    }

    /// Makes the one deadline of all its phases, in its task.
    async fn make_deadline(&self) {
        self.entry.set_deadline(connection_deadline().await);
    }
}

impl<S: Stream, C: Deref<Target = Config>> Drop for Connection<S, C> {
    fn drop(&mut self) {
        // A clean close would look like the end of the answer, which is not whole: only a reset
        // tells the peer. The connection ends in either case.
        if self.entry.until_close.get() != UntilClose::Out {
            let _ = self.stream.reset();
        }
        self.config.open.remove(&self.entry);
    }
}

/// The life of a connection: it is busy, and waits for the next request, by turns.
#[allow(clippy::manual_async_fn, reason = "that has its arguments twice, and many wait in this")]
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
        connection.make_deadline().await;
        loop {
            // In a box, so that a connection that waits is small.
            match Box::pin(busy(&mut connection, &*handler)).await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // It has its line in the log.
                Err(error) if Expired::is(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
            if let Err(error) = connection.first_byte().await {
                if !is_timeout(&error) {
                    return Err(error);
                }
                // A byte may have come meanwhile: there is one last look.
                connection.entry.leaves.set(true);
            }
        }
    }
}

impl<S: Stream, C: Deref<Target = Config>> Connection<S, C> {
    /// Waits for a request to begin, or for the end, under the deadline.
    fn first_byte(&mut self) -> impl Future<Output = io::Result<()>> {
        let Connection { stream, entry, config } = self;
        let deadline = entry.deadline();
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
        config.open.set_waits(entry, waits);
        deadline.phase(if entry.has_asked() { "keep-alive" } else { "head" });
        deadline.guard_task(until, stream.readable())
    }
}

/// Serves a connection as long as something is here. Whether it goes on then.
async fn busy<S, C, H>(connection: &mut Connection<S, C>, handler: &H) -> io::Result<bool>
where
    S: Stream,
    C: Deref<Target = Config>,
    H: Handler,
{
    let Connection { stream, entry, config } = connection;
    let waited_for = config.open.set_waits(entry, Waits::Busy);
    let mut busy = Busy::new(stream, entry, config);
    if waited_for == Waits::First {
        // The time of the first head has run since the connection opened.
        busy.transport.get_mut().head_until = Some(busy.entry.until());
    }
    let end = busy.serve(handler).await;
    busy.give_back();
    end
}

#[allow(clippy::await_holding_refcell_ref, reason = "whoever else looks at it only tries")]
impl<S: Stream> Busy<'_, S> {
    async fn serve<H: Handler>(&mut self, handler: &H) -> io::Result<bool> {
        loop {
            let next = match poll_fn(|cx| Poll::Ready(self.head_at_hand(cx))).await? {
                // In boxes, all that few requests come to.
                Next::Partial => Box::pin(self.read_on()).await?,
                next => next,
            };
            match next {
                Next::Partial => {}
                Next::Nothing => {
                    self.transport.get_mut().flush(self.config).await?;
                    return Ok(true);
                }
                Next::Silence => {
                    Box::pin(self.linger(End::Idle)).await?;
                    return Ok(false);
                }
                Next::Refused(why, no_body) => {
                    Box::pin(self.refuse(*why, no_body)).await?;
                    return Ok(false);
                }
                Next::Head => match self.answer(handler).await? {
                    End::KeepAlive if self.is_greedy() => {
                        Box::pin(self.transport.get_mut().give_way(self.config)).await?;
                    }
                    End::KeepAlive => {}
                    End::Reset => return Ok(false),
                    end => {
                        Box::pin(self.linger(end)).await?;
                        return Ok(false);
                    }
                },
            }
        }
    }

    /// Has the request in hand answered.
    async fn answer<H: Handler>(&mut self, handler: &H) -> io::Result<End> {
        let keep_alive = self.may_go_on();
        let Buffers { head, input, .. } = &mut *self.buffers;
        let mut request = Request::new(head, input, &self.transport, self.config, keep_alive);
        let outcome = handle(handler, &mut request, self.entry).await;
        let end = match request.answer_to(outcome) {
            Ok(Some(response)) => request.finish(&response).await,
            Ok(None) => Ok(request.after_break()),
            Err(error) => {
                self.transport.borrow_mut().flush_beside().await;
                Err(error)
            }
        };
        request.tell();
        end
    }

    /// Counts a request. Whether the connection may go on after it.
    fn may_go_on(&mut self) -> bool {
        let Busy { transport, buffers, entry, config, .. } = self;
        let (wanted, limit) = (buffers.head.keep_alive, config.limits.requests);
        let last = entry.count_request() >= limit;
        if last && wanted {
            transport.get_mut().hit(config, "requests", limit);
        }
        wanted && !last && !entry.leaves.get()
    }

    /// Whether a peer that pipelines without end is to wait for the others now.
    fn is_greedy(&mut self) -> bool {
        let (transport, limit) = (self.transport.get_mut(), self.config.limits.pipelined);
        transport.answered += 1;
        let more = !self.buffers.input.is_empty() || !transport.is_drained();
        let is_greedy = more && transport.answered >= limit;
        if is_greedy {
            transport.hit(self.config, "pipelined", limit);
        }
        is_greedy
    }
}
