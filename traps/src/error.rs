//! Why an operation was not done, in one type for all of them.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use crate::core::gate;
use crate::core::interrupt::{Interrupt, Interruptible};
use crate::core::names::Site;
use crate::core::protocol::Reply;
use crate::time::Time;

/// Why an operation was not done. An operation says which of these it can give.
///
/// An operation that can fail by an interrupt only gives that as an [`Interrupt`], which becomes an
/// [`Error`] by `?`. `io::Error` can hold each of these, and gives the [`Interrupt`] inside.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The wait ended early: a timeout or a cancellation.
    Interrupt(Interrupt),
    /// The deadline in force had passed before the operation was begun: nothing was done. See
    /// [`cancellable`](crate::cancellable()). A scope that closes does not take it for its own
    /// timeout.
    NotStarted {
        /// The deadline that had passed.
        deadline: Time,
        /// The kernel clock when the operation was about to begin.
        reading: Time,
        /// The number of the scope whose deadline it was, as the log shows it.
        scope: u64,
        /// Where that deadline was set; `None` for a connection deadline, armed in many places.
        set_at: Option<Site>,
    },
    /// A thread's wait ended early: its span is over.
    TimedOut,
    /// The task or the job panicked, with this message.
    Panicked(String),
    /// The task was dropped before its end: its kernel shut down, or it slept through its grace.
    Dropped,
    /// The output was taken before; or the task is not one of the kernel that runs, or its kernel
    /// is shut down.
    Taken,
    /// The kernel was shut down or dropped before it handled the request; or nobody waits for the
    /// job any more.
    Gone,
    /// Another task already waits for this direction of this descriptor; it is not affected.
    Busy,
    /// The handle or the queue was closed. A queue that is closed is also empty, for a get.
    Closed,
    /// All senders of the channel are gone, and what they sent was received.
    SendersGone,
    /// The receivers of the channel are gone, or its only one was closed.
    ReceiversGone,
    /// So many items of the channel were missed: newer ones took their places.
    Lagged(u64),
    /// There is no room now.
    Full,
    /// There is no item now.
    Empty,
    /// A job asked for another job, but has no kernel around it: run it right there, or give what
    /// comes of the job to a task that asks for the next one.
    WouldNest,
    /// Another task polled the future after the job had been handed over: a job belongs to the task
    /// that asked for it. What comes of it is an orphan.
    Moved,
    /// The task has not ended, and this is the kernel's own thread, which would have to run it.
    OwnThread,
    /// The operating system refused, for example to watch a regular file.
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
            Error::Gone => "nobody is there any more: the kernel is gone, or the caller of the job",
            Error::Busy => "another task already waits for this direction",
            Error::Closed => "it was closed",
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

/// Errors of the operating system are equal if their kinds are.
impl PartialEq for Error {
    fn eq(&self, other: &Error) -> bool {
        match (self, other) {
            (Error::Interrupt(one), Error::Interrupt(two)) => one == two,
            (Error::Panicked(one), Error::Panicked(two)) => one == two,
            (Error::Io(one), Error::Io(two)) => one.kind() == two.kind(),
            // The rest hold what their texts say.
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

/// The error itself is inside. Its kind says what a caller might do: `TimedOut` for a timeout and
/// what was not started; `Other` for a cancellation, never `Interrupted`, which loops of the
/// standard library swallow; `ResourceBusy`, `NotConnected` for `Closed`, `UnexpectedEof` for
/// `SendersGone`, `BrokenPipe` for `ReceiversGone`, `WouldBlock` for `Full` and `Empty`.
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
    /// What a wait for a descriptor came to.
    pub(crate) fn of(reply: Reply) -> Result<(), Error> {
        match reply {
            Reply::Ready(..) | Reply::Done => Ok(()),
            Reply::Interrupt(interrupt) => Err(Error::Interrupt(interrupt)),
            Reply::Busy => Err(Error::Busy),
            Reply::Closed => Err(Error::Closed),
            Reply::Refused(error) => Err(Error::Io(error)),
            other => other.wrong(),
        }
    }
}

impl Interrupt {
    /// Whether what it interrupted is over: a timeout further in, or another task that was
    /// cancelled and passed its interrupt on.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.delivery().passed || self.is_cancelled() && !self.is_own_cancellation()
    }

    /// Whether it is the cancellation of the task that is being polled.
    pub(crate) fn is_own_cancellation(&self) -> bool {
        self.is_cancelled() && gate::task() == Some(self.delivery().source)
    }
}

/// Why an item was not put, and the item.
#[derive(PartialEq, Eq)]
pub struct Rejected<T> {
    /// The item to put. `None` only where a scope around the put ended before that was ever
    /// polled, and dropped it.
    pub item: Option<T>,
    /// Why it was not.
    pub why: Error,
}

/// Without the item, which may not be printable.
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

/// Drops the item.
impl<T> From<Rejected<T>> for Error {
    fn from(rejected: Rejected<T>) -> Error {
        rejected.why
    }
}

/// Drops the item.
impl<T> From<Rejected<T>> for io::Error {
    fn from(rejected: Rejected<T>) -> io::Error {
        rejected.why.into()
    }
}

/// The interrupt inside an error of unknown type, if it is one that this crate makes.
macro_rules! look {
    ($error:ident, $cast:ident, $inner:ident; $($known:ty),*) => {{
        $(
            if $error.is::<$known>() {
                return $error.$cast::<$known>()?.$inner();
            }
        )*
        None
    }};
}

fn look<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Interrupt> {
    look!(error, downcast_ref, interrupt; Interrupt, Error, io::Error)
}

fn look_mut<'a>(error: &'a mut (dyn StdError + 'static)) -> Option<&'a mut Interrupt> {
    look!(error, downcast_mut, interrupt_mut; Interrupt, Error, io::Error)
}

impl Interruptible for io::Error {
    fn interrupt(&self) -> Option<&Interrupt> {
        look(self.get_ref()?)
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        look_mut(self.get_mut()?)
    }
}

impl Interruptible for Box<dyn StdError> {
    fn interrupt(&self) -> Option<&Interrupt> {
        look(&**self)
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        look_mut(&mut **self)
    }
}

impl Interruptible for Box<dyn StdError + Send + Sync> {
    fn interrupt(&self) -> Option<&Interrupt> {
        look(&**self)
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        look_mut(&mut **self)
    }
}

/// As [`Error::Interrupt`]: a timeout becomes kind `TimedOut`, a cancellation `Other`.
impl From<Interrupt> for io::Error {
    fn from(interrupt: Interrupt) -> io::Error {
        Error::Interrupt(interrupt).into()
    }
}
