//! What one connection may have before it ends or others have their turn.
//!
//! It counts, and may not wait.

use super::config::Config;
use super::connection::Connection;
use super::head::Head;
use super::seats::Seat;
use crate::stream::Stream;

/// One request more; the last that a connection may make ends it.
#[inline]
pub(super) fn may_go_on(head: &Head, seat: &Seat, config: &Config) -> bool {
    let limit = config.limits.requests;
    let last = seat.count_request() >= limit;
    if last && head.keep_alive {
        seat.hit("requests", limit);
    }
    head.keep_alive && !last
}

impl<S: Stream> Connection<'_, S> {
    /// Whether a peer that pipelines without end is to wait for the others now.
    #[inline]
    pub(super) fn is_greedy(&mut self) -> bool {
        let wire = self.wire.get_mut();
        wire.answered += 1;
        let limit = self.config.limits.pipelined;
        let more = !self.buffers.inbox.is_empty() || !wire.is_drained();
        let greedy = more && wire.answered >= limit;
        if greedy {
            self.seat.hit("pipelined", limit);
        }
        greedy
    }
}
