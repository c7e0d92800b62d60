//! The guard of a whole task: a future that runs under a connection deadline without a scope.
//!
//! A connection that waits for its next request has this one, so it is one word. It opens and
//! closes nothing; when the deadline fires, the kernel interrupts the task.

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::{ConnectionDeadline, DeadlineSlot};
use crate::deadline_table::BARE;
use crate::interrupt::Interruptible;
use crate::time::{Time, micros};

pin_project! {
    /// The future of [`ConnectionDeadline::guard_task`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct TaskGuard<'a, F> {
        // `None` once it has ended.
        deadline: Option<&'a ConnectionDeadline>,
        #[pin]
        inner: F,
    }

    impl<F> PinnedDrop for TaskGuard<'_, F> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(deadline) = this.project().deadline.take() {
                deadline.leave_task();
            }
        }
    }
}

impl<F, T, E> Future for TaskGuard<'_, F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    type Output = Result<T, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        let this = self.project();
        let result = ready!(this.inner.poll(cx));
        if let Some(deadline) = this.deadline.take() {
            deadline.leave_task();
        }
        Poll::Ready(result)
    }
}

impl ConnectionDeadline {
    /// Runs `future` under this deadline, armed for `span` from now, and disarms it on every way
    /// out, as [`guard`](ConnectionDeadline::guard) does, but needs no scope: a word, and the cost
    /// of [`arm`](ConnectionDeadline::arm). Zero runs it without a limit.
    ///
    /// When it fires the whole of the task that made the deadline is interrupted, so this is for a
    /// future in that task, beside which it waits for nothing: no branch of a combinator, and
    /// nothing that is handed to another task. Nor is the deadline to guard anything in `future`:
    /// where such a guard ends, this one has no limit any more.
    ///
    /// The interrupt is one from outside all scopes: a shield holds it back, in a timeout it is a
    /// [`TimeoutCancellation`](crate::Kind::TimeoutCancellation), and it is not relabelled, as
    /// there is no place in it. Nor is the deadline among those that
    /// [`current_deadline`](crate::current_deadline) tells of, or that a job on a thread, a member
    /// of a group or [`cancellable`](crate::cancellable()) finds there.
    ///
    /// # Errors
    ///
    /// Those of `future`, with the interrupts in them.
    ///
    /// # Panics
    ///
    /// Inside a guard of the same deadline.
    #[inline]
    #[track_caller]
    pub fn guard_task<F, T, E>(&self, span: Duration, future: F) -> TaskGuard<'_, F>
    where
        F: Future<Output = Result<T, E>>,
        E: Interruptible,
    {
        self.assert_no_guard();
        self.arm_from(micros(span), BARE | self.slot.name.task, Location::caller());
        TaskGuard { deadline: Some(self), inner: future }
    }

    /// The same up to a point of kernel time; `Time::NEVER` sets none.
    ///
    /// # Errors
    ///
    /// As [`guard_task`](ConnectionDeadline::guard_task).
    ///
    /// # Panics
    ///
    /// As [`guard_task`](ConnectionDeadline::guard_task).
    #[track_caller]
    pub fn guard_task_at<F, T, E>(&self, until: Time, future: F) -> TaskGuard<'_, F>
    where
        F: Future<Output = Result<T, E>>,
        E: Interruptible,
    {
        self.assert_no_guard();
        self.arm_until(until, Location::caller());
        TaskGuard { deadline: Some(self), inner: future }
    }

    #[inline]
    fn assert_no_guard(&self) {
        let rule = "rule: a task's guard is not inside another guard of the same deadline";
        assert!(!self.has_guard(), "{rule}");
    }

    /// Its guard of the task ends. That it fired is not forgotten, but an interrupt that came too
    /// late for what was guarded is not for what comes after it.
    #[inline]
    fn leave_task(&self) {
        self.keep_until();
        let DeadlineSlot { table, name } = &self.slot;
        let owner = BARE | name.task;
        if !table.clear(name.slot, owner) {
            self.post_leave(None, owner);
        }
    }
}
