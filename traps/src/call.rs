//! The one future that traps. Every verb is a few lines around it.

use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use crate::error::wrong_answer;
use crate::gate;
use crate::protocol::{Answer, Failure, Request, Site, TaskRef, Ticket, TrapResult};

/// One request, from before it is filed until its result is read.
///
/// First poll: files the request and pends. Later polls: take the result if it is there. A ticket
/// that matches nothing any more was of a kernel that is gone; the request is filed anew.
///
/// Neither `Send` nor `Sync`: a request belongs to the gate of its thread.
#[derive(Debug)]
pub(crate) struct Call {
    ticket: Option<Ticket>,
    site: Site,
    local: PhantomData<Rc<()>>,
}

impl Call {
    /// A request not yet made, at the caller's place in the source.
    #[track_caller]
    pub(crate) fn here() -> Call {
        Call::at(Location::caller())
    }

    pub(crate) fn at(site: Site) -> Call {
        Call { ticket: None, site, local: PhantomData }
    }

    /// One whose ticket is kept elsewhere between its polls.
    pub(crate) fn of(ticket: Option<Ticket>, site: Site) -> Call {
        Call { ticket, site, local: PhantomData }
    }

    pub(crate) fn site(&self) -> Site {
        self.site
    }

    /// Where the result will be, once the request is filed.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }

    /// The same, to be kept elsewhere.
    pub(crate) fn into_ticket(mut self) -> Option<Ticket> {
        self.ticket.take()
    }

    /// Whether the request is filed and its result not yet read.
    pub(crate) fn is_filed(&self) -> bool {
        self.ticket.is_some()
    }

    /// Files what `request` makes, or takes the result.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        request: impl FnOnce() -> Request,
    ) -> Poll<TrapResult> {
        if let Some(ticket) = self.ticket {
            match gate::collect(ticket, cx) {
                gate::Look::Result(result) => {
                    self.ticket = None;
                    return Poll::Ready(result);
                }
                gate::Look::Nothing => return Poll::Pending,
                gate::Look::Outside => gate::refuse_outside_a_task(self.site),
                // Its own kernel may live, and not run now.
                gate::Look::Gone => drop(self.abandon()),
            }
        }
        self.ticket = Some(gate::file(request(), self.site, cx));
        Poll::Pending
    }

    /// The same for a request whose answer is that it is done. That it is, and nothing else, is
    /// found without moving a result.
    #[inline]
    pub(crate) fn poll_done(
        &mut self,
        cx: &mut Context<'_>,
        request: impl FnOnce() -> Request,
    ) -> Poll<Result<(), Failure>> {
        if self.take_done() {
            return Poll::Ready(Ok(()));
        }
        self.poll(cx, request).map(only_done)
    }

    /// The same for a request that is answered with a task, whatever happens: mostly at once, and
    /// then without moving a result.
    #[inline]
    pub(crate) fn poll_task(
        &mut self,
        cx: &mut Context<'_>,
        request: impl FnOnce() -> Request,
    ) -> Poll<TaskRef> {
        if let Some(task) = self.ticket.and_then(gate::take_task) {
            self.ticket = None;
            return Poll::Ready(task);
        }
        match ready!(self.poll(cx, request)) {
            Ok(Answer::Task(task)) => Poll::Ready(task),
            other => unreachable!("rule: a spawn is answered with a task, not {other:?}"),
        }
    }

    /// Takes the result, if it is there and no more than that the request is done.
    #[inline]
    pub(crate) fn take_done(&mut self) -> bool {
        let done = self.ticket.is_some_and(gate::take_done);
        if done {
            self.ticket = None;
        }
        done
    }

    /// Gives the request up. A result that was there and unread comes back; an unread interrupt
    /// is pending again in its scope and does not.
    pub(crate) fn abandon(&mut self) -> Option<TrapResult> {
        gate::withdraw(self.ticket.take()?)
    }

    /// The same where nobody wants what it came to. Out of line: nearly all are dropped when they
    /// have their result, and every future of a trap has this in its drop.
    #[cold]
    fn give_up(&mut self) {
        drop(self.abandon());
    }
}

/// The answer has nothing in it.
#[inline(never)]
pub(crate) fn only_done(result: TrapResult) -> Result<(), Failure> {
    match result {
        Ok(Answer::Unit) => Ok(()),
        Ok(other) => wrong_answer(&other),
        Err(failure) => Err(failure),
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        if self.ticket.is_some() {
            self.give_up();
        }
    }
}
