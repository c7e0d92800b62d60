//! Spawning: what a task is made of, and the post that makes it.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::values::{any_locals, inherit_locals};
use super::{Output, Task, TaskCell};
use crate::core::gate;
use crate::core::names::{Site, TaskId, TaskRef};
use crate::core::posting;
use crate::core::protocol::{Body, End, NewTask, Post};
use crate::core::queue::Queue;

pin_project! {
    /// A task's future, then its output until the end of the task is told.
    struct Job<F: Future> {
        name: Cow<'static, str>,
        site: Site,
        #[pin]
        state: State<F>,
        // `None`: nobody will join it.
        cell: Option<Rc<TaskCell<F::Output>>>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F: Future> {
        Running { #[pin] future: F },
        Ended { output: Option<F::Output> },
    }
}

impl<F: Future> Body for Job<F> {
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

    fn clear(self: Pin<&mut Self>) {
        self.project().state.set(State::Ended { output: None });
    }

    fn end(self: Pin<&mut Self>, how: End<'_>) -> Option<Rc<Queue>> {
        let this = self.project();
        let cell = this.cell.take()?;
        let output = match (how, this.state.project()) {
            // Otherwise it stays here, to be dropped with the task.
            (End::Output, StateProjection::Ended { output }) if Rc::strong_count(&cell) > 1 => {
                output.take().map_or(Output::Dropped, Output::Value)
            }
            (End::Panicked(message), _) => Output::Panicked(message.to_owned()),
            (End::Output | End::Dropped, _) => Output::Dropped,
        };
        cell.end(output)
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
/// inherits no deadline, scope or name, but [inherited locals](crate::InheritedLocal). Costs an
/// allocation for the future with its name, one for its output, and one for a join that waits;
/// detached, one.
///
/// ```no_run
/// # async fn example() -> Result<(), traps::Error> {
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

/// The future of [`spawn`]: await it for the [`Task`]. The compiler warns of one that is not:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// async fn forgets() {
///     traps::spawn("child", async {});
/// }
/// ```
#[must_use = "a spawn that is not awaited makes no task: add `.await`"]
pub struct Spawn<T> {
    /// Makes the body of the task, around that cell; `None` once the task is made.
    body: Option<Box<dyn Unborn<T>>>,
    site: Site,
}

/// A task that does not exist yet.
trait Unborn<T> {
    fn bear(self: Box<Self>, cell: Option<Rc<TaskCell<T>>>) -> Pin<Box<dyn Body>>;
}

impl<F: Future + 'static> Unborn<F::Output> for Job<F> {
    fn bear(mut self: Box<Self>, cell: Option<Rc<TaskCell<F::Output>>>) -> Pin<Box<dyn Body>> {
        self.cell = cell;
        Box::into_pin(self)
    }
}

impl<T: 'static> Spawn<T> {
    pub(crate) fn new<F>(name: Cow<'static, str>, site: Site, future: F) -> Spawn<T>
    where
        F: Future<Output = T> + 'static,
    {
        let state = State::Running { future };
        Spawn { body: Some(Box::new(Job { name, site, state, cell: None })), site }
    }

    /// Spawns a task that nobody will join or cancel, such as one for each connection of a server.
    /// Its output is thrown away.
    ///
    /// ```no_run
    /// # async fn example() {
    /// traps::spawn("logger", async { /* as long as it likes */ }).detached().await;
    /// # }
    /// ```
    pub fn detached(self) -> SpawnDetached<T> {
        SpawnDetached { spawn: self }
    }

    /// Makes the task.
    #[inline]
    pub(crate) fn make(&mut self) -> Task<T> {
        let (root, id, parent) = self.names();
        let cell = Rc::new(TaskCell::new(root, id));
        self.post((root, id, parent), Some(cell.clone()));
        Task { cell }
    }

    fn names(&self) -> (TaskRef, TaskId, TaskRef) {
        assert!(self.body.is_some(), "rule: a future is not polled after it was ready");
        let Some(parent) = gate::task() else { gate::refuse_outside_a_task(self.site) };
        let (root, id) = gate::new_task(self.site);
        if any_locals() {
            inherit_locals(parent, root);
        }
        (root, id, parent)
    }

    fn post(
        &mut self,
        (root, id, parent): (TaskRef, TaskId, TaskRef),
        cell: Option<Rc<TaskCell<T>>>,
    ) {
        if let Some(body) = self.body.take() {
            posting::post(Post::Spawn(NewTask { root, id, body: body.bear(cell), parent }));
        }
    }
}

impl<T> fmt::Debug for Spawn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn").field("made", &self.body.is_none()).finish_non_exhaustive()
    }
}

impl<T: 'static> Future for Spawn<T> {
    type Output = Task<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Task<T>> {
        Poll::Ready(self.make())
    }
}

/// The future of [`Spawn::detached`].
#[derive(Debug)]
#[must_use = "a spawn that is not awaited makes no task: add `.await`"]
pub struct SpawnDetached<T> {
    spawn: Spawn<T>,
}

impl<T: 'static> Future for SpawnDetached<T> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let names = self.spawn.names();
        self.spawn.post(names, None);
        Poll::Ready(())
    }
}
