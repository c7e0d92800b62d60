//! Spawning: what a task is made of, and the post that makes it.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::local::{any_locals, inherit_locals};
use super::{Name, Task};
use crate::gate;
use crate::protocol::{Body, NewTask, Post, Site};

pin_project! {
    /// A task's future, then its output.
    struct Job<F: Future> {
        name: Cow<'static, str>,
        site: Site,
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F: Future> {
        Running { #[pin] future: F },
        Ended { output: Option<F::Output> },
    }
}

impl<F: Future> Body for Job<F>
where
    F::Output: 'static,
{
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.project().state;
        let StateProjection::Running { future } = state.as_mut().project() else {
            unreachable!("rule: an ended task is not polled")
        };
        let output = Some(ready!(future.poll(cx)));
        state.set(State::Ended { output });
        Poll::Ready(())
    }

    fn take(self: Pin<&mut Self>, slot: &mut dyn Any) {
        let slot = slot.downcast_mut::<Option<F::Output>>().expect("a join asks for its own type");
        if let StateProjection::Ended { output } = self.project().state.project() {
            *slot = output.take();
        }
    }

    fn clear(self: Pin<&mut Self>) {
        self.project().state.set(State::Ended { output: None });
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn site(&self) -> Site {
        self.site
    }
}

/// Makes a new task that runs `future`; await it for the [`Task`], whose [`join`](Task::join)
/// waits for the output. *A post*: ready at once; the child first runs in the next turn. It
/// inherits no deadline, scope or name, but [inherited locals](crate::InheritedLocal). Costs one
/// allocation, for the future, its output and its name.
///
/// ```no_run
/// # async fn example() -> Result<(), traps::JoinError> {
/// let mut child = traps::spawn("child", async { 6 * 7 }).await;
/// assert_eq!(child.join().await?, 42);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn spawn<F>(name: impl Into<Cow<'static, str>>, future: F) -> Spawn<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    Spawn::new(name.into(), Location::caller(), future)
}

/// The future of [`spawn`]: await it for the [`Task`].
#[must_use = "a spawn that is not awaited is never made: the task does not exist"]
pub struct Spawn<T> {
    /// `None` once the task is made.
    body: Option<Pin<Box<dyn Body>>>,
    output: PhantomData<fn() -> T>,
}

impl<T: 'static> Spawn<T> {
    pub(crate) fn new<F>(name: Cow<'static, str>, site: Site, future: F) -> Spawn<T>
    where
        F: Future<Output = T> + 'static,
    {
        let state = State::Running { future };
        Spawn { body: Some(Box::pin(Job { name, site, state })), output: PhantomData }
    }
}

impl<T> Spawn<T> {
    /// Spawns a task that nobody will join or cancel, such as one for each connection of a server.
    /// Its output is thrown away.
    ///
    /// ```no_run
    /// # async fn example() {
    /// traps::spawn("logger", async { /* as long as it likes */ }).detached().await;
    /// # }
    /// ```
    pub fn detached(self) -> SpawnDetached {
        SpawnDetached { body: self.body }
    }

    /// Makes the task.
    #[inline]
    pub(crate) fn make(&mut self) -> Task<T> {
        Task::new(make(&mut self.body, false))
    }
}

fn make(body: &mut Option<Pin<Box<dyn Body>>>, detached: bool) -> Name {
    let body = body.take().expect("rule: a future is not polled after it was ready");
    let Some(parent) = gate::task() else { gate::refuse_outside_a_task(body.site()) };
    let (task, id) = gate::new_task();
    if any_locals() {
        inherit_locals(parent, task);
    }
    gate::post(Post::Spawn(NewTask { task, id, body, parent, detached }));
    Name { task, id }
}

impl<T> fmt::Debug for Spawn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn").field("made", &self.body.is_none()).finish_non_exhaustive()
    }
}

impl<T> Future for Spawn<T> {
    type Output = Task<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Task<T>> {
        Poll::Ready(self.make())
    }
}

/// The future of [`Spawn::detached`].
#[must_use = "a spawn that is not awaited is never made: the task does not exist"]
pub struct SpawnDetached {
    body: Option<Pin<Box<dyn Body>>>,
}

impl fmt::Debug for SpawnDetached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnDetached").field("made", &self.body.is_none()).finish()
    }
}

impl Future for SpawnDetached {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        make(&mut self.body, true);
        Poll::Ready(())
    }
}
