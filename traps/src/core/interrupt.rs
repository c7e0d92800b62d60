//! Why a blocking trap ended early, and how an error carries that upwards.
//!
//! Only the kernel makes interrupts; only a scope that closes relabels them.

use std::error::Error as StdError;
use std::fmt;

use super::names::{ScopeId, Site, TaskId};
use crate::time::Time;

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
pub struct Interrupt(Box<Delivery>);

/// What is known of an interrupt when it is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// What it is, seen from the trap that it ends.
    pub kind: Kind,
    /// The scope that fired.
    pub source: ScopeId,
    /// Its rank when it fired.
    pub order: u64,
    /// The nearest timeout around the trap. A closing timeout relabels only what stands in it, so
    /// that an interrupt cannot be forged or replayed into another scope.
    pub position: Option<ScopeId>,
    /// Where it was pending: a branch, or the source itself.
    pub place: ScopeId,
    /// Whether it has left its source.
    pub passed: bool,
    /// The deadline that passed; [`Time::NEVER`] for a cancellation.
    pub deadline: Time,
    /// The kernel clock at the delivery.
    pub reading: Time,
    /// Where the timeout was set.
    pub set_at: Option<Site>,
    /// Who cancelled.
    pub by: Option<TaskId>,
    /// The canceller's reason.
    pub reason: &'static str,
    /// The number of the scope that timed out, 0 for none.
    pub scope: u64,
}

impl Interrupt {
    /// Makes one of a scope that has fired.
    #[must_use]
    pub fn new(delivery: Delivery) -> Interrupt {
        Interrupt(Box::new(delivery))
    }

    /// What is known of it.
    #[must_use]
    pub fn delivery(&self) -> &Delivery {
        &self.0
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

    /// The number in the log of the scope that timed out; `None` for a cancellation, and for a
    /// deadline of the whole task, which has no scope.
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

    /// Where the timeout was set; `None` for a cancellation, for a deadline of the whole task, and
    /// inside the guard of a connection deadline, which is armed in many places.
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

    /// Was delivered in another scope than the one that reads it: the future has moved.
    /// `has_left`: its source is not around the reader.
    pub(crate) fn move_to(&mut self, position: Option<ScopeId>, has_left: bool) {
        self.0.position = position;
        self.0.passed |= has_left;
    }

    /// A timeout has moved to another task, where it is another scope. What was read in it before
    /// is in it still.
    pub(crate) fn follow(&mut self, earlier: ScopeId, scope: ScopeId) {
        if self.0.position == Some(earlier) {
            self.0.position = Some(scope);
            if self.0.source == earlier {
                self.0.source = scope;
            }
        }
    }

    /// Moves out of the timeout `scope` into `outer`, the one around it, and takes the name that
    /// it has there. Returns whether `scope` itself timed out.
    pub(crate) fn leave(
        &mut self,
        (scope, number): (ScopeId, u64),
        outer: Option<ScopeId>,
        deadline: Time,
        site: Site,
    ) -> bool {
        let inner = &mut *self.0;
        if inner.position != Some(scope) {
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
        // An inner timeout serves this scope too if its deadline had passed at the delivery.
        if own || deadline <= inner.reading {
            inner.kind = Kind::TaskTimeout;
            inner.deadline = if own { inner.deadline } else { deadline };
            inner.set_at = Some(site);
            inner.scope = number;
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
/// [`Error`](crate::Error), `io::Error` and boxed errors can already. A box may hold an
/// [`Interrupt`], an [`Error`](crate::Error) or an `io::Error`.
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
    /// The interrupt inside, to be relabelled by a closing scope.
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
