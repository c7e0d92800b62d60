//! Tasks: how they are made, the handle of their owner, and the values that belong to them.
//!
//! [`spawn`] boxes the future of a task into a [`TaskBody`] and posts it to the kernel, which polls
//! the body. When the future ends, the body moves the output into the [`TaskCell`] that it shares
//! with the [`Task`] handle, and the kernel ends the waits of the joiners. A [`Join`] then takes
//! the output out of the cell. A detached task has no cell.
//!
//! Task-local values are stored per task in a table of this thread. Some stay with their task, and
//! inherited ones are copied to its children. The values are user code, so no value is dropped
//! while the table is borrowed.

use std::any::Any;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::core::gate;
use crate::core::protocol::{Body, End, NewTask, Note, Post, Reply, Trap};
use crate::core::records::Records;
use crate::core::table::{Site, TaskId, TaskRef};
use crate::core::wait::Call;
use crate::error::{Error, drop_of_task};
use crate::interrupts::interrupt::Interrupt;
use crate::notes::note_warning;

/// The state that a task shares with its handle. The handle keeps it alive after the task, so that
/// a late join still finds the output.
pub(crate) struct TaskCell<T> {
    task: TaskRef,
    id: TaskId,
    output: RefCell<CellState<T>>,
    /// The callback of the group that the task was added to. It runs before the output can be
    /// taken, so that the group knows whether its member failed.
    on_end: Cell<Option<OnEnd<T>>>,
    /// Whether the task was joined, awaited or cancelled, or belongs to a group. If not, the drop
    /// of the handle is probably a mistake, and gets a `warn` line.
    is_used: Cell<bool>,
}

type OnEnd<T> = Box<dyn FnOnce(&CellState<T>)>;

/// The output of a task, or the reason why there is none.
pub(crate) enum CellState<T> {
    /// The task has not ended.
    Running,
    /// The task has ended with this output.
    Value(T),
    /// An earlier join took the output.
    Taken,
    /// The task panicked, with this message.
    Panicked(String),
    /// The future of the task was dropped before its end.
    Dropped,
}

impl<T> TaskCell<T> {
    pub(crate) fn new(task: TaskRef, id: TaskId) -> TaskCell<T> {
        let output = RefCell::new(CellState::Running);
        TaskCell { task, id, output, on_end: Cell::default(), is_used: Cell::default() }
    }

    /// Stores the output of a task that has ended.
    fn fill(&self, output: CellState<T>) {
        if let Some(on_end) = self.on_end.take() {
            on_end(&output);
        }
        self.output.replace(output);
    }

    /// Takes the output out of the cell, or returns an error if there is none.
    fn take_output(&self) -> Result<T, Error> {
        let mut output = self.output.borrow_mut();
        match mem::replace(&mut *output, CellState::Taken) {
            CellState::Value(value) => return Ok(value),
            other => *output = other,
        }
        Err(match &*output {
            CellState::Panicked(message) => Error::Panicked(message.clone()),
            CellState::Dropped => Error::Dropped,
            _ => Error::Taken,
        })
    }
}

impl<T> Drop for TaskCell<T> {
    fn drop(&mut self) {
        if mem::needs_drop::<T>()
            && let CellState::Value(value) = self.output.replace(CellState::Taken)
        {
            drop(TaskValue::new(self.id, value));
        }
    }
}

/// A value out of a task's output. It is user code of an ended task, so a panic of its drop must
/// not unwind the task that drops it: the panic becomes a `warn` line.
pub(crate) struct TaskValue<T> {
    pub(crate) task: TaskId,
    value: Option<T>,
}

impl<T> TaskValue<T> {
    pub(crate) fn new(task: TaskId, value: T) -> TaskValue<T> {
        TaskValue { task, value: Some(value) }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    pub(crate) fn take(mut self) -> Option<T> {
        self.value.take()
    }
}

impl<T> Drop for TaskValue<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        if let Some(text) = drop_of_task(self.task, "output", || drop(value)) {
            note_warning(text);
        }
    }
}

impl<T> fmt::Debug for TaskCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskCell").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A future that waits for the end of a task and leaves the output in the task. It also ends if the
/// kernel of the task was dropped, because that drops the task.
#[derive(Debug)]
pub(crate) struct WaitForEnd {
    task: TaskRef,
    id: TaskId,
    call: Call,
}

impl WaitForEnd {
    pub(crate) fn new(task: TaskRef, id: TaskId, site: Site) -> WaitForEnd {
        WaitForEnd { task, id, call: Call::from(site) }
    }
}

impl Future for WaitForEnd {
    type Output = Result<(), Interrupt>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let WaitForEnd { task, id, call } = &mut *self;
        // An ended task costs no trap. But a wait that was filed may hold an interrupt or a reply,
        // so it has to be read even if the task has ended since.
        if call.ticket().is_none() && !gate::is_alive(*task) {
            return Poll::Ready(Ok(()));
        }
        call.poll(cx, || Trap::Join { task: *task, id: *id }).map(Reply::done)
    }
}

/// Asks for the cancellation of a task.
pub(crate) fn cancel(task: TaskRef, reason: &'static str) {
    gate::post(gate::cancellation(task, reason));
}

/// The handle of a task, to join or cancel it. (A task that needs no handle is spawned
/// [`detached`](crate::Spawn::detached).)
///
/// If the handle is dropped, the task continues. A `warn` line reports the drop, unless the handle
/// was used to join, await or cancel the task, or an interrupt was delivered to the code that drops
/// it.
///
/// A handle can be awaited, by value or by reference: `task.await` is `task.join().await`.
///
/// If no task takes the output, the kernel or the handle drops it. A panic in its `Drop` becomes a
/// `warn` line that names the task, and ends no task.
///
/// ```
/// # use std::time::Duration;
/// use traps::{Error, Interrupt, sleep, spawn};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// let slow = async move { sleep(60 * second).await };
/// let mut task = spawn("slow", slow).await;
/// assert_eq!(task.id().to_string(), "3"); // main is task 1
///
/// sleep(second).await?;
/// task.cancel().await?; // returns once the task has ended
/// let interrupt: Interrupt = task.await?.unwrap_err();
/// assert!(interrupt.is_cancelled());
/// # Ok::<(), Error>(())
/// # }).output.unwrap();
/// ```
#[derive(Debug)]
pub struct Task<T> {
    cell: Rc<TaskCell<T>>,
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if !self.cell.is_used.get() {
            warn_of_unused(self.cell.id);
        }
    }
}

fn warn_of_unused(task: TaskId) {
    let is_interrupted = |records: &mut Records, from, _: &_| {
        records.outwards(from).any(|(at, scope)| scope.was_taken(at))
    };
    // Outside a task, the kernel drops the remains of an ended task. That is no mistake of the
    // task: a cancelled parent has no time to join its children.
    if gate::task().is_some()
        && !std::thread::panicking()
        && !gate::with_records(Location::caller(), is_interrupted)
    {
        note_warning(format!(
            "the handle of task {task} was dropped unused; join it, cancel it, or spawn it detached"
        ));
    }
}

/// Logs that a caller got the output of this task, or its panic. A test fails if the log has a
/// panic that no caller got.
pub(crate) fn log_join(task: TaskId) {
    if gate::is_listening() {
        gate::post(Post::Note(Note::Joined(task)));
    }
}

impl<T: 'static> Task<T> {
    /// Returns the number of the task, as the log shows it. A kernel never gives a number twice.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.cell.id
    }

    pub(crate) fn name(&self) -> TaskRef {
        self.cell.task
    }

    /// Returns the future that waits for the end of the task.
    pub(crate) fn ended(&self, site: Site) -> WaitForEnd {
        WaitForEnd::new(self.cell.task, self.cell.id, site)
    }

    /// Marks the handle as used, so that no `warn` line reports its drop.
    pub(crate) fn mark_used(&self) {
        self.cell.is_used.set(true);
    }

    /// Calls `see` with the output when the task ends, or at once if it has ended.
    pub(crate) fn when_ended(&self, see: impl FnOnce(&CellState<T>) + 'static) {
        if gate::is_alive(self.cell.task) {
            self.cell.on_end.set(Some(Box::new(see)));
        } else {
            let output = self.cell.output.replace(CellState::Taken);
            see(&output);
            self.cell.output.replace(output);
        }
    }

    /// Waits for the end of the task and takes its output. *Blocks* unless the task has ended. A
    /// join takes the output only when it returns it, so an interrupted, dropped or moved join can
    /// be repeated.
    ///
    /// # Errors
    ///
    /// Returns the interrupt if the wait was interrupted. Returns [`Error::Panicked`],
    /// [`Error::Dropped`] or [`Error::Taken`] if there is no output to take.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{Error, sleep, spawn, timeout_after};
    ///
    /// # testing::run(async {
    /// let second = Duration::from_secs(1);
    /// let work = async move { sleep(3 * second).await.map(|_| "done") };
    /// let mut task = spawn("work", work).await;
    ///
    /// // The timeout ends the join, but not the task.
    /// assert!(timeout_after(second, task.join()).await.is_err());
    /// assert_eq!(task.join().await??, "done");
    /// assert_eq!(task.join().await, Err(Error::Taken));
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    pub fn join(&mut self) -> Join<'_, T> {
        self.mark_used();
        let ended = self.ended(Location::caller());
        Join { task: self, ended }
    }

    /// Takes the output of a task that has ended, and logs the join: the end of the wait alone does
    /// not show whether the output was taken.
    pub(crate) fn take_output(&self) -> Result<T, Error> {
        let output = self.cell.take_output()?;
        log_join(self.cell.id);
        Ok(output)
    }

    /// Takes the output of a task that has ended for the caller of a join, who also learns of a
    /// panic.
    fn join_ended(&self) -> Result<T, Error> {
        let output = self.take_output();
        if let Err(Error::Panicked(_)) = output {
            log_join(self.cell.id);
        }
        output
    }

    /// Waits for the end of the task and leaves the output in the task. *Blocks* unless the task
    /// has ended. Any number of tasks can wait, but only one can take the output.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait.
    ///
    /// ```
    /// # testing::run(async {
    /// let mut task = traps::spawn("six", async { 6 }).await;
    /// task.wait().await?;
    /// assert_eq!(task.join().await?, 6); // without a wait
    /// # Ok::<(), traps::Error>(())
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<(), Interrupt>> + use<T> {
        self.mark_used();
        self.ended(Location::caller())
    }

    /// Cancels the task and waits for its end. A task is cancelled only once; later requests just
    /// wait.
    ///
    /// The cancellation ends the traps that the task is parked in. A task that is ready keeps what
    /// it has, a value or a timeout, and its next blocking trap gets the cancellation.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait. The request to cancel stays in force.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{sleep, spawn};
    ///
    /// # testing::run(async {
    /// let cleans_up = async {
    ///     let interrupt = sleep(Duration::MAX).await.unwrap_err();
    ///     // The cancellation was delivered, so the next trap is not interrupted again.
    ///     sleep(Duration::from_secs(1)).await.unwrap();
    ///     interrupt.is_cancelled()
    /// };
    /// let mut task = spawn("cleans-up", cleans_up).await;
    /// sleep(Duration::from_secs(9)).await?;
    /// task.cancel().await?; // returns a second later
    /// assert_eq!(task.join().await, Ok(true));
    /// # Ok::<(), traps::Error>(())
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    pub fn cancel(&self) -> impl Future<Output = Result<(), Interrupt>> + use<T> {
        self.cancel_from("", Location::caller())
    }

    /// Cancels the task like [`cancel`](Task::cancel). The log and the interrupt show `reason`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`cancel`](Task::cancel).
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{sleep, spawn};
    ///
    /// # testing::run(async {
    /// let mut task = spawn("waits", sleep(Duration::MAX)).await;
    /// sleep(Duration::from_secs(1)).await?;
    /// task.cancel_because("too slow").await?;
    /// assert!(task.join().await?.unwrap_err().to_string().contains("too slow"));
    /// # Ok::<(), traps::Error>(())
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    pub fn cancel_because(
        &self,
        reason: &'static str,
    ) -> impl Future<Output = Result<(), Interrupt>> + use<T> {
        self.cancel_from(reason, Location::caller())
    }

    fn cancel_from(
        &self,
        reason: &'static str,
        site: Site,
    ) -> impl Future<Output = Result<(), Interrupt>> + use<T> {
        self.mark_used();
        let (task, ended) = (self.cell.task, self.ended(site));
        async move {
            cancel(task, reason);
            ended.await
        }
    }

    /// Cancels the task without waiting. The log and the interrupt show `reason`, unless it is
    /// empty. *A post*, so it can be called in a `Drop`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{sleep, spawn};
    ///
    /// # testing::run(async {
    /// let one = spawn("one", sleep(Duration::MAX)).await;
    /// let two = spawn("two", sleep(Duration::MAX)).await;
    /// let tasks = [one, two];
    /// // Cancel both first, so that they end at the same time.
    /// tasks.iter().for_each(|task| task.cancel_now("not needed"));
    /// for task in tasks {
    ///     assert!(task.await?.is_err());
    /// }
    /// # Ok::<(), traps::Error>(())
    /// # }).output.unwrap();
    /// ```
    pub fn cancel_now(&self, reason: &'static str) {
        self.mark_used();
        cancel(self.cell.task, reason);
    }
}

/// The future of [`Task::join`].
#[derive(Debug)]
#[must_use = "a join that is not awaited waits for nothing: add `.await`"]
pub struct Join<'a, T> {
    task: &'a mut Task<T>,
    ended: WaitForEnd,
}

impl<T: 'static> Future for Join<'_, T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(Pin::new(&mut self.ended).poll(cx))?;
        Poll::Ready(self.task.join_ended())
    }
}

impl<'a, T: 'static> IntoFuture for &'a mut Task<T> {
    type Output = Result<T, Error>;
    type IntoFuture = Join<'a, T>;

    #[track_caller]
    fn into_future(self) -> Join<'a, T> {
        self.join()
    }
}

/// Joins the task. If the wait is interrupted, the handle is gone and the task continues; to join
/// again, await `&mut task`.
impl<T: 'static> IntoFuture for Task<T> {
    type Output = Result<T, Error>;
    type IntoFuture = IntoJoin<T>;

    #[track_caller]
    fn into_future(self) -> IntoJoin<T> {
        self.mark_used();
        let ended = self.ended(Location::caller());
        IntoJoin { task: self, ended }
    }
}

/// The future of a [`Task`] that is awaited by value.
#[derive(Debug)]
#[must_use = "a join that is not awaited waits for nothing: add `.await`"]
pub struct IntoJoin<T> {
    task: Task<T>,
    ended: WaitForEnd,
}

impl<T: 'static> Future for IntoJoin<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(Pin::new(&mut self.ended).poll(cx))?;
        Poll::Ready(self.task.join_ended())
    }
}

pin_project! {
    /// The body of a task: its future, and afterwards the output, until the kernel has the body end
    /// and the output moves to the cell.
    struct TaskBody<F: Future> {
        #[pin]
        state: BodyState<F>,
        // `None` if the task is detached.
        cell: Option<Rc<TaskCell<F::Output>>>,
    }
}

pin_project! {
    #[project = BodyStateProjection]
    enum BodyState<F: Future> {
        Running { #[pin] future: F },
        Ended { output: Option<F::Output> },
    }
}

impl<F: Future> Future for TaskBody<F> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.project().state;
        let BodyStateProjection::Running { future } = state.as_mut().project() else {
            unreachable!("rule: an ended task is not polled")
        };
        let output = Some(ready!(future.poll(cx)));
        // This drops the future, and so all that it holds, before the kernel wakes a joiner. A
        // joiner that opens the file of an ended task must not find it locked, for example.
        state.set(BodyState::Ended { output });
        Poll::Ready(())
    }
}

impl<F: Future> Body for TaskBody<F> {
    fn end(self: Pin<&mut Self>, how: End<'_>) {
        let this = self.project();
        let Some(cell) = this.cell.take() else { return };
        cell.fill(match (how, this.state.project()) {
            // If no handle is left, the output stays here and is dropped with the body.
            (End::Output, BodyStateProjection::Ended { output }) if Rc::strong_count(&cell) > 1 => {
                output.take().map_or(CellState::Dropped, CellState::Value)
            }
            (End::Panicked(message), _) => CellState::Panicked(message.to_owned()),
            (End::Output | End::Dropped, _) => CellState::Dropped,
        });
    }
}

/// Makes the body of a task whose output is dropped.
#[must_use]
pub fn body_without_handle(future: impl Future + 'static) -> Pin<Box<dyn Body>> {
    Box::pin(TaskBody { state: BodyState::Running { future }, cell: None })
}

/// Makes a new task that runs `future`. Await it to get the [`Task`], whose [`join`](Task::join)
/// returns the output. *A post*: the child is ready at once, and first runs in the next turn. It
/// inherits [inherited locals](crate::InheritedLocal), but no deadline, scope or name. A spawn
/// costs one allocation for the future and one for the output. A detached spawn costs one.
///
/// A panic of the task ends that task alone, and [`join`](Task::join) returns it. If the task
/// leaves a value whose `Drop` panics, such as an output that no task takes, a `warn` line reports
/// that.
///
/// ```
/// # testing::run(async {
/// let mut child = traps::spawn("child", async { 6 * 7 }).await;
/// assert_eq!(child.join().await?, 42);
///
/// let mut fails = traps::spawn("fails", async { panic!("no such number") }).await;
/// let panicked: Result<(), _> = fails.join().await;
/// assert_eq!(panicked, Err(traps::Error::Panicked("no such number".to_owned())));
/// # Ok::<(), traps::Error>(())
/// # }).output.unwrap();
/// ```
#[track_caller]
pub fn spawn<F>(name: impl Into<Cow<'static, str>>, future: F) -> Spawn<F>
where
    F: Future + 'static,
    F::Output: 'static,
{
    Spawn::new(name.into(), Location::caller(), future)
}

/// The future of [`spawn`]. Await it to get the [`Task`]. The compiler warns if it is not awaited:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// async fn forgets() {
///     traps::spawn("child", async {});
/// }
/// ```
///
/// It has no task to join yet:
///
/// ```compile_fail,E0277
/// async fn forgets() {
///     let mut child = traps::spawn("child", async {});
///     child.join().await;
/// }
/// ```
#[must_use = "a spawn that is not awaited makes no task: add `.await`"]
pub struct Spawn<F> {
    name: Cow<'static, str>,
    site: Site,
    /// The future of the task, or `None` once the task is made.
    future: Option<F>,
}

impl<F: Future<Output: 'static> + 'static> Spawn<F> {
    pub(crate) fn new(name: Cow<'static, str>, site: Site, future: F) -> Spawn<F> {
        Spawn { name, site, future: Some(future) }
    }

    /// Spawns a task that is never joined or cancelled, such as one for each connection of a
    /// server. The output of the task is thrown away.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # testing::run(async {
    /// use traps::{note, sleep, spawn};
    ///
    /// let logger = async {
    ///     while sleep(Duration::from_secs(60)).await.is_ok() {
    ///         note("a minute");
    ///     }
    /// };
    /// spawn("logger", logger).detached().await;
    /// # });
    /// ```
    pub fn detached(self) -> SpawnDetached<F> {
        SpawnDetached { spawn: self }
    }

    /// Cannot be called. It makes the compiler explain that the await is missing.
    #[doc(hidden)]
    pub fn join(&mut self) -> Join<'static, F::Output>
    where
        Spawn<F>: IsAwaited,
    {
        unreachable!("nothing is `IsAwaited`")
    }

    /// Makes the task and returns its handle. A spawn needs no reply, because the gate gives out
    /// the numbers of tasks.
    #[inline]
    pub(crate) fn make(&mut self) -> Task<F::Output> {
        let (task, id) = self.begin();
        let cell = Rc::new(TaskCell::new(task, id));
        self.post(task, Some(cell.clone()));
        Task { cell }
    }

    /// Chooses the name and the number of the task.
    fn begin(&self) -> (TaskRef, TaskId) {
        let Some(parent) = gate::task() else { gate::refuse_outside_a_task(self.site) };
        let (task, id) = gate::new_task(self.site);
        if any_locals() {
            inherit_locals(parent, task);
        }
        (task, id)
    }

    fn post(&mut self, task: TaskRef, cell: Option<Rc<TaskCell<F::Output>>>) {
        let future = self.future.take().expect("rule: a future is not polled after it was ready");
        let body = Box::pin(TaskBody { state: BodyState::Running { future }, cell });
        gate::post(Post::Spawn(NewTask { task, name: mem::take(&mut self.name), body }));
    }
}

/// The bound of [`Spawn::join`]. No type implements it; it exists for its message.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this `spawn(..)` was not awaited, so there is no task to join",
    label = "await the spawn first: `spawn(..).await` is the `Task`, which has `join`"
)]
pub trait IsAwaited {}

// The future is moved into its box before it is pinned.
impl<F> Unpin for Spawn<F> {}

impl<F> fmt::Debug for Spawn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn").field("made", &self.future.is_none()).finish_non_exhaustive()
    }
}

impl<F: Future<Output: 'static> + 'static> Future for Spawn<F> {
    type Output = Task<F::Output>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Task<F::Output>> {
        Poll::Ready(self.make())
    }
}

/// The future of [`Spawn::detached`].
#[derive(Debug)]
#[must_use = "a spawn that is not awaited makes no task: add `.await`"]
pub struct SpawnDetached<F> {
    spawn: Spawn<F>,
}

impl<F: Future<Output: 'static> + 'static> Future for SpawnDetached<F> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let (root, _) = self.spawn.begin();
        self.spawn.post(root, None);
        Poll::Ready(())
    }
}

/// The key of a local value: the address of the static that the value belongs to. Keys are compared
/// for equality, never ordered.
pub(super) type LocalId = usize;
/// The inherited local values of a task: its children and its jobs get copies of them.
pub(crate) type InheritedValues = Vec<(LocalId, Arc<dyn Any + Send + Sync>)>;

/// The local values of one task. There are only a few, so a linear search finds them.
#[derive(Default)]
pub(super) struct Locals {
    pub(super) own: Vec<(LocalId, Rc<dyn Any>)>,
    pub(super) inherited: InheritedValues,
}

thread_local! {
    static LOCALS: RefCell<BTreeMap<TaskRef, Locals>> = const { RefCell::new(BTreeMap::new()) };
}

/// Returns whether any task of this thread has local values. Costs a load, so test it before
/// calling [`inherit_locals`] or [`drop_locals`].
#[inline]
#[must_use]
pub fn any_locals() -> bool {
    LOCALS.try_with(|locals| !locals.borrow().is_empty()).unwrap_or(false)
}

/// Copies the inherited local values of a parent task to its child.
pub fn inherit_locals(parent: TaskRef, child: TaskRef) {
    let inherited = inherited_of(parent);
    if !inherited.is_empty() {
        let locals = Locals { own: Vec::new(), inherited };
        LOCALS.with_borrow_mut(|tasks| tasks.insert(child, locals));
    }
}

/// Drops the local values of an ended task. If the drop of one value panics, the panic is caught
/// and the others are dropped all the same. Returns the texts of the `warn` lines.
pub fn drop_locals(task: TaskRef, id: TaskId) -> Vec<String> {
    let taken = LOCALS.try_with(|locals| locals.borrow_mut().remove(&task));
    let Locals { own, inherited } = taken.ok().flatten().unwrap_or_default();
    let own = own.into_iter().filter_map(|it| drop_of_task(id, "local", || drop(it)));
    let inherited = inherited.into_iter().filter_map(|it| drop_of_task(id, "local", || drop(it)));
    own.chain(inherited).collect()
}

/// Returns copies of the local values that a child or a job of this task inherits.
pub(crate) fn inherited_of(task: TaskRef) -> InheritedValues {
    let values = LOCALS.try_with(|locals| Some(locals.borrow().get(&task)?.inherited.clone()));
    values.ok().flatten().unwrap_or_default()
}

/// Returns a copy of the local value with this key. A copy, because user code must not run, not
/// even a `Drop`, while the table is borrowed.
pub(crate) fn find<V: Clone>(values: &[(LocalId, V)], key: LocalId) -> Option<V> {
    values.iter().find(|(found, _)| *found == key).map(|(_, value)| value.clone())
}

/// Sets or removes the local value with this key. Returns the previous value.
pub(crate) fn replace<V>(
    values: &mut Vec<(LocalId, V)>,
    key: LocalId,
    value: Option<V>,
) -> Option<V> {
    let place = values.iter().position(|(found, _)| *found == key);
    let before = place.map(|place| values.remove(place).1);
    values.extend(value.map(|value| (key, value)));
    before
}

/// Reads the local values of the task that is being polled. Returns `None` outside a poll.
pub(crate) fn read_locals<R>(read: impl FnOnce(&Locals) -> Option<R>) -> Option<R> {
    let task = gate::task()?;
    LOCALS.try_with(|locals| read(locals.borrow().get(&task)?)).ok().flatten()
}

/// Changes the local values of the task that is being polled. Returns `None` outside a poll.
pub(crate) fn write_locals<R>(write: impl FnOnce(&mut Locals) -> R) -> Option<R> {
    let task = gate::task()?;
    LOCALS.try_with(|locals| write(locals.borrow_mut().entry(task).or_default())).ok()
}
