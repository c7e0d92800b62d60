//! Why a blocking trap ended early, and how an error carries that upwards.
//!
//! Only the kernel makes interrupts; only a scope that closes relabels them.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use crate::error::JoinError;
use crate::gate;
use crate::group::GroupError;
use crate::protocol::{ScopeId, Site, TaskRef};
use crate::task::TaskId;
use crate::threads::ThreadError;
use crate::time::Time;
use crate::universal::QueueError;

/// Which of the four an interrupt is, seen from where it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The task was cancelled.
    Cancelled,
    /// The deadline of the scope that it leaves (or is about to leave) has passed.
    TaskTimeout,
    /// The deadline of a scope further out has passed.
    TimeoutCancellation,
    /// The deadline of a scope further in passed and nobody handled it there.
    UncaughtTimeout,
}

/// A wait that ended early: a cancellation or a timeout, on its way up by `?`.
///
/// Costs one allocation, made when it is delivered.
#[derive(Clone, PartialEq, Eq)]
pub struct Interrupt(Box<About>);

#[derive(Clone, PartialEq, Eq)]
struct About {
    kind: Kind,
    /// The scope whose deadline fired, or the root scope of the cancelled task.
    source: ScopeId,
    /// The timeout that it will leave next, or the root. A closing timeout converts only what
    /// stands in it, so that an interrupt cannot be forged or replayed into another scope.
    position: ScopeId,
    /// The scope of the trap that it ended.
    delivered_in: ScopeId,
    /// Whether it has left its source.
    passed: bool,
    deadline: Time,
    reading: Time,
    set_at: Option<Site>,
    by: Option<TaskId>,
    reason: &'static str,
    scope: u64,
}

impl Interrupt {
    /// Whether what it interrupted is over: the timeout whose deadline passed, of which who meets
    /// this one stands further out, or another task, which was cancelled and passed it on.
    #[must_use]
    pub fn has_left(&self) -> bool {
        let is_of = |task: TaskRef| task.root() == self.0.source;
        self.0.passed || self.is_cancelled() && !gate::task().is_some_and(is_of)
    }

    /// Kernel side: the deadline of `source` fired; delivered to a trap in `delivered_in`, whose
    /// nearest timeout is `position`.
    #[must_use]
    pub fn timeout(
        kind: Kind,
        source: ScopeId,
        position: ScopeId,
        delivered_in: ScopeId,
        deadline: Time,
        reading: Time,
        set_at: Option<Site>,
    ) -> Interrupt {
        Interrupt(Box::new(About {
            kind,
            source,
            position,
            delivered_in,
            passed: false,
            deadline,
            reading,
            set_at,
            by: None,
            reason: "",
            // A connection deadline that guards nothing is no scope of its own.
            scope: if source.serial.get() >> 63 == 0 { source.serial.get() } else { 0 },
        }))
    }

    /// Kernel side: the task whose root scope is `source` was cancelled.
    #[must_use]
    pub fn cancelled(
        source: ScopeId,
        position: ScopeId,
        delivered_in: ScopeId,
        reading: Time,
        by: Option<TaskId>,
        reason: &'static str,
    ) -> Interrupt {
        Interrupt(Box::new(About {
            kind: Kind::Cancelled,
            source,
            position,
            delivered_in,
            passed: false,
            deadline: Time::NEVER,
            reading,
            set_at: None,
            by,
            reason,
            scope: 0,
        }))
    }

    /// Which of the four it is here.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Whether it is a cancellation; else it is a timeout of some kind.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.kind == Kind::Cancelled
    }

    /// The number in the log of the scope that timed out; `None` for a cancellation, and a deadline
    /// of the whole task, which has no scope.
    #[must_use]
    pub fn scope(&self) -> Option<u64> {
        (self.0.scope != 0).then_some(self.0.scope)
    }

    /// The deadline that passed; `None` for a cancellation.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        (!self.is_cancelled()).then_some(self.0.deadline)
    }

    /// The kernel clock when it was delivered.
    #[must_use]
    pub fn reading(&self) -> Time {
        self.0.reading
    }

    /// Where the timeout was set; none if cancelled, of a whole task's deadline, or in its guard.
    #[must_use]
    pub fn set_at(&self) -> Option<Site> {
        self.0.set_at
    }

    /// Who cancelled; `None` for a timeout, another thread, and the kernel itself at shutdown.
    #[must_use]
    pub fn by(&self) -> Option<TaskId> {
        self.0.by
    }

    /// The canceller's reason; empty if none was given.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.0.reason
    }

    /// Kernel side: the scope whose deadline fired, or the cancelled task's root.
    #[must_use]
    pub fn source(&self) -> ScopeId {
        self.0.source
    }

    /// Kernel side: the scope of the trap that it ended.
    #[must_use]
    pub fn delivered_in(&self) -> ScopeId {
        self.0.delivered_in
    }

    /// Kernel side: the timeout that it will leave next, or the root.
    #[must_use]
    pub fn position(&self) -> ScopeId {
        self.0.position
    }

    /// Moves out of the timeout `scope` into `outer`, the one around it, and takes the name that
    /// it has there. Returns whether `scope` itself timed out.
    pub(crate) fn leave(
        &mut self,
        scope: ScopeId,
        outer: ScopeId,
        deadline: Time,
        set_at: Site,
    ) -> bool {
        let inner = &mut *self.0;
        if inner.position != scope {
            return false;
        }
        inner.position = outer;
        if inner.kind == Kind::Cancelled {
            return false;
        }
        let own = inner.source == scope;
        if !own && !inner.passed {
            inner.kind = Kind::TimeoutCancellation;
            return false;
        }
        inner.passed = true;
        if own || deadline <= inner.reading {
            inner.kind = Kind::TaskTimeout;
            if !own {
                inner.deadline = deadline;
            }
            inner.set_at = Some(set_at);
            inner.scope = scope.serial.get();
            return true;
        }
        inner.kind = Kind::UncaughtTimeout;
        false
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Interrupt({self})")
    }
}

impl fmt::Display for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        let what = match inner.kind {
            Kind::Cancelled => {
                f.write_str("cancelled")?;
                if let Some(by) = inner.by {
                    write!(f, " by task {by}")?;
                }
                if !inner.reason.is_empty() {
                    write!(f, ": {}", inner.reason)?;
                }
                return Ok(());
            }
            Kind::TaskTimeout => "timed out",
            Kind::TimeoutCancellation => "cancelled by the timeout of an enclosing scope",
            Kind::UncaughtTimeout => "a timeout further in was not handled",
        };
        write!(f, "{what}: deadline {} passed at {}", inner.deadline, inner.reading)?;
        match inner.set_at {
            Some(site) => write!(f, ", set at {}:{}", site.file(), site.line()),
            None => Ok(()),
        }
    }
}

impl StdError for Interrupt {}

/// An error type that can carry an [`Interrupt`] from a trap up to the scope that it belongs to.
///
/// `io::Error`, boxed errors and the crate's own errors do already; the first two also around one
/// of the crate's own, but for `PutError<T>` (make a `QueueError` of it) and groups of others.
///
/// ```
/// use traps::{Interrupt, Interruptible};
///
/// enum AppError {
///     NotFound,
///     Interrupted(Interrupt),
/// }
///
/// impl From<Interrupt> for AppError {
///     fn from(interrupt: Interrupt) -> Self {
///         AppError::Interrupted(interrupt)
///     }
/// }
///
/// impl Interruptible for AppError {
///     fn interrupt(&self) -> Option<&Interrupt> {
///         match self {
///             AppError::Interrupted(interrupt) => Some(interrupt),
///             AppError::NotFound => None,
///         }
///     }
///     fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
///         match self {
///             AppError::Interrupted(interrupt) => Some(interrupt),
///             AppError::NotFound => None,
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot carry an interrupt out of a scope",
    note = "use `Interrupt`, `io::Error` or a boxed error, or implement `From<Interrupt>` and \
            `Interruptible` for it"
)]
pub trait Interruptible: From<Interrupt> {
    /// The interrupt inside, if this error is one.
    fn interrupt(&self) -> Option<&Interrupt>;
    /// The same, to be relabelled by a closing scope.
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt>;
}

impl Interruptible for Interrupt {
    fn interrupt(&self) -> Option<&Interrupt> {
        Some(self)
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        Some(self)
    }
}

/// A timeout becomes kind `TimedOut`, a cancellation `Other`; never `Interrupted`, which loops of
/// the standard library swallow.
impl From<Interrupt> for io::Error {
    fn from(interrupt: Interrupt) -> io::Error {
        let kind =
            if interrupt.is_cancelled() { io::ErrorKind::Other } else { io::ErrorKind::TimedOut };
        io::Error::new(kind, interrupt)
    }
}

/// The interrupt inside an error of unknown type, if it is one that this crate makes.
macro_rules! look {
    ($error:ident, $cast:ident, $inner:ident) => {
        look!($error, $cast, $inner;
            Interrupt, io::Error, crate::Error, JoinError, ThreadError, QueueError,
            GroupError<Interrupt>, GroupError<io::Error>, GroupError<crate::Error>,
            GroupError<JoinError>, GroupError<ThreadError>, GroupError<QueueError>)
    };
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
    look!(error, downcast_ref, interrupt)
}

fn look_mut<'a>(error: &'a mut (dyn StdError + 'static)) -> Option<&'a mut Interrupt> {
    look!(error, downcast_mut, interrupt_mut)
}

/// For an error of this crate that is an interrupt in its variant of that name only.
macro_rules! carries_interrupt {
    ($error:ident) => {
        impl From<$crate::Interrupt> for $error {
            fn from(interrupt: $crate::Interrupt) -> $error {
                $error::Interrupt(interrupt)
            }
        }

        impl $crate::Interruptible for $error {
            fn interrupt(&self) -> Option<&$crate::Interrupt> {
                match self {
                    $error::Interrupt(interrupt) => Some(interrupt),
                    _ => None,
                }
            }
            fn interrupt_mut(&mut self) -> Option<&mut $crate::Interrupt> {
                match self {
                    $error::Interrupt(interrupt) => Some(interrupt),
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use carries_interrupt;

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
