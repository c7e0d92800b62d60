//! Combinators: several futures at the same time in one task. They are functions, not macros, and
//! each child is a [`branch`].

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::interrupts::scope::{Branch, branch};

pin_project! {
    /// A branch, and its output once the branch has ended.
    struct Child<F: Future> {
        #[pin]
        branch: Option<Branch<F>>,
        output: Option<F::Output>,
    }
}

impl<F: Future> Child<F> {
    #[track_caller]
    fn new(future: F) -> Child<F> {
        Child { branch: Some(branch(future)), output: None }
    }

    /// Polls the branch unless it has ended. Returns whether it has ended now.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> bool {
        let mut this = self.project();
        if let Some(running) = this.branch.as_mut().as_pin_mut() {
            let Poll::Ready(output) = running.poll(cx) else { return false };
            *this.output = Some(output);
            this.branch.set(None);
        }
        true
    }

    fn take(self: Pin<&mut Self>) -> F::Output {
        let output = self.project().output.take();
        output.expect("rule: a future is not polled after it was ready")
    }
}

/// Runs two futures in one task, and returns both outputs once both have ended.
#[track_caller]
pub fn join<A: Future, B: Future>(a: A, b: B) -> Join2<A, B> {
    Join2 { a: Child::new(a), b: Child::new(b) }
}

pin_project! {
    /// The future of [`join`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Join2<A: Future, B: Future> {
        #[pin]
        a: Child<A>,
        #[pin]
        b: Child<B>,
    }
}

impl<A: Future, B: Future> Future for Join2<A, B> {
    type Output = (A::Output, B::Output);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let a = this.a.as_mut().poll(cx);
        let b = this.b.as_mut().poll(cx);
        if a && b { Poll::Ready((this.a.take(), this.b.take())) } else { Poll::Pending }
    }
}

/// Runs three futures in one task, and returns their outputs once all have ended.
#[track_caller]
pub fn join3<A: Future, B: Future, C: Future>(a: A, b: B, c: C) -> Join3<A, B, C> {
    Join3 { a: Child::new(a), b: Child::new(b), c: Child::new(c) }
}

pin_project! {
    /// The future of [`join3`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Join3<A: Future, B: Future, C: Future> {
        #[pin]
        a: Child<A>,
        #[pin]
        b: Child<B>,
        #[pin]
        c: Child<C>,
    }
}

impl<A: Future, B: Future, C: Future> Future for Join3<A, B, C> {
    type Output = (A::Output, B::Output, C::Output);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let a = this.a.as_mut().poll(cx);
        let b = this.b.as_mut().poll(cx);
        let c = this.c.as_mut().poll(cx);
        if a && b && c {
            Poll::Ready((this.a.take(), this.b.take(), this.c.take()))
        } else {
            Poll::Pending
        }
    }
}

/// Runs all the futures in one task, and returns their outputs, in order, once all have ended. It
/// polls each unfinished future whenever the task runs, so for many thousands of futures, spawn
/// tasks instead.
#[track_caller]
pub fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> JoinAll<F> {
    let mut children = Vec::new();
    // A loop, not a closure, because a closure would hide the call site from `track_caller`.
    for future in futures {
        children.push(Box::pin(Child::new(future)));
    }
    JoinAll { children }
}

/// The future of [`join_all`].
#[must_use = "futures do nothing unless awaited"]
pub struct JoinAll<F: Future> {
    children: Vec<Pin<Box<Child<F>>>>,
}

impl<F: Future> Unpin for JoinAll<F> {}

impl<F: Future> Future for JoinAll<F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut all = true;
        for child in &mut self.children {
            all &= child.as_mut().poll(cx);
        }
        if !all {
            return Poll::Pending;
        }
        Poll::Ready(self.children.iter_mut().map(|child| child.as_mut().take()).collect())
    }
}

/// Shows the name alone: most futures have no `Debug`.
macro_rules! opaque {
    ($($name:ident<$($future:ident),+>)*) => {$(
        impl<$($future: Future),+> fmt::Debug for $name<$($future),+> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

opaque!(Join2<A, B> Join3<A, B, C> JoinAll<F> Race<A, B>);

/// One of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first value.
    Left(A),
    /// The second value.
    Right(B),
}

/// Runs two futures in one task until one of them ends, and drops the other. The first future is
/// polled first, so it wins if both are ready.
///
/// The macro `futures_util::select!` works with all futures of this crate, too. Use it if the other
/// futures are to continue while one output is handled. It makes no branches, so a cancellation or
/// a timeout around it ends the wait of one future, and the others continue to wait.
#[track_caller]
pub fn race<A: Future, B: Future>(a: A, b: B) -> Race<A, B> {
    Race { a: Child::new(a), b: Child::new(b) }
}

pin_project! {
    /// The future of [`race`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Race<A: Future, B: Future> {
        #[pin]
        a: Child<A>,
        #[pin]
        b: Child<B>,
    }
}

impl<A: Future, B: Future> Future for Race<A, B> {
    type Output = Either<A::Output, B::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if this.a.as_mut().poll(cx) {
            this.b.project().branch.set(None);
            return Poll::Ready(Either::Left(this.a.take()));
        }
        if this.b.as_mut().poll(cx) {
            this.a.project().branch.set(None);
            return Poll::Ready(Either::Right(this.b.take()));
        }
        Poll::Pending
    }
}
