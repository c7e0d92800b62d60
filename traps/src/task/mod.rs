//! Tasks as their owners see them: join, wait, cancel. How they are made is in `spawn.rs`.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::call::{Call, Reply, only_interrupt, trap};
use crate::error::JoinError;
use crate::gate;
use crate::interrupt::Interrupt;
use crate::protocol::{Answer, Body, Ended, Owned, Post, ROOT, Request, ScopeId, Site, TaskRef};

pub(crate) mod local;
pub(crate) mod spawn;

/// The number of a task in its kernel: dense, from 1, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl TaskRef {
    /// The scope around all that the task does.
    #[inline]
    #[must_use]
    pub fn root(self) -> ScopeId {
        ScopeId { index: ROOT, number: u64::from(self.generation) }
    }
}

/// A task as others name it: to wait for it, or to cancel it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) task: TaskRef,
    pub(crate) id: TaskId,
}

impl Name {
    fn join(self, take: bool) -> Request {
        Request::Join { task: self.task, id: self.id, take }
    }

    pub(crate) fn wait(self, site: Site) -> impl Future<Output = Result<(), Interrupt>> {
        trap(self.join(false), site, |reply: Reply| match reply.open() {
            Ok(_) | Err(Owned::Panicked(_)) => Ok(()),
            Err(owned) => Err(only_interrupt(owned)),
        })
    }

    /// The post is made when the future is polled.
    pub(crate) async fn cancel_now(self, reason: &'static str) {
        gate::post(Post::Cancel(self.task, reason));
    }

    pub(crate) async fn cancel(self, reason: &'static str, site: Site) -> Result<(), Interrupt> {
        self.cancel_now(reason).await;
        self.wait(site).await
    }
}

/// The handle of a task: join it, cancel it, or drop the handle to let it run on alone.
/// (A task that never needs a handle is spawned [`detached`](crate::Spawn::detached).)
#[derive(Debug)]
pub struct Task<T> {
    name: Name,
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
    /// Given out.
    Gone,
}

impl<T> Task<T> {
    #[inline]
    pub(crate) fn new(name: Name) -> Task<T> {
        Task { name, output: Output::There, local: PhantomData }
    }
}

impl<T: 'static> Task<T> {
    /// The task's number.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.name.id
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
        Join { task: self, call: Call::from(site) }
    }

    pub(crate) fn name(&self) -> Name {
        self.name
    }

    /// Waits for the end of the task and leaves its output where it is.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<(), Interrupt>> {
        self.name.wait(Location::caller())
    }

    /// Cancels the task and waits for its end. A task is cancelled once; later requests only wait.
    /// `reason` is shown in the log and in the interrupt.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; the request stands.
    #[track_caller]
    pub fn cancel(&self, reason: &'static str) -> impl Future<Output = Result<(), Interrupt>> {
        self.name.cancel(reason, Location::caller())
    }

    /// Cancels the task and does not wait. *A post*: ready at once.
    pub fn cancel_now(&self, reason: &'static str) -> impl Future<Output = ()> + use<T> {
        self.name.cancel_now(reason)
    }
}

impl<T> Drop for Task<T> {
    #[inline]
    fn drop(&mut self) {
        if let Output::There = self.output {
            gate::post(Post::Detach(self.name.task));
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

/// Takes the output out of an ended task's body.
fn take_output<T: 'static>(mut body: Pin<Box<dyn Body>>) -> Option<T> {
    let mut slot = None;
    body.as_mut().take(&mut slot);
    slot
}

impl<T> Future for Join<'_, T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Join { task, call } = &mut *self;
        if let Output::Here(_) = task.output
            && let Output::Here(output) = std::mem::replace(&mut task.output, Output::Gone)
        {
            return Poll::Ready(Ok(output));
        }
        let request = task.name.join(true);
        call.poll(cx, || request).map(|reply| match reply.open() {
            Err(Owned::Body(body)) => {
                task.output = Output::Gone;
                take_output(body).ok_or(JoinError::Taken)
            }
            Err(Owned::Panicked(message)) => Err(JoinError::Panicked(message)),
            Ok(Answer::Ended(Ended::Dropped)) => Err(JoinError::Dropped),
            Ok(Answer::Ended(Ended::Taken)) => Err(JoinError::Taken),
            Ok(_) => reply.wrong(),
            Err(owned) => Err(JoinError::Interrupt(only_interrupt(owned))),
        })
    }
}

impl<T: 'static> Drop for Join<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // What it took and nobody read stays with the handle.
        if self.call.is_filed()
            && let Some((_, Some(Owned::Body(body)))) = self.call.abandon()
        {
            self.task.output = take_output(body).map_or(Output::Gone, Output::Here);
        }
    }
}
