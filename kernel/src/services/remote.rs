//! What other threads may ask of a kernel: run or cancel a task, take a turn, shut down.
//!
//! Each request is a message in the wake queue. The kernel handles it in step 3 of a turn, in the
//! order of the requests.

use std::borrow::Cow;
use std::cell::RefCell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::thread::{self, ThreadId};
use std::time::Duration;

use traps::Error;
use traps::core::names::{Site, TaskRef};
use traps::core::protocol::{Body, End};
use traps::core::queue::Queue;
use traps::threads::panic_message;

use crate::core::Core;
use crate::core::wake_queue::WakeQueue;
use crate::core::wakers::{Message, Order};
use crate::log::{self, emit};
use crate::machine::Machine;
use crate::trace::{Event, Seq};

/// A kernel for the use of other threads: made by [`Kernel::remote`](crate::Kernel::remote), usable
/// on any thread.
///
/// It keeps nothing alive: after the kernel was shut down or dropped, every call returns an error
/// at once. On the simulated machine, messages of a real thread arrive when the kernel takes a
/// turn. The simulation does not wait for that thread, unless a wait is marked external
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
    /// Tells the kernel that there is a remote.
    _one: Arc<()>,
    /// The kernel's own thread, which must not block on a task of the kernel.
    home: ThreadId,
}

impl Remote {
    /// Of the kernel of this thread with that wake queue.
    pub(crate) fn new(queue: Arc<WakeQueue<Message>>, one: Arc<()>) -> Remote {
        // A kernel cannot leave its thread.
        Remote { queue, _one: one, home: thread::current().id() }
    }

    /// Spawns a task with the future that `make` returns. The task itself calls `make`, on the
    /// kernel's thread, so the future need not be `Send`. Never blocks. Tasks are made in the order
    /// of these calls. An idle kernel is woken.
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
            build: Box::new(move |name| {
                let guest: Guest = Box::pin(run_guest(async { make().await }, sender));
                Box::pin(GuestBody { name, site, future: Some(guest) })
            }),
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
    /// [`Error::Gone`].
    pub fn wake(&self) -> Result<(), Error> {
        self.send(Message::Turn)
    }

    /// Asks the kernel to shut down, and does not wait. The shutdown begins in the turn in which
    /// the kernel handles the message. `reason` is shown in the log; only the first counts.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`].
    pub fn shut_down(&self, reason: &'static str) -> Result<(), Error> {
        self.send(Message::ShutDown(reason))
    }

    fn send(&self, message: Message) -> Result<(), Error> {
        if self.queue.push_order(message) { Ok(()) } else { Err(Error::Gone) }
    }
}

/// A task that another thread spawned. It can be joined or cancelled. If this handle is dropped,
/// the task continues.
pub struct RemoteTask<T> {
    /// The output, or the message of a panic.
    end: Receiver<Result<T, String>>,
    /// How it ended, if that was received and not joined yet.
    seen: RefCell<Option<Result<T, String>>>,
    was_joined: bool,
    task: Arc<OnceLock<TaskRef>>,
    remote: Remote,
}

impl<T: Send> RemoteTask<T> {
    /// Blocks this thread until the task has ended, and takes its output.
    ///
    /// # Errors
    ///
    /// [`Error::Panicked`], [`Error::Dropped`], [`Error::Taken`], [`Error::Gone`]; and
    /// [`Error::OwnThread`] on the kernel's own thread, if the task has not ended.
    pub fn join(&mut self) -> Result<T, Error> {
        self.join_within(None)
    }

    /// [`RemoteTask::join`] for at most `span`, in real time.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`]: the task continues, and can be joined again. Otherwise the errors
    /// of [`RemoteTask::join`].
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
                // Every join returns a panic.
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

    /// Whether the task has ended. Never blocks.
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

    /// Asks the kernel to cancel the task, and does not wait. A task is cancelled only once, and
    /// not after it has ended. `reason` is shown in the log and in the interrupt.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`].
    pub fn cancel(&self, reason: &'static str) -> Result<(), Error> {
        self.remote.send(Message::Cancel(self.task.clone(), reason))
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
    // It is not an error if the joiner is gone.
    match ended {
        Ok(output) => {
            drop(future);
            let _ = joiner.send(Ok(output));
        }
        Err(panic) => {
            let message = panic_message(&*panic).to_owned();
            let _ = joiner.send(Err(message));
            resume_unwind(panic)
        }
    }
}

type Guest = Pin<Box<dyn Future<Output = ()>>>;

struct GuestBody {
    name: Cow<'static, str>,
    site: Site,
    /// `None` once it has ended.
    future: Option<Guest>,
}

impl Body for GuestBody {
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let future = self.future.as_mut().expect("rule: an ended task is not polled");
        ready!(future.as_mut().poll(cx));
        self.future = None;
        Poll::Ready(())
    }

    fn clear(mut self: Pin<&mut Self>) {
        self.future = None;
    }

    fn end(self: Pin<&mut Self>, _: End<'_>) -> Option<Rc<Queue>> {
        // Its joiner, if there is one, is not a task.
        None
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn site(&self) -> Site {
        self.site
    }
}

/// Makes the task that another thread asked for.
pub(crate) fn spawn<M: Machine>(core: &mut Core<M>, order: Order, cause: Seq) {
    let Order { name, site, build, task: told } = order;
    let (root, id) = core.gate.new_task(site);
    told.set(root).expect("an order is carried out once");
    let child = core.tasks.add(root, id.0, 0, Some(build(name)));
    core.gate.records().scopes[root.index].task = child;
    let event = Event::Spawn { parent: None, cause: Some(cause), at: Some(log::site(site)) };
    let seq = emit!(core, child, event);
    core.make_ready(child, seq);
}

/// Cancels a task for another thread.
pub(crate) fn cancel<M: Machine>(
    core: &mut Core<M>,
    task: &OnceLock<TaskRef>,
    reason: &'static str,
    cause: Seq,
) {
    if let Some(index) = task.get().and_then(|task| core.find(*task)) {
        core.cancel(index, None, reason, cause);
    }
}
