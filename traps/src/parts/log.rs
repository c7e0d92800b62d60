//! What tasks tell the log: notes, and the openings and closings of scopes.
//!
//! Each of these is a post that a kernel writes into its log. None of them changes what a kernel
//! does, and most are made only while the log is on.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::rc::Rc;

use crate::core::table::{Direction, HandleId, Queue, ScopeId, Site, TaskId, TaskRef, Ticket};
use crate::interrupts::interrupt::Kind;
use crate::interrupts::source::ScopeKind;
use crate::time::Time;

/// A message for the log.
pub enum Note {
    /// A warning for the user.
    Warning(Cow<'static, str>),
    /// A report that a limit was hit.
    Cap(Cow<'static, str>),
    /// A note from the program.
    Said(Cow<'static, str>),
    /// The beginning (`true`) or the end of a span of a task.
    Span(bool, Cow<'static, str>),
    /// The number of bytes that were read or written.
    Moved(HandleId, Direction, usize),
    /// The connection that a listener has accepted, and its peer.
    Accepted(HandleId, HandleId, Option<Box<SocketAddr>>),
    /// An event of the connection deadline in this slot, with this number.
    Deadline(u32, u32, DeadlineEvent),
    /// The task whose output was taken, or whose panic a join has returned.
    Joined(TaskId),
    /// A permit of the primitive of this queue, which has a name, was taken or given back.
    Permit(Rc<Queue>, PermitEvent),
    /// A wait or a scope was polled in another scope than before. The number is that of the scope
    /// around it now, or 0 for the task itself.
    Rescoped(Rescoped, u64),
}

/// An event of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitEvent {
    /// The task has taken a permit, at this call site.
    Taken(Site),
    /// A permit that this task held was given back.
    Given(TaskRef),
}

/// The thing that was polled in another scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rescoped {
    /// A wait.
    Wait(Ticket),
    /// The scope with this number.
    Scope(u64),
}

/// An event of a connection deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineEvent {
    /// The deadline was made.
    Made,
    /// The deadline was armed to this time, for this phase, at this call site.
    Armed(Time, &'static str, Site),
    /// The deadline was disarmed.
    Disarmed,
}

/// A scope that was opened or closed, for the log.
pub struct ScopePost {
    /// The task that the scope is in.
    pub task: TaskRef,
    /// The number of the scope.
    pub number: u64,
    /// The kind of the scope.
    pub kind: ScopeKind,
    /// The deadline of the scope.
    pub deadline: Time,
    /// The event that is logged: the opening or the closing of the scope.
    pub event: ScopeEvent,
}

/// An event of a scope: its opening or its closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeEvent {
    /// The scope was opened.
    Opened {
        /// The name of the scope, which may have closed already.
        scope: ScopeId,
        /// The reading of the clock at the opening, or [`Time::ZERO`] if it was not read.
        now: Time,
        /// The call site that opened the scope.
        site: Site,
        /// The number of the open scope around it, or 0 for the task itself.
        parent: u64,
    },
    /// The scope was closed, and this result left it.
    Closed(Left),
}

/// How a scope ended, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// A value, and the reading of the clock, or [`Time::ZERO`] if it was not read.
    Value(Time),
    /// An interrupt.
    Interrupt {
        /// The kind of the interrupt outside the scope.
        kind: Kind,
        /// The number of the scope that fired, if there is one.
        scope: Option<u64>,
        /// The number of the task that asked for the cancellation.
        by: Option<TaskId>,
    },
    /// Another error, or the scope was dropped before its end.
    Other,
}
