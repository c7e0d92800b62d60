//! Task 1, `wakeup`: it handles the messages of other threads.

use std::mem;

use traps::core::names::Direction;
use traps::core::protocol::Reply;

use super::wakers::Message;
use super::{Core, Services};
use crate::log::{self, KERNEL, WAKEUP, emit_for};
use crate::machine::Machine;
use crate::trace::{Arrival, Event, Op, WakeOp};

impl<M: Machine> Core<M> {
    /// Step 3 of a turn.
    #[inline]
    pub(crate) fn run_wakeup(&mut self, services: &mut impl Services<M>) {
        if !self.wakeup.is_parked || !self.inbox.queue.is_empty() {
            self.move_messages(services);
        }
    }

    #[cold]
    fn move_messages(&mut self, services: &mut impl Services<M>) {
        // A kernel may be shut down before its first run.
        self.boot();
        let alias = self.handles.bell();
        let direction = Direction::Read;
        let mut cause = self.wakeup.line;
        if mem::replace(&mut self.wakeup.is_parked, true) {
            cause = emit_for!(self, KERNEL, Event::Arrive(Arrival::Io { alias, direction }));
            let op = WakeOp::Io { alias, direction };
            cause = emit_for!(self, WAKEUP, Event::Wake { op, ticket: None, cause });
        }
        let event = Event::Run { cause, parked: None, answered: Vec::new().into() };
        let run = emit_for!(self, WAKEUP, event);
        let mut messages = mem::take(&mut self.wakeup.messages);
        self.inbox.queue.drain(&mut messages);
        self.counts.batches += u64::from(!messages.is_empty());
        self.counts.wakes += messages.len() as u64;
        for message in messages.drain(..) {
            match message {
                Message::Wake(task) => self.wake_task(task, run),
                Message::Unpark(ticket) => {
                    let is_stale = !self.unpark(ticket, Reply::Done, run);
                    self.counts.stale += u64::from(is_stale);
                }
                Message::Turn => {}
                other => services.message(self, other, run),
            }
        }
        self.wakeup.messages = messages;
        let op = Op::Io { alias, direction };
        let event = Event::Block { op, ticket: None, reg: None, at: None };
        self.wakeup.line = emit_for!(self, WAKEUP, event);
    }

    /// The first lines of a trace.
    pub(super) fn boot(&mut self) {
        if self.wakeup.has_begun {
            return;
        }
        self.wakeup.has_begun = true;
        let facts = self.options.facts(self.machine.clock_name());
        log::announce!(self, KERNEL, Event::Boot { text: facts.into() });
        let event = Event::Spawn { parent: None, cause: None, at: None };
        self.wakeup.line = emit_for!(self, WAKEUP, event);
    }
}
