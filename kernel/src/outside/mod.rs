//! The part of the kernel that other threads use, and task 1, `wakeup`, which handles their
//! messages.

use std::mem;
use std::sync::{Arc, OnceLock};

use traps::protocol::{Direction, TaskRef, Ticket};

use crate::jobs::Done;
use crate::kernel::Kernel;
use crate::log::{KERNEL, WAKEUP, emit_for};
use crate::machine::Machine;
use crate::trace::{Arrival, Event, Op, Seq, WakeOp};

mod queue;
mod remote;
mod waker;

pub use queue::Bell;
pub(crate) use queue::WakeQueue;
use remote::Order;
pub use remote::{Remote, RemoteError, RemoteTask};
pub(crate) use waker::{Inbox, SpareWaker};

/// A message of another thread to the kernel.
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
        /// The task, once it is made.
        task: Arc<OnceLock<TaskRef>>,
        /// Shown in the log and in the interrupt.
        reason: &'static str,
    },
    /// The kernel is to shut down.
    ShutDown(&'static str),
    /// The kernel is to take a turn.
    Turn,
}

/// The state of task 1.
#[derive(Default)]
pub(crate) struct Wakeup {
    /// Whether it exists: the kernel has begun its first run.
    pub(crate) has_begun: bool,
    /// Whether it has run once and waits for the bell.
    is_parked: bool,
    /// The number of its last line.
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
            self.handle_message(message, run);
        }
        self.wakeup.messages = messages;
        let op = Op::Io { alias, direction };
        let event = Event::Block { op, ticket: None, reg: None, at: None };
        self.wakeup.line = emit_for!(self, WAKEUP, event);
    }

    /// Handles a message of another thread.
    fn handle_message(&mut self, message: Message, run: Seq) {
        match message {
            Message::Wake(task) => self.wake_task(task, run),
            Message::Done(done) => self.job_done(done),
            Message::WakeTicket(ticket) => self.wake_ticket(ticket, run),
            Message::Spawn(order) => self.spawn_from_outside(order, run),
            Message::Cancel { task, reason } => self.cancel_from_outside(&task, reason, run),
            Message::ShutDown(reason) => self.begin_shutdown(reason, run),
            Message::Turn => {}
        }
    }

    /// From now on refuses messages of other threads, except wakes and the results of jobs.
    pub(crate) fn seal_messages(&mut self) {
        self.inbox.queue.seal();
    }
}
