//! How a wait ends with a result, and what of it is noted for the log.
//!
//! Interrupts end waits too: that is in `delivery.rs`. What was waited for is the caller's matter.

use traps::gate::Completion;
use traps::protocol::{TaskRef, TrapResult};

use crate::emit::{drop_quietly, emit, quietly};
use crate::kernel::Kernel;
use crate::log;
use crate::longrun::Came;
use crate::machine::Machine;
use crate::task::State;
use crate::trace::{Answered, Event, Outcome, Seq, WakeOp};
use crate::waits::Over;

impl<M: Machine> Kernel<M> {
    /// Ends a wait with a result: its task becomes ready. Gives false if the future was gone.
    pub(crate) fn complete(
        &mut self,
        index: u32,
        result: TrapResult,
        op: WakeOp,
        cause: Seq,
    ) -> bool {
        self.complete_here(index, result, op, Some(cause)).is_some()
    }

    /// The same, inlined where it happens most. Gives the task. Where no cause is given, it is the
    /// wait's own line.
    #[inline(always)]
    pub(crate) fn complete_here(
        &mut self,
        index: u32,
        result: TrapResult,
        op: WakeOp,
        cause: Option<Seq>,
    ) -> Option<u32> {
        if self.log.is_listening() {
            return self.complete_told(index, result, op, cause);
        }
        let (over, task) = self.waits.end(&mut self.tasks, index)?;
        match self.gate.complete(over.index, self.epoch, result) {
            Completion::Ready(waker) => {
                self.log.seq += 1;
                let came = Came::Wait(op, over.site);
                task.make_ready(over.task, (self.log.seq, came), self.log.now, &mut self.ready);
                if let Some(waker) = waker {
                    quietly(|| waker.wake());
                }
                Some(over.task)
            }
            Completion::Withdrawn(result) => {
                self.drop_unheard(over, result);
                None
            }
        }
    }

    /// The same where somebody listens. Apart: what is to be known beforehand for the line would
    /// cost an echo that has none 14 instructions.
    #[cold]
    #[inline(never)]
    fn complete_told(
        &mut self,
        index: u32,
        result: TrapResult,
        op: WakeOp,
        cause: Option<Seq>,
    ) -> Option<u32> {
        let cause = cause.or_else(|| self.waits.get(index).map(|entry| entry.seq));
        let (over, _) = self.waits.end(&mut self.tasks, index)?;
        let outcome = log::outcome(&result);
        match self.gate.complete(over.index, self.epoch, result) {
            Completion::Ready(waker) => {
                self.note_answer(over.task, over.number, outcome);
                let (ticket, cause) = (Some(over.number), cause.expect("it was parked"));
                let seq = emit!(self, over.task, Event::Wake { op, ticket, cause });
                self.make_ready(over.task, seq, Came::Wait(op, over.site));
                if let Some(waker) = waker {
                    quietly(|| waker.wake());
                }
                Some(over.task)
            }
            Completion::Withdrawn(result) => {
                self.drop_unheard(over, result);
                None
            }
        }
    }

    /// A result came for a future that is gone: nobody was woken.
    #[cold]
    pub(crate) fn drop_unheard(&mut self, entry: Over, result: TrapResult) {
        emit!(self, entry.task, Event::Withdraw { ticket: entry.number });
        self.gate.forget_at(entry.index, self.epoch);
        drop_quietly(result);
    }

    /// For the `run` line to come. A task that runs reads it in this run.
    #[cold]
    pub(crate) fn note_answer(&mut self, task: u32, ticket: u64, outcome: Outcome<'static>) {
        let task = self.tasks.get_mut(task);
        if task.state != State::Running {
            let outcome = log::without_place(outcome);
            task.rare().news.answered.push(Answered { ticket, outcome });
        }
    }

    /// The task's own waker was called.
    pub(crate) fn wake_task(&mut self, task: TaskRef, cause: Seq) {
        let Some(index) = self.tasks.find(task) else { return };
        match self.tasks.get(index).state {
            State::Parked => {
                let event = Event::Wake { op: WakeOp::Waker, ticket: None, cause };
                let seq = emit!(self, index, event);
                self.make_ready(index, seq, Came::Waker);
            }
            State::Running => self.tasks.get_mut(index).woken = true,
            _ => {}
        }
    }
}
