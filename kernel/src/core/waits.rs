//! How a wait ends: with a reply, by an interrupt, or because its future is gone; and how its task
//! becomes ready.

use std::mem;
use std::task::Waker;

use traps::core::names::{TaskRef, Ticket};
use traps::core::protocol::{Parked, Post, Reply, ServicePost};
use traps::core::records::{On, Wait, WaitState};
use traps::threads::{drop_quietly, quietly};

use super::Core;
use super::tasks::State;
use super::timers::Owner;
use super::words::word;
use crate::log::{self, emit};
use crate::machine::Machine;
use crate::trace::{Answered, Event, Outcome, Seq, WakeOp};

impl<M: Machine> Core<M> {
    /// Ends a parked wait with a reply and makes its task ready. False if the wait has ended
    /// already. `cause` is the line of what ended it.
    #[inline]
    pub(crate) fn complete(&mut self, ticket: Ticket, reply: Reply, cause: Seq) -> bool {
        let outcome = self.log.listening.then(|| log::outcome(&reply));
        let Some((task, on, waker)) = self.settle(ticket, reply, word) else { return false };
        let mut seq = 0;
        if let Some(outcome) = outcome {
            let op = match (&on, &outcome) {
                (On::Io(handle, _), Outcome::Error(_)) => {
                    WakeOp::Closed { alias: self.alias(*handle) }
                }
                _ => self.awaited(&on),
            };
            let number = self.note_answer(task, ticket, outcome);
            seq = emit!(self, task, Event::Wake { op, ticket: Some(number), cause });
        }
        drop(on);
        self.make_ready(task, seq);
        call(waker);
        true
    }

    /// Writes the reply of a parked wait into its record. Gives the task, what the wait was for,
    /// and the waker that a combinator has set.
    #[inline]
    pub(super) fn settle(
        &mut self,
        ticket: Ticket,
        reply: Reply,
        word: fn(&On) -> &'static str,
    ) -> Option<(u32, On, Option<Waker>)> {
        let mut records = self.gate.records();
        let wait = records.waits.get_mut(ticket).filter(|wait| wait.is_parked())?;
        let was = mem::replace(&mut wait.state, WaitState::Done(reply));
        let WaitState::Parked(on) = was else { unreachable!("looked at just now") };
        let (task, waker) = (wait.task, wait.waker.take());
        self.tasks[task].came = (word(&on), Some(wait.site));
        Some((task, on, waker))
    }

    /// Notes the result of a wait for the next `run` line, and gives the number of the wait. A
    /// task that runs reads the result in this run, without a line.
    pub(super) fn note_answer(
        &mut self,
        task: u32,
        ticket: Ticket,
        outcome: Outcome<'static>,
    ) -> u64 {
        let (number, _) = self.log.number_of(ticket);
        let task = &mut self.tasks[task];
        if number != 0 && task.state != State::Running {
            let outcome = log::without_place(outcome);
            task.rare().answered.push(Answered { ticket: number, outcome });
        }
        number
    }

    /// Makes a parked task ready, with the line `cause`. A task that runs is polled again.
    #[inline]
    pub(crate) fn make_ready(&mut self, index: u32, cause: Seq) {
        let task = &mut self.tasks[index];
        match task.state {
            State::Parked => {
                task.state = State::Ready;
                let left = mem::replace(&mut task.since, self.now);
                if self.log.listening {
                    let has_run = task.runs > 0;
                    let rare = task.rare();
                    (rare.cause, rare.left) = (cause, has_run.then_some(left));
                }
                self.ready.push(index);
            }
            State::Running => self.run.again = true,
            State::Ready => {}
        }
    }

    // ---- Wakers ----------------------------------------------------------------------------

    /// The task's own waker was called.
    pub(crate) fn wake_task(&mut self, task: TaskRef, cause: Seq) {
        let Some(index) = self.find(task) else { return };
        match self.tasks[index].state {
            State::Parked => self.wake_by_waker(index, cause),
            State::Running => self.run.woken = true,
            State::Ready => {}
        }
    }

    pub(super) fn wake_by_waker(&mut self, index: u32, cause: Seq) {
        let event = Event::Wake { op: WakeOp::Waker, ticket: None, cause };
        let seq = emit!(self, index, event);
        self.tasks[index].came = ("", None);
        self.make_ready(index, seq);
    }

    /// Polls a task once more, and has the wakers of its combinators called.
    pub(crate) fn poll_again(&mut self, index: u32, cause: Seq) {
        if self.tasks[index].state == State::Parked {
            self.wake_by_waker(index, cause);
        }
        for ticket in self.parked(index, |ticket, _, _| ticket) {
            let mut records = self.gate.records();
            let waker = records.waits.get_mut(ticket).and_then(|wait| wait.waker.take());
            drop(records);
            call(waker);
        }
    }

    /// A parked wait was unparked.
    pub(crate) fn unpark(&mut self, ticket: Ticket, reply: Reply, cause: Seq) -> bool {
        let records = self.gate.records();
        let external = match records.waits.get(ticket).map(|wait| &wait.state) {
            Some(WaitState::Parked(On::Park(_, external))) => *external,
            _ => {
                drop(records);
                drop_quietly(reply);
                return false;
            }
        };
        drop(records);
        self.external -= usize::from(external);
        self.complete(ticket, reply, cause)
    }

    // ---- Futures that are gone -------------------------------------------------------------

    /// Withdraws a wait: undoes it if it is parked, and gives back its reply if that is unread. The
    /// gate withdraws by itself what the kernel need not hear of.
    pub(crate) fn withdraw(&mut self, ticket: Ticket, cause: Seq) {
        let records = self.gate.records();
        let Some(wait) = records.waits.get(ticket) else { return };
        let (task, is_parked) = (wait.task, wait.is_parked());
        drop(records);
        if is_parked {
            let (number, _) = self.log.number_of(ticket);
            // An observer may panic: the wait is still whole.
            emit!(self, task, Event::Withdraw { ticket: number });
        }
        let mut records = self.gate.records();
        let Some(wait) = records.waits.get_mut(ticket) else { return };
        let state = mem::replace(&mut wait.state, WaitState::Done(Reply::Done));
        drop(records);
        match state {
            WaitState::Filed(trap) => drop_quietly(trap),
            WaitState::Parked(on) => {
                self.undo(ticket, &on);
                drop_quietly(on);
            }
            WaitState::Done(reply) => self.give_back(task, reply, cause),
        }
        let gone = self.gate.records().take(ticket);
        drop_quietly(gone);
    }

    /// What an unread reply has handed over goes to the next who wants it.
    fn give_back(&mut self, task: u32, reply: Reply, cause: Seq) {
        match reply {
            Reply::Ready(handle, direction) => self.ready_again(handle, direction, cause),
            Reply::Permit(queue, keep) => self.give_permit(&queue, keep, cause),
            Reply::Interrupt(interrupt) => self.put_back(task, &interrupt),
            Reply::Job(job) => self.post_to_services(ServicePost::Orphan(job)),
            other => drop_quietly(other),
        }
    }

    /// Undoes what parking a wait changed outside its record.
    pub(super) fn undo(&mut self, ticket: Ticket, on: &On) {
        match on {
            On::Sleep(timer) => self.timers.cancel_of(*timer, Owner::Sleep(ticket)),
            On::Io(handle, direction) => self.stop_waiting_for_io(*handle, *direction),
            On::Queue(queue, _) => self.gate.records().leave(queue, ticket),
            On::Park(what, external) => {
                self.external -= usize::from(*external);
                if let Parked::Job(job) = what {
                    self.post_to_services(ServicePost::Abandon(*job));
                }
            }
            On::Yield { .. } => {}
        }
    }

    /// Posts to the services of this kernel, which may be dropped in a task of another one.
    fn post_to_services(&self, post: ServicePost) {
        self.gate.post_to(self.shared.epoch, Post::Service(post));
    }

    /// The parked waits of a task, in the order in which they were filed.
    pub(crate) fn parked<R>(&self, task: u32, look: impl Fn(Ticket, &Wait, &On) -> R) -> Vec<R> {
        let records = self.gate.records();
        let waits = records.waits_inside(self.tasks[task].root.index);
        let parked = waits.into_iter().filter_map(|ticket| {
            let wait = &records.waits[ticket.index];
            match &wait.state {
                WaitState::Parked(on) => Some(look(ticket, wait, on)),
                _ => None,
            }
        });
        parked.collect()
    }
}

/// Calls the waker that a combinator has set for a wait, if it has.
#[inline]
pub(super) fn call(waker: Option<Waker>) {
    if let Some(waker) = waker {
        quietly(|| waker.wake());
    }
}
