//! Tasks: the kernel's record of each.

use std::pin::Pin;

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
}
