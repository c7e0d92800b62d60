//! Everything that has a time: the sleeps and the timeouts of all tasks, in two stores.
//!
//! Most deadlines are set and cleared and never reached. Those live and die in the **far** table,
//! where setting and clearing is a store, and which is scanned at most once a tick. What is due
//! within a tick is in the **near** heap, so that it fires at its time and not at the next tick.

use std::mem;
use std::time::Duration;

use traps::time::Time;

/// Who a timer belongs to: 32 bits that only the kernel can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner(pub u32);

/// A timer, until it fires or is disarmed; then its number is used again. Held by the owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimerId(u32);

/// What orders timers of one deadline: the class, then the order of opening.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Rank {
    /// 0 for sleeps, 1 for timeouts.
    pub class: u8,
    /// Smaller was opened earlier.
    pub seq: u64,
}

/// A timer whose time has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Due {
    /// When it was due, not when that was noticed.
    pub at: Time,
    /// Whose it was.
    pub owner: Owner,
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

/// Where the timer of a slot waits; one `u32` in the table.
enum Place {
    Hole,
    Far,
    Near(usize),
}

const FAR: u32 = u32::MAX;
const HOLE: u32 = u32::MAX - 1;
/// Ends the list of holes.
const NO_SLOT: u32 = u32::MAX;
/// Slots whose minimum a scan takes in one go: one branch for all of them.
const BLOCK: usize = 64;

/// All timers of a kernel: a dense far table and a small near heap.
///
/// A timer has one slot wherever it waits, and a slot is 16 bytes in three columns, so that a scan
/// reads only the times. A heap entry is 32 bytes more. The heap knows where each timer is: a
/// disarmed timer leaves it at once and there are no dead entries.
#[derive(Debug)]
pub(crate) struct TimeQueue {
    /// In the microseconds of [`Time`]: an arm shall not convert a [`Duration`].
    tick: u64,
    /// When the far timer of a slot is due; `NEVER` if the slot is a hole or its timer is near.
    at: Vec<Time>,
    /// Whose timer it is; in a hole, the next hole.
    owner: Vec<u32>,
    /// The position in `near`, or `FAR`, or `HOLE`.
    place: Vec<u32>,
    /// The first hole.
    free: u32,
    /// Slots that are no holes.
    len: usize,
    /// Far timers that are due at some time.
    waiting: usize,
    /// No far timer is due before this. Exact after a scan; after a disarm or a re-arm it may be
    /// too early, which costs one scan that moves nothing; it is never too late. `NEVER` exactly
    /// when none is waiting.
    soonest: Time,
    /// A binary heap, the first on top.
    near: Vec<Near>,
    counters: TimerCounters,
}

impl TimeQueue {
    /// Makes an empty queue that scans at most once a `tick`. Allocates nothing.
    pub(crate) fn new(tick: Duration) -> TimeQueue {
        TimeQueue {
            tick: (Time::ZERO + tick).as_micros(),
            at: Vec::new(),
            owner: Vec::new(),
            place: Vec::new(),
            free: NO_SLOT,
            len: 0,
            waiting: 0,
            soonest: Time::NEVER,
            near: Vec::new(),
            counters: TimerCounters::default(),
        }
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
        let slot = self.claim(owner);
        if at < self.horizon(now) {
            self.push(Near { at, rank: rank(), slot });
        } else {
            self.wait_far(slot, at);
        }
        TimerId(slot)
    }

    /// Moves a timer to another time. Costs what [`TimeQueue::arm`] costs, and O(log near) if it
    /// is near now. `rank` is called if it will be near.
    #[cfg_attr(not(test), expect(dead_code, reason = "connection deadlines will re-arm"))]
    pub(crate) fn rearm(&mut self, id: TimerId, at: Time, now: Time, rank: impl FnOnce() -> Rank) {
        let slot = id.0;
        let soon = at < self.horizon(now);
        match (self.place(slot), soon) {
            (Place::Far, false) => self.wait_far(slot, at),
            (Place::Far, true) => {
                self.store(slot, Time::NEVER);
                self.push(Near { at, rank: rank(), slot });
            }
            (Place::Near(position), false) => {
                self.pull(position);
                self.wait_far(slot, at);
            }
            (Place::Near(position), true) => {
                self.counters.pushes += 1;
                self.settle(position, Near { at, rank: rank(), slot });
            }
            (Place::Hole, _) => unreachable!("an owner forgets a timer that fired"),
        }
    }

    /// Takes a timer out. O(1) if it is far, O(log near) if it is near.
    pub(crate) fn disarm(&mut self, id: TimerId) {
        match self.place(id.0) {
            Place::Far => self.store(id.0, Time::NEVER),
            Place::Near(position) => self.pull(position),
            Place::Hole => unreachable!("an owner forgets a timer that fired or was disarmed"),
        }
        self.release(id.0);
    }

    /// How many timers wait in the far table. O(1).
    pub(crate) fn far(&self) -> usize {
        self.waiting
    }

    /// How many timers are armed, those that are never due included. O(1).
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether no timer is armed. O(1).
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// When to call [`TimeQueue::expire`] again: never after the soonest timer is due, perhaps
    /// before. `None` if no timer is ever due. O(1).
    pub(crate) fn next(&self) -> Option<Time> {
        let near = self.near.first().map_or(Time::NEVER, |first| first.at);
        Some(near.min(self.soonest)).filter(|next| *next != Time::NEVER)
    }

    /// Removes what is due at `now` and appends it to `due`, by deadline, then by rank.
    ///
    /// Returns how many timers came out of the far table, if any. O(1) if nothing is due and
    /// `soonest` is ahead; a scan is O(table), a timer that moves or fires O(log near). `rank` is
    /// called for those that move.
    pub(crate) fn expire(
        &mut self,
        now: Time,
        due: &mut Vec<Due>,
        rank: impl FnMut(Owner) -> Rank,
    ) -> Option<u64> {
        let scan = self.waiting > 0 && now >= self.soonest;
        let moved = if scan { self.scan(now, rank) } else { 0 };
        while let Some(&Near { at, slot, .. }) = self.near.first().filter(|first| first.at <= now) {
            due.push(Due { at, owner: Owner(self.owner[slot as usize]) });
            self.pull(0);
            self.release(slot);
        }
        (moved > 0).then_some(moved)
    }

    /// What the queue has done so far.
    pub(crate) fn counters(&self) -> TimerCounters {
        self.counters
    }

    /// One tick from `now`: what is due before it is near.
    #[inline]
    fn horizon(&self, now: Time) -> Time {
        Time::from_micros(now.as_micros().saturating_add(self.tick))
    }

    #[inline]
    fn place(&self, slot: u32) -> Place {
        match self.place[slot as usize] {
            HOLE => Place::Hole,
            FAR => Place::Far,
            position => Place::Near(position as usize),
        }
    }

    /// Moves what is due within a tick from the table to the heap, and learns `soonest` of the
    /// rest from the same pass. O(table), and O(log near) for each timer moved.
    ///
    /// The end of the tick is included, and an arm at just that distance is far: so all that is
    /// far after a scan is a tick away or more, and the next scan is no sooner than that.
    fn scan(&mut self, now: Time, mut rank: impl FnMut(Owner) -> Rank) -> u64 {
        // Below `NEVER`, or holes would be due.
        let horizon = self.horizon(now).min(Time::from_micros(u64::MAX - 1));
        let waiting = self.waiting;
        let mut soonest = Time::NEVER;
        for start in (0..self.at.len()).step_by(BLOCK) {
            let end = self.at.len().min(start + BLOCK);
            let first = earliest(&self.at[start..end]);
            if first > horizon {
                soonest = soonest.min(first);
                continue;
            }
            for slot in start..end {
                let at = self.at[slot];
                if at > horizon {
                    soonest = soonest.min(at);
                    continue;
                }
                let rank = rank(Owner(self.owner[slot]));
                self.at[slot] = Time::NEVER;
                self.waiting -= 1;
                self.push(Near { at, rank, slot: slot as u32 });
            }
        }
        self.soonest = soonest;
        self.counters.scans += 1;
        self.counters.visited += self.at.len() as u64;
        self.trim();
        (waiting - self.waiting) as u64
    }

    /// Cuts the holes off the end of a table that is mostly holes, so that a peak is not paid for
    /// in every later scan. O(table), so only a scan may call it.
    fn trim(&mut self) {
        if self.len >= self.at.len() / 4 || self.place.last() != Some(&HOLE) {
            return;
        }
        let end = self.place.iter().rposition(|place| *place != HOLE).map_or(0, |last| last + 1);
        self.at.truncate(end);
        self.owner.truncate(end);
        self.place.truncate(end);
        // The list went through the slots that are gone. Lowest first, so that the end empties.
        self.free = NO_SLOT;
        for slot in (0..end).rev().filter(|slot| self.place[*slot] == HOLE) {
            self.owner[slot] = mem::replace(&mut self.free, slot as u32);
        }
    }

    /// Gives out a slot, as a far one that is never due. O(1), allocates if there is no hole.
    #[inline]
    fn claim(&mut self, owner: Owner) -> u32 {
        let slot = self.free;
        self.len += 1;
        if slot != NO_SLOT {
            self.free = mem::replace(&mut self.owner[slot as usize], owner.0);
            self.place[slot as usize] = FAR;
            return slot;
        }
        let slot = self.at.len() as u32;
        assert!(self.at.len() < HOLE as usize, "a slot is 32 bits, less two marks");
        self.at.push(Time::NEVER);
        self.owner.push(owner.0);
        self.place.push(FAR);
        slot
    }

    /// Makes a hole of a slot that is neither due nor near any more. O(1).
    #[inline]
    fn release(&mut self, slot: u32) {
        self.place[slot as usize] = HOLE;
        self.owner[slot as usize] = mem::replace(&mut self.free, slot);
        self.len -= 1;
        if self.len == 0 {
            // All holes: begin anew, without waiting for a scan that may never come.
            self.at.clear();
            self.owner.clear();
            self.place.clear();
            self.free = NO_SLOT;
        }
    }

    #[inline]
    fn wait_far(&mut self, slot: u32, at: Time) {
        self.counters.far_arms += 1;
        self.place[slot as usize] = FAR;
        self.store(slot, at);
    }

    /// Sets a time in the far table. The one place that lowers `soonest` or forgets it. O(1).
    #[inline]
    fn store(&mut self, slot: u32, at: Time) {
        let before = mem::replace(&mut self.at[slot as usize], at);
        self.waiting += usize::from(at != Time::NEVER);
        self.waiting -= usize::from(before != Time::NEVER);
        self.soonest = if self.waiting == 0 { Time::NEVER } else { self.soonest.min(at) };
    }

    /// Adds an entry to the heap. O(log near).
    fn push(&mut self, entry: Near) {
        self.counters.pushes += 1;
        self.near.push(entry);
        self.settle(self.near.len() - 1, entry);
    }

    /// Takes an entry out of the heap. O(log near).
    fn pull(&mut self, position: usize) {
        self.near.swap_remove(position);
        if let Some(&moved) = self.near.get(position) {
            self.settle(position, moved);
        }
    }

    /// Puts `entry` where it belongs, above or below `position`, whose entry is overwritten.
    fn settle(&mut self, mut position: usize, entry: Near) {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.near[parent] <= entry {
                break;
            }
            self.put(position, self.near[parent]);
            position = parent;
        }
        loop {
            let children = self.near.iter().enumerate().skip(2 * position + 1).take(2);
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

    #[inline]
    fn put(&mut self, position: usize, entry: Near) {
        self.place[entry.slot as usize] = position as u32;
        self.near[position] = entry;
    }
}

/// The minimum, taken in columns: no branch, and no column waits for another.
#[inline]
fn earliest(times: &[Time]) -> Time {
    let mut first = [u64::MAX; 8];
    let (rows, rest) = times.as_chunks::<8>();
    for row in rows {
        for (first, at) in first.iter_mut().zip(row) {
            *first = at.as_micros().min(*first);
        }
    }
    let rest = rest.iter().map(|at| at.as_micros());
    Time::from_micros(rest.chain(first).fold(u64::MAX, u64::min))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// In microseconds.
    const TICK: u64 = 100_000;
    const SECOND: u64 = 1_000_000;

    fn queue() -> TimeQueue {
        TimeQueue::new(Duration::from_micros(TICK))
    }

    fn us(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    /// Later owners have earlier ranks, so that no order of slots passes for the right one.
    fn rank(owner: Owner) -> Rank {
        Rank { class: (owner.0 % 2) as u8, seq: 1_000_000 - u64::from(owner.0) }
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

    /// Everything that the comments on the fields say.
    fn check(queue: &TimeQueue) {
        let TimeQueue { at, owner, place, near, .. } = queue;
        for (position, entry) in near.iter().enumerate() {
            assert_eq!(place[entry.slot as usize] as usize, position);
            assert!(position == 0 || near[(position - 1) / 2] <= *entry);
        }
        for (at, place) in at.iter().zip(place) {
            assert!(*at == Time::NEVER || *place == FAR);
            assert!(queue.soonest <= *at);
        }
        let mut holes = 0;
        let mut hole = queue.free;
        while hole != NO_SLOT {
            assert_eq!(place[hole as usize], HOLE);
            hole = owner[hole as usize];
            holes += 1;
        }
        let far = place.iter().filter(|place| **place == FAR).count();
        let waiting = at.iter().filter(|at| **at != Time::NEVER).count();
        assert_eq!((at.len(), queue.len), (holes + queue.len, far + near.len()));
        assert_eq!(queue.waiting, waiting);
        assert_eq!(queue.soonest == Time::NEVER, waiting == 0);
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
        assert_eq!((queue.len(), queue.near.len(), queue.at.len()), (1, 1, 2));
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
        assert_eq!((queue.next(), queue.len()), (None, 1));
        queue.disarm(never);
        assert_eq!((queue.next(), queue.is_empty()), (None, true));
        assert_eq!(queue.counters().scans, 0);
    }

    #[test]
    fn d19_a_million_re_arms_make_no_heap_push_and_no_scan_each() {
        let mut queue = queue();
        let id = arm_far(&mut queue, SECOND, 1, 0);
        for now in 1..=1_000_000 {
            queue.rearm(id, us(now + SECOND), us(now), || unreachable!("it stays far"));
            assert_eq!(queue.expire(us(now), &mut Vec::new(), rank), None);
        }
        let expected = TimerCounters { scans: 1, visited: 1, pushes: 0, far_arms: 1_000_001 };
        assert_eq!(queue.counters(), expected);
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
            let id = arm(&mut queue, first, 1, 0);
            queue.rearm(id, us(then), us(0), || rank(Owner(1)));
            check(&queue);
            assert_eq!(run_dry(&mut queue), [(then, 1)]);
        }
    }

    #[test]
    fn curio_7_spread_out_deadlines_do_not_make_scans_quadratic() {
        let mut queue = queue();
        for n in 0..100_000 {
            arm(&mut queue, SECOND + u64::from(n) * 600, n, 0);
        }
        let fired: usize = (0..2_001).map(|poll| expire(&mut queue, poll * 1_000).len()).sum();
        assert_eq!(fired, 1_667); // one in 600 us, for a second
        let TimerCounters { scans, visited, pushes, .. } = queue.counters();
        assert!(scans <= SECOND / TICK + 1, "{scans} scans; Curio makes 1,618");
        assert!(visited / 2_001 < 600, "{visited} visited; Curio visits 79,493 a poll");
        assert!(pushes < 2_000, "{pushes} pushes");
    }

    #[test]
    fn ties_go_by_class_then_by_opening_wherever_they_waited() {
        let mut queue = queue();
        arm(&mut queue, SECOND, 1, 0);
        arm(&mut queue, SECOND, 2, 0);
        assert_eq!(expire(&mut queue, SECOND - 1), []);
        arm(&mut queue, SECOND, 3, SECOND - 1); // near; the others are still far
        arm(&mut queue, SECOND, 4, SECOND - 1);
        assert_eq!((queue.near.len(), queue.waiting), (2, 2));
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
        for at in [u64::MAX, u64::MAX, u64::MAX - 1, SECOND] {
            arm(&mut queue, at, 1, 0);
        }
        assert_eq!(expire(&mut queue, u64::MAX).len(), 2);
        assert_eq!((queue.len(), queue.next()), (2, None));
        check(&queue);
    }

    #[test]
    fn a_peak_is_not_paid_for_in_later_scans() {
        let mut queue = queue();
        let mut ids: Vec<_> = (0..1_000).map(|n| arm(&mut queue, 9 * SECOND, n, 0)).collect();
        let stays = ids.remove(10);
        ids.into_iter().for_each(|id| queue.disarm(id));
        queue.rearm(stays, us(10 * SECOND), us(0), || rank(Owner(10)));
        assert_eq!(expire(&mut queue, 9 * SECOND), []);
        assert_eq!(queue.at.len(), 11);
        check(&queue);
        let slots = [1, 2].map(|n| arm(&mut queue, 20 * SECOND, n, 0).0);
        assert_eq!(slots, [0, 1]);
        assert_eq!(run_dry(&mut queue).len(), 3);
        assert_eq!((queue.at.len(), queue.free), (0, NO_SLOT));
    }

    #[test]
    fn a_far_timer_takes_16_bytes() {
        let TimeQueue { at, owner, place, .. } = queue();
        fn entry<T>(_: &Vec<T>) -> usize {
            size_of::<T>()
        }
        assert_eq!(entry(&at) + entry(&owner) + entry(&place), 16);
        assert!(size_of::<Near>() <= 32);
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
            for (n, step) in (0..).zip(steps) {
                let after = |tenths: u64| now + tenths * TICK / 10;
                match step {
                    Step::Arm(_) | Step::ArmNever => {
                        let at = if let Step::Arm(span) = step { after(span) } else { u64::MAX };
                        let id = arm(&mut queue, at, n, now);
                        list.push((us(at), rank(Owner(n)), Owner(n), id));
                    }
                    Step::Rearm(which, span) if !list.is_empty() => {
                        let which = which % list.len();
                        let (at, rank, _, id) = &mut list[which];
                        *at = us(after(span));
                        queue.rearm(*id, *at, us(now), || *rank);
                    }
                    Step::Disarm(which) if !list.is_empty() => {
                        queue.disarm(list.swap_remove(which % list.len()).3);
                    }
                    Step::Rearm(..) | Step::Disarm(_) => {}
                    Step::Pass(span) => {
                        now = after(span);
                        list.sort_unstable_by_key(|(at, rank, ..)| (*at, *rank));
                        let passed = list.partition_point(|(at, ..)| *at <= us(now));
                        let passed = list.drain(..passed);
                        let passed: Vec<_> =
                            passed.map(|entry| (entry.0.as_micros(), entry.2.0)).collect();
                        prop_assert_eq!(expire(&mut queue, now), passed);
                        prop_assert!(queue.next().is_none_or(|next| next > us(now)));
                    }
                }
                check(&queue);
                prop_assert_eq!(queue.len(), list.len());
                let times = list.iter().map(|entry| entry.0);
                let soonest = times.filter(|at| *at != Time::NEVER).min();
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
