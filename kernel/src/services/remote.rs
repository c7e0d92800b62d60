//! Requests of other threads to a kernel: spawn or cancel a task, take a turn, shut down.
//!
//! Each request is a message in the wake queue. The kernel handles the messages in step 3 of a
//! turn, in the order of the requests.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::thread::{self, ThreadId};
use std::time::Duration;

use traps::internal::table::TaskRef;
use traps::internal::{body_without_handle, drop_of_task, drop_quietly, panic_message};
use traps::{Error, current_task, note_warning};

use crate::core::Core;
use crate::core::tasks::KernelTask;
use crate::log::lines::emit;
use crate::log::words;
use crate::machine::Machine;
use crate::parts::wake_queue::WakeQueue;
use crate::parts::wakers::{Message, Order};
use crate::trace::{Event, Parent};

/// A handle to a kernel for other threads. [`Kernel::remote`](crate::Kernel::remote) makes it, and
/// any thread can use it.
///
/// It keeps nothing alive: once the kernel was shut down or dropped, every call returns an error at
/// once. On the simulated machine, messages of a real thread arrive when the kernel takes a turn.
/// The simulation does not wait for that thread, unless a wait is marked external
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
    /// The reference by which the kernel counts its remotes.
    _one: Arc<()>,
    /// The kernel's own thread, which must not block on a task of the kernel.
    home: ThreadId,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("home", &self.home).finish_non_exhaustive()
    }
}

impl Remote {
    /// Makes a remote of the kernel that runs on this thread and has this wake queue.
    pub(crate) fn new(queue: Arc<WakeQueue<Message>>, one: Arc<()>) -> Remote {
        // A kernel cannot leave its thread, so this thread is its own.
        Remote { queue, _one: one, home: thread::current().id() }
    }

    /// Spawns a task with the future that `make` returns. The task itself calls `make`, on the
    /// kernel's thread, so the future need not be `Send`. Never blocks. Tasks are made in the order
    /// of these calls. Wakes an idle kernel.
    ///
    /// The task has no parent and inherits nothing. A kernel whose shutdown has begun makes no more
    /// tasks; a join then returns an error.
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
        let (sender, end) = mpsc::channel();
        let task = Arc::new(OnceLock::new());
        let site = Location::caller();
        let order = Order {
            name: name.into(),
            site,
            build: Box::new(move || body_without_handle(run_guest(async { make().await }, sender))),
            task: task.clone(),
        };
        self.queue.push_order(Message::Spawn(order));
        RemoteTask { end, seen: RefCell::new(None), was_joined: false, task, remote: self.clone() }
    }

    /// Makes an idle kernel take a turn, which begins after this call. Has no effect on any task.
    /// To end a wait, use its own waker: a [`Waker`](std::task::Waker), an
    /// [`OutsideWaker`](traps::OutsideWaker), or an object of [`traps::universal`].
    ///
    /// # Errors
    ///
    /// Returns [`Error::Gone`] if the kernel was shut down or dropped.
    ///
    /// ```
    /// use kernel::{Kernel, Sim};
    /// use traps::Error;
    ///
    /// let kernel = Kernel::new(Sim::new());
    /// let remote = kernel.remote();
    /// assert_eq!(remote.wake(), Ok(()));
    /// drop(kernel);
    /// assert_eq!(remote.wake(), Err(Error::Gone));
    /// ```
    pub fn wake(&self) -> Result<(), Error> {
        self.send(Message::Turn)
    }

    /// Asks the kernel to shut down, and does not wait. The shutdown begins in the turn in which
    /// the kernel handles the message. The log shows `reason`; only the first request counts.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Gone`] if the kernel was shut down or dropped.
    ///
    /// ```
    /// use kernel::{Kernel, RunError, Sim};
    /// use traps::shutdown;
    ///
    /// let mut kernel = Kernel::new(Sim::new());
    /// kernel.remote().shut_down("upgrade").unwrap();
    /// kernel.run(shutdown::begun()).unwrap().unwrap(); // main sees it, and ends by itself
    /// assert!(matches!(kernel.run(async {}), Err(RunError::Shut)));
    /// ```
    pub fn shut_down(&self, reason: &'static str) -> Result<(), Error> {
        self.send(Message::ShutDown(reason))
    }

    fn send(&self, message: Message) -> Result<(), Error> {
        if self.queue.push_order(message) { Ok(()) } else { Err(Error::Gone) }
    }
}

/// A task that another thread spawned. It can be joined or cancelled. If this handle is dropped,
/// the task continues. A panic in the `Drop` of an output that is not taken goes no further.
///
/// ```
/// use std::time::Duration;
/// use kernel::{Kernel, Sim};
/// use traps::sleep;
///
/// let mut kernel = Kernel::new(Sim::new());
/// let remote = kernel.remote(); // usually for another thread
/// let mut guest = remote.spawn("guest", || sleep(Duration::from_secs(60)));
/// assert!(!guest.has_ended());
/// guest.cancel_because("no longer needed").unwrap();
/// kernel.run(sleep(Duration::from_secs(1))).unwrap().unwrap();
/// let ended = guest.join().unwrap(); // a thread may also use `join_timeout`
/// assert_eq!(ended.unwrap_err().reason(), "no longer needed");
/// ```
pub struct RemoteTask<T> {
    /// The channel for the task's output, or for the message of its panic.
    end: Receiver<Result<T, String>>,
    /// The result of the task, once it was received and until it is joined.
    seen: RefCell<Option<Result<T, String>>>,
    was_joined: bool,
    task: Arc<OnceLock<TaskRef>>,
    remote: Remote,
}

impl<T> fmt::Debug for RemoteTask<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTask").field("was_joined", &self.was_joined).finish_non_exhaustive()
    }
}

impl<T: Send> RemoteTask<T> {
    /// Blocks this thread until the task has ended, and takes its output.
    ///
    /// # Errors
    ///
    /// - [`Error::Panicked`] if the task panicked.
    /// - [`Error::Dropped`] if the kernel dropped the task.
    /// - [`Error::Taken`] if an earlier join took the output.
    /// - [`Error::Gone`] if the kernel never made the task.
    /// - [`Error::OwnThread`] on the kernel's own thread, if the task has not ended.
    pub fn join(&mut self) -> Result<T, Error> {
        self.join_within(None)
    }

    /// Joins like [`RemoteTask::join`], for at most `span` of real time.
    ///
    /// # Errors
    ///
    /// Returns [`Error::TimedOut`] if the time is over. Then the task continues, and can be joined
    /// again. Otherwise, as for [`RemoteTask::join`].
    pub fn join_timeout(&mut self, span: Duration) -> Result<T, Error> {
        self.join_within(Some(span))
    }

    fn join_within(&mut self, span: Option<Duration>) -> Result<T, Error> {
        let is_own = thread::current().id() == self.remote.home;
        let ended = match span {
            _ if self.seen.get_mut().is_some() => Ok(self.seen.take().expect("just looked at")),
            _ if is_own => self.end.recv_timeout(Duration::ZERO),
            None => self.end.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(span) => self.end.recv_timeout(span),
        };
        match ended {
            Ok(end) => {
                self.was_joined = true;
                // Keep a panic, so that every join returns it.
                *self.seen.get_mut() = end.as_ref().err().map(|message| Err(message.clone()));
                end.map_err(Error::Panicked)
            }
            Err(RecvTimeoutError::Disconnected) if self.was_joined => Err(Error::Taken),
            Err(RecvTimeoutError::Disconnected) if self.task.get().is_some() => Err(Error::Dropped),
            Err(RecvTimeoutError::Disconnected) => Err(Error::Gone),
            Err(RecvTimeoutError::Timeout) if is_own => Err(Error::OwnThread),
            Err(RecvTimeoutError::Timeout) => Err(Error::TimedOut),
        }
    }

    /// Returns whether the task has ended. Never blocks.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let mut seen = self.seen.borrow_mut();
        if seen.is_some() {
            return true;
        }
        let ended = self.end.try_recv();
        let is_over = !matches!(ended, Err(TryRecvError::Empty));
        *seen = ended.ok();
        is_over
    }

    /// Asks the kernel to cancel the task, and does not wait. A task can be cancelled only once,
    /// and only before it has ended.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Gone`] if the kernel was shut down or dropped.
    pub fn cancel(&self) -> Result<(), Error> {
        self.cancel_because("")
    }

    /// Asks the kernel to cancel the task, like [`cancel`](RemoteTask::cancel). The log and the
    /// interrupt show `reason`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`cancel`](RemoteTask::cancel).
    pub fn cancel_because(&self, reason: &'static str) -> Result<(), Error> {
        self.remote.send(Message::Cancel(self.task.clone(), reason))
    }
}

impl<T> Drop for RemoteTask<T> {
    fn drop(&mut self) {
        // This thread has no log. The panic hook reports a panic.
        drop_quietly((mem::replace(&mut self.end, mpsc::channel().1), self.seen.take()));
    }
}

/// Runs the future of a task whose joiner is on another thread.
async fn run_guest<T>(future: impl Future<Output = T>, joiner: Sender<Result<T, String>>) {
    let mut future = Box::pin(future);
    // The kernel catches a panic too, but cannot pass it to another thread.
    let ended = poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        polled.map_or_else(|panic| Poll::Ready(Err(panic)), |polled| polled.map(Ok))
    });
    let ended = ended.await;
    // A failed send is no error: the joiner is gone.
    match ended {
        Ok(output) => {
            drop(future);
            if let Err(left) = joiner.send(Ok(output))
                && let Some(text) = drop_of_task(current_task(), "output", || drop(left))
            {
                note_warning(text);
            }
        }
        Err(panic) => {
            let message = panic_message(&*panic).to_owned();
            let _ = joiner.send(Err(message));
            resume_unwind(panic)
        }
    }
}

/// Makes the task that another thread has ordered.
pub(crate) fn spawn<M: Machine>(core: &mut Core<M>, order: Order) {
    let Order { name, site, build, task: told } = order;
    let (key, _) = core.sched.gate.new_task(site);
    told.set(key).expect("an order is carried out once");
    let child =
        core.sched.tasks.add(key, KernelTask { body: Some(build()), ..KernelTask::new(key, name) });
    let (parent, at) = (Parent::Thread(core.sched.log.cause), Some(words::site(site)));
    core.sched.make_ready(child);
    emit!(core.sched, child, Event::Spawn { parent, at });
}

/// Cancels a task at the request of another thread.
pub(crate) fn cancel<M: Machine>(
    core: &mut Core<M>,
    task: &OnceLock<TaskRef>,
    reason: &'static str,
) {
    if let Some(index) = task.get().and_then(|task| core.sched.find(*task)) {
        core.cancel_now(index, reason);
    }
}
