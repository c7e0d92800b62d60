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
use crate::interrupt::{Interruptible, Kind};
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
                deadline.leave_task(false);
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
            deadline.leave_task(result.as_ref().is_err_and(is_timeout));
        }
        Poll::Ready(result)
    }
}

#[cold]
fn is_timeout<E: Interruptible>(error: &E) -> bool {
    error.interrupt().is_some_and(|interrupt| interrupt.kind() == Kind::TaskTimeout)
}

impl ConnectionDeadline {
    /// Runs `future` under this deadline, armed for `span` from now, and disarms it on every way
    /// out, as [`guard`](ConnectionDeadline::guard) does, but needs no scope: a word, and the cost
    /// of [`arm`](ConnectionDeadline::arm). Zero runs it without a limit.
    ///
    /// When it fires the whole task is interrupted, so this is for a future beside which its task
    /// waits for nothing: no branch of a combinator, and nothing that is handed to another task.
    /// What the interrupt ends is not relabelled: there is no place in it.
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

    /// Its guard of the task ends; `by_it`: because it fired.
    #[inline]
    fn leave_task(&self, by_it: bool) {
        let DeadlineSlot { table, name } = &self.slot;
        if !table.clear(name.slot, BARE | name.task) {
            self.post_leave_task(by_it);
        }
    }

    #[cold]
    fn post_leave_task(&self, by_it: bool) {
        // That it fired is not forgotten, but an interrupt that came too late for what was guarded
        // is not for what comes after it.
        if !(by_it && self.fired()) {
            self.post(Time::NEVER, Location::caller());
        }
    }
}
