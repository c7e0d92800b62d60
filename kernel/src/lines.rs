//! Who waits in line: the joiners of a task and the waiters of a scheduling queue. First come,
//! first served.

use std::rc::Rc;

use traps::protocol::{Answer, Ended, QueueCore, TaskRef};

use crate::emit::emit;
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::table::At;
use crate::task::{NONE, State};
use crate::trace::{Event, Op, Seq, WakeOp};
use crate::waits::Wait;

impl<M: Machine> Kernel<M> {
    #[inline(never)]
    pub(crate) fn join(&mut self, at: &At, wanted: TaskRef, take: bool) {
        let op = || Op::Join { task: wanted.serial.get() };
        let found = self.tasks.find(wanted);
        match found {
            Some(task) if !self.tasks.get(task).is_ended() => {
                let joined = self.tasks.get(task);
                let ends = (joined.first_joiner, joined.last_joiner);
                self.park(at, Wait::Join { task, take }, op);
                let ends = self.waits.lines.append(ends, at.ticket.index);
                let joined = self.tasks.get_mut(task);
                (joined.first_joiner, joined.last_joiner) = ends;
            }
            _ => {
                let ended = found.map_or(Ended::Taken, |task| self.output_of(task, take));
                let taken = matches!(ended, Ended::Output(Some(_)));
                let result = Ok(Answer::Ended(ended));
                self.answer(at, result, op);
                if let Some(task) = found.filter(|_| taken) {
                    emit!(self, at.task, Event::Join { task: wanted.serial.get() });
                    self.remove_task(task);
                }
            }
        }
    }

    /// Parks a ticket at the end of a queue's line.
    pub(crate) fn wait_in_queue(&mut self, at: &At, queue: Rc<QueueCore>) {
        let op = Op::Wait { queue: self.queue_number(&queue) };
        let ends = (queue.head.get(), queue.tail.get());
        queue.waiting.set(queue.waiting.get() + 1);
        self.park(at, Wait::Queue(queue.clone()), || op);
        let (head, tail) = self.waits.lines.append(ends, at.ticket.index);
        queue.head.set(head);
        queue.tail.set(tail);
        // A permit may have been kept since the task looked.
        if let Some(left) = queue.permits.get().checked_sub(1) {
            // Before the wake, whose waker may give or take one.
            queue.permits.set(left);
            if self.wake_queue(&queue, 1, self.log.seq) == 0 {
                queue.keep_permit();
            }
        }
    }

    /// What an ended task left, taken out of it if so asked.
    fn output_of(&mut self, task: u32, take: bool) -> Ended {
        let ended = self.tasks.get_mut(task);
        match ended.state {
            State::Panicked => Ended::Panicked(Box::new(ended.rare().panic.clone().into())),
            State::Dropped => Ended::Dropped,
            _ if !take => Ended::Output(None),
            _ => match ended.body.take() {
                Some(body) => Ended::Output(Some(body)),
                None => Ended::Taken,
            },
        }
    }

    /// First come, first served: the first joiner that asked for the output has it. Whether there
    /// was one.
    pub(crate) fn wake_joiners(&mut self, task: u32, exit: Seq) -> bool {
        let mut is_taken = false;
        let joined = self.tasks.get(task);
        let (id, mut index) = (joined.id.get(), joined.first_joiner);
        while index != NONE {
            let entry = self.waits.get(index).expect("a line holds parked tickets");
            let Wait::Join { take, .. } = entry.wait else {
                unreachable!("only joiners stand in this line")
            };
            let (joiner, after) = (entry.task, self.waits.lines.get(index).after);
            let joined = self.tasks.get_mut(task);
            joined.first_joiner = after;
            if after == NONE {
                joined.last_joiner = NONE;
            } else {
                self.waits.lines.at(after).before = NONE;
            }
            let take = take && !self.gate.is_withdrawn(index, self.epoch);
            let ended = self.output_of(task, take);
            let taken = matches!(ended, Ended::Output(Some(_)));
            self.complete(index, Ok(Answer::Ended(ended)), WakeOp::Join { task: id }, exit);
            if taken {
                emit!(self, joiner, Event::Join { task: id });
            }
            is_taken |= taken;
            index = after;
        }
        is_taken
    }

    pub(crate) fn queue_number(&mut self, queue: &QueueCore) -> u64 {
        if queue.home.get() != self.epoch {
            self.queues += 1;
            queue.home.set(self.epoch);
            queue.number.set(self.queues);
        }
        queue.number.get()
    }

    /// How many a wake of `n` will reach.
    pub(crate) fn will_wake(&self, queue: &QueueCore, n: u64) -> u64 {
        let mut count = 0;
        let mut index = queue.head.get();
        while self.waits.get(index).is_some() && count < n {
            count += u64::from(!self.gate.is_withdrawn(index, self.epoch));
            index = self.waits.lines.get(index).after;
        }
        count
    }

    /// Wakes at most `n`, from the head; gives how many.
    pub(crate) fn wake_queue(&mut self, queue: &Rc<QueueCore>, n: u64, cause: Seq) -> u64 {
        let mut woken = 0;
        if queue.home.get() != self.epoch {
            // Who waits there now waits in another kernel, and came after this was posted.
            return 0;
        }
        // No more than wait now: whoever is woken and waits again is at the tail.
        for _ in 0..queue.waiting.get() {
            if woken == n {
                break;
            }
            let index = queue.head.get();
            if self.waits.get(index).is_none() {
                break;
            }
            let after = self.waits.lines.get(index).after;
            queue.head.set(after);
            queue.waiting.set(queue.waiting.get() - 1);
            match after {
                NONE => queue.tail.set(NONE),
                next => self.waits.lines.at(next).before = NONE,
            }
            let op = WakeOp::Wait { queue: queue.number.get() };
            woken += u64::from(self.complete(index, Ok(Answer::Unit), op, cause));
        }
        woken
    }

    /// Wakes all, but those whose wait a connection deadline ends in this turn (row D7): for what
    /// is begun before the deadlines fire.
    #[cold]
    pub(crate) fn wake_in_time(&mut self, queue: &Rc<QueueCore>, cause: Seq) {
        if queue.home.get() != self.epoch {
            return;
        }
        let mut next = queue.head.get();
        while self.waits.get(next).is_some() {
            let index = next;
            next = self.waits.lines.get(index).after;
            if !self.is_doomed(index) {
                self.leave_queue(queue, index);
                let op = WakeOp::Wait { queue: queue.number.get() };
                self.complete(index, Ok(Answer::Unit), op, cause);
            }
        }
    }

    /// Takes a waiter out of a queue, wherever it stands.
    pub(crate) fn leave_queue(&mut self, queue: &QueueCore, index: u32) {
        let ends = (queue.head.get(), queue.tail.get());
        let (head, tail) = self.waits.lines.remove(ends, index);
        queue.head.set(head);
        queue.tail.set(tail);
        queue.waiting.set(queue.waiting.get() - 1);
    }
}
