//! A request as its handler sees it: the head, the body in pieces, and a streamed answer.
//!
//! It reads and writes through the wire. It may not decide whether the connection goes on.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, ErrorKind};

use super::chunked::{Chunks, Piece};
use super::fields::body_too_long;
use super::form::Form;
use super::head::{self, Framing, Head, Method, Span, Version};
use super::inbox::Inbox;
use super::outlet::{Fault, Outlet};
use super::phase::Phase;
use super::response::Response;
use super::status::Refusal;
use super::whole::{Whole, none_lost};
use super::wire::Wire;
use crate::stream::Stream;

/// What is left of the body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Length(u64),
    Chunks(Chunks),
    End,
}

/// A request, lent to its handler.
pub struct Request<'r, S> {
    pub(crate) head: &'r Head,
    pub(crate) inbox: &'r mut Inbox,
    pub(crate) outlet: Outlet<'r, S>,
    pub(crate) body: Body,
    /// Of the body, read so far.
    pub(crate) read: u64,
    /// Of that, what a `body_to_vec` has and has not given out; an interrupt loses it.
    pub(crate) held: usize,
    /// Whole lines, once the body is over. Most bodies have none.
    pub(crate) trailers: Vec<u8>,
}

impl<S> fmt::Debug for Request<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.head.method)
            .field("path", &self.path())
            .field("query", &self.query())
            .finish_non_exhaustive()
    }
}

impl<S> Request<'_, S> {
    fn head_bytes(&self) -> &[u8] {
        self.inbox.head(self.head.len)
    }

    fn text(&self, span: Span) -> &str {
        std::str::from_utf8(self.inbox.part(span)).expect("a target is ASCII")
    }

    /// [`Request::path`], for who compares bytes: nothing is to be proved of them then.
    pub(crate) fn path_bytes(&self) -> &[u8] {
        self.head.shown_path(self.inbox.part(self.head.path))
    }

    /// What is asked for. HEAD is asked as [`Method::Get`].
    #[must_use]
    pub fn method(&self) -> Method {
        self.head.method
    }

    /// Whether only the head of the answer is wanted. A handler need not care.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.head.no_body
    }

    /// The version that the client speaks.
    #[must_use]
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// The path, as it came: percent signs are not decoded. `*` asks about the server itself, as
    /// OPTIONS does for an absolute target without path and query.
    ///
    /// It is lent by the request, as all that these functions give: copy what is needed
    /// (`to_owned`) before the body is read or the answer begun, which takes the request for
    /// itself.
    #[must_use]
    pub fn path(&self) -> &str {
        std::str::from_utf8(self.path_bytes()).expect("a target is ASCII")
    }

    /// The host that is asked, with its port if it came with one: of an absolute target that of the
    /// target, whatever the Host field says. `None` only for HTTP/1.0; it may be empty.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        match self.text(self.head.authority) {
            "" => self.header("host").map(|host| std::str::from_utf8(host).expect("it is ASCII")),
            host => Some(host),
        }
    }

    /// What follows the question mark, as it came.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.text(self.head.query).strip_prefix('?')
    }

    /// The value of a query's first `name=value` pair of that name, as it came.
    #[must_use]
    pub fn query_value(&self, name: &str) -> Option<&str> {
        head::query_value(self.query()?, name)
    }

    /// The value of the first field called `name`, without white space around it. Searches the
    /// head: one pass a call. Copy it (`to_vec`) before the body is read, as [`Request::path`].
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers(name).next()
    }

    /// The values of all fields called `name`, in order.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        head::values(&self.head_bytes()[self.head.fields as usize..], name)
    }

    /// The value of the first trailer field called `name`, when the whole body was read; before
    /// that there is none. Trailer fields are not among [`Request::headers`], and say nothing about
    /// the framing, the route or who asks (RFC 9110, 6.5.1).
    #[must_use]
    pub fn trailer(&self, name: &str) -> Option<&[u8]> {
        self.trailers(name).next()
    }

    /// The values of all trailer fields called `name`, in order.
    pub fn trailers(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let lines = match self.body {
            Body::End => &self.trailers[..],
            Body::Length(_) | Body::Chunks(_) => &[],
        };
        head::values(lines, name)
    }

    /// Says in what form this request is answered where the server answers for the handler: a body
    /// that was refused, an error, a panic. It is [`Form::Text`] until then.
    pub fn set_form(&mut self, form: Form) {
        self.outlet.form = form;
    }

    /// In what form the server answers for the handler.
    #[must_use]
    pub fn form(&self) -> Form {
        self.outlet.form
    }

    /// How long the whole body is, if the client said so; a body in chunks has no length.
    #[must_use]
    pub fn body_length(&self) -> Option<u64> {
        match self.head.framing {
            Framing::Length(length) => Some(length),
            Framing::Chunked => None,
        }
    }
}

#[allow(clippy::await_holding_refcell_ref, reason = "whoever else looks at the wire only tries")]
impl<'r, S: Stream> Request<'r, S> {
    /// The next piece of the body, as large as it came; `None` at its end.
    ///
    /// Blocks until some of it is there. The first call lets a client go on that waits for a 100.
    ///
    /// # Errors
    ///
    /// `InvalidData` if the body breaks a rule or is too long, `UnexpectedEof` if it breaks off,
    /// `TimedOut` if it does not come or comes too slowly, the stream's own, an interrupt. Pass it
    /// on by `?`: the server answers what is to be answered, and the connection closes. A read that
    /// an interrupt ended took nothing and can be made again. `InvalidInput` after a
    /// [`body_to_vec`](Request::body_to_vec) that lost a part.
    pub async fn read_chunk(&mut self) -> io::Result<Option<&[u8]>> {
        none_lost(self.held)?;
        match self.next_piece().await? {
            Some(place) => Ok(Some(self.inbox.at(place))),
            None => Ok(None),
        }
    }

    /// The rest of the body, at most `most` bytes of it.
    ///
    /// # Errors
    ///
    /// As for [`Request::read_chunk`]; a longer body is answered with 413. An interrupt loses what
    /// had come by then: unless that was nothing, every read of the body after it is an error that
    /// says how much.
    pub async fn body_to_vec(&mut self, most: usize) -> io::Result<Vec<u8>> {
        none_lost(self.held)?;
        const WHY: &str = "the body is too long\n";
        let too_long = || Refusal::over(413, WHY, "body_bytes", most as u64);
        // Before it is asked for, where the head has told.
        if matches!(self.body, Body::Length(left) if left > most as u64) {
            return Err(self.refuse(too_long()));
        }
        let mut body = Vec::new();
        while let Some(place) = self.next_piece().await? {
            let piece = self.inbox.at(place);
            if piece.len() > most - body.len() {
                return Err(self.refuse(too_long()));
            }
            body.extend_from_slice(piece);
            self.held = body.len();
        }
        self.held = 0;
        Ok(body)
    }

    /// The request with the rest of its body, at most `most` bytes, as something that can be taken
    /// to another thread. Copies both.
    ///
    /// # Errors
    ///
    /// As for [`Request::body_to_vec`].
    pub async fn whole(&mut self, most: usize) -> io::Result<Whole> {
        let body = self.body_to_vec(most).await?;
        Ok(Whole::new(*self.head, self.head_bytes().to_vec(), body))
    }

    /// Where in the inbox the next piece is.
    pub(crate) async fn next_piece(&mut self) -> io::Result<Option<(usize, usize)>> {
        loop {
            match self.outlet.fault {
                Some(Fault::Refused(refusal)) => return Err(invalid(refusal)),
                Some(Fault::Lost(_) | Fault::Cut) | None => self.outlet.check()?,
            }
            if let Some(place) = self.buffered()? {
                return Ok(Some(place));
            }
            if matches!(self.body, Body::End) {
                return Ok(None);
            }
            self.refill().await?;
        }
    }

    /// A piece that is in the inbox already.
    pub(crate) fn buffered(&mut self) -> io::Result<Option<(usize, usize)>> {
        let place = match &mut self.body {
            Body::End => return Ok(None),
            Body::Length(left) => {
                let there = self.inbox.rest().len();
                let len = usize::try_from(*left).map_or(there, |left| left.min(there));
                *left -= len as u64;
                if *left == 0 {
                    self.body = Body::End;
                }
                self.inbox.take(0, len)
            }
            Body::Chunks(chunks) => match chunks.next(self.inbox.rest()) {
                Ok(Piece::Data { skip, len }) => self.inbox.take(skip, len),
                Ok(Piece::Trailers { skip, trailers }) => {
                    self.trailers.extend_from_slice(&self.inbox.rest()[trailers..skip]);
                    self.inbox.take(skip, 0);
                    return Ok(None);
                }
                Ok(Piece::End { skip, trailers }) => {
                    self.trailers.extend_from_slice(&self.inbox.rest()[trailers..skip]);
                    self.inbox.take(skip, 0);
                    self.body = Body::End;
                    return Ok(None);
                }
                Err(refusal) => return Err(self.refuse(refusal)),
            },
        };
        self.read += (place.1 - place.0) as u64;
        if self.read > self.outlet.config.limits.body {
            return Err(self.refuse(body_too_long(&self.outlet.config.limits)));
        }
        Ok((place.0 < place.1).then_some(place))
    }

    async fn refill(&mut self) -> io::Result<()> {
        self.outlet.go_on(false);
        let Outlet { wire, config, .. } = self.outlet;
        let room = self.inbox.room_for_body(self.head.len);
        let read = wire.borrow_mut().read(room, Phase::Body, config).await;
        match read {
            Ok(0) => Err(self.refuse(Refusal::bad("the body breaks off\n"))),
            Ok(n) => {
                self.inbox.filled(n);
                Ok(())
            }
            Err(trouble) => Err(self.outlet.lose(trouble)),
        }
    }

    fn refuse(&mut self, refusal: Refusal) -> io::Error {
        // Noted here and not with the answer: it may have begun already, or be over.
        if self.outlet.fault.is_none() {
            self.outlet.fault = Some(Fault::Refused(refusal));
            note_refusal(refusal, self.outlet.wire);
        }
        invalid(refusal)
    }

    /// Begins a streamed answer: its head, with the fields of `response` and without its body.
    ///
    /// With a [length](Response::with_length) the client is told it; else the body goes in chunks,
    /// or, to a client of HTTP/1.0, until the connection closes.
    ///
    /// Many clients send their whole body before they read. A handler that writes meanwhile must
    /// keep reading, or answer when the body is here ([`Request::body_to_vec`]); else both wait
    /// until [`Deadlines::write`](super::Deadlines::write) ends the connection.
    ///
    /// # Errors
    ///
    /// None yet: the head goes out with what is written.
    ///
    /// # Panics
    ///
    /// If an answer has begun already.
    pub async fn start(&mut self, response: Response) -> io::Result<Answer<'_, 'r, S>> {
        self.go_on_before(&response);
        self.outlet.start(&response, self.head, matches!(self.body, Body::End)).await;
        Ok(Answer { request: self })
    }
}

fn invalid(refusal: Refusal) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, refusal.why.trim_end())
}

/// A streamed answer, while it is being written. Return what [`Answer::finish`] gives; an answer
/// that is dropped breaks off, and the connection closes.
#[derive(Debug)]
#[must_use = "an answer that is not finished breaks off"]
pub struct Answer<'a, 'r, S> {
    request: &'a mut Request<'r, S>,
}

impl<'r, S: Stream> Answer<'_, 'r, S> {
    /// Writes a piece of the body. Small pieces are gathered until the task waits.
    ///
    /// Blocks while the peer does not read: that is the back-pressure. An interrupt before a small
    /// piece leaves it unwritten; one within a large piece cuts the answer off.
    ///
    /// # Errors
    ///
    /// The stream's; `ConnectionReset` if the peer takes nothing for too long; `InvalidInput` if it
    /// is more than was announced, `BrokenPipe` if it is 1 MiB to a HEAD; an interrupt.
    pub async fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.request.outlet.write_piece(piece).await
    }

    /// Writes out what was gathered.
    ///
    /// # Errors
    ///
    /// As for [`Answer::write`].
    pub async fn flush(&mut self) -> io::Result<()> {
        self.request.outlet.flush().await
    }

    /// Passes the next piece of the request's body on; false at its end.
    ///
    /// # Errors
    ///
    /// As for [`Answer::write`] and [`Request::read_chunk`].
    pub async fn forward(&mut self) -> io::Result<bool> {
        none_lost(self.request.held)?;
        // First: an interrupt after the piece was taken would lose it.
        if self.request.outlet.is_full() {
            self.flush().await?;
        }
        let Some(place) = self.request.next_piece().await? else { return Ok(false) };
        let Request { outlet, inbox, .. } = &mut *self.request;
        outlet.write_piece(inbox.at(place)).await?;
        Ok(true)
    }

    /// The request, to read more of its body.
    pub fn request(&mut self) -> &mut Request<'r, S> {
        self.request
    }

    /// Ends the body. The handler returns what this gives.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if less was written than was announced.
    pub fn finish(self) -> io::Result<Response> {
        self.request.outlet.finish()?;
        Ok(Response::sent())
    }
}

#[cold]
pub(crate) fn note_refusal<S>(refusal: Refusal, wire: &RefCell<Wire<S>>) {
    if let Some(cap) = refusal.cap {
        wire.borrow().watch.seat.hit(cap.name, cap.limit);
    }
}
