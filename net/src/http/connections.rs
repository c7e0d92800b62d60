//! The open connections of a server: what each waits for, and which of them end when there is no
//! room, or when the server stops.
//!
//! It knows a connection by its deadline, and may not touch a stream.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use traps::{ConnectionDeadline, Time};

use super::limits::Caps;
use crate::limits::{FIRST_BYTE, ROOM_PAUSE};

/// What a connection waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Something that is to be finished.
    #[default]
    Busy,
    /// The first byte of its first request.
    First,
    /// The first byte of its first request, for less time than the head may take.
    Hurried,
    /// The first byte of its next request.
    Next,
    /// Nothing: it was told to close, to make room.
    Leaving,
    /// The peer to read that there are too many.
    Refused,
}

const KINDS: usize = 6;

/// How far an answer has come whose end is that of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UntilClose {
    /// There is none, or all of it is out.
    #[default]
    Out,
    /// It has begun.
    Begun,
    /// It is complete, and not all of it is out, perhaps.
    Complete,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    entries: RefCell<Vec<Rc<Entry>>>,
    /// How many wait for each thing.
    counts: [Cell<usize>; KINDS],
    draining: Cell<bool>,
    /// The end of the grace of a drain, once somebody has looked at the clock.
    grace: Cell<Option<Time>>,
    /// How many there ever were.
    numbers: Cell<u64>,
    /// How many were told to close when descriptors ran out last, and when.
    room: Cell<(usize, Time)>,
    pub(crate) caps: Caps,
}

/// What the server knows of one connection.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// The one deadline of all its phases, made by its task.
    deadline: OnceCell<ConnectionDeadline>,
    waits: Cell<Waits>,
    place: Cell<u32>,
    /// What the log calls it: it is the server's connection of that number, from 1.
    pub(crate) number: u64,
    pub(crate) until_close: Cell<UntilClose>,
    /// It closes as soon as nothing of it is left to do.
    pub(crate) leaves: Cell<bool>,
    /// Requests so far.
    requests: Cell<u64>,
}

impl Connections {
    /// An entry, to be [removed](Connections::remove).
    pub(crate) fn add(&self) -> Rc<Entry> {
        let number = self.numbers.get() + 1;
        self.numbers.set(number);
        let mut entries = self.entries.borrow_mut();
        let place = u32::try_from(entries.len()).expect("there are fewer descriptors");
        let entry = Rc::new(Entry { number, place: Cell::new(place), ..Entry::default() });
        self.count(Waits::Busy).set(self.count(Waits::Busy).get() + 1);
        entries.push(entry.clone());
        entry
    }

    /// The connection is gone.
    pub(crate) fn remove(&self, entry: &Entry) {
        let mut entries = self.entries.borrow_mut();
        let place = entry.place.get();
        entries.swap_remove(place as usize);
        if let Some(moved) = entries.get(place as usize) {
            moved.place.set(place);
        }
        let count = self.count(entry.waits.get());
        count.set(count.get() - 1);
        if let Some(deadline) = entry.deadline.get() {
            self.caps.sum_up(deadline.now(), entries.is_empty() && self.is_draining());
        }
    }

    fn count(&self, waits: Waits) -> &Cell<usize> {
        &self.counts[waits as usize]
    }

    /// The connection waits for that now. Gives what it waited for before.
    #[inline]
    pub(crate) fn set(&self, entry: &Entry, waits: Waits) -> Waits {
        let before = entry.waits.replace(waits);
        let count = self.count(before);
        count.set(count.get() - 1);
        let count = self.count(waits);
        count.set(count.get() + 1);
        before
    }

    /// How many are served.
    pub(crate) fn serving(&self) -> usize {
        let others = self.count(Waits::Refused).get() + self.count(Waits::Leaving).get();
        self.entries.borrow().len() - others
    }

    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Whether the grace of a drain is over, on the clock of that connection.
    #[inline]
    pub(crate) fn is_after_grace(&self, entry: &Entry) -> bool {
        self.is_draining() && {
            let now = entry.now();
            now > self.end_of_grace(now)
        }
    }

    fn end_of_grace(&self, now: Time) -> Time {
        let end = self.grace.get().unwrap_or(now + FIRST_BYTE);
        self.grace.set(Some(end));
        end
    }

    /// Ends the waits of those that wait for nothing that has begun.
    #[track_caller]
    pub(crate) fn drain(&self) {
        self.draining.set(true);
        self.caps.sum_up(self.now().unwrap_or_default(), true);
        for entry in &*self.entries.borrow() {
            let Some(deadline) = entry.deadline.get() else { continue };
            self.end_of_grace(deadline.now());
            match entry.waits.get() {
                Waits::First => self.hurry(entry, deadline),
                Waits::Next => deadline.arm(deadline.now()),
                Waits::Busy | Waits::Hurried | Waits::Leaving | Waits::Refused => {}
            }
        }
    }

    #[track_caller]
    fn hurry(&self, entry: &Entry, deadline: &ConnectionDeadline) {
        let soon = deadline.now() + FIRST_BYTE;
        if soon < deadline.until() {
            deadline.arm(soon);
        }
        self.set(entry, Waits::Hurried);
    }

    /// Tells the connection that has waited longest for its next request to close. Whether there
    /// is one.
    #[track_caller]
    pub(crate) fn close_longest_idle(&self) -> bool {
        if self.count(Waits::Next).get() == 0 {
            return false;
        }
        let entries = self.entries.borrow();
        // All wait equally long, so the one whose wait ends first has waited longest.
        let idle = entries.iter().filter(|entry| entry.waits.get() == Waits::Next);
        let Some(longest) = idle.min_by_key(|entry| entry.until()) else { return false };
        self.set(longest, Waits::Leaving);
        longest.leaves.set(true);
        let deadline = longest.deadline();
        deadline.arm(deadline.now());
        true
    }

    /// The process has run out of descriptors, and somebody is at the door. One connection is to
    /// close, and twice as many each time that this was not enough: first those that have waited
    /// longest for their next request, then the peers that refuse to read why they were refused,
    /// then new ones that have sent nothing.
    #[track_caller]
    pub(crate) fn make_room(&self) {
        let going = self.count(Waits::Leaving).get() + self.count(Waits::Hurried).get();
        let Some(now) = self.now() else { return };
        if going > 0 {
            return;
        }
        let (last, when) = self.room.get();
        let wanted = if now.since(when) < ROOM_PAUSE { (last * 2).max(1) } else { 1 };
        self.room.set((wanted, now));
        for _ in 0..wanted {
            if !self.close_longest_idle() && !self.close_refused(1) && !self.hurry_oldest() {
                break;
            }
        }
    }

    fn now(&self) -> Option<Time> {
        let entries = self.entries.borrow();
        entries.iter().find_map(|entry| entry.deadline.get()).map(ConnectionDeadline::now)
    }

    fn hurry_oldest(&self) -> bool {
        let entries = self.entries.borrow();
        let new = entries.iter().filter(|entry| entry.waits.get() == Waits::First);
        let Some(oldest) = new.min_by_key(|entry| entry.until()) else { return false };
        self.hurry(oldest, oldest.deadline());
        true
    }

    /// Ends the wait of so many connections that were refused. Whether there was one.
    #[track_caller]
    fn close_refused(&self, most: usize) -> bool {
        let entries = self.entries.borrow();
        let refused = entries.iter().filter(|entry| entry.waits.get() == Waits::Refused);
        let left = refused.filter_map(|entry| entry.deadline.get()).take(most);
        left.map(|deadline| deadline.arm(deadline.now())).count() > 0
    }

    /// An entry for a connection that is refused. Of those before it that read why, the slow ones
    /// are left when there are `most`.
    #[track_caller]
    pub(crate) fn add_refused(&self, most: usize) -> Rc<Entry> {
        if self.count(Waits::Refused).get() >= most {
            self.close_refused(usize::MAX);
        }
        let entry = self.add();
        self.set(&entry, Waits::Refused);
        entry
    }
}

impl Entry {
    /// Has the deadline, which its task has made.
    pub(crate) fn set_deadline(&self, deadline: ConnectionDeadline) {
        self.deadline.set(deadline).expect("a connection has one deadline");
    }

    pub(crate) fn deadline(&self) -> &ConnectionDeadline {
        self.deadline.get().expect("a connection begins by making its deadline")
    }

    pub(crate) fn now(&self) -> Time {
        self.deadline().now()
    }

    /// Until when its deadline was armed last.
    pub(crate) fn until(&self) -> Time {
        self.deadline.get().map_or(Time::NEVER, ConnectionDeadline::until)
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.waits.get() == Waits::Refused
    }

    /// How many requests that makes.
    #[inline]
    pub(crate) fn count_request(&self) -> u64 {
        self.requests.set(self.requests.get() + 1);
        self.requests.get()
    }

    /// Whether there was a request.
    #[inline]
    pub(crate) fn has_asked(&self) -> bool {
        self.requests.get() > 0
    }

    /// All gathered bytes are sent. The answer may be complete.
    pub(crate) fn flushed(&self) {
        if self.until_close.get() == UntilClose::Complete {
            self.until_close.set(UntilClose::Out);
        }
    }
}
