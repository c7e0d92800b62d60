//! A request as its handler sees it: the head, and the body in pieces.
//!
//! It reads and writes through the transport. It may not decide whether the connection goes on.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, ErrorKind};

use traps::ignore_after;

use super::buffers::Input;
use super::chunked::{Chunks, Piece};
use super::config::Config;
use super::fields::body_too_long;
use super::head::{self, Framing, Head, Method, Span, Version};
use super::memory::Reserved;
use super::status::Refusal;
use super::transport::{Expired, Transport};
use super::writer::{ErrorPage, Fault, Writer};
use crate::pace::Pace;
use crate::stream::Stream;

/// The rest of the body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Length(u64),
    Chunks(Chunks),
    End,
}

/// A request, lent to its handler.
pub struct Request<'r, S> {
    pub(crate) head: &'r Head,
    pub(crate) input: &'r mut Input,
    pub(crate) writer: Writer<'r, S>,
    pub(crate) body: Body,
    /// How fast the body comes.
    pace: Pace,
    /// Bytes a second that the client must send of it.
    rate: u64,
    /// Room in memory for the body.
    reserved: Option<Reserved<'r>>,
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
    pub(crate) fn head_bytes(&self) -> &[u8] {
        self.input.head(self.head.len)
    }

    fn text(&self, span: Span) -> &str {
        std::str::from_utf8(self.input.span(span)).expect("a target is ASCII")
    }

    /// [`Request::path`], for who compares bytes: nothing is to be proved of them then.
    pub(crate) fn path_bytes(&self) -> &[u8] {
        self.head.shown_path(self.input.span(self.head.path))
    }

    /// The method. HEAD is shown as [`Method::Get`].
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
        head::values(&self.head_bytes()[self.head.fields..], name)
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

    /// Sets what makes the answer where the server answers for the handler: to a body that was
    /// refused, an error, a panic. Until then it is the sentence as `text/plain`.
    pub fn set_error_page(&mut self, page: ErrorPage) {
        self.writer.error_page = page;
    }

    /// What makes the answer where the server answers for the handler.
    #[must_use]
    pub fn error_page(&self) -> ErrorPage {
        self.writer.error_page
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

impl<'r, S: Stream> Request<'r, S> {
    pub(super) fn new(
        head: &'r Head,
        input: &'r mut Input,
        transport: &'r RefCell<Transport<S>>,
        config: &'r Config,
        keep_alive: bool,
    ) -> Request<'r, S> {
        let body = match head.framing {
            Framing::Length(0) => Body::End,
            Framing::Length(length) => Body::Length(length),
            Framing::Chunked => Body::Chunks(Chunks::new()),
        };
        let writer = Writer::new(transport, config, keep_alive, head.expects);
        let (pace, rate, trailers) = (Pace::default(), config.deadlines.body_rate, Vec::new());
        let (reserved, read, held) = (None, 0, 0);
        Request { head, input, writer, body, pace, rate, reserved, read, held, trailers }
    }
}

#[allow(clippy::await_holding_refcell_ref, reason = "whoever else looks at it only tries")]
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
            Some(place) => Ok(Some(self.input.at(place))),
            None => Ok(None),
        }
    }

    /// The rest of the body, at most `most` bytes of it, and no more than the server's
    /// [limits](super::Limits) of a body and of memory allow.
    ///
    /// Blocks also until there is room in memory; that is given back when the request has been
    /// answered.
    ///
    /// # Errors
    ///
    /// As for [`Request::read_chunk`]; a longer body is answered with 413, one for which there was
    /// no room in time with 503. An interrupt loses what had come by then: unless that was nothing,
    /// every read of the body after it is an error that says how much.
    pub async fn body_to_vec(&mut self, most: usize) -> io::Result<Vec<u8>> {
        none_lost(self.held)?;
        let limits = &self.writer.config.limits;
        let most = (most as u64).min(limits.body).min(limits.memory);
        // Before it is asked for, where the head has told.
        if matches!(self.body, Body::Length(left) if left > most) {
            return Err(self.refuse(body_too_long(most)));
        }
        self.reserve(most).await?;
        // In one piece, where the head has told: growing would leave holes of as much again.
        let length = if let Body::Length(left) = self.body { left as usize } else { 0 };
        let mut body = Vec::with_capacity(length);
        while let Some(place) = self.next_piece().await? {
            let piece = self.input.at(place);
            if piece.len() as u64 > most - body.len() as u64 {
                return Err(self.refuse(body_too_long(most)));
            }
            body.extend_from_slice(piece);
            self.held = body.len();
        }
        self.held = 0;
        Ok(body)
    }

    /// Waits for room in memory for the rest of the body, which has at most `most` bytes. Whoever
    /// has room sends fast enough to be done with it in time.
    async fn reserve(&mut self, most: u64) -> io::Result<()> {
        let config = self.writer.config;
        let bytes = match self.body {
            Body::Length(left) => left,
            Body::Chunks(_) => most,
            Body::End => 0,
        };
        if bytes == 0 {
            return Ok(());
        }
        let (memory, limit) = (&config.memory, config.limits.memory);
        let seconds = config.deadlines.body_whole.as_secs().max(1);
        self.rate = self.rate.max(bytes / seconds);
        // What an earlier read had, which was interrupted: it would wait for itself.
        (self.reserved, self.pace) = (None, Pace::default());
        self.reserved = match memory.try_reserve(bytes, limit) {
            None => ignore_after(config.deadlines.body, memory.reserve(bytes, limit)).await?,
            reserved => reserved,
        };
        if self.reserved.is_none() {
            const WHY: &str = "there is no room for the body\n";
            return Err(self.refuse(Refusal::over(503, WHY, "memory_bytes", limit)));
        }
        Ok(())
    }

    /// Where in the input the next piece is.
    pub(crate) async fn next_piece(&mut self) -> io::Result<Option<(usize, usize)>> {
        loop {
            match self.writer.fault {
                Some(Fault::Refused(refusal)) => return Err(invalid(refusal)),
                Some(Fault::Lost | Fault::Cut) | None => self.writer.check()?,
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

    /// A piece that is in the input already.
    pub(crate) fn buffered(&mut self) -> io::Result<Option<(usize, usize)>> {
        let place = match &mut self.body {
            Body::End => return Ok(None),
            Body::Length(left) => {
                let there = self.input.rest().len();
                let len = usize::try_from(*left).map_or(there, |left| left.min(there));
                *left -= len as u64;
                if *left == 0 {
                    self.body = Body::End;
                }
                self.input.take(0, len)
            }
            Body::Chunks(chunks) => match chunks.next(self.input.rest()) {
                Ok(Piece::Data { skip, len }) => self.input.take(skip, len),
                Ok(Piece::Trailers { skip, trailers }) => {
                    self.trailers.extend_from_slice(&self.input.rest()[trailers..skip]);
                    self.input.take(skip, 0);
                    return Ok(None);
                }
                Ok(Piece::End { skip, trailers }) => {
                    self.trailers.extend_from_slice(&self.input.rest()[trailers..skip]);
                    self.input.take(skip, 0);
                    self.body = Body::End;
                    return Ok(None);
                }
                Err(refusal) => return Err(self.refuse(refusal)),
            },
        };
        self.read += (place.1 - place.0) as u64;
        if self.read > self.writer.config.limits.body {
            return Err(self.refuse(body_too_long(self.writer.config.limits.body)));
        }
        Ok((place.0 < place.1).then_some(place))
    }

    async fn refill(&mut self) -> io::Result<()> {
        self.writer.go_on(false).await?;
        let Writer { transport, config, .. } = self.writer;
        let room = self.input.room_for_body(self.head.len);
        let pace = (&mut self.pace, self.rate);
        let read = transport.borrow_mut().read_body(room, pace, config).await;
        match read {
            Ok(0) => Err(self.refuse(Refusal::bad("the body breaks off\n"))),
            Ok(n) => {
                self.input.filled(n);
                Ok(())
            }
            Err(error) if Expired::is(&error) && self.writer.is_open() => {
                let refused = self.refuse(Refusal::new(408, "the body took too long\n"));
                Err(io::Error::new(ErrorKind::TimedOut, refused))
            }
            Err(error) => Err(self.writer.lose(error)),
        }
    }

    fn refuse(&mut self, refusal: Refusal) -> io::Error {
        // Noted here and not with the answer: it may have begun already, or be over.
        if self.writer.fault.is_none() {
            self.writer.fault = Some(Fault::Refused(refusal));
            if let Some(cap) = refusal.cap {
                let Writer { transport, config, .. } = self.writer;
                transport.borrow().hit(config, cap.name, cap.limit);
            }
        }
        invalid(refusal)
    }
}

/// Fails if a read of a whole body had so much of it and was ended by an interrupt, or dropped.
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
