//! Buffers: what was read and not yet used, what is gathered to be written, and spare ones.
//!
//! Nothing here reads or writes.

use std::cell::RefCell;

use super::head::{Head, Span};
use crate::limits::{READ_BUFFER, SPARE};

/// Bytes for which a buffer of answers has room at first.
const WRITE_BUFFER: usize = 1024;

/// The largest that is kept.
const KEPT: usize = 4 * READ_BUFFER;

/// What a busy connection reads into, and gathers its answers in.
#[derive(Debug)]
pub(crate) struct Buffers {
    pub(crate) input: Input,
    pub(crate) out: Vec<u8>,
    /// Of the request in hand, or of the last one.
    pub(crate) head: Head,
}

/// Spare buffers, so that a connection that waits for its next request owns none.
#[derive(Debug, Default)]
#[allow(clippy::vec_box, reason = "they are handed over, and never read here")]
pub(crate) struct Pool(RefCell<Vec<Box<Buffers>>>);

impl Pool {
    /// With nothing in them.
    pub(crate) fn take(&self) -> Box<Buffers> {
        let spare = self.0.borrow_mut().pop();
        spare.unwrap_or_else(|| {
            let out = Vec::with_capacity(WRITE_BUFFER);
            Box::new(Buffers { input: Input::default(), out, head: Head::REFUSED })
        })
    }

    /// Those that had to grow are freed: the pool's memory is bounded.
    pub(crate) fn give(&self, mut buffers: Box<Buffers>) {
        buffers.out.clear();
        buffers.input.clear();
        let usual = buffers.input.size() == READ_BUFFER && buffers.out.capacity() <= KEPT;
        let mut spare = self.0.borrow_mut();
        if usual && spare.len() < SPARE {
            spare.push(buffers);
        }
    }
}

/// Room for which a refill is worth a system call.
const WORTH: usize = 4096;

/// What has come in. While a request is in hand its head stays where it is, at `start`.
#[derive(Debug)]
pub(crate) struct Input {
    buffer: Vec<u8>,
    /// Of the head in hand, or of what comes next.
    start: usize,
    /// The next byte that nobody has looked at.
    next: usize,
    end: usize,
}

impl Default for Input {
    fn default() -> Input {
        Input { buffer: vec![0; READ_BUFFER], start: 0, next: 0, end: 0 }
    }
}

impl Input {
    /// Bytes that it has room for in all.
    pub(crate) fn size(&self) -> usize {
        self.buffer.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.end
    }

    /// What nobody has used yet.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.buffer[self.next..self.end]
    }

    /// The head in hand.
    pub(crate) fn head(&self, len: usize) -> &[u8] {
        &self.buffer[self.start..self.start + len]
    }

    /// A part of it.
    #[inline]
    pub(crate) fn span(&self, span: Span) -> &[u8] {
        span.of(&self.buffer[self.start..])
    }

    /// Uses `skip` bytes and then `len` more, which it returns the place of.
    pub(crate) fn take(&mut self, skip: usize, len: usize) -> (usize, usize) {
        let start = self.next + skip;
        self.next = start + len;
        debug_assert!(self.next <= self.end, "what is used was there");
        (start, self.next)
    }

    /// Bytes by the place that [`Input::take`] gave, until the next refill.
    pub(crate) fn at(&self, place: (usize, usize)) -> &[u8] {
        &self.buffer[place.0..place.1]
    }

    /// The request in hand is over.
    pub(crate) fn finish(&mut self) {
        self.start = self.next;
    }

    /// Throws away what is in it.
    pub(crate) fn clear(&mut self) {
        (self.start, self.next, self.end) = (0, 0, 0);
    }

    /// Room behind what nobody has used. What is before `start` goes if the room would be small;
    /// a buffer that is full grows, up to `most` bytes beyond its usual size and never further:
    /// whoever fills that has no room, and reads nothing.
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
        if self.buffer.len() - self.end < WORTH {
            let size = (self.buffer.len() * 2).min(READ_BUFFER.saturating_add(most));
            self.buffer.resize(size.max(self.buffer.len()), 0);
        }
    }

    /// Room for a body, when all that came after a head of `len` bytes is used.
    pub(crate) fn room_for_body(&mut self, len: usize) -> &mut [u8] {
        debug_assert!(self.is_empty(), "a body is used before more of it is read");
        (self.next, self.end) = (self.start + len, self.start + len);
        self.room((len + WORTH).saturating_sub(READ_BUFFER))
    }

    /// So many bytes were read into the room.
    pub(crate) fn filled(&mut self, n: usize) {
        self.end += n;
    }

    /// The request line, as far as it is here and up to `most` bytes of it, without its end.
    pub(crate) fn first_line(&self, most: usize) -> &[u8] {
        let bytes = &self.buffer[self.start..self.end.min(self.start.saturating_add(most))];
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Whether what is here is the beginning of a request whose answer has no body.
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
