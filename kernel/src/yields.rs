//! Giving way: a wait that ends when its task has left the CPU.

use std::mem;

use traps::Time;
use traps::protocol::Answer;

use crate::kernel::Kernel;
use crate::longrun::{Came, Packed};
use crate::machine::Machine;
use crate::table::At;
use crate::task::State;
use crate::trace::{Op, WakeOp};
use crate::waits::{Entry, Wait};

impl<M: Machine> Kernel<M> {
    /// Gives way: the wait ends when the task has left the CPU. Where nothing else was filed,
    /// nothing can come in between: its result is put down at once, and the wait is in no table.
    #[inline(always)]
    pub(crate) fn give_way<'o>(&mut self, at: &At, sleep: bool, op: impl FnOnce() -> Op<'o>) {
        let alone = self.gate.is_alone(at.ticket) && self.scratch.yielded.is_empty();
        let task = self.tasks.get_mut(at.task);
        // One that was answered meanwhile is polled on first.
        if !alone || task.answered || self.log.is_listening() {
            return self.give_way_parked(at, sleep, op());
        }
        let (answer, op) = given(sleep, self.log.now);
        task.came = Packed::of(Came::Wait(op, at.site));
        self.gate.keep(at.ticket, Ok(answer));
        self.log.seq += 1;
        self.waits.next_number();
        self.gave_way = true;
    }

    #[cold]
    #[inline(never)]
    fn give_way_parked(&mut self, at: &At, sleep: bool, op: Op<'_>) {
        self.park(at, Wait::Yield { sleep }, || op);
        self.scratch.yielded.push(at.ticket.index);
    }

    /// A task that gave way, and filed nothing else, has left the CPU: it goes to the end of the
    /// queue.
    #[inline]
    pub(crate) fn end_giving_way(&mut self, index: u32) {
        self.gave_way = false;
        self.log.seq += 1;
        let task = self.tasks.get_mut(index);
        // Unless its waker was called: it is in the queue for that.
        if task.state == State::Parked {
            task.state = State::Ready;
            task.cause = self.log.seq;
            self.ready.push(index);
        }
    }

    /// The others who gave way in the poll that is over.
    #[cold]
    pub(crate) fn complete_yields(&mut self) {
        let mut yielded = mem::take(&mut self.scratch.yielded);
        for index in yielded.drain(..) {
            let Some(Entry { seq, wait: Wait::Yield { sleep }, .. }) = self.waits.get(index) else {
                continue;
            };
            let (seq, (answer, op)) = (*seq, given(*sleep, self.log.now));
            self.complete(index, Ok(answer), op, seq);
        }
        self.scratch.yielded = yielded;
    }
}

/// What a task that gave way gets, when it was asked for as a sleep or not.
#[inline]
fn given(sleep: bool, now: Time) -> (Answer, WakeOp) {
    if sleep { (Answer::Time(now), WakeOp::Sleep) } else { (Answer::Unit, WakeOp::Yield) }
}
