//! The tables of a gate: tickets in their slots, and what is filed.
//!
//! Hands things out to be dropped; drops nothing foreign itself.

use std::mem;
use std::num::NonZeroU64;
use std::task::Waker;

use crate::interrupt::Interrupt;
use crate::protocol::{Answer, Filed, HOME, Post, ScopeId, TaskRef, Ticket, TrapResult};

/// One ticket: who filed it, and its result once there is one.
pub(super) struct Slot {
    pub(super) serial: NonZeroU64,
    /// Who polls its future; its epoch is the ticket's.
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
        Slot { serial, task, scope, state: State::Free(END), waker: None }
    }
}

/// Whether it is the request of that ticket.
pub(super) fn is_request_of(filed: &Filed, wanted: Ticket) -> bool {
    matches!(filed, Filed::Request { ticket, .. } if *ticket == wanted)
}

/// The tables of a gate.
pub(super) struct Tables {
    /// By place, which a free list hands out.
    pub(super) slots: Vec<Slot>,
    free: u32,
    /// By task: those of the kernel that runs, or ran last.
    homes: Vec<Slot>,
    at_home: u32,
    /// Those of other kernels of this thread.
    away: Vec<(u32, Vec<Slot>)>,
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
            homes: Vec::new(),
            at_home: 0,
            away: Vec::new(),
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
    fn slot(&mut self, index: u32, epoch: u32) -> Option<&mut Slot> {
        if index & HOME == 0 {
            return self.slots.get_mut(index as usize);
        }
        if epoch == self.at_home {
            return self.homes.get_mut((index & !HOME) as usize);
        }
        self.slot_away(index, epoch)
    }

    #[cold]
    fn slot_away(&mut self, index: u32, epoch: u32) -> Option<&mut Slot> {
        let (_, homes) = self.away.iter_mut().find(|(kernel, _)| *kernel == epoch)?;
        homes.get_mut((index & !HOME) as usize)
    }

    /// Whether nothing is kept in a task's home.
    pub(super) fn is_home_free(&self, task: u32) -> bool {
        self.homes.get(task as usize).is_none_or(|slot| matches!(slot.state, State::Free(_)))
    }

    /// Puts a ticket into its slot, which is free.
    #[inline(always)]
    pub(super) fn fill(&mut self, ticket: Ticket, slot: Slot) {
        let place = (ticket.index & !HOME) as usize;
        if ticket.index & HOME != 0 && place >= self.homes.len() {
            self.make_homes(place);
        }
        let earlier = self.slot(ticket.index, ticket.epoch).expect("a slot was reserved for it");
        debug_assert!(matches!(earlier.state, State::Free(_)), "a slot keeps one ticket");
        mem::forget(mem::replace(earlier, slot));
    }

    /// The result that lies in the home of a task of the kernel that runs.
    #[inline]
    pub(super) fn take_home(&mut self, task: u32, serial: NonZeroU64) -> Option<TrapResult> {
        let slot = self.homes.get_mut(task as usize)?;
        if slot.serial != serial || !matches!(slot.state, State::Done(_)) {
            return None;
        }
        match mem::replace(&mut slot.state, State::Free(END)) {
            State::Done(result) => Some(result),
            _ => unreachable!("looked at above"),
        }
    }

    /// Takes the result of a ticket that lies in such a home if it is no more than that the request
    /// is done; whether it was that.
    #[inline]
    pub(super) fn take_home_done(&mut self, ticket: Ticket) -> bool {
        let Some(slot) = self.homes.get_mut((ticket.index & !HOME) as usize) else { return false };
        let done =
            slot.serial == ticket.serial && matches!(slot.state, State::Done(Ok(Answer::Unit)));
        if done {
            mem::forget(mem::replace(&mut slot.state, State::Free(END)));
        }
        done
    }

    /// Puts something of the kernel that runs into a task's home, which is free.
    #[inline(always)]
    pub(super) fn move_home(
        &mut self,
        task: TaskRef,
        scope: ScopeId,
        serial: NonZeroU64,
        state: State,
    ) {
        let place = task.index as usize;
        if place >= self.homes.len() {
            self.make_homes(place);
        }
        let home = &mut self.homes[place];
        debug_assert!(matches!(home.state, State::Free(_)), "a home keeps one ticket");
        debug_assert!(home.waker.is_none(), "a free slot has no waker");
        home.serial = serial;
        home.task = task;
        home.scope = scope;
        // What stood there has nothing to drop.
        mem::forget(mem::replace(&mut home.state, state));
    }

    #[cold]
    fn make_homes(&mut self, place: usize) {
        self.homes.resize_with(place + 1, Slot::unused);
    }

    #[inline]
    pub(super) fn live(&mut self, ticket: Ticket) -> Option<&mut Slot> {
        let slot = self.slot(ticket.index, ticket.epoch)?;
        (slot.serial == ticket.serial && !matches!(slot.state, State::Free(_))).then_some(slot)
    }

    /// The result of a ticket of that kernel, if there is one; it frees the slot.
    #[inline]
    pub(super) fn take_done(&mut self, ticket: Ticket, epoch: u32) -> Option<TrapResult> {
        let next = self.free;
        let slot = self.slot(ticket.index, ticket.epoch)?;
        let is_done = matches!(slot.state, State::Done(_));
        if slot.serial != ticket.serial || !is_done || slot.task.epoch != epoch {
            return None;
        }
        let state = mem::replace(&mut slot.state, State::Free(next));
        if ticket.index & HOME == 0 {
            self.free = ticket.index;
        }
        match state {
            State::Done(result) => Some(result),
            _ => unreachable!("looked at above"),
        }
    }

    /// Frees the slot of a ticket that is live, and hands out what was in it, to be dropped
    /// outside.
    #[inline]
    pub(super) fn free(&mut self, ticket: Ticket) -> (State, Option<Waker>) {
        let next = self.free;
        let slot = self.slot(ticket.index, ticket.epoch).expect("a live ticket has a slot");
        let freed = (mem::replace(&mut slot.state, State::Free(next)), slot.waker.take());
        if ticket.index & HOME == 0 {
            self.free = ticket.index;
        }
        freed
    }

    /// Brings the homes of a kernel's tasks in, and those of the one before it out.
    pub(super) fn bring_home(&mut self, epoch: u32) {
        if self.at_home != epoch {
            let place = self.away.iter().position(|(kernel, _)| *kernel == epoch);
            let homes = place.map_or_else(Vec::new, |place| self.away.swap_remove(place).1);
            self.away.push((self.at_home, mem::replace(&mut self.homes, homes)));
            self.at_home = epoch;
        }
    }

    /// Takes out all that a kernel's tickets hold.
    pub(super) fn close(&mut self, epoch: u32) -> (Vec<(State, Option<Waker>)>, Vec<Slot>) {
        let mut freed = Vec::new();
        for index in 0..self.slots.len() {
            let Slot { task, serial, ref state, .. } = self.slots[index];
            if task.epoch == epoch && !matches!(state, State::Free(_)) {
                let index = u32::try_from(index).expect("a slot's index");
                freed.push(self.free(Ticket { index, epoch, serial }));
            }
        }
        if self.at_home == epoch {
            self.bring_home(0);
        }
        let place = self.away.iter().position(|(kernel, _)| *kernel == epoch);
        (freed, place.map_or_else(Vec::new, |place| self.away.swap_remove(place).1))
    }

    /// Tickets of that kernel that are in use.
    pub(super) fn used(&self, epoch: u32) -> usize {
        let used = |slot: &&Slot| !matches!(slot.state, State::Free(_));
        let here = self.slots.iter().filter(|slot| slot.task.epoch == epoch).filter(used).count();
        let away = self.away.iter().find(|(kernel, _)| *kernel == epoch).map(|(_, homes)| homes);
        let homes = if self.at_home == epoch { Some(&self.homes) } else { away };
        here + homes.map_or(0, |homes| homes.iter().filter(used).count())
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
