//! What a gate keeps of one ticket, in as few bytes as it can: each task has such a slot, its home,
//! as long as there is a kernel.
//!
//! What few tickets have lies aside: the waker of a combinator, and a result that is more than that
//! the request is done.

use std::mem;
use std::num::NonZeroU64;

use crate::protocol::ScopeId;

/// One ticket: who filed it, and how far it has come. Its kernel is the ticket's.
pub(super) struct Slot {
    pub(super) serial: NonZeroU64,
    /// Who polls its future: the serial number of that task.
    pub(super) task: NonZeroU64,
    scope_serial: NonZeroU64,
    scope_index: u32,
    pub(super) state: State,
}

impl Slot {
    /// A free slot that is in no list.
    pub(super) fn unused() -> Slot {
        let serial = NonZeroU64::MAX;
        let (task, scope_serial, scope_index) = (serial, serial, NOWHERE);
        Slot { serial, task, scope_serial, scope_index, state: State::free(NOWHERE) }
    }

    #[inline]
    pub(super) fn new(serial: NonZeroU64, task: NonZeroU64, scope: ScopeId, state: State) -> Slot {
        let ScopeId { index: scope_index, serial: scope_serial, .. } = scope;
        Slot { serial, task, scope_serial, scope_index, state }
    }

    /// Whether that task polls its future, in that scope.
    #[inline]
    pub(super) fn is_of(&self, task: NonZeroU64, scope: ScopeId) -> bool {
        let same = self.scope_serial == scope.serial && self.scope_index == scope.index;
        same && self.task == task
    }

    #[inline]
    pub(super) fn set_owner(&mut self, task: NonZeroU64, scope: ScopeId) {
        self.task = task;
        (self.scope_index, self.scope_serial) = (scope.index, scope.serial);
    }

    /// The scope in which its future is polled, in the kernel of that number.
    pub(super) fn scope(&self, epoch: u32) -> ScopeId {
        ScopeId { index: self.scope_index, epoch, serial: self.scope_serial }
    }
}

/// No place: the end of a list, or nothing aside.
pub(super) const NOWHERE: u32 = (1 << 29) - 1;

/// How far a ticket has come, and a place: that of the next free slot, of the waker that is to be
/// called, or of the result. In one word, for which an `enum` would take two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct State(u32);

impl State {
    const KINDS: u32 = !NOWHERE;
    const FREE: u32 = 0;
    const FILED: u32 = 1 << 29;
    const PARKED: u32 = 2 << 29;
    const KEPT: u32 = 3 << 29;

    /// The kernel has not looked at it yet.
    pub(super) const FILED_HERE: State = State(State::FILED | NOWHERE);
    /// The kernel keeps it.
    pub(super) const PARKED_HERE: State = State(State::PARKED | NOWHERE);
    /// Its future is gone, the kernel has yet to hear of it.
    pub(super) const WITHDRAWN: State = State(4 << 29 | NOWHERE);
    /// To be read: the request is done, and there is nothing to add.
    pub(super) const DONE: State = State(5 << 29 | NOWHERE);

    /// Not in use.
    #[inline]
    pub(super) const fn free(next: u32) -> State {
        State(State::FREE | next)
    }

    /// To be read.
    #[inline]
    pub(super) const fn kept(result: u32) -> State {
        State(State::KEPT | result)
    }

    #[inline]
    const fn kind(self) -> u32 {
        self.0 & State::KINDS
    }

    #[inline]
    const fn place(self) -> u32 {
        self.0 & NOWHERE
    }

    #[inline]
    pub(super) fn is_free(self) -> bool {
        self.kind() == State::FREE
    }

    /// The slot that follows it in the free list.
    #[inline]
    pub(super) fn next_free(self) -> u32 {
        debug_assert!(self.is_free(), "the free list holds free slots");
        self.place()
    }

    #[inline]
    pub(super) fn is_filed(self) -> bool {
        self.kind() == State::FILED
    }

    /// Whether the kernel has yet to say something.
    #[inline]
    pub(super) fn is_waiting(self) -> bool {
        self.kind() == State::FILED || self.kind() == State::PARKED
    }

    /// The same, now that the kernel keeps it.
    #[inline]
    pub(super) fn parked(self) -> State {
        debug_assert!(self.is_waiting(), "who has a result does not wait");
        State(State::PARKED | self.place())
    }

    #[inline]
    pub(super) fn is_done(self) -> bool {
        self == State::DONE || self.kind() == State::KEPT
    }

    /// Where its result is, if that is one to be kept.
    #[inline]
    pub(super) fn result(self) -> Option<u32> {
        (self.kind() == State::KEPT).then_some(self.place())
    }

    /// Where the waker is that is to be called with the result.
    #[inline]
    pub(super) fn waker(self) -> Option<u32> {
        (self.is_waiting() && self.place() != NOWHERE).then_some(self.place())
    }

    /// The same with that waker, or none.
    #[inline]
    pub(super) fn with_waker(self, waker: Option<u32>) -> State {
        debug_assert!(self.is_waiting(), "nobody waits for what is over");
        State(self.kind() | waker.unwrap_or(NOWHERE))
    }
}

/// What lies aside, each at a place that is used again.
pub(super) struct Aside<T> {
    places: Vec<Place<T>>,
    free: u32,
}

enum Place<T> {
    /// The next free one.
    Free(u32),
    Used(T),
}

impl<T> Aside<T> {
    pub(super) const fn new() -> Aside<T> {
        Aside { places: Vec::new(), free: NOWHERE }
    }

    #[inline]
    pub(super) fn put(&mut self, thing: T) -> u32 {
        let index = self.free;
        let Some(place) = self.places.get_mut(index as usize) else { return self.add(thing) };
        if let Place::Free(next) = *place {
            self.free = next;
        }
        // What stood there has nothing to drop.
        mem::forget(mem::replace(place, Place::Used(thing)));
        index
    }

    #[cold]
    fn add(&mut self, thing: T) -> u32 {
        let index = u32::try_from(self.places.len()).ok().filter(|index| *index < NOWHERE);
        self.places.push(Place::Used(thing));
        index.expect("fewer than 2^29 tickets")
    }

    /// Takes it, which is there.
    #[inline]
    pub(super) fn take(&mut self, index: u32) -> T {
        let next = mem::replace(&mut self.free, index);
        match mem::replace(&mut self.places[index as usize], Place::Free(next)) {
            Place::Used(thing) => thing,
            Place::Free(_) => unreachable!("a state names what is there"),
        }
    }

    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        match self.places.get_mut(index as usize)? {
            Place::Used(thing) => Some(thing),
            Place::Free(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sleeping task pays for one: a larger one says why, in `benches/counts.txt`.
    #[test]
    fn what_a_gate_keeps_of_a_ticket_does_not_grow() {
        assert_eq!(size_of::<Slot>(), 32);
    }

    #[test]
    fn a_place_aside_is_used_again() {
        let mut aside = Aside::new();
        let (first, second) = (aside.put("a"), aside.put("b"));
        assert_eq!((aside.take(first), aside.get_mut(second)), ("a", Some(&mut "b")));
        assert_eq!((aside.put("c"), aside.put("d")), (first, 2));
        assert_eq!([second, first, 2].map(|place| aside.take(place)), ["b", "c", "d"]);
        assert_eq!((aside.put("e"), aside.places.len()), (2, 3));
    }
}
