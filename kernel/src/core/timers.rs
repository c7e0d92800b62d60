//! The timer heap: sleeps, the deadlines of timeout scopes, and two timers of the services.
//!
//! The heap is exact: a timer is never early. It is late only if the machine is late, if a run or a
//! few skipped turns come between, or if the options set a timer slack. An entry names its owner
//! (the wait of a sleep, or a scope), and the owner does not know the place of the entry. So
//! setting a timer is one push, and cancelling one costs nothing: when the wait or the scope has
//! ended, its entry is *stale*. Stale entries are dropped when they reach the top ([`lives`] tells
//! which they are). When half of the heap is stale, it is rebuilt from the other half, so beyond a
//! few (`FEW`), stale entries take at most as much memory as live ones.
//!
//! Most timeouts are set and never reached. The obvious heap removes a cancelled timer at once.
//! That costs two sifts per timeout, and a table of positions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ::traps::Time;
use ::traps::internal::gate::Gate;
use ::traps::internal::records::{Records, Wait};
use ::traps::internal::table::{ScopeId, Ticket};

/// The owner of a timer. Of timers with the same deadline, sleeps fire before scopes, and scopes
/// before services.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Owner {
    /// A sleep.
    Sleep(Ticket),
    /// The deadline of a scope.
    Scope(ScopeId),
    /// A timer of a service.
    Service(ServiceTimer),
}

/// The purpose of a service's timer. A service has at most one timer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum ServiceTimer {
    /// A new attempt to start threads for queued jobs.
    Retry,
    /// The end of a phase of a shutdown.
    Phase,
}

/// Returns whether the owner of a timer still exists: a parked sleep, an open scope, or a service.
#[inline]
pub(crate) fn lives(records: &Records, owner: Owner) -> bool {
    match owner {
        Owner::Sleep(sleep) => records.waits.get(sleep).is_some_and(Wait::is_parked),
        Owner::Scope(scope) => records.is_open(scope),
        Owner::Service(_) => true,
    }
}

/// The number of stale entries up to which the heap is not rebuilt.
const FEW: usize = 16;

/// A timer in the heap. It is small (24 bytes), because each level of a sift moves one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    at: Time,
    /// Orders timers with the same deadline: sleeps before scopes, then in the order of their
    /// creation. No two entries have the same `order`, so the key below never decides.
    order: u64,
    /// The key of the owner: of a scope if `order` has the bit [`SCOPE`], otherwise of a sleep.
    index: u32,
    serial: u32,
}

/// The bit of [`Entry::order`] that is set for scopes.
const SCOPE: u64 = 1 << 63;

impl Entry {
    #[inline]
    pub(crate) fn owner(&self) -> Owner {
        if self.order & SCOPE == 0 {
            Owner::Sleep(Ticket::new(self.index, self.serial))
        } else {
            Owner::Scope(ScopeId::new(self.index, self.serial))
        }
    }
}

/// All timers of a kernel.
#[derive(Debug)]
pub(crate) struct Timers {
    /// The standard heap has the greatest entry on top, hence `Reverse`.
    pub(crate) heap: BinaryHeap<Reverse<Entry>>,
    /// The time at which the timer of each service is due. `NEVER` if it is not set.
    services: [Time; 2],
    /// The number of sleeps so far.
    sleeps: u64,
}

impl Default for Timers {
    fn default() -> Timers {
        // Room for 256, so that a kernel with few timers usually sweeps before its heap grows.
        let heap = BinaryHeap::with_capacity(16 * FEW);
        Timers { heap, services: [Time::NEVER; 2], sleeps: 0 }
    }
}

impl Timers {
    /// Sets the timer of a sleep.
    #[inline]
    pub(super) fn set_sleep(&mut self, at: Time, sleep: Ticket) {
        self.sleeps += 1;
        debug_assert!(self.sleeps < SCOPE, "the highest bit is that of scopes");
        let (index, serial) = (sleep.index, sleep.serial());
        self.heap.push(Reverse(Entry { at, order: self.sleeps, index, serial }));
    }

    /// Sets the timer of a scope. `number` is the number of the scope, which orders scopes with the
    /// same deadline.
    #[inline]
    fn set_scope(&mut self, at: Time, scope: ScopeId, number: u64) {
        debug_assert!(number < SCOPE, "the highest bit is that of scopes");
        let (index, serial) = (scope.index, scope.serial());
        // The highest bit puts scopes behind sleeps of the same deadline: a sleep that ends at the
        // same instant as its timeout succeeds.
        self.heap.push(Reverse(Entry { at, order: SCOPE | number, index, serial }));
    }

    /// Sets the timer of a service, or cancels it with [`Time::NEVER`].
    pub(crate) fn set_service(&mut self, service: ServiceTimer, at: Time) {
        self.services[service as usize] = at;
    }

    /// Returns the time of the next timer whose owner still exists.
    #[inline]
    pub(crate) fn next(&mut self, lives: impl Fn(Owner) -> bool) -> Option<Time> {
        // A stale timer on top would wake the kernel for nothing.
        while let Some(first) = self.heap.peek()
            && !lives(first.0.owner())
        {
            self.heap.pop();
        }
        self.soonest()
    }

    /// Returns the time of the next timer, even if its owner has ended since the last call of
    /// [`next`](Timers::next).
    #[inline]
    pub(crate) fn soonest(&self) -> Option<Time> {
        let soonest = self.first().min(self.services[0]).min(self.services[1]);
        (soonest != Time::NEVER).then_some(soonest)
    }

    /// Removes the first timer that is due at `now`. Returns its deadline and its owner, which may
    /// have ended.
    #[inline]
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, Owner)> {
        let first = self.first();
        let [retry, phase] = self.services;
        let service = if retry <= phase { ServiceTimer::Retry } else { ServiceTimer::Phase };
        // Of equal times, tasks go first, because a service may end the kernel.
        let at = retry.min(phase);
        if first.min(at) > now || first.min(at) == Time::NEVER {
            None
        } else if at < first {
            self.set_service(service, Time::NEVER);
            Some((at, Owner::Service(service)))
        } else {
            self.heap.pop().map(|Reverse(entry)| (first, entry.owner()))
        }
    }

    /// Returns the deadline on top of the heap, stale or not, or [`Time::NEVER`] if the heap is
    /// empty.
    #[inline]
    fn first(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse(entry)| entry.at)
    }

    /// Rebuilds the heap without its stale entries, if they may be more than half of it. `stale` is
    /// the number of owners that have ended since the last rebuild. It is an upper bound of the
    /// stale entries: those that were dropped at the top are still counted.
    #[inline]
    pub(crate) fn sweep(&mut self, stale: usize, lives: impl Fn(Owner) -> bool) -> bool {
        // Half of the heap at least, so that a rebuild costs O(1) for each stale timer.
        let is_time = stale > FEW && stale >= self.heap.len() / 2;
        if is_time {
            self.heap.retain(|Reverse(entry)| lives(entry.owner()));
        }
        is_time
    }

    /// Sets the timers of the scopes that this poll has put on the gate's list, because their
    /// futures pend.
    #[inline]
    pub(super) fn set_new(&mut self, gate: &Gate) {
        while let Some(scope) = gate.take_new_timer() {
            let mut records = gate.records();
            // The scope may have closed in the same poll, or with its task if an earlier poll has
            // panicked and left the list as it was. Its row may still be there, as a link between
            // what it contains and the scope around it.
            if !records.is_open(scope) {
                continue;
            }
            let found = &mut records.scopes[scope.index];
            found.has_timer = true;
            self.set_scope(found.deadline, scope, found.number);
        }
    }

    /// Removes the stale timers from the heap, if there are many.
    #[inline]
    pub(super) fn sweep_stale(&mut self, records: &mut Records) {
        if self.sweep(records.stale_timers, |owner| lives(records, owner)) {
            records.stale_timers = 0;
        }
    }

    /// Returns the time at which the next timer fires.
    #[inline]
    pub(crate) fn next_live(&mut self, records: &mut Records) -> Option<Time> {
        // In bulk, stale entries cost less than one by one at the top.
        self.sweep_stale(records);
        self.next(|owner| lives(records, owner))
    }

    /// Lists the timers of tasks in the order in which they fire. O(timers).
    pub(crate) fn in_order(&self) -> Vec<(Time, Owner)> {
        let mut entries: Vec<Entry> = self.heap.iter().map(|Reverse(entry)| *entry).collect();
        entries.sort_unstable();
        let timers = entries.into_iter().map(|entry| (entry.at, entry.owner()));
        timers.filter(|(at, _)| *at != Time::NEVER).collect()
    }

    /// Returns the number of timers that are set.
    pub(crate) fn len(&self, lives: impl Fn(Owner) -> bool) -> usize {
        let services = self.services.iter().filter(|at| **at != Time::NEVER).count();
        services + self.heap.iter().filter(|Reverse(entry)| lives(entry.owner())).count()
    }

    /// Returns the number of timers that will fire, not counting the timer for the phases of a
    /// shutdown.
    pub(crate) fn count_of_tasks(&self, lives: impl Fn(Owner) -> bool) -> usize {
        let fires = |Reverse(it): &&Reverse<Entry>| it.at != Time::NEVER && lives(it.owner());
        let retry = self.services[ServiceTimer::Retry as usize];
        usize::from(retry != Time::NEVER) + self.heap.iter().filter(fires).count()
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

    fn all(_: Owner) -> bool {
        true
    }

    fn sleep(index: u32) -> Ticket {
        Ticket::new(index, 0)
    }

    #[test]
    fn ties_go_to_sleeps_before_timeouts_and_then_by_order_of_opening() {
        let mut timers = Timers::default();
        timers.set_service(ServiceTimer::Phase, us(5));
        timers.set_service(ServiceTimer::Retry, us(5));
        timers.set_scope(us(5), ScopeId::new(1, 0), 2);
        timers.set_scope(us(5), ScopeId::new(9, 0), 1);
        timers.set_sleep(us(5), sleep(4));
        timers.set_scope(us(4), ScopeId::new(2, 0), 9);
        let order = [
            (4, Owner::Scope(ScopeId::new(2, 0))),
            (5, Owner::Sleep(sleep(4))),
            (5, Owner::Scope(ScopeId::new(9, 0))),
            (5, Owner::Scope(ScopeId::new(1, 0))),
            (5, Owner::Service(ServiceTimer::Retry)),
            (5, Owner::Service(ServiceTimer::Phase)),
        ];
        assert_eq!(pop_all(&mut timers, 5), order);
    }

    #[test]
    fn c17_stale_timers_are_not_waited_for_and_are_at_most_half_of_the_heap() {
        let mut timers = Timers::default();
        let lives = |owner| owner == Owner::Sleep(sleep(0));
        timers.set_sleep(us(9), sleep(0));
        let mut stale = 0;
        for n in 1..10_000 {
            timers.set_sleep(us(n % 20), sleep(1));
            stale += 1;
            if timers.sweep(stale, lives) {
                stale = 0;
            }
            assert!(timers.heap.len() <= FEW + 2);
        }
        assert_eq!((timers.len(lives), timers.next(lives)), (1, Some(us(9))));
    }

    #[test]
    fn never_is_not_reached_even_at_the_end_of_time() {
        let mut timers = Timers::default();
        timers.set_sleep(Time::NEVER, sleep(0));
        assert_eq!((timers.next(all), timers.pop(Time::NEVER)), (None, None));
        assert_eq!((timers.len(all), timers.count_of_tasks(all)), (1, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn a_heap_does_what_a_sorted_list_does(
            steps in prop::collection::vec((0..4_u8, 0..40_u64, any::<usize>()), 1..200)
        ) {
            let mut timers = Timers::default();
            // The model, a list without order: deadline, order of setting, and whether the owner
            // lives.
            let mut list: Vec<(u64, u32)> = Vec::new();
            for (number, (step, at, which)) in (0..).zip(steps) {
                let lives: Vec<u32> = list.iter().map(|(_, number)| *number).collect();
                let lives = |owner| matches!(owner, Owner::Sleep(it) if lives.contains(&it.index));
                match step {
                    0 => {
                        timers.set_sleep(us(at), sleep(number));
                        list.push((at, number));
                    }
                    1 if !list.is_empty() => {
                        list.swap_remove(which % list.len());
                    }
                    2 => drop(timers.sweep(usize::MAX, lives)),
                    _ => {
                        list.sort_unstable();
                        let due = list.partition_point(|(due, _)| *due <= at);
                        let due: Vec<(u64, u32)> = list.drain(..due).collect();
                        let popped = pop_all(&mut timers, at).into_iter().filter_map(|(at, owner)| {
                            let Owner::Sleep(it) = owner else { unreachable!() };
                            lives(owner).then_some((at, it.index))
                        });
                        prop_assert_eq!(popped.collect::<Vec<_>>(), due);
                    }
                }
                let lives = |owner| {
                    matches!(owner, Owner::Sleep(it) if list.iter().any(|(_, n)| *n == it.index))
                };
                prop_assert_eq!(timers.len(lives), list.len());
                let soonest = list.iter().map(|(at, _)| us(*at)).min();
                prop_assert_eq!(timers.next(lives), soonest);
            }
        }
    }
}
