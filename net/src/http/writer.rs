//! How a response goes out: the head, a body in memory, a body in pieces.
//!
//! A [`Writer`] writes one response through the transport. The head of a streamed response is kept
//! until the first piece of the body or the end. If something fails before that, the client still
//! gets a separate response whose status reports the failure.
//!
//! This module writes. It must not read.

use std::cell::RefCell;
use std::io::{self, ErrorKind};

use traps::{Interruptible, budget};

use super::config::Config;
use super::grammar::head::{Head, Version};
use super::guard::connections::{Entry, UntilClose};
use super::persists::Next;
use super::response::{BodyField, ErrorPage, Response, text_page, write_chunk_size};
use super::transport::Transport;
use crate::limits::{DISCARDED, GATHER};
use crate::record::Handle;
use crate::stream::Stream;

/// The progress of the response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streamed {
    /// The response is not streamed, or not yet.
    No,
    /// The response has a `Content-Length`. This many bytes of the body are left to write.
    Length(u64),
    Chunked,
    /// The body ends with the connection.
    UntilClose,
    /// The response has no body (HEAD, 204, 205, 304). If the handler still writes a body, up to
    /// this many bytes are thrown away.
    Nothing(usize),
    /// The response is complete.
    Done,
    /// The handler dropped the write of a piece half-way.
    Cut,
    /// The peer took too long or has left, or the stream failed. Nothing more reaches the peer.
    Lost,
}

/// The beginning of a streamed response that has no body.
const NOTHING: Streamed = Streamed::Nothing(DISCARDED);

/// The duplicate of the socket that a job has. A job that is abandoned keeps it and could go on
/// sending after the connection is gone, so the drop of this value ends the stream.
struct Lent<'t, S: Stream> {
    transport: &'t RefCell<Transport<S>>,
    is_back: bool,
}

impl<S: Stream> Drop for Lent<'_, S> {
    fn drop(&mut self) {
        if !self.is_back
            && let Ok(mut transport) = self.transport.try_borrow_mut()
        {
            // The peer finds that the response is shorter than its length.
            let _ = transport.shutdown();
        }
    }
}

/// A writer of the response to one request.
pub(crate) struct Writer<'r, S> {
    pub(crate) transport: &'r RefCell<Transport<S>>,
    pub(crate) entry: &'r Entry,
    pub(crate) config: &'r Config,
    pub(crate) streamed: Streamed,
    /// The head of a streamed response, until it joins the gathered bytes.
    kept: Vec<u8>,
    /// Whether the connection was to leave when the request began. A client that leaves later may
    /// only have closed its sending side, and reads the response.
    pub(crate) leaves: bool,
    /// The fate of the connection after the response, as far as it is decided.
    pub(crate) next: Next,
    /// Whether the client waits for a `100 Continue`.
    pub(crate) expects: bool,
    /// The function that makes the response if the server responds for the handler.
    pub(crate) error_page: ErrorPage,
    /// The status of a streamed response.
    status: u16,
}

impl<'r, S: Stream> Writer<'r, S> {
    pub(crate) fn new(
        transport: &'r RefCell<Transport<S>>,
        entry: &'r Entry,
        config: &'r Config,
        expects: bool,
    ) -> Writer<'r, S> {
        Writer {
            transport,
            entry,
            config,
            streamed: Streamed::No,
            kept: Vec::new(),
            leaves: entry.leaves.get(),
            next: Next::Continue,
            expects,
            error_page: text_page,
            status: 0,
        }
    }
}

#[allow(clippy::await_holding_refcell_ref, reason = "others only try to borrow it")]
impl<S: Stream> Writer<'_, S> {
    /// Whether no byte of a streamed response has gone out, or been gathered to go out.
    pub(crate) fn is_open(&self) -> bool {
        self.streamed == Streamed::No || !self.kept.is_empty()
    }

    /// Drops the head of a streamed response if it is still kept. Returns whether no byte of a
    /// streamed response has gone out.
    pub(crate) fn reopen(&mut self) -> bool {
        if self.is_open() {
            self.kept.clear();
            if self.streamed != Streamed::Lost {
                self.streamed = Streamed::No;
            }
        }
        self.is_open()
    }

    /// Notes that the stream is lost, unless `error` is an interrupt. An interrupted wait did
    /// nothing, and the handler that set a timeout around it may continue.
    pub(crate) fn lose(&mut self, error: io::Error) -> io::Error {
        if error.interrupt().is_none() {
            self.streamed = Streamed::Lost;
        }
        error
    }

    /// Sends `100 Continue` to a client that waits for it. Uses a separate write, because a client
    /// may take the 100 and the bytes that arrive with it for one response. Sends the 100 at most
    /// once, before the head of the response. If the body is already arriving (`comes`), sends
    /// none, because the client has not waited.
    pub(crate) async fn go_on(&mut self, comes: bool) -> io::Result<()> {
        let waits = std::mem::take(&mut self.expects);
        if !waits || comes || !self.is_open() {
            return Ok(());
        }
        self.gather(b"HTTP/1.1 100 Continue\r\n\r\n");
        self.flush_gathered().await
    }

    /// Decides how the body of a streamed response will end.
    pub(crate) fn framing(&self, response: &Response, head: &Head) -> (Streamed, BodyField) {
        assert!(self.streamed == Streamed::No, "rule: a request has one answer");
        match (response.length, head.version) {
            _ if !response.has_body() => (NOTHING, response.no_body_field()),
            (Some(length), _) => (Streamed::Length(length), BodyField::Length(length)),
            (None, Version::Http11) => (Streamed::Chunked, BodyField::Chunked),
            (None, Version::Http10) => (Streamed::UntilClose, BodyField::None),
        }
    }

    /// Makes the head of a streamed response with the given framing.
    pub(crate) fn start(
        &mut self,
        response: &Response,
        head: &Head,
        (streamed, field): (Streamed, BodyField),
    ) {
        self.refresh_date();
        let goes_on = (self.next == Next::Continue, head.version);
        response.write_head(&mut self.kept, &self.config.date, field, goes_on);
        self.streamed = if head.no_body { NOTHING } else { streamed };
        self.status = response.status();
    }

    /// Moves the kept head of a streamed response to the gathered bytes.
    fn release(&mut self) {
        if !self.kept.is_empty() {
            let mut transport = self.transport.borrow_mut();
            transport.begin_response(self.status);
            transport.out.append(&mut self.kept);
            drop(transport);
            if self.streamed == Streamed::UntilClose {
                self.set_until_close(UntilClose::Started);
            }
        }
    }

    fn set_until_close(&self, state: UntilClose) {
        self.entry.until_close.set(state);
    }

    /// Gathers a whole response, except a body that is too large to copy. Returns whether the body
    /// was gathered, too.
    pub(crate) fn gather_answer(
        &mut self,
        response: &Response,
        field: BodyField,
        version: Version,
        body: &[u8],
    ) -> bool {
        self.refresh_date();
        let mut transport = self.transport.borrow_mut();
        transport.begin_response(response.status());
        transport.count_body(body.len());
        let Transport { out, room, .. } = &mut *transport;
        if let Some(room) = room {
            // The body of the request has been dropped, except the bytes that the response is made
            // of.
            room.complete();
            room.shrink(body.len() as u64);
        }
        let goes_on = (self.next == Next::Continue, version);
        response.write_head(out, &self.config.date, field, goes_on);
        let is_small = body.len() <= GATHER;
        if is_small {
            out.extend_from_slice(body);
        }
        is_small
    }

    /// Refreshes the cached date, before a head is written.
    fn refresh_date(&self) {
        self.config.refresh_date(self.entry.now());
    }

    /// Whether the gathered bytes must be written before more is gathered.
    pub(crate) fn is_full(&self) -> bool {
        self.transport.borrow().is_full()
    }

    /// Gathers a small piece of the body, or writes a large piece. Then gathers the bytes `after`.
    async fn send(&mut self, bytes: &[u8], after: &[u8]) -> io::Result<()> {
        self.transport.borrow_mut().count_body(bytes.len());
        if bytes.len() > GATHER {
            self.write_large(bytes).await?;
        } else {
            self.gather(bytes);
        }
        self.gather(after);
        Ok(())
    }

    fn gather(&mut self, bytes: &[u8]) {
        self.transport.borrow_mut().out.extend_from_slice(bytes);
    }

    /// Writes a piece that is too large to copy, after the gathered bytes. The write is boxed,
    /// because few responses have such a piece.
    pub(crate) async fn write_large(&mut self, bytes: &[u8]) -> io::Result<()> {
        // If a timeout of the handler drops or interrupts this write half-way, the response stays
        // cut.
        let before = std::mem::replace(&mut self.streamed, Streamed::Cut);
        let mut transport = self.transport.borrow_mut();
        let sent = Box::pin(transport.write_through(bytes, self.config)).await;
        drop(transport);
        sent.map_err(|error| self.lose(error))?;
        self.streamed = before;
        Ok(())
    }

    /// Sends a `part` of a file, its offset and length, after the gathered bytes. `job` does so on
    /// another thread, and gets a duplicate of the socket. Returns what `job` returns, with the
    /// number of bytes that were sent.
    pub(crate) async fn send_file<T>(
        &mut self,
        part: (u64, usize),
        job: impl AsyncFnOnce(Handle<'c'>) -> io::Result<(T, io::Result<usize>)>,
    ) -> io::Result<(T, io::Result<usize>)> {
        self.check()?;
        budget().await?;
        self.release();
        let lent = self.transport.borrow_mut().lend(self.config).await;
        let socket = lent.map_err(|error| self.lose(error))?;
        // As in `write_large`: if the job is abandoned, it is not known how much it sends.
        let before = std::mem::replace(&mut self.streamed, Streamed::Cut);
        let mut lent = Lent { transport: self.transport, is_back: false };
        let (value, sent) = job(socket).await?;
        lent.is_back = true;
        self.streamed = before;
        let mut transport = self.transport.borrow_mut();
        let sent = transport.sent_file(part, sent);
        if let (Ok(n), Streamed::Length(left)) = (&sent, &mut self.streamed) {
            *left -= *n as u64;
            transport.count_body(*n);
        }
        drop(transport);
        Ok((value, sent))
    }

    /// Gathers or writes one piece of a streamed body. Each piece costs an operation of the budget,
    /// however small it is, because a handler can make thousands of pieces before they fill a
    /// buffer.
    pub(crate) async fn write_piece(&mut self, piece: &[u8]) -> io::Result<()> {
        self.check()?;
        budget().await?;
        self.put_piece(piece).await
    }

    /// Gathers or writes one piece of a streamed body, which has already cost its operation.
    pub(crate) async fn put_piece(&mut self, piece: &[u8]) -> io::Result<()> {
        self.check()?;
        if self.is_full() {
            self.flush_gathered().await?;
        }
        if piece.is_empty() {
            return Ok(());
        }
        self.release();
        match &mut self.streamed {
            Streamed::Nothing(left) => {
                // The client has everything that it asked for. A handler that would write forever
                // gets an error, as if the client had left.
                *left = left.saturating_sub(piece.len());
                if *left == 0 { Err(ErrorKind::BrokenPipe.into()) } else { Ok(()) }
            }
            Streamed::Length(left) => match left.checked_sub(piece.len() as u64) {
                Some(rest) => {
                    *left = rest;
                    self.send(piece, b"").await
                }
                None => Err(wrong_length("more")),
            },
            Streamed::UntilClose => self.send(piece, b"").await,
            Streamed::Chunked => {
                write_chunk_size(&mut self.transport.borrow_mut().out, piece.len());
                self.send(piece, b"\r\n").await
            }
            _ => unreachable!("an answer writes while it is open"),
        }
    }

    /// Ends a streamed body.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self.streamed {
            Streamed::Length(1..) => return Err(wrong_length("less")),
            // A response that was cut is never complete, even if more was written later.
            Streamed::Cut | Streamed::Lost => return Ok(()),
            _ => self.release(),
        }
        match self.streamed {
            Streamed::Chunked => self.gather(b"0\r\n\r\n"),
            Streamed::UntilClose => self.set_until_close(UntilClose::Complete),
            Streamed::Length(_) | Streamed::Nothing(_) => {}
            _ => unreachable!("an answer is finished once"),
        }
        self.streamed = Streamed::Done;
        Ok(())
    }

    /// Writes all gathered bytes, and the head if it is still kept.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        self.release();
        let flushed = self.transport.borrow_mut().flush_through(self.config).await;
        flushed.map_err(|error| self.lose(error))
    }

    /// Writes all gathered bytes, but no head that is still kept.
    pub(crate) async fn flush_gathered(&mut self) -> io::Result<()> {
        let flushed = self.transport.borrow_mut().flush(self.config).await;
        flushed.map_err(|error| self.lose(error))
    }

    /// Returns an error if no more bytes can be sent.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.streamed {
            Streamed::Cut | Streamed::Lost => Err(ErrorKind::ConnectionAborted.into()),
            _ => Ok(()),
        }
    }
}

fn wrong_length(what: &str) -> io::Error {
    let why = format!("{what} was written than the length that was announced");
    io::Error::new(ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use kernel::{Kernel, Sim};
    use traps::{Time, clock, sleep, spawn, timeout_after};

    use super::*;
    use crate::http::{Config, Handler, Request, serve_connection};
    use crate::pipe::duplex;

    const SECOND: Duration = Duration::from_secs(1);

    struct Abandons;

    impl Handler for Abandons {
        async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
            let mut body = request.start(Response::new(200).with_length(10)).await?;
            let job = async |_| -> io::Result<((), io::Result<usize>)> { pending().await };
            let sent = body.request().writer.send_file((0, 10), job);
            assert!(timeout_after(SECOND, sent).await.is_err());
            sleep(9 * SECOND).await?;
            Err(io::Error::other("the file was not sent"))
        }
    }

    #[test]
    fn a_stream_ends_as_soon_as_a_job_that_may_still_send_is_abandoned() {
        let (text, at) = Kernel::new(Sim::new())
            .run(async {
                let (mut client, server) = duplex(1024);
                let serving =
                    async move { serve_connection(server, &Abandons, &Config::default()).await };
                let _serving = spawn("server", serving).await;
                client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
                let mut text = String::new();
                client.read_to_string(&mut text, 1024).await.unwrap();
                (text, clock().await)
            })
            .unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK") && text.ends_with("\r\n\r\n"), "{text}");
        assert_eq!(at, Time::ZERO + SECOND);
    }
}
