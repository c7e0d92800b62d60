//! The one future that traps: it files a trap at its first poll and takes the reply at a later one.
//!
//! Every verb of the crate is a few lines around `Call`, and none has a `Drop` of its own. A call
//! has one field that matters, the ticket of its wait:
//!
//! - **No ticket.** Polling files the trap that the caller makes, keeps the ticket, and pends.
//! - **A ticket, no reply yet.** Polling notes the scope that polls it, and the waker of a
//!   combinator if there is one, and pends.
//! - **A ticket with a reply.** Polling takes the reply, and removes the record.
//! - **A ticket of another task.** The future has moved. The wait is withdrawn there, and the trap
//!   is filed again here. An existing reply moves with the future, except for an interrupt, which
//!   belongs to its task.
//!
//! Dropping a call that has a ticket withdraws its wait. If the kernel has not seen the trap, the
//! record is removed here. Otherwise a post informs the kernel, which undoes the wait or takes back
//! its reply, and removes the record.
//!
//! For example, `race(sleep(1s), wait(queue))` files two waits in one poll. The queue wakes its
//! wait first; `race` reads that reply and drops the sleep, whose call posts `Withdraw`.
//!
//! The obvious way is a state machine for each verb. Each would have the same four states, and a
//! `Drop` of its own that must be right.

use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::{fmt, mem};

use super::gate::{self, Filed, GATE, Gate, identity, in_task, post};
use super::protocol::{Post, Reply, Rescoped, Trap};
use super::records::{Wait, WaitState};
use super::table::{ScopeId, Site, TaskIndex, Ticket};
use crate::interrupts::interrupt::Interrupt;
use crate::interrupts::scope::note_move;

/// The result of [`collect`].
pub(crate) enum Collected {
    /// The reply. The record of the wait is removed.
    Reply(Reply),
    /// No reply yet.
    Pending,
    /// The trap must be filed again: the wait belongs to another task, or is gone, or is now polled
    /// in a scope where an interrupt is pending.
    Refile,
}

/// Files a trap of the task that is being polled.
#[inline(always)]
pub(crate) fn file(trap: Trap, site: Site, cx: &Context<'_>) -> Ticket {
    let (gate, task) = in_task(site);
    let (scope, task) = (gate.scope.get(), TaskIndex::of(task));
    debug_assert!(gate.scope.get() != ScopeId::NONE, "a task is polled in a scope, or in itself");
    let ticket = gate.records.borrow_mut().add_wait(trap, scope, task, site);
    gate.keep_waker(ticket, cx.waker());
    // Most polls file one trap, which never gets into the list. Only a second one moves the first
    // there.
    if let Some(older) = gate.newest.replace(Some(ticket)) {
        gate.push(Filed::Trap(older));
    }
    ticket
}

/// Looks for the reply to a trap.
#[inline(always)]
pub(crate) fn collect(ticket: Ticket, site: Site, cx: &Context<'_>) -> Collected {
    let (gate, task) = in_task(site);
    let mut records = gate.records.borrow_mut();
    // The scope that polls now may be another than the one that polled last: a combinator may have
    // moved the future.
    let reader = gate.scope.get();
    match records.waits.get(ticket) {
        // The future has moved to another task, where nothing would wake it.
        Some(wait) if !records.is_open_to(wait, TaskIndex::of(task)) => Collected::Refile,
        Some(wait) if wait.is_done() => {
            let taken = records.remove_wait(ticket);
            let Some(Wait { trap, state: WaitState::Done(mut reply), scope, waker, .. }) = taken
            else {
                unreachable!("it was done just now")
            };
            if gate.came.get().is_none() {
                let is_interrupted = matches!(reply, Reply::Interrupt(_));
                let word = if is_interrupted { "interrupt" } else { trap.word() };
                gate.came.set(Some((word, Some(site))));
            }
            if let Reply::Interrupt(interrupt) = &mut reply
                && scope != reader
            {
                records.move_interrupt(interrupt, reader);
            }
            drop(records);
            // A combinator's waker, if there is one, is dropped here.
            drop(waker);
            Collected::Reply(reply)
        }
        // A pending interrupt is only looked for when a trap is dispatched. So file it again.
        Some(wait) if wait.scope != reader && records.pending(reader, false).is_some() => {
            Collected::Refile
        }
        Some(wait) => {
            // The wait goes on, in the scope that polls it now.
            let before = wait.scope;
            if before != reader {
                note_move(gate, &records, Rescoped::Wait(ticket), before, reader);
                records.move_wait(ticket, reader);
            }
            drop(records);
            gate.keep_waker(ticket, cx.waker());
            Collected::Pending
        }
        None => Collected::Refile,
    }
}

/// Withdraws a trap whose future was dropped, or has moved and files it again.
pub(crate) fn withdraw(ticket: Ticket) {
    let Some(gate) = GATE.get() else { return };
    let mut records = gate.records.borrow_mut();
    let Some(wait) = records.waits.get(ticket) else { return };
    // Once the trap is dispatched, a timer, a queue or a handle may know the ticket. Only the
    // kernel can undo that.
    if !matches!(wait.state, WaitState::Filed) {
        drop(records);
        return post(Post::Withdraw(ticket));
    }
    let gone = records.remove_wait(ticket);
    drop(records);
    // The trap may hold the last reference to a queue, and its primitive may contain user data. So
    // drop it after the borrow.
    drop(gone);
    if gate.newest.get() == Some(ticket) {
        gate.newest.set(None);
    }
}

impl Gate {
    #[inline]
    fn is_own(&self, waker: &Waker) -> bool {
        self.waker.get() == identity(waker)
    }

    /// Stores the waker of a combinator, to be called when the wait ends.
    #[inline]
    fn keep_waker(&self, ticket: Ticket, waker: &Waker) {
        // The task's own waker is not stored: the end of the wait makes the task ready anyway.
        if !self.is_own(waker) {
            let mut waker = Some(waker.clone());
            if let Some(wait) = self.records.borrow_mut().waits.get_mut(ticket) {
                mem::swap(&mut wait.waker, &mut waker);
            }
            // The waker that was stored before is user code.
            drop(waker);
        }
    }
}

/// Makes an interrupt pending again. The verb that has read it returns a success, because what the
/// verb waits for has happened as well. So the next trap must get the interrupt.
pub(crate) fn give_back(interrupt: &Interrupt) {
    if gate::task().is_some() {
        post(Post::Repend(interrupt.clone()));
    }
}

/// Returns whether the task that is being polled may read the reply to a wait
/// ([`Records::is_open_to`](super::records::Records::is_open_to)).
pub(crate) fn is_here(ticket: Ticket) -> bool {
    let Some((gate, task)) = GATE.get().and_then(|gate| Some((gate, gate.task.get()?))) else {
        return false;
    };
    let records = gate.records.borrow();
    records.waits.get(ticket).is_some_and(|wait| records.is_open_to(wait, TaskIndex::of(task)))
}

/// One trap, from before it is filed until its reply is read.
///
/// The first poll files the trap and pends. Later polls take the reply if there is one. A trap
/// belongs to the task that polled it first. If another task polls it before it has its reply, or
/// if the reply is an interrupt, the trap is withdrawn from the first task and filed again in the
/// second.
///
/// A call is not `Send` and not `Sync`: a trap belongs to the gate of its thread.
#[derive(Debug)]
pub(crate) struct Call {
    ticket: Option<Ticket>,
    site: Site,
    local: PhantomData<Rc<()>>,
}

impl Call {
    /// Makes a call whose trap is not filed yet, at the caller's location.
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

    /// Returns the ticket of the wait, from the filing until the reply is read.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }

    /// Files the trap that `trap` makes, or takes the reply.
    #[inline(always)]
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        trap: impl FnOnce() -> Trap,
    ) -> Poll<Reply> {
        if let Some(ticket) = self.ticket {
            match collect(ticket, self.site, cx) {
                Collected::Reply(reply) => {
                    self.ticket = None;
                    return Poll::Ready(reply);
                }
                Collected::Pending => return Poll::Pending,
                // Withdraw it there, and go on to file it here.
                Collected::Refile => self.abandon(),
            }
        }
        self.ticket = Some(file(trap(), self.site, cx));
        Poll::Pending
    }

    /// Withdraws the trap, if it is filed. If its reply was not read, the kernel takes the content
    /// back.
    pub(crate) fn abandon(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            withdraw(ticket);
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
    /// Converts the reply of a trap that has no result, and that fails only by an interrupt.
    #[inline]
    pub(crate) fn done(self) -> Result<(), Interrupt> {
        match self {
            Reply::Interrupt(interrupt) => Err(interrupt),
            _ => Ok(()),
        }
    }

    /// Panics, because the kernel has broken the protocol.
    #[cold]
    pub(crate) fn wrong(self) -> ! {
        unreachable!("rule: a trap is answered in kind, not by {self:?}")
    }
}

/// Makes the future of a trap that needs no state of its own, as in most verbs.
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
