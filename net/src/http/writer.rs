//! How an answer goes out: its head, its body in memory, or its body in pieces.
//!
//! The head of an answer in pieces is kept until the first piece or the end, so that what goes
//! wrong before has an answer of its own. It writes through the transport, and may not read.

use std::cell::RefCell;
use std::io::{self, ErrorKind};

use traps::{Interruptible, budget, note_warning};

use super::config::Config;
use super::connections::UntilClose;
use super::gone::Gone;
use super::head::{Head, Version};
use super::response::{BodyField, Response, write_chunk_size};
use super::status::Refusal;
use super::transport::Transport;
use crate::limits::{DISCARDED, GATHER};
use crate::stream::Stream;

/// What an access log shows where no answer was sent: the client has left before.
const NONE_SENT: u16 = 499;

/// Makes the answer that says what went wrong: from a status and a sentence.
pub type ErrorPage = fn(u16, &str) -> Response;

/// The sentence, as `text/plain`.
fn text_page(status: u16, why: &str) -> Response {
    Response::new(status).with_text(why.to_owned())
}

/// Why the connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The peer broke a rule or a limit of the body and is told so.
    Refused(Refusal),
    /// It took too long, has left, or the stream failed: there is nobody to tell.
    Lost,
    /// The handler has let go of a piece of its answer half-way.
    Cut,
}

/// How far a streamed answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streamed {
    /// It has not begun.
    No,
    /// Bytes to come, by the `Content-Length` that was sent.
    Length(u64),
    Chunked,
    /// It ends with the connection.
    UntilClose,
    /// It has no body (HEAD, 204, 304); what is written is thrown away, so many bytes yet.
    Nothing(usize),
    /// It is complete.
    Done,
}

/// Writes the answer to one request.
pub(crate) struct Writer<'r, S> {
    pub(crate) transport: &'r RefCell<Transport<S>>,
    pub(crate) config: &'r Config,
    pub(crate) streamed: Streamed,
    /// The head of a streamed answer of which nothing has gone out.
    kept: Vec<u8>,
    pub(crate) keep_alive: bool,
    /// The client waits for a 100.
    pub(crate) expects: bool,
    pub(crate) fault: Option<Fault>,
    /// Of what the server itself answers.
    pub(crate) error_page: ErrorPage,
    /// What the access log is told: the status, 499 where none was sent.
    pub(crate) status: u16,
    /// And how many bytes of the body were handed to the stream.
    pub(crate) length: u64,
}

impl<'r, S: Stream> Writer<'r, S> {
    pub(crate) fn new(
        transport: &'r RefCell<Transport<S>>,
        config: &'r Config,
        keep_alive: bool,
        expects: bool,
    ) -> Writer<'r, S> {
        Writer {
            transport,
            config,
            streamed: Streamed::No,
            kept: Vec::new(),
            keep_alive,
            expects,
            fault: None,
            error_page: text_page,
            status: NONE_SENT,
            length: 0,
        }
    }
}

#[allow(clippy::await_holding_refcell_ref, reason = "whoever else looks at it only tries")]
impl<S: Stream> Writer<'_, S> {
    /// Whether nothing of the answer has gone out, or been gathered to go out.
    pub(crate) fn is_open(&self) -> bool {
        self.streamed == Streamed::No || !self.kept.is_empty()
    }

    /// Takes a head back that was kept. Whether nothing of an answer has gone out then.
    pub(crate) fn reopen(&mut self) -> bool {
        if self.is_open() {
            self.kept.clear();
            (self.streamed, self.status) = (Streamed::No, NONE_SENT);
        }
        self.is_open()
    }

    /// The bytes to send after a handler ended with `outcome`: `None` for nothing, because the
    /// answer has broken off and the connection closes.
    pub(crate) fn answer_to(
        &mut self,
        outcome: io::Result<Response>,
    ) -> io::Result<Option<Response>> {
        self.reopen();
        let error = match (outcome, self.streamed) {
            (Err(error), _) if self.fault == Some(Fault::Lost) => return Err(error),
            (Ok(_), _) if self.fault == Some(Fault::Lost) => return Ok(None),
            (Ok(response), Streamed::No) => return Ok(Some(response)),
            (Ok(_), Streamed::Done) => return Ok(Some(Response::sent())),
            // It broke off, and the client can tell.
            (Ok(_), _) => return Ok(None),
            (Err(error), _) => error,
        };
        match Gone::of(&error) {
            Some(Gone::Left) => {
                self.fault = Some(Fault::Lost);
                return Ok(None);
            }
            Some(Gone::Late) => {
                let limit = format!("{:?}", self.config.deadlines.handler);
                self.transport.borrow().hit(self.config, "handler_wait", limit);
            }
            Some(Gone::Panicked) | None => {}
        }
        // The client asked for no body, by HEAD: that may be all that is wrong.
        if self.fault.is_none() && is_unwanted(&error) {
            match self.streamed {
                Streamed::Nothing(0) => return Ok(Some(Response::sent())),
                Streamed::Nothing(_) => return Ok(None),
                _ => {}
            }
        }
        // A fault of the connection has no line: a client can bring it about as often as it likes.
        // What is gone has its line already.
        if !matches!(self.fault, Some(Fault::Refused(_))) && Gone::of(&error).is_none() {
            note_warning(format!("a handler failed: {error}"));
        }
        Ok((self.streamed == Streamed::No).then(|| self.page(&error)))
    }

    /// What is answered for a handler that failed.
    fn page(&self, error: &io::Error) -> Response {
        match self.fault {
            Some(Fault::Refused(Refusal { status, why, .. })) => {
                let page = (self.error_page)(status, why);
                if status == 503 { page.ask_again() } else { page }
            }
            _ if Gone::of(error) == Some(Gone::Late) => {
                let late = (self.error_page)(503, "the answer took too long\n");
                late.ask_again().and_close()
            }
            _ => (self.error_page)(500, "something went wrong\n").and_close(),
        }
    }

    /// Nothing more can be done with the stream, unless an interrupt ended the wait: then it did
    /// nothing, and whoever set a timeout around it may go on.
    pub(crate) fn lose(&mut self, error: io::Error) -> io::Error {
        if error.interrupt().is_none() {
            self.fault = Some(Fault::Lost);
        }
        error
    }

    /// Tells a client to go on that waits for it, by a write of its own: a client may take what
    /// comes together with it for one answer. Once, and not after the head of the answer has gone
    /// out; nor where the body comes already: then it has not waited.
    pub(crate) async fn go_on(&mut self, comes: bool) -> io::Result<()> {
        let waits = std::mem::take(&mut self.expects);
        if !waits || comes || !self.is_open() {
            return Ok(());
        }
        self.gather(b"HTTP/1.1 100 Continue\r\n\r\n");
        self.flush_gathered().await
    }

    /// Makes the head of a streamed answer and sees to it how its body will end. `is_read`: of the
    /// request's nothing is left.
    pub(crate) fn start(&mut self, response: &Response, head: &Head, is_read: bool) {
        assert!(self.streamed == Streamed::No, "rule: a request has one answer");
        let nothing = Streamed::Nothing(DISCARDED);
        let (streamed, field) = match (response.length, head.version) {
            _ if !response.has_body() => (nothing, response.no_body_field()),
            (Some(length), _) => (Streamed::Length(length), BodyField::Length(length)),
            (None, Version::Http11) => (Streamed::Chunked, BodyField::Chunked),
            (None, Version::Http10) => (Streamed::UntilClose, BodyField::None),
        };
        let goes_on = self.fault.is_none() && !self.config.is_draining();
        self.keep_alive &= !response.close && streamed != Streamed::UntilClose && goes_on;
        // Whether the body of a client comes that waits yet nobody can say.
        self.keep_alive &= is_read || !self.expects;
        self.refresh_date();
        let version = (self.keep_alive, head.version);
        response.write_head(&mut self.kept, &self.config.date, field, version);
        self.streamed = if head.no_body { nothing } else { streamed };
        self.status = response.status();
    }

    /// Lets the head of a streamed answer go out.
    fn release(&mut self) {
        if !self.kept.is_empty() {
            self.transport.borrow_mut().out.append(&mut self.kept);
            if self.streamed == Streamed::UntilClose {
                self.set_until_close(UntilClose::Started);
            }
        }
    }

    fn set_until_close(&self, state: UntilClose) {
        self.transport.borrow().entry.until_close.set(state);
    }

    /// Gathers a whole answer, but for a body that is too large to be copied. Whether that is all.
    pub(crate) fn gather_answer(
        &mut self,
        response: &Response,
        field: BodyField,
        version: Version,
        body: &[u8],
    ) -> bool {
        self.refresh_date();
        let out = &mut self.transport.borrow_mut().out;
        response.write_head(out, &self.config.date, field, (self.keep_alive, version));
        (self.status, self.length) = (response.status(), body.len() as u64);
        let is_small = body.len() <= GATHER;
        if is_small {
            out.extend_from_slice(body);
        }
        is_small
    }

    /// Before a head is written.
    fn refresh_date(&self) {
        self.config.refresh_date(self.transport.borrow().entry.now());
    }

    /// Whether so much was gathered that it is to be written first.
    pub(crate) fn is_full(&self) -> bool {
        self.transport.borrow().is_full()
    }

    /// Gathers what is small, writes what is large.
    async fn send(&mut self, bytes: &[u8], after: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
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

    /// Writes what is too large to be copied. In a box: few answers are.
    pub(crate) async fn write_large(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Dropped or interrupted half-way, by a timeout of the handler, it leaves the answer cut.
        let before = self.fault.replace(Fault::Cut);
        let mut transport = self.transport.borrow_mut();
        let sent = Box::pin(transport.write_through(bytes, self.config)).await;
        drop(transport);
        sent.map_err(|error| self.lose(error))?;
        self.fault = before;
        Ok(())
    }

    /// Gathers or writes one piece of a streamed body.
    pub(crate) async fn write_piece(&mut self, piece: &[u8]) -> io::Result<()> {
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
                // The client has all that it wants: a handler that would write for ever is told so,
                // as if the client had gone, and meanwhile gives way as if it wrote.
                budget().await?;
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
            Streamed::No | Streamed::Done => unreachable!("an answer writes while it is open"),
        }
    }

    /// Ends a streamed body.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self.streamed {
            Streamed::Length(1..) => return Err(wrong_length("less")),
            _ => self.release(),
        }
        match self.streamed {
            Streamed::Chunked => self.transport.borrow_mut().out.extend_from_slice(b"0\r\n\r\n"),
            Streamed::Length(_) | Streamed::UntilClose | Streamed::Nothing(_) => {}
            Streamed::No | Streamed::Done => unreachable!("an answer is finished once"),
        }
        // An answer that was cut is not complete, whatever was written then.
        if self.check().is_ok() {
            if self.streamed == Streamed::UntilClose {
                self.set_until_close(UntilClose::Complete);
            }
            self.streamed = Streamed::Done;
        }
        Ok(())
    }

    /// Writes out what was gathered, the head included.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        self.release();
        self.flush_gathered().await
    }

    /// Writes out what was gathered, without the head that is kept.
    pub(crate) async fn flush_gathered(&mut self) -> io::Result<()> {
        let flushed = self.transport.borrow_mut().flush(self.config).await;
        flushed.map_err(|error| self.lose(error))
    }

    /// Whether anything can still be sent.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.fault {
            Some(Fault::Lost | Fault::Cut) => Err(ErrorKind::ConnectionAborted.into()),
            Some(Fault::Refused(_)) | None => Ok(()),
        }
    }
}

/// Whether it may be the server's, for a handler that writes a body which nobody wants.
fn is_unwanted(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Unsupported)
}

fn wrong_length(what: &str) -> io::Error {
    let why = format!("{what} was written than the length that was announced");
    io::Error::new(ErrorKind::InvalidInput, why)
}
