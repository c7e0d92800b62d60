//! The one future that traps. Every verb is a few lines around it, and none has a `Drop` of its
//! own.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::filing::{self, Look};
use super::interrupt::Interrupt;
use super::names::{Site, Ticket};
use super::protocol::{Reply, Trap};

/// One trap, from before it is filed until its reply is read.
///
/// The first poll files the trap and pends. Later polls take the reply if there is one. A trap
/// belongs to the task that polled it first. If another task polls it before it has its reply, it
/// is withdrawn from the first task and filed again in the second.
///
/// Neither `Send` nor `Sync`: a trap belongs to the gate of its thread.
#[derive(Debug)]
pub(crate) struct Call {
    ticket: Option<Ticket>,
    site: Site,
    local: PhantomData<Rc<()>>,
}

impl Call {
    /// A trap that is not filed yet, at the caller's place in the source.
    #[track_caller]
    pub(crate) fn here() -> Call {
        Call::from(Location::caller())
    }

    pub(crate) fn from(site: Site) -> Call {
        Call { ticket: None, site, local: PhantomData }
    }

    pub(crate) fn site(&self) -> Site {
        self.site
    }

    /// The wait, from when it is filed until its reply is read.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }

    /// Files the trap that `trap` makes, or takes the reply.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        trap: impl FnOnce() -> Trap,
    ) -> Poll<Reply> {
        if let Some(ticket) = self.ticket {
            match filing::collect(ticket, self.site, cx) {
                Look::Reply(reply) => {
                    self.ticket = None;
                    return Poll::Ready(reply);
                }
                Look::Nothing => return Poll::Pending,
                Look::Elsewhere => self.abandon(),
            }
        }
        self.ticket = Some(filing::file(trap(), self.site, cx));
        Poll::Pending
    }

    /// Withdraws the trap. What an unread reply has handed over is given back.
    pub(crate) fn abandon(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            filing::withdraw(ticket);
        }
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        if self.ticket.is_some() {
            self.abandon();
        }
    }
}

impl Reply {
    /// The reply of a trap that has no result, and whose only failure is an interrupt.
    #[inline]
    pub(crate) fn done(self) -> Result<(), Interrupt> {
        match self {
            Reply::Interrupt(interrupt) => Err(interrupt),
            _ => Ok(()),
        }
    }

    /// The kernel broke the protocol.
    #[cold]
    pub(crate) fn wrong(self) -> ! {
        unreachable!("rule: a trap is answered in kind, not by {self:?}")
    }
}

/// A trap that needs no state of its own, as in most verbs.
pub(crate) fn call<T>(trap: fn() -> Trap, site: Site, read: fn(Reply) -> T) -> Plain<T> {
    Plain { trap, call: Call::from(site), read }
}

/// The future of [`call`].
#[must_use = "a trap that is not awaited is never made"]
pub(crate) struct Plain<T> {
    trap: fn() -> Trap,
    call: Call,
    read: fn(Reply) -> T,
}

impl<T> Future for Plain<T> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Plain { trap, call, read } = &mut *self;
        call.poll(cx, trap).map(*read)
    }
}

impl<T> fmt::Debug for Plain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain").field("call", &self.call).finish_non_exhaustive()
    }
}
