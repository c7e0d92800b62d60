//! Wakes from outside: the wakers of tasks, the messages of other threads, and task 1, `wakeup`,
//! which handles the messages.
//!
//! Most tasks never have their waker cloned. So the kernel keeps one *spare* waker, and lends it to
//! each poll; the spare names the task of that poll. If a poll keeps a clone of the spare, the
//! spare belongs to that task from then on, and the kernel makes a new one for the other tasks.

use std::borrow::Cow;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};

use traps::internal::gate::{self, Outside};
use traps::internal::protocol::{Body, Reply};
use traps::internal::table::{Direction, Site, TaskRef, Ticket};
use traps::tape::{self, Answer, Words, escaped, unescaped};
use traps::threads::is_in_job;

use super::wake_queue::WakeQueue;
use crate::core::{Core, Services};
use crate::log::{KERNEL, WAKEUP, announce, emit_for};
use crate::machine::Machine;
use crate::trace::{Arrival, Event, Op, Parent, Seq};

/// A message of another thread to the kernel.
pub(crate) enum Message {
    /// A call of a task's own waker.
    Wake(TaskRef),
    /// A wake for the wait of this ticket.
    Unpark(Ticket),
    /// The end of the job with this number.
    Done(u64),
    /// A request to make a task.
    Spawn(Order),
    /// A request to cancel a task that another thread has ordered, with the reason.
    Cancel(Arc<OnceLock<TaskRef>>, &'static str),
    /// A request to shut down, with the reason.
    ShutDown(&'static str),
    /// A request to take a turn.
    Turn,
}

/// A function that makes the future of a task, on the kernel's thread.
type Build = dyn FnOnce() -> Pin<Box<dyn Body>> + Send;

/// A request for a new task.
pub(crate) struct Order {
    pub(crate) name: Cow<'static, str>,
    pub(crate) site: Site,
    /// The function that makes the task's body, on the kernel's thread.
    pub(crate) build: Box<Build>,
    /// The reference to the task, once the kernel has made it.
    pub(crate) task: Arc<OnceLock<TaskRef>>,
}

/// A sender of wakes to a kernel, for any thread.
#[derive(Clone)]
pub(crate) struct Inbox {
    /// The number of the kernel.
    pub(crate) epoch: u32,
    pub(crate) queue: Arc<WakeQueue<Message>>,
}

impl Inbox {
    /// Returns whether the kernel runs on this thread and is not playing a scripted job.
    fn is_here(&self) -> bool {
        gate::is_running(self.epoch) && !is_in_job()
    }

    fn wake_task(&self, task: TaskRef) {
        if self.is_here() {
            gate::post_woken(task);
        } else {
            self.queue.push(Message::Wake(task));
        }
    }
}

impl Outside for Inbox {
    fn unpark(&self, ticket: Ticket) {
        if self.is_here() {
            gate::post_unpark(ticket);
        } else {
            self.queue.push(Message::Unpark(ticket));
        }
    }
}

struct TaskWaker {
    /// The task that this waker wakes, packed in one word. A spare names one task after the other.
    task: AtomicU64,
    inbox: Inbox,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let word = self.task.load(Ordering::Relaxed);
        let task = TaskRef::new(word as u32, (word >> 32) as u32);
        self.inbox.wake_task(task);
    }
}

/// A waker that is lent to one poll after the other, until a poll keeps a clone of it.
pub(crate) struct SpareWaker {
    pub(crate) waker: Waker,
    inside: Arc<TaskWaker>,
}

impl SpareWaker {
    pub(crate) fn new(inbox: &Inbox) -> SpareWaker {
        let inside = Arc::new(TaskWaker { task: AtomicU64::new(0), inbox: inbox.clone() });
        SpareWaker { waker: Waker::from(inside.clone()), inside }
    }

    /// Returns the waker for one poll of `task`.
    #[inline]
    pub(crate) fn lend(&self, task: TaskRef) -> &Waker {
        let word = u64::from(task.serial()) << 32 | u64::from(task.index);
        self.inside.task.store(word, Ordering::Relaxed);
        &self.waker
    }

    /// Returns whether a poll has kept a clone of the waker.
    #[inline]
    pub(crate) fn was_kept(&self) -> bool {
        Arc::strong_count(&self.inside) != 2 || {
            // Another thread may have called and dropped a clone. The fence orders this before the
            // next `lend`.
            fence(Ordering::Acquire);
            false
        }
    }
}

/// The state of task 1.
#[derive(Default)]
pub(crate) struct Wakeup {
    /// Whether the task exists, because the kernel has begun its first run.
    pub(crate) has_begun: bool,
    /// Whether the task has run once and waits for the bell.
    pub(crate) is_parked: bool,
    /// Whether the task is handling messages.
    pub(crate) runs: bool,
    /// The number of the task's last log line.
    pub(crate) line: Seq,
    pub(crate) messages: Vec<Message>,
}

impl<M: Machine> Core<M> {
    /// Runs task 1 if the wake queue has messages (step 3 of a turn).
    #[inline]
    pub(crate) fn run_wakeup(&mut self, services: &mut impl Services<M>) {
        if !self.wakeup.is_parked || self.has_messages() {
            self.move_messages(services);
        }
    }

    #[inline]
    fn has_messages(&self) -> bool {
        if M::IS_TAPED && tape::answers() {
            return tape::is_next(&format!("messages {}", self.turn));
        }
        !self.inbox.queue.is_empty()
    }

    #[cold]
    fn move_messages(&mut self, services: &mut impl Services<M>) {
        // A kernel may be shut down before its first run.
        self.boot();
        let mut messages = mem::take(&mut self.wakeup.messages);
        self.inbox.queue.drain(&mut messages);
        if M::IS_TAPED {
            messages = taped(self.turn, messages);
        }
        let alias = self.handles.bell();
        let direction = Direction::Read;
        if mem::replace(&mut self.wakeup.is_parked, true) {
            emit_for!(self, KERNEL, Event::Arrive(Arrival::Io { alias, direction }));
            let (op, cause) = (Op::Io { alias, direction }, self.log.cause);
            self.wakeup.line = emit_for!(self, WAKEUP, Event::Wake { op, ticket: None, cause });
        }
        self.counts.batches += u64::from(!messages.is_empty());
        self.counts.wakes += messages.len() as u64;
        self.wakeup.runs = true;
        let (cause, number) = (self.wakeup.line, messages.len() as u64);
        let answered = Vec::new().into();
        let event = Event::Run { cause, messages: number, parked: None, answered };
        let run = emit_for!(self, WAKEUP, event);
        for message in messages.drain(..) {
            self.log.cause = run;
            match message {
                Message::Wake(task) => self.wake_task(task),
                Message::Unpark(ticket) => {
                    let is_stale = !self.unpark(ticket, Reply::Done);
                    self.counts.stale += u64::from(is_stale);
                }
                Message::Turn => {}
                other => services.message(self, other),
            }
            self.between_events();
        }
        self.wakeup.messages = messages;
        self.wakeup.runs = false;
        let op = Op::Io { alias, direction };
        self.wakeup.line = emit_for!(self, WAKEUP, Event::Block { op, wait: None });
    }

    /// Logs the first lines of a trace, once.
    pub(crate) fn boot(&mut self) {
        if self.wakeup.has_begun {
            return;
        }
        self.wakeup.has_begun = true;
        let facts = self.options.facts(self.machine.clock_name());
        announce!(self, KERNEL, Event::Boot { text: facts.into() });
        let event = Event::Spawn { parent: Parent::Kernel, at: None };
        self.wakeup.line = emit_for!(self, WAKEUP, event);
    }
}

/// Records the messages that the kernel moves in this turn, or returns those of the record, which
/// has those of the jobs too.
fn taped(turn: u64, messages: Vec<Message>) -> Vec<Message> {
    let put = |messages: &Vec<Message>, words: &mut Words| {
        words.number(turn);
        messages.iter().for_each(|message| words.word(&put_message(message)));
    };
    let get = |answer: &mut Answer<'_>| {
        let mut messages = Vec::new();
        if answer.number() != turn {
            return answer.wrong();
        }
        while !answer.is_empty() {
            let word = answer.word();
            match get_message(word) {
                Some(message) => messages.push(message),
                None => {
                    tape::diverge(&format!("the request `{word}` of a thread cannot be replayed"));
                    return answer.wrong();
                }
            }
        }
        messages
    };
    tape::take("messages", || messages, put, get)
}

fn put_message(message: &Message) -> String {
    let [waits, scopes, _] = tape::serials();
    match message {
        Message::Wake(it) => format!("wake:{}.{}", it.index, it.serial().wrapping_sub(scopes)),
        Message::Unpark(it) => format!("unpark:{}.{}", it.index, it.serial().wrapping_sub(waits)),
        Message::Done(job) => format!("done:{job}"),
        Message::ShutDown(reason) => format!("shutdown:{}", escaped(reason.as_bytes())),
        Message::Turn => "turn".to_owned(),
        Message::Spawn(order) => format!("spawn:{}", escaped(order.name.as_bytes())),
        Message::Cancel(..) => "cancel".to_owned(),
    }
}

/// Reads a message. Returns `None` for a message that cannot be replayed: the code of a task that
/// another thread spawned is not in the record.
fn get_message(word: &str) -> Option<Message> {
    let (kind, value) = word.split_once(':').unwrap_or((word, ""));
    let [waits, scopes, _] = tape::serials();
    let key = |base: u32| -> Option<(u32, u32)> {
        let (index, serial) = value.split_once('.')?;
        Some((index.parse().ok()?, base.wrapping_add(serial.parse().ok()?)))
    };
    Some(match kind {
        "wake" => key(scopes).map(|(index, serial)| Message::Wake(TaskRef::new(index, serial)))?,
        "unpark" => {
            key(waits).map(|(index, serial)| Message::Unpark(Ticket::new(index, serial)))?
        }
        "done" => Message::Done(value.parse().ok()?),
        // A shutdown has one reason, so this is lost once.
        "shutdown" => {
            let reason = unescaped(value.as_bytes());
            Message::ShutDown(String::from_utf8_lossy(&reason).into_owned().leak())
        }
        "turn" => Message::Turn,
        _ => return None,
    })
}
