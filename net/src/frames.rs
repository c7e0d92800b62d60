//! Messages with a length prefix.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::mem;
use std::panic::Location;

use traps::Site;

use crate::buffer::BufReader;
use crate::stream::Stream;

/// A stream of frames. A frame is a length, big-endian and in four bytes by default, and then
/// `length` bytes. A frame may be empty. Over a half of a stream only one of `read` and `write`
/// works.
///
/// ```
/// use std::io;
/// use net::{Frames, Stream};
///
/// /// Sends back each frame.
/// async fn answer(stream: impl Stream) -> io::Result<()> {
///     let mut frames = Frames::new(stream, 64 * 1024);
///     while let Some(frame) = frames.read().await? {
///         let frame = frame.to_vec();
///         frames.write(&frame).await?;
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Frames<S> {
    reader: BufReader<S>,
    /// The number of bytes of a length prefix.
    width: usize,
    /// The longest frame allowed, in bytes, not counting its length prefix.
    limit: usize,
    /// The number of bytes at the start of the buffer that belong to the frame returned last.
    given: usize,
}

impl<S: Stream> Frames<S> {
    /// Makes a stream of frames of at most `limit` bytes, with length prefixes of four bytes.
    #[must_use]
    pub fn new(stream: S, limit: usize) -> Frames<S> {
        Frames::with_width(stream, 4, limit)
    }

    /// Makes a stream of frames of at most `limit` bytes, with length prefixes of `width` bytes.
    ///
    /// # Panics
    ///
    /// Panics if `width` is not from 1 to 8.
    #[must_use]
    pub fn with_width(stream: S, width: usize, limit: usize) -> Frames<S> {
        assert!((1..=8).contains(&width), "rule: a length has from one to eight bytes");
        Frames { reader: BufReader::new(stream), width, limit, given: 0 }
    }

    /// Returns the next frame, without its length prefix, or `None` at the end of the stream.
    /// *Blocks* until a whole frame has arrived. Memory grows with the bytes that have arrived, not
    /// with the announced length.
    ///
    /// # Errors
    ///
    /// Returns `InvalidData` for a length above the limit, without waiting for the frame. Returns
    /// `UnexpectedEof` if the stream ends within a frame, and an error if the stream fails. An
    /// interrupted or dropped wait loses no bytes: the next call continues with the same frame.
    #[track_caller]
    pub fn read(&mut self) -> impl Future<Output = io::Result<Option<&[u8]>>> {
        let site = Location::caller();
        async move {
            self.reader.consume(mem::take(&mut self.given));
            self.given = self.find_frame(site).await?;
            Ok(self.reader.buffer()[..self.given].get(self.width..))
        }
    }

    /// Writes a frame. *Blocks* when there is no room.
    ///
    /// # Errors
    ///
    /// Returns `InvalidInput` if the frame is above the limit, or if its length does not fit in
    /// `width` bytes; then nothing was written. Returns an error if the stream fails, and
    /// `WriteZero` if the stream takes no bytes. Then a part of the frame may have been written, so
    /// no other frame can follow.
    #[track_caller]
    pub fn write(&mut self, frame: &[u8]) -> impl Future<Output = io::Result<()>> {
        let site = Location::caller();
        async move {
            let length = (frame.len() as u64).to_be_bytes();
            let (unused, length) = length.split_at(length.len() - self.width);
            if frame.len() > self.limit || unused.iter().any(|byte| *byte != 0) {
                return Err(self.too_long(frame.len() as u64, ErrorKind::InvalidInput));
            }
            let mut slices = &mut [IoSlice::new(length), IoSlice::new(frame)][..];
            while !slices.is_empty() {
                match self.reader.stream().write_from(slices, site).await? {
                    0 => return Err(ErrorKind::WriteZero.into()),
                    n => IoSlice::advance_slices(&mut slices, n),
                }
            }
            Ok(())
        }
    }

    /// Returns the stream, for example to shut it down.
    pub fn stream(&mut self) -> &mut S {
        self.reader.stream()
    }

    /// Returns the stream, and the bytes that were read and not returned as a frame.
    #[must_use]
    pub fn into_parts(mut self) -> (S, Vec<u8>) {
        self.reader.consume(self.given);
        self.reader.into_parts()
    }

    /// Returns the length of the first frame, its length prefix included, or zero at the end of the
    /// stream.
    async fn find_frame(&mut self, site: Site) -> io::Result<usize> {
        loop {
            let bytes = self.reader.buffer();
            let mut whole = self.width;
            if let Some(length) = bytes.get(..self.width) {
                let length = length.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
                if length > self.limit as u64 {
                    return Err(self.too_long(length, ErrorKind::InvalidData));
                }
                whole = whole.saturating_add(length as usize);
                if bytes.len() >= whole {
                    return Ok(whole);
                }
            }
            let came = bytes.len();
            if self.reader.read_behind(0, site).await? == 0 {
                if came == 0 {
                    return Ok(0);
                }
                let error = format!("the stream ended within a frame: {came} of {whole} bytes");
                return Err(io::Error::new(ErrorKind::UnexpectedEof, error));
            }
        }
    }

    fn too_long(&self, length: u64, kind: ErrorKind) -> io::Error {
        io::Error::new(kind, format!("a frame of {length} bytes, and {} is the most", self.limit))
    }
}
