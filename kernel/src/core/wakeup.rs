//! Task 1, `wakeup`: it handles the messages of other threads.

use std::borrow::Cow;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use traps::core::names::{Direction, Site, TaskRef, Ticket};
use traps::core::protocol::{Body, Reply};

use super::{Core, Services};
use crate::log::{self, KERNEL, WAKEUP, emit_for};
use crate::machine::Machine;
use crate::trace::{Arrival, Event, Op, Seq, WakeOp};

/// A message of another thread to the kernel.
pub(crate) enum Message {
    /// The task's waker was called.
    Wake(TaskRef),
    /// The wait of that ticket was ended from outside.
    Unpark(Ticket),
    /// The job of that number has ended.
    Done(u64),
    /// A task is to be made.
    Spawn(Order),
    /// A task that another thread asked for is to be cancelled, for this reason.
    Cancel(Arc<OnceLock<TaskRef>>, &'static str),
    /// The kernel is to shut down, for this reason.
    ShutDown(&'static str),
    /// The kernel is to take a turn.
    Turn,
}

/// Makes the body of a task of that name, on the kernel's thread.
type Build = dyn FnOnce(Cow<'static, str>) -> Pin<Box<dyn Body>> + Send;

/// A request for a new task.
pub(crate) struct Order {
    pub(crate) name: Cow<'static, str>,
    pub(crate) site: Site,
    /// Makes its body, on the kernel's thread.
    pub(crate) build: Box<Build>,
    /// The task's name in the kernel, once it has one.
    pub(crate) task: Arc<OnceLock<TaskRef>>,
}

/// The state of task 1.
#[derive(Default)]
pub(crate) struct Wakeup {
    /// Whether it exists: the kernel has begun its first run.
    has_begun: bool,
    /// Whether it has run once and waits for the bell.
    is_parked: bool,
    /// The number of its last line.
    line: Seq,
    messages: Vec<Message>,
}

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
