//! How an answer goes out: its head, its body in memory, or its body in pieces.
//!
//! The head of an answer in pieces is kept until the first piece or the end, so that what goes
//! wrong before has an answer of its own. It writes through the transport, and may not read.

use std::cell::RefCell;
use std::io::{self, ErrorKind};

use traps::{Interruptible, budget, note_warning};

use super::config::Config;
use super::connections::UntilClose;
use super::deadlines::Phase;
use super::gone::{Gone, is_late};
use super::head::{Head, Version};
use super::response::{BodyField, Response, write_chunk_size};
use super::status::Refusal;
use super::transport::{Transport, Trouble};
use crate::limits::{DISCARDED, GATHER};
use crate::stream::Stream;

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
    /// It took too long, or the stream failed: there is nobody to tell.
    Lost(Option<Phase>),
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
}

impl<'r, S: Stream> Writer<'r, S> {
    pub(crate) fn new(
        transport: &'r RefCell<Transport<S>>,
        config: &'r Config,
        keep_alive: bool,
        expects: bool,
    ) -> Writer<'r, S> {
        let (streamed, fault, error_page) = (Streamed::No, None, text_page as ErrorPage);
        let kept = Vec::new();
        Writer { transport, config, streamed, kept, keep_alive, expects, fault, error_page }
    }
}

#[allow(clippy::await_holding_refcell_ref, reason = "whoever else looks at it only tries")]
impl<S: Stream> Writer<'_, S> {
    /// Whether the handler has left the answer to what it returns.
    #[inline]
    pub(crate) fn is_untouched(&self) -> bool {
        self.fault.is_none() && self.streamed == Streamed::No
    }

    /// Whether nothing of the answer has gone out, or been gathered to go out.
    pub(crate) fn is_open(&self) -> bool {
        self.streamed == Streamed::No || !self.kept.is_empty()
    }

    /// The bytes to send after a handler ended with `outcome`: `None` for nothing, because the
    /// answer has broken off and the connection closes [so](super::Request::after_break).
    pub(crate) fn judge(
        &mut self,
        outcome: io::Result<Response>,
    ) -> Result<Option<Response>, Trouble> {
        if !self.kept.is_empty() {
            self.kept.clear();
            self.streamed = Streamed::No;
        }
        Ok(match (outcome, self.fault, self.streamed) {
            (Err(error), ..) if is_from_outside(&error) => return Err(error.into()),
            (_, Some(Fault::Lost(Some(phase))), _) => return Err(Trouble::Expired(phase)),
            (Err(error), Some(Fault::Lost(None)), _) => return Err(error.into()),
            (Ok(_), Some(Fault::Lost(None)), _) => None,
            (Ok(response), _, Streamed::No) => Some(response),
            (Ok(_), _, Streamed::Done) => Some(Response::sent()),
            (Err(_), Some(Fault::Refused(refusal)), Streamed::No) => {
                Some((self.error_page)(refusal.status, refusal.why))
            }
            (Err(error), None, Streamed::No) if is_late(&error) => {
                let late = (self.error_page)(503, "the answer took too long\n");
                Some(late.ask_again().and_close())
            }
            (outcome @ Err(_), fault @ None, Streamed::No) => {
                note_own(&outcome, fault);
                Some(self.broken())
            }
            (Err(error), None, Streamed::Nothing(0)) if is_unwanted(&error) => {
                Some(Response::sent())
            }
            // The client asked for no body, by HEAD: that may be all that is wrong.
            (Err(error), None, Streamed::Nothing(_)) if is_unwanted(&error) => None,
            // It broke off, and the client can tell, unless it wanted nothing of it.
            (outcome, fault, _) => {
                note_own(&outcome, fault);
                None
            }
        })
    }

    /// The answer of a handler that failed.
    #[cold]
    pub(crate) fn broken(&self) -> Response {
        (self.error_page)(500, "something went wrong\n").and_close()
    }

    /// Nothing more can be done with the stream, unless an interrupt ended the wait: then it did
    /// nothing, and whoever set a timeout around it may go on.
    pub(crate) fn lose(&mut self, trouble: Trouble) -> io::Error {
        let (phase, error) = match trouble {
            // The stream was reset then.
            Trouble::Expired(Phase::Write) => {
                (Some(Phase::Write), ErrorKind::ConnectionReset.into())
            }
            Trouble::Expired(phase) => (Some(phase), ErrorKind::TimedOut.into()),
            Trouble::Failed(error) => (None, error),
        };
        if error.interrupt().is_none() {
            self.fault = Some(Fault::Lost(phase));
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
    pub(crate) async fn start(&mut self, response: &Response, head: &Head, is_read: bool) {
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
    }

    /// Lets the head of a streamed answer go out.
    fn release(&mut self) {
        if !self.kept.is_empty() {
            self.transport.borrow_mut().out.append(&mut self.kept);
            if self.streamed == Streamed::UntilClose {
                self.set_until_close(UntilClose::Begun);
            }
        }
    }

    fn set_until_close(&self, state: UntilClose) {
        self.transport.borrow().entry.until_close.set(state);
    }

    /// Before a head is written.
    #[inline]
    pub(crate) fn refresh_date(&self) {
        self.transport.borrow().entry.refresh_date(self.config);
    }

    /// Gathers the head of the answer, and what is to follow it at once.
    #[inline(always)]
    pub(crate) fn write_head(
        &mut self,
        response: &Response,
        field: BodyField,
        version: Version,
        then: &[u8],
    ) {
        let out = &mut self.transport.borrow_mut().out;
        response.write_head(out, &self.config.date, field, (self.keep_alive, version));
        out.extend_from_slice(then);
    }

    /// Whether so much was gathered that it is to be written first.
    pub(crate) fn is_full(&self) -> bool {
        self.transport.borrow().is_full()
    }

    /// Gathers what is small, writes what is large.
    pub(crate) async fn send(&mut self, bytes: &[u8], after: &[u8]) -> io::Result<()> {
        if bytes.len() > GATHER {
            self.write_large(bytes).await?;
        } else {
            self.gather(bytes);
        }
        self.gather(after);
        Ok(())
    }

    pub(crate) fn gather(&mut self, bytes: &[u8]) {
        self.transport.borrow_mut().out.extend_from_slice(bytes);
    }

    /// Writes what is too large to be copied. In a box: few answers are.
    pub(crate) async fn write_large(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Dropped or interrupted half-way, by a timeout of the handler, it leaves the answer cut.
        let before = self.fault.replace(Fault::Cut);
        let mut transport = self.transport.borrow_mut();
        let sent = Box::pin(transport.write_through(bytes, self.config)).await;
        drop(transport);
        sent.map_err(|trouble| self.lose(trouble))?;
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
        flushed.map_err(|trouble| self.lose(trouble))
    }

    /// Whether anything can still be sent.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.fault {
            Some(Fault::Lost(_) | Fault::Cut) => Err(ErrorKind::ConnectionAborted.into()),
            Some(Fault::Refused(_)) | None => Ok(()),
        }
    }
}

/// Whether an interrupt from around the connection ended the handler. A timeout that it has set
/// itself, or the cancellation of another task, is a failure of its own where it passes it on.
fn is_from_outside(error: &io::Error) -> bool {
    error.interrupt().is_some_and(|interrupt| !interrupt.has_left())
}

/// Whether it may be the server's, for a handler that writes a body which nobody wants.
fn is_unwanted(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Unsupported)
}

/// A line for an error of the handler's own. A fault of the connection has none: a client can bring
/// it about as often as it likes.
#[cold]
fn note_own(outcome: &io::Result<Response>, fault: Option<Fault>) {
    let (Err(error), None | Some(Fault::Cut)) = (outcome, fault) else { return };
    // Each of these has its line already.
    if Gone::of(error).is_none() {
        note_warning(format!("a handler failed: {error}"));
    }
}

fn wrong_length(what: &str) -> io::Error {
    let why = format!("{what} was written than the length that was announced");
    io::Error::new(ErrorKind::InvalidInput, why)
}
