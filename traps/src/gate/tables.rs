//! The tables of a gate: tickets in their slots, and what is filed.
//!
//! Hands things out to be dropped; drops nothing foreign itself.

use std::mem;
use std::num::NonZeroU64;
use std::task::Waker;

use crate::interrupt::Interrupt;
use crate::protocol::{Filed, Post, ScopeId, TaskRef, Ticket, TrapResult};

/// One ticket: who filed it, and its result once there is one.
pub(super) struct Slot {
    pub(super) serial: NonZeroU64,
    pub(super) epoch: u32,
    pub(super) task: TaskRef,
    pub(super) scope: ScopeId,
    pub(super) state: State,
    /// A waker other than the task's own (a combinator's), to be called with the result.
    pub(super) waker: Option<Waker>,
}

pub(super) enum State {
    /// Not in use; the next free slot.
    Free(u32),
    /// The kernel has not looked at it yet.
    Filed,
    /// The kernel keeps it.
    Parked,
    /// Its future is gone, the kernel has yet to hear of it.
    Withdrawn,
    /// To be read.
    Done(TrapResult),
}

pub(super) const END: u32 = u32::MAX;

impl Slot {
    /// A free slot that is in no list.
    pub(super) fn unused() -> Slot {
        let serial = NonZeroU64::MAX;
        let task = TaskRef { index: END, epoch: 0, serial };
        let scope = ScopeId { index: END, epoch: 0, serial };
        Slot { serial, epoch: 0, task, scope, state: State::Free(END), waker: None }
    }
}

/// The tables of a gate.
pub(super) struct Tables {
    pub(super) slots: Vec<Slot>,
    pub(super) free: u32,
    /// For the kernel that runs, in the order in which it was filed.
    pub(super) filed: Vec<Filed>,
    /// For kernels of this thread that do not run now.
    pub(super) elsewhere: Vec<(u32, Post)>,
    /// Kernels of this thread that exist.
    pub(super) kernels: Vec<u32>,
    pub(super) free_handles: Vec<u32>,
    pub(super) handles: u32,
    /// Scopes that fired around a wait on a bare waker.
    pub(super) bare: Vec<(ScopeId, Interrupt)>,
}

impl Tables {
    pub(super) const fn new() -> Tables {
        Tables {
            slots: Vec::new(),
            free: END,
            filed: Vec::new(),
            elsewhere: Vec::new(),
            kernels: Vec::new(),
            free_handles: Vec::new(),
            handles: 0,
            bare: Vec::new(),
        }
    }

    /// Takes a slot out of the free list, or makes one.
    pub(super) fn reserve(&mut self) -> u32 {
        let index = self.free;
        if index == END {
            let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 tickets");
            self.slots.push(Slot::unused());
            return index;
        }
        let State::Free(next) = self.slots[index as usize].state else {
            unreachable!("the free list holds free slots")
        };
        self.free = next;
        index
    }

    #[inline]
    pub(super) fn live(&mut self, ticket: Ticket) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(ticket.index as usize)?;
        (slot.serial == ticket.serial && !matches!(slot.state, State::Free(_))).then_some(slot)
    }

    /// Frees a slot and hands out what was in it, to be dropped outside.
    #[inline]
    pub(super) fn free(&mut self, index: u32) -> (State, Option<Waker>) {
        let slot = &mut self.slots[index as usize];
        let state = mem::replace(&mut slot.state, State::Free(self.free));
        self.free = index;
        (state, slot.waker.take())
    }

    /// Queues a post; gives it back if its kernel is gone.
    pub(super) fn post(&mut self, running: u32, post: Post) -> Option<Post> {
        let epoch = post.epoch().unwrap_or(running);
        if epoch == running && running != 0 {
            self.filed.push(Filed::Post(post));
        } else if self.kernels.contains(&epoch) {
            self.elsewhere.push((epoch, post));
        } else {
            return Some(post);
        }
        None
    }
}
