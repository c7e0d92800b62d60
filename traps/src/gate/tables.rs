//! The tables of a gate: tickets in their slots, and what is filed.
//!
//! Hands things out to be dropped; drops nothing foreign itself.

use std::mem;
use std::num::NonZeroU64;
use std::task::Waker;

use super::Completion;
use super::slot::{Aside, NOWHERE, Slot, State};
use crate::interrupt::Interrupt;
use crate::protocol::{Answer, Filed, HOME, Post, ScopeId, TaskRef, Ticket, TrapResult};

/// No slot: what a register has for one that it does not need yet.
pub(super) const END: u32 = u32::MAX;

/// Whether it is the request of that ticket.
pub(super) fn is_request_of(filed: &Filed, wanted: Ticket) -> bool {
    matches!(filed, Filed::Request { ticket, .. } if *ticket == wanted)
}

/// Whether it is no more than that the request is done: then there is nothing in it to drop.
#[inline]
pub(super) fn is_unit(result: &TrapResult) -> bool {
    matches!(result, Ok(Answer::Unit))
}

/// Lays a result down, if there is anything in it; the state of its slot.
#[inline(always)]
fn lay(results: &mut Aside<TrapResult>, result: TrapResult) -> State {
    if is_unit(&result) {
        mem::forget(result);
        return State::DONE;
    }
    State::kept(results.put(result))
}

/// What was in a slot that is free now, to be dropped outside.
pub(super) type Freed = (Option<Waker>, Option<TrapResult>);

/// Where slots are.
struct Places {
    /// By place, which a free list hands out.
    slots: Vec<Slot>,
    /// Beside each of these: of which kernel it was when it was used last.
    epochs: Vec<u32>,
    free: u32,
    /// By task: those of the kernel that runs, or ran last.
    homes: Vec<Slot>,
    at_home: u32,
    /// Those of other kernels of this thread.
    away: Vec<(u32, Vec<Slot>)>,
}

impl Places {
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

    #[inline]
    fn live(&mut self, ticket: Ticket) -> Option<&mut Slot> {
        let slot = self.slot(ticket.index, ticket.epoch)?;
        (slot.serial == ticket.serial && !slot.state.is_free()).then_some(slot)
    }

    #[cold]
    fn make_homes(&mut self, place: usize) {
        self.homes.resize_with(place + 1, Slot::unused);
    }

    /// Frees a slot that is live; what it was.
    #[inline]
    fn free(&mut self, ticket: Ticket) -> State {
        let next = self.free;
        let slot = self.slot(ticket.index, ticket.epoch).expect("a live ticket has a slot");
        let state = mem::replace(&mut slot.state, State::free(next));
        if ticket.index & HOME == 0 {
            self.free = ticket.index;
        }
        state
    }

    fn bring_home(&mut self, epoch: u32) {
        if self.at_home != epoch {
            let place = self.away.iter().position(|(kernel, _)| *kernel == epoch);
            let homes = place.map_or_else(Vec::new, |place| self.away.swap_remove(place).1);
            self.away.push((self.at_home, mem::replace(&mut self.homes, homes)));
            self.at_home = epoch;
        }
    }

    /// Takes out the homes of a kernel's tasks.
    fn take_homes(&mut self, epoch: u32) -> Vec<Slot> {
        if self.at_home == epoch {
            self.bring_home(0);
        }
        let place = self.away.iter().position(|(kernel, _)| *kernel == epoch);
        place.map_or_else(Vec::new, |place| self.away.swap_remove(place).1)
    }

    fn used(&self, epoch: u32) -> usize {
        let used = |slot: &&Slot| !slot.state.is_free();
        let here = self.slots.iter().zip(&self.epochs).filter(|(_, of)| **of == epoch);
        let here = here.map(|(slot, _)| slot).filter(used).count();
        let away = self.away.iter().find(|(kernel, _)| *kernel == epoch).map(|(_, homes)| homes);
        let homes = if self.at_home == epoch { Some(&self.homes) } else { away };
        here + homes.map_or(0, |homes| homes.iter().filter(used).count())
    }
}

/// The tables of a gate.
pub(super) struct Tables {
    places: Places,
    results: Aside<TrapResult>,
    /// Wakers other than the task's own (a combinator's), to be called with a result.
    wakers: Aside<Waker>,
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
            places: Places {
                slots: Vec::new(),
                epochs: Vec::new(),
                free: NOWHERE,
                homes: Vec::new(),
                at_home: 0,
                away: Vec::new(),
            },
            results: Aside::new(),
            wakers: Aside::new(),
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
        let places = &mut self.places;
        let index = places.free;
        if index == NOWHERE {
            let index = u32::try_from(places.slots.len()).ok().filter(|index| *index < NOWHERE);
            places.slots.push(Slot::unused());
            places.epochs.push(0);
            return index.expect("fewer than 2^29 tickets");
        }
        places.free = places.slots[index as usize].state.next_free();
        index
    }

    /// Whether nothing is kept in a task's home.
    pub(super) fn is_home_free(&self, task: u32) -> bool {
        self.places.homes.get(task as usize).is_none_or(|slot| slot.state.is_free())
    }

    /// Puts a ticket into its slot, which is free.
    #[inline(always)]
    pub(super) fn fill(&mut self, ticket: Ticket, slot: Slot) {
        let places = &mut self.places;
        let place = (ticket.index & !HOME) as usize;
        if ticket.index & HOME == 0 {
            places.epochs[place] = ticket.epoch;
        } else if place >= places.homes.len() {
            places.make_homes(place);
        }
        let earlier = places.slot(ticket.index, ticket.epoch).expect("a slot was reserved for it");
        debug_assert!(earlier.state.is_free(), "a slot keeps one ticket");
        *earlier = slot;
    }

    /// Lays a result down; the state of its slot.
    #[inline]
    pub(super) fn keep(&mut self, result: TrapResult) -> State {
        lay(&mut self.results, result)
    }

    /// What a slot of that state, which is freed, had to be read.
    #[inline]
    pub(super) fn read(&mut self, state: State) -> TrapResult {
        match state.result() {
            Some(place) => self.results.take(place),
            None => Ok(Answer::Unit),
        }
    }

    /// Frees the home of a task of the kernel that runs if a result lies there; what it was.
    #[inline]
    pub(super) fn take_home(&mut self, task: u32, serial: NonZeroU64) -> Option<State> {
        let slot = self.places.homes.get_mut(task as usize)?;
        if slot.serial != serial || !slot.state.is_done() {
            return None;
        }
        Some(mem::replace(&mut slot.state, State::free(NOWHERE)))
    }

    /// Takes the result of a ticket that lies in such a home if it is no more than that the request
    /// is done; whether it was that.
    #[inline]
    pub(super) fn take_home_done(&mut self, ticket: Ticket) -> bool {
        let home = self.places.homes.get_mut((ticket.index & !HOME) as usize);
        let Some(slot) = home else { return false };
        let done = slot.serial == ticket.serial && slot.state == State::DONE;
        if done {
            slot.state = State::free(NOWHERE);
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
        if place >= self.places.homes.len() {
            self.places.make_homes(place);
        }
        let home = &mut self.places.homes[place];
        debug_assert!(home.state.is_free(), "a home keeps one ticket");
        *home = Slot::new(serial, task.serial, scope, state);
    }

    #[inline]
    pub(super) fn live(&mut self, ticket: Ticket) -> Option<&mut Slot> {
        self.places.live(ticket)
    }

    /// The result of a ticket, if there is one; it frees the slot.
    #[inline]
    pub(super) fn take_done(&mut self, ticket: Ticket) -> Option<TrapResult> {
        let slot = self.places.live(ticket)?;
        if !slot.state.is_done() {
            return None;
        }
        let state = self.places.free(ticket);
        Some(self.read(state))
    }

    /// The ticket at a place that is in use.
    pub(super) fn ticket_at(&mut self, index: u32, epoch: u32) -> Option<Ticket> {
        let slot = self.places.slot(index, epoch).filter(|slot| !slot.state.is_free())?;
        Some(Ticket { index, epoch, serial: slot.serial })
    }

    /// Whether the future of the ticket at that place is gone.
    pub(super) fn is_withdrawn(&mut self, index: u32, epoch: u32) -> bool {
        let slot = self.places.slot(index, epoch);
        slot.is_none_or(|slot| slot.state == State::WITHDRAWN)
    }

    /// Lays down the result of the ticket at that place, if it waits for one.
    #[inline(always)]
    pub(super) fn complete(&mut self, index: u32, epoch: u32, result: TrapResult) -> Completion {
        let slot = self.places.slot(index, epoch);
        let Some(slot) = slot.filter(|slot| slot.state.is_waiting()) else {
            return Completion::Withdrawn(result);
        };
        let waker = slot.state.waker();
        slot.state = lay(&mut self.results, result);
        Completion::Ready(waker.map(|place| self.wakers.take(place)))
    }

    /// Puts another result in place of one that was not read yet; gives the old one back.
    pub(super) fn replace(
        &mut self,
        ticket: Ticket,
        result: TrapResult,
    ) -> Result<TrapResult, TrapResult> {
        let state = self.places.live(ticket).map(|slot| slot.state);
        let Some(state) = state.filter(|state| state.is_done()) else { return Err(result) };
        let old = self.read(state);
        let fresh = self.keep(result);
        if let Some(slot) = self.places.live(ticket) {
            slot.state = fresh;
        }
        Ok(old)
    }

    /// The ticket's future is gone, and its kernel has yet to hear of it; the waker that nobody is
    /// to call any more.
    pub(super) fn withdraw(&mut self, ticket: Ticket) -> Option<Waker> {
        let slot = self.places.live(ticket)?;
        let waker = slot.state.waker();
        slot.state = State::WITHDRAWN;
        waker.map(|place| self.wakers.take(place))
    }

    /// Lets a ticket wake that waker from now on, or only the task's own; gives back the one that
    /// is of no use.
    pub(super) fn set_waker(&mut self, ticket: Ticket, fresh: Option<Waker>) -> Option<Waker> {
        let slot = self.places.live(ticket).filter(|slot| slot.state.is_waiting());
        let Some(slot) = slot else { return fresh };
        match (slot.state.waker(), fresh) {
            (Some(place), Some(fresh)) => match self.wakers.get_mut(place) {
                Some(known) if !known.will_wake(&fresh) => Some(mem::replace(known, fresh)),
                _ => Some(fresh),
            },
            (Some(place), None) => {
                slot.state = slot.state.with_waker(None);
                Some(self.wakers.take(place))
            }
            (None, Some(fresh)) => {
                slot.state = slot.state.with_waker(Some(self.wakers.put(fresh)));
                None
            }
            (None, None) => None,
        }
    }

    /// Lays a waker down; the state of a slot whose request was just filed.
    pub(super) fn filed_with(&mut self, waker: Option<Waker>) -> State {
        State::FILED_HERE.with_waker(waker.map(|waker| self.wakers.put(waker)))
    }

    /// Frees the slot of a ticket that is live, and hands out what was in it, to be dropped
    /// outside.
    #[inline]
    pub(super) fn free(&mut self, ticket: Ticket) -> Freed {
        let state = self.places.free(ticket);
        self.empty(state)
    }

    /// What a slot of that state held.
    fn empty(&mut self, state: State) -> Freed {
        let waker = state.waker().map(|place| self.wakers.take(place));
        (waker, state.result().map(|place| self.results.take(place)))
    }

    /// Brings the homes of a kernel's tasks in, and those of the one before it out.
    pub(super) fn bring_home(&mut self, epoch: u32) {
        self.places.bring_home(epoch);
    }

    /// Takes out all that a kernel's tickets hold.
    pub(super) fn close(&mut self, epoch: u32) -> Vec<Freed> {
        let mut freed = Vec::new();
        for index in 0..self.places.slots.len() {
            let Slot { serial, state, .. } = self.places.slots[index];
            if self.places.epochs[index] == epoch && !state.is_free() {
                let index = u32::try_from(index).expect("a slot's index");
                freed.push(self.free(Ticket { index, epoch, serial }));
            }
        }
        for home in self.places.take_homes(epoch) {
            freed.push(self.empty(home.state));
        }
        freed
    }

    /// Tickets of that kernel that are in use.
    pub(super) fn used(&self, epoch: u32) -> usize {
        self.places.used(epoch)
    }

    /// Queues a post; gives it back if its kernel is gone.
    pub(super) fn post(&mut self, running: u32, post: Post) -> Option<Post> {
        let epoch = post.epoch().unwrap_or(running);
        if epoch == running && running != 0 {
            self.filed.push(Filed::Post(post));
        } else if self.kernels.contains(&epoch) {
            self.elsewhere.push((epoch, post));
        } else {
            self.refuse(&post);
            return Some(post);
        }
        None
    }
}
