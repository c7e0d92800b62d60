//! Tasks: the kernel's record of each, and the handle that its parent has.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;

use super::*;

/// The future of a task.
pub(super) type Body = Pin<Box<dyn Future<Output = ()>>>;

/// The kernel's record of a task.
#[derive(Default)]
pub(super) struct TaskRecord {
    /// `None` while the task runs.
    pub(super) body: Option<Body>,
    /// The reply that its next poll takes.
    pub(super) reply: Option<Reply>,
    /// The tasks that wait for its end.
    pub(super) joiners: Vec<TaskId>,
}

/// A handle to a task.
pub struct Task<T> {
    pub(super) id: TaskId,
    pub(super) output: Rc<RefCell<Option<T>>>,
}

impl<T> Task<T> {
    /// Waits for the end of the task, and takes its output.
    pub async fn join(&mut self) -> T {
        call(Trap::Join(self.id)).await;
        self.output.take().expect("rule: an output is taken once")
    }
}
