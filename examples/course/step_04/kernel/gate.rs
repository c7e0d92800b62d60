//! The gate: requests go out here, and replies come back. A task never sees the kernel.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::*;

#[derive(Default)]
pub(super) struct Gate {
    request: Cell<Option<Trap>>,
    reply: Cell<Option<Reply>>,
}

thread_local! {
    static GATE: Gate = Gate::default();
}

/// Runs `f` with the gate of this thread.
pub(super) fn gate<R>(f: impl FnOnce(&Gate) -> R) -> R {
    GATE.with(f)
}

impl Gate {
    /// For the kernel: sets the reply that the next poll takes.
    pub(super) fn load(&self, reply: Option<Reply>) {
        self.reply.set(reply);
    }

    /// For the kernel: takes the request of the last poll.
    pub(super) fn take_request(&self) -> Option<Trap> {
        self.request.take()
    }
}

/// The one future that traps. Its first poll makes the request, and a later poll takes the reply.
pub(super) struct Call {
    trap: Option<Trap>,
}

pub(super) fn call(trap: Trap) -> Call {
    Call { trap: Some(trap) }
}

impl Future for Call {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Reply> {
        gate(|gate| match self.trap.take() {
            Some(trap) => {
                let earlier = gate.request.replace(Some(trap));
                assert!(earlier.is_none(), "rule: a poll makes one request");
                Poll::Pending
            }
            None => gate.reply.take().map_or(Poll::Pending, Poll::Ready),
        })
    }
}
