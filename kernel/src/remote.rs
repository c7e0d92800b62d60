//! What other threads may ask of a kernel: to run a task, to look up, to shut down.
//!
//! All of it is messages through the wake queue, so the kernel does it in step 3 of a turn, in the
//! order in which it was asked.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::thread::{self, ThreadId};
use std::time::Duration;

use traps::protocol::{Body, NewTask, Site, TaskRef};
use traps::threads::{drop_quietly, panic_message};

use crate::kernel::Kernel;
use crate::log::{self, emit};
use crate::machine::Machine;
use crate::trace::{Event, Seq};
use crate::wake::WakeQueue;
use crate::wakeup::Message;

/// A kernel as other threads see it: made by [`Kernel::remote`], used anywhere.
///
/// Keeps nothing alive: after the kernel is shut down or dropped, every call is an error at once.
/// On the simulated machine what a real thread sends arrives when a turn is taken, and nothing
/// waits for that thread unless a wait is marked external
/// ([`WaitOutside::external`](traps::WaitOutside::external)).
///
/// ```
/// use std::time::Duration;
/// use kernel::{Kernel, Real};
///
/// let mut kernel = Kernel::new(Real::new()?);
/// let remote = kernel.remote();
/// let over = traps::universal::UniversalEvent::new();
/// let set = over.clone();
/// let thread = std::thread::spawn(move || {
///     let nap = || traps::sleep(Duration::from_millis(1));
///     let slept = remote.spawn("guest", nap).join();
///     set.set();
///     slept.is_ok()
/// });
/// kernel.run(over.wait())??;
/// assert!(thread.join().unwrap());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Remote {
    queue: Arc<WakeQueue<Message>>,
    /// The kernel's own thread, where nothing may wait for it.
    home: ThreadId,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("home", &self.home).finish_non_exhaustive()
    }
}

/// Why something asked of a kernel from outside came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteError {
    /// The kernel was dropped, or its shutdown had begun, before it heard of it.
    Gone,
    /// The task panicked, with this message.
    Panicked(String),
    /// The task was dropped before its end: its kernel is gone, or its grace was over.
    Dropped,
    /// The output was taken by an earlier join.
    Taken,
    /// The span is over; the task runs on, and can be joined again.
    TimedOut,
    /// The task has not ended, and this is the thread that would have to run it.
    OwnThread,
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemoteError::Gone => f.write_str("the kernel is gone"),
            RemoteError::Panicked(message) => write!(f, "the task panicked: {message}"),
            RemoteError::Dropped => f.write_str("the task was dropped before its end"),
            RemoteError::Taken => f.write_str("the task's output was taken before"),
            RemoteError::TimedOut => f.write_str("the task has not ended in time"),
            RemoteError::OwnThread => {
                f.write_str("the kernel's own thread cannot wait for its task to end")
            }
        }
    }
}

impl std::error::Error for RemoteError {}

impl<M: Machine> Kernel<M> {
    /// This kernel for other threads. Costs a reference count.
    #[must_use]
    pub fn remote(&self) -> Remote {
        // A kernel cannot leave its thread.
        Remote { queue: self.inbox.queue.clone(), home: thread::current().id() }
    }
}

impl Remote {
    /// Makes a task of what `make` makes, which it does on the kernel's thread, as the first thing
    /// that the task does; so the future need not be `Send`. Never blocks. Tasks are made in the
    /// order of these calls; an idle kernel is woken. The task runs as soon as the kernel does.
    ///
    /// The task has no parent and inherits nothing. Costs five allocations. A kernel whose shutdown
    /// has begun makes it no more: a join says so.
    #[track_caller]
    pub fn spawn<F, T>(
        &self,
        name: impl Into<Cow<'static, str>>,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> RemoteTask<T>
    where
        F: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        let (name, site) = (name.into(), Location::caller());
        let end = Arc::new(End { state: Mutex::new(State::Awaited), ended: Condvar::new() });
        let mut teller = Teller { end: end.clone(), otherwise: RemoteError::Gone };
        let build = move || -> Pin<Box<dyn Body>> {
            teller.otherwise = RemoteError::Dropped;
            let future: Pin<Box<dyn Future<Output = T>>> = Box::pin(async { make().await });
            Box::pin(Guest { name, site, future: Some(future), teller })
        };
        let task = Arc::new(OnceLock::new());
        let order = Order { site, build: Box::new(build), task: task.clone() };
        self.queue.push_order(Message::Spawn(order));
        RemoteTask { end, task, remote: self.clone() }
    }

    /// Makes an idle kernel take a turn, which begins after this call; does nothing to any task.
    /// A thousand calls before that turn are one. To end a wait, use its own waker: a
    /// [`Waker`](std::task::Waker), an [`OutsideWaker`](traps::OutsideWaker), or what is built on
    /// them in [`traps::universal`].
    ///
    /// # Errors
    ///
    /// [`RemoteError::Gone`].
    pub fn wake(&self) -> Result<(), RemoteError> {
        if self.queue.nudge() { Ok(()) } else { Err(RemoteError::Gone) }
    }

    /// Asks the kernel to shut down, and does not wait for that: the gate is passed in the turn in
    /// which the kernel hears of it. `reason` is shown in the log; of several the first counts.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Gone`]: it has done so, or was dropped.
    pub fn shut_down(&self, reason: &'static str) -> Result<(), RemoteError> {
        self.send(Message::ShutDown(reason))
    }

    fn send(&self, message: Message) -> Result<(), RemoteError> {
        if self.queue.push_order(message) { Ok(()) } else { Err(RemoteError::Gone) }
    }
}

/// A task that another thread asked for: join it, cancel it, or drop the handle to let it run on
/// alone.
pub struct RemoteTask<T> {
    end: Arc<End<T>>,
    task: Arc<OnceLock<TaskRef>>,
    remote: Remote,
}

impl<T> fmt::Debug for RemoteTask<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTask").field("task", &self.task.get()).finish_non_exhaustive()
    }
}

impl<T: Send> RemoteTask<T> {
    /// Blocks this thread until the task has ended, and takes its output.
    ///
    /// # Errors
    ///
    /// [`RemoteError`]; [`RemoteError::OwnThread`] where this would never end, at once.
    pub fn join(&mut self) -> Result<T, RemoteError> {
        self.join_within(None)
    }

    /// The same for no longer than `span`, in real time.
    ///
    /// # Errors
    ///
    /// [`RemoteError::TimedOut`]: the task runs on, and can be joined again. Else as for
    /// [`RemoteTask::join`].
    pub fn join_timeout(&mut self, span: Duration) -> Result<T, RemoteError> {
        self.join_within(Some(span))
    }

    fn join_within(&mut self, span: Option<Duration>) -> Result<T, RemoteError> {
        let awaited = |state: &mut State<T>| matches!(state, State::Awaited);
        let mut state = self.end.enter();
        if awaited(&mut state) && thread::current().id() == self.remote.home {
            return Err(RemoteError::OwnThread);
        }
        let ended = &self.end.ended;
        state = match span {
            None => ended.wait_while(state, awaited).unwrap_or_else(PoisonError::into_inner),
            Some(span) => {
                let waited = ended.wait_timeout_while(state, span, awaited);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        match std::mem::replace(&mut *state, State::Awaited) {
            State::Awaited => Err(RemoteError::TimedOut),
            State::Output(output) => {
                *state = State::Failed(RemoteError::Taken);
                Ok(output)
            }
            State::Failed(error) => {
                *state = State::Failed(error.clone());
                Err(error)
            }
        }
    }

    /// Whether the task has ended, one way or another: a join would not wait.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !matches!(*self.end.enter(), State::Awaited)
    }

    /// Asks the kernel to cancel the task, and does not wait. A task is cancelled once, and nothing
    /// comes of it if the task has ended. `reason` is shown in the log and in the interrupt.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Gone`].
    pub fn cancel(&self, reason: &'static str) -> Result<(), RemoteError> {
        self.remote.send(Message::Cancel { task: self.task.clone(), reason })
    }
}

/// How a task ended, for whoever joins it.
struct End<T> {
    state: Mutex<State<T>>,
    ended: Condvar,
}

enum State<T> {
    Awaited,
    Output(T),
    Failed(RemoteError),
}

impl<T> End<T> {
    /// A poisoned lock still guards a whole state: nothing foreign runs under it.
    fn enter(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sees to it that an end is told, whatever becomes of the task or of the message that asks for it.
struct Teller<T> {
    end: Arc<End<T>>,
    /// What is told if nothing else is.
    otherwise: RemoteError,
}

impl<T> Teller<T> {
    /// The first end counts.
    fn tell(&self, how: State<T>) {
        let mut state = self.end.enter();
        if matches!(*state, State::Awaited) {
            *state = how;
            drop(state);
            self.end.ended.notify_all();
        }
    }
}

impl<T> Drop for Teller<T> {
    fn drop(&mut self) {
        self.tell(State::Failed(self.otherwise.clone()));
    }
}

/// A task on its way to the kernel.
pub(crate) struct Order {
    site: Site,
    /// Makes its body, on the kernel's thread.
    build: Box<dyn FnOnce() -> Pin<Box<dyn Body>> + Send>,
    /// Its name, once it has one.
    task: Arc<OnceLock<TaskRef>>,
}

/// The body of a task whose joiner is on another thread.
struct Guest<T> {
    name: Cow<'static, str>,
    site: Site,
    /// `None` once it has ended.
    future: Option<Pin<Box<dyn Future<Output = T>>>>,
    teller: Teller<T>,
}

impl<T: Send> Body for Guest<T> {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Guest { future, teller, .. } = self.get_mut();
        let running = future.as_mut().expect("rule: an ended task is not polled");
        // The kernel catches it too, but cannot tell another thread.
        match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => {
                *future = None;
                teller.tell(State::Output(output));
                Poll::Ready(())
            }
            Err(panic) => {
                let message = panic_message(&*panic).to_owned();
                teller.tell(State::Failed(RemoteError::Panicked(message)));
                resume_unwind(panic)
            }
        }
    }

    fn take(self: Pin<&mut Self>, _: &mut dyn Any) {}

    fn clear(self: Pin<&mut Self>) {
        let Guest { future, teller, .. } = self.get_mut();
        *future = None;
        teller.tell(State::Failed(teller.otherwise.clone()));
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn site(&self) -> Site {
        self.site
    }
}

impl<M: Machine> Kernel<M> {
    /// Makes the task that another thread asked for.
    pub(crate) fn spawn_from_outside(&mut self, order: Order, cause: Seq) {
        if self.is_closing() {
            return drop_quietly(order);
        }
        let Order { site, build, task } = order;
        // Its joiner, if there is one, is no task.
        let (name, id) = self.gate.new_task();
        task.set(name).expect("an order is carried out once");
        let new = NewTask { task: name, id, body: build(), parent: name, detached: true };
        let child = self.tasks.add(new, 0);
        let event = Event::Spawn { parent: None, cause: Some(cause), at: Some(log::site(site)) };
        let seq = emit!(self, child, event);
        self.make_ready(child, seq);
    }

    /// Cancels a task for another thread.
    pub(crate) fn cancel_from_outside(
        &mut self,
        task: &OnceLock<TaskRef>,
        reason: &'static str,
        cause: Seq,
    ) {
        if let Some(index) = task.get().and_then(|task| self.tasks.find(*task)) {
            self.cancel_task(index, None, reason, cause);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Kernel, Sim};

    #[test]
    fn a_burst_leaves_no_large_buffer_behind() {
        let mut kernel = Kernel::new(Sim::new());
        let remote = kernel.remote();
        let task = remote.spawn("guest", || async {});
        (0..100_000).for_each(|_| task.cancel("a message like any other").unwrap());
        for _ in 0..3 {
            kernel.run(async {}).unwrap();
            task.cancel("one").unwrap();
        }
        assert!(kernel.room_for_messages() <= 1_024);
        assert_eq!(kernel.counters().wakes, 100_003);
        assert_eq!(kernel.counters().batches, 3);
    }
}
