//! Completion: how a wait ends with a result, and how its task becomes ready.

use std::mem;
use std::task::Waker;

use traps::protocol::{TaskRef, Ticket};
use traps::threads::{drop_quietly, quietly};

use crate::kernel::Kernel;
use crate::log::{self, emit};
use crate::machine::Machine;
use crate::table::Asker;
use crate::task::State;
use crate::trace::{Answered, Event, Op, Outcome, Seq, WakeOp};
use crate::waits::{On, Wait};

impl<M: Machine> Kernel<M> {
    /// Parks a request until its task has left the CPU. `zero`: it is a sleep with a span of zero.
    #[inline]
    pub(crate) fn give_way<'o>(&mut self, asker: &Asker, zero: bool, op: impl FnOnce() -> Op<'o>) {
        self.tasks[asker.task].gives_way = true;
        self.park(asker, On::Yield { zero }, op);
    }

    /// The task has left the CPU: it goes to the end of the ready queue.
    #[inline]
    pub(crate) fn end_yields(&mut self, task: u32) {
        if let Some(Wait { serial, on: On::Yield { zero }, .. }) = self.tasks[task].first {
            self.end_yield(Ticket { task, serial }, zero);
        }
        if self.tasks[task].rare.is_some() {
            self.end_more_yields(task);
        }
    }

    #[cold]
    fn end_more_yields(&mut self, task: u32) {
        let yields = self.tasks[task].parked().filter_map(|wait| match wait.on {
            On::Yield { zero } => Some((Ticket { task, serial: wait.serial }, zero)),
            _ => None,
        });
        for (ticket, zero) in yields.collect::<Vec<_>>() {
            self.end_yield(ticket, zero);
        }
    }

    fn end_yield(&mut self, ticket: Ticket, zero: bool) {
        let (come, op) = match zero {
            true => (On::Slept(self.log.now), WakeOp::Sleep),
            false => (On::Done, WakeOp::Yield),
        };
        self.complete(ticket, come, |kernel| (op, kernel.block_line(ticket)));
    }

    /// The line in which a wait was parked.
    pub(crate) fn block_line(&self, ticket: Ticket) -> Seq {
        self.log.number_of(&self.tasks[ticket.task], ticket.serial).1
    }

    /// Completes a parked wait and makes its task ready. `show` is for the log: what ended the
    /// wait, and the line of the cause. False if the wait has ended already.
    #[inline]
    pub(crate) fn complete(
        &mut self,
        ticket: Ticket,
        come: On,
        show: impl FnOnce(&Kernel<M>) -> (WakeOp, Seq),
    ) -> bool {
        let task = &mut self.tasks[ticket.task];
        if !task.complete(ticket.serial, come) {
            return false;
        }
        let has_rare = task.rare.is_some();
        let mut seq = 0;
        if self.log.listening {
            let (op, cause) = show(self);
            let outcome = log::result(come, self.tasks[ticket.task].owned(ticket.serial));
            let number = self.log.number_of(&self.tasks[ticket.task], ticket.serial).0;
            self.note_answer(ticket, outcome);
            seq = emit!(self, ticket.task, Event::Wake { op, ticket: Some(number), cause });
        }
        self.make_ready(ticket.task, seq);
        if has_rare {
            self.call_waker(ticket);
        }
        true
    }

    /// Notes the result of a wait for the next `run` line. A task that runs reads the result in
    /// this run, without a line.
    pub(crate) fn note_answer(&mut self, ticket: Ticket, outcome: Outcome<'static>) {
        let number = self.log.number_of(&self.tasks[ticket.task], ticket.serial).0;
        let task = &mut self.tasks[ticket.task];
        if task.state == State::Running {
            return self.log.forget(task, ticket.serial);
        }
        if number == 0 {
            // A `run` line has shown an earlier result, which nobody read.
            return;
        }
        let outcome = log::without_place(outcome);
        let answered = &mut task.rare().logged.answered;
        match answered.iter_mut().find(|answered| answered.ticket == number) {
            Some(answered) => answered.outcome = outcome,
            None => answered.push(Answered { ticket: number, outcome }),
        }
    }

    /// Makes a parked task ready, with the line `cause`. A task that runs is polled again.
    #[inline]
    pub(crate) fn make_ready(&mut self, index: u32, cause: Seq) {
        let task = &mut self.tasks[index];
        if task.state == State::Parked {
            task.state = State::Ready;
            let left = mem::replace(&mut task.since, self.log.now);
            if self.log.listening {
                let has_run = task.runs > 0;
                let logged = &mut task.rare().logged;
                (logged.cause, logged.left) = (cause, has_run.then_some(left));
            }
            self.ready.push(index);
        } else if task.state == State::Running {
            task.answered = true;
        }
    }

    // ---- Wakers ----------------------------------------------------------------------------

    /// The task's own waker was called.
    pub(crate) fn wake_task(&mut self, task: TaskRef, cause: Seq) {
        let Some(index) = self.tasks.find(task) else { return };
        match self.tasks[index].state {
            State::Parked => self.wake_by_waker(index, cause),
            State::Running => self.tasks[index].woken = true,
            State::Ready | State::Ended(_) | State::Free => {}
        }
    }

    pub(crate) fn wake_by_waker(&mut self, index: u32, cause: Seq) {
        let event = Event::Wake { op: WakeOp::Waker, ticket: None, cause };
        let seq = emit!(self, index, event);
        self.make_ready(index, seq);
    }

    /// A wait was ended from outside its task.
    pub(crate) fn wake_ticket(&mut self, ticket: Ticket, cause: Seq) {
        let wait = self.tasks.get_mut(ticket.task).and_then(|task| task.wait_mut(ticket.serial));
        match wait.map(|wait| &wait.on) {
            Some(On::Outside(_, external)) => {
                self.external -= usize::from(*external);
                self.complete(ticket, On::Done, |_| (WakeOp::Outside, cause));
            }
            _ => self.counts.stale += 1,
        }
    }

    /// The future of a wait is polled by a combinator, whose own waker is to be called.
    pub(crate) fn set_waker(&mut self, ticket: Ticket, waker: Waker) {
        let task = &mut self.tasks[ticket.task];
        if !task.parked().any(|wait| wait.serial == ticket.serial) {
            // The wait has its answer already.
            return quietly(|| waker.wake());
        }
        let wakers = &mut task.rare().wakers;
        let old = match wakers.iter_mut().find(|(serial, _)| *serial == ticket.serial) {
            Some((_, old)) => Some(mem::replace(old, waker)),
            None => {
                wakers.push((ticket.serial, waker));
                None
            }
        };
        drop_quietly(old);
    }

    /// Calls the waker of a wait that has ended, if a combinator set one.
    #[inline]
    pub(crate) fn call_waker(&mut self, ticket: Ticket) {
        let Some(rare) = &mut self.tasks[ticket.task].rare else { return };
        if let Some(place) = rare.wakers.iter().position(|(serial, _)| *serial == ticket.serial) {
            let (_, waker) = rare.wakers.swap_remove(place);
            quietly(|| waker.wake());
        }
    }

    /// Calls the wakers that combinators set for the waits of a task.
    pub(crate) fn call_all_wakers(&mut self, task: u32) {
        let rare = self.tasks[task].rare.as_mut();
        for (_, waker) in rare.map(|rare| mem::take(&mut rare.wakers)).into_iter().flatten() {
            quietly(|| waker.wake());
        }
    }
}
