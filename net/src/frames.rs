//! Messages with their length in front.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::mem;
use std::panic::Location;

use traps::core::names::Site;

use crate::buffer::BufReader;
use crate::stream::Stream;

/// A stream of frames: each is a length, big-endian, in four bytes unless said otherwise, and so
/// many bytes. A frame may be empty. Over a half of a stream it reads or writes only.
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
    /// Bytes of a length.
    width: usize,
    /// The most bytes of a frame, without its length.
    limit: usize,
    /// Bytes at the head of the buffer that were given out: those of the last frame.
    given: usize,
}

impl<S: Stream> Frames<S> {
    /// Frames of at most `limit` bytes, with lengths of four bytes.
    #[must_use]
    pub fn new(stream: S, limit: usize) -> Frames<S> {
        Frames::with_width(stream, 4, limit)
    }

    /// Frames of at most `limit` bytes, with lengths of `width` bytes.
    ///
    /// # Panics
    ///
    /// If `width` is not from 1 to 8.
    #[must_use]
    pub fn with_width(stream: S, width: usize, limit: usize) -> Frames<S> {
        assert!((1..=8).contains(&width), "rule: a length has from one to eight bytes");
        Frames { reader: BufReader::new(stream), width, limit, given: 0 }
    }

    /// The next frame, without its length; `None` at the end of the stream. *Blocks* until a whole
    /// frame is there. Memory grows with what has come, not with the length that was announced.
    ///
    /// # Errors
    ///
    /// `InvalidData` for a length above the limit, before anything of the frame is read;
    /// `UnexpectedEof` if the stream ends within a frame; those of the stream. Nothing is lost when
    /// the wait is interrupted or dropped: the next call goes on with the same frame.
    #[track_caller]
    pub fn read(&mut self) -> impl Future<Output = io::Result<Option<&[u8]>>> {
        let site = Location::caller();
        async move {
            self.reader.consume(mem::take(&mut self.given));
            self.given = self.find_frame(site).await?;
            Ok(self.reader.buffer()[..self.given].get(self.width..))
        }
    }

    /// Writes a frame. *Blocks* whenever there is no room.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a frame above the limit, or one whose length its bytes do not hold;
    /// nothing is written then. Those of the stream, `WriteZero` if it takes nothing: some of the
    /// frame may be written then, and no other can follow.
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

    /// The stream, to shut it down for example.
    pub fn stream(&mut self) -> &mut S {
        self.reader.stream()
    }

    /// The stream, and what was read and not given out.
    #[must_use]
    pub fn into_parts(mut self) -> (S, Vec<u8>) {
        self.reader.consume(self.given);
        self.reader.into_parts()
    }

    /// How long the first frame is, with its length; zero at the end of the stream.
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
