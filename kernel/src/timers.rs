//! Everything that has a time: the sleeps, the timeouts and the connection deadlines of all tasks,
//! in two stores.
//!
//! Most deadlines are set and cleared and never reached. Those live and die in the **far** table
//! (`traps::deadline_table`), where setting and clearing is a store, and which is scanned at most
//! once a tick. What is due within a tick is in the **near** heap, so that it fires at its time and
//! not at the next tick.
//!
//! Names nothing else of the kernel: the benches measure this file by itself.

use std::rc::Rc;

use traps::deadline_table::{Columns, DeadlineTable, Place};
use traps::time::Time;

/// Who a timer belongs to: 32 bits that only the kernel can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner(pub u32);

/// A timer, until it fires or is disarmed; then its number is used again. Held by the owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimerId(pub(crate) u32);

/// What a timer is for, in the order in which those of one deadline fire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Class {
    Sleep,
    Timeout,
    /// Jobs that no thread took are tried again.
    Retry,
    /// A connection deadline, the one kind that is not used up when it fires.
    Deadline,
    /// The end of a phase of the shutdown.
    Phase,
}

/// What orders timers of one deadline: the class, then the order of opening.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Rank {
    pub class: Class,
    /// Smaller was opened earlier; of a connection deadline, its number; 0 where there is one only.
    pub seq: u64,
}

impl Rank {
    fn of_deadline(number: u32) -> Rank {
        Rank { class: Class::Deadline, seq: u64::from(number) }
    }
}

/// A timer whose time has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Due {
    /// When it was due, not when that was noticed.
    pub at: Time,
    /// Whose it was.
    pub owner: Owner,
    /// As it was when the timer came near.
    pub rank: Rank,
    /// Its slot; of a connection deadline, still in use.
    pub slot: u32,
}

/// What the queue has done so far, in counts: costs are tested by counting, not by timing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TimerCounters {
    /// Passes over the far table.
    pub scans: u64,
    /// Slots looked at in those passes.
    pub visited: u64,
    /// Times an entry was put in its place in the near heap.
    pub pushes: u64,
    /// Arms and re-arms that were a store in the far table.
    pub far_arms: u64,
}

/// A timer in the near heap. The slot comes last, so that no order is left to chance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Near {
    at: Time,
    rank: Rank,
    slot: u32,
}

/// All timers of a kernel: a dense far table and a small near heap.
///
/// A timer has one slot of 16 bytes in the table wherever it waits; a heap entry is 32 bytes more.
/// The heap knows where each timer is: a disarmed timer leaves it at once and there are no dead
/// entries.
#[derive(Debug)]
pub(crate) struct TimeQueue {
    table: Rc<DeadlineTable>,
    /// A binary heap, the first on top.
    near: Vec<Near>,
    counters: TimerCounters,
}

impl TimeQueue {
    /// Makes an empty queue over a table. Allocates nothing.
    pub(crate) fn new(table: Rc<DeadlineTable>) -> TimeQueue {
        TimeQueue { table, near: Vec::new(), counters: TimerCounters::default() }
    }

    /// The table of the far timers.
    pub(crate) fn table(&self) -> &Rc<DeadlineTable> {
        &self.table
    }

    /// Adds a timer that is due at `at`; `NEVER` and the past are allowed.
    ///
    /// O(1) for a tick or more from `now`: three stores, and no allocation once the table has
    /// grown. O(log near) for less; only then `rank` is called.
    pub(crate) fn arm(
        &mut self,
        at: Time,
        owner: Owner,
        now: Time,
        rank: impl FnOnce() -> Rank,
    ) -> TimerId {
        let far = at >= self.table.horizon(now);
        let mut columns = self.table.columns();
        let slot = columns.claim(owner.0, 0);
        if far {
            columns.set(slot, at);
            return TimerId(slot);
        }
        drop(columns);
        self.push(Near { at, rank: rank(), slot });
        TimerId(slot)
    }

    /// Takes a slot for a connection deadline, which is armed later, and again and again.
    #[cfg(test)]
    pub(crate) fn claim(&mut self, owner: Owner, number: u32) -> TimerId {
        TimerId(self.table.columns().claim(owner.0, number))
    }

    /// Moves a connection deadline to another time; `NEVER` disarms it. A store if it is far and
    /// stays far, else O(log near).
    pub(crate) fn rearm(&mut self, id: TimerId, at: Time, now: Time, number: u32) {
        let slot = id.0;
        let rank = Rank::of_deadline(number);
        let soon = at < self.table.horizon(now);
        let mut columns = self.table.columns();
        match (columns.place(slot), soon) {
            (Place::Far, false) => columns.store(slot, at),
            (Place::Far, true) => {
                columns.draw_near(slot, at);
                drop(columns);
                self.push(Near { at, rank, slot });
            }
            (Place::Near(position), false) => {
                drop(columns);
                self.pull(position);
                let columns = &mut *self.table.columns();
                columns.set_far(slot, number);
                columns.store(slot, at);
            }
            (Place::Near(position), true) => {
                self.counters.pushes += 1;
                columns.draw_near(slot, at);
                let entry = Near { at, rank, slot };
                settle(&mut self.near, &mut columns, position, entry);
            }
            (Place::Hole, _) => unreachable!("rule: a connection deadline has a slot"),
        }
    }

    /// Takes a timer out. O(1) if it is far, O(log near) if it is near.
    pub(crate) fn disarm(&mut self, id: TimerId) {
        let mut columns = self.table.columns();
        match columns.place(id.0) {
            Place::Far => columns.release(id.0),
            Place::Near(position) => {
                drop(columns);
                self.pull(position);
                self.table.columns().release(id.0);
            }
            Place::Hole => unreachable!("an owner forgets a timer that fired or was disarmed"),
        }
    }

    /// When a timer is due; `NEVER` for one that has fired or is disarmed.
    pub(crate) fn due_at(&self, id: TimerId) -> Time {
        // The task that runs may have armed it.
        self.table.settle();
        let columns = self.table.columns();
        match columns.place(id.0) {
            Place::Near(position) => self.near[position].at,
            Place::Far | Place::Hole => columns.at(id.0),
        }
    }

    /// Whose timer it is.
    pub(crate) fn owner(&self, id: TimerId) -> Owner {
        Owner(self.table.columns().owner(id.0))
    }

    /// Gives a connection deadline to another owner.
    pub(crate) fn set_owner(&mut self, id: TimerId, owner: Owner) {
        self.table.columns().set_owner(id.0, owner.0);
    }

    /// Whether a connection deadline has fired since it was armed last.
    pub(crate) fn has_fired(&self, id: TimerId) -> bool {
        self.table.columns().has_fired(id.0)
    }

    /// How many timers wait in the far table. O(1).
    pub(crate) fn far(&self) -> usize {
        self.table.columns().waiting()
    }

    /// Whether nothing has a timer, set or not.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.table.columns().is_empty()
    }

    /// How many timers are set. O(1).
    pub(crate) fn len(&self) -> usize {
        self.far() + self.near.len()
    }

    /// When to call [`TimeQueue::expire`] again: never after the soonest timer is due, perhaps
    /// before. `None` if no timer is ever due. O(1).
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        let near = self.near.first().map_or(Time::NEVER, |first| first.at);
        Some(near.min(self.table.columns().soonest())).filter(|next| *next != Time::NEVER)
    }

    /// Removes what is due at `now` and appends it to `due`, by deadline, then by rank.
    ///
    /// Returns how many timers came out of the far table, if any. O(1) if nothing is due and
    /// `soonest` is ahead; a scan is O(table), a timer that moves or fires O(log near). `rank` is
    /// called for those that move, but for connection deadlines.
    pub(crate) fn expire(
        &mut self,
        now: Time,
        due: &mut Vec<Due>,
        rank: impl FnMut(Owner) -> Rank,
    ) -> Option<u64> {
        let scan = now >= self.table.columns().soonest();
        let moved = if scan { self.scan(now, rank) } else { 0 };
        while let Some(&Near { at, rank, slot }) = self.near.first().filter(|at| at.at <= now) {
            self.pull(0);
            let columns = &mut *self.table.columns();
            due.push(Due { at, owner: Owner(columns.owner(slot)), rank, slot });
            if rank.class == Class::Deadline {
                columns.fire(slot, rank.seq as u32, at);
            } else {
                columns.release(slot);
            }
        }
        (moved > 0).then_some(moved)
    }

    /// What the queue has done so far.
    pub(crate) fn counters(&self) -> TimerCounters {
        TimerCounters { far_arms: self.table.columns().stores(), ..self.counters }
    }

    /// Moves what is due within a tick from the table to the heap. O(table), and O(log near) for
    /// each timer moved.
    ///
    /// The end of the tick is included, and an arm at just that distance is far: so all that is
    /// far after a scan is a tick away or more, and the next scan is no sooner than that.
    fn scan(&mut self, now: Time, mut rank: impl FnMut(Owner) -> Rank) -> u64 {
        let horizon = self.table.horizon(now);
        let before = self.near.len();
        self.counters.scans += 1;
        self.counters.visited += self.table.columns().size() as u64;
        let near = &mut self.near;
        self.table.columns().scan(horizon, |slot, owner, number, at| {
            let rank = if number > 0 { Rank::of_deadline(number) } else { rank(Owner(owner)) };
            near.push(Near { at, rank, slot });
        });
        let columns = &mut *self.table.columns();
        for position in before..self.near.len() {
            self.counters.pushes += 1;
            let entry = self.near[position];
            settle_up(&mut self.near, columns, position, entry);
        }
        (self.near.len() - before) as u64
    }

    /// Adds an entry to the heap. O(log near).
    fn push(&mut self, entry: Near) {
        self.counters.pushes += 1;
        self.near.push(entry);
        let position = self.near.len() - 1;
        settle(&mut self.near, &mut self.table.columns(), position, entry);
    }

    /// Takes an entry out of the heap. O(log near).
    fn pull(&mut self, position: usize) {
        self.near.swap_remove(position);
        if let Some(&moved) = self.near.get(position) {
            settle(&mut self.near, &mut self.table.columns(), position, moved);
        }
    }
}

/// Puts `entry` where it belongs, above or below `position`, whose entry is overwritten.
fn settle(near: &mut [Near], columns: &mut Columns, position: usize, entry: Near) {
    let mut position = settle_up(near, columns, position, entry);
    loop {
        let children = near.iter().enumerate().skip(2 * position + 1).take(2);
        match children.min_by_key(|(_, child)| **child) {
            Some((child, &first)) if first < entry => {
                put(near, columns, position, first);
                position = child;
            }
            _ => break,
        }
    }
    put(near, columns, position, entry);
}

/// The same for an entry that does not belong below; gives its position.
fn settle_up(near: &mut [Near], columns: &mut Columns, mut position: usize, entry: Near) -> usize {
    while position > 0 {
        let parent = (position - 1) / 2;
        if near[parent] <= entry {
            break;
        }
        put(near, columns, position, near[parent]);
        position = parent;
    }
    put(near, columns, position, entry);
    position
}

#[inline]
fn put(near: &mut [Near], columns: &mut Columns, position: usize, entry: Near) {
    columns.set_near(entry.slot, position);
    near[position] = entry;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// In microseconds.
    const TICK: u64 = 100_000;
    const SECOND: u64 = 1_000_000;

    fn queue() -> TimeQueue {
        let clock = Box::new(|| Time::ZERO);
        TimeQueue::new(DeadlineTable::new(Duration::from_micros(TICK), clock))
    }

    fn us(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    /// Later owners have earlier ranks, so that no order of slots passes for the right one.
    fn rank(owner: Owner) -> Rank {
        let class = if owner.0.is_multiple_of(2) { Class::Sleep } else { Class::Timeout };
        Rank { class, seq: 1_000_000 - u64::from(owner.0) }
    }

    fn arm(queue: &mut TimeQueue, at: u64, owner: u32, now: u64) -> TimerId {
        queue.arm(us(at), Owner(owner), us(now), || rank(Owner(owner)))
    }

    fn arm_far(queue: &mut TimeQueue, at: u64, owner: u32, now: u64) -> TimerId {
        queue.arm(us(at), Owner(owner), us(now), || unreachable!("a far arm asks for no rank"))
    }

    fn expire(queue: &mut TimeQueue, now: u64) -> Vec<(u64, u32)> {
        let mut due = Vec::new();
        queue.expire(us(now), &mut due, rank);
        due.iter().map(|due| (due.at.as_micros(), due.owner.0)).collect()
    }

    /// Goes from wake-up to wake-up until nothing is left; what fired, and when.
    fn run_dry(queue: &mut TimeQueue) -> Vec<(u64, u32)> {
        let mut fired = Vec::new();
        while let Some(next) = queue.next() {
            let now = next.as_micros();
            fired.extend(expire(queue, now).into_iter().map(|(_, owner)| (now, owner)));
            assert!(queue.next().is_none_or(|later| later > next), "the kernel would spin");
        }
        fired
    }

    /// A connection deadline; it stays when it has fired.
    fn deadline(queue: &mut TimeQueue, at: u64, number: u32, now: u64) -> TimerId {
        let id = queue.claim(Owner(number), number);
        queue.rearm(id, us(at), us(now), number);
        id
    }

    /// Everything that the comments on the fields say.
    fn check(queue: &TimeQueue) {
        let columns = queue.table.columns();
        for (position, entry) in queue.near.iter().enumerate() {
            assert_eq!(columns.place(entry.slot), Place::Near(position));
            assert!(position == 0 || queue.near[(position - 1) / 2] <= *entry);
        }
        columns.assert_sound(queue.near.len());
    }

    #[test]
    fn c16_far_arm_and_disarm_make_no_heap_operation() {
        let mut queue = queue();
        let ids: Vec<_> = (0..1_000).map(|n| arm_far(&mut queue, SECOND + 7, n, 7)).collect();
        let edge = arm_far(&mut queue, TICK + 7, 1_000, 7);
        ids.into_iter().for_each(|id| queue.disarm(id));
        queue.disarm(edge);
        let expected = TimerCounters { far_arms: 1_001, ..TimerCounters::default() };
        assert_eq!(queue.counters(), expected);
    }

    #[test]
    fn c17_a_disarmed_near_timer_leaves_nothing_behind() {
        let mut queue = queue();
        arm(&mut queue, TICK / 2, 0, 0);
        for n in 1..10_000 {
            let id = arm(&mut queue, u64::from(n), n, 0);
            queue.disarm(id);
        }
        let size = queue.table.columns().size();
        assert_eq!((queue.len(), queue.near.len(), size), (1, 1, 2));
        assert_eq!(queue.next(), Some(us(TICK / 2)));
    }

    #[test]
    fn d12_what_follows_next_fires_at_its_time_not_at_a_tick() {
        let mut queue = queue();
        let mut expected: Vec<_> =
            (0..1_000).map(|n| (u64::from(n) * 7_919 % 3_000_017, n)).collect();
        for &(at, owner) in &expected {
            arm(&mut queue, at, owner, 0);
        }
        expected.sort_unstable();
        assert_eq!(run_dry(&mut queue), expected);
        assert!(queue.is_empty());
    }

    #[test]
    fn d16_the_last_disarm_leaves_nothing_to_wake_for() {
        let mut queue = queue();
        let [near, far, never] = [9, SECOND, u64::MAX].map(|at| arm(&mut queue, at, 1, 0));
        queue.disarm(far);
        assert_eq!(queue.next(), Some(us(9)));
        queue.disarm(near);
        assert_eq!((queue.next(), queue.len(), queue.is_empty()), (None, 0, false));
        queue.disarm(never);
        assert_eq!((queue.next(), queue.is_empty()), (None, true));
        assert_eq!(queue.counters().scans, 0);
    }

    #[test]
    fn d19_a_million_re_arms_make_no_heap_push_and_no_scan_each() {
        let mut queue = queue();
        let id = deadline(&mut queue, SECOND, 1, 0);
        for now in 1..=1_000_000 {
            queue.rearm(id, us(now + SECOND), us(now), 1);
            assert_eq!(queue.expire(us(now), &mut Vec::new(), rank), None);
        }
        let expected = TimerCounters { scans: 1, visited: 1, pushes: 0, far_arms: 1_000_001 };
        assert_eq!(queue.counters(), expected);
    }

    /// Both at once: arming is a store a million times over, and yet each fires at its time.
    #[test]
    fn x4_arming_is_cheap_and_firing_is_exact() {
        let mut queue = queue();
        let ids: Vec<_> = (0..1_000).map(|n| deadline(&mut queue, SECOND, n, 0)).collect();
        // Times that fall on no tick, and no two in one place.
        let time_of = |n: u32| 3 * SECOND + u64::from(n) * 7_919 % 1_000_003;
        for round in (0..1_000).rev() {
            for (n, id) in (0..).zip(&ids) {
                queue.rearm(*id, us(time_of(n) + round * 17), us(0), n);
            }
        }
        let armed = TimerCounters { far_arms: 1_001_000, ..TimerCounters::default() };
        assert_eq!(queue.counters(), armed, "no scan and no heap operation");
        let mut expected: Vec<_> = (0..1_000).map(|n| (time_of(n), n)).collect();
        expected.sort_unstable();
        assert_eq!(run_dry(&mut queue), expected);
        let TimerCounters { scans, pushes, .. } = queue.counters();
        assert_eq!(pushes, 1_000, "one for each that fires");
        assert!(scans <= SECOND / TICK + 3, "{scans} scans");
    }

    #[test]
    fn curio_q5_after_a_disarm_the_bound_is_early_never_late_and_costs_one_scan() {
        let mut queue = queue();
        let soon = arm(&mut queue, 5 * SECOND, 1, 0);
        arm(&mut queue, 100 * SECOND, 2, 0);
        queue.disarm(soon);
        assert_eq!(queue.next(), Some(us(5 * SECOND)));
        assert_eq!(queue.expire(us(5 * SECOND), &mut Vec::new(), rank), None);
        assert_eq!(queue.next(), Some(us(100 * SECOND)));
        assert_eq!(queue.counters().scans, 1);
    }

    #[test]
    fn curio_q7_a_stale_earlier_time_hides_no_later_one() {
        let mut queue = queue();
        for (first, then) in [(2 * SECOND, 3 * SECOND), (10, SECOND), (10, 20), (SECOND, 10)] {
            let id = deadline(&mut queue, first, 1, 0);
            queue.rearm(id, us(then), us(0), 1);
            check(&queue);
            assert_eq!(run_dry(&mut queue), [(then, 1)]);
            queue.disarm(id);
        }
    }

    /// One row of the table in Curio's section 7: so many deadlines spread evenly over a span, a
    /// poll every so often; the polls, the scans, and the entries visited in them a poll.
    fn spread_out(count: u32, from: u64, over: u64, every: u64, polls: u64) -> (u64, u64) {
        let mut queue = TimeQueue::new(DeadlineTable::new(
            Duration::from_millis(300), // the default
            Box::new(|| Time::ZERO),
        ));
        for n in 0..count {
            arm(&mut queue, from + u64::from(n) * over / u64::from(count), n, 0);
        }
        let fired: usize = (0..polls).map(|poll| expire(&mut queue, poll * every).len()).sum();
        let end = (polls - 1) * every;
        let due = (0..count).filter(|n| from + u64::from(*n) * over / u64::from(count) <= end);
        assert_eq!(fired, due.count());
        let TimerCounters { scans, visited, pushes, .. } = queue.counters();
        assert!(scans <= end / 300_000 + 1, "{scans} scans: more than one a tick");
        assert!(pushes <= 3 * u64::from(count), "{pushes} pushes");
        (scans, visited / polls)
    }

    #[test]
    fn curio_d13_spread_out_deadlines_do_not_make_scans_quadratic() {
        // The figures of Curio beside ours: scans, entries visited a poll.
        let rows = [
            (spread_out(1_000, SECOND, 10 * SECOND, 100, 20_001), (179, 8)),
            (spread_out(10_000, SECOND, 10 * SECOND, 100, 20_001), (1_957, 878)),
            (spread_out(50_000, SECOND, 10 * SECOND, 1_000, 2_001), (1_990, 44_708)),
            (spread_out(100_000, SECOND, 60 * SECOND, 1_000, 2_001), (1_618, 79_493)),
            (spread_out(10_000, 30 * SECOND, 0, 100, 20_001), (0, 0)),
        ];
        let ours: Vec<_> = rows.iter().map(|(ours, _)| *ours).collect();
        assert_eq!(ours, [(4, 0), (4, 1), (4, 99), (4, 199), (0, 0)]);
        for (ours, curio) in rows {
            assert!(ours.0 <= curio.0 && ours.1 <= curio.1, "{ours:?}, Curio {curio:?}");
        }
    }

    #[test]
    fn curio_7_ten_thousand_re_armed_together_at_every_poll_are_scanned_twice_in_ten_seconds() {
        let mut queue = queue();
        let ids: Vec<_> = (0..10_000).map(|n| deadline(&mut queue, 5 * SECOND, n + 1, 0)).collect();
        for poll in 0..10_001 {
            let now = poll * 1_000;
            for (id, number) in ids.iter().zip(1..) {
                if poll % 100 == 0 {
                    queue.rearm(*id, us(now + 5 * SECOND), us(now), number);
                }
            }
            assert_eq!(expire(&mut queue, now), []);
        }
        assert_eq!((queue.counters().scans, queue.counters().pushes), (2, 0));
    }

    #[test]
    fn ties_go_by_class_then_by_opening_wherever_they_waited() {
        let mut queue = queue();
        arm(&mut queue, SECOND, 1, 0);
        arm(&mut queue, SECOND, 2, 0);
        assert_eq!(expire(&mut queue, SECOND - 1), []);
        arm(&mut queue, SECOND, 3, SECOND - 1); // near; the others are still far
        arm(&mut queue, SECOND, 4, SECOND - 1);
        assert_eq!((queue.near.len(), queue.far()), (2, 2));
        let order = [4, 2, 3, 1].map(|owner| (SECOND, owner));
        assert_eq!(expire(&mut queue, SECOND), order);
    }

    #[test]
    fn a_scan_reports_what_it_moved_and_only_then() {
        let mut queue = queue();
        for at in [SECOND, SECOND + TICK, SECOND + TICK + 1] {
            arm(&mut queue, at, 1, 0);
        }
        let mut due = Vec::new();
        assert_eq!(queue.expire(us(SECOND), &mut due, rank), Some(2));
        assert_eq!(queue.expire(us(SECOND + TICK), &mut due, rank), None);
        assert_eq!((due.len(), queue.next()), (2, Some(us(SECOND + TICK + 1))));
    }

    #[test]
    fn never_is_not_reached_even_at_the_end_of_time() {
        let mut queue = queue();
        for at in [u64::MAX, u64::MAX - 2, 1 << 62, (1 << 62) - 1, SECOND] {
            arm(&mut queue, at, 1, 0);
        }
        assert_eq!(expire(&mut queue, u64::MAX).len(), 2);
        assert_eq!((queue.len(), queue.next(), queue.is_empty()), (0, None, false));
        check(&queue);
    }

    #[test]
    fn a_peak_is_not_paid_for_in_later_scans() {
        let mut queue = queue();
        let mut ids: Vec<_> = (0..10).map(|n| arm(&mut queue, 9 * SECOND, n, 0)).collect();
        let stays = deadline(&mut queue, 9 * SECOND, 10, 0);
        ids.extend((11..1_000).map(|n| arm(&mut queue, 9 * SECOND, n, 0)));
        ids.into_iter().for_each(|id| queue.disarm(id));
        queue.rearm(stays, us(10 * SECOND), us(0), 10);
        assert_eq!(expire(&mut queue, 9 * SECOND), []);
        assert_eq!(queue.table.columns().size(), 11);
        check(&queue);
        let slots = [1, 2].map(|n| arm(&mut queue, 20 * SECOND, n, 0).0);
        assert_eq!(slots, [0, 1]);
        assert_eq!(run_dry(&mut queue).len(), 3);
        queue.disarm(stays);
        check(&queue);
    }

    #[test]
    fn a_table_that_is_empty_is_cleared_unless_it_is_short() {
        for (peak, left) in [(64, 64), (65, 0)] {
            let mut queue = queue();
            let ids: Vec<_> = (0..peak).map(|n| arm(&mut queue, 9 * SECOND, n, 0)).collect();
            ids.into_iter().for_each(|id| queue.disarm(id));
            assert_eq!(queue.table.columns().size(), left);
            check(&queue);
        }
    }

    #[test]
    fn a_near_timer_takes_32_bytes_more() {
        assert!(size_of::<Near>() <= 32);
    }

    #[test]
    fn d10_a_deadline_that_fired_can_be_armed_again() {
        let mut queue = queue();
        let id = deadline(&mut queue, 10, 7, 0);
        for at in [10, SECOND, 2 * SECOND] {
            queue.rearm(id, us(at), us(0), 7);
            assert_eq!(queue.due_at(id), us(at));
            assert_eq!(run_dry(&mut queue), [(at, 7)]);
            assert_eq!((queue.due_at(id), queue.len(), queue.is_empty()), (Time::NEVER, 0, false));
            check(&queue);
        }
        queue.disarm(id);
        assert!(queue.is_empty());
    }

    /// Times are in tenths of a tick, so that there are ties and edges.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Arm(u64),
        ArmNever,
        Rearm(usize, u64),
        Disarm(usize),
        Pass(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..40_u64).prop_map(Step::Arm),
            1 => Just(Step::ArmNever),
            3 => (any::<usize>(), 0..40_u64).prop_map(|(which, span)| Step::Rearm(which, span)),
            3 => any::<usize>().prop_map(Step::Disarm),
            3 => (0..25_u64).prop_map(Step::Pass),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn a_queue_does_what_a_sorted_list_does(steps in prop::collection::vec(step(), 1..200)) {
            let mut queue = queue();
            let mut list: Vec<(Time, Rank, Owner, TimerId)> = Vec::new();
            let mut now = 0;
            let (mut scans, mut scanned) = (0, 0);
            for (n, step) in (1..).zip(steps) {
                let after = |tenths: u64| now + tenths * TICK / 10;
                match step {
                    Step::Arm(_) | Step::ArmNever => {
                        let at = if let Step::Arm(span) = step { after(span) } else { u64::MAX };
                        // Every other one is a connection deadline.
                        let (rank, id) = match n % 2 {
                            0 => (rank(Owner(n)), arm(&mut queue, at, n, now)),
                            _ => (Rank::of_deadline(n), deadline(&mut queue, at, n, now)),
                        };
                        list.push((us(at), rank, Owner(n), id));
                    }
                    Step::Rearm(which, span) if !list.is_empty() => {
                        let which = which % list.len();
                        let (at, rank, owner, id) = &mut list[which];
                        if rank.class == Class::Deadline {
                            *at = us(after(span));
                            queue.rearm(*id, *at, us(now), owner.0);
                        }
                    }
                    Step::Disarm(which) if !list.is_empty() => {
                        queue.disarm(list.swap_remove(which % list.len()).3);
                    }
                    Step::Rearm(..) | Step::Disarm(_) => {}
                    Step::Pass(span) => {
                        now = after(span);
                        list.sort_unstable_by_key(|(at, rank, ..)| (*at, *rank));
                        let passed = list.partition_point(|(at, ..)| *at <= us(now));
                        let passed: Vec<_> = list.drain(..passed).collect();
                        let fired: Vec<_> =
                            passed.iter().map(|entry| (entry.0.as_micros(), entry.2.0)).collect();
                        prop_assert_eq!(expire(&mut queue, now), fired);
                        for (.., id) in passed.iter().filter(|at| at.1.class == Class::Deadline) {
                            queue.disarm(*id);
                        }
                        prop_assert!(queue.next().is_none_or(|next| next > us(now)));
                    }
                }
                check(&queue);
                let times = list.iter().map(|entry| entry.0).filter(|at| *at != Time::NEVER);
                prop_assert_eq!(queue.len(), times.clone().count());
                prop_assert_eq!(queue.is_empty(), list.is_empty());
                let soonest = times.min();
                prop_assert_eq!(queue.next().is_none(), soonest.is_none());
                prop_assert!(queue.next() <= soonest);
                if queue.counters().scans > scans {
                    prop_assert!(scans == 0 || now >= scanned + TICK, "two scans in a tick");
                    (scans, scanned) = (queue.counters().scans, now);
                }
            }
        }
    }
}
