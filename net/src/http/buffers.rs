//! The buffers of a busy connection, and the pool of spare ones.

use std::cell::RefCell;

use super::request_head::RequestHead;
use crate::limits::{READ_BUFFER, SPARE};

/// The first capacity of an output buffer, in bytes.
const WRITE_BUFFER: usize = 1024;

/// The largest capacity, in bytes, of an output buffer that the pool keeps.
const KEPT: usize = 4 * READ_BUFFER;

/// The buffers of a busy connection: it reads into one, and gathers its responses in the other.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// The request in hand, or the last request, with the input buffer.
    pub(crate) request: RequestHead,
    pub(crate) out: Vec<u8>,
}

/// A pool of spare buffers, so that a connection that waits for its next request owns none.
#[derive(Debug, Default)]
#[allow(clippy::vec_box, reason = "they are handed over, and never read here")]
pub(crate) struct Pool(RefCell<Vec<Box<Buffers>>>);

impl Pool {
    /// Takes a spare pair of empty buffers from the pool, or makes a new pair.
    pub(crate) fn take(&self) -> Box<Buffers> {
        let spare = self.0.borrow_mut().pop();
        spare.unwrap_or_else(|| {
            let out = Vec::with_capacity(WRITE_BUFFER);
            Box::new(Buffers { request: RequestHead::empty(), out })
        })
    }

    /// Puts a pair of buffers back into the pool. Frees the pair if a buffer is too large or the
    /// pool is full, so that the memory of the pool is bounded.
    pub(crate) fn give(&self, mut buffers: Box<Buffers>) {
        let usual = buffers.request.input.size() == READ_BUFFER && buffers.out.capacity() <= KEPT;
        buffers.out.clear();
        buffers.request.input.clear();
        let mut spare = self.0.borrow_mut();
        if usual && spare.len() < SPARE {
            spare.push(buffers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_keeps_few_buffers_and_none_that_is_large() {
        let pool = Pool::default();
        let kept = || pool.0.borrow().len();
        let mut busy: Vec<_> = (0..SPARE + 1).map(|_| pool.take()).collect();
        let (mut long_head, mut long_out) = (pool.take(), pool.take());
        let n = long_head.request.input.room(READ_BUFFER).len();
        long_head.request.input.filled(n);
        long_head.request.input.room(READ_BUFFER);
        long_out.out.reserve_exact(KEPT + 1);
        for large in [long_head, long_out] {
            pool.give(large);
            assert_eq!(kept(), 0);
        }
        busy[0].out.extend_from_slice(b"left");
        busy.into_iter().for_each(|buffers| pool.give(buffers));
        assert_eq!(kept(), SPARE);
        (0..SPARE).for_each(|_| assert!(pool.take().out.is_empty()));
    }
}
