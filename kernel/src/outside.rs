//! Waits that end when they are woken from outside their task, by any thread.

use traps::gate;
use traps::outside::Outside;
use traps::protocol::{Answer, Ticket};

use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::table::At;
use crate::trace::{Op, Seq, WakeOp};
use crate::waits::Wait;
use crate::wake::WakeQueue;
use crate::waker::Message;

impl Outside for WakeQueue<Message> {
    fn wake(&self, ticket: Ticket) {
        if gate::is_running(ticket.epoch) {
            gate::post_wake_ticket(ticket);
        } else {
            self.push(Message::WakeTicket(ticket));
        }
    }
}

impl<M: Machine> Kernel<M> {
    pub(crate) fn wait_outside(&mut self, at: &At, what: &'static str, external: bool) {
        self.external += usize::from(external);
        let op = Op::Outside { what: what.into(), external };
        let what = self.waits.names.number(what);
        self.park(at, Wait::Outside { what, external }, || op);
    }

    /// A ticket was woken. Its number says whether it is still the same wait (C25).
    pub(crate) fn wake_ticket(&mut self, ticket: Ticket, cause: Seq) {
        let parked = self.parked(ticket);
        let Some(Wait::Outside { external, .. }) = parked.map(|entry| &entry.wait) else {
            self.counts.stale += 1;
            return;
        };
        let external = usize::from(*external);
        if self.is_doomed(ticket.index) {
            return;
        }
        self.external -= external;
        self.complete(ticket.index, Ok(Answer::Unit), WakeOp::Outside, cause);
    }
}
