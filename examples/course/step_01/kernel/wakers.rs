//! The ready queue, and the wakers that put tasks into it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

/// The number of a task, from 1.
pub type TaskId = u32;

/// The ready tasks, in the order in which they run.
#[derive(Clone, Default)]
pub(super) struct Ready(Arc<Mutex<VecDeque<TaskId>>>);

impl Ready {
    pub(super) fn push(&self, task: TaskId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(task);
    }

    pub(super) fn pop(&self) -> Option<TaskId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// The waker of a task. It makes the task ready.
pub(super) struct TaskWaker {
    pub(super) task: TaskId,
    pub(super) ready: Ready,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.push(self.task);
    }
}
