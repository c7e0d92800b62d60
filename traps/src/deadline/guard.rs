//! The guard: a future that runs under a connection deadline.
//!
//! It arms and disarms; what that takes is the deadline's matter.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::ConnectionDeadline;
use crate::call::Call;
use crate::deadline_table::GUARD;
use crate::gate;
use crate::interrupt::Interruptible;
use crate::protocol::{DeadlineName, Limit, ScopeKind};
use crate::scope::{Scoped, left, relabel};
use crate::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    /// It runs on the deadline's own slot and scope.
    Own,
    /// It runs inside another guard of the same deadline, in a scope of its own.
    Nested,
    /// It has no limit.
    Free,
}

pin_project! {
    /// The future of [`ConnectionDeadline::guard`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Guard<'a, F> {
        deadline: &'a ConnectionDeadline,
        stage: Stage,
        #[pin]
        scoped: Scoped<F>,
    }

    impl<F> PinnedDrop for Guard<'_, F> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if *this.stage == Stage::Own {
                let mut scoped = this.scoped.project();
                // What is inside goes first, as in any scope.
                scoped.inner.set(None);
                // A scope that is being opened is closed by the trap that asked for it.
                let open = if scoped.call.is_filed() { None } else { scoped.open.take() };
                this.deadline.leave(open);
            }
        }
    }
}

impl<'a, F: Future> Guard<'a, F> {
    pub(super) fn new(
        deadline: &'a ConnectionDeadline,
        call: Call,
        limit: Limit,
        future: F,
    ) -> Guard<'a, F> {
        let scoped = Scoped::new(call, limit, ScopeKind::Guard, future);
        Guard { deadline, stage: Stage::New, scoped }
    }
}

impl<F, T, E> Future for Guard<'_, F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    type Output = Result<T, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        let this = self.project();
        let mut scoped = this.scoped;
        // Elsewhere its slot is some other timer's.
        let rule = "rule: a connection deadline is used in the kernel that made it";
        assert!(this.deadline.slot.name.epoch == gate::epoch(), "{rule}");
        if *this.stage == Stage::New {
            let scoped = scoped.as_mut().project();
            *this.stage = match *scoped.limit {
                Limit::After(Duration::ZERO) | Limit::At(Time::NEVER) => Stage::Free,
                _ if this.deadline.guards.get() => Stage::Nested,
                limit => {
                    let DeadlineName { slot, number, .. } = this.deadline.slot.name;
                    *scoped.limit = Limit::Deadline { slot, number };
                    *scoped.open = this.deadline.enter(limit, scoped.call.site());
                    Stage::Own
                }
            };
        }
        if *this.stage == Stage::Free {
            let inner = scoped.project().inner.as_pin_mut();
            return inner.expect("rule: a future is not polled after it was ready").poll(cx);
        }
        let mut open = ready!(scoped.as_mut().poll_open(cx));
        if *this.stage == Stage::Own {
            this.deadline.owner.set(GUARD | open.scope.index);
            open.deadline = Some(this.deadline.until.get());
        }
        let inner = ready!(scoped.as_mut().poll_inside(open, cx));
        if *this.stage == Stage::Own {
            open.deadline = Some(this.deadline.until.get());
        }
        let (result, _) = relabel(inner, open, scoped.call.site());
        if *this.stage == Stage::Own {
            let mut scoped = scoped.project();
            scoped.inner.set(None);
            *this.stage = Stage::Free;
            this.deadline.leave(scoped.open.take());
        } else {
            scoped.finish(left(&result));
        }
        Poll::Ready(result)
    }
}
