//! Wakes from outside: the wakers of tasks, and the messages of other threads.
//!
//! Most tasks never have their waker cloned. So the kernel keeps one *spare* waker, and lends it to
//! each poll; the spare names the task of that poll. If a poll keeps a clone of the spare, the
//! spare belongs to that task from then on, and the kernel makes a new one for the other tasks.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};

use traps::internal::gate::{self, Outside};
use traps::internal::protocol::Body;
use traps::internal::table::{Site, TaskRef, Ticket};
use traps::threads::is_in_job;

use super::wake_queue::WakeQueue;

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
    /// The task that this waker wakes, packed in one word. A spare waker is re-aimed at each task
    /// that it is lent to.
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
