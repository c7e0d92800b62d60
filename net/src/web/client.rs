//! The other end: sends requests on a connection and reads what comes back.
//!
//! As strict as the server is about where a message ends. It may not connect, and no deadline is
//! its own: put [`timeout_after`](traps::timeout_after) around what may take too long.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice};

use httparse::{EMPTY_HEADER, Status};
use traps::Interruptible;

use super::call::Call;
use crate::buffer::BufReader;
use crate::http::chunked::{Chunks, Piece};
use crate::http::head::values;
use crate::http::request::none_lost;
use crate::http::response::write_number;
use crate::limits::{FIELDS, INTERIM, REPLY_HEAD};
use crate::stream::{Stream, look};

/// A connection to a server, for one request after the other.
///
/// ```no_run
/// use std::time::Duration;
/// use net::TcpStream;
/// use net::web::{Call, Client};
/// use traps::timeout_after;
///
/// # async fn example() -> std::io::Result<()> {
/// let mut client = Client::new(TcpStream::connect("localhost:8080").await?);
/// for target in ["/", "/plaintext"] {
///     let call = Call::new("GET", "localhost:8080", target)?;
///     let fetch = async {
///         let mut reply = client.send(&call).await?;
///         println!("{}", reply.status());
///         reply.body_to_vec(1 << 20).await
///     };
///     println!("{:?}", timeout_after(Duration::from_secs(5), fetch).await?);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Client<S> {
    reader: BufReader<S>,
    /// Nothing of an answer is left on it, and the server keeps it.
    open: bool,
    /// A request was sent before.
    used: bool,
}

impl<S> fmt::Debug for Client<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("open", &self.open).finish_non_exhaustive()
    }
}

impl<S: Stream> Client<S> {
    /// On a stream that is connected.
    #[must_use]
    pub fn new(stream: S) -> Client<S> {
        Client { reader: BufReader::new(stream), open: true, used: false }
    }

    /// Whether it can take a request: the answer before was read to its end, and the server did
    /// not say that it closes. It may have closed since, after some time without a request.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Sends a request, whole, and then waits for the head of its answer; interim answers are
    /// passed over. A server that answers a large body while it reads it may wait for room itself.
    ///
    /// # Errors
    ///
    /// `NotConnected` if it is not [open](Client::is_open), or the server has ended it since, or
    /// says what nobody asked: nothing was sent then. `UnexpectedEof` if the server closes
    /// instead of answering; `InvalidData` for an answer that breaks a rule or has too large a
    /// head; the stream's; an interrupt. It is not open any more then.
    pub async fn send(&mut self, call: &Call) -> io::Result<Reply<'_, S>> {
        const GONE: &str = "the server has ended the connection, or says what nobody asked";
        if !std::mem::take(&mut self.open) {
            return Err(io::Error::new(ErrorKind::NotConnected, "the connection is used up"));
        }
        // Before the first a server may say that it has no room.
        if std::mem::replace(&mut self.used, true) {
            // A read may begin with a wait for news; this looks for what came meanwhile.
            match look(&mut self.reader, &mut [0]).await {
                Ok(None) => {}
                Err(error) if error.interrupt().is_some() => return Err(error),
                Ok(Some(_)) | Err(_) => return Err(io::Error::new(ErrorKind::NotConnected, GONE)),
            }
        }
        // A server that refuses a request may close before it has read it, with an answer.
        let written = match self.write(call).await {
            Err(error) if error.interrupt().is_some() => return Err(error),
            written => written,
        };
        for _ in 0..=INTERIM {
            let len = match self.read_head().await {
                Err(error) if error.interrupt().is_none() => {
                    return Err(written.err().unwrap_or(error));
                }
                len => len?,
            };
            let head = self.reader.buffer()[..len].to_vec();
            self.reader.consume(len);
            let (status, body, keep) = read_head(&head, call.is_head)?;
            if status >= 200 {
                let keep = keep && written.is_ok();
                return Ok(Reply { client: self, status, head, body, keep, given: 0, held: 0 });
            }
        }
        Err(invalid("there are too many interim answers"))
    }

    async fn write(&mut self, call: &Call) -> io::Result<()> {
        let mut head = call.head.clone();
        if let Some(body) = &call.body {
            head.extend_from_slice(b"Content-Length: ");
            write_number(&mut head, body.len() as u64, 10);
        }
        head.extend_from_slice(b"\r\n");
        let (mut head, mut body) = (&head[..], call.body.as_deref().unwrap_or_default());
        while !head.is_empty() || !body.is_empty() {
            let stream = self.reader.stream();
            let n = stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)]).await?;
            if n == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            let first = n.min(head.len());
            (head, body) = (&head[first..], &body[n - first..]);
        }
        Ok(())
    }

    /// Reads until a head is whole; gives its length.
    async fn read_head(&mut self) -> io::Result<usize> {
        let mut seen: usize = 0;
        loop {
            let bytes = self.reader.buffer();
            let from = seen.saturating_sub(3);
            if let Some(place) = bytes[from..].windows(4).position(|four| four == b"\r\n\r\n") {
                return Ok(from + place + 4);
            }
            if bytes.len() >= REPLY_HEAD {
                return Err(invalid("the head of the answer is too long"));
            }
            seen = bytes.len();
            if self.reader.fill_more().await? == 0 {
                let why = "the server closed instead of answering";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, why));
            }
        }
    }
}

/// How the end of an answer's body is known.
#[derive(Debug)]
enum Body {
    Length(u64),
    Chunks(Chunks),
    UntilClose,
    End,
}

/// An answer, while its body is read. One that is dropped before its end uses the connection up.
pub struct Reply<'c, S> {
    client: &'c mut Client<S>,
    status: u16,
    head: Vec<u8>,
    body: Body,
    keep: bool,
    /// Of the buffer, handed out by the last call.
    given: usize,
    /// Of the body, what a `body_to_vec` has and has not given out; an interrupt loses it.
    held: usize,
}

impl<S> fmt::Debug for Reply<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

impl<S: Stream> Reply<'_, S> {
    /// The status code, from 200.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Status line and fields as they came, with the empty line.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The value of the first field called `name`.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        values(&self.head, name).next()
    }

    /// The next piece of the body, without its framing; `None` at its end. Blocks until some of it
    /// is there.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if it breaks off, `InvalidData` if its framing is broken, the stream's. An
    /// interrupt: then nothing was read, and it can be called again.
    pub async fn read_chunk(&mut self) -> io::Result<Option<&[u8]>> {
        none_lost(self.held)?;
        self.next_piece().await
    }

    async fn next_piece(&mut self) -> io::Result<Option<&[u8]>> {
        self.client.reader.consume(std::mem::take(&mut self.given));
        loop {
            let bytes = self.client.reader.buffer();
            let (skip, len) = match &mut self.body {
                Body::Length(0) | Body::End => {
                    self.body = Body::End;
                    // Bytes after an answer do not answer a later request (RFC 9112, 6.3).
                    self.client.open = self.keep && self.client.reader.buffer().is_empty();
                    return Ok(None);
                }
                Body::Length(left) => {
                    let len =
                        usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                    *left -= len as u64;
                    (0, len)
                }
                Body::UntilClose => (0, bytes.len()),
                Body::Chunks(chunks) => match chunks.next(bytes) {
                    Ok(Piece::Data { skip, len }) => (skip, len),
                    Ok(Piece::Trailers { skip, .. }) => (skip, 0),
                    Ok(Piece::End { skip, .. }) => {
                        self.body = Body::End;
                        (skip, 0)
                    }
                    Err(refusal) => return Err(invalid(refusal.why.trim_end())),
                },
            };
            self.client.reader.consume(skip);
            if len > 0 {
                self.given = len;
                return Ok(Some(&self.client.reader.buffer()[..len]));
            }
            if !matches!(self.body, Body::End | Body::Length(0)) && self.fill().await? == 0 {
                self.body = Body::End;
            }
        }
    }

    /// Reads more; zero at the end of a body that ends with the connection.
    async fn fill(&mut self) -> io::Result<usize> {
        match self.client.reader.fill().await? {
            0 if matches!(self.body, Body::UntilClose) => Ok(0),
            0 => Err(io::Error::new(ErrorKind::UnexpectedEof, "the answer breaks off")),
            n => Ok(n),
        }
    }

    /// The rest of the body.
    ///
    /// # Errors
    ///
    /// As for [`Reply::read_chunk`]; `InvalidData` if it is longer than `most` bytes. That and an
    /// interrupt lose what had come; every later read says so, as of a
    /// [request](crate::http::Request).
    pub async fn body_to_vec(&mut self, most: usize) -> io::Result<Vec<u8>> {
        none_lost(self.held)?;
        let mut body = Vec::new();
        while let Some(piece) = self.next_piece().await? {
            body.extend_from_slice(piece);
            self.held = body.len();
            if self.held > most {
                return Err(invalid("the answer is too long"));
            }
        }
        self.held = 0;
        Ok(body)
    }
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

/// Status, body, and whether the server keeps the connection.
fn read_head(head: &[u8], no_body: bool) -> io::Result<(u16, Body, bool)> {
    let mut fields = [EMPTY_HEADER; FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let parsed = response.parse(head).map_err(|_| invalid("the head of the answer is malformed"));
    // The parser is content with LF, and would end the head at another place.
    let (Status::Complete(len), Some(status), Some(version)) =
        (parsed?, response.code, response.version)
    else {
        return Err(invalid("the head of the answer is malformed"));
    };
    let mut lines = head.split_inclusive(|byte| *byte == b'\n');
    if len != head.len() || !lines.all(|line| line.ends_with(b"\r\n")) {
        return Err(invalid("a line of the answer's head does not end in CRLF"));
    }
    if status == 101 || !(100..600).contains(&status) {
        return Err(invalid("the server answers with a status that was not asked for"));
    }
    let (mut length, mut chunked, mut close, mut keep_alive) = (None, false, false, false);
    for field in &*response.headers {
        if field.name.eq_ignore_ascii_case("content-length") {
            let text = std::str::from_utf8(field.value).ok();
            let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let found: Option<u64> = digits.and_then(|digits| digits.parse().ok());
            if found.is_none() || length.is_some() {
                return Err(invalid("the length of the answer is malformed"));
            }
            length = found;
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            if chunked || !field.value.eq_ignore_ascii_case(b"chunked") || version == 0 {
                return Err(invalid("the answer has a coding that was not asked for"));
            }
            chunked = true;
        } else if field.name.eq_ignore_ascii_case("connection") {
            for option in field.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                close |= option.eq_ignore_ascii_case(b"close");
                keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }
    let body = match (chunked, length) {
        _ if no_body || status < 200 || matches!(status, 204 | 304) => Body::End,
        (true, Some(_)) => return Err(invalid("the answer has two lengths")),
        (true, None) => Body::Chunks(Chunks::new()),
        (false, Some(length)) => Body::Length(length),
        (false, None) => Body::UntilClose,
    };
    let keep = !close && (version == 1 || keep_alive) && !matches!(body, Body::UntilClose);
    Ok((status, body, keep))
}
