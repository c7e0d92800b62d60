//! Queues of waits: first in, first out.

use std::rc::Rc;

use traps::core::names::Ticket;
use traps::core::protocol::{Post, Reply};
use traps::core::queue::Queue;
use traps::core::records::{On, WaitState};

use super::Core;
use crate::machine::Machine;
use crate::trace::Seq;

impl<M: Machine> Core<M> {
    /// Puts a wait at the end of a queue.
    pub(super) fn stand_in(&mut self, queue: &Queue, ticket: Ticket) {
        self.number(queue);
        let (mut line, mut records) = (queue.line.get(), self.gate.records());
        line.push(&mut records.waits, ticket.index, |wait| &mut wait.in_queue);
        queue.line.set(line);
        queue.len.set(queue.len.get() + 1);
    }

    /// A wait has just parked. A permit may have been stored since its task checked, or what the
    /// queue waits for may have come.
    #[inline]
    pub(super) fn serve_newcomer(&mut self, queue: &Rc<Queue>) {
        if queue.over.get() {
            self.wake(queue, u64::MAX, self.log.seq);
        } else if queue.take_permit() && self.wake(queue, 1, self.log.seq) == 0 {
            queue.keep_permit();
        }
    }

    /// Wakes at most `n` waits, from the head; returns how many.
    pub(crate) fn wake(&mut self, queue: &Rc<Queue>, n: u64, cause: Seq) -> u64 {
        let home = queue.home.get();
        if queue.len.get() > 0 && home != self.shared.epoch {
            // Tasks of another kernel have come since this was posted.
            self.gate.post_to(home, Post::Wake(queue.clone(), n));
            return 0;
        }
        // The bound excludes a task that is woken here and waits again.
        let most = n.min(queue.len.get());
        for _ in 0..most {
            let Some(first) = queue.line.get().first() else { break };
            let mut records = self.gate.records();
            let ticket = records.waits.key(first);
            let keep = match records.waits[first].state {
                WaitState::Parked(On::Queue(_, keep)) => keep,
                _ => unreachable!("rule: who stands in a queue is parked there"),
            };
            records.leave(queue, ticket);
            drop(records);
            self.complete(ticket, Reply::Permit(queue.clone(), keep), cause);
        }
        most
    }

    /// Gives a permit to the first wait in the queue, or stores it.
    pub(crate) fn give_permit(&mut self, queue: &Rc<Queue>, keep: bool, cause: Seq) {
        let home = queue.home.get();
        if queue.len.get() > 0 && home != self.shared.epoch {
            self.gate.post_to(home, Post::Permit(queue.clone(), keep));
        } else if self.wake(queue, 1, cause) == 0 && keep {
            queue.keep_permit();
        }
    }
}
