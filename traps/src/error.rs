//! The reasons why an operation was not done, in one type for all operations. Also the guards
//! around calls of user code that can panic.

use std::any::Any;
use std::error::Error as StdError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{fmt, io, mem};

use crate::core::gate;
use crate::core::protocol::Reply;
use crate::core::table::{Site, TaskId};
use crate::interrupts::interrupt::{Interrupt, Interruptible};
use crate::time::Time;

/// The reason why an operation was not done. Each operation documents the variants that it can
/// return.
///
/// If an operation can fail only by an interrupt, its error type is [`Interrupt`], and `?` converts
/// it to [`Error`]. An `io::Error` can hold each of these variants, and gives access to the
/// [`Interrupt`] inside.
///
/// The reason why a kernel ended without a result is another type, `kernel::RunError`.
///
/// ```
/// # use std::io;
/// # use std::time::Duration;
/// use traps::{Error, Interruptible, Kind, sleep, timeout_after};
///
/// # testing::run(async {
/// // `?` in a function with its own error type: `io::Error` carries all of them.
/// let read = async || -> io::Result<()> {
///     sleep(Duration::from_secs(60)).await?;
///     Err(Error::SendersGone.into())
/// };
/// let error = timeout_after(Duration::from_secs(1), read()).await.unwrap_err();
/// assert_eq!(error.kind(), io::ErrorKind::TimedOut);
/// assert_eq!(error.interrupt().unwrap().kind(), Kind::TaskTimeout);
///
/// let error = read().await.unwrap_err();
/// assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
/// assert_eq!(Error::from(error), Error::SendersGone);
/// # });
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The wait ended early: a timeout or a cancellation.
    Interrupt(Interrupt),
    /// The deadline in force had passed before the operation started, so nothing was done. See
    /// [`cancellable`](crate::cancellable()). A closing scope does not count this as its own
    /// timeout.
    NotStarted {
        /// The deadline that had passed.
        deadline: Time,
        /// The kernel clock at the moment when the operation would have started.
        reading: Time,
        /// The number of the scope that set the deadline, as the log shows it.
        scope: u64,
        /// The call site that set the deadline. `None` for a connection deadline, which many call
        /// sites arm.
        set_at: Option<Site>,
    },
    /// The wait of a thread ended early, because its time limit was reached.
    TimedOut,
    /// The task or the job panicked, with this message.
    Panicked(String),
    /// The task was dropped before its end: its kernel shut down, or its grace period ended first.
    Dropped,
    /// An earlier call took the output, or the kernel was dropped before the task started.
    Taken,
    /// The kernel was shut down or dropped before it handled the request. Or the caller of the job
    /// no longer waits for it.
    Gone,
    /// Another task is already waiting for this direction of this descriptor. That task is not
    /// affected.
    Busy,
    /// The handle or the queue was closed. For a get, the closed queue is also empty.
    Closed,
    /// All senders of the channel are gone, and all their items were received.
    SendersGone,
    /// All receivers of the channel are gone, or its only receiver was closed.
    ReceiversGone,
    /// The receiver missed this many items of the channel, because newer items replaced them.
    Lagged(u64),
    /// There is no room now.
    Full,
    /// There is no item now.
    Empty,
    /// A job asked for another job, but no kernel runs on its thread. Run the other job directly,
    /// or return the result to a task that asks for the next job.
    WouldNest,
    /// Another task polled the future of a job that was handed over and had not ended, or whose
    /// task was interrupted. Such a job belongs to the task that asked for it, so its result
    /// becomes an orphan. A job that has ended gives its value to any task that polls its future.
    Moved,
    /// The task has not ended, and this is the thread of the kernel that would have to run it.
    OwnThread,
    /// The operating system refused the operation, for example to watch a regular file.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Interrupt(interrupt) => return interrupt.fmt(f),
            Error::Io(error) => return error.fmt(f),
            Error::Panicked(message) => return write!(f, "it panicked: {message}"),
            Error::NotStarted { deadline, reading, scope, set_at } => {
                write!(f, "not started at {reading}: deadline {deadline} of s{scope} had passed")?;
                return match set_at {
                    Some(site) => write!(f, ", set at {}:{}", site.file(), site.line()),
                    None => Ok(()),
                };
            }
            Error::TimedOut => "the thread has waited long enough",
            Error::Dropped => "the task was dropped before its end",
            Error::Taken => "the task's output was taken before",
            Error::Gone => "the kernel, or the caller of the job, is gone",
            Error::Busy => "another task already waits for this direction",
            Error::Closed => "the handle or the queue was closed",
            Error::SendersGone => "all senders of the channel are gone",
            Error::ReceiversGone => "the receiver of the channel is gone",
            Error::Lagged(missed) => return write!(f, "{missed} items were missed"),
            Error::Full => "there is no room",
            Error::Empty => "there is no item",
            Error::WouldNest => {
                "a job asked for another job: run it right there, or give the result to a task \
                 that asks for the next one"
            }
            Error::Moved => "another task polled the future of a job that had been handed over",
            Error::OwnThread => "the kernel's own thread cannot wait for its task to end",
        })
    }
}

impl std::error::Error for Error {}

/// Compares two errors. Two errors of the operating system are equal if their kinds are equal.
impl PartialEq for Error {
    fn eq(&self, other: &Error) -> bool {
        match (self, other) {
            (Error::Interrupt(one), Error::Interrupt(two)) => one == two,
            (Error::Panicked(one), Error::Panicked(two)) => one == two,
            (Error::Io(one), Error::Io(two)) => one.kind() == two.kind(),
            // For the other variants, the text shows all of their content.
            _ => {
                std::mem::discriminant(self) == std::mem::discriminant(other)
                    && self.to_string() == other.to_string()
            }
        }
    }
}

impl Eq for Error {}

impl From<Interrupt> for Error {
    fn from(interrupt: Interrupt) -> Error {
        Error::Interrupt(interrupt)
    }
}

/// Takes an [`Error`] back that was converted to an `io::Error`. Any other error becomes
/// [`Error::Io`].
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        error.downcast::<Error>().unwrap_or_else(Error::Io)
    }
}

impl Interruptible for Error {
    fn interrupt(&self) -> Option<&Interrupt> {
        match self {
            Error::Interrupt(interrupt) => Some(interrupt),
            Error::Io(error) => error.interrupt(),
            _ => None,
        }
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        match self {
            Error::Interrupt(interrupt) => Some(interrupt),
            Error::Io(error) => error.interrupt_mut(),
            _ => None,
        }
    }
}

/// Wraps the error in an [`io::Error`]. Its kind tells the caller what it can do: `TimedOut` for a
/// timeout and for `NotStarted`; `Other` for a cancellation (not `Interrupted`, because loops of
/// the standard library swallow that); `ResourceBusy` for `Busy`, `NotConnected` for `Closed`,
/// `UnexpectedEof` for `SendersGone`, `BrokenPipe` for `ReceiversGone`, and `WouldBlock` for `Full`
/// and `Empty`.
impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match &error {
            Error::Interrupt(interrupt) if interrupt.is_cancelled() => io::ErrorKind::Other,
            Error::Interrupt(_) | Error::NotStarted { .. } | Error::TimedOut => {
                io::ErrorKind::TimedOut
            }
            Error::Busy => io::ErrorKind::ResourceBusy,
            Error::Closed => io::ErrorKind::NotConnected,
            Error::SendersGone => io::ErrorKind::UnexpectedEof,
            Error::ReceiversGone => io::ErrorKind::BrokenPipe,
            Error::Full | Error::Empty => io::ErrorKind::WouldBlock,
            _ => io::ErrorKind::Other,
        };
        match error {
            Error::Io(error) => error,
            error => io::Error::new(kind, error),
        }
    }
}

impl Error {
    /// Makes an error from a reply to a wait for a descriptor, other than [`Reply::Ready`].
    #[cold]
    pub(crate) fn of(reply: Reply) -> Error {
        match reply {
            Reply::Interrupt(interrupt) => Error::Interrupt(interrupt),
            Reply::Busy => Error::Busy,
            Reply::Closed => Error::Closed,
            Reply::Refused(error) => Error::Io(error),
            other => other.wrong(),
        }
    }
}

impl Interrupt {
    /// Returns whether the interrupted code is over: a timeout further in has closed, or another
    /// task was cancelled and passed its interrupt on. Such an interrupt is only the news of an
    /// end: the code that gets it can continue.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{sleep, spawn, timeout_after};
    ///
    /// # testing::run(async {
    /// let second = Duration::from_secs(1);
    /// let late = timeout_after(second, sleep(9 * second)).await.unwrap_err();
    /// assert!(late.has_left()); // its timeout has closed
    ///
    /// let mut child = spawn("child", sleep(9 * second)).await;
    /// child.cancel().await?;
    /// assert!(child.join().await?.unwrap_err().has_left()); // the child is over
    ///
    /// let itself = async {
    ///     let ended = sleep(9 * second).await.unwrap_err();
    ///     assert!(!ended.has_left()); // the timeout is still open around this block
    ///     Err::<(), _>(ended)
    /// };
    /// assert!(timeout_after(second, itself).await.is_err());
    /// # Ok::<(), traps::Error>(())
    /// # }).output.unwrap();
    /// ```
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.delivery().passed || self.is_cancelled() && !self.is_own_cancellation()
    }

    /// Returns whether the interrupt is the cancellation of the task that is being polled.
    pub(crate) fn is_own_cancellation(&self) -> bool {
        self.is_cancelled() && gate::task() == Some(self.delivery().task)
    }
}

/// An item that was not put, and the reason. The caller gets the item back.
///
/// ```
/// use traps::{Error, channel::mpsc};
///
/// let (sender, receiver) = mpsc::channel(1);
/// drop(receiver);
/// let rejected = sender.try_send("item").unwrap_err();
/// assert_eq!((rejected.item, rejected.why), (Some("item"), Error::ReceiversGone));
/// ```
#[derive(PartialEq, Eq)]
pub struct Rejected<T> {
    /// The item. `None` only if a scope around the put ended before it was first polled, and
    /// dropped the item.
    pub item: Option<T>,
    /// The reason.
    pub why: Error,
}

/// Shows the reason without the item, which need not implement `Debug`.
impl<T> fmt::Debug for Rejected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Rejected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<T> std::error::Error for Rejected<T> {}

impl<T> From<Interrupt> for Rejected<T> {
    fn from(interrupt: Interrupt) -> Rejected<T> {
        Rejected { item: None, why: interrupt.into() }
    }
}

impl<T> Interruptible for Rejected<T> {
    fn interrupt(&self) -> Option<&Interrupt> {
        self.why.interrupt()
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        self.why.interrupt_mut()
    }
}

/// Converts a rejection to its reason, and drops the item.
impl<T> From<Rejected<T>> for Error {
    fn from(rejected: Rejected<T>) -> Error {
        rejected.why
    }
}

/// Converts a rejection to its reason, and drops the item.
impl<T> From<Rejected<T>> for io::Error {
    fn from(rejected: Rejected<T>) -> io::Error {
        rejected.why.into()
    }
}

/// Finds the interrupt inside an error of unknown type, if this crate made the error. A macro,
/// because the two ways of access, shared and mutable, need the same list of types.
macro_rules! find_interrupt {
    ($error:ident, $cast:ident, $inner:ident; $($known:ty),*) => {{
        $(
            if $error.is::<$known>() {
                return $error.$cast::<$known>()?.$inner();
            }
        )*
        None
    }};
}

fn find_interrupt<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Interrupt> {
    find_interrupt!(error, downcast_ref, interrupt; Interrupt, Error, io::Error)
}

fn find_interrupt_mut<'a>(error: &'a mut (dyn StdError + 'static)) -> Option<&'a mut Interrupt> {
    find_interrupt!(error, downcast_mut, interrupt_mut; Interrupt, Error, io::Error)
}

impl Interruptible for io::Error {
    fn interrupt(&self) -> Option<&Interrupt> {
        find_interrupt(self.get_ref()?)
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        find_interrupt_mut(self.get_mut()?)
    }
}

impl Interruptible for Box<dyn StdError> {
    fn interrupt(&self) -> Option<&Interrupt> {
        find_interrupt(&**self)
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        find_interrupt_mut(&mut **self)
    }
}

impl Interruptible for Box<dyn StdError + Send + Sync> {
    fn interrupt(&self) -> Option<&Interrupt> {
        find_interrupt(&**self)
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        find_interrupt_mut(&mut **self)
    }
}

/// Implements [`Interruptible`] for a boxed error of another library. It finds the interrupt in the
/// error itself and below any context, but not below an error of the program.
macro_rules! interruptible {
    ($feature:literal, $boxed:ty) => {
        #[cfg(feature = $feature)]
        impl Interruptible for $boxed {
            fn interrupt(&self) -> Option<&Interrupt> {
                find_interrupt!(self, downcast_ref, interrupt; Interrupt, Error, io::Error)
            }
            fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
                find_interrupt!(self, downcast_mut, interrupt_mut; Interrupt, Error, io::Error)
            }
        }
    };
}

interruptible!("anyhow", anyhow::Error);
interruptible!("eyre", eyre::Report);

/// Converts the interrupt like [`Error::Interrupt`]: a timeout becomes kind `TimedOut`, a
/// cancellation `Other`.
impl From<Interrupt> for io::Error {
    fn from(interrupt: Interrupt) -> io::Error {
        Error::Interrupt(interrupt).into()
    }
}

/// Runs user code and catches its panic. If the code panics, returns the message of the panic.
pub(crate) fn caught<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(into_panic_message)
}

/// Runs user code, such as a waker, and catches its panic.
pub fn quietly(code: impl FnOnce()) {
    // The panic hook has already reported the panic. Forget the payload, because its drop can
    // panic.
    let _ = catch_unwind(AssertUnwindSafe(code)).map_err(mem::forget);
}

/// Drops a user's value, and catches a panic of the drop.
pub fn drop_quietly<T>(value: T) {
    quietly(move || drop(value));
}

/// Calls `drop`, which drops the part of a task that `what` names. If `drop` panics, the panic goes
/// no further; returns the text of a `warn` line.
pub fn drop_of_task(task: TaskId, what: &str, drop: impl FnOnce()) -> Option<String> {
    let message = caught(drop).err()?;
    Some(format!("the drop of the {what} of task {task} panicked: {message}"))
}

/// Returns the message of a panic, or a placeholder if the payload is not text.
#[must_use]
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let string = || panic.downcast_ref::<String>().map(String::as_str);
    let text = panic.downcast_ref::<&str>().copied().or_else(string);
    text.unwrap_or("a panic without a message")
}

/// Returns the message of a panic, and drops the payload. A panic of that drop is caught.
#[must_use]
pub fn into_panic_message(panic: Box<dyn Any + Send>) -> String {
    let message = panic_message(&*panic).to_owned();
    drop_quietly(panic);
    message
}
