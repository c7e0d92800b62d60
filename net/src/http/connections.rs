//! The open connections of a server: what each waits for, and which of them end when there is no
//! room, or when the server stops.
//!
//! It knows a connection by its deadline, and may not touch a stream.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use traps::{ConnectionDeadline, Time};

use super::limits::Caps;
use crate::limits::FIRST_BYTE;

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
    Started,
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
    /// Much was written, and the peer may not have all of it.
    pub(crate) much: Cell<bool>,
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
    pub(crate) fn set_waits(&self, entry: &Entry, waits: Waits) -> Waits {
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
                Waits::First => {
                    let soon = deadline.now() + FIRST_BYTE;
                    deadline.arm(soon.min(deadline.until()));
                    self.set_waits(entry, Waits::Hurried);
                }
                Waits::Next => deadline.fire(),
                Waits::Busy | Waits::Hurried | Waits::Leaving | Waits::Refused => {}
            }
        }
    }

    /// Tells a connection to close so that another has its place. Whether there is one.
    ///
    /// That is the longest silent one: its first byte, for which it has `span`, has not come for
    /// half a second. Else the one that has waited longest for its next request, else the longest
    /// silent one of all: bytes of those that are new may be on their way.
    #[track_caller]
    pub(crate) fn close_one_waiting(&self, span: Duration) -> bool {
        self.close_one(Waits::First, span.saturating_sub(FIRST_BYTE))
            || self.close_one(Waits::Next, Duration::MAX)
            || self.close_one(Waits::First, Duration::MAX)
    }

    /// Tells the connection to close that has waited longest for that, if it would wait for `left`
    /// at most. Whether there is one.
    #[track_caller]
    fn close_one(&self, waits: Waits, left: Duration) -> bool {
        if self.count(waits).get() == 0 {
            return false;
        }
        let entries = self.entries.borrow();
        // All wait equally long, so the one whose wait ends first has waited longest.
        let waiting = entries.iter().filter(|entry| entry.waits.get() == waits);
        let Some(longest) = waiting.min_by_key(|entry| entry.until()) else { return false };
        if longest.until().since(longest.now()) > left {
            return false;
        }
        self.set_waits(longest, Waits::Leaving);
        longest.leaves.set(true);
        longest.deadline().fire();
        true
    }

    /// The process has run out of descriptors, and somebody is at the door. One connection is to
    /// close, unless one is about to: as for the limit of connections, else a peer that does not
    /// read why it was refused.
    #[track_caller]
    pub(crate) fn make_room(&self, span: Duration) {
        if self.count(Waits::Leaving).get() == 0 {
            let _ = self.close_one_waiting(span) || self.close_refused(1);
        }
    }

    fn now(&self) -> Option<Time> {
        let entries = self.entries.borrow();
        entries.iter().find_map(|entry| entry.deadline.get()).map(ConnectionDeadline::now)
    }

    /// Ends the wait of so many connections that were refused. Whether there was one.
    #[track_caller]
    fn close_refused(&self, most: usize) -> bool {
        let entries = self.entries.borrow();
        let refused = entries.iter().filter(|entry| entry.waits.get() == Waits::Refused);
        let left = refused.filter_map(|entry| entry.deadline.get()).take(most);
        left.map(ConnectionDeadline::fire).count() > 0
    }

    /// The connection is refused. Of those before it that read why, the slow ones are left when
    /// there are `most`.
    #[track_caller]
    pub(crate) fn refuse(&self, entry: &Entry, most: usize) {
        if self.count(Waits::Refused).get() >= most {
            self.close_refused(usize::MAX);
        }
        self.set_waits(entry, Waits::Refused);
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
