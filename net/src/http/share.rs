//! What one connection may have before it ends or others have their turn.
//!
//! It counts, and may not wait.

use super::connection::Connection;
use crate::stream::Stream;

impl<S: Stream> Connection<'_, S> {
    /// One request more; the last that a connection may make ends it.
    #[inline]
    pub(super) fn may_go_on(&self) -> bool {
        let seat = &*self.wire.borrow().watch.seat;
        let limit = self.config.limits.requests;
        let last = seat.count_request() >= limit;
        if last && self.head.keep_alive {
            seat.hit("requests", limit);
        }
        self.head.keep_alive && !last
    }

    /// Whether a peer that pipelines without end is to wait for the others now.
    #[inline]
    pub(super) fn is_greedy(&self) -> bool {
        let wire = &mut *self.wire.borrow_mut();
        wire.answered += 1;
        let limit = self.config.limits.pipelined;
        let more = !self.inbox.is_empty() || !wire.is_drained();
        let greedy = more && wire.answered >= limit;
        if greedy {
            wire.watch.seat.hit("pipelined", limit);
        }
        greedy
    }
}
