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
    pub(super) name: String,
    /// `None` while the task runs.
    pub(super) body: Option<Body>,
    /// The reply that its next poll takes.
    pub(super) reply: Option<Reply>,
    /// The tasks that wait for its end.
    pub(super) joiners: Vec<TaskId>,
    /// The log line that made the task ready or, while it runs, its `run` line.
    pub(super) cause: Seq,
    /// The part of the `run` line about the wait that has ended.
    pub(super) answered: String,
    /// The time at which the task left the CPU.
    pub(super) left: Option<Time>,
    pub(super) wait: Option<Wait>,
    /// Its open scopes, the outermost first.
    pub(super) scopes: Vec<Scope>,
    pub(super) cancel: Option<Cancel>,
}

/// A handle to a task.
pub struct Task<T> {
    pub(super) id: TaskId,
    pub(super) output: Rc<RefCell<Option<T>>>,
}

impl<T> Task<T> {
    /// Waits for the end of the task, and takes its output.
    #[track_caller]
    pub fn join(&mut self) -> impl Future<Output = Result<T, Error>> + '_ {
        let end = call(Trap::Join(self.id));
        async move {
            if self.output.borrow().is_none() {
                end.await.interrupted()?;
            }
            gate(|gate| gate.post(Post::Note("join", self.id.to_string())));
            Ok(self.output.take().expect("rule: an output is taken once"))
        }
    }

    /// Interrupts the task, and waits until it has cleaned up and ended.
    #[track_caller]
    pub fn cancel(&self) -> impl Future<Output = Result<(), Interrupt>> + '_ {
        let (request, end) = (call(Trap::Cancel(self.id)), call(Trap::Join(self.id)));
        async move {
            request.await;
            if self.output.borrow().is_none() {
                end.await.interrupted()?;
            }
            Ok(())
        }
    }
}
