//! Scopes: one mechanism for timeouts, guards, branches and shields.
//!
//! A scope is the one in force while its inner future is polled; what is filed then carries it. It
//! lies at the gate. The kernel hears only of its deadline, once the inner future pends, and of
//! everything while the log is on.

use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::gate;
use super::interrupt::{Interrupt, Interruptible};
use super::names::{ScopeId, Site, TaskRef};
use super::opening;
use super::protocol::{Left, ScopeKind};
pub(crate) use crate::time::Limit;
use crate::time::Time;

/// A scope that is open, and the task in which it was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) task: TaskRef,
    pub(crate) scope: ScopeId,
    /// Its own deadline.
    pub(crate) deadline: Time,
    /// The scope that it was in another task, before it moved.
    pub(crate) earlier: Option<ScopeId>,
}

/// How a scope is opened, and what is open. It belongs to the gate of its thread, so it is not
/// `Send`.
#[derive(Debug)]
pub(crate) struct Opener {
    limit: Limit,
    kind: ScopeKind,
    pub(crate) site: Site,
    open: Option<Open>,
    /// The kernel knows its deadline.
    is_set: bool,
    local: PhantomData<Rc<()>>,
}

impl Opener {
    pub(crate) fn new(limit: Limit, kind: ScopeKind, site: Site) -> Opener {
        Opener { limit, kind, site, open: None, is_set: false, local: PhantomData }
    }

    /// The inside pends: the kernel is to know the deadline.
    #[inline]
    pub(crate) fn pends(&mut self) {
        if let Some(Open { scope, deadline, .. }) = self.open
            && deadline != Time::NEVER
            && !std::mem::replace(&mut self.is_set, true)
        {
            opening::set_timer(scope);
        }
    }

    /// Opens the scope, unless it is open in the task that is polled. If another task polls it,
    /// it ends there and opens here, with the same deadline.
    #[inline]
    pub(crate) fn open(&mut self) -> Open {
        match self.open {
            Some(open) if gate::task() == Some(open.task) => open,
            _ => self.open_here(),
        }
    }

    fn open_here(&mut self) -> Open {
        let earlier = self.open.map(|open| open.scope);
        if let Some(Open { deadline, .. }) = self.open {
            self.close(Left::Other);
            self.limit = Limit::At(deadline);
        }
        let Some(task) = gate::task() else { gate::refuse_outside_a_task(self.site) };
        let (deadline, now) = match self.limit {
            Limit::Never => (Time::NEVER, Time::ZERO),
            Limit::After(span) => {
                let now = gate::now().unwrap_or_default();
                (now + span, now)
            }
            Limit::At(point) => (point, Time::ZERO),
        };
        let scope = opening::open_scope(self.kind, deadline, now, self.site);
        self.is_set = false;
        *self.open.insert(Open { task, scope, deadline, earlier })
    }

    /// Closes the scope, if it is open.
    #[inline]
    pub(crate) fn close(&mut self, left: Left) {
        if let Some(Open { scope, .. }) = self.open.take() {
            opening::close_scope(scope, left);
        }
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.close(Left::Other);
    }
}

pin_project! {
    /// A future inside a scope of its own. Its fields are dropped in their order: what is inside
    /// goes first, so that the kernel never sees a scope close around it.
    #[derive(Debug)]
    pub(crate) struct Scoped<F> {
        #[pin]
        inner: Option<F>,
        pub(crate) opener: Opener,
    }
}

/// What a scope's inner future came to.
pub(crate) enum Inner<T> {
    Value(T),
    /// The scope fired while the future waited on a foreign waker alone.
    Fired(Interrupt),
}

/// Polls `inner` inside an open scope.
#[inline]
pub(crate) fn poll_inside<F: Future>(
    mut inner: Pin<&mut Option<F>>,
    scope: ScopeId,
    cx: &mut Context<'_>,
) -> Poll<Inner<F::Output>> {
    let before = opening::self_wakes();
    let polled = {
        let _scope = opening::enter_scope(scope);
        let inner = inner.as_mut().as_pin_mut();
        inner.expect("rule: a future is not polled after it was ready").poll(cx)
    };
    match polled {
        Poll::Ready(value) => Poll::Ready(Inner::Value(value)),
        Poll::Pending => match opening::take_bare(scope, before) {
            Some(interrupt) => Poll::Ready(Inner::Fired(interrupt)),
            None => Poll::Pending,
        },
    }
}

impl<F: Future> Scoped<F> {
    pub(crate) fn new(limit: Limit, kind: ScopeKind, site: Site, inner: F) -> Scoped<F> {
        Scoped { inner: Some(inner), opener: Opener::new(limit, kind, site) }
    }

    /// Polls inside the scope, which is still open when this is ready.
    #[inline]
    pub(crate) fn poll_inner(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<(Open, Inner<F::Output>)> {
        let this = self.project();
        let open = this.opener.open();
        let polled = poll_inside(this.inner, open.scope, cx);
        if polled.is_pending() {
            this.opener.pends();
        }
        polled.map(|inner| (open, inner))
    }

    /// Drops what is inside and closes the scope.
    #[inline]
    pub(crate) fn finish(self: Pin<&mut Self>, left: Left) {
        let mut this = self.project();
        this.inner.set(None);
        this.opener.close(left);
    }
}

/// What the log says of what leaves a scope.
#[inline]
pub(crate) fn left<T, E: Interruptible>(result: &Result<T, E>) -> Left {
    if gate::is_listening() { left_for_the_log(result) } else { Left::Other }
}

fn left_for_the_log<T, E: Interruptible>(result: &Result<T, E>) -> Left {
    match result.as_ref().map_err(Interruptible::interrupt) {
        Ok(_) => Left::Value(gate::now().unwrap_or_default()),
        Err(None) => Left::Other,
        Err(Some(why)) => Left::Interrupt { kind: why.kind(), scope: why.scope(), by: why.by() },
    }
}

/// What leaves a timeout that is open: an interrupt takes the name that it has outside. Also gives
/// whether this scope timed out.
#[inline]
pub(crate) fn relabel<T, E: Interruptible>(
    inner: Inner<Result<T, E>>,
    Open { scope, earlier, .. }: Open,
    deadline: Time,
    site: Site,
) -> (Result<T, E>, bool) {
    let mut result = match inner {
        Inner::Value(Ok(value)) => return (Ok(value), false),
        Inner::Value(error) => error,
        Inner::Fired(interrupt) => Err(E::from(interrupt)),
    };
    let mut interrupt = result.as_mut().err().and_then(Interruptible::interrupt_mut);
    if let (Some(interrupt), Some(earlier)) = (&mut interrupt, earlier) {
        interrupt.follow(earlier, scope);
    }
    let outer = opening::timeout_in_force;
    let number = || opening::scope_number(scope);
    let own = interrupt.is_some_and(|it| it.leave((scope, number()), outer(), deadline, site));
    (result, own)
}

/// Makes `future` one branch of a combinator: an interrupt from outside is delivered to each branch
/// once, also to one that is in no trap when it comes.
///
/// The crate's own [`join`](crate::join), [`join_all`](crate::join_all) and
/// [`race`](crate::race) do this for each child; a foreign `join!` needs it written.
#[track_caller]
pub fn branch<F: Future>(future: F) -> Branch<F> {
    Branch { scoped: Scoped::new(Limit::Never, ScopeKind::Branch, Location::caller(), future) }
}

/// Holds back interrupts from scopes outside while `future` runs; they are delivered at the first
/// blocking trap after it. Timeouts opened inside work as usual: `shield(timeout_after(..))` is a
/// clean-up that must come to an end.
///
/// [`check_cancellation`](crate::check_cancellation()) shows what it holds back.
#[track_caller]
pub fn shield<F: Future>(future: F) -> Shield<F> {
    shield_from(Location::caller(), future)
}

pub(crate) fn shield_from<F: Future>(site: Site, future: F) -> Shield<F> {
    Shield { scoped: Scoped::new(Limit::Never, ScopeKind::Shield, site, future) }
}

macro_rules! without_deadline {
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
                    Inner::Fired(_) => {
                        unreachable!("rule: a scope without a deadline does not fire")
                    }
                }
            }
        }
    };
}

without_deadline!(Branch, "The future of [`branch`].");
without_deadline!(Shield, "The future of [`shield`](fn@shield).");
