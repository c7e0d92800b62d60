//! The kernel's own task, number 1: it heeds what other threads sent.

use std::mem;
use std::sync::{Arc, OnceLock};

use traps::protocol::{Direction, TaskRef, Ticket};
use traps::threads::drop_quietly;

use crate::kernel::Kernel;
use crate::log::{WAKEUP, emit_for};
use crate::machine::Machine;
use crate::remote::Order;
use crate::threads::Done;
use crate::trace::{Event, Op, Seq, WakeOp};
use crate::wake;

/// What other threads send to the kernel.
pub(crate) enum Message {
    /// The task's waker was called.
    Wake(TaskRef),
    /// A job came back from its thread.
    Done(Done),
    /// The wait of that ticket was ended from outside.
    WakeTicket(Ticket),
    /// A task is to be made.
    Spawn(Order),
    /// A task that another thread asked for is to be cancelled.
    Cancel {
        /// Which, once it is made.
        task: Arc<OnceLock<TaskRef>>,
        /// Shown in the log and in the interrupt.
        reason: &'static str,
    },
    /// The kernel is to shut down.
    ShutDown(&'static str),
}

/// The state of that task.
#[derive(Default)]
pub(crate) struct Wakeup {
    /// It exists: the kernel has begun its first run.
    pub(crate) has_begun: bool,
    /// It has run once, and waits for the bell.
    is_parked: bool,
    /// Its last line.
    pub(crate) line: Seq,
    messages: Vec<Message>,
}

impl<M: Machine> Kernel<M> {
    /// Step 3 of a turn.
    #[inline]
    pub(crate) fn run_wakeup(&mut self) {
        if !self.wakeup.is_parked || !self.inbox.queue.is_empty() {
            self.move_messages();
        }
    }

    #[cold]
    fn move_messages(&mut self) {
        // A kernel may be shut down before its first run.
        self.boot();
        let alias = self.registrations.bell();
        let direction = Direction::Read;
        let mut cause = self.wakeup.line;
        if mem::replace(&mut self.wakeup.is_parked, true) {
            let op = WakeOp::Io { alias, direction };
            cause = emit_for!(self, WAKEUP, Event::Wake { op, ticket: None, cause });
        }
        let run = emit_for!(self, WAKEUP, Event::Run { cause, answered: Vec::new().into() });
        let mut messages = mem::take(&mut self.wakeup.messages);
        self.inbox.queue.drain(&mut messages);
        let came = messages.len();
        self.counts.batches += u64::from(came > 0);
        self.counts.wakes += came as u64;
        for message in messages.drain(..) {
            self.heed_message(message, run);
        }
        wake::trim(&mut messages, came);
        self.wakeup.messages = messages;
        let op = Op::Io { alias, direction };
        self.wakeup.line = emit_for!(self, WAKEUP, Event::Block { op, ticket: None, at: None });
    }

    /// Does what another thread asked for.
    fn heed_message(&mut self, message: Message, run: Seq) {
        match message {
            Message::Wake(task) => self.wake_task(task, run),
            Message::Done(done) => self.job_done(done),
            Message::WakeTicket(ticket) => self.wake_ticket(ticket, run),
            Message::Spawn(order) => self.spawn_from_outside(order, run),
            Message::Cancel { task, reason } => self.cancel_from_outside(&task, reason, run),
            Message::ShutDown(reason) => self.begin_shutdown(reason, run),
        }
    }

    /// Takes no more orders from other threads, only news.
    pub(crate) fn seal_messages(&mut self) {
        self.inbox.queue.seal();
        let mut messages = Vec::new();
        self.inbox.queue.drain(&mut messages);
        for message in messages {
            match message {
                Message::Spawn(..) | Message::Cancel { .. } | Message::ShutDown(_) => {
                    drop_quietly(message);
                }
                news => {
                    self.inbox.queue.push(news);
                }
            }
        }
    }

    /// Room that is kept for messages.
    #[cfg(test)]
    pub(crate) fn room_for_messages(&self) -> usize {
        self.wakeup.messages.capacity()
    }
}
