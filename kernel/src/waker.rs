//! The wakers of tasks, and of waits that other threads end.
//!
//! Most tasks never have their waker cloned, so they are polled with a spare one that belongs to
//! nobody yet. A poll that clones or calls the spare makes it that task's own for good, and the
//! kernel takes a fresh one for the others.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};

use traps::gate;
use traps::outside::Outside;
use traps::protocol::{TaskRef, Ticket};

use crate::wake::WakeQueue;
use crate::wakeup::Message;

/// How any thread reaches a kernel.
#[derive(Clone)]
pub(crate) struct Inbox {
    /// The number of the kernel.
    pub(crate) epoch: u32,
    pub(crate) queue: Arc<WakeQueue<Message>>,
}

impl Inbox {
    fn wake_task(&self, task: TaskRef) {
        if gate::is_running(self.epoch) {
            gate::post_woken(task);
        } else {
            self.queue.push(Message::Wake(task));
        }
    }
}

impl Outside for Inbox {
    fn wake(&self, ticket: Ticket) {
        if gate::is_running(self.epoch) {
            gate::post_wake_ticket(ticket);
        } else {
            self.queue.push(Message::WakeTicket(ticket));
        }
    }
}

struct TaskWaker {
    owner: OnceLock<TaskRef>,
    /// Called while it belonged to nobody.
    called: AtomicBool,
    inbox: Inbox,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(task) = self.owner.get() {
            return self.inbox.wake_task(*task);
        }
        // Here: set the flag, then look for an owner again. In `adopt`: set the owner, then look at
        // the flag. So one of the two sees the other. A swap, because a plain store would not see
        // what came before the other side's swap.
        self.called.swap(true, Ordering::AcqRel);
        if let Some(task) = self.owner.get() {
            self.inbox.wake_task(*task);
        }
    }
}

/// A waker that belongs to nobody yet.
pub(crate) struct SpareWaker {
    waker: Waker,
    inside: Arc<TaskWaker>,
}

impl SpareWaker {
    pub(crate) fn new(inbox: &Inbox) -> SpareWaker {
        let (owner, called) = (OnceLock::new(), AtomicBool::new(false));
        let inside = Arc::new(TaskWaker { owner, called, inbox: inbox.clone() });
        SpareWaker { waker: Waker::from(inside.clone()), inside }
    }

    #[inline]
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Whether a poll kept a clone of it, or called it.
    #[inline]
    pub(crate) fn was_used(&self) -> bool {
        Arc::strong_count(&self.inside) != 2 || {
            // The count says that a clone is gone. The fence shows what its thread did before.
            fence(Ordering::Acquire);
            self.inside.called.load(Ordering::Relaxed)
        }
    }

    /// Makes it the task's own; tells whether it was called before.
    pub(crate) fn adopt(self, task: TaskRef) -> (Waker, bool) {
        let given = self.inside.owner.set(task);
        debug_assert!(given.is_ok(), "a spare waker has no owner");
        let called = self.inside.called.swap(false, Ordering::AcqRel);
        (self.waker, called)
    }
}
