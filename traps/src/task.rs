//! Tasks as their owners see them: spawn, join, cancel.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::call::Call;
use crate::error::{JoinError, only_interrupt, wrong_answer};
use crate::gate;
use crate::interrupt::Interrupt;
use crate::protocol::{Answer, Body, Ended, Post, Request, Site, TaskRef};

/// The number of a task in its kernel: dense, from 1, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl TaskRef {
    /// The task's number.
    #[must_use]
    pub fn id(self) -> TaskId {
        TaskId(self.serial.get())
    }
}

pin_project! {
    struct Job<F: Future> {
        name: Cow<'static, str>,
        site: Site,
        #[pin]
        stage: Stage<F>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<F: Future> {
        Running { #[pin] future: F },
        Ended { output: Option<F::Output> },
    }
}

impl<F> Body for Job<F>
where
    F: Future,
    F::Output: 'static,
{
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut stage = self.project().stage;
        match stage.as_mut().project() {
            StageProjection::Running { future } => {
                let output = ready!(future.poll(cx));
                stage.set(Stage::Ended { output: Some(output) });
                Poll::Ready(())
            }
            StageProjection::Ended { .. } => unreachable!("rule: an ended task is not polled"),
        }
    }

    fn take(self: Pin<&mut Self>, slot: &mut dyn Any) {
        let slot = slot.downcast_mut::<Option<F::Output>>().expect("a join asks for its own type");
        if let StageProjection::Ended { output } = self.project().stage.project() {
            *slot = output.take();
        }
    }

    fn clear(self: Pin<&mut Self>) {
        self.project().stage.set(Stage::Ended { output: None });
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn site(&self) -> Site {
        self.site
    }
}

/// Makes a new task that runs `future`. *Answers*: the caller goes on, the child first runs in the
/// next turn. Costs one allocation. No deadline, scope or name is inherited.
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

/// The future of [`spawn`].
#[must_use = "a trap that is not awaited is never made: the task does not exist"]
pub struct Spawn<T> {
    body: Option<Pin<Box<dyn Body>>>,
    call: Call,
    output: PhantomData<fn() -> T>,
}

impl<T: 'static> Spawn<T> {
    pub(crate) fn new<F>(name: Cow<'static, str>, site: Site, future: F) -> Spawn<T>
    where
        F: Future<Output = T> + 'static,
    {
        let body = Box::pin(Job { name, site, stage: Stage::Running { future } });
        Spawn { body: Some(body), call: Call::at(site), output: PhantomData }
    }
}

impl<T> Spawn<T> {
    /// The task, if it was made and this future has not said so yet.
    pub(crate) fn salvage(&mut self) -> Option<Task<T>> {
        match self.call.abandon() {
            Some(Ok(Answer::Task(task))) => Some(Task { task, output: None, local: PhantomData }),
            _ => None,
        }
    }
}

impl<T> fmt::Debug for Spawn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn").field("call", &self.call).finish_non_exhaustive()
    }
}

impl<T> Future for Spawn<T> {
    type Output = Task<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Task<T>> {
        let Spawn { body, call, .. } = &mut *self;
        let request = || {
            Request::Spawn(body.take().expect(
                "rule: a spawn is offered once; the task or the kernel that had it is gone",
            ))
        };
        call.poll(cx, request).map(|result| match result {
            Ok(Answer::Task(task)) => Task { task, output: None, local: PhantomData },
            other => unreachable!("rule: a spawn is answered with a task, not {other:?}"),
        })
    }
}

impl<T> Drop for Spawn<T> {
    #[inline]
    fn drop(&mut self) {
        if self.call.is_filed() {
            drop(self.salvage());
        }
    }
}

/// The handle of a task: join it, cancel it, or drop the handle to let it run on alone.
#[derive(Debug)]
pub struct Task<T> {
    task: TaskRef,
    /// Taken by a join whose future was dropped before it was read.
    output: Option<T>,
    local: PhantomData<Rc<()>>,
}

impl<T: 'static> Task<T> {
    /// The task's number.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.task.id()
    }

    /// Waits for the end of the task and takes its output. *Blocks* unless it has ended. A join
    /// that is interrupted, or dropped, takes nothing and can be made again.
    ///
    /// # Errors
    ///
    /// [`JoinError`]: the wait was interrupted, or there is no output to take.
    #[track_caller]
    pub fn join(&mut self) -> Join<'_, T> {
        self.join_from(Location::caller())
    }

    pub(crate) fn join_from(&mut self, site: Site) -> Join<'_, T> {
        Join { task: self, call: Call::at(site) }
    }

    pub(crate) fn task_ref(&self) -> TaskRef {
        self.task
    }

    /// Waits for the end of the task and leaves its output where it is.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait.
    #[track_caller]
    pub fn wait(&self) -> WaitTask<'_> {
        WaitTask::new(self.task, Location::caller())
    }

    /// Cancels the task and waits for its end. A task is cancelled once; later requests only wait.
    /// `reason` is shown in the log and in the interrupt.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; the request stands.
    #[track_caller]
    pub fn cancel(&self, reason: &'static str) -> Cancel<'_> {
        Cancel::new(self.task, reason, Location::caller())
    }

    /// Cancels the task and does not wait. *Answers.*
    #[track_caller]
    pub fn cancel_now(&self, reason: &'static str) -> CancelNow<'_> {
        CancelNow::new(self.task, reason, Location::caller())
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        gate::post(Post::Detach(self.task));
    }
}

/// The future of [`Task::join`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct Join<'a, T: 'static> {
    task: &'a mut Task<T>,
    call: Call,
}

impl<T> Unpin for Join<'_, T> {}

fn output<T: 'static>(body: Option<Pin<Box<dyn Body>>>) -> Option<T> {
    let mut slot: Option<T> = None;
    body?.as_mut().take(&mut slot);
    slot
}

impl<T> Future for Join<'_, T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Join { task, call } = &mut *self;
        if let Some(output) = task.output.take() {
            return Poll::Ready(Ok(output));
        }
        let name = task.task;
        call.poll(cx, || Request::Join { task: name, take: true }).map(|result| match result {
            Ok(Answer::Ended(Ended::Output(body))) => output(body).ok_or(JoinError::Taken),
            Ok(Answer::Ended(Ended::Panicked(message))) => Err(JoinError::Panicked(*message)),
            Ok(Answer::Ended(Ended::Dropped)) => Err(JoinError::Dropped),
            Ok(Answer::Ended(Ended::Taken)) => Err(JoinError::Taken),
            Ok(other) => wrong_answer(&other),
            Err(failure) => Err(JoinError::Interrupt(only_interrupt(failure))),
        })
    }
}

impl<T: 'static> Join<'_, T> {
    /// What it took and nobody read stays with the handle.
    #[cold]
    fn give_up(&mut self) {
        if let Some(Ok(Answer::Ended(Ended::Output(body)))) = self.call.abandon() {
            self.task.output = output(body);
        }
    }
}

impl<T: 'static> Drop for Join<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.call.is_filed() {
            self.give_up();
        }
    }
}

/// The future of [`Task::wait`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct WaitTask<'a> {
    task: TaskRef,
    call: Call,
    handle: PhantomData<&'a ()>,
}

impl WaitTask<'_> {
    pub(crate) fn new(task: TaskRef, site: Site) -> Self {
        WaitTask { task, call: Call::at(site), handle: PhantomData }
    }
}

impl Future for WaitTask<'_> {
    type Output = Result<(), Interrupt>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let WaitTask { task, call, .. } = &mut *self;
        let task = *task;
        call.poll(cx, || Request::Join { task, take: false }).map(|result| match result {
            Ok(Answer::Ended(_)) => Ok(()),
            Ok(other) => wrong_answer(&other),
            Err(failure) => Err(only_interrupt(failure)),
        })
    }
}

/// The future of [`Task::cancel_now`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct CancelNow<'a> {
    task: TaskRef,
    reason: &'static str,
    call: Call,
    handle: PhantomData<&'a ()>,
}

impl CancelNow<'_> {
    pub(crate) fn new(task: TaskRef, reason: &'static str, site: Site) -> Self {
        CancelNow { task, reason, call: Call::at(site), handle: PhantomData }
    }
}

impl Future for CancelNow<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let CancelNow { task, reason, call, .. } = &mut *self;
        let (task, reason) = (*task, *reason);
        call.poll(cx, || Request::Cancel { task, reason }).map(|_| ())
    }
}

/// The future of [`Task::cancel`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct Cancel<'a> {
    request: Option<CancelNow<'a>>,
    wait: WaitTask<'a>,
}

impl Cancel<'_> {
    pub(crate) fn new(task: TaskRef, reason: &'static str, site: Site) -> Self {
        let request = Some(CancelNow::new(task, reason, site));
        Cancel { request, wait: WaitTask::new(task, site) }
    }
}

impl Future for Cancel<'_> {
    type Output = Result<(), Interrupt>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(request) = &mut self.request {
            ready!(Pin::new(request).poll(cx));
            self.request = None;
        }
        Pin::new(&mut self.wait).poll(cx)
    }
}
