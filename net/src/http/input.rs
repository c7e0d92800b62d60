//! The input buffer of a connection.
//!
//! This module must not read or wait. The caller reads into the room.

use super::grammar::head::Span;
use crate::limits::READ_BUFFER;

/// The smallest room, in bytes, that makes a read worth a system call.
const WORTH: usize = 4096;

/// The input buffer of a connection, with the bytes that have arrived. The head of the current
/// request stays at `start`.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    buffer: Vec<u8>,
    /// The place at which the head in hand, or the next head, begins.
    start: usize,
    /// The place of the first byte that is not used yet.
    next: usize,
    end: usize,
}

impl Default for Input {
    fn default() -> Input {
        Input { buffer: vec![0; READ_BUFFER], start: 0, next: 0, end: 0 }
    }
}

impl Input {
    /// The size of the whole buffer, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.buffer.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.end
    }

    /// The bytes that have arrived and are not used yet.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.buffer[self.next..self.end]
    }

    /// The bytes of the head in hand, which is `len` bytes long.
    pub(crate) fn head(&self, len: usize) -> &[u8] {
        &self.buffer[self.start..self.start + len]
    }

    /// Copies the head in hand, which is `len` bytes long, without the bytes after it.
    pub(crate) fn copy_of_head(&self, len: usize) -> Input {
        Input { buffer: self.head(len).to_vec(), start: 0, next: len, end: len }
    }

    /// The bytes of `span`, a range of the head in hand.
    #[inline]
    pub(crate) fn span(&self, span: Span) -> &[u8] {
        span.of(&self.buffer[self.start..])
    }

    /// Skips the empty lines before a head (RFC 9112, 2.2). Returns the number of lines skipped.
    pub(crate) fn skip_empty_lines(&mut self, bare_lf: bool) -> usize {
        let mut count = 0;
        loop {
            let len = match self.rest() {
                [b'\r', b'\n', ..] => 2,
                [b'\n', ..] if bare_lf => 1,
                _ => return count,
            };
            self.take(len, 0);
            self.finish();
            count += 1;
        }
    }

    /// Marks `skip` bytes and then `len` more bytes as used. Returns the place of the `len` bytes.
    pub(crate) fn take(&mut self, skip: usize, len: usize) -> (usize, usize) {
        let start = self.next + skip;
        self.next = start + len;
        debug_assert!(self.next <= self.end, "what is used was there");
        (start, self.next)
    }

    /// The bytes at a place that [`Input::take`] returned. A place is valid until the next refill.
    pub(crate) fn at(&self, place: (usize, usize)) -> &[u8] {
        &self.buffer[place.0..place.1]
    }

    /// Ends the request in hand, so that the next head begins at the first unused byte.
    pub(crate) fn finish(&mut self) {
        self.start = self.next;
    }

    /// Throws away all bytes.
    pub(crate) fn clear(&mut self) {
        (self.start, self.next, self.end) = (0, 0, 0);
    }

    /// Shrinks the buffer to its usual size, if its bytes fit.
    pub(crate) fn shrink(&mut self) {
        let len = self.end - self.start;
        if self.buffer.len() > READ_BUFFER && len <= READ_BUFFER {
            let mut usual = vec![0; READ_BUFFER];
            usual[..len].copy_from_slice(&self.buffer[self.start..self.end]);
            let next = self.next - self.start;
            (self.buffer, self.start, self.next, self.end) = (usual, 0, next, len);
        }
    }

    /// Returns the size that [`Input::room`] would give the buffer.
    pub(crate) fn size_with_room(&self, most: usize) -> usize {
        let size = self.buffer.len();
        if size - (self.end - self.start) >= WORTH {
            return size;
        }
        (size * 2).min(READ_BUFFER.saturating_add(most)).max(size)
    }

    /// Makes room after the unused bytes, and returns it. If the room would be small, the bytes
    /// before `start` are dropped. A full buffer grows, up to `most` bytes beyond its usual size.
    /// If it is full at that size, the room is empty, and the caller reads nothing.
    #[inline]
    pub(crate) fn room(&mut self, most: usize) -> &mut [u8] {
        if self.buffer.len() - self.end < WORTH {
            self.make_room(most);
        }
        &mut self.buffer[self.end..]
    }

    #[cold]
    fn make_room(&mut self, most: usize) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            let gone = std::mem::take(&mut self.start);
            (self.next, self.end) = (self.next - gone, self.end - gone);
        }
        self.buffer.resize(self.size_with_room(most), 0);
    }

    /// Makes room for a body after a head of `len` bytes. All bytes after the head must be used
    /// already.
    pub(crate) fn room_for_body(&mut self, len: usize) -> &mut [u8] {
        debug_assert!(self.is_empty(), "a body is used before more of it is read");
        (self.next, self.end) = (self.start + len, self.start + len);
        self.room((len + WORTH).saturating_sub(READ_BUFFER))
    }

    /// Adds the `n` bytes that were read into the room to the unused bytes.
    pub(crate) fn filled(&mut self, n: usize) {
        self.end += n;
    }

    /// The part of the request line that has arrived, without its end, at most `most` bytes.
    pub(crate) fn first_line(&self, most: usize) -> &[u8] {
        let bytes = &self.buffer[self.start..self.end.min(self.start.saturating_add(most))];
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Whether the unused bytes begin with a HEAD request, which gets no body.
    pub(crate) fn asks_for_none(&self) -> bool {
        self.rest().starts_with(b"HEAD ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_to_its_bound_and_no_further() {
        let mut input = Input::default();
        for _ in 0..100 {
            let n = input.room(20_000).len();
            input.filled(n);
        }
        assert_eq!((input.size(), input.rest().len()), (READ_BUFFER + 20_000, input.size()));
    }

    #[test]
    fn a_body_has_room_behind_a_head_of_any_length() {
        for len in [0, 100, READ_BUFFER - WORTH, READ_BUFFER - 1, READ_BUFFER, 60_000] {
            let mut input = Input::default();
            while input.rest().len() < len {
                let n = input.room(len).len();
                input.filled(n);
            }
            input.take(0, input.rest().len());
            for _ in 0..3 {
                let n = input.room_for_body(len).len();
                assert!(n >= WORTH, "{len}: {n}");
                input.filled(n);
                input.take(0, n);
            }
            assert!(input.size() <= READ_BUFFER + len, "{len}: {}", input.size());
        }
    }
}
