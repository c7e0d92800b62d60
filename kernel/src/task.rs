//! The record of a task: what the kernel keeps of it, and the lists that hang on it.
//!
//! Polls nothing and wakes nothing.

use std::any::Any;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use traps::protocol::{Body, ScopeId, Site, Ticket};
use traps::{TaskId, Time};

use crate::deadlines::Expiring;
use crate::longrun::{Came, Packed};
use crate::pending::Source;
use crate::ready::ReadyQueue;
use crate::trace::{Answered, Exit, Seq};

/// The end of a list that is threaded through a table.
pub(crate) const NONE: u32 = u32::MAX;

/// Bytes of a place in the table.
#[cfg(test)]
pub(crate) const SIZE: usize = size_of::<Task>();

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// In the ready queue.
    Ready,
    /// Being polled, or having its requests answered.
    Running,
    /// Waiting: for its tickets, or for a waker alone.
    Parked,
    /// Over; its output waits for a joiner.
    Finished,
    /// Over, by a panic.
    Panicked,
    /// Over: it was dropped before its end.
    Dropped,
    /// Its place in the table is free.
    Gone,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Output,
    Panicked,
    Dropped,
}

/// What few tasks ever have: those that handed their waker on, were cancelled, interrupted or
/// traced, or wait under policy NextSleep.
#[derive(Default)]
pub(crate) struct Rare {
    /// Of a task that handed its waker on: its own, from then on.
    waker: Option<Waker>,
    pub(crate) news: News,
    /// Policy NextSleep: the handle whose wait its last wake left registered, and whether that was
    /// for writing.
    deferred: Option<(u32, bool)>,
    pub(crate) cancel: Option<Cancellation>,
    /// The message of the panic that ended it.
    pub(crate) panic: Box<str>,
}

/// A cancellation that was asked for. There is one at most in the life of a task.
#[derive(Debug)]
pub(crate) struct Cancellation {
    pub(crate) by: Option<TaskId>,
    pub(crate) reason: &'static str,
    /// Traps that it reached and at which it was not dropped unread.
    pub(crate) delivered: u32,
    pub(crate) seq: Seq,
}

/// An interrupt that was delivered and not read.
pub(crate) struct Unread {
    /// Where it lies.
    pub(crate) ticket: Ticket,
    /// The number of that in the log.
    pub(crate) number: u64,
    pub(crate) source: Source,
    /// The scope of the trap that it ended.
    pub(crate) within: ScopeId,
}

/// What came for a task since it last ran.
#[derive(Default)]
pub(crate) struct News {
    /// Tickets that were answered, for its `run` line; empty if nobody listens.
    pub(crate) answered: Vec<Answered<'static>>,
    /// Interrupts that were delivered and not read, but for those of a scope that has gone.
    pub(crate) delivered: Vec<Unread>,
}

impl News {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.answered.is_empty() && self.delivered.is_empty()
    }

    /// It was told. The room stays: the next run is told without an allocation.
    pub(crate) fn clear(&mut self) {
        self.answered.clear();
        self.delivered.clear();
    }
}

/// A task's future, then its output; none if that was taken, and of main.
pub(crate) type Contents = Option<Pin<Box<dyn Body>>>;

/// What is left of a task whose place is free: to be dropped outside.
pub(crate) type Remains = (Contents, Option<Box<Rare>>);

pub(crate) struct Task {
    pub(crate) id: NonZeroU64,
    /// That of main is in the frame of `run`.
    pub(crate) body: Contents,
    pub(crate) parent: u64,
    pub(crate) state: State,
    pub(crate) cycles: u64,
    /// The line that made it ready; while it runs, its `run` line.
    pub(crate) cause: Seq,
    /// What that line ended.
    pub(crate) came: Packed,
    /// Since when it is ready, or parked.
    pub(crate) ready_since: Time,
    /// Parked tickets, in the order of their parking. In a free place: the next that is free.
    pub(crate) first_wait: u32,
    pub(crate) last_wait: u32,
    pub(crate) waits: u32,
    /// Open scopes.
    pub(crate) first_scope: u32,
    /// Tasks that wait for its end.
    pub(crate) first_joiner: u32,
    pub(crate) last_joiner: u32,
    /// Entries in the list of pending interrupts.
    pub(crate) pending: u32,
    rare: Option<Box<Rare>>,
    /// A result came while it was running: it is polled on.
    pub(crate) answered: bool,
    /// Its waker was called while it was running: it goes to the end of the queue.
    pub(crate) woken: bool,
    /// An interrupt was delivered to it and it has not run since.
    pub(crate) interrupted: bool,
    /// A deadline around it fired once: a guard that ends is worth a look.
    pub(crate) troubled: bool,
    /// Between the wait of a turn and its deadlines: where a connection deadline is due.
    pub(crate) expiring: Option<Expiring>,
    /// Connection deadlines with this number or a lower one were made before it.
    pub(crate) deadlines_before: u32,
    /// Nobody can join it.
    pub(crate) detached: bool,
    /// Nothing is kept in its home at the gate, as far as its last run has seen.
    pub(crate) is_home_free: bool,
}

impl Task {
    #[inline(always)]
    pub(crate) fn new(
        id: NonZeroU64,
        body: Option<Pin<Box<dyn Body>>>,
        (parent, deadlines_before): (u64, u32),
        detached: bool,
    ) -> Task {
        Task {
            id,
            body,
            parent,
            state: State::Parked,
            cycles: 0,
            cause: 0,
            came: Packed::of(Came::Spawn),
            ready_since: Time::ZERO,
            first_wait: NONE,
            last_wait: NONE,
            waits: 0,
            first_scope: NONE,
            first_joiner: NONE,
            last_joiner: NONE,
            pending: 0,
            rare: None,
            answered: false,
            woken: false,
            interrupted: false,
            troubled: false,
            expiring: None,
            deadlines_before,
            detached,
            is_home_free: true,
        }
    }

    /// Becomes ready if it is parked, for the line `cause`, which ended `came`; one that runs is
    /// polled on.
    #[inline(always)]
    pub(crate) fn make_ready(
        &mut self,
        index: u32,
        (cause, came): (Seq, Came),
        now: Time,
        ready: &mut ReadyQueue,
    ) {
        if self.state == State::Parked {
            self.state = State::Ready;
            (self.cause, self.came) = (cause, Packed::of(came));
            self.ready_since = now;
            ready.push(index);
        } else if self.state == State::Running {
            self.answered = true;
        }
    }

    /// Whether it has anything open or deferred, perhaps: more than its future and its name.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.waits > 0 || self.first_scope != NONE || self.pending > 0 || self.rare.is_some()
    }

    #[inline]
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.state, State::Finished | State::Panicked | State::Dropped)
    }

    /// Its own waker, if it ever handed one on.
    #[inline]
    pub(crate) fn waker(&self) -> Option<&Waker> {
        self.rare.as_ref()?.waker.as_ref()
    }

    /// The same, and its future.
    #[inline]
    pub(crate) fn parts(&mut self) -> (Option<&Waker>, &mut Contents) {
        let waker = self.rare.as_ref().and_then(|rare| rare.waker.as_ref());
        (waker, &mut self.body)
    }

    pub(crate) fn set_waker(&mut self, waker: Waker) -> &Waker {
        self.rare().waker.insert(waker)
    }

    /// What its next run will find.
    #[inline]
    pub(crate) fn news(&self) -> Option<&News> {
        self.rare.as_ref().map(|rare| &rare.news)
    }

    /// Policy NextSleep: the wait that its last wake left registered (handle, write side).
    #[inline]
    pub(crate) fn deferred(&self) -> Option<(u32, bool)> {
        self.rare.as_ref()?.deferred
    }

    pub(crate) fn defer(&mut self, handle: u32, write: bool) {
        self.rare().deferred = Some((handle, write));
    }

    pub(crate) fn undefer(&mut self) -> Option<(u32, bool)> {
        self.rare.as_mut()?.deferred.take()
    }

    pub(crate) fn cancel(&self) -> Option<&Cancellation> {
        self.rare.as_ref()?.cancel.as_ref()
    }

    pub(crate) fn cancel_mut(&mut self) -> Option<&mut Cancellation> {
        self.rare.as_mut()?.cancel.as_mut()
    }

    /// What few tasks have: made here, if it has nothing of it yet.
    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// It ends: nobody wakes it or tells it anything any more.
    #[inline]
    pub(crate) fn end(&mut self, end: End) {
        self.state = match end {
            End::Output => State::Finished,
            End::Panicked => State::Panicked,
            End::Dropped => State::Dropped,
        };
        if let Some(rare) = &mut self.rare {
            (rare.waker, rare.news) = (None, News::default());
        }
    }

    /// Takes out what is left of a task that has ended.
    #[inline]
    pub(crate) fn take_remains(&mut self) -> Remains {
        (self.body.take(), self.rare.take())
    }

    /// How it ends, for the log.
    pub(crate) fn exit(&self, end: End) -> Exit {
        match end {
            End::Panicked => Exit::Panic,
            End::Dropped => Exit::Dropped,
            End::Output if self.cancel().is_some_and(|cancel| cancel.delivered > 0) => {
                Exit::Cancelled
            }
            End::Output => Exit::Ok,
        }
    }
}

/// Keeps the name and the place of a task whose future is gone.
struct StandIn {
    name: String,
    site: Site,
}

impl Body for StandIn {
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        unreachable!("rule: an ended task is not polled")
    }

    fn take(self: Pin<&mut Self>, _: &mut dyn Any) {}

    fn clear(self: Pin<&mut Self>) {}

    fn retire(self: Pin<Box<Self>>) {}

    fn name(&self) -> &str {
        &self.name
    }

    fn site(&self) -> Site {
        self.site
    }
}

pub(crate) fn stand_in(name: String, site: Site) -> Pin<Box<dyn Body>> {
    Box::pin(StandIn { name, site })
}
