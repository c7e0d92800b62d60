//! Interrupts: the reasons why blocking traps end early, and how errors carry them upwards.
//!
//! An [`Interrupt`] is the error of a blocking trap that a source has ended, and travels up by `?`.
//! No program can make one. On its way it leaves scopes, and each timeout that it leaves gives it
//! the name that it has outside (`Interrupt::leave`). So one interrupt is a `TaskTimeout` where its
//! deadline was set, a `TimeoutCancellation` further in, and an `UncaughtTimeout` further out.
//!
//! For example, `timeout_after(2s, timeout_after(5s, sleep(9s)))`: after 2 s the sleep ends with a
//! `TimeoutCancellation`, because the deadline that passed is not that of the nearest timeout. The
//! inner timeout passes it on under that name. The outer one is its source, and returns a
//! `TaskTimeout`.
//!
//! The invariant: a closing timeout relabels only an interrupt that is still inside it
//! (`nearest_timeout`). So an error that a program keeps and returns elsewhere is not taken for the
//! timeout of another scope.
//!
//! The obvious way is one error for all timeouts. Then a caller cannot distinguish its own deadline
//! from one that an inner call forgot to handle, which is the most common mistake with nested
//! timeouts.

use std::error::Error as StdError;
use std::fmt;

use crate::core::table::{ScopeId, Site, TaskId, TaskRef};
use crate::time::Time;

/// The kind of an interrupt, seen from its present scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The task was cancelled.
    Cancelled,
    /// The deadline of the nearest timeout around the trap, or of the timeout just left, has
    /// passed.
    TaskTimeout,
    /// The deadline of a scope further out has passed.
    TimeoutCancellation,
    /// The deadline of a scope further in has passed, and was not handled there.
    UncaughtTimeout,
}

/// The error of a wait that ended early: a cancellation or a timeout, on its way up by `?`.
///
/// The interrupt itself is one allocation. The kernel makes a few more to find where it is taken.
///
/// ```
/// # use std::time::Duration;
/// use traps::{Kind, Time, current_task, sleep, spawn, timeout_after};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// let late = timeout_after(second, sleep(9 * second)).await.unwrap_err();
/// assert_eq!((late.kind(), late.deadline()), (Kind::TaskTimeout, Some(Time::ZERO + second)));
///
/// let mut child = spawn("child", sleep(9 * second)).await;
/// child.cancel_because("too slow").await?;
/// let ended = child.join().await?.unwrap_err();
/// assert!(ended.is_cancelled());
/// assert_eq!((ended.by(), ended.reason()), (Some(current_task()), "too slow"));
/// # Ok::<(), traps::Error>(())
/// # }).output.unwrap();
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Interrupt(Box<Delivery>);

/// Places on the way out to a source: branches, and the source itself.
pub type Places = Vec<ScopeId>;

/// The facts about an interrupt at its delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The kind, seen from the trap that it ends.
    pub kind: Kind,
    /// The scope that fired.
    pub source: ScopeId,
    /// The task of that scope.
    pub task: TaskRef,
    /// The rank of `source` among all scopes that fired.
    pub order: u64,
    /// The nearest timeout around the trap. A closing timeout relabels only an interrupt that is in
    /// it, so an interrupt cannot be forged or replayed into another scope.
    pub nearest_timeout: Option<ScopeId>,
    /// The places at which the interrupt was taken, from the inside out. The last is the source.
    pub places: Places,
    /// Whether the interrupt has left its source.
    pub passed: bool,
    /// The deadline that passed; [`Time::NEVER`] for a cancellation.
    pub deadline: Time,
    /// The kernel clock at the delivery.
    pub reading: Time,
    /// The call site that set the timeout.
    pub set_at: Option<Site>,
    /// The number of the task that asked for the cancellation.
    pub by: Option<TaskId>,
    /// The canceller's reason.
    pub reason: &'static str,
    /// The number of the scope that timed out, 0 for none.
    pub scope: u64,
}

impl Interrupt {
    /// Makes the interrupt of a scope that has fired.
    #[must_use]
    pub fn new(delivery: Delivery) -> Interrupt {
        Interrupt(Box::new(delivery))
    }

    /// Returns the facts about the delivery of the interrupt.
    #[must_use]
    pub fn delivery(&self) -> &Delivery {
        &self.0
    }

    /// Returns the kind of the interrupt, seen from its present scope.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns whether the interrupt is a cancellation. Otherwise it is a timeout of some kind.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.kind == Kind::Cancelled
    }

    /// Returns the number of the scope that timed out, as the log shows it. Returns `None` for a
    /// cancellation, and for a deadline of the whole task, whose scope has no number.
    #[must_use]
    pub fn scope(&self) -> Option<u64> {
        (self.0.scope != 0).then_some(self.0.scope)
    }

    /// Returns the deadline that passed, or `None` for a cancellation.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        (!self.is_cancelled()).then_some(self.0.deadline)
    }

    /// Returns the reading of the kernel clock at the delivery.
    #[must_use]
    pub fn reading(&self) -> Time {
        self.0.reading
    }

    /// Returns the call site that set the timeout. Returns `None` for a cancellation, for a
    /// deadline of the whole task, and inside the guard of a connection deadline, which many call
    /// sites arm.
    #[must_use]
    pub fn set_at(&self) -> Option<Site> {
        self.0.set_at
    }

    /// Returns the number of the task that asked for the cancellation. Returns `None` for a
    /// timeout, and if another thread cancelled, or the kernel itself at a shutdown.
    #[must_use]
    pub fn by(&self) -> Option<TaskId> {
        self.0.by
    }

    /// Returns the canceller's reason, or an empty text.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.0.reason
    }

    /// Moves the interrupt to the scope of its reader, which is not the scope of the wait.
    /// `passed` is set if the source is not around the reader.
    pub(crate) fn move_to(&mut self, nearest_timeout: Option<ScopeId>, passed: bool) {
        self.0.nearest_timeout = nearest_timeout;
        self.0.passed |= passed;
    }

    /// Moves the interrupt out of the timeout `scope` into `outer`, the timeout around it, and
    /// changes its kind to the kind that is seen from there. Returns whether `scope` itself timed
    /// out.
    pub(crate) fn leave(
        &mut self,
        (scope, number): (ScopeId, u64),
        outer: Option<ScopeId>,
        deadline: Time,
        site: Site,
    ) -> bool {
        let it = &mut *self.0;
        // The error was kept, and comes back from another timeout. This one has not timed out
        // because of it.
        if it.nearest_timeout != Some(scope) {
            return false;
        }
        it.nearest_timeout = outer;
        // A cancellation has one name everywhere.
        if it.kind == Kind::Cancelled {
            return false;
        }
        // While the interrupt is still inside its source, this scope sees an outer timeout. Once
        // it has left its source, this scope sees an inner timeout that was not handled.
        let own = it.source == scope;
        if !own && !it.passed {
            it.kind = Kind::TimeoutCancellation;
            return false;
        }
        debug_assert!(it.deadline != Time::NEVER, "a timeout has a deadline");
        it.passed = true;
        // If the deadline of this scope had also passed at the delivery, it reports the timeout as
        // its own. After `timeout_after(1s, timeout_after(1s, sleep(9s)))`, no caller needs to know
        // which of the two fired first.
        if own || deadline <= it.reading {
            it.kind = Kind::TaskTimeout;
            it.deadline = if own { it.deadline } else { deadline };
            it.set_at = Some(site);
            it.scope = number;
            return true;
        }
        it.kind = Kind::UncaughtTimeout;
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
/// [`Error`](crate::Error), `io::Error` and boxed errors are such types. A box may hold an
/// [`Interrupt`], an [`Error`](crate::Error) or an `io::Error`. With the features `anyhow` and
/// `eyre`, `anyhow::Error` and `eyre::Report` are such boxes.
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
    note = "if the type is yours, implement `From<Interrupt>` and `Interruptible` for it; if it is \
            a library's, map it to the `io::Error` inside it, which has the interrupt, or to \
            `io::Error::other`"
)]
pub trait Interruptible: From<Interrupt> {
    /// Returns the interrupt inside the error, if there is one.
    fn interrupt(&self) -> Option<&Interrupt>;
    /// Returns the interrupt inside the error, so that a closing scope can relabel it.
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
