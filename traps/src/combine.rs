//! Combinators: several futures at the same time in one task. They are functions, not macros.
//!
//! Each child is a [`branch`]. So a cancellation or a timeout around the combinator ends the next
//! wait of each child, and not only one wait.

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

    fn output(self: Pin<&mut Self>) -> F::Output {
        let output = self.project().output.take();
        output.expect("rule: a future is not polled after it was ready")
    }
}

/// Runs two futures in one task, and returns both outputs once both have ended. The first future is
/// polled first. Whenever the task runs, each future that has not ended is polled.
///
/// ```
/// use std::time::Duration;
/// use traps::{clock, join, sleep};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// let (a, b) = join(sleep(1 * second), sleep(2 * second)).await;
/// assert_eq!((a.unwrap().as_micros(), b.unwrap().as_micros()), (1_000_000, 2_000_000));
/// assert_eq!(clock().await.as_micros(), 2_000_000); // not three seconds
/// # });
/// ```
#[track_caller]
pub fn join<A: Future, B: Future>(a: A, b: B) -> Join2<A, B> {
    Join2 { a: Child::new(a), b: Child::new(b) }
}

pin_project! {
    /// The future of [`join`].
    ///
    /// ```
    /// use traps::{Join2, join};
    ///
    /// async fn one() -> u32 { 1 }
    ///
    /// # testing::run(async {
    /// let both: Join2<_, _> = join(one(), one());
    /// assert_eq!(both.await, (1, 1));
    /// # });
    /// ```
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
        if a && b { Poll::Ready((this.a.output(), this.b.output())) } else { Poll::Pending }
    }
}

/// Runs three futures in one task, and returns their outputs once all have ended.
///
/// ```
/// use traps::{join3, spawn};
///
/// # testing::run(async {
/// let mut task = spawn("task", async { "task" }).await;
/// let (a, b, c) = join3(async { 1 }, traps::yield_now(), task.join()).await;
/// assert_eq!((a, b, c), (1, Ok(()), Ok("task")));
/// # });
/// ```
#[track_caller]
pub fn join3<A: Future, B: Future, C: Future>(a: A, b: B, c: C) -> Join3<A, B, C> {
    Join3 { a: Child::new(a), b: Child::new(b), c: Child::new(c) }
}

pin_project! {
    /// The future of [`join3`].
    ///
    /// ```
    /// use traps::{Join3, join3};
    ///
    /// # testing::run(async {
    /// let all: Join3<_, _, _> = join3(async { 1 }, async { 2 }, async { 3 });
    /// assert_eq!(all.await, (1, 2, 3));
    /// # });
    /// ```
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
            Poll::Ready((this.a.output(), this.b.output(), this.c.output()))
        } else {
            Poll::Pending
        }
    }
}

/// Runs all the futures in one task, and returns their outputs, in order, once all have ended. It
/// polls each unfinished future whenever the task runs, so for many thousands of futures, spawn
/// tasks instead.
///
/// ```
/// use std::time::Duration;
/// use traps::{clock, join_all, sleep};
///
/// # testing::run(async {
/// let sleeps = (1..=5).map(|n| sleep(Duration::from_secs(n)));
/// let ends = join_all(sleeps).await;
/// assert_eq!(ends.len(), 5);
/// assert_eq!(clock().await.as_micros(), 5_000_000);
/// # });
/// ```
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
///
/// ```
/// use traps::{JoinAll, join_all};
///
/// # testing::run(async {
/// let all: JoinAll<_> = join_all([1, 2, 3].map(async |n| n * n));
/// assert_eq!(all.await, [1, 4, 9]);
/// # });
/// ```
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
        Poll::Ready(self.children.iter_mut().map(|child| child.as_mut().output()).collect())
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

opaque!(Join2<A, B> Join3<A, B, C> JoinAll<F> Race<A, B> Race3<A, B, C>);

/// One of two values.
///
/// ```
/// use traps::Either;
///
/// fn text(either: Either<u32, &str>) -> String {
///     match either {
///         Either::Left(number) => number.to_string(),
///         Either::Right(text) => text.to_owned(),
///     }
/// }
///
/// assert_eq!([text(Either::Left(7)), text(Either::Right("seven"))], ["7", "seven"]);
/// ```
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
///
/// ```
/// use std::time::Duration;
/// use traps::{Either, clock, race, sleep};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// let first = race(sleep(3 * second), sleep(2 * second)).await;
/// assert!(matches!(first, Either::Right(Ok(_))));
/// assert_eq!(clock().await.as_micros(), 2_000_000); // the other sleep was dropped
/// # });
/// ```
#[track_caller]
pub fn race<A: Future, B: Future>(a: A, b: B) -> Race<A, B> {
    Race { a: Child::new(a), b: Child::new(b) }
}

pin_project! {
    /// The future of [`race`].
    ///
    /// ```
    /// use traps::{Either, Race, race};
    ///
    /// # testing::run(async {
    /// let first: Race<_, _> = race(async { 1 }, std::future::pending::<u32>());
    /// assert_eq!(first.await, Either::Left(1));
    /// # });
    /// ```
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
            // Drop the loser now, while its task runs: its wait is withdrawn at once, not only when
            // the caller drops this future.
            this.b.project().branch.set(None);
            return Poll::Ready(Either::Left(this.a.output()));
        }
        if this.b.as_mut().poll(cx) {
            this.a.project().branch.set(None);
            return Poll::Ready(Either::Right(this.b.output()));
        }
        Poll::Pending
    }
}

/// One of three values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either3<A, B, C> {
    /// The first value.
    First(A),
    /// The second value.
    Second(B),
    /// The third value.
    Third(C),
}

/// Runs three futures in one task until one of them ends, and drops the others, like [`race`].
///
/// ```
/// use std::time::Duration;
/// use traps::{Either3, race3, sleep};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// let first = race3(sleep(3 * second), sleep(2 * second), sleep(second)).await;
/// assert!(matches!(first, Either3::Third(Ok(_))));
/// # });
/// ```
#[track_caller]
pub fn race3<A: Future, B: Future, C: Future>(a: A, b: B, c: C) -> Race3<A, B, C> {
    Race3 { a: Child::new(a), b: Child::new(b), c: Child::new(c) }
}

pin_project! {
    /// The future of [`race3`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Race3<A: Future, B: Future, C: Future> {
        #[pin]
        a: Child<A>,
        #[pin]
        b: Child<B>,
        #[pin]
        c: Child<C>,
    }
}

impl<A: Future, B: Future, C: Future> Future for Race3<A, B, C> {
    type Output = Either3<A::Output, B::Output, C::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let first = if this.a.as_mut().poll(cx) {
            Either3::First(this.a.as_mut().output())
        } else if this.b.as_mut().poll(cx) {
            Either3::Second(this.b.as_mut().output())
        } else if this.c.as_mut().poll(cx) {
            Either3::Third(this.c.as_mut().output())
        } else {
            return Poll::Pending;
        };
        // As in a race of two.
        this.a.project().branch.set(None);
        this.b.project().branch.set(None);
        this.c.project().branch.set(None);
        Poll::Ready(first)
    }
}
