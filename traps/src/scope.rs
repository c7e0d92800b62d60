//! Scopes: one mechanism for timeouts, branches and shields.
//!
//! A scope is opened by a trap, a timeout without one; it is the one in force while its inner
//! future is polled, and is closed by a post. The tree of scopes, and what fires in it, is the
//! kernel's.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::call::Call;
use crate::gate;
use crate::interrupt::{Interrupt, Interruptible};
use crate::protocol::{
    Answer, Left, Limit, Post, Request, ScopeId, ScopeKind, Site, TaskRef, TrapResult,
};
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

/// How a scope is opened, from before it is asked for until it is closed.
#[derive(Debug)]
pub(crate) struct Opener {
    pub(crate) call: Call,
    limit: Limit,
    kind: ScopeKind,
    pub(crate) open: Option<Open>,
}

impl Opener {
    pub(crate) fn new(call: Call, limit: Limit, kind: ScopeKind) -> Opener {
        Opener { call, limit, kind, open: None }
    }

    /// Closes the scope, if it was asked for: what was to run in it is gone before its end.
    #[inline]
    pub(crate) fn abandon(&mut self) {
        if self.call.is_filed() || self.open.is_some() {
            abandon(&mut self.call, &mut self.open);
        }
    }
}

pin_project! {
    /// A future inside a scope of its own.
    #[derive(Debug)]
    pub(crate) struct Scoped<F> {
        pub(crate) opener: Opener,
        #[pin]
        inner: Option<F>,
    }

    impl<F> PinnedDrop for Scoped<F> {
        fn drop(this: Pin<&mut Self>) {
            // What is inside goes first, so that the kernel never sees a scope close around it.
            let mut this = this.project();
            let opener = Abandoned(this.opener);
            this.inner.set(None);
            drop(opener);
        }
    }
}

/// A scope that is dropped: it closes also where what is inside panics.
struct Abandoned<'a>(&'a mut Opener);

impl Drop for Abandoned<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// A scope's future is dropped before its end.
#[cold]
fn abandon(call: &mut Call, open: &mut Option<Open>) {
    if !call.is_filed() {
        close(open, Left::Other);
    } else {
        close_unseen(call);
    }
}

/// The same where the scope was asked for: opened, perhaps, and never polled inside.
pub(crate) fn close_unseen(call: &mut Call) {
    if let Some(Ok(Answer::Scope { scope, .. })) = call.abandon() {
        gate::post(Post::CloseScope { scope, left: Left::Other });
    }
}

#[inline(always)]
pub(crate) fn close(open: &mut Option<Open>, left: Left) {
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

impl Opener {
    /// Opens the scope, unless it is open.
    #[inline(always)]
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Open> {
        let open = match self.open {
            Some(open) if !self.call.is_filed() && open.scope.epoch == gate::epoch() => open,
            _ if self.kind == ScopeKind::Timeout => {
                // One of another kernel, which may live and not run now.
                close(&mut self.open, Left::Other);
                let (scope, parent, task) = gate::open_timeout(self.limit, self.call.site());
                let open = Open { scope, parent, task, deadline: None };
                return Poll::Ready(*self.open.insert(open));
            }
            _ => ready!(self.ask(cx)),
        };
        Poll::Ready(rehome(&mut self.open, open))
    }

    /// Asks for it.
    #[inline(never)]
    fn ask(&mut self, cx: &mut Context<'_>) -> Poll<Open> {
        let Opener { call, limit, kind, open: kept } = self;
        let (limit, kind) = (*limit, *kind);
        if !call.is_filed() {
            // As above.
            close(kept, Left::Other);
        }
        let place = kept.filter(|open| open.scope.epoch == gate::epoch());
        let polled = call.poll(cx, || Request::OpenScope { limit, kind });
        let (Some(parent), Some(task)) = (gate::scope(), gate::task()) else {
            unreachable!("a trap is polled inside a task")
        };
        // Until its number is known: where it hangs. It may be read elsewhere.
        let deadline = None;
        let place = place.unwrap_or(Open { scope: parent, parent, task, deadline });
        kept.replace(place);
        let (scope, deadline) = opened(ready!(polled));
        Poll::Ready(*kept.insert(Open { scope, deadline: Some(deadline), ..place }))
    }
}

/// The scope that was asked for, and its own deadline.
pub(crate) fn opened(answer: TrapResult) -> (ScopeId, Time) {
    let Ok(Answer::Scope { scope, deadline }) = answer else {
        unreachable!("rule: opening a scope is answered with a scope, not {answer:?}")
    };
    (scope, deadline)
}

/// Polls inside an open scope, which is a timeout or not.
#[inline]
pub(crate) fn poll_inside<F: Future>(
    mut inner: Pin<&mut Option<F>>,
    scope: ScopeId,
    is_timeout: bool,
    cx: &mut Context<'_>,
) -> Poll<Inner<F::Output>> {
    let before = gate::asked_so_far();
    let polled = {
        let _scope = gate::enter_scope(scope, is_timeout);
        let inner = inner.as_mut().as_pin_mut();
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

impl<F: Future> Scoped<F> {
    pub(crate) fn new(call: Call, limit: Limit, kind: ScopeKind, inner: F) -> Scoped<F> {
        Scoped { opener: Opener::new(call, limit, kind), inner: Some(inner) }
    }

    /// Opens the scope, then polls inside it. The scope is still open when this is ready.
    #[inline]
    pub(crate) fn poll_inner(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<(Open, Inner<F::Output>)> {
        let this = self.project();
        let open = ready!(this.opener.poll(cx));
        let is_timeout = this.opener.kind == ScopeKind::Timeout;
        poll_inside(this.inner, open.scope, is_timeout, cx).map(|inner| (open, inner))
    }

    /// Drops what is inside and closes the scope.
    pub(crate) fn finish(self: Pin<&mut Self>, left: Left) {
        let mut this = self.project();
        this.inner.set(None);
        close(&mut this.opener.open, left);
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

/// What leaves a timeout that is open: an interrupt takes the name that it has outside. Whether
/// this scope timed out. `deadline` is its own; `None` if the scope table has it.
#[inline]
pub(crate) fn relabel<T, E>(
    inner: Inner<Result<T, E>>,
    scope: ScopeId,
    deadline: Option<Time>,
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
        let deadline = deadline.unwrap_or_else(|| gate::deadline_of(scope));
        own = interrupt.leave(scope, outer, deadline, site);
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
