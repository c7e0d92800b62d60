//! The deadline table: where deadlines that are far off lie, those of the kernel's own timers and
//! those of connections alike.
//!
//! Dense columns that a kernel scans and that a task may store into, without a trap. Nothing here
//! fires, and there is no order: what is due soon is the kernel's near heap. The arms of a run are
//! held until it ends, where the clock is read anyway.

use std::cell::{Cell, RefCell, RefMut};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use crate::time::{Time, micros};

mod clock;
mod columns;
mod held;
mod mark;

use clock::ArmClock;
pub use clock::CoarseClock;
pub use columns::{Columns, Place};
use held::Held;
pub(crate) use mark::END;

/// Marks an owner as the scope of a connection deadline that guards.
pub const GUARD: u32 = 0b11 << 30;
/// Marks an owner as the task of a connection deadline that is armed without a guard.
pub const BARE: u32 = 0b10 << 30;

/// The longest span that is held, in microseconds: it ends before `END`.
const LONGEST: u64 = 1 << 61;

/// The deadlines of one kernel, shared with the connection deadlines that it gave out.
pub struct DeadlineTable {
    clock: ArmClock,
    /// In microseconds.
    tick: u64,
    /// A span of this or more is a store: the tick, if no arm is to be told, and if all those are
    /// heeded that were. One comparison for all three.
    simple_from: Cell<u64>,
    /// Every arm and disarm is to be told to the kernel, which has a line for it.
    listening: Cell<bool>,
    /// The lines of deadlines, arms and scopes that were not told: they keep their numbers.
    untold: Cell<u64>,
    /// Those that were posted to the kernel, and those of them that it has heeded, in this order.
    posted: Cell<u64>,
    heeded: Cell<u64>,
    /// Connection deadlines that were ever made, in 31 bits, and those of them that are not gone.
    made: Cell<u32>,
    alive: Cell<usize>,
    /// Spans in microseconds from the end of the run; from the start, where the clock is exact.
    held: Held,
    columns: RefCell<Columns>,
}

impl DeadlineTable {
    /// An empty table. `clock` is read by arms.
    #[must_use]
    pub fn new(tick: Duration, clock: Box<dyn CoarseClock>) -> Rc<DeadlineTable> {
        let tick = micros(tick);
        Rc::new(DeadlineTable {
            clock: ArmClock::new(clock),
            tick,
            simple_from: Cell::new(simple_from(tick)),
            listening: Cell::new(false),
            untold: Cell::new(0),
            posted: Cell::new(0),
            heeded: Cell::new(0),
            made: Cell::new(0),
            alive: Cell::new(0),
            held: Held::new(),
            columns: RefCell::new(Columns::new()),
        })
    }

    /// The columns, for the kernel.
    #[inline]
    pub fn columns(&self) -> RefMut<'_, Columns> {
        self.columns.borrow_mut()
    }

    /// One tick from `now`: what is due before it is near.
    #[inline]
    #[must_use]
    pub fn horizon(&self, now: Time) -> Time {
        plus(now, self.tick)
    }

    /// The kernel has read its clock.
    #[inline]
    pub fn set_exact(&self, now: Time) {
        self.clock.set_exact(now);
    }

    /// Whether arms and disarms are told to the kernel from now on.
    #[inline]
    pub fn listen(&self, listening: bool) {
        if listening != self.listening.replace(listening) {
            self.look();
        }
    }

    /// Learns anew which spans are a store.
    #[cold]
    fn look(&self) {
        let told = self.listening.get() || self.is_any_in_flight();
        self.simple_from.set(if told { u64::MAX } else { simple_from(self.tick) });
    }

    /// Whether nobody is to be told of anything, and the kernel has heeded all that it was.
    #[inline(always)]
    fn is_quiet(&self) -> bool {
        self.simple_from.get() != u64::MAX
    }

    /// How many lines the kernel was not told of so far: one for a deadline that is made, an arm or
    /// a disarm, two for a scope.
    #[inline]
    #[must_use]
    pub fn untold(&self) -> u64 {
        self.untold.get()
    }

    /// So many lines are not told, of scopes that came and went.
    #[inline(always)]
    pub(crate) fn count_untold(&self, lines: u64) {
        self.untold.set(self.untold.get() + lines);
    }

    /// Numbers a post to the kernel: what it is about is in flight until the kernel heeds it.
    pub(crate) fn post(&self) -> u64 {
        self.posted.set(self.posted.get() + 1);
        self.look();
        self.posted.get()
    }

    /// The kernel heeds the next post.
    pub fn heed(&self) {
        self.heeded.set(self.heeded.get() + 1);
        self.look();
    }

    /// Whether the kernel has yet to heed that post.
    #[inline]
    pub(crate) fn is_in_flight(&self, post: u64) -> bool {
        self.heeded.get() < post
    }

    /// Whether the kernel has yet to heed any: a store might overtake it.
    #[inline]
    fn is_any_in_flight(&self) -> bool {
        self.is_in_flight(self.posted.get())
    }

    /// Makes a connection deadline of the task at that place, disarmed: its slot and its number.
    pub fn make(&self, task: u32) -> (u32, u32) {
        let made = self.made.get();
        // 31 bits, and not 0: it shares its place with a mark.
        let number = if made < (1 << 31) - 2 { made + 1 } else { 1 };
        self.made.set(number);
        self.alive.set(self.alive.get() + 1);
        (self.columns.borrow_mut().claim(BARE | task, number), number)
    }

    /// Gives the slot of a connection deadline back that no scope names, if that is a store: it is
    /// not near, has not fired, and nobody is to be told.
    #[inline]
    pub(crate) fn unmake(&self, slot: u32) -> bool {
        let Ok(mut columns) = self.columns.try_borrow_mut() else { return false };
        if !self.is_quiet() || columns.has_fired(slot) || columns.place(slot) != Place::Far {
            return false;
        }
        let held = self.held.forget(slot, |span| {
            // As in `hold_again`.
            if self.clock.is_exact() {
                columns.store(slot, Time::from_micros(span));
            }
        });
        self.count_untold(u64::from(held || columns.at(slot) < END));
        columns.release(slot);
        self.count_gone();
        true
    }

    /// The number of the connection deadline that was made last.
    #[must_use]
    pub fn made_so_far(&self) -> u32 {
        self.made.get()
    }

    /// Connection deadlines that are not gone.
    #[must_use]
    pub fn alive(&self) -> usize {
        self.alive.get()
    }

    /// One of them is.
    pub fn count_gone(&self) {
        self.alive.set(self.alive.get() - 1);
    }

    /// Reads the clock.
    #[inline(always)]
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// A run is over, when the clock showed that.
    #[inline(always)]
    pub fn end_run(&self, shown: u64) {
        if !self.held.is_empty() {
            self.store_as_of(shown);
        }
    }

    #[inline(never)]
    fn store_as_of(&self, shown: u64) {
        self.store_held(|clock| {
            clock.see(shown);
            clock.latest()
        });
    }

    /// Stores the arms that are held: before anybody looks at a slot.
    #[inline]
    pub fn settle(&self) {
        if !self.held.is_empty() {
            self.store_as_of_now();
        }
    }

    #[inline(never)]
    fn store_as_of_now(&self) {
        self.store_held(ArmClock::now);
    }

    #[inline(always)]
    fn store_held(&self, now: impl FnOnce(&ArmClock) -> Time) {
        let from = if self.clock.is_exact() { Time::ZERO } else { now(&self.clock) };
        let mut columns = self.columns.borrow_mut();
        self.held.drain(|slot, span| columns.store(slot, plus(from, span)));
    }

    /// Whether `hold` is likely to do it.
    #[inline(always)]
    pub(crate) fn can_hold_now(&self, span: u64) -> bool {
        span >= self.simple_from.get() && span <= LONGEST && !self.clock.is_exact()
    }

    /// Sets a far deadline to `span` microseconds after the end of the run that is on, where
    /// `can_hold_now` says so; one that is not set gets that owner. False, and nothing is changed,
    /// if there is no room, or it takes more.
    #[inline(always)]
    pub(crate) fn hold(&self, slot: u32, span: u64, owner: impl FnOnce() -> u32) -> bool {
        let claim = || self.columns.try_borrow_mut().is_ok_and(|mut to| to.claim_far(slot, owner));
        let can = self.held.has_room() && claim();
        if can {
            self.held.push(slot, span);
            self.count_untold(1);
        }
        can
    }

    /// The same wherever it can be done: after now, if the clock is exact; if there was no room,
    /// all that is held is stored before.
    pub(crate) fn hold_anyhow(&self, slot: u32, span: u64, owner: impl FnOnce() -> u32) -> bool {
        let held = self.to_hold(span);
        if !self.held.has_room() {
            self.settle();
        }
        held.is_some_and(|held| self.hold(slot, held, owner))
    }

    /// The same for the deadline whose arm was held last.
    #[inline(always)]
    pub(crate) fn hold_again(&self, slot: u32, span: u64) -> bool {
        // An exact clock shows by its looks at the table what was stored there.
        let can = self.held.is_last(slot) && self.can_hold_now(span);
        if can {
            self.held.set_last(span);
            self.count_untold(1);
        }
        can
    }

    /// What is held for a span; none if that is near, ends never, or nothing can be held.
    #[inline(always)]
    fn to_hold(&self, span: u64) -> Option<u64> {
        if self.can_hold_now(span) { Some(span) } else { self.to_hold_from_now(span) }
    }

    /// Of an exact clock. None if the span ends after the end of a simulation's time.
    #[cold]
    fn to_hold_from_now(&self, span: u64) -> Option<u64> {
        if span < self.simple_from.get() || !self.clock.is_exact() {
            return None;
        }
        let until = plus(self.now(), span);
        (until < END).then_some(until.as_micros())
    }

    /// Sets a far deadline to `span` microseconds after `now`, and gives it an owner: a store.
    /// Where it is set to, or `None` if that is not all it takes; then the kernel is to be asked.
    #[inline(always)]
    pub(crate) fn begin(&self, slot: u32, span: u64, now: Time, owner: u32) -> Option<Time> {
        let (at, is_never) = now.as_micros().overflowing_add(span);
        let at = Time::from_micros(at);
        if is_never || span < self.simple_from.get() {
            return None;
        }
        let stored = self.columns.try_borrow_mut().is_ok_and(|mut to| to.rearm(slot, at, owner));
        self.count_untold(u64::from(stored));
        stored.then_some(at)
    }

    /// Sets a far deadline to a point a tick or more from `now`: a store. False as for `begin`.
    #[inline]
    pub(crate) fn set(&self, slot: u32, at: Time, now: Time, owner: u32) -> bool {
        let span = at.as_micros().saturating_sub(now.as_micros());
        self.begin(slot, span, now, owner).is_some()
    }

    /// Takes a far deadline back and gives it another owner. False as for `set`.
    #[inline]
    pub(crate) fn clear(&self, slot: u32, owner: u32) -> bool {
        if !self.is_quiet() || !self.columns.borrow_mut().take_back(slot, owner) {
            return self.clear_unset(slot, owner);
        }
        self.count_untold(1);
        true
    }

    /// The same for one that is not set, perhaps, or is to be told.
    fn clear_unset(&self, slot: u32, owner: u32) -> bool {
        let unset = !self.is_any_in_flight() && self.columns.borrow().set_to(slot) == Time::NEVER;
        unset && self.columns.borrow_mut().give(slot, owner)
    }

    /// Gives a deadline to another owner, unless it has fired.
    pub(crate) fn own(&self, slot: u32, owner: u32) {
        if !self.has_fired(slot) {
            self.columns.borrow_mut().set_owner(slot, owner);
        }
    }

    /// What a connection deadline was set to, by the last arm that was held or a store.
    pub(crate) fn set_to(&self, slot: u32) -> Time {
        self.settle();
        self.columns.borrow().set_to(slot)
    }

    /// Whether it has fired and was not set since.
    #[inline]
    pub(crate) fn has_fired(&self, slot: u32) -> bool {
        self.columns.borrow().has_fired(slot)
    }
}

#[inline(always)]
fn plus(time: Time, micros: u64) -> Time {
    Time::from_micros(time.as_micros().saturating_add(micros))
}

/// The shortest span that is a store where none is to be told. Zero is none: it disarms.
fn simple_from(tick: u64) -> u64 {
    tick.max(1)
}

impl fmt::Debug for DeadlineTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineTable").field("columns", &self.columns).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::clock::tests::Tens;
    use super::*;

    fn us(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn d19_an_arm_is_no_store_where_one_is_told_or_in_flight() {
        let table = DeadlineTable::new(Duration::from_micros(5), Box::new(|| us(100)));
        let slot = table.columns().claim(0, 1);
        let begin = |span| table.begin(slot, span, us(100), 0);
        assert_eq!(begin(5), Some(us(105)));
        assert_eq!(begin(4), None, "that is near");
        assert_eq!(begin(END.as_micros() - 100), None, "that is never");
        assert_eq!(begin(u64::MAX), None, "that is more");
        assert!(!hold(&table, slot, 4), "that is near");
        assert!(!hold(&table, slot, u64::MAX), "that is never");
        assert_eq!(table.set_to(slot), us(105), "nothing is held");
        assert!(hold(&table, slot, 5));
        assert!(!table.hold_again(slot, 7), "an exact clock is told of each");
        assert!(!hold(&table, slot, 4) && hold(&table, slot, 7));
        assert_eq!(table.set_to(slot), us(107));
        table.listen(true);
        assert!(!hold(&table, slot, 5) && begin(5).is_none());
        let (_, second) = (table.post(), table.post());
        table.listen(false);
        table.heed();
        assert!(table.is_in_flight(second));
        assert!(!hold(&table, slot, 5) && begin(5).is_none());
        table.heed();
        assert!(hold(&table, slot, 6));
        assert_eq!((table.untold(), table.set_to(slot)), (4, us(106)));
    }

    fn hold(table: &DeadlineTable, slot: u32, span: u64) -> bool {
        table.hold_anyhow(slot, span, || 0)
    }

    /// When those are due, as the columns have it.
    fn due(table: &DeadlineTable, slots: [u32; 2]) -> [Time; 2] {
        slots.map(|slot| table.columns().at(slot))
    }

    /// Two deadlines, in a run; and what the clock shows.
    fn in_a_run() -> (Rc<Cell<u64>>, Rc<DeadlineTable>, [u32; 2]) {
        let shown = Rc::new(Cell::new(0));
        let table = DeadlineTable::new(Duration::from_micros(5), Box::new(Tens(shown.clone())));
        let slots = [1, 2].map(|number| table.columns().claim(0, number));
        (shown, table, slots)
    }

    #[test]
    fn d12_an_arm_counts_from_the_end_of_its_run() {
        let (_, table, [slot, other]) = in_a_run();
        assert!(hold(&table, slot, 50) && table.hold_again(slot, 30));
        table.end_run(7);
        assert_eq!(table.columns().at(slot), us(120));
        assert!(hold(&table, slot, 40));
        table.end_run(7);
        assert_eq!(table.columns().at(slot), us(130), "also where the clock has not moved");
        table.end_run(9);
        assert_eq!((table.set_to(slot), table.set_to(other)), (us(130), Time::NEVER));
        assert_eq!(table.untold(), 3);
        table.columns().assert_sound(0);
    }

    #[test]
    fn d12_an_arm_counts_from_now_where_it_is_looked_at_or_there_is_no_more_room() {
        let (shown, table, slots) = in_a_run();
        let [first, second] = slots;
        assert!(hold(&table, first, 50) && hold(&table, second, 60));
        shown.set(1);
        assert_eq!(table.set_to(second), us(90));
        assert_eq!(table.columns().at(first), us(80), "all are stored");
        for n in 0..held::tests::ALL {
            assert!(hold(&table, [first, second][n % 2], 50));
        }
        shown.set(4);
        assert_eq!(due(&table, slots), [us(80), us(90)]);
        assert!(hold(&table, first, 40));
        assert_eq!(due(&table, slots), [us(110), us(110)]);
        table.end_run(5);
        assert_eq!(due(&table, slots), [us(110), us(110)]);
        table.columns().assert_sound(0);
    }

    #[test]
    fn d12_an_exact_clock_is_read_by_the_arm() {
        let time = Rc::new(Cell::new(us(100)));
        let clock = time.clone();
        let table = DeadlineTable::new(Duration::from_micros(5), Box::new(move || clock.get()));
        let slot = table.columns().claim(0, 1);
        assert!(hold(&table, slot, 50));
        time.set(us(130));
        table.end_run(9_000); // in units of the machine's own
        assert_eq!((table.columns().at(slot), table.now()), (us(150), us(130)));
        time.set(END);
        assert!(!hold(&table, slot, 50), "that is never");
        assert_eq!((table.set_to(slot), table.untold()), (us(150), 1));
        table.columns().assert_sound(0);
    }

    #[test]
    fn a_slot_that_is_given_back_takes_its_held_arm_along() {
        let (_, table, [other, _]) = in_a_run();
        let (slot, _) = table.make(0);
        assert!(hold(&table, slot, 50) && hold(&table, other, 50) && hold(&table, slot, 60));
        assert!(table.unmake(slot));
        assert_eq!(table.make(0), (slot, 2), "the place is another's");
        table.end_run(1);
        assert_eq!(due(&table, [slot, other]), [Time::NEVER, us(80)]);
        assert_eq!(table.untold(), 4);
        table.columns().assert_sound(0);
    }

    #[test]
    fn what_a_deadline_was_set_to_is_known_when_it_is_near_and_when_it_has_fired() {
        let (_, table, [slot, _]) = in_a_run();
        assert!(hold(&table, slot, 50));
        table.end_run(0);
        let mut near = Vec::new();
        table.columns().scan(us(80), |slot, _, number, at| near.push((slot, number, at)));
        assert_eq!(near, [(slot, 1, us(70))]);
        table.columns().set_near(slot, 0);
        assert_eq!((table.set_to(slot), table.columns().at(slot)), (us(70), Time::NEVER));
        assert!(!hold(&table, slot, 50), "it is the heap's");
        table.columns().fire(slot, 1, us(70));
        assert_eq!((table.set_to(slot), table.columns().at(slot)), (us(70), Time::NEVER));
        assert!(table.has_fired(slot) && !hold(&table, slot, 50));
    }
}
