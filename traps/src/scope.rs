//! Scopes: one mechanism for timeouts, guards, branches and shields.
//!
//! A scope is the one in force while its inner future is polled; what is filed then carries it. The
//! kernel hears of its opening and its end by posts. The tree of scopes, and what fires in it, is
//! the kernel's.

use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::gate;
use crate::interrupt::{Interrupt, Interruptible};
use crate::protocol::{Left, ScopeId, ScopeKind, Site, TaskRef};
use crate::time::Time;

/// The limit of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// None of its own.
    Never,
    /// From its opening.
    After(Duration),
    /// A point in kernel time, which may have passed.
    At(Time),
}

/// A scope that is open, and the task in which it was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) task: TaskRef,
    pub(crate) scope: ScopeId,
    /// Its own deadline.
    pub(crate) deadline: Time,
}

/// How a scope is opened, and what is open. It belongs to the gate of its thread, so it is not
/// `Send`.
#[derive(Debug)]
pub(crate) struct Opener {
    limit: Limit,
    kind: ScopeKind,
    pub(crate) site: Site,
    open: Option<Open>,
    local: PhantomData<Rc<()>>,
}

impl Opener {
    pub(crate) fn new(limit: Limit, kind: ScopeKind, site: Site) -> Opener {
        Opener { limit, kind, site, open: None, local: PhantomData }
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
        let scope = gate::open_scope(self.kind, deadline, now, self.site);
        *self.open.insert(Open { task, scope, deadline })
    }

    /// Closes the scope, if it is open.
    #[inline]
    pub(crate) fn close(&mut self, left: Left) {
        if let Some(Open { task, scope, .. }) = self.open.take() {
            gate::close_scope(task, scope, left);
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

/// Polls `inner` inside an open scope, which is a timeout or not.
#[inline]
pub(crate) fn poll_inside<F: Future>(
    mut inner: Pin<&mut Option<F>>,
    scope: ScopeId,
    is_timeout: bool,
    cx: &mut Context<'_>,
) -> Poll<Inner<F::Output>> {
    let before = gate::moment();
    let polled = {
        let _scope = gate::enter_scope(scope, is_timeout);
        let inner = inner.as_mut().as_pin_mut();
        inner.expect("rule: a future is not polled after it was ready").poll(cx)
    };
    match polled {
        Poll::Ready(value) => Poll::Ready(Inner::Value(value)),
        Poll::Pending => match before.and_then(|before| gate::take_offer(scope, before)) {
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
        let is_timeout = !matches!(this.opener.kind, ScopeKind::Branch | ScopeKind::Shield);
        let open = this.opener.open();
        poll_inside(this.inner, open.scope, is_timeout, cx).map(|inner| (open, inner))
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
    scope: ScopeId,
    deadline: Time,
    site: Site,
) -> (Result<T, E>, bool) {
    let mut result = match inner {
        Inner::Value(Ok(value)) => return (Ok(value), false),
        Inner::Value(error) => error,
        Inner::Fired(interrupt) => Err(E::from(interrupt)),
    };
    let interrupt = result.as_mut().err().and_then(Interruptible::interrupt_mut);
    let own = interrupt.is_some_and(|it| it.leave(scope, gate::timeout(), deadline, site));
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
/// [`held_interrupt`](crate::held_interrupt()) shows what it holds back.
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
