//! How the wait of any trap parks and ends with a reply, and how its task becomes ready.
//!
//! A parked wait ends once. Either its event writes a reply into the record ([`Sched::complete`]),
//! or an interrupt is written there (`Core::deliver`). Both make the task ready, and the task
//! reads the reply at its next poll. If the future is dropped first, `Core::withdraw` undoes the
//! wait, or takes back a reply that was never read.

use std::mem;
use std::rc::Rc;
use std::task::Waker;

use traps::internal::protocol::{ParkedOn, Post, Reply, ServicePost, Trap};
use traps::internal::records::WaitState;
use traps::internal::table::{List, Queue, TaskIndex, TaskRef, Ticket};
use traps::internal::{drop_quietly, quietly};

use super::sched::Sched;
use super::tasks::TaskState;

use crate::log::lines::emit;
use crate::machine::Machine;
use crate::trace::{Event, Op, Reg};

impl<M: Machine> Sched<M> {
    /// Answers a trap with `reply`, without parking its wait. The task is polled again.
    #[inline]
    pub(crate) fn answer(&mut self, task: TaskIndex, ticket: Ticket, reply: Reply) {
        let mut records = self.gate.records();
        let Some(wait) = records.waits.get_mut(ticket) else { return };
        debug_assert!(!matches!(wait.state, WaitState::Done(_)), "a trap gets one reply");
        wait.state = WaitState::Done(reply);
        let waker = wait.waker.take();
        drop(records);
        if self.log.listening {
            self.log_answer(task, ticket);
        }
        self.run.again = true;
        call_waker(waker);
    }

    /// Lets a wait stay parked, as its dispatch has marked it. `reg` is the change that the wait
    /// made to the registration of its descriptor.
    #[inline(always)]
    pub(crate) fn park(&mut self, task: TaskIndex, ticket: Ticket, reg: Option<Reg>) {
        debug_assert!(self.is_parked(ticket), "dispatch marks a wait before its trap parks");
        if self.log.listening {
            self.log_wait(task, ticket, reg);
        } else {
            self.run.block_logged = true;
        }
    }

    /// Ends a parked wait with a reply and makes its task ready. Returns `false` if the wait has
    /// already ended.
    #[inline]
    pub(crate) fn complete(&mut self, ticket: Ticket, reply: Reply) -> bool {
        let Some((task, waker)) = self.write_reply(ticket, reply) else { return false };
        debug_assert!(!self.is_parked(ticket), "a wait with a reply is not parked");
        // Ready first, and then the line: the queue must never be behind what the log says.
        self.make_ready(task);
        if self.log.listening {
            self.log_wake(task, ticket);
        }
        // Last, because a waker is user code: it may drop this wait, or panic.
        call_waker(waker);
        true
    }

    /// Writes a reply into the record of a parked wait. Returns the task, and the waker that a
    /// combinator has set.
    #[inline]
    pub(crate) fn write_reply(
        &mut self,
        ticket: Ticket,
        reply: Reply,
    ) -> Option<(TaskIndex, Option<Waker>)> {
        let mut records = self.gate.records();
        // The first result stays. If data and a timeout come in one turn, the data came first,
        // because arrivals are handled before timers.
        let wait = records.waits.get_mut(ticket).filter(|wait| wait.is_parked())?;
        wait.state = WaitState::Done(reply);
        Some((wait.task, wait.waker.take()))
    }

    /// Makes a parked task ready. If the task is running, it is polled again after this poll. The
    /// caller must write the reason as the next log line: its number is stored here as the cause.
    #[inline]
    pub(crate) fn make_ready(&mut self, index: TaskIndex) {
        let task = &mut self.tasks[index];
        match task.state {
            TaskState::Parked => {
                task.state = TaskState::Ready;
                let left = mem::replace(&mut task.since, self.now);
                if self.log.listening {
                    let has_run = task.runs > 0;
                    let rare = task.rare();
                    (rare.cause, rare.left) = (self.log.seq + 1, has_run.then_some(left));
                    if !has_run {
                        rare.lines[0] = rare.cause;
                    }
                }
                self.ready.push(index);
            }
            // Its own poll has ended the wait, by a post for example. Without another poll, it
            // would leave the CPU with nothing to wake it.
            TaskState::Running => self.run.again = true,
            TaskState::Ready => {}
        }
    }

    /// Ends the yields and the sleeps of zero length of the task that leaves the CPU.
    #[inline]
    pub(super) fn end_yields(&mut self) {
        // Taken, because completing a wait needs all of the scheduler. The memory goes back for the
        // next run.
        let mut yields = mem::take(&mut self.run.yields);
        for (ticket, is_sleep) in yields.drain(..) {
            let reply = if is_sleep { Reply::Time(self.now) } else { Reply::Done };
            if self.log.listening {
                (_, self.log.cause) = self.log.number_of(ticket);
            }
            self.complete(ticket, reply);
        }
        self.run.yields = yields;
    }

    // ---- Wakers ----------------------------------------------------------------------------

    /// Handles a call of a task's own waker.
    pub(crate) fn wake_task(&mut self, task: TaskRef) {
        let Some(index) = self.find(task) else { return };
        match self.tasks[index].state {
            TaskState::Parked => self.wake_by_waker(index),
            // Not `again`: a task that wakes itself in each poll would never leave the CPU.
            TaskState::Running => self.run.woken = true,
            TaskState::Ready => {}
        }
    }

    pub(crate) fn wake_by_waker(&mut self, index: TaskIndex) {
        let cause = self.log.cause;
        self.make_ready(index);
        emit!(self, index, Event::Wake { op: Op::Waker, ticket: None, cause });
    }

    /// Wakes a task if it is parked, and calls the wakers that combinators have set for its parked
    /// waits.
    pub(crate) fn wake_all_of(&mut self, index: TaskIndex) {
        if self.tasks[index].state == TaskState::Parked {
            self.wake_by_waker(index);
        }
        for ticket in self.parked(index, |ticket, _| ticket) {
            let mut records = self.gate.records();
            let waker = records.waits.get_mut(ticket).and_then(|wait| wait.waker.take());
            drop(records);
            call_waker(waker);
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
        // A virtual clock stands still as long as this is not 0.
        self.external -= usize::from(external);
        self.complete(ticket, reply)
    }

    pub(crate) fn post_to_services(&self, post: ServicePost) {
        self.gate.post(Post::Service(post));
    }

    /// Undoes the changes that parking a wait has made outside its record and its handle.
    pub(crate) fn undo_park(&mut self, ticket: Ticket, trap: &Trap) {
        match trap {
            Trap::Sleep { span, .. } => {
                // Its entry stays in the heap, and is counted, so that the heap is rebuilt when
                // half of it is stale.
                self.gate.records().stale_timers += usize::from(*span > 0);
            }
            Trap::Join { task, .. } => {
                if let Some(task) = self.find(*task) {
                    let (joins, mut records) = (&mut self.tasks[task].joins, self.gate.records());
                    joins.remove(&mut records.waits, ticket.index, |wait| &mut wait.in_queue);
                }
            }
            Trap::Wait { queue, .. } => self.gate.records().dequeue(queue, ticket),
            Trap::Park { what, external } => {
                self.external -= usize::from(*external);
                if let ParkedOn::Job(job) = what {
                    self.post_to_services(ServicePost::Abandon(*job));
                }
            }
            // A handle undoes its waits itself. A yield ends with the run, and a trap that answers
            // never parks.
            Trap::Io { .. } | Trap::Yield { .. } | Trap::Clock | Trap::Check => {}
        }
    }

    // ---- Queues ----------------------------------------------------------------------------

    /// Appends a wait to the list of waits for the end of a task, if the task has not ended.
    pub(super) fn enqueue_join(&mut self, task: TaskRef, ticket: Ticket) {
        if let Some(task) = self.find(task) {
            let (joins, mut records) = (&mut self.tasks[task].joins, self.gate.records());
            joins.push(&mut records.waits, ticket.index, |wait| &mut wait.in_queue);
        }
    }

    /// Ends a join that has just parked, if the joined task has ended.
    pub(super) fn complete_if_ended(&mut self, task: TaskRef, ticket: Ticket) {
        if self.find(task).is_none() {
            self.by_last_line(|sched| _ = sched.complete(ticket, Reply::Done));
        }
    }

    /// Ends the waits for the end of a task, in the order in which they were filed.
    pub(super) fn end_joins(&mut self, mut joins: List) {
        while let Some(first) = joins.first() {
            let mut records = self.gate.records();
            joins.remove(&mut records.waits, first, |wait| &mut wait.in_queue);
            let ticket = records.waits.key(first);
            drop(records);
            self.complete(ticket, Reply::Done);
        }
    }

    /// Appends a wait to a queue.
    pub(super) fn enqueue(&mut self, queue: &Queue, ticket: Ticket) {
        // Numbers in the order of first use, so that the log does not depend on addresses.
        self.log.names.number(queue);
        let (mut list, mut records) = (queue.waiters.get(), self.gate.records());
        list.push(&mut records.waits, ticket.index, |wait| &mut wait.in_queue);
        queue.waiters.set(list);
        queue.len.set(queue.len.get() + 1);
    }

    /// Wakes a wait that has just parked in `queue`, if its event has happened or a permit is
    /// stored. It may have happened between the task's check and now.
    #[inline]
    pub(super) fn grant_if_available(&mut self, queue: &Rc<Queue>) {
        debug_assert!(queue.len.get() > 0, "the new wait is in the queue");
        if queue.over.get() {
            self.by_last_line(|sched| _ = sched.wake(queue, u64::MAX));
        } else if queue.take_permit() {
            self.by_last_line(|sched| sched.give_permit(queue, true));
        }
    }

    /// Calls `end`, which ends a wait that has just parked, with the log line of the wait as the
    /// cause.
    fn by_last_line(&mut self, end: impl FnOnce(&mut Self)) {
        let cause = mem::replace(&mut self.log.cause, self.log.seq);
        end(self);
        self.log.cause = cause;
    }

    /// Wakes the first waits in a queue, at most `n`. Returns how many.
    pub(crate) fn wake(&mut self, queue: &Rc<Queue>, n: u64) -> u64 {
        // All that wait now, if `n` is larger.
        let most = n.min(queue.len.get());
        for _ in 0..most {
            // The wakers of the waits before may have emptied the queue.
            let Some(first) = queue.waiters.get().first() else { break };
            let mut records = self.gate.records();
            let ticket = records.waits.key(first);
            // Out of the queue first: a wait with a reply is in no queue.
            records.dequeue(queue, ticket);
            drop(records);
            self.complete(ticket, Reply::Permit);
        }
        most
    }

    /// Gives a permit to the first wait in a queue. If the queue is empty, stores the permit, but
    /// only if `keep` is true.
    pub(crate) fn give_permit(&mut self, queue: &Rc<Queue>, keep: bool) {
        if self.wake(queue, 1) == 0 && keep {
            queue.keep_permit();
        }
    }
}

/// Calls the waker that a combinator has set for a wait, if there is one.
#[inline]
pub(crate) fn call_waker(waker: Option<Waker>) {
    if let Some(waker) = waker {
        quietly(|| waker.wake());
    }
}
