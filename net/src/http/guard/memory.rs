//! The bound on the memory that clients make a server keep, and how the connections share it.
//!
//! A connection has a [`Room`] while it keeps a body, or the response made of it. It takes room as
//! bytes arrive. A body that outgrows its room doubles the room, as the buffer of the body doubles,
//! so the room always equals the size of the buffer.
//!
//! With this rule alone, incomplete bodies could fill the memory and wait for each other: a
//! deadlock. So: **Bodies that find no room wait, smallest need first. One body at a time may use a
//! reserve until it is complete.** The reserve is as large as the largest body, so this body always
//! ends, and releases its room to the others.
//!
//! For example, the bound is 100 MB and a body may have 8 MB. Then 92 MB are for all bodies. Say 40
//! clients send 8 MB each, and fill the 92 MB. One of them gets the last 8 MB, completes its body
//! and releases its room; then the next one does. If the memory is too small for such a reserve,
//! half of it is the reserve. Bodies can then block each other after all, and the body that detects
//! this is refused at once.
//!
//! The order is by need, not by arrival, so that a small body does not queue after large ones.
//!
//! A slow client that keeps to its rate could still hold room that others wait for. So: **While a
//! body waits for room, the slow one that has cost most gives way.** A client is slow if it has let
//! the server wait for a quarter of a second without moving a sixteenth of what it holds. Its cost
//! is what it holds times how long it has been slow. A body that gives way gets 503, and a response
//! breaks off. So a client that holds a lot must be fast, 2 MB a second for 8 MB, but only while
//! others need the room.
//!
//! A body that waits for room makes no progress either, whatever its client does. It is slow after
//! the same time, but only for a body that needs at most half of what it holds. Otherwise many
//! large bodies would keep small ones waiting, until each large body had used the reserve in turn.
//!
//! A head that outgrows its read buffer takes room for the rest, but it never waits: **if there is
//! no room for it, or a body waits for room, it is refused.** Such heads are rare, and they need
//! less than most bodies. If they waited too, a flood of unfinished heads would always be served
//! before an honest body.
//!
//! This module stores numbers, not bytes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use traps::{Either, Interruptible, Time, WaitQueue, ignore_at, race};

use crate::http::guard::connections::Entry;
use crate::http::limits::Limits;
use crate::limits::{LEFT, SLOW};
use crate::rate_meter::{Slowness, guard, is_timeout};
use crate::stream::Stream;

/// The account of the memory that clients make a server keep: the bytes in use, and the bodies that
/// wait for room.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    used: Cell<u64>,
    /// The share of each connection that keeps something in memory, by its number.
    shares: RefCell<BTreeMap<u64, Rc<Share>>>,
    /// The size of the room that has the reserve, if a room has it.
    last: Cell<Option<u64>>,
    /// The queue of waiters, the next waiter first.
    waiters: RefCell<BTreeMap<Key, Waiting>>,
    /// The number of bytes that the waiters hold.
    idle: Cell<u64>,
    /// The number of waits so far.
    waits: Cell<u64>,
}

/// The part of its room that a client must move, as a divisor. A client that moves less is slow.
const FAST: u64 = 16;

/// A waiting body gives way only if it holds at least this many times the need of the other body. A
/// body that doubles needs as much as it holds, so bodies of equal size never give way to each
/// other.
const LARGER: u64 = 2;

/// The key that orders the waiters: the number of bytes that a waiter needs, or zero if its room
/// has the reserve, and then the number of its wait.
type Key = (u64, u64);

/// A waiter in the queue: the number of bytes that it needs in addition, and the means to wake it
/// when it is the first and there may be room.
#[derive(Debug)]
struct Waiting {
    more: u64,
    queue: WaitQueue,
}

/// The size, in bytes, from which glibc's allocator gets a separate block from the system.
const MAPPED: usize = 128 << 10;

/// Frees the buffer of a body, so that its memory goes back to the system.
///
/// When such a block is freed, glibc raises that size to the size of the block, and from then on
/// takes smaller blocks from its heap. The bodies of many clients leave holes in the heap, so the
/// process would use, and keep, more memory than is counted here. A block that was shrunk before it
/// is freed does not raise the size.
pub(crate) fn free(mut bytes: Vec<u8>) {
    if bytes.capacity() >= MAPPED {
        bytes.clear();
        bytes.push(0);
        bytes.shrink_to_fit();
    }
}

/// A body that is being read, or a piece of a file. Dropping it frees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Growing(pub(crate) Vec<u8>);

impl Drop for Growing {
    fn drop(&mut self) {
        free(std::mem::take(&mut self.0));
    }
}

/// A part of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The part for all bodies.
    Common,
    /// The part for one body at a time.
    Last,
}

impl Memory {
    /// The number of bytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.used.get()
    }

    /// Returns the part of the memory with room for `more` bytes, or the number of bytes that are
    /// lacking. A room that has the reserve (`is_last`) keeps it.
    fn part_for(&self, more: u64, is_last: bool, limits: &Limits) -> Result<Part, u64> {
        let sum = self.used.get().saturating_add(more);
        // The bytes set aside: the reserve, or the rest of it for the room that has it.
        let last_part = limits.body.min(limits.memory / 2);
        let common = limits.memory - last_part.saturating_sub(self.last.get().unwrap_or(0));
        let may_be_last = is_last || self.last.get().is_none();
        match if may_be_last { limits.memory } else { common } {
            most if sum > most => Err(sum - most),
            _ if is_last || sum > common => Ok(Part::Last),
            _ => Ok(Part::Common),
        }
    }

    /// Whether waiters hold all the memory, and none of them can continue.
    fn is_stuck(&self, limits: &Limits) -> bool {
        self.used.get() == self.idle.get()
            && self.waiters.borrow().first_key_value().is_some_and(|(key, waiting)| {
                self.part_for(waiting.more, key.0 == 0, limits).is_err()
            })
    }

    /// Makes slow bodies give way to a body that needs `more` bytes, those with the highest cost
    /// first, until the missing `bytes` bytes will be free. Returns the time at which other bodies
    /// may have become slow.
    fn push_out(&self, more: u64, bytes: u64, now: Time) -> Time {
        let shares = self.shares.borrow();
        let held = |share: &Rc<Share>| share.held.get();
        let mut leaving: u64 = shares.values().filter(|it| it.gives_way()).map(held).sum();
        while bytes > leaving {
            let slow = shares.values().filter_map(|share| Some((share.cost(more, now)?, share)));
            let Some((_, worst)) = slow.max_by_key(|(cost, _)| *cost) else { break };
            leaving += held(worst);
            worst.slowness.gives_way.set(true);
            worst.entry.deadline().fire();
        }
        let left = shares.values().map(|it| SLOW.saturating_sub(it.slow_for(now)));
        now + left.filter(|left| !left.is_zero()).min().unwrap_or(SLOW)
    }

    fn is_first(&self, key: Key) -> bool {
        self.waiters.borrow().first_key_value().is_none_or(|(first, _)| key <= *first)
    }

    /// Wakes the first waiter, to look again whether there is room.
    fn wake_first(&self) {
        if let Some((_, waiting)) = self.waiters.borrow().first_key_value() {
            waiting.queue.wake(1);
        }
    }
}

/// The part of a room that other rooms see: the number of bytes that it holds, and the slowness of
/// its client.
#[derive(Debug)]
struct Share {
    entry: Rc<Entry>,
    held: Cell<u64>,
    slowness: Slowness,
    /// The time since which the room has been waiting to grow.
    parked: Cell<Option<Time>>,
}

impl Share {
    fn gives_way(&self) -> bool {
        self.slowness.gives_way.get()
    }

    /// How long the room has made no progress, because its client is slow or it waits to grow.
    fn slow_for(&self, now: Time) -> Duration {
        self.parked.get().map_or_else(|| self.slowness.slow_for(now), |since| now.since(since))
    }

    /// The cost of a slow body, in bytes times microseconds. `None` if it is not slow, or waits for
    /// room and does not hold much more than the `more` bytes that another one needs.
    fn cost(&self, more: u64, now: Time) -> Option<u128> {
        let (held, span) = (self.held.get(), self.slow_for(now));
        let is_lesser = self.parked.get().is_some() && held / LARGER < more;
        let is_slow = span >= SLOW && !is_lesser && !self.gives_way();
        is_slow.then(|| u128::from(held) * span.as_micros())
    }
}

/// The memory that one connection uses. Dropping the room releases the memory.
#[derive(Debug)]
pub(crate) struct Room {
    memory: Rc<Memory>,
    share: Rc<Share>,
    /// Whether the room has the reserve.
    is_last: Cell<bool>,
    /// Whether the room is for a body, or a response made of it. If so, the client must keep to a
    /// rate.
    is_body: Cell<bool>,
}

impl Room {
    /// Makes an empty room.
    pub(crate) fn new(memory: &Rc<Memory>, entry: &Rc<Entry>) -> Room {
        let (held, slowness, parked) = (Cell::default(), Slowness::default(), Cell::default());
        let share = Rc::new(Share { entry: entry.clone(), held, slowness, parked });
        memory.shares.borrow_mut().insert(entry.number, share.clone());
        let (is_last, is_body) = (Cell::default(), Cell::default());
        Room { memory: memory.clone(), share, is_last, is_body }
    }

    /// The number of bytes that the room holds.
    pub(crate) fn held(&self) -> u64 {
        self.share.held.get()
    }

    /// The number of bytes of a body, or of a response made of it, that the room holds.
    pub(crate) fn of_body(&self) -> u64 {
        if self.is_body.get() { self.held() } else { 0 }
    }

    /// Notes that the room is for a body.
    pub(crate) fn is_for_body(&self) {
        self.is_body.set(true);
    }

    /// Grows the room to `bytes` bytes, which already exist, even if the bound is exceeded. Slow
    /// bodies and responses then give way.
    pub(crate) fn force(&self, bytes: u64, limits: &Limits) {
        let more = bytes.saturating_sub(self.held());
        self.memory.used.set(self.memory.used.get() + more);
        self.set_held(self.held() + more);
        let over = self.memory.used.get().saturating_sub(limits.memory);
        if over > 0 {
            self.memory.push_out(more, over, self.share.entry.now());
        }
    }

    /// Whether the room must be released, because others wait for it and the client is slow.
    pub(crate) fn gives_way(&self) -> bool {
        self.share.gives_way()
    }

    /// The slowness of the client.
    pub(crate) fn slowness(&self) -> &Slowness {
        &self.share.slowness
    }

    /// Notes that `bytes` bytes came from the client, or went to it.
    pub(crate) fn moved(&self, bytes: usize) {
        self.share.slowness.count(bytes, (self.held() / FAST).max(1));
    }

    /// Grows the room to `bytes` bytes if there is memory for it and no earlier waiter. Returns
    /// whether the room has grown.
    pub(crate) fn try_grow(&self, bytes: u64, limits: &Limits) -> bool {
        let more = bytes.saturating_sub(self.held());
        self.memory.is_first(self.key(more, 0)) && self.take(more, limits)
    }

    /// Grows the room to `bytes` bytes if there is common memory for it and no body waits. Returns
    /// whether the room is large enough now.
    pub(crate) fn grow_if_unwanted(&self, bytes: u64, limits: &Limits) -> bool {
        let more = bytes.saturating_sub(self.held());
        let is_free = || {
            let is_common = self.memory.part_for(more, false, limits) == Ok(Part::Common);
            is_common && self.memory.waiters.borrow().is_empty()
        };
        more == 0 || is_free() && self.take(more, limits)
    }

    /// The key of a wait for `more` bytes, which orders the queue.
    fn key(&self, more: u64, number: u64) -> Key {
        (if self.is_last.get() { 0 } else { more }, number)
    }

    /// Takes `more` bytes for the room if the memory has them. Returns whether it took them.
    fn take(&self, more: u64, limits: &Limits) -> bool {
        let Ok(part) = self.memory.part_for(more, self.is_last.get(), limits) else {
            return false;
        };
        self.is_last.set(part == Part::Last);
        self.memory.used.set(self.memory.used.get() + more);
        self.set_held(self.held() + more);
        true
    }

    fn set_held(&self, bytes: u64) {
        self.share.held.set(bytes);
        if self.is_last.get() {
            self.memory.last.set(Some(bytes));
        }
    }

    /// Leaves the reserve to other rooms, because the body is complete.
    pub(crate) fn complete(&self) {
        if self.is_last.replace(false) {
            self.memory.last.set(None);
            self.memory.wake_first();
        }
    }

    /// Shrinks the room to `bytes` bytes, and releases the rest of its memory.
    pub(crate) fn shrink(&self, bytes: u64) {
        let less = self.held().saturating_sub(bytes);
        if less > 0 {
            self.set_held(bytes);
            self.memory.used.set(self.memory.used.get() - less);
            self.memory.wake_first();
        }
    }

    /// Puts the room into the queue of waiters, to grow to `bytes` bytes.
    pub(crate) fn queue(&self, bytes: u64) -> Waiter<'_> {
        let Memory { waiters, idle, waits, .. } = &*self.memory;
        waits.set(waits.get() + 1);
        self.share.parked.set(Some(self.share.entry.now()));
        idle.set(idle.get() + self.held());
        let more = bytes.saturating_sub(self.held());
        let (key, queue) = (self.key(more, waits.get()), WaitQueue::new());
        waiters.borrow_mut().insert(key, Waiting { more, queue: queue.clone() });
        Waiter { room: self, held: self.held(), more, key, queue }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.complete();
        self.shrink(0);
        self.memory.shares.borrow_mut().remove(&self.share.entry.number);
    }
}

/// A room that waits for more memory. Dropping the waiter ends the wait.
#[derive(Debug)]
pub(crate) struct Waiter<'r> {
    room: &'r Room,
    /// The number of bytes that the room held when the wait began.
    held: u64,
    /// The number of bytes that the room needs in addition.
    more: u64,
    key: Key,
    /// The queue in which the task of this waiter waits. It is woken when this waiter is the first
    /// and there may be room.
    queue: WaitQueue,
}

/// The result of an attempt to grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// The room has grown.
    Grown,
    /// The room must wait, and try again at this time.
    Wait(Time),
    /// The room cannot grow, because waiters hold all the memory, or it must give way.
    Stuck,
}

impl Waiter<'_> {
    /// Waits until the room has grown. Returns false if the wait is over before that: at the time
    /// that `last` returns, or because the room or the connection must give way. If the peer closes
    /// its side of `stream` and half-closed clients are not served, the wait is over after `LEFT`,
    /// like that of a handler.
    pub(crate) async fn grow<S: Stream>(
        &self,
        stream: &mut S,
        (limits, half_close): (&Limits, bool),
        last: impl Fn() -> Time,
    ) -> io::Result<bool> {
        let entry = &self.room.share.entry;
        let (mut is_watched, mut left) = (!half_close, Time::NEVER);
        loop {
            let until = last().min(left);
            let again = match self.look(limits) {
                Look::Grown => return Ok(true),
                Look::Wait(again) if entry.now() < until && !entry.gives_way() => again,
                Look::Wait(_) | Look::Stuck => return Ok(false),
            };
            let woken_or_left = async {
                let closed =
                    async { if is_watched { stream.closed().await } else { pending().await } };
                match race(self.queue.wait(), closed).await {
                    Either::Left(woken) => woken.map(|()| false).map_err(io::Error::from),
                    Either::Right(Err(error)) if error.interrupt().is_some() => Err(error),
                    Either::Right(_) => Ok(true),
                }
            };
            let wait = ignore_at(again, woken_or_left);
            match guard(entry.deadline(), ("memory", until), wait).await {
                Ok(None | Some(false)) => {}
                Ok(Some(true)) => (is_watched, left) = (false, entry.now() + LEFT),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Grows the room if there is memory for it. Otherwise, if this waiter is the first, makes slow
    /// bodies give way.
    fn look(&self, limits: &Limits) -> Look {
        let Room { memory, share, is_last, .. } = self.room;
        if share.gives_way() || memory.is_stuck(limits) {
            return Look::Stuck;
        }
        if !memory.is_first(self.key) {
            return Look::Wait(Time::NEVER);
        }
        match memory.part_for(self.more, is_last.get(), limits) {
            Ok(_) => {
                self.room.take(self.more, limits);
                Look::Grown
            }
            Err(lacking) => Look::Wait(memory.push_out(self.more, lacking, share.entry.now())),
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let Memory { waiters, idle, .. } = &*self.room.memory;
        self.room.share.parked.set(None);
        waiters.borrow_mut().remove(&self.key);
        idle.set(idle.get() - self.held);
        self.room.memory.wake_first();
    }
}
