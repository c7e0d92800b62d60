//! The deadline table: where deadlines that are far off lie, those of the kernel's own timers and
//! those of connections alike.
//!
//! Dense columns that a kernel scans and that a task may store into, without a trap. Nothing here
//! fires, and there is no order: what is due soon is the kernel's near heap.

use std::cell::{Cell, RefCell, RefMut};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use crate::time::{Time, micros};

mod columns;

pub use columns::{Columns, Place};

/// What [`Columns`] holds for a connection deadline that has fired and was not armed since.
pub const FIRED: Time = Time::from_micros(u64::MAX - 1);
/// Marks an owner as the scope of a connection deadline that guards.
pub const GUARD: u32 = 0b11 << 30;
/// Marks an owner as the task of a connection deadline that is armed without a guard.
pub const BARE: u32 = 0b10 << 30;

/// How many lags a clock is trusted to be further behind than it says, at the most.
const MOST_SLACK: u64 = 8;

/// A clock for arms: it may be coarse, but what is made of it is never early.
pub trait CoarseClock {
    /// What it shows, in units of its own. Each arm reads it: it is to be cheap.
    fn reading(&self) -> u64;

    /// What time it may be at the most while it shows that.
    fn latest(&self, reading: u64) -> Time;

    /// How long it may show the same, in microseconds: an exact reading is a bound for that long.
    fn lag(&self) -> u64;
}

/// One that is exact.
impl<F: Fn() -> Time> CoarseClock for F {
    fn reading(&self) -> u64 {
        self().as_micros()
    }

    fn latest(&self, reading: u64) -> Time {
        Time::from_micros(reading)
    }

    fn lag(&self) -> u64 {
        0
    }
}

/// The deadlines of one kernel, shared with the connection deadlines that it gave out.
pub struct DeadlineTable {
    clock: Box<dyn CoarseClock>,
    /// What it showed last: until it moves, some hundred times a second, `latest` is known.
    shown: Cell<u64>,
    /// Now, never early: by the clock or by the kernel's last exact reading, whichever is later.
    latest: Cell<Time>,
    lag: u64,
    /// What is added to the clock's own bound: it was seen to be further behind than it says.
    slack: Cell<u64>,
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
    columns: RefCell<Columns>,
}

impl DeadlineTable {
    /// An empty table. `clock` is read by arms.
    #[must_use]
    pub fn new(tick: Duration, clock: Box<dyn CoarseClock>) -> Rc<DeadlineTable> {
        let (shown, lag) = (clock.reading(), clock.lag());
        let tick = micros(tick);
        Rc::new(DeadlineTable {
            shown: Cell::new(shown),
            latest: Cell::new(clock.latest(shown)),
            clock,
            lag,
            slack: Cell::new(0),
            tick,
            simple_from: Cell::new(simple_from(tick)),
            listening: Cell::new(false),
            untold: Cell::new(0),
            posted: Cell::new(0),
            heeded: Cell::new(0),
            made: Cell::new(0),
            alive: Cell::new(0),
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
        Time::from_micros(now.as_micros().saturating_add(self.tick))
    }

    /// The kernel has read its clock.
    #[inline]
    pub fn set_exact(&self, now: Time) {
        if now > self.latest.get() {
            self.check(now);
        }
        let bound = plus(now, self.lag + self.slack.get());
        self.latest.set(self.latest.get().max(bound));
    }

    /// Time has passed since the clock was read. If it is further behind than it may be (a virtual
    /// machine's, whose processor that moves it was not run), it will be again.
    #[cold]
    fn check(&self, now: Time) {
        let shown = self.clock.reading();
        let behind = now.as_micros().saturating_sub(self.clock.latest(shown).as_micros());
        if behind > self.slack.get() {
            // There is a bound to it, or one pause of the whole machine would be felt for ever.
            self.slack.set((behind + self.lag).min(MOST_SLACK * self.lag));
        }
        self.learn(shown);
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
        // 31 bits, and not 0: it shares its place with a mark.
        let number = self.made.get() % ((1 << 31) - 2) + 1;
        self.made.set(number);
        self.alive.set(self.alive.get() + 1);
        (self.columns.borrow_mut().claim(BARE | task, number), number)
    }

    /// Gives the slot of a connection deadline back that no scope names, if that is a store: it is
    /// not near, has not fired, and nobody is to be told.
    pub(crate) fn unmake(&self, slot: u32) -> bool {
        let Ok(mut columns) = self.columns.try_borrow_mut() else { return false };
        let at = columns.at(slot);
        if !self.is_quiet() || at == FIRED || columns.place(slot) != Place::Far {
            return false;
        }
        columns.release(slot);
        self.count_untold(u64::from(at < FIRED));
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
        let shown = self.clock.reading();
        if shown != self.shown.get() {
            self.learn(shown);
        }
        self.latest.get()
    }

    /// The clock has moved.
    #[cold]
    fn learn(&self, shown: u64) {
        self.shown.set(shown);
        let bound = plus(self.clock.latest(shown), self.slack.get());
        self.latest.set(self.latest.get().max(bound));
    }

    /// Moves a far deadline that is set, and whose owner stays, to `span` microseconds after `now`:
    /// one store. Where it is set to, or `None` if that is not all it takes.
    #[inline(always)]
    pub(crate) fn push_back(&self, slot: u32, span: u64, now: Time) -> Option<Time> {
        self.store(span, now, |columns, at| columns.put(slot, at))
    }

    /// Sets a far deadline that was not set, and gives it an owner. As `push_back`.
    #[inline(always)]
    pub(crate) fn begin(&self, slot: u32, span: u64, now: Time, owner: u32) -> Option<Time> {
        self.store(span, now, |columns, at| columns.rearm(slot, at, owner))
    }

    #[inline(always)]
    fn store(
        &self,
        span: u64,
        now: Time,
        store: impl FnOnce(&mut Columns, Time) -> bool,
    ) -> Option<Time> {
        let (at, is_never) = now.as_micros().overflowing_add(span);
        let at = Time::from_micros(at);
        if is_never || span < self.simple_from.get() {
            return None;
        }
        let stored = self.columns.try_borrow_mut().is_ok_and(|mut columns| store(&mut columns, at));
        self.count_untold(u64::from(stored));
        stored.then_some(at)
    }

    /// Sets a far deadline to a point a tick or more from `now`: a store. False if it takes more
    /// than that; then the kernel is to be asked.
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
        let unset = !self.is_any_in_flight() && self.columns.borrow().at(slot) == Time::NEVER;
        unset && self.columns.borrow_mut().give(slot, owner)
    }

    /// Gives a deadline to another owner, unless it has fired.
    pub(crate) fn own(&self, slot: u32, owner: u32) {
        if !self.has_fired(slot) {
            self.columns.borrow_mut().set_owner(slot, owner);
        }
    }

    #[inline]
    pub(crate) fn has_fired(&self, slot: u32) -> bool {
        self.columns.borrow().at(slot) == FIRED
    }
}

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
    use super::*;

    /// Shows tens of microseconds, up to two of them late.
    struct Tens(Rc<Cell<u64>>);

    impl CoarseClock for Tens {
        fn reading(&self) -> u64 {
            self.0.get()
        }

        fn latest(&self, reading: u64) -> Time {
            Time::from_micros(10 * reading + 20)
        }

        fn lag(&self) -> u64 {
            10
        }
    }

    fn us(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn d12_an_arm_counts_from_the_later_of_the_coarse_clock_and_the_exact_reading() {
        let shown = Rc::new(Cell::new(0));
        let table = DeadlineTable::new(Duration::ZERO, Box::new(Tens(shown.clone())));
        assert_eq!(table.now(), us(20));
        table.set_exact(us(9)); // the coarse one is ahead of it
        assert_eq!(table.now(), us(20));
        table.set_exact(us(13));
        assert_eq!(table.now(), us(23));
        shown.set(1); // as far behind as it may be: the exact reading is ahead of it
        table.set_exact(us(28));
        assert_eq!(table.now(), us(38));
        shown.set(10);
        assert_eq!(table.now(), us(120));
        table.set_exact(us(101));
        assert_eq!(table.now(), us(120));
    }

    #[test]
    fn d12_a_clock_that_was_seen_further_behind_than_it_says_is_trusted_less() {
        let shown = Rc::new(Cell::new(0));
        let table = DeadlineTable::new(Duration::ZERO, Box::new(Tens(shown.clone())));
        table.set_exact(us(20)); // as far behind as it may be
        assert_eq!(table.now(), us(30));
        table.set_exact(us(35)); // 15 further: it gets that and a lag
        assert_eq!(table.now(), us(70));
        shown.set(6); // its own bound is 80
        assert_eq!(table.now(), us(105));
        table.set_exact(us(100)); // within what it got
        assert_eq!(table.now(), us(135));
        table.set_exact(us(9000)); // a pause: as much as it may get
        assert_eq!(table.now(), us(9090));
        shown.set(1000);
        assert_eq!(table.now(), us(10_100));
    }

    #[test]
    fn d19_an_arm_is_no_store_where_one_is_told_or_in_flight() {
        let table = DeadlineTable::new(Duration::from_micros(5), Box::new(|| us(100)));
        let slot = table.columns().claim(0, 1);
        assert_eq!(table.push_back(slot, 50, us(100)), None, "it is not set");
        assert!(table.set(slot, us(150), us(100), 0));
        let pushed = || table.push_back(slot, 5, us(100));
        assert_eq!(pushed(), Some(us(105)));
        assert_eq!(table.push_back(slot, 4, us(100)), None, "that is near");
        assert_eq!(table.push_back(slot, u64::MAX - 101, us(100)), None, "that is the mark");
        assert_eq!(table.push_back(slot, u64::MAX, us(100)), None, "that is never");
        table.listen(true);
        assert_eq!(pushed(), None);
        let (_, second) = (table.post(), table.post());
        table.listen(false);
        table.heed();
        assert!(table.is_in_flight(second));
        assert_eq!(pushed(), None);
        table.heed();
        assert_eq!(pushed(), Some(us(105)));
        assert_eq!((table.untold(), table.columns().at(slot)), (3, us(105)));
    }
}
