//! The HTTP client: sends requests on a connection, and reads the responses.
//!
//! The client is as strict as the server about where a message ends. This module must not connect,
//! and sets no deadlines: put a [`timeout_after`](traps::timeout_after) around calls that may take
//! too long.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice};

use traps::Interruptible;

use super::client_request::ClientRequest;
use crate::buffer::BufReader;
use crate::http::Version;
use crate::http::grammar::chunked::{Chunks, Piece};
use crate::http::grammar::head::{self, HeadLines, Refusal, Stop, check, list, values, wants_more};
use crate::http::request::none_lost;
use crate::http::response::write_number;
use crate::limits::{FIELDS, INTERIM, REPLY_HEAD};
use crate::stream::{Stream, look};

/// A connection to a server, for requests one after the other.
///
/// ```no_run
/// use std::time::Duration;
/// use net::TcpStream;
/// use net::web::{ClientRequest, Client};
/// use traps::timeout_after;
///
/// # async fn example() -> std::io::Result<()> {
/// let mut client = Client::new(TcpStream::connect("localhost:8080").await?);
/// for target in ["/", "/plaintext"] {
///     let request = ClientRequest::new("GET", "localhost:8080", target)?;
///     let fetch = async {
///         let mut response = client.send(&request).await?;
///         println!("{}", response.status());
///         response.body_to_vec(1 << 20).await
///     };
///     println!("{:?}", timeout_after(Duration::from_secs(5), fetch).await?);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Client<S> {
    reader: BufReader<S>,
    /// Whether the connection can take a request: the last response was read to its end, and the
    /// server keeps the connection.
    open: bool,
    /// Whether a request was sent on this connection before.
    used: bool,
}

impl<S> fmt::Debug for Client<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("open", &self.open).finish_non_exhaustive()
    }
}

impl<S: Stream> Client<S> {
    /// Makes a client on a connected stream.
    #[must_use]
    pub fn new(stream: S) -> Client<S> {
        Client { reader: BufReader::new(stream), open: true, used: false }
    }

    /// Returns whether the connection can take a request: the last response was read to its end,
    /// and the server did not announce a close. The server may have closed it since then, after
    /// some time without a request.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Sends a whole request, and then waits for the header section of its response. Skips interim
    /// responses. The whole request is sent first, so if the server sends a large response while it
    /// reads a large body, both can wait forever for room.
    ///
    /// # Errors
    ///
    /// Returns `NotConnected` if the connection is not [open](Client::is_open), or the server has
    /// closed it or has sent bytes that answer no request. In these cases nothing was sent. Returns
    /// `UnexpectedEof` if the server closes without a response, `InvalidData` if the response
    /// breaks a rule or its header section is too long, an error of the stream, or an interrupt.
    /// After an error, the connection is not open any more.
    pub async fn send(&mut self, request: &ClientRequest) -> io::Result<ClientResponse<'_, S>> {
        const GONE: &str =
            "the server has closed the connection, or has sent bytes that answer no request";
        if !std::mem::take(&mut self.open) {
            return Err(io::Error::new(ErrorKind::NotConnected, "the connection is used up"));
        }
        // Skip this before the first request, because a server that has no room may send a response
        // at once.
        if std::mem::replace(&mut self.used, true) {
            // Look for bytes that have arrived. A read could begin with a wait.
            match look(&mut self.reader, &mut [0]).await {
                Ok(None) => {}
                Err(error) if error.interrupt().is_some() => return Err(error),
                Ok(Some(_)) | Err(_) => return Err(io::Error::new(ErrorKind::NotConnected, GONE)),
            }
        }
        // A server that refuses a request may send a response and close before it has read all of
        // it.
        let written = match self.write(request).await {
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
            let head = unfolded(&self.reader.buffer()[..len]);
            self.reader.consume(len);
            let parsed = parse_head(&head, request.is_head);
            let (status, body, keep) = parsed.map_err(|stop| match stop {
                Stop::Refused(refusal) => invalid(refusal.why.trim_end()),
                Stop::Partial => unreachable!("the header section is whole"),
            })?;
            if status >= 200 {
                let keep = keep && written.is_ok();
                return Ok(ClientResponse {
                    client: self,
                    status,
                    head,
                    body,
                    keep,
                    given: 0,
                    held: 0,
                });
            }
        }
        Err(invalid("there are too many interim responses"))
    }

    async fn write(&mut self, request: &ClientRequest) -> io::Result<()> {
        let mut head = request.head.clone();
        if let Some(body) = &request.body {
            head.extend_from_slice(b"Content-Length: ");
            write_number(&mut head, body.len() as u64, 10);
        }
        head.extend_from_slice(b"\r\n");
        let (mut head, mut body) = (&head[..], request.body.as_deref().unwrap_or_default());
        while !head.is_empty() || !body.is_empty() {
            let stream = self.reader.stream();
            let n = stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)]).await?;
            if n == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            let first = n.min(head.len());
            (head, body) = (&head[first..], &body[n - first..]);
        }
        self.reader.flush().await
    }

    /// Reads until the header section is complete, and returns its length.
    async fn read_head(&mut self) -> io::Result<usize> {
        let mut seen: usize = 0;
        loop {
            let bytes = self.reader.buffer();
            let from = seen.saturating_sub(3);
            if let Some(place) = bytes[from..].windows(4).position(|four| four == b"\r\n\r\n") {
                return Ok(from + place + 4);
            }
            if bytes.len() >= REPLY_HEAD {
                return Err(invalid("the header section of the response is too long"));
            }
            seen = bytes.len();
            if self.reader.fill_more().await? == 0 {
                let why = "the server closed without a response";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, why));
            }
        }
    }
}

/// The rule by which a body ends.
#[derive(Debug)]
enum BodyEnd {
    Length(u64),
    Chunks(Chunks),
    UntilClose,
    End,
}

/// A response whose body is being read. If it is dropped before the end of the body, the connection
/// cannot be used again.
pub struct ClientResponse<'c, S> {
    client: &'c mut Client<S>,
    status: u16,
    head: Vec<u8>,
    body: BodyEnd,
    keep: bool,
    /// The number of bytes of the buffer that the last read of the body returned.
    given: usize,
    /// The number of bytes of the body that `body_to_vec` has taken and not returned. An interrupt
    /// loses them.
    held: usize,
}

impl<S> fmt::Debug for ClientResponse<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

impl<S: Stream> ClientResponse<'_, S> {
    /// Returns the status code, from 200 to 599. A code outside of 100 to 599 is invalid and
    /// becomes 500, because a client should treat it as an error of the server (RFC 9110, 15).
    /// [`ClientResponse::head`] contains the original.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the status line and the fields as received, with the empty line. A field that was
    /// folded into several lines is in one line.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the value of the first field with this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        values(&self.head, name).next()
    }

    /// Returns the next piece of the body, without its framing, or `None` at the end of the body.
    /// Blocks until bytes have arrived.
    ///
    /// # Errors
    ///
    /// Returns `UnexpectedEof` if the body breaks off, `InvalidData` if its framing is broken, or
    /// an error of the stream. Returns an interrupt if one ends the wait; nothing was read then,
    /// and the call can be repeated.
    pub async fn read_chunk(&mut self) -> io::Result<Option<&[u8]>> {
        none_lost(self.held)?;
        self.next_piece().await
    }

    async fn next_piece(&mut self) -> io::Result<Option<&[u8]>> {
        self.client.reader.consume(std::mem::take(&mut self.given));
        // One read can return thousands of chunks of one byte.
        traps::budget().await?;
        loop {
            let bytes = self.client.reader.buffer();
            let (skip, len) = match &mut self.body {
                BodyEnd::Length(0) | BodyEnd::End => {
                    self.body = BodyEnd::End;
                    // Bytes after a response do not answer a later request (RFC 9112, 6.3).
                    self.client.open = self.keep && self.client.reader.buffer().is_empty();
                    return Ok(None);
                }
                BodyEnd::Length(left) => {
                    let len =
                        usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                    *left -= len as u64;
                    (0, len)
                }
                BodyEnd::UntilClose => (0, bytes.len()),
                BodyEnd::Chunks(chunks) => match chunks.next(bytes) {
                    Ok(Piece::Data { skip, len }) => (skip, len),
                    Ok(Piece::Trailers { skip, .. }) => (skip, 0),
                    Ok(Piece::End { skip, .. }) => {
                        self.body = BodyEnd::End;
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
            if !matches!(self.body, BodyEnd::End | BodyEnd::Length(0)) && self.fill().await? == 0 {
                self.body = BodyEnd::End;
            }
        }
    }

    /// Reads more bytes into the buffer. Returns zero at the end of a body that ends with the
    /// connection.
    async fn fill(&mut self) -> io::Result<usize> {
        match self.client.reader.fill().await? {
            0 if matches!(self.body, BodyEnd::UntilClose) => Ok(0),
            0 => Err(io::Error::new(ErrorKind::UnexpectedEof, "the response breaks off")),
            n => Ok(n),
        }
    }

    /// Reads the rest of the body.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ClientResponse::read_chunk`], and `InvalidData` if the rest is
    /// longer than `most` bytes. Such a body, or an interrupt, loses the bytes that were already
    /// read. Every later read then returns an error, as for a [request](crate::http::Request).
    pub async fn body_to_vec(&mut self, most: usize) -> io::Result<Vec<u8>> {
        none_lost(self.held)?;
        let mut body = Vec::new();
        while let Some(piece) = self.next_piece().await? {
            body.extend_from_slice(piece);
            self.held = body.len();
            if self.held > most {
                return Err(invalid("the response is too long"));
            }
        }
        self.held = 0;
        Ok(body)
    }
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

/// Copies a header section, and replaces each fold of a field by a space, as a client must read it
/// (RFC 9112, 5.2). White space before the first field is not a fold; it stays, and is refused.
fn unfolded(head: &[u8]) -> Vec<u8> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut whole: Vec<u8> = Vec::with_capacity(head.len());
    for (n, line) in head.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let blanks = line.iter().take_while(|byte| is_blank(byte)).count();
        // Keep a line that ends in LF alone as it is, because it is refused.
        if n > 1 && blanks > 0 && whole.ends_with(b"\r\n") {
            whole.truncate(whole.len() - 2);
            while whole.pop_if(|byte| is_blank(byte)).is_some() {}
            whole.push(b' ');
            whole.extend_from_slice(&line[blanks..]);
        } else {
            whole.extend_from_slice(line);
        }
    }
    whole
}

const TWO_LENGTHS: Refusal = Refusal::bad("the response has two lengths\n");

/// Parses a `Content-Length` value. A list of equal numbers counts as one number (RFC 9112, 6.3).
/// Refuses a value that is malformed or differs from `length`.
fn read_length(value: &[u8], mut length: Option<u64>) -> Result<Option<u64>, Refusal> {
    for member in value.split(|byte| *byte == b',') {
        let found = Some(head::length(member.trim_ascii())?);
        check(length.is_none() || length == found, TWO_LENGTHS)?;
        length = found;
    }
    Ok(length)
}

/// Parses a whole header section. Returns the status, the framing of the body, and whether the
/// server keeps the connection.
fn parse_head(head: &[u8], no_body: bool) -> Result<(u16, BodyEnd, bool), Stop> {
    let mut lines = HeadLines { rest: head };
    let line = lines.status_line();
    let (version, status) = line.ok_or(Refusal::bad("the status line is malformed\n"))?;
    check(status != 101, Refusal::bad("the server changes to another protocol\n"))?;
    let status = if (100..600).contains(&status) { status } else { 500 };
    let (mut length, mut chunked, mut close, mut keep_alive) = (None, false, false, false);
    let read = |name: &[u8], value: &[u8]| {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("content-length") {
            length = read_length(value, length)?;
        } else if is("transfer-encoding") {
            let is_known = value.eq_ignore_ascii_case(b"chunked") && version == Version::Http11;
            check(is_known && !chunked, Refusal::bad("the coding was not asked for\n"))?;
            chunked = true;
        } else if is("connection") {
            for option in list(value) {
                close |= option.eq_ignore_ascii_case(b"close");
                keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        }
        Ok(())
    };
    lines.fields(FIELDS, false, read)?.map_or(Ok(()), Err)?;
    let body = match (chunked, length) {
        _ if no_body || status < 200 || matches!(status, 204 | 304) => BodyEnd::End,
        (true, Some(_)) => return Err(TWO_LENGTHS.into()),
        (true, None) => BodyEnd::Chunks(Chunks::of_a_response()),
        (false, Some(length)) => BodyEnd::Length(length),
        (false, None) => BodyEnd::UntilClose,
    };
    let is_delimited = !matches!(body, BodyEnd::UntilClose);
    let keep = is_delimited && wants_more(version, close, keep_alive);
    Ok((status, body, keep))
}
