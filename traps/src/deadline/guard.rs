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
use crate::protocol::{DeadlineName, Limit, ScopeId, ScopeKind, Site};
use crate::scope::{Inner, Scoped, left, relabel};
use crate::time::{Time, micros};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
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
                // What is inside goes first, as in any scope. A scope that is being opened is
                // closed by the trap that asked for it.
                this.scoped.project().inner.set(None);
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
        let kept = match *stage {
            Stage::New => begin(deadline, stage, scoped.limit, scoped.call.site()),
            Stage::Kept => deadline.kept_here(),
            Stage::Own | Stage::Nested | Stage::Free => None,
        };
        let scope = match kept {
            Some(scope) => scope,
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
        let result = match ready!(scoped.as_mut().poll_inside(scope, cx)) {
            Inner::Value(Ok(value)) => Ok(value),
            inner => {
                let open = match *stage {
                    Stage::Kept => deadline.open(),
                    _ => scoped.open,
                };
                let open = open.expect("a guard is polled inside its scope");
                relabel(inner, open, scoped.call.site()).0
            }
        };
        if *stage == Stage::Kept {
            scoped.project().inner.set(None);
            *stage = Stage::Free;
            deadline.leave();
        } else {
            scoped.finish(left(&result));
        }
        Poll::Ready(result)
    }
}

/// Arms the deadline for the first poll of a guard. The scope, if that is kept and hangs here.
#[inline(always)]
fn begin(
    deadline: &ConnectionDeadline,
    stage: &mut Stage,
    limit: Limit,
    site: Site,
) -> Option<ScopeId> {
    match limit {
        Limit::After(Duration::ZERO) | Limit::At(Time::NEVER) => {
            *stage = Stage::Free;
            return None;
        }
        _ if deadline.guards.get() => {
            *stage = Stage::Nested;
            return None;
        }
        _ => {}
    }
    let kept = deadline.enter();
    match limit {
        Limit::After(span) => deadline.arm_from(micros(span), site),
        Limit::At(until) => deadline.arm_until(until, site),
        Limit::Never | Limit::Deadline { .. } => unreachable!("a guard has a span or a point"),
    }
    *stage = if deadline.scope.get().is_some() { Stage::Kept } else { Stage::Own };
    kept
}

/// Where the scope is not the one that is kept, or that was left somewhere else.
#[inline(never)]
fn poll_open<F: Future>(
    deadline: &ConnectionDeadline,
    stage: &mut Stage,
    mut scoped: Pin<&mut Scoped<F>>,
    cx: &mut Context<'_>,
) -> Poll<ScopeId> {
    if *stage == Stage::Nested {
        return scoped.poll_open(cx).map(|open| open.scope);
    }
    deadline.asked.set(true);
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
    Poll::Ready(open.scope)
}
