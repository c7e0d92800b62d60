//! Scopes: one mechanism for timeouts, branches and shields.
//!
//! A scope is opened by a trap, a timeout without one; it is the one in force while its inner
//! future is polled, and is closed by a post. The tree of scopes, and what fires in it, is the
//! kernel's.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::call::Call;
use crate::gate;
use crate::interrupt::{Interrupt, Interruptible};
use crate::protocol::{Answer, Left, Limit, Post, Request, ScopeId, ScopeKind, Site, TaskRef};
use crate::time::Time;

/// An open scope and where it hangs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) scope: ScopeId,
    pub(crate) parent: ScopeId,
    pub(crate) task: TaskRef,
    /// `None` for a timeout: the scope table has it, or what is filed until the kernel is told.
    pub(crate) deadline: Option<Time>,
}

pin_project! {
    /// A future inside a scope of its own.
    #[derive(Debug)]
    pub(crate) struct Scoped<F> {
        pub(crate) call: Call,
        pub(crate) limit: Limit,
        kind: ScopeKind,
        pub(crate) open: Option<Open>,
        #[pin]
        pub(crate) inner: Option<F>,
    }

    impl<F> PinnedDrop for Scoped<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            // What is inside goes first, so that the kernel never sees a scope close around it.
            this.inner.set(None);
            if this.call.is_filed() || this.open.is_some() {
                abandon(this.call, this.open);
            }
        }
    }
}

/// A scope's future is dropped before its end.
#[cold]
fn abandon(call: &mut Call, open: &mut Option<Open>) {
    if !call.is_filed() {
        close(open, Left::Other);
    } else if let Some(Ok(Answer::Scope { scope, .. })) = call.abandon() {
        // Opened, and never polled inside.
        gate::post(Post::CloseScope { scope, left: Left::Other });
    }
}

#[inline(always)]
fn close(open: &mut Option<Open>, left: Left) {
    if let Some(open) = open.take() {
        gate::close_scope(open.scope, left);
    }
}

/// What a scope's inner future came to.
pub(crate) enum Inner<T> {
    Value(T),
    /// The scope fired around a wait on a bare waker.
    Bare(Interrupt),
}

impl<F: Future> Scoped<F> {
    pub(crate) fn new(call: Call, limit: Limit, kind: ScopeKind, inner: F) -> Scoped<F> {
        Scoped { call, limit, kind, open: None, inner: Some(inner) }
    }

    /// Opens the scope, then polls inside it. The scope is still open when this is ready.
    #[inline]
    pub(crate) fn poll_inner(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<(Open, Inner<F::Output>)> {
        let open = ready!(self.as_mut().poll_open(cx));
        self.poll_inside(open.scope, cx).map(|inner| (open, inner))
    }

    /// Opens the scope, unless it is open.
    #[inline]
    pub(crate) fn poll_open(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Open> {
        let this = self.project();
        let open = match *this.open {
            Some(open) if !this.call.is_filed() && open.scope.epoch == gate::epoch() => open,
            _ => {
                let (limit, kind) = (*this.limit, *this.kind);
                if !this.call.is_filed() {
                    // One of another kernel, which may live and not run now.
                    close(this.open, Left::Other);
                }
                if kind == ScopeKind::Timeout {
                    let site = this.call.site();
                    let (scope, parent, task) = gate::open_timeout(limit, site);
                    let open = Open { scope, parent, task, deadline: None };
                    return Poll::Ready(*this.open.insert(open));
                }
                let place = this.open.filter(|open| open.scope.epoch == gate::epoch());
                let polled = this.call.poll(cx, || Request::OpenScope { limit, kind });
                let (Some(parent), Some(task)) = (gate::scope(), gate::task()) else {
                    unreachable!("a trap is polled inside a task")
                };
                // Until its number is known: where it hangs. It may be read elsewhere.
                let deadline = None;
                let place = place.unwrap_or(Open { scope: parent, parent, task, deadline });
                this.open.replace(place);
                let answer = ready!(polled);
                let Ok(Answer::Scope { scope, deadline }) = answer else {
                    unreachable!("rule: opening a scope is answered with a scope, not {answer:?}")
                };
                *this.open.insert(Open { scope, deadline: Some(deadline), ..place })
            }
        };
        Poll::Ready(rehome(this.open, open))
    }

    /// Polls inside the scope.
    #[inline]
    pub(crate) fn poll_inside(
        self: Pin<&mut Self>,
        scope: ScopeId,
        cx: &mut Context<'_>,
    ) -> Poll<Inner<F::Output>> {
        let mut this = self.project();
        let before = gate::filed_so_far();
        let polled = {
            let is_timeout = matches!(this.kind, ScopeKind::Timeout | ScopeKind::Guard);
            let _scope = gate::enter_scope(scope, is_timeout);
            let inner = this.inner.as_mut().as_pin_mut();
            inner.expect("rule: a future is not polled after it was ready").poll(cx)
        };
        match polled {
            Poll::Ready(value) => Poll::Ready(Inner::Value(value)),
            Poll::Pending => match gate::take_bare(scope, before) {
                Some(interrupt) => Poll::Ready(Inner::Bare(interrupt)),
                None => Poll::Pending,
            },
        }
    }

    /// Drops what is inside and closes the scope.
    pub(crate) fn finish(self: Pin<&mut Self>, left: Left) {
        let mut this = self.project();
        this.inner.set(None);
        close(this.open, left);
    }
}

/// Follows the scope's future to the task and scope in which it is polled now.
#[inline]
fn rehome(place: &mut Option<Open>, open: Open) -> Open {
    let (Some(parent), Some(task)) = (gate::scope(), gate::task()) else { return open };
    if parent == open.parent && task == open.task {
        return open;
    }
    gate::post(Post::RehomeScope { scope: open.scope, task, parent });
    *place.insert(Open { parent, task, ..open })
}

/// What the log says of it.
#[inline]
pub(crate) fn left<T, E: Interruptible>(result: &Result<T, E>) -> Left {
    match result.as_ref().map_err(Interruptible::interrupt) {
        Ok(_) => Left::Value { by: gate::time_by_now() },
        Err(None) => Left::Other,
        Err(Some(why)) => Left::Interrupt { kind: why.kind(), scope: why.scope(), by: why.by() },
    }
}

/// What leaves a timeout that is `open`: an interrupt takes the name that it has outside. Whether
/// this scope timed out.
#[inline]
pub(crate) fn relabel<T, E>(
    inner: Inner<Result<T, E>>,
    open: Open,
    site: Site,
) -> (Result<T, E>, bool)
where
    E: Interruptible,
{
    let mut result = match inner {
        Inner::Value(result) => result,
        Inner::Bare(interrupt) => Err(E::from(interrupt)),
    };
    let mut own = false;
    if let Err(error) = &mut result
        && let Some(interrupt) = error.interrupt_mut()
    {
        let outer = gate::timeout().expect("a timeout is polled inside a task");
        let deadline = open.deadline.unwrap_or_else(|| gate::deadline_of(open.scope));
        own = interrupt.leave(open.scope, outer, deadline, site);
    }
    (result, own)
}

/// Makes `future` one branch of a combinator: interrupts from outside are delivered to each branch
/// once, and a timeout in one branch does not touch another.
///
/// The crate's own [`join`](crate::join), [`join_all`](crate::join_all) and
/// [`race`](crate::race) do this for each child; a foreign `join!` needs it written.
#[track_caller]
pub fn branch<F: Future>(future: F) -> Branch<F> {
    Branch { scoped: Scoped::new(Call::here(), Limit::Never, ScopeKind::Branch, future) }
}

/// Holds back interrupts from scopes outside while `future` runs; they are delivered at the first
/// blocking trap after it. Timeouts opened inside work as usual.
///
/// What it holds back can be seen inside it with [`held_interrupt`](crate::held_interrupt). For
/// clean-up that must come to an end, take [`shield_for`]. Row C31.
#[track_caller]
pub fn shield<F: Future>(future: F) -> Shield<F> {
    Shield::new(Call::here(), future)
}

impl<F: Future> Shield<F> {
    pub(crate) fn new(call: Call, future: F) -> Shield<F> {
        Shield { scoped: Scoped::new(call, Limit::Never, ScopeKind::Shield, future) }
    }
}

/// Like [`shield`], but only for `grace` longer once it holds something back.
///
/// Until an interrupt comes from outside, `future` takes as long as it wants. The grace runs from
/// the first one, or from the start if one is pending already, and is rounded up to a microsecond.
/// When it is over, what is pending outside is delivered inside, once in each branch, as if there
/// were no shield. An interrupt that the task has had already does not count: clean-up after one is
/// bounded by a [`timeout_after`](crate::timeout_after). While the grace runs, its end is the
/// [`current_deadline`](crate::current_deadline) inside. A grace of zero ends in the next turn,
/// one of `Duration::MAX` never. A shield inside holds on, for its own grace if it has one: that
/// starts when this one is over. Row C31.
#[track_caller]
pub fn shield_for<F: Future>(grace: Duration, future: F) -> Shield<F> {
    let limit = Limit::After(grace);
    Shield { scoped: Scoped::new(Call::here(), limit, ScopeKind::Shield, future) }
}

macro_rules! plain {
    ($name:ident, $doc:literal) => {
        pin_project! {
            #[doc = $doc]
            #[derive(Debug)]
            #[must_use = "futures do nothing unless awaited"]
            pub struct $name<F> {
                #[pin]
                scoped: Scoped<F>,
            }
        }

        impl<F: Future> Future for $name<F> {
            type Output = F::Output;

            #[inline]
            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
                let mut scoped = self.project().scoped;
                let (_, inner) = ready!(scoped.as_mut().poll_inner(cx));
                scoped.finish(Left::Other);
                match inner {
                    Inner::Value(value) => Poll::Ready(value),
                    Inner::Bare(_) => {
                        unreachable!("rule: a scope without a deadline does not fire")
                    }
                }
            }
        }
    };
}

plain!(Branch, "The future of [`branch`].");
plain!(Shield, "The future of [`shield`](fn@shield) and [`shield_for`].");
