//! Tasks as their owners see them: join, wait, cancel. How they are made is in `spawn.rs`.

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use crate::call::Call;
use crate::error::{JoinError, only_interrupt, wrong_answer};
use crate::gate;
use crate::interrupt::Interrupt;
use crate::protocol::{Answer, Body, Ended, Post, ROOT, Request, ScopeId, Site, TaskRef};

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

    /// The scope around all that the task does.
    #[inline]
    #[must_use]
    pub fn root(self) -> ScopeId {
        ScopeId { index: ROOT, epoch: self.epoch, serial: self.serial }
    }
}

/// The handle of a task: join it, cancel it, or drop the handle to let it run on alone
/// (what never needs one is spawned [`detached`](crate::Spawn::detached)).
#[derive(Debug)]
pub struct Task<T> {
    task: TaskRef,
    output: Output<T>,
    local: PhantomData<Rc<()>>,
}

/// Where the output of a task is, as far as its handle knows.
#[derive(Debug)]
enum Output<T> {
    /// With the task.
    There,
    /// Taken by a join whose future was dropped before it was read.
    Here(T),
    /// Given out. As in the case before, the kernel has nothing of the task any more.
    Gone,
}

impl<T> Task<T> {
    #[inline]
    pub(crate) fn new(task: TaskRef) -> Task<T> {
        Task { task, output: Output::There, local: PhantomData }
    }
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
    #[inline]
    fn drop(&mut self) {
        if let Output::There = self.output {
            gate::post(Post::Detach(self.task));
        }
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
    let (mut slot, mut body): (Option<T>, _) = (None, body?);
    body.as_mut().take(&mut slot);
    body.retire();
    slot
}

impl<T> Future for Join<'_, T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Join { task, call } = &mut *self;
        if let Output::Here(_) = task.output
            && let Output::Here(output) = mem::replace(&mut task.output, Output::Gone)
        {
            return Poll::Ready(Ok(output));
        }
        let name = task.task;
        call.poll(cx, || Request::Join { task: name, take: true }).map(|result| match result {
            Ok(Answer::Ended(Ended::Output(body))) => {
                task.output = Output::Gone;
                output(body).ok_or(JoinError::Taken)
            }
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
            self.task.output = output(body).map_or(Output::Gone, Output::Here);
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
