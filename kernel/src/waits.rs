//! Waits: what a task is parked on, stored in the task's own record.
//!
//! The first wait of a task is in the record itself. Other waits are in a list that most tasks
//! never allocate. A wait that has completed stays as a result until its future is polled.

use std::num::NonZeroU32;

use traps::protocol::{Answer, Direction, Owned, Site, TaskRef};
use traps::{Interrupt, Signal, SignalSet, Time};

use crate::task::Task;
use crate::timers::TimerId;

/// A parked request, or its result, in plain words. The value that it owns is in
/// [`Rare::owned`](crate::task::Rare).
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) serial: NonZeroU32,
    /// The index of the scope in which it was filed, or of the nearest scope around that which is
    /// open.
    pub(crate) scope: u32,
    pub(crate) on: On,
    pub(crate) site: Site,
}

/// What a wait is for, or its result.
#[derive(Clone, Copy)]
pub(crate) enum On {
    // Parked:
    /// Until the end of the run in which it was filed; whether it is a sleep with a span of zero.
    Yield {
        zero: bool,
    },
    Sleep(TimerId),
    Io(u32, Direction),
    /// Until the end of that task; whether to take its output.
    Join(TaskRef, bool),
    /// Until a wake or a permit; `keep`: an unread permit is kept if there is no other waiter. Owns
    /// the queue.
    Queue {
        keep: bool,
    },
    /// The job of that number.
    Job(u64),
    Signal(SignalSet),
    /// Owns the stream.
    Stream,
    /// Whether something outside the kernel will wake it.
    Foreign(bool),
    /// The number of its name; whether something outside the kernel will wake it.
    Outside(u16, bool),

    // Completed, and not read yet:
    /// Nothing has to be given back if the result is not read.
    Done,
    Slept(Time),
    IoReady(u32, Direction),
    Closed,
    /// That task has ended.
    Joined(TaskRef, bool),
    /// Owns the queue.
    Granted {
        keep: bool,
    },
    /// Owns the stream, if the wait was for a stream.
    Signalled(Signal),
    /// Owns the interrupt.
    Interrupted,
    /// Any other answer. Owns the value of the answer.
    Answered(Answer),
}

impl On {
    #[inline]
    pub(crate) fn is_parked(&self) -> bool {
        match self {
            On::Yield { .. }
            | On::Sleep(_)
            | On::Io(..)
            | On::Join(..)
            | On::Queue { .. }
            | On::Job(_)
            | On::Signal(_)
            | On::Stream
            | On::Foreign(_)
            | On::Outside(..) => true,
            On::Done
            | On::Slept(_)
            | On::IoReady(..)
            | On::Closed
            | On::Joined(..)
            | On::Granted { .. }
            | On::Signalled(_)
            | On::Interrupted
            | On::Answered(_) => false,
        }
    }
}

impl Task {
    /// Stores a wait, or a result that was not read.
    #[inline]
    pub(crate) fn keep(&mut self, wait: Wait) {
        if self.first.is_none() {
            self.first = Some(wait);
            return;
        }
        let rare = self.rare();
        if wait.on.is_parked() { &mut rare.more } else { &mut rare.results }.push(wait);
    }

    /// The parked wait or the result of that serial number.
    #[inline]
    pub(crate) fn wait_mut(&mut self, serial: NonZeroU32) -> Option<&mut Wait> {
        match &mut self.first {
            Some(first) if first.serial == serial => self.first.as_mut(),
            _ => {
                let rare = self.rare.as_mut()?;
                rare.more.iter_mut().chain(&mut rare.results).find(|wait| wait.serial == serial)
            }
        }
    }

    /// Completes a parked wait with the result `come`. False if no such wait is parked.
    #[inline]
    pub(crate) fn complete(&mut self, serial: NonZeroU32, come: On) -> bool {
        match &mut self.first {
            Some(first) if first.serial == serial => {
                let was_parked = first.on.is_parked();
                if was_parked {
                    first.on = come;
                }
                was_parked
            }
            _ => self.complete_another(serial, come),
        }
    }

    #[cold]
    fn complete_another(&mut self, serial: NonZeroU32, come: On) -> bool {
        let Some(rare) = &mut self.rare else { return false };
        let Some(place) = rare.more.iter().position(|wait| wait.serial == serial) else {
            return false;
        };
        let wait = rare.more.remove(place);
        rare.results.push(Wait { on: come, ..wait });
        true
    }

    /// Removes a wait, parked or with its result.
    pub(crate) fn take_wait(&mut self, serial: NonZeroU32) -> Option<Wait> {
        if self.first.as_ref().is_some_and(|first| first.serial == serial) {
            return self.first.take();
        }
        let rare = self.rare.as_mut()?;
        rare.wakers.retain(|(of, _)| *of != serial);
        for list in [&mut rare.more, &mut rare.results] {
            if let Some(place) = list.iter().position(|wait| wait.serial == serial) {
                return Some(list.remove(place));
            }
        }
        None
    }

    /// Whether it has results besides that of the first wait.
    #[inline]
    pub(crate) fn has_more_results(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| !rare.results.is_empty())
    }

    /// Stores the value that a wait owns, in place of the earlier one.
    pub(crate) fn own(&mut self, serial: NonZeroU32, owned: Owned) {
        let before = self.take_owned(serial);
        self.rare().owned.push((serial, owned));
        drop(before);
    }

    pub(crate) fn owned(&self, serial: NonZeroU32) -> Option<&Owned> {
        let mut owned = self.rare.iter().flat_map(|rare| &rare.owned);
        owned.find(|(of, _)| *of == serial).map(|(_, owned)| owned)
    }

    pub(crate) fn take_owned(&mut self, serial: NonZeroU32) -> Option<Owned> {
        let owned = &mut self.rare.as_mut()?.owned;
        let place = owned.iter().position(|(of, _)| *of == serial)?;
        Some(owned.swap_remove(place).1)
    }

    /// The interrupt that a wait was ended with.
    pub(crate) fn interrupt(&self, wait: &Wait) -> Option<&Interrupt> {
        match self.owned(wait.serial) {
            Some(Owned::Interrupt(interrupt)) => Some(interrupt),
            _ => None,
        }
    }

    /// All of its waits, parked or with their results.
    pub(crate) fn waits(&self) -> impl Iterator<Item = &Wait> {
        let rare = self.rare.as_ref();
        let others = rare.into_iter().flat_map(|rare| rare.more.iter().chain(&rare.results));
        self.first.iter().chain(others)
    }

    /// All of its waits, to be changed.
    pub(crate) fn waits_mut(&mut self) -> impl Iterator<Item = &mut Wait> {
        let others = self.rare.as_mut();
        let others = others.into_iter().flat_map(|r| r.more.iter_mut().chain(&mut r.results));
        self.first.iter_mut().chain(others)
    }

    /// The waits that it is parked on.
    pub(crate) fn parked(&self) -> impl Iterator<Item = &Wait> {
        self.waits().filter(|wait| wait.on.is_parked())
    }
}
