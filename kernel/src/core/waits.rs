//! The end of a wait: by a reply, by an interrupt, or because its future is gone. Also how its task
//! becomes ready.
//!
//! A parked wait ends once. Either its event writes a reply into the record ([`Core::complete`]),
//! or an interrupt is written there ([`Core::deliver`]). Both make the task ready, and the task
//! reads the reply at its next poll. If the future is dropped first, [`Core::withdraw`] undoes the
//! wait, or takes back a reply that was never read.

use std::mem;
use std::task::Waker;

use traps::internal::protocol::{Parked, Post, Reply, ServicePost, Trap};
use traps::internal::scopes::{Wait, WaitState};
use traps::internal::table::{TaskRef, Ticket};
use traps::threads::{drop_quietly, quietly};

use super::Core;
use super::tasks::State;
use crate::log::emit;
use crate::machine::Machine;
use crate::trace::{Event, Op};

impl<M: Machine> Core<M> {
    /// Ends a parked wait with a reply and makes its task ready. Returns `false` if the wait has
    /// already ended.
    #[inline]
    pub(crate) fn complete(&mut self, ticket: Ticket, reply: Reply) -> bool {
        let Some((task, waker)) = self.settle(ticket, reply, Trap::word) else { return false };
        self.make_ready(task);
        if self.log.listening {
            self.log_wake(task, ticket);
        }
        call(waker);
        true
    }

    /// Writes a reply into the record of a parked wait. Returns the task, and the waker that a
    /// combinator has set. `word` is the word of the wait that the task comes back from.
    #[inline]
    pub(super) fn settle(
        &mut self,
        ticket: Ticket,
        reply: Reply,
        word: fn(&Trap) -> &'static str,
    ) -> Option<(u32, Option<Waker>)> {
        let mut records = self.gate.records();
        let wait = records.waits.get_mut(ticket).filter(|wait| wait.is_parked())?;
        wait.state = WaitState::Done(reply);
        self.tasks[wait.task].came = (word(&wait.trap), Some(wait.site));
        Some((wait.task, wait.waker.take()))
    }

    /// Makes a parked task ready. The next log line must be the reason. If the task is
    /// running, it is polled again after this poll.
    #[inline]
    pub(crate) fn make_ready(&mut self, index: u32) {
        let task = &mut self.tasks[index];
        match task.state {
            State::Parked => {
                task.state = State::Ready;
                let left = mem::replace(&mut task.since, self.now);
                if self.log.listening {
                    let has_run = task.runs > 0;
                    let rare = task.rare();
                    (rare.cause, rare.left) = (self.log.seq + 1, has_run.then_some(left));
                }
                self.ready.push(index);
            }
            State::Running => self.run.again = true,
            State::Ready => {}
        }
    }

    // ---- Wakers ----------------------------------------------------------------------------

    /// Handles a call of a task's own waker.
    pub(crate) fn wake_task(&mut self, task: TaskRef) {
        let Some(index) = self.find(task) else { return };
        match self.tasks[index].state {
            State::Parked => self.wake_by_waker(index),
            State::Running => self.run.woken = true,
            State::Ready => {}
        }
    }

    pub(super) fn wake_by_waker(&mut self, index: u32) {
        let cause = self.log.cause;
        self.tasks[index].came = ("", None);
        self.make_ready(index);
        emit!(self, index, Event::Wake { op: Op::Waker, ticket: None, cause });
    }

    /// Wakes a task if it is parked, and calls the wakers that combinators have set for its parked
    /// waits.
    pub(crate) fn poll_again(&mut self, index: u32) {
        if self.tasks[index].state == State::Parked {
            self.wake_by_waker(index);
        }
        for ticket in self.parked(index, |ticket, _| ticket) {
            let mut records = self.gate.records();
            let waker = records.waits.get_mut(ticket).and_then(|wait| wait.waker.take());
            drop(records);
            call(waker);
        }
    }

    /// Ends a wait of the trap `Park` with a reply. Returns `false` if the wait is not parked any
    /// more.
    pub(crate) fn unpark(&mut self, ticket: Ticket, reply: Reply) -> bool {
        let records = self.gate.records();
        let parked = records.waits.get(ticket).filter(|wait| wait.is_parked());
        let Some(&Trap::Park { external, .. }) = parked.map(|wait| &wait.trap) else {
            drop(records);
            drop_quietly(reply);
            return false;
        };
        drop(records);
        self.external -= usize::from(external);
        self.complete(ticket, reply)
    }

    // ---- Futures that are gone -------------------------------------------------------------

    /// Withdraws a wait: undoes it if it is parked, and takes back its reply if it was not read. A
    /// trap that the kernel has not dispatched is withdrawn at the gate.
    pub(crate) fn withdraw(&mut self, ticket: Ticket) {
        let records = self.gate.records();
        let Some(wait) = records.waits.get(ticket) else { return };
        let (task, is_parked) = (wait.task, wait.is_parked());
        let interrupt = wait.interrupt().cloned();
        drop(records);
        if is_parked {
            let (number, _) = self.log.number_of(ticket);
            emit!(self, task, Event::Withdraw { ticket: number });
            let (trap, _) = self.trap_of(ticket);
            self.undo(ticket, &trap);
        }
        // Before the record goes: it keeps the way out of scopes that have closed around it.
        if let Some(interrupt) = interrupt {
            self.put_back(&interrupt);
        }
        let Some(gone) = self.gate.records().take(ticket) else { return };
        let Wait { trap, state, waker, .. } = gone;
        drop_quietly(waker);
        if let WaitState::Done(reply) = state {
            self.give_back(&trap, reply);
        }
    }

    /// Withdraws the waits that an ended task still has.
    #[cold]
    pub(super) fn withdraw_all(&mut self, task: TaskRef) {
        let records = self.gate.records();
        let waits = records.waits_of(task.index);
        let mut left: Vec<_> = waits.map(|(ticket, wait)| (wait.is_parked(), ticket)).collect();
        drop(records);
        // The interrupt of a wait that was not read goes back, and must not end another wait of a
        // task that has ended. So parked waits go first.
        left.sort_by_key(|(is_parked, _)| !is_parked);
        for (_, ticket) in left {
            let mut records = self.gate.records();
            let waker = records.waits.get_mut(ticket).and_then(|wait| wait.waker.take());
            drop(records);
            self.withdraw(ticket);
            // A combinator in another task has the future now. It polls it again only if it is
            // woken.
            call(waker);
        }
    }

    /// Passes on the content of a reply that was not read: readiness, a permit, or a job that has
    /// ended.
    fn give_back(&mut self, trap: &Trap, reply: Reply) {
        match (reply, trap) {
            (Reply::Ready(urgent), Trap::Io { handle, direction }) => {
                self.ready_again(*handle, *direction, urgent);
            }
            (Reply::Permit, Trap::Wait { queue, keep }) => self.give_permit(queue, *keep),
            (Reply::Job(job), _) => self.post_to_services(ServicePost::Orphan(job)),
            (other, _) => drop_quietly(other),
        }
    }

    /// Undoes the changes that parking a wait has made outside its record.
    pub(super) fn undo(&mut self, ticket: Ticket, trap: &Trap) {
        match trap {
            Trap::Sleep { span, .. } => {
                self.gate.records().stale_timers += usize::from(*span > 0);
            }
            Trap::Io { handle, direction } => self.stop_waiting_for_io(*handle, *direction),
            Trap::Join { task, .. } => {
                if let Some(task) = self.find(*task) {
                    let (joins, mut records) = (&mut self.tasks[task].joins, self.gate.records());
                    joins.remove(&mut records.waits, ticket.index, |wait| &mut wait.in_queue);
                }
            }
            Trap::Wait { queue, .. } => self.gate.records().leave(queue, ticket),
            Trap::Park { what, external } => {
                self.external -= usize::from(*external);
                if let Parked::Job(job) = what {
                    self.post_to_services(ServicePost::Abandon(*job));
                }
            }
            // A yield ends with the run, and a trap that answers never parks.
            Trap::Yield { .. } | Trap::Clock | Trap::Check => {}
        }
    }

    fn post_to_services(&self, post: ServicePost) {
        self.gate.post(Post::Service(post));
    }

    /// Returns whether a wait is parked.
    pub(crate) fn is_parked(&self, ticket: Ticket) -> bool {
        self.gate.records().waits.get(ticket).is_some_and(Wait::is_parked)
    }

    /// Returns the parked waits of a task, in the order in which they were filed.
    pub(crate) fn parked<R>(&self, task: u32, look: impl Fn(Ticket, &Wait) -> R) -> Vec<R> {
        let records = self.gate.records();
        let waits = records.waits_of(self.tasks[task].root.index);
        let parked = waits.filter(|(_, wait)| wait.is_parked());
        parked.map(|(ticket, wait)| look(ticket, wait)).collect()
    }
}

/// Calls the waker that a combinator has set for a wait, if there is one.
#[inline]
pub(super) fn call(waker: Option<Waker>) {
    if let Some(waker) = waker {
        quietly(|| waker.wake());
    }
}
