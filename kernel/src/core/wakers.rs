//! What other threads send to a kernel: messages, and calls of the wakers of tasks.
//!
//! Most tasks never have their waker cloned, so they are polled with a spare waker that names the
//! task of that poll. If a poll keeps a clone of the spare, the spare belongs to that task for
//! good, and the kernel makes a new one for the other tasks.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};

use traps::core::gate::Outside;
use traps::core::kernel_side as gate;
use traps::core::names::{Site, TaskRef, Ticket};
use traps::core::protocol::Body;
use traps::threads::is_in_job;

use super::wake_queue::WakeQueue;

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

/// Sends wakes to a kernel, from any thread.
#[derive(Clone)]
pub(crate) struct Inbox {
    /// The number of the kernel.
    pub(crate) epoch: u32,
    pub(crate) queue: Arc<WakeQueue<Message>>,
}

impl Inbox {
    /// Whether the kernel runs on this thread, and is not playing a scripted job.
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
    /// The task that it wakes, in one word. A spare names one task after the other.
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

/// A waker that no task has kept yet.
pub(crate) struct SpareWaker {
    pub(super) waker: Waker,
    inside: Arc<TaskWaker>,
}

impl SpareWaker {
    pub(crate) fn new(inbox: &Inbox) -> SpareWaker {
        let inside = Arc::new(TaskWaker { task: AtomicU64::new(0), inbox: inbox.clone() });
        SpareWaker { waker: Waker::from(inside.clone()), inside }
    }

    /// The waker for one poll of a task.
    #[inline]
    pub(crate) fn lend(&self, task: TaskRef) -> &Waker {
        let word = u64::from(task.serial) << 32 | u64::from(task.index);
        self.inside.task.store(word, Ordering::Relaxed);
        &self.waker
    }

    /// Whether the poll kept a clone of it.
    #[inline]
    pub(crate) fn was_kept(&self) -> bool {
        Arc::strong_count(&self.inside) != 2 || {
            // Another thread may have called and dropped a clone. The fence orders that before the
            // next `lend`.
            fence(Ordering::Acquire);
            false
        }
    }
}
