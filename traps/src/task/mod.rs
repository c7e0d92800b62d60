//! Tasks as their owners see them: join, wait, cancel. How they are made is in `spawn.rs`.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use crate::core::gate;
use crate::core::interrupt::Interrupt;
use crate::core::names::{Site, TaskId, TaskRef};
use crate::core::posting;
use crate::core::protocol::{Note, Post};
use crate::core::queue::{Label, Queue};
use crate::core::records::Records;
use crate::core::table::NONE;
use crate::error::Error;
use crate::notes::note_warning;
use crate::sync::Wait;

pub(crate) mod local;
pub(crate) mod spawn;
pub(crate) mod values;

/// What a task and those who wait for it share: where its output lies.
pub(crate) struct TaskCell<T> {
    task: TaskRef,
    id: TaskId,
    output: RefCell<Output<T>>,
    /// Those who wait for the end; most tasks never have any.
    ended: OnceCell<Rc<Queue>>,
    /// Sees the output before anybody else: the group that the task was added to.
    seer: Cell<Option<Seer<T>>>,
    /// It was joined, awaited or cancelled, or a group sees to it.
    is_attended: Cell<bool>,
}

type Seer<T> = Box<dyn FnOnce(&Output<T>)>;

/// Where the output of a task is.
pub(crate) enum Output<T> {
    /// The task has not ended.
    Running,
    /// It has ended, and this is its output.
    Value(T),
    /// An earlier join took it.
    Taken,
    /// The task panicked, with this message.
    Panicked(String),
    /// Its future was dropped before its end.
    Dropped,
}

impl<T> TaskCell<T> {
    pub(crate) fn new(task: TaskRef, id: TaskId) -> TaskCell<T> {
        let (output, ended) = (RefCell::new(Output::Running), OnceCell::new());
        TaskCell { task, id, output, ended, seer: Cell::default(), is_attended: Cell::default() }
    }

    /// The task has ended. Gives the queue of those who wait for that.
    pub(crate) fn end(&self, output: Output<T>) -> Option<Rc<Queue>> {
        if let Some(seer) = self.seer.take() {
            seer(&output);
        }
        self.output.replace(output);
        // A wait may have been filed that the kernel has not seen.
        self.ended.get().inspect(|queue| queue.over.set(true)).cloned()
    }

    /// Whether it is still to end. A task of another kernel will not end while this one runs.
    fn will_end(&self) -> bool {
        matches!(*self.output.borrow(), Output::Running) && gate::is_of_this_kernel(self.task)
    }

    /// Takes the output of a task that has ended.
    fn take(&self) -> Result<T, Error> {
        let mut output = self.output.borrow_mut();
        match std::mem::replace(&mut *output, Output::Taken) {
            Output::Value(value) => return Ok(value),
            other => *output = other,
        }
        Err(match &*output {
            Output::Panicked(message) => Error::Panicked(message.clone()),
            Output::Dropped => Error::Dropped,
            _ => Error::Taken,
        })
    }
}

impl<T> fmt::Debug for TaskCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskCell").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A task whose end others wait for, whatever its output is.
pub(crate) trait Ends {
    /// Those who wait for the end; `None` once it has come.
    fn queue(&self) -> Option<Rc<Queue>>;
}

impl<T> Ends for TaskCell<T> {
    fn queue(&self) -> Option<Rc<Queue>> {
        let queue = || Rc::new(Queue::labelled(Label::Join(self.id.0)));
        self.will_end().then(|| self.ended.get_or_init(queue).clone())
    }
}

/// Waits for the end of a task, and takes nothing.
pub(crate) async fn wait<E: Ends + ?Sized>(task: &E, site: Site) -> Result<(), Interrupt> {
    while let Some(queue) = task.queue() {
        Wait::new(queue, false, site).await?;
    }
    Ok(())
}

/// Asks for the cancellation of a task.
pub(crate) fn cancel(task: TaskRef, reason: &'static str) {
    posting::post(Post::Cancel(task, reason));
}

/// The handle of a task: join it or cancel it. (A task that is to run on alone is spawned
/// [`detached`](crate::Spawn::detached).)
///
/// A task runs on when its handle is dropped. A `warn` line says so if the handle was never used to
/// join, await or cancel the task, and no interrupt was delivered to the code that drops it.
#[derive(Debug)]
pub struct Task<T> {
    cell: Rc<TaskCell<T>>,
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if !self.cell.is_attended.get() {
            tell_of_unattended(self.cell.id);
        }
    }
}

fn tell_of_unattended(task: TaskId) {
    let is_interrupted = |records: &mut Records, mut at: u32, _: &_| {
        while at != NONE && !records.scopes[at].was_taken(records.scopes.key(at)) {
            at = records.scopes[at].parent;
        }
        at != NONE
    };
    // Outside a task the kernel drops what a task has left.
    if gate::task().is_some()
        && !std::thread::panicking()
        && !gate::with_records(Location::caller(), is_interrupted)
    {
        note_warning(format!(
            "the handle of task {task} was dropped unused; join it, cancel it, or spawn it detached"
        ));
    }
}

impl<T: 'static> Task<T> {
    /// The task's number.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.cell.id
    }

    pub(crate) fn name(&self) -> TaskRef {
        self.cell.task
    }

    /// The task, for those who only wait for its end.
    pub(crate) fn end(&self) -> Rc<dyn Ends> {
        self.cell.clone()
    }

    /// The handle may be dropped without a word.
    pub(crate) fn attend(&self) {
        self.cell.is_attended.set(true);
    }

    /// Calls `see` with the output when the task ends; at once if it has ended.
    pub(crate) fn when_ended(&self, see: impl FnOnce(&Output<T>) + 'static) {
        if self.cell.will_end() {
            self.cell.seer.set(Some(Box::new(see)));
        } else {
            let output = self.cell.output.replace(Output::Taken);
            see(&output);
            self.cell.output.replace(output);
        }
    }

    /// Waits for the end of the task and takes its output. *Blocks* unless it has ended. A join
    /// takes nothing until it reads: one that is interrupted, dropped or moved can be made again.
    ///
    /// # Errors
    ///
    /// The wait was interrupted, or there is no output to take: [`Error::Panicked`],
    /// [`Error::Dropped`], [`Error::Taken`].
    #[track_caller]
    pub fn join(&mut self) -> Join<'_, T> {
        self.attend();
        Join { task: self, wait: None, site: Location::caller() }
    }

    /// Takes the output of a task that has ended.
    pub(crate) fn take(&self) -> Result<T, Error> {
        let output = self.cell.take()?;
        if gate::is_listening() {
            posting::post(Post::Note(Note::Joined(self.cell.id)));
        }
        Ok(output)
    }

    /// Waits for the end of the task and leaves its output where it is.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<(), Interrupt>> {
        self.attend();
        wait(&*self.cell, Location::caller())
    }

    /// Cancels the task and waits for its end. A task is cancelled once; later requests only wait.
    /// `reason` is shown in the log and in the interrupt.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; the request stands.
    #[track_caller]
    pub fn cancel(&self, reason: &'static str) -> impl Future<Output = Result<(), Interrupt>> {
        let site = Location::caller();
        async move {
            self.cancel_now(reason);
            wait(&*self.cell, site).await
        }
    }

    /// Cancels the task and does not wait. *A post*.
    pub fn cancel_now(&self, reason: &'static str) {
        self.attend();
        cancel(self.cell.task, reason);
    }
}

/// The future of [`Task::join`].
#[derive(Debug)]
#[must_use = "a join that is not awaited waits for nothing: add `.await`"]
pub struct Join<'a, T> {
    task: &'a mut Task<T>,
    wait: Option<Wait>,
    site: Site,
}

impl<T: 'static> Future for Join<'_, T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Join { task, wait, site } = &mut *self;
        loop {
            if let Some(wait) = wait {
                ready!(Pin::new(wait).poll(cx))?;
            }
            match task.cell.queue() {
                Some(queue) => *wait = Some(Wait::new(queue, false, site)),
                None => return Poll::Ready(task.take()),
            }
        }
    }
}
