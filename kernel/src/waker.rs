//! The wakers of tasks: the only part of the kernel, beside the wake queue, that other threads see.
//!
//! Most tasks never have their waker cloned, so they are polled with a waker that belongs to
//! nobody yet. A poll after which it was cloned, or called, makes it that task's own for good, and
//! the kernel takes a fresh one for the others.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};

use traps::gate;
use traps::protocol::{TaskRef, Ticket};

use crate::remote::Order;
use crate::threads::Done;
use crate::wake::WakeQueue;

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
        /// Which, if it was made.
        task: Arc<OnceLock<TaskRef>>,
        /// Shown in the log and in the interrupt.
        reason: &'static str,
    },
    /// The kernel is to shut down.
    ShutDown(&'static str),
}

pub(crate) struct TaskWaker {
    owner: OnceLock<TaskRef>,
    /// Called while it belonged to nobody.
    hit: AtomicBool,
    queue: Arc<WakeQueue<Message>>,
}

impl TaskWaker {
    fn wake_owner(&self, task: TaskRef) {
        if gate::is_running(task.epoch) {
            gate::post_woken(task);
        } else {
            self.queue.push(Message::Wake(task));
        }
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(task) = self.owner.get() {
            return self.wake_owner(*task);
        }
        // The flag before the second look: whoever gives it an owner does it the other way round,
        // so that one of the two sees the other: the second to swap has seen what was before the
        // first, which a store would not.
        self.hit.swap(true, Ordering::AcqRel);
        if let Some(task) = self.owner.get() {
            self.wake_owner(*task);
        }
    }
}

/// A waker that belongs to nobody yet.
pub(crate) struct SpareWaker {
    waker: Waker,
    inside: Arc<TaskWaker>,
}

impl SpareWaker {
    pub(crate) fn new(queue: &Arc<WakeQueue<Message>>) -> SpareWaker {
        let inside = Arc::new(TaskWaker {
            owner: OnceLock::new(),
            hit: AtomicBool::new(false),
            queue: queue.clone(),
        });
        SpareWaker { waker: Waker::from(inside.clone()), inside }
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Whether a poll kept a clone of it, or called it. Exact: a spare that was ever cloned and
    /// kept is not used again; and of a clone that another thread has dropped, what that thread
    /// did with it before is seen.
    #[inline]
    pub(crate) fn was_used(&self) -> bool {
        Arc::strong_count(&self.inside) != 2 || {
            // The count says that the clone is gone; this, that it was called before.
            fence(Ordering::Acquire);
            self.inside.hit.load(Ordering::Relaxed)
        }
    }

    /// Makes it the task's own; tells whether it was called before.
    pub(crate) fn adopt(self, task: TaskRef) -> (Waker, bool) {
        let given = self.inside.owner.set(task);
        debug_assert!(given.is_ok(), "a spare waker has no owner");
        let hit = self.inside.hit.swap(false, Ordering::AcqRel);
        (self.waker, hit)
    }
}
