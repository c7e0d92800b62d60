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
use crate::interrupt::Interruptible;
use crate::protocol::{DeadlineName, Limit, ScopeKind, Site};
use crate::scope::{Open, Scoped, left, relabel};
use crate::time::{Time, micros};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    New,
    /// It runs on the deadline's own slot, in the scope that the deadline keeps.
    Kept,
    /// It will, once that scope is opened, or is where the guard is now.
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
            if matches!(*this.stage, Stage::Kept | Stage::Own) {
                let mut scoped = this.scoped.project();
                // What is inside goes first, as in any scope. A scope that is being opened is
                // closed by the trap that asked for it.
                scoped.inner.set(None);
                this.deadline.leave();
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
        let (mut scoped, stage, deadline) = (this.scoped, this.stage, *this.deadline);
        if *stage == Stage::New {
            *stage = begin(deadline, scoped.limit, scoped.call.site());
        }
        let kept = if *stage == Stage::Kept { deadline.kept_here() } else { None };
        let mut open = match kept {
            Some(open) => open,
            None => {
                deadline.assert_here();
                if *stage == Stage::Free {
                    let inner = scoped.project().inner.as_pin_mut();
                    let rule = "rule: a future is not polled after it was ready";
                    return inner.expect(rule).poll(cx);
                }
                ready!(poll_open(deadline, stage, scoped.as_mut(), cx))
            }
        };
        let inner = ready!(scoped.as_mut().poll_inside(open, cx));
        let own = *stage == Stage::Kept;
        if own {
            open.deadline = Some(deadline.until.get());
        }
        let (result, _) = relabel(inner, open, scoped.call.site());
        if own {
            scoped.project().inner.set(None);
            *stage = Stage::Free;
            deadline.leave();
        } else {
            scoped.finish(left(&result));
        }
        Poll::Ready(result)
    }
}

/// Arms the deadline for the first poll of a guard.
#[inline]
fn begin(deadline: &ConnectionDeadline, limit: Limit, site: Site) -> Stage {
    match limit {
        Limit::After(Duration::ZERO) | Limit::At(Time::NEVER) => Stage::Free,
        _ if deadline.guards.get() => Stage::Nested,
        Limit::After(span) => deadline.enter(|| deadline.arm_from(micros(span), site)),
        Limit::At(until) => deadline.enter(|| deadline.set(until, deadline.now(), site)),
        Limit::Never | Limit::Deadline { .. } => unreachable!("a guard has a span or a point"),
    }
}

/// Where the scope is not the one that is kept, or that was left somewhere else.
#[inline(never)]
fn poll_open<F: Future>(
    deadline: &ConnectionDeadline,
    stage: &mut Stage,
    mut scoped: Pin<&mut Scoped<F>>,
    cx: &mut Context<'_>,
) -> Poll<Open> {
    if *stage == Stage::Nested {
        return scoped.poll_open(cx);
    }
    {
        let scoped = scoped.as_mut().project();
        if *stage == Stage::Kept {
            *stage = Stage::Own;
            *scoped.open = deadline.scope.take();
        }
        let DeadlineName { slot, number, .. } = deadline.slot.name;
        *scoped.limit = Limit::Deadline { slot, number };
    }
    let open = ready!(scoped.as_mut().poll_open(cx));
    *stage = Stage::Kept;
    deadline.keep(scoped.project().open.take());
    Poll::Ready(Open { deadline: Some(deadline.until.get()), ..open })
}
