//! The gate: requests go out here, and replies come back. A task never sees the kernel.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::*;

#[derive(Default)]
pub(super) struct Gate {
    request: Cell<Option<(Trap, Site)>>,
    reply: Cell<Option<Reply>>,
    pub(super) posts: RefCell<Vec<Post>>,
    /// The number of handles so far.
    pub(super) handles: Cell<u32>,
    /// The kernel's time at the start of this poll.
    pub(super) now: Cell<Time>,
    pub(super) deadlines: RefCell<Deadlines>,
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
    pub(super) fn take_request(&self) -> Option<(Trap, Site)> {
        self.request.take()
    }

    /// For tasks: leaves a message.
    pub(super) fn post(&self, post: Post) {
        self.posts.borrow_mut().push(post);
    }
}

/// The one future that traps. Its first poll makes the request, and a later poll takes the reply.
pub(super) struct Call {
    trap: Option<Trap>,
    site: Site,
}

/// Makes a call that logs the caller's line of the program.
#[track_caller]
pub(super) fn call(trap: Trap) -> Call {
    call_at(Location::caller(), trap)
}

pub(super) fn call_at(site: Site, trap: Trap) -> Call {
    Call { trap: Some(trap), site }
}

impl Future for Call {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Reply> {
        gate(|gate| match self.trap.take() {
            Some(trap) => {
                let earlier = gate.request.replace(Some((trap, self.site)));
                assert!(earlier.is_none(), "rule: a poll makes one request");
                Poll::Pending
            }
            None => gate.reply.take().map_or(Poll::Pending, Poll::Ready),
        })
    }
}
