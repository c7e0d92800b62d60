//! Queues of waits: scheduling queues, and joins. First in, first out.

use std::rc::Rc;

use traps::TaskId;
use traps::protocol::{Answer, Ended, Owned, TaskRef, Ticket};
use traps::sync::QueueCore;

use crate::kernel::Kernel;
use crate::log::emit;
use crate::machine::Machine;
use crate::table::Asker;
use crate::task::{End, State};
use crate::trace::{Event, Op, Seq, WakeOp};
use crate::waits::On;

/// Scheduling queues.
impl<M: Machine> Kernel<M> {
    /// Parks a wait at the end of a queue.
    pub(crate) fn wait_in_queue(&mut self, asker: &Asker, keep: bool) {
        let queue = self.queue_of(asker);
        let op = Op::Wait { queue: self.queue_number(&queue) };
        queue.line.borrow_mut().push_back(asker.ticket());
        self.tasks[asker.task].own(asker.asked.serial, Owned::Queue(queue.clone()));
        self.park(asker, On::Queue { keep }, || op);
        // A permit may have been stored since the task checked.
        if queue.take_permit() && self.wake_queue(&queue, 1, self.log.seq) == 0 {
            queue.keep_permit();
        }
    }

    /// The `wake` trap.
    pub(crate) fn wake(&mut self, asker: &Asker, n: u64) {
        let queue = self.queue_of(asker);
        let op = Op::Wake { queue: self.queue_number(&queue), n };
        let count = self.will_wake(&queue, n);
        self.answer(asker, Answer::Count(count), || op);
        self.wake_queue(&queue, n, self.log.seq);
    }

    fn queue_of(&self, asker: &Asker) -> Rc<QueueCore> {
        match self.gate.take_owned(asker.asked.serial) {
            Some(Owned::Queue(queue)) => queue,
            _ => unreachable!("rule: a request for a queue owns it"),
        }
    }

    pub(crate) fn queue_number(&mut self, queue: &QueueCore) -> u64 {
        if queue.home.get() != self.shared.epoch {
            self.queues += 1;
            queue.home.set(self.shared.epoch);
            queue.number.set(self.queues);
        }
        queue.number.get()
    }

    /// How many waits a wake of `n` will reach.
    fn will_wake(&self, queue: &QueueCore, n: u64) -> u64 {
        n.min(queue.line.borrow().len() as u64)
    }

    /// Wakes at most `n` waits, from the head; returns how many.
    pub(crate) fn wake_queue(&mut self, queue: &Rc<QueueCore>, n: u64, cause: Seq) -> u64 {
        if queue.home.get() != self.shared.epoch {
            // The queue's waits are in another kernel, and came after this was posted.
            return 0;
        }
        // The bound excludes a task that is woken here and waits again.
        let most = self.will_wake(queue, n);
        let mut woken = 0;
        while woken < most {
            let Some(ticket) = queue.line.borrow_mut().pop_front() else { break };
            let Some(wait) = self.tasks[ticket.task].wait_mut(ticket.serial) else { continue };
            let On::Queue { keep } = wait.on else { continue };
            let op = WakeOp::Wait { queue: queue.number.get() };
            self.complete(ticket, On::Granted { keep }, |_| (op, cause));
            woken += 1;
        }
        woken
    }

    /// Gives a permit to the first wait in the queue, or stores it.
    pub(crate) fn give_permit(&mut self, queue: &Rc<QueueCore>, keep: bool, cause: Seq) {
        if self.wake_queue(queue, 1, cause) == 0 && keep {
            queue.keep_permit();
        }
    }
}

/// Joins.
impl<M: Machine> Kernel<M> {
    pub(crate) fn join(&mut self, asker: &Asker, wanted: TaskRef, id: TaskId, take: bool) {
        let op = || Op::Join { task: id.0 };
        let found = self.tasks.find(wanted);
        match found {
            Some(task) if !self.tasks[task].is_ended() => {
                self.park(asker, On::Join(wanted, take), op);
                let (ticket, joined) = (asker.ticket(), &mut self.tasks[task]);
                match joined.joiner {
                    None => joined.joiner = Some(ticket),
                    Some(_) => joined.rare().joiners.push(ticket),
                }
            }
            _ => {
                let (answer, owned) = self.joined(wanted, take);
                let taken = matches!(owned, Some(Owned::Body(_)));
                match owned {
                    None => self.answer(asker, answer, op),
                    Some(owned) => self.answer_owned(asker, owned, op),
                }
                if taken {
                    emit!(self, asker.task, Event::Join { task: id.0 });
                }
            }
        }
    }

    /// The result of a wait for the end of a task, once that has ended.
    pub(crate) fn joined_by(
        &mut self,
        joiner: u32,
        joined: TaskRef,
        take: bool,
    ) -> (Answer, Option<Owned>) {
        let id = self.tasks.find(joined).map(|joined| self.tasks[joined].id);
        let (answer, owned) = self.joined(joined, take);
        if let (Some(Owned::Body(_)), Some(task)) = (&owned, id) {
            emit!(self, joiner, Event::Join { task });
        }
        (answer, owned)
    }

    fn joined(&mut self, task: TaskRef, take: bool) -> (Answer, Option<Owned>) {
        match self.tasks.find(task) {
            Some(task) => self.take_output(task, take),
            None => (Answer::Ended(if take { Ended::Taken } else { Ended::Output }), None),
        }
    }

    /// The output of an ended task, removed from the task if `take`. A task without its output is
    /// gone.
    fn take_output(&mut self, task: u32, take: bool) -> (Answer, Option<Owned>) {
        let ended = &mut self.tasks[task];
        match ended.state {
            State::Ended(End::Panicked) => {
                let message = ended.rare().panic.clone().unwrap_or_default();
                (Answer::Owned, Some(Owned::Panicked(message)))
            }
            State::Ended(End::Dropped) => (Answer::Ended(Ended::Dropped), None),
            _ if !take => (Answer::Ended(Ended::Output), None),
            _ => match ended.body.take() {
                Some(body) => {
                    self.remove_task(task);
                    (Answer::Owned, Some(Owned::Body(body)))
                }
                None => (Answer::Ended(Ended::Taken), None),
            },
        }
    }

    /// Wakes the waits for the end of a task.
    pub(crate) fn wake_joiners(&mut self, task: u32, exit: Seq) {
        let name = self.tasks.name_of(task);
        let ended = &mut self.tasks[task];
        let (id, first) = (ended.id, ended.joiner.take());
        let others = ended.rare.as_mut().map(|rare| std::mem::take(&mut rare.joiners));
        for ticket in first.into_iter().chain(others.into_iter().flatten()) {
            let Some(wait) = self.tasks[ticket.task].wait_mut(ticket.serial) else { continue };
            let On::Join(_, take) = wait.on else { continue };
            self.complete(ticket, On::Joined(name, take), |_| (WakeOp::Join { task: id }, exit));
        }
    }

    /// A wait for the end of a task was interrupted or withdrawn.
    pub(crate) fn leave_joiners(&mut self, task: TaskRef, ticket: Ticket) {
        let Some(task) = self.tasks.find(task) else { return };
        let joined = &mut self.tasks[task];
        if joined.joiner == Some(ticket) {
            joined.joiner = None;
            if let Some(rare) = &mut joined.rare
                && !rare.joiners.is_empty()
            {
                joined.joiner = Some(rare.joiners.remove(0));
            }
        } else if let Some(rare) = &mut joined.rare {
            rare.joiners.retain(|other| *other != ticket);
        }
    }
}
