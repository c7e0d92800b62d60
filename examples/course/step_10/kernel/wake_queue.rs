//! The wake queue: the only way from other threads to the kernel.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

use super::*;

/// The kernel's own task, which takes the messages.
const WAKEUP: TaskId = 1;

/// A message of another thread.
pub(super) enum Message {
    /// This job has ended.
    Done(u32),
    /// This task was woken.
    Woken(TaskId),
}

pub(super) struct WakeQueue {
    messages: Mutex<Vec<Message>>,
    bell: Bell,
}

impl WakeQueue {
    pub(super) fn new(bell: Bell) -> WakeQueue {
        WakeQueue { messages: Mutex::default(), bell }
    }

    /// Leaves a message, from any thread, and then rings. If it rang first, the kernel could look
    /// before the message is there, and miss it.
    pub(super) fn push(&self, message: Message) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        (self.bell)();
    }

    fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The waker of a task is a message too.
pub(super) struct TaskWaker {
    pub(super) id: TaskId,
    pub(super) queue: Arc<WakeQueue>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.queue.push(Message::Woken(self.id));
    }
}

impl<M: Machine> Kernel<M> {
    /// Adds the kernel's own task. It is in no table, because only the bell makes it run.
    pub(super) fn add_wakeup(&mut self) {
        self.next_task = WAKEUP + 1;
        self.log(WAKEUP, "spawn", "parent=-");
    }

    /// Runs the kernel's own task for the first time: it waits for the bell.
    pub(super) fn start_wakeup(&mut self) {
        self.log(WAKEUP, "run", "cause=#0001");
        self.log(WAKEUP, "block", "io e1 read");
    }

    /// Runs the kernel's own task when the bell has rung, before all others.
    pub(super) fn run_wakeup(&mut self) {
        let messages = self.wake_queue.take();
        // An earlier run may have taken all messages.
        if messages.is_empty() {
            return;
        }
        let arrive = self.log(KERNEL, "arrive", "e1 read");
        let wake = self.log(WAKEUP, "wake", &format!("io e1 read cause=#{arrive:04}"));
        let run = self.log(WAKEUP, "run", &format!("cause=#{wake:04}"));
        for message in messages {
            match message {
                Message::Done(job) => self.end_job(job, WAKEUP),
                Message::Woken(id) => self.wake_by_waker(id, run),
            }
        }
        self.log(WAKEUP, "block", "io e1 read");
    }

    /// Parks a task until its waker is called.
    pub(super) fn park_on_waker(&mut self, id: TaskId) {
        self.log(id, "block", "waker");
        let now = self.now;
        let task = self.task(id);
        (task.is_on_waker, task.left) = (true, Some(now));
    }

    fn wake_by_waker(&mut self, id: TaskId, cause: u64) {
        // A task that is not parked on its waker is polled soon, or waits for another event.
        if self.tasks.get(&id).is_some_and(|task| task.is_on_waker) {
            let line = self.log(id, "wake", &format!("waker cause=#{cause:04}"));
            let task = self.task(id);
            (task.is_on_waker, task.cause) = (false, line);
            self.ready.push_back(id);
        }
    }
}
