//! Traps at the gate: filed, collected, withdrawn.

use std::mem;
use std::task::{Context, Waker};

use super::gate::{Filed, GATE, Gate, identity, in_task, is_listening};
use super::interrupt::{Delivery, Interrupt};
use super::names::{Site, TaskRef, Ticket};
use super::posting::post;
use super::protocol::{Note, Post, Reply, Trap};
use super::records::{Wait, WaitState};

/// What [`collect`] found.
pub(crate) enum Look {
    /// The reply; the record of the wait is gone.
    Reply(Reply),
    /// No reply yet.
    Nothing,
    /// The trap was filed by another task, or its task has ended: it has to be filed again.
    Elsewhere,
}

/// Files a trap of the task that is being polled.
#[inline]
pub(crate) fn file(trap: Trap, site: Site, cx: &Context<'_>) -> Ticket {
    let (gate, _) = in_task(site);
    let (scope, index) = (gate.scope.get(), gate.index.get());
    let mut wait = Wait::new(scope, index, WaitState::Filed(trap), site);
    if !gate.is_own(cx.waker()) {
        wait.waker = Some(cx.waker().clone());
    }
    let ticket = gate.records.borrow_mut().add(wait);
    if let Some(older) = gate.newest.replace(Some(ticket)) {
        gate.push(Filed::Trap(older));
    }
    ticket
}

/// Looks for the reply to a trap.
#[inline]
pub(crate) fn collect(ticket: Ticket, site: Site, cx: &Context<'_>) -> Look {
    let (gate, task) = in_task(site);
    let mut records = gate.records.borrow_mut();
    match records.waits.get(ticket) {
        Some(Wait { state: WaitState::Done(_), .. }) => {
            let taken = records.take(ticket);
            let Some(Wait { state: WaitState::Done(mut reply), scope, waker, .. }) = taken else {
                unreachable!("it was done just now")
            };
            let reader = gate.scope.get();
            if let Reply::Interrupt(interrupt) = &mut reply
                && scope != reader
            {
                records.move_interrupt(interrupt, reader);
            }
            drop(records);
            // A combinator's waker, if there is one, is dropped here.
            drop(waker);
            Look::Reply(reply)
        }
        Some(wait) if records.root_of(wait) == task.index => {
            drop(records);
            gate.keep_waker(ticket, cx.waker());
            Look::Nothing
        }
        _ => Look::Elsewhere,
    }
}

/// Withdraws a trap whose future is gone.
pub(crate) fn withdraw(ticket: Ticket) {
    let Some(gate) = GATE.get() else { return };
    let mut records = gate.records.borrow_mut();
    let Some(wait) = records.waits.get(ticket) else { return };
    let is_news = match &wait.state {
        WaitState::Filed(_) => false,
        WaitState::Parked(_) => true,
        WaitState::Done(reply) => {
            matches!(reply, Reply::Ready(..) | Reply::Permit(..) | Reply::Job(_))
        }
    };
    let task = records.scopes.key(records.root_of(wait));
    if is_news {
        if records.scopes[task.index].epoch != gate.epoch.get() {
            records.leave_early(ticket);
        }
        drop(records);
        return post(Post::Withdraw(ticket));
    }
    let gone = records.take(ticket);
    drop(records);
    if let Some(interrupt) = gone.as_ref().and_then(Wait::interrupt) {
        gate.put_back(task, interrupt);
    }
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

    /// A wait that pends is polled by a combinator: its waker is to be called.
    #[inline]
    fn keep_waker(&self, ticket: Ticket, waker: &Waker) {
        if !self.is_own(waker) {
            let mut waker = Some(waker.clone());
            if let Some(wait) = self.records.borrow_mut().waits.get_mut(ticket) {
                mem::swap(&mut wait.waker, &mut waker);
            }
            drop(waker);
        }
    }

    /// An interrupt of that task was not read, or changed nothing: it is pending again.
    fn put_back(&self, task: TaskRef, interrupt: &Interrupt) {
        let Delivery { source, place, order, .. } = *interrupt.delivery();
        let mut records = self.records.borrow_mut();
        let epoch = records.scopes.get(task).map(|root| root.epoch);
        let is_pending = records.put_back(source, place, order);
        drop(records);
        if let (true, Some(epoch), true) = (is_pending, epoch, is_listening()) {
            self.post_to(epoch, Post::Note(Note::PutBack(task, interrupt.clone())));
        }
    }
}

/// An interrupt was read, and what it would have ended was done: it is pending again.
pub(crate) fn unread(interrupt: &Interrupt) {
    if let Some(gate) = GATE.get()
        && let Some(task) = gate.task.get()
    {
        gate.put_back(task, interrupt);
    }
}

/// Whether a wait has its reply, or was filed by the task that is being polled.
pub(crate) fn is_here(ticket: Ticket) -> bool {
    let Some(gate) = GATE.get() else { return false };
    let records = gate.records.borrow();
    let Some(wait) = records.waits.get(ticket) else { return false };
    let root = records.scopes.key(records.root_of(wait));
    matches!(wait.state, WaitState::Done(_)) || gate.task.get() == Some(root)
}
