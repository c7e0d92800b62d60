//! Guards: futures that run under a connection deadline.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::ConnectionDeadline;
use crate::core::deadlines::Was;
use crate::core::interrupt::Interruptible;
use crate::core::names::Site;
use crate::core::protocol::{Left, ScopeKind};
use crate::core::scope::{Limit, Opener, left, poll_inside, relabel};
use crate::time::Time;

pin_project! {
    /// The future of [`ConnectionDeadline::guard`]. What is inside is dropped first.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Guard<'a, F> {
        #[pin]
        inner: Option<F>,
        stage: Stage<'a>,
    }
}

/// How far a guard is.
#[derive(Debug)]
enum Stage<'a> {
    /// It was not polled.
    New { deadline: &'a ConnectionDeadline, limit: Limit, site: Site },
    /// It has no limit.
    Free,
    /// It runs on the slot of its deadline.
    OnSlot(OnSlot<'a>),
    /// It runs inside another guard of that deadline, in a scope with a timer of its own.
    Nested(Opener),
}

/// The scope of a guard that has the slot of its deadline. Ends when it is dropped.
#[derive(Debug)]
struct OnSlot<'a> {
    deadline: &'a ConnectionDeadline,
    opener: Opener,
}

impl Stage<'_> {
    /// At the first poll: arms the deadline, unless a guard around this one has its slot.
    fn begin(&mut self) {
        let Stage::New { deadline, limit, site } = *self else { return };
        deadline.assert_here();
        let is_nested = deadline.guards.get();
        *self = match limit {
            Limit::Never => {
                if !is_nested {
                    deadline.set(Time::NEVER, site);
                }
                Stage::Free
            }
            _ if is_nested => {
                let kind = ScopeKind::Guard { slot: None, number: deadline.number };
                Stage::Nested(Opener::new(limit, kind, site))
            }
            _ => Stage::OnSlot(OnSlot::begin(deadline, limit, site)),
        };
    }
}

impl<'a> OnSlot<'a> {
    fn begin(deadline: &'a ConnectionDeadline, limit: Limit, site: Site) -> OnSlot<'a> {
        deadline.guards.set(true);
        let until = match limit {
            Limit::Never => Time::NEVER,
            Limit::After(span) => deadline.now() + span,
            Limit::At(until) => until,
        };
        deadline.set(until, site);
        let kind = ScopeKind::Guard { slot: Some(deadline.slot), number: deadline.number };
        OnSlot { deadline, opener: Opener::new(Limit::Never, kind, site) }
    }

    fn end(&mut self, left: Left) {
        let ConnectionDeadline { kernel, slot, scope, guards, .. } = self.deadline;
        if guards.replace(false) {
            kernel.deadlines.set_scope(*slot, *scope);
            self.deadline.guarding.set(None);
            self.opener.close(left);
            self.deadline.clear(self.opener.site);
        }
    }
}

impl Drop for OnSlot<'_> {
    fn drop(&mut self) {
        self.end(Left::Other);
    }
}

impl<'a, F: Future> Guard<'a, F> {
    pub(super) fn new(
        deadline: &'a ConnectionDeadline,
        limit: Limit,
        site: Site,
        future: F,
    ) -> Guard<'a, F> {
        Guard { inner: Some(future), stage: Stage::New { deadline, limit, site } }
    }
}

impl<F, T, E> Future for Guard<'_, F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        let mut this = self.project();
        this.stage.begin();
        let (open, site) = match this.stage {
            Stage::OnSlot(OnSlot { deadline, opener }) => {
                deadline.assert_here();
                let mut open = opener.open();
                // What fired in the scope that it had in another task is due in this one too.
                if deadline.guarding.get() != Some(open.scope) && deadline.fired() {
                    deadline.set(deadline.until(), opener.site);
                }
                deadline.kernel.deadlines.set_scope(deadline.slot, open.scope);
                deadline.guarding.set(Some(open.scope));
                open.deadline = deadline.until();
                (open, opener.site)
            }
            Stage::Nested(opener) => (opener.open(), opener.site),
            Stage::Free | Stage::New { .. } => {
                let rule = "rule: a future is not polled after it was ready";
                return this.inner.as_pin_mut().expect(rule).poll(cx);
            }
        };
        let polled = poll_inside(this.inner.as_mut(), open.scope, cx);
        if let (Poll::Pending, Stage::Nested(opener)) = (&polled, &mut *this.stage) {
            opener.pends();
        }
        let inner = ready!(polled);
        // Armed anew inside, perhaps.
        let until = match this.stage {
            Stage::OnSlot(OnSlot { deadline, .. }) => deadline.until(),
            _ => open.deadline,
        };
        let (result, _) = relabel(inner, open, until, site);
        this.inner.set(None);
        match this.stage {
            Stage::OnSlot(on_slot) => on_slot.end(left(&result)),
            Stage::Nested(opener) => opener.close(left(&result)),
            Stage::Free | Stage::New { .. } => {}
        }
        Poll::Ready(result)
    }
}

pin_project! {
    /// The future of [`ConnectionDeadline::guard_task`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct TaskGuard<'a, F> {
        #[pin]
        inner: F,
        armed: Armed<'a>,
    }
}

/// Disarms the deadline when it is dropped, or before.
#[derive(Debug)]
struct Armed<'a>(Option<(&'a ConnectionDeadline, Site)>);

impl Armed<'_> {
    fn end(&mut self) {
        if let Some((deadline, site)) = self.0.take()
            && deadline.clear(site) == Was::Fired
        {
            deadline.forget_interrupt();
        }
    }
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<'a, F> TaskGuard<'a, F> {
    #[track_caller]
    pub(super) fn new(deadline: &'a ConnectionDeadline, inner: F) -> TaskGuard<'a, F> {
        let site = std::panic::Location::caller();
        TaskGuard { inner, armed: Armed(Some((deadline, site))) }
    }
}

impl<F: Future> Future for TaskGuard<'_, F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(cx));
        this.armed.end();
        Poll::Ready(result)
    }
}
