//! A request as its handler sees it: the head, the body in pieces, and the streamed response.
//!
//! A body has a length, or it comes in chunks, which `chunked` decodes. This module reads and
//! writes through the transport. It must not decide whether the connection continues.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use traps::internal::spend_budget;
use traps::{Time, budget};

use super::config::Config;
use super::grammar::chunked::{Chunks, Piece};
use super::grammar::head::{Framing, Refusal, body_too_long, values};
use super::guard::connections::Entry;
use super::guard::memory::Growing;
use super::persists::{Allows, Asks, Next, Rest, Says, persists};
use super::phase::Expired;
use super::request_head::{RequestHead, RequestParts};
use super::response::{ErrorPage, Rejection, Response};
use super::transport::Transport;
use super::writer::{Streamed, Writer};
use crate::limits::READ_BUFFER;
use crate::rate_meter::RateMeter;
use crate::stream::Stream;

/// The rest of the body of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Length(u64),
    Chunks(Chunks),
    End,
    /// The body breaks a rule or a limit, and the client gets a status.
    Refused(Refusal),
}

/// A request, lent to its handler. It dereferences to its [`RequestParts`], and these to its
/// [`RequestHead`].
pub struct Request<'r, S> {
    pub(crate) parts: RequestParts<'r>,
    pub(crate) writer: Writer<'r, S>,
    pub(crate) body: Body,
    /// The rate at which the body arrives.
    meter: RateMeter,
    /// The number of bytes of the body that were read so far.
    pub(crate) read: u64,
    /// The number of bytes of the body that a `body_to_vec` has read and not returned. An interrupt
    /// loses them.
    pub(crate) held: usize,
}

impl<S> fmt::Debug for Request<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("head", &self.parts).finish_non_exhaustive()
    }
}

impl<'r, S> Deref for Request<'r, S> {
    type Target = RequestParts<'r>;

    fn deref(&self) -> &RequestParts<'r> {
        &self.parts
    }
}

impl<'r, S> DerefMut for Request<'r, S> {
    fn deref_mut(&mut self) -> &mut RequestParts<'r> {
        &mut self.parts
    }
}

impl<S> Request<'_, S> {
    /// The value of the first trailer field called `name`. Returns `None` until the whole body has
    /// been read. Trailer fields are not among [`RequestHead::headers`]. They must not affect the
    /// framing, the route or the identity of the client (RFC 9110, 6.5.1).
    #[must_use]
    pub fn trailer(&self, name: &str) -> Option<&[u8]> {
        self.trailers(name).next()
    }

    /// The values of all trailer fields called `name`, in order.
    pub fn trailers(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let lines = match self.body {
            Body::End => self.parts.trailer_lines(),
            Body::Length(_) | Body::Chunks(_) | Body::Refused(_) => &[],
        };
        values(lines, name)
    }

    /// Sets the function that makes the response if the server responds for the handler: to a
    /// refused body, an error or a panic. The default is the sentence as `text/plain`. Can be
    /// called after the failure too. A router sets the function of the route.
    pub fn set_error_page(&mut self, page: ErrorPage) {
        self.writer.error_page = page;
    }

    /// The function that makes the response if the server responds for the handler.
    #[must_use]
    pub fn error_page(&self) -> ErrorPage {
        self.writer.error_page
    }
}

impl<'r, S: Stream> Request<'r, S> {
    /// Makes the response to a [`Rejection`] that a handler returned as its error. So an outer
    /// handler can add fields to the response, or log it.
    ///
    /// # Errors
    ///
    /// Returns any other error as it is, and a rejection after a streamed response has begun.
    pub fn rejected(&self, error: io::Error) -> io::Result<Response> {
        match Rejection::of(&error) {
            Some(rejection) if self.writer.is_open() => Ok(rejection.response(self.error_page())),
            _ => Err(error),
        }
    }

    /// The address of the client, for a log.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.writer.transport.borrow().peer()
    }

    pub(crate) fn now(&self) -> Time {
        self.writer.entry.now()
    }

    pub(super) fn new(
        head: &'r mut RequestHead,
        transport: &'r RefCell<Transport<S>>,
        entry: &'r Entry,
        config: &'r Config,
    ) -> Request<'r, S> {
        let body = match head.head.framing {
            Framing::Length(0) => Body::End,
            Framing::Length(length) => Body::Length(length),
            Framing::Chunked => Body::Chunks(Chunks::new()),
        };
        let writer = Writer::new(transport, entry, config, head.head.expects);
        let meter = RateMeter::default();
        let parts = RequestParts::new(head);
        Request { parts, writer, body, meter, read: 0, held: 0 }
    }
}

#[allow(clippy::await_holding_refcell_ref, reason = "others only try to borrow it")]
impl<'r, S: Stream> Request<'r, S> {
    /// Reads the next piece of the body: the bytes that have arrived. Returns `None` at the end.
    ///
    /// Blocks until some of the body is there. The first call sends a 100 to a client that waits
    /// for it.
    ///
    /// # Errors
    ///
    /// Returns `InvalidData` if the body breaks a rule or is too long, `UnexpectedEof` if it breaks
    /// off, `TimedOut` if it is late or too slow, and the error of a stream that
    /// fails or of an interrupt. Pass the error on by `?`. The server then sends a status if one
    /// can still be sent, and closes the connection. A read that an interrupt ended took nothing
    /// and can be repeated. Returns `InvalidInput` after a [`body_to_vec`](Request::body_to_vec)
    /// that lost a part.
    pub async fn read_chunk(&mut self) -> io::Result<Option<&[u8]>> {
        none_lost(self.held)?;
        match self.next_piece().await? {
            Some(place) => Ok(Some(self.parts.input.at(place))),
            None => Ok(None),
        }
    }

    /// Reads the rest of the body, at most `most` bytes, and no more than the
    /// [limits](super::Limits) of a body and of memory allow.
    ///
    /// Also blocks until there is room in memory. The room is released when the request has been
    /// answered.
    ///
    /// # Errors
    ///
    /// Returns an error as [`Request::read_chunk`] does. A longer body is answered with 413. A body
    /// that finds no room in time is answered with 503. An interrupt loses the bytes that have
    /// arrived by then. If there were any, every later read of the body returns an error that says
    /// how many.
    pub async fn body_to_vec(&mut self, most: usize) -> io::Result<Vec<u8>> {
        none_lost(self.held)?;
        let limits = &self.writer.config.limits;
        let most = (most as u64).min(limits.body).min(limits.memory);
        // Refuse the body before asking for it, if the head has announced its length.
        if matches!(self.body, Body::Length(left) if left > most) {
            return Err(self.refuse(body_too_long(most)));
        }
        let mut growing = Growing::default();
        let body = &mut growing.0;
        while let Some(place) = self.next_piece().await? {
            let len = place.1 - place.0;
            if len as u64 > most - body.len() as u64 {
                return Err(self.refuse(body_too_long(most)));
            }
            // Count the piece before the wait for room, because an interrupt of that wait loses it
            // too.
            self.held = body.len() + len;
            self.make_room(body, self.held, most).await?;
            body.extend_from_slice(self.parts.input.at(place));
            let is_long = body.capacity() >= READ_BUFFER && self.parts.input.is_empty();
            if is_long && matches!(self.body, Body::Length(_)) {
                self.read_rest(body, most).await?;
            }
        }
        self.held = 0;
        if let Some(room) = &self.writer.transport.borrow().room {
            room.complete();
        }
        Ok(std::mem::take(body))
    }

    /// Reads the rest of a body with a length straight into `body`. This saves a copy, and a read
    /// can take more than the input holds.
    async fn read_rest(&mut self, body: &mut Vec<u8>, most: u64) -> io::Result<()> {
        self.writer.go_on(false).await?;
        while let Body::Length(left) = self.body {
            budget().await?;
            self.check_fault()?;
            if self.held == body.len() {
                self.make_room(body, self.held + 1, most).await?;
                body.resize(body.capacity(), 0);
            }
            let room = &mut body[self.held..];
            let len = usize::try_from(left).map_or(room.len(), |left| left.min(room.len()));
            let Writer { transport, config, .. } = self.writer;
            let meter = (&mut self.meter, config.deadlines.body_rate(self.held as u64));
            let read = transport.borrow_mut().read_body(&mut room[..len], meter, config).await;
            let n = self.arrived(read)?;
            self.held += n;
            self.use_up(left, n);
            self.count(n)?;
            // A long read costs as many operations as reads into the input would.
            spend_budget(u32::try_from(n / READ_BUFFER).unwrap_or(u32::MAX));
        }
        body.truncate(self.held);
        Ok(())
    }

    /// Lets `body` grow to `bytes` bytes at least, to twice the size each time, and takes room in
    /// memory for it. Blocks until there is room. A body that fits into a read buffer needs no
    /// room.
    async fn make_room(&mut self, body: &mut Vec<u8>, bytes: usize, most: u64) -> io::Result<()> {
        if bytes <= body.capacity() {
            return Ok(());
        }
        // At most the announced length, if the head has one.
        let most = if let Body::Length(left) = self.body { self.held as u64 + left } else { most };
        let size = (bytes.next_power_of_two() as u64).min(most).max(bytes as u64);
        if size > READ_BUFFER as u64 {
            let Writer { transport, config, .. } = self.writer;
            let mut transport = transport.borrow_mut();
            let until = transport.entry.now() + config.deadlines.body;
            let room = transport.hold(size, until, config).await;
            drop(transport);
            room.map_err(|error| self.expired(error))?;
        }
        body.reserve_exact(size as usize - body.len());
        Ok(())
    }

    /// Whether the stream can send a file without reading it.
    pub(crate) fn sends_files(&self) -> bool {
        self.writer.transport.borrow().sends_files()
    }

    /// Takes room in memory for a buffer of `bytes` bytes that this response uses. Blocks until
    /// there is room. A buffer that is no larger than a read buffer needs no room.
    pub(crate) async fn hold_buffer(&mut self, bytes: usize) -> io::Result<()> {
        if bytes <= READ_BUFFER {
            return Ok(());
        }
        let Writer { transport, config, .. } = self.writer;
        let mut transport = transport.borrow_mut();
        let until = transport.entry.now() + config.deadlines.body;
        let held = transport.hold_buffer(bytes as u64, until, config).await;
        drop(transport);
        held.map_err(|error| self.expired(error))
    }

    /// Takes room in memory for `more` more bytes of such a buffer. Returns false if that needs a
    /// wait.
    pub(crate) fn grow_buffer(&mut self, more: usize) -> bool {
        let Writer { transport, config, .. } = self.writer;
        transport.borrow_mut().grow_buffer(more as u64, config)
    }

    /// Releases the room of `less` bytes of such a buffer.
    pub(crate) fn shrink_buffer(&mut self, less: usize) {
        if let Some(room) = &self.writer.transport.borrow().room {
            room.shrink(room.held() - less as u64);
        }
    }

    /// Waits for the next piece of the body. Returns its place in the input. Each piece costs an
    /// operation of the budget, however small it is, because one read can return thousands of
    /// chunks of one byte.
    pub(crate) async fn next_piece(&mut self) -> io::Result<Option<(usize, usize)>> {
        budget().await?;
        loop {
            self.check_fault()?;
            if let Some(place) = self.buffered()? {
                return Ok(Some(place));
            }
            if matches!(self.body, Body::End) {
                return Ok(None);
            }
            self.refill().await?;
        }
    }

    /// Returns an error if no more of the body can be read.
    fn check_fault(&self) -> io::Result<()> {
        self.writer.check()?;
        match self.body {
            Body::Refused(refusal) => Err(invalid(refusal)),
            _ => Ok(()),
        }
    }

    /// Takes the next piece of the body, if it is already in the input. Returns its place in the
    /// input.
    pub(crate) fn buffered(&mut self) -> io::Result<Option<(usize, usize)>> {
        let place = match &mut self.body {
            Body::End | Body::Refused(_) => return Ok(None),
            &mut Body::Length(left) => {
                let there = self.parts.input.rest().len();
                let len = usize::try_from(left).map_or(there, |left| left.min(there));
                self.use_up(left, len);
                self.parts.input.take(0, len)
            }
            Body::Chunks(chunks) => match chunks.next(self.parts.input.rest()) {
                Ok(Piece::Data { skip, len }) => self.parts.input.take(skip, len),
                Ok(Piece::Trailers { skip, trailers }) => {
                    self.parts.keep_trailers(trailers..skip);
                    self.parts.input.take(skip, 0);
                    return Ok(None);
                }
                Ok(Piece::End { skip, trailers }) => {
                    self.parts.keep_trailers(trailers..skip);
                    self.parts.input.take(skip, 0);
                    self.body = Body::End;
                    return Ok(None);
                }
                Err(refusal) => return Err(self.refuse(refusal)),
            },
        };
        self.count(place.1 - place.0)?;
        Ok((place.0 < place.1).then_some(place))
    }

    /// Takes `len` of the `left` bytes that a body with a length has left.
    fn use_up(&mut self, left: u64, len: usize) {
        self.body = match left - len as u64 {
            0 => Body::End,
            left => Body::Length(left),
        };
    }

    /// Counts `len` bytes of the body that were read. Refuses a body that is too long.
    fn count(&mut self, len: usize) -> io::Result<()> {
        self.read += len as u64;
        let most = self.writer.config.limits.body;
        if self.read > most { Err(self.refuse(body_too_long(most))) } else { Ok(()) }
    }

    async fn refill(&mut self) -> io::Result<()> {
        self.writer.go_on(false).await?;
        let Writer { transport, config, .. } = self.writer;
        let RequestHead { head, input, .. } = &mut *self.parts;
        let room = input.room_for_body(head.len);
        let meter = (&mut self.meter, config.deadlines.body_rate(self.held as u64));
        let read = transport.borrow_mut().read_body(room, meter, config).await;
        let n = self.arrived(read)?;
        self.parts.input.filled(n);
        Ok(())
    }

    /// Returns the number of bytes of a read, or the error to return if the body ends too early.
    fn arrived(&mut self, read: io::Result<usize>) -> io::Result<usize> {
        match read {
            Ok(0) => Err(self.refuse(Refusal::bad("the body breaks off\n"))),
            Ok(n) => Ok(n),
            Err(error) => Err(self.expired(error)),
        }
    }

    /// Turns an error of the transport into the error to return. If the body was too late and a
    /// status can still be sent, refuses the request.
    fn expired(&mut self, error: io::Error) -> io::Error {
        if !self.writer.is_open() {
            return self.writer.lose(error);
        }
        match Expired::refusal(error) {
            Ok(refusal) => io::Error::new(ErrorKind::TimedOut, self.refuse(refusal)),
            Err(error) => self.writer.lose(error),
        }
    }

    /// The rest of the request. The result depends on what the client has announced and not on how
    /// much has arrived, so that the response does not depend on how the body was split. A chunked
    /// body is read up to the bound, and the connection closes if there is more. Until the request
    /// `is_handled`, no body is too long, because the handler can still read it.
    pub(super) fn rest(&self, is_handled: bool) -> Rest {
        match self.body {
            _ if self.writer.check().is_err() => Rest::Broken,
            Body::Refused(_) => Rest::Broken,
            Body::End => Rest::Read,
            _ if self.writer.expects => Rest::Awaited,
            Body::Length(left) if is_handled && left > self.writer.config.limits.drain => {
                Rest::Long
            }
            Body::Length(_) | Body::Chunks(_) => Rest::Fine,
        }
    }

    /// The refusal of the body, if it was refused.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        if let Body::Refused(refusal) = self.body { Some(refusal) } else { None }
    }

    /// Decides whether the connection continues after the response. A decision to close is final,
    /// but a later reason replaces an earlier one. A drain counts only before the head of the
    /// response is written (`tells`), because the head has promised the rest to the client.
    #[inline(always)]
    pub(super) fn decide(&mut self, response: Says, rest: Rest, tells: bool) {
        let Writer { entry, config, leaves, .. } = self.writer;
        // Whether no byte of another request has arrived after this one.
        let is_alone = || !matches!(self.body, Body::End) || self.parts.input.is_empty();
        let server = Allows {
            is_last: entry.requests() >= config.limits.requests,
            leaves,
            drains: tells && config.is_draining() && is_alone(),
        };
        let request = Asks { wants: self.parts.head.keep_alive, rest };
        if let next @ Next::Close(_) = persists(request, response, server) {
            self.writer.next = next;
        }
    }

    fn refuse(&mut self, refusal: Refusal) -> io::Error {
        if self.writer.check().is_ok() && self.refusal().is_none() {
            self.body = Body::Refused(refusal);
            if let Some(cap) = refusal.cap {
                let Writer { transport, config, .. } = self.writer;
                transport.borrow().hit(config, cap.name, cap.limit);
            }
        }
        invalid(refusal)
    }
}

/// Returns an error if `held` is not zero, because a read of a whole body was interrupted or
/// dropped and has lost `held` bytes.
pub(crate) fn none_lost(held: usize) -> io::Result<()> {
    if held == 0 { Ok(()) } else { Err(lost(held)) }
}

#[cold]
fn lost(held: usize) -> io::Error {
    let why = format!("a read of the whole body did not end, and {held} bytes of it are lost");
    io::Error::new(ErrorKind::InvalidInput, why)
}

fn invalid(refusal: Refusal) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, refusal.why.trim_end())
}

// ---- Streamed responses -------------------------------------------------------------------------

/// A streamed response, while it is being written. Return the result of [`BodyWriter::finish`] from
/// the handler. If the `BodyWriter` is dropped, the response breaks off and the connection closes.
#[derive(Debug)]
#[must_use = "an answer that is not finished breaks off"]
pub struct BodyWriter<'a, 'r, S> {
    request: &'a mut Request<'r, S>,
}

impl<'r, S: Stream> Request<'r, S> {
    /// Begins a streamed response: its head, with the fields of `response` and without its body.
    ///
    /// With a [length](Response::with_length), the head announces it. Otherwise the body is sent in
    /// chunks. For a client of HTTP/1.0 it ends when the connection closes.
    ///
    /// Many clients send their whole body before they read. A handler that writes in the meantime
    /// must keep reading, or respond when it has the body ([`Request::body_to_vec`]). Otherwise
    /// both wait until [`Deadlines::write`](super::Deadlines::write) ends the connection.
    ///
    /// # Errors
    ///
    /// Returns an error if the stream has failed, for example while the body was read. The head
    /// goes out with the first piece of the body, [`BodyWriter::flush`] or the end. Until then, if
    /// the handler fails or the body of the request breaks a rule, the client still gets a status.
    ///
    /// # Panics
    ///
    /// If a response has begun already.
    pub async fn start(&mut self, response: Response) -> io::Result<BodyWriter<'_, 'r, S>> {
        self.writer.check()?;
        // A client sends no body after a final head, and a refusal needs none.
        if response.status() < 400 {
            let comes = matches!(self.body, Body::End) || !self.parts.input.rest().is_empty();
            self.writer.go_on(comes).await?;
        }
        let (streamed, field) = self.writer.framing(&response, &self.parts.head);
        let is_unbounded = streamed == Streamed::UntilClose;
        self.decide(Says { closes: response.close, is_unbounded }, self.rest(false), true);
        self.writer.start(&response, &self.parts.head, (streamed, field));
        Ok(BodyWriter { request: self })
    }
}

impl<'r, S: Stream> BodyWriter<'_, 'r, S> {
    /// Writes a piece of the body. Small pieces are gathered until the task waits.
    ///
    /// Blocks while the peer does not read, which is the back-pressure. An interrupt before a small
    /// piece leaves it unwritten. An interrupt within a large piece cuts the response off.
    ///
    /// # Errors
    ///
    /// Returns an error if the stream fails or an interrupt ends the wait; `ConnectionReset` if the
    /// peer takes nothing for too long; `InvalidInput` if the body is longer than announced;
    /// `BrokenPipe` after 1 MiB in response to a HEAD.
    pub async fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.request.writer.write_piece(piece).await
    }

    /// Writes all gathered bytes of the response.
    ///
    /// # Errors
    ///
    /// As for [`BodyWriter::write`].
    pub async fn flush(&mut self) -> io::Result<()> {
        self.request.writer.flush().await
    }

    /// Writes the next piece of the request's body to the response. Returns false at the end of the
    /// body.
    ///
    /// # Errors
    ///
    /// As for [`BodyWriter::write`] and [`Request::read_chunk`].
    pub async fn forward(&mut self) -> io::Result<bool> {
        none_lost(self.request.held)?;
        // Flush first, because an interrupt after the piece was taken would lose it.
        if self.request.writer.is_full() {
            self.request.writer.flush_gathered().await?;
        }
        let Some(place) = self.request.next_piece().await? else { return Ok(false) };
        let Request { writer, parts, .. } = &mut *self.request;
        writer.put_piece(parts.input.at(place)).await?;
        Ok(true)
    }

    /// Returns the request, so that the handler can read more of its body.
    pub fn request(&mut self) -> &mut Request<'r, S> {
        self.request
    }

    /// Ends the body of the response. The handler returns the result.
    ///
    /// # Errors
    ///
    /// Returns `InvalidInput` if the body is shorter than announced.
    pub fn finish(self) -> io::Result<Response> {
        self.request.writer.finish()?;
        Ok(Response::sent())
    }
}
