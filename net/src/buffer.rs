//! A buffer in front of a stream, to read lines and fixed counts of bytes.

use std::cell::Cell;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::panic::Location;
use std::task::Context;

use traps::Site;

use crate::stream::Stream;

/// A [`Stream`] with a buffer in front of its reading side. It takes any stream, including a
/// borrowed one (`&mut`) and a half of a stream.
///
/// Unconsumed bytes stay in the buffer. A call that returns an error, even an interrupt, has
/// consumed nothing, and can be repeated.
///
/// ```
/// use std::io;
/// use net::{BufReader, Stream};
///
/// /// Reads lines up to an empty one, and then the bytes up to the end.
/// async fn message(stream: &mut impl Stream) -> io::Result<(Vec<String>, Vec<u8>)> {
///     let mut reader = BufReader::new(stream);
///     let (mut head, mut body) = (Vec::new(), Vec::new());
///     let mut lines = reader.lines(1024);
///     while let Some(line) = lines.next().await?.filter(|line| !line.is_empty()) {
///         head.push(String::from_utf8_lossy(line).into_owned());
///     }
///     reader.read_to_end(&mut body, 64 * 1024).await?;
///     Ok((head, body))
/// }
/// ```
#[derive(Debug)]
pub struct BufReader<S> {
    pub(crate) stream: S,
    /// The storage of the buffer. The bytes from `start` to `end` were read and are not consumed
    /// yet.
    room: Vec<u8>,
    start: Cell<usize>,
    end: usize,
    /// The size of `room` after it has become empty.
    capacity: usize,
}

impl<S: Stream> BufReader<S> {
    /// Makes a reader with a buffer of 8 KiB.
    #[must_use]
    pub fn new(stream: S) -> BufReader<S> {
        BufReader::with_capacity(8 * 1024, stream)
    }

    /// Makes a reader with a buffer of `capacity` bytes (at least one). The buffer grows for a
    /// longer line or count, up to the limit of the call, and shrinks again once it is empty.
    #[must_use]
    pub fn with_capacity(capacity: usize, stream: S) -> BufReader<S> {
        let capacity = capacity.max(1);
        BufReader { stream, room: vec![0; capacity], start: Cell::new(0), end: 0, capacity }
    }

    /// Returns the bytes that were read and are not consumed yet.
    #[must_use]
    pub fn buffer(&self) -> &[u8] {
        &self.room[self.start.get()..self.end]
    }

    /// Consumes the first `n` bytes of the buffer.
    ///
    /// # Panics
    ///
    /// Panics if the buffer has fewer than `n` bytes.
    pub fn consume(&mut self, n: usize) {
        assert!(n <= self.buffer().len(), "rule: only what is in the buffer can be consumed");
        let start = self.start.get_mut();
        *start += n;
        if *start == self.end {
            (*start, self.end) = (0, 0);
            self.room.truncate(self.capacity);
            self.room.shrink_to(self.capacity);
        }
    }

    /// Returns the stream, for writing. A direct read from it bypasses the buffer.
    pub fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Returns the stream, and the bytes that were read and not consumed.
    #[must_use]
    pub fn into_parts(self) -> (S, Vec<u8>) {
        let rest = self.buffer().to_vec();
        (self.stream, rest)
    }

    /// Reads once, and appends the bytes to the buffer, which grows if it is full. Returns the
    /// number of bytes read. Zero means that the peer has finished.
    ///
    /// # Errors
    ///
    /// Returns an error if the stream fails.
    #[track_caller]
    pub fn fill_more(&mut self) -> impl Future<Output = io::Result<usize>> {
        self.read_behind(0, Location::caller())
    }

    /// Reads once if the buffer is empty. Returns the number of bytes in the buffer. Zero means
    /// that the peer has finished.
    ///
    /// # Errors
    ///
    /// Returns an error if the stream fails.
    #[track_caller]
    pub fn fill(&mut self) -> impl Future<Output = io::Result<usize>> {
        let site = Location::caller();
        async move {
            if self.buffer().is_empty() {
                self.read_behind(0, site).await?;
            }
            Ok(self.buffer().len())
        }
    }

    /// Appends the next line to `line`, without its end (`\n` or `\r\n`). Returns `false` at the
    /// end of the stream, and `true` otherwise. The last line need not have an end.
    ///
    /// # Errors
    ///
    /// Returns `InvalidData`, with the limit in its text, if the first `limit` bytes contain no end
    /// of a line. Returns an error if the stream fails. After an error nothing is consumed or
    /// appended.
    #[track_caller]
    pub fn read_line(
        &mut self,
        line: &mut Vec<u8>,
        limit: usize,
    ) -> impl Future<Output = io::Result<bool>> {
        self.read_line_from(line, limit, Location::caller())
    }

    async fn read_line_from(
        &mut self,
        line: &mut Vec<u8>,
        limit: usize,
        site: Site,
    ) -> io::Result<bool> {
        let size = self.find_line(limit, site).await?;
        let found = &self.buffer()[..size];
        let text = found.strip_suffix(b"\r\n").or(found.strip_suffix(b"\n"));
        line.extend_from_slice(text.unwrap_or(found));
        self.consume(size);
        Ok(size > 0)
    }

    /// Returns the lines that follow. Each may have at most `limit` bytes, its end included.
    pub fn lines(&mut self, limit: usize) -> Lines<'_, S> {
        Lines { reader: self, limit, line: Vec::new() }
    }

    /// Fills all of `buf`. The bytes are gathered in the buffer first.
    ///
    /// # Errors
    ///
    /// Returns `UnexpectedEof` if the stream ends too early, and an error if the stream fails.
    /// After an error nothing is consumed.
    #[track_caller]
    pub fn read_exact(&mut self, buf: &mut [u8]) -> impl Future<Output = io::Result<()>> {
        let site = Location::caller();
        async move {
            while self.buffer().len() < buf.len() {
                if self.read_behind(buf.len(), site).await? == 0 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
            }
            buf.copy_from_slice(&self.buffer()[..buf.len()]);
            self.consume(buf.len());
            Ok(())
        }
    }

    /// Returns the length of the next line, its end included. At the end of the stream, returns the
    /// number of bytes left.
    async fn find_line(&mut self, limit: usize, site: Site) -> io::Result<usize> {
        let mut searched = 0;
        loop {
            let bytes = &self.buffer()[..self.buffer().len().min(limit)];
            if let Some(place) = bytes[searched..].iter().position(|byte| *byte == b'\n') {
                return Ok(searched + place + 1);
            }
            if bytes.len() == limit {
                let error = format!("no end of the line within {limit} bytes");
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
            searched = bytes.len();
            if self.read_behind(0, site).await? == 0 {
                return Ok(searched);
            }
        }
    }

    /// Moves bytes from the buffer to `buf`: as many as there are, up to the length of `buf`.
    fn take(&mut self, buf: &mut [u8]) -> usize {
        let n = self.take_shared(buf);
        // Shrinks an empty buffer.
        self.consume(0);
        n
    }

    /// Moves bytes like `take`, and leaves the size of the buffer as it is.
    pub(crate) fn take_shared(&self, buf: &mut [u8]) -> usize {
        let n = buf.len().min(self.buffer().len());
        buf[..n].copy_from_slice(&self.buffer()[..n]);
        self.start.set(self.start.get() + n);
        n
    }

    /// Reads once, and appends the bytes to the buffer. Makes the buffer at least `want` bytes
    /// large first, and at least one byte larger than its contents.
    pub(crate) async fn read_behind(&mut self, want: usize, site: Site) -> io::Result<usize> {
        let start = self.start.take();
        self.room.copy_within(start..self.end, 0);
        self.end -= start;
        let want = want.max(self.end + 1);
        if self.room.len() < want {
            // Double the size, so that growth byte by byte copies each byte only a few times.
            self.room.resize(want.max(self.room.len() * 2), 0);
        }
        let n = self.stream.read_from(&mut self.room[self.end..], site).await?;
        self.end += n;
        Ok(n)
    }
}

/// The lines of a stream, made by [`BufReader::lines`].
#[derive(Debug)]
pub struct Lines<'r, S> {
    reader: &'r mut BufReader<S>,
    limit: usize,
    line: Vec<u8>,
}

impl<S: Stream> Lines<'_, S> {
    /// Returns the next line, without its end (`\n` or `\r\n`), or `None` at the end of the stream.
    /// *Blocks* until a whole line has arrived. The last line need not have an end.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BufReader::read_line`]. An error loses no bytes: the next call
    /// starts with the same bytes. So a line that is too long fails again.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot wait")]
    #[track_caller]
    pub fn next(&mut self) -> impl Future<Output = io::Result<Option<&[u8]>>> {
        let site = Location::caller();
        async move {
            self.line.clear();
            let found = self.reader.read_line_from(&mut self.line, self.limit, site).await?;
            Ok(found.then_some(&self.line[..]))
        }
    }
}

impl<S: Stream> Stream for BufReader<S> {
    async fn read_from(&mut self, buf: &mut [u8], site: Site) -> io::Result<usize> {
        if self.buffer().is_empty() && !buf.is_empty() {
            // The buffer is empty, so a large read can bypass it without changing the order of
            // bytes. That saves a copy.
            if buf.len() >= self.capacity {
                return self.stream.read_from(buf, site).await;
            }
            self.read_behind(0, site).await?;
        }
        Ok(self.take(buf))
    }

    /// Takes bytes from the buffer, or tries to read from the stream if the buffer is empty.
    /// `Stream::read` would begin with a wait if the socket is known to be empty; a direct try asks
    /// the system.
    fn try_read(&mut self, buf: &mut [u8], cx: &mut Context<'_>) -> Option<io::Result<usize>> {
        if self.buffer().is_empty() && !buf.is_empty() {
            return self.stream.try_read(buf, cx);
        }
        Some(Ok(self.take(buf)))
    }

    #[track_caller]
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        let wait = self.buffer().is_empty().then(|| self.stream.readable());
        async move { if let Some(wait) = wait { wait.await } else { Ok(()) } }
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
        self.stream.write_from(bufs, site).await
    }

    #[track_caller]
    fn flush(&mut self) -> impl Future<Output = io::Result<()>> {
        self.stream.flush()
    }

    fn shutdown(&mut self) -> io::Result<()> {
        self.stream.shutdown()
    }

    fn has_end_message(&self) -> bool {
        self.stream.has_end_message()
    }

    fn reset(&mut self) -> io::Result<()> {
        self.stream.reset()
    }

    #[track_caller]
    fn closed(&mut self) -> impl Future<Output = io::Result<()>> {
        self.stream.closed()
    }

    fn has_failed(&self) -> bool {
        self.stream.has_failed()
    }

    #[track_caller]
    fn sent(&mut self) -> impl Future<Output = io::Result<()>> {
        self.stream.sent()
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.stream.peer()
    }
}
