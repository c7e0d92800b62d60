//! The timer heap: sleeps, the deadlines of timeout scopes, and two timers of the kernel's own.
//!
//! Exact: a timer is never early, and late only if the machine is late. Setting or cancelling a
//! timer takes O(log timers), and a cancelled timer leaves nothing behind. This module knows
//! nothing of tasks: a timer names its owner, and the owner stores the number of the timer.

use ::traps::core::names::{ScopeId, Ticket};
use ::traps::time::Time;

/// What a timer is for. Timers with the same deadline fire in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// A sleep.
    Sleep(Ticket),
    /// The deadline of a scope.
    Scope(ScopeId),
    /// Something of a service.
    Service(Service),
    /// It has fired or was cancelled.
    Nobody,
}

/// What a service sets a timer for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Service {
    /// A new attempt to start jobs that no thread took.
    Retry,
    /// The end of a phase of a shutdown.
    Phase,
}

/// The number of a timer. It is used again after the timer has fired or was cancelled.
pub(crate) type TimerId = u32;

/// A timer in the heap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry {
    at: Time,
    /// Orders timers with the same deadline: sleeps before timeouts, then in the order of their
    /// creation.
    rank: u64,
    slot: u32,
}

/// Where a timer is.
#[derive(Clone, Copy, Debug)]
struct Slot {
    position: u32,
    owner: Owner,
}

/// All timers of a kernel.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// A binary heap, with the next timer to fire on top.
    heap: Vec<Entry>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// How many sleeps there were.
    sleeps: u64,
}

impl Timers {
    /// Sets a timer. `order` orders timers of the same deadline and kind: the smaller fires first.
    pub(crate) fn set(&mut self, at: Time, owner: Owner, order: u64) -> TimerId {
        let kind = match owner {
            Owner::Sleep(_) => 0,
            Owner::Scope(_) => 1,
            Owner::Service(Service::Retry) => 2,
            Owner::Service(Service::Phase) | Owner::Nobody => 3,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { position: 0, owner });
            u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 timers")
        });
        self.slots[slot as usize].owner = owner;
        let entry = Entry { at, rank: kind << 62 | order, slot };
        self.heap.push(entry);
        self.rise(self.heap.len() - 1, entry);
        slot
    }

    /// The order of the next sleep.
    pub(crate) fn next_order(&mut self) -> u64 {
        self.sleeps += 1;
        self.sleeps
    }

    /// Cancels a timer, if it is still of that owner.
    pub(crate) fn cancel_of(&mut self, timer: TimerId, owner: Owner) {
        if self.slots[timer as usize].owner == owner {
            self.cancel(timer);
        }
    }

    /// Cancels a timer.
    pub(crate) fn cancel(&mut self, timer: TimerId) {
        self.remove(self.slots[timer as usize].position as usize);
    }

    /// When the next timer fires.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.first().map(|entry| entry.at).filter(|at| *at != Time::NEVER)
    }

    /// When this timer fires.
    pub(crate) fn at(&self, timer: TimerId) -> Time {
        self.heap[self.slots[timer as usize].position as usize].at
    }

    /// Removes the first timer that is due at `now`; returns its deadline and owner.
    #[inline]
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, Owner)> {
        let Entry { at, slot, .. } = *self.heap.first().filter(|entry| entry.at <= now)?;
        if at == Time::NEVER {
            return None;
        }
        let owner = self.slots[slot as usize].owner;
        self.remove(0);
        Some((at, owner))
    }

    /// How many timers of tasks are set that will fire.
    pub(crate) fn count_of_tasks(&self) -> usize {
        let of_service = |entry: &&Entry| {
            matches!(self.slots[entry.slot as usize].owner, Owner::Service(Service::Phase))
        };
        match self.next() {
            Some(_) => self.heap.len() - self.heap.iter().filter(of_service).count(),
            None => 0,
        }
    }

    /// How many timers are set.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    fn remove(&mut self, position: usize) {
        let removed = self.heap.swap_remove(position);
        self.slots[removed.slot as usize].owner = Owner::Nobody;
        self.free.push(removed.slot);
        if let Some(&moved) = self.heap.get(position) {
            let position = self.rise(position, moved);
            self.sink(position, moved);
        }
    }

    fn put(&mut self, position: usize, entry: Entry) {
        self.slots[entry.slot as usize].position = position as u32;
        self.heap[position] = entry;
    }

    /// Puts `entry` at `position` or nearer to the top; returns its position.
    fn rise(&mut self, mut position: usize, entry: Entry) -> usize {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(position, self.heap[parent]);
            position = parent;
        }
        self.put(position, entry);
        position
    }

    /// Puts `entry` at `position` or further from the top.
    fn sink(&mut self, mut position: usize, entry: Entry) {
        loop {
            let children = self.heap.iter().enumerate().skip(2 * position + 1).take(2);
            match children.min_by_key(|(_, child)| **child) {
                Some((child, &first)) if first < entry => {
                    self.put(position, first);
                    position = child;
                }
                _ => break,
            }
        }
        self.put(position, entry);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn us(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    fn pop_all(timers: &mut Timers, now: u64) -> Vec<(u64, Owner)> {
        let pop = || timers.pop(us(now)).map(|(at, owner)| (at.as_micros(), owner));
        std::iter::from_fn(pop).collect()
    }

    #[test]
    fn ties_go_to_sleeps_before_timeouts_and_then_by_order_of_opening() {
        let mut timers = Timers::default();
        timers.set(us(5), Owner::Service(Service::Phase), 0);
        timers.set(us(5), Owner::Scope(ScopeId::new(1, 0)), 2);
        timers.set(us(5), Owner::Scope(ScopeId::new(9, 0)), 1);
        timers.set(us(5), Owner::Sleep(Ticket::new(4, 0)), 7);
        timers.set(us(4), Owner::Scope(ScopeId::new(2, 0)), 9);
        let order = [
            Owner::Scope(ScopeId::new(2, 0)),
            Owner::Sleep(Ticket::new(4, 0)),
            Owner::Scope(ScopeId::new(9, 0)),
            Owner::Scope(ScopeId::new(1, 0)),
        ];
        let fired = pop_all(&mut timers, 5);
        assert_eq!(fired.iter().map(|(_, owner)| *owner).take(4).collect::<Vec<_>>(), order);
        assert_eq!(fired.last(), Some(&(5, Owner::Service(Service::Phase))));
    }

    #[test]
    fn c17_a_cancelled_timer_leaves_nothing_behind() {
        let mut timers = Timers::default();
        timers.set(us(9), Owner::Sleep(Ticket::new(0, 0)), 0);
        for n in 1..10_000 {
            let timer = timers.set(us(n), Owner::Sleep(Ticket::new(1, 0)), n);
            timers.cancel(timer);
        }
        assert_eq!((timers.len(), timers.slots.len(), timers.next()), (1, 2, Some(us(9))));
    }

    #[test]
    fn never_is_not_reached_even_at_the_end_of_time() {
        let mut timers = Timers::default();
        timers.set(Time::NEVER, Owner::Sleep(Ticket::new(0, 0)), 0);
        assert_eq!((timers.next(), timers.pop(Time::NEVER)), (None, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn a_heap_does_what_a_sorted_list_does(
            steps in prop::collection::vec((0..3_u8, 0..40_u64, any::<usize>()), 1..200)
        ) {
            let mut timers = Timers::default();
            let mut list: Vec<(u64, u64, TimerId)> = Vec::new();
            for (order, (step, at, which)) in (0..).zip(steps) {
                match step {
                    0 => {
                        let owner = Owner::Sleep(Ticket::new(0, 0));
                        list.push((at, order, timers.set(us(at), owner, order)));
                    }
                    1 if !list.is_empty() => {
                        let (at, _, timer) = list.swap_remove(which % list.len());
                        prop_assert_eq!(timers.at(timer), us(at));
                        timers.cancel(timer);
                    }
                    _ => {
                        list.sort_unstable_by_key(|(at, order, _)| (*at, *order));
                        let due = list.partition_point(|(due, ..)| *due <= at);
                        let due: Vec<u64> = list.drain(..due).map(|(at, ..)| at).collect();
                        let popped = pop_all(&mut timers, at);
                        prop_assert_eq!(popped.iter().map(|(at, _)| *at).collect::<Vec<_>>(), due);
                    }
                }
                prop_assert_eq!(timers.len(), list.len());
                let soonest = list.iter().map(|(at, ..)| us(*at)).min();
                prop_assert_eq!(timers.next(), soonest);
            }
        }
    }
}
