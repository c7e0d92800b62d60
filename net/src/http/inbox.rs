//! Bytes that were read and not yet used.
//!
//! It may not read. While a request is in hand its head stays where it is, at `start`.

use super::head::Span;
use crate::limits::READ_BUFFER;

/// Room for which a refill is worth a system call.
const WORTH: usize = 4096;

/// What has come in.
#[derive(Debug)]
pub(crate) struct Inbox {
    buffer: Vec<u8>,
    /// Of the head in hand, or of what comes next.
    start: usize,
    /// The next byte that nobody has looked at.
    next: usize,
    end: usize,
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox { buffer: vec![0; READ_BUFFER], start: 0, next: 0, end: 0 }
    }
}

impl Inbox {
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
    pub(crate) fn part(&self, span: Span) -> &[u8] {
        span.of(&self.buffer[self.start..])
    }

    /// Uses `skip` bytes and then `len` more, which it returns the place of.
    pub(crate) fn take(&mut self, skip: usize, len: usize) -> (usize, usize) {
        let start = self.next + skip;
        self.next = start + len;
        debug_assert!(self.next <= self.end, "what is used was there");
        (start, self.next)
    }

    /// Bytes by the place that [`Inbox::take`] gave, until the next refill.
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

    /// The same when all that came after a head of `len` bytes is used.
    pub(crate) fn room_for_body(&mut self, len: usize) -> &mut [u8] {
        debug_assert!(self.is_empty(), "a body is used before more of it is read");
        (self.next, self.end) = (self.start + len, self.start + len);
        self.room((len + WORTH).saturating_sub(READ_BUFFER))
    }

    /// So many bytes were read into the room.
    pub(crate) fn filled(&mut self, n: usize) {
        self.end += n;
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
        let mut inbox = Inbox::default();
        for _ in 0..100 {
            let n = inbox.room(20_000).len();
            inbox.filled(n);
        }
        assert_eq!((inbox.size(), inbox.rest().len()), (READ_BUFFER + 20_000, inbox.size()));
    }

    #[test]
    fn a_body_has_room_behind_a_head_of_any_length() {
        for len in [0, 100, READ_BUFFER - WORTH, READ_BUFFER - 1, READ_BUFFER, 60_000] {
            let mut inbox = Inbox::default();
            while inbox.rest().len() < len {
                let n = inbox.room(len).len();
                inbox.filled(n);
            }
            inbox.take(0, inbox.rest().len());
            for _ in 0..3 {
                let n = inbox.room_for_body(len).len();
                assert!(n >= WORTH, "{len}: {n}");
                inbox.filled(n);
                inbox.take(0, n);
            }
            assert!(inbox.size() <= READ_BUFFER + len, "{len}: {}", inbox.size());
        }
    }
}
